"""The harm of a fill in a plain language: by its brackets and marks, and by its grammar where it has one."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice

from tree_sitter import Node, Tree

from dg_lsp.budget import attempt
from dg_lsp.gaps import REACH, open_at
from dg_lsp.guard.baseline import Text
from dg_lsp.guard.compare import errors_of
from dg_lsp.guard.loose import loose_bracket, loose_literal, pairs_in
from dg_lsp.guard.mixed import mixed
from dg_lsp.guard.routines import Routine, routine_of
from dg_lsp.guard.site import Site, next_line
from dg_lsp.guard.statements import (
    Statement,
    begins_otherwise,
    ends_in_brackets,
    is_cut_short,
    is_ended,
    parts_of,
    statement_of,
    takes_in,
)
from dg_lsp.reasons import TooDeep, Unreadable
from dg_lsp.source.brackets import PAIRS
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import Span, leading, line_start
from dg_lsp.source.misplaced import new_misplaced, repeated
from dg_lsp.source.words import NEVER

# A longer text is not parsed: tokens must do.
PARSED = 200_000
# Neutral texts that are tried at most.
_TRIES = 500
# Names after a gap that may be the one of its line.
_NAMES = 8
# Neutral texts that may complete a line read alone.
_PLAINEST = (b"", b"_g_", b"_g_()", b"= _g_")
# Neutral texts that are tried for what a query refuses.
_FEW = 100
_LINE = re.compile(rb"[^\r\n]*\s*")


def harm_between(site: Site, fill: bytes) -> str:
    """Return why `fill` does harm in the gap of `site`, as words; empty where it does none.

    1. It has no loose end.  2. A statement of its own begins with a word that may begin one.  3. By the grammar there
    are no more errors than without it, or with a neutral text in its place, and no statement where none can be.
    """
    # 1.
    if loose := loose_literal(site, fill) or loose_bracket(site, fill):
        return loose.what
    # 2.
    if begins_otherwise(site, fill) or ((routine := routine_of(site)) and routine.begins_otherwise(fill)):
        return "a word that begins no statement"
    if ends_in_brackets(site, fill):
        return "an end of a statement in brackets"
    # 3.
    if not _is_parsed(site.language, site.before, site.after):
        return ""
    alone = _fits_alone(site, fill)
    if alone is None and (harm := _harm_of_end(site, fill)):
        return harm
    return _harm_in_tree(site, fill) if alone is None else "" if alone else "a syntax error"


def _harm_of_end(site: Site, fill: bytes) -> str:
    """Return the harm that is in where the statement of `fill` ends, as words."""
    if takes_in(site, fill):
        return "a statement that is not ended"
    return "a statement that is cut short" if is_cut_short(site, fill) else ""


def _harm_in_tree(site: Site, fill: bytes) -> str:
    """Return the harm that the tree of the whole text shows, as words."""
    language, before, after = site.language, site.before, site.after
    at, end = len(before), len(before + fill)
    old, new = _tree(language, before, after), _filled(language, before, fill, after)
    if _adds_errors(site, fill, (old, new)):
        return "a syntax error"
    if not language.plain.data and language.plain.begins is NEVER and _is_joined(site, fill, new):
        return "an end that takes in the line below"
    is_sound = not (old.root_node.has_error or new.root_node.has_error)
    if is_sound and _is_whole(site, fill) and mixed(Text(site, b"", old), Text(site, fill, new)):
        return "a statement that takes in the next line"
    moved = new_misplaced(language, (new.root_node, (at, end)), (old.root_node, (at, at)))
    if moved:
        return "a statement that cannot be here"
    return "a name that is there already" if repeated(language, new.root_node, (at, end)) else ""


def _is_whole(site: Site, fill: bytes) -> bool:
    """Return whether `fill` is to be a statement or several by itself, and no header of what is below it.

    With nothing in it a begun line may be read with the next one in any case.
    """
    if site.kind == "statement":
        return True
    plain, is_begun = site.language.plain, (site.before[site.line :] + site.rest).strip()
    return not (is_begun or plain.data or plain.sections.search(fill) or _opens_block(site, fill))


def _adds_errors(site: Site, fill: bytes, trees: tuple[Tree, Tree]) -> bool:
    """Return whether the text with `fill`, the second of `trees`, has errors or refused nodes that are the fill's."""
    language, before, after = site.language, site.before, site.after
    at, end, (old, new) = len(before), len(before + fill), trees
    stop = end + _LINE.match(after).end()  # type: ignore[union-attr]  # it matches nothing, too
    # What is read as it was is refused as it was.
    begun, changed = language.changed(old, before + after, (at, at), fill, new)
    span = min(begun, site.line), max(changed, stop) + 1
    errors, refused = errors_of(new.root_node), _refused(language, new, span)
    # One in the line itself is none of damage elsewhere, unless brackets above are not closed yet.
    own = any(_is_within(node, (site.line, end), stop) for node in (*errors, *refused))
    if (own and not _is_open(site, fill)) or len(refused) > len(
        _refused(language, old, (span[0], span[1] - len(fill)))
    ):
        return True
    if _are_new(errors, site, len(fill)) and len(errors) > _errors_without(language, before, after):
        return True
    # What half a line leaves over far below is read so with the fill, too.
    fewest = _refused_without(language, before, after)
    if fewest is not None and len(_refused(language, new, (0, len(before + fill + after)))) > fewest:
        return True
    return bool(errors) and not _fits_a_room(site, fill)


def _is_open(site: Site, fill: bytes) -> bool:
    """Return whether a bracket is open around the gap's line, and still with `fill` in it."""
    around = site.before[: site.line] + site.after[len(site.rest) :]
    texts = around, site.before + fill + site.after
    return all(pairs_in(site.language, text).opened for text in texts)


def _is_parsed(language: Language, before: bytes, after: bytes) -> bool:
    """Return whether a grammar reads the text around a gap; where none does, tokens must do."""
    if language.tree is None or len(before) + len(after) > PARSED:
        return False
    try:
        _tree(language, before, after)
    except TooDeep:
        return False
    return True


@lru_cache(maxsize=8)
def _errors_without(language: Language, before: bytes, after: bytes) -> int:
    """The fewest errors with nothing in the gap, or, in a part of the time, with a text that may complete its line."""
    fewest = len(errors_of(_tree(language, before, after).root_node))
    with suppress(Unreadable), attempt():
        for text in islice(_neutral(language, before, after), _TRIES if fewest else 0):
            fewest = min(fewest, len(errors_of(_filled(language, before, text, after).root_node)))
            if not fewest:
                break
    return fewest


@lru_cache(maxsize=2)
def _refused_without(language: Language, before: bytes, after: bytes) -> int | None:
    """Return the fewest nodes that the query refuses in the text with a neutral one that makes it parse.

    None if nothing is refused with nothing in the gap, or as much with all of them. In Ruby `def ` above `y = x` leaves
    an `end` over.
    """
    old = _tree(language, before, after)
    known = len(_refused(language, old, (0, len(before + after))))
    fewest = known
    with suppress(Unreadable), attempt():
        for text in islice(_neutral(language, before, after), _FEW if known else 0):
            tree = _filled(language, before, text, after)
            if not tree.root_node.has_error:
                fewest = min(fewest, len(_refused(language, tree, (0, len(before + text + after)))))
            if not fewest:
                break
    return fewest if fewest < known else None


def _is_joined(site: Site, fill: bytes, tree: Tree) -> bool:
    """Return whether the statement that begins on the gap's line takes in the line below, which is no deeper.

    `x = y,` above `z()` does, and `return if` above `y`; what only follows it in one block has no sign between.
    """
    below = next_line(site)
    first = site.line + len(leading(site.before + fill, site.line))
    last = len((site.before + fill).rstrip()) - 1
    in_brackets = site.state.brackets[-1:] in (b"(", b"[")
    if below is None or in_brackets or first > last or _opens_block(site, fill):
        return False
    at = len(site.before + fill) + below
    root = tree.root_node
    holder = root.descendant_for_byte_range(last, at + 1)
    if holder is None or holder.start_byte < first:
        return False
    parts = [node for node in holder.children if node.end_byte > last and node.start_byte <= at]
    return (
        bool(parts)
        and parts[-1].is_named
        and any(not node.is_named and node.type not in (";", "\n") for node in parts)
    )


def _fits_a_room(site: Site, fill: bytes) -> bool:
    """Return whether the gap's line with `fill` parses below one of the language's headers, if a neutral text does.

    It is asked in a text that the grammar does not know, where a tree shows little. A line of other brackets, or one
    that closes some, says nothing alone.
    """
    language = site.language
    if (
        not language.plain.rooms
        or site.state.brackets[-1:] in (b"(", b"[")
        or pairs_in(language, fill).lacking
    ):
        return True
    # What belongs to the item below it is none alone.
    if language.words.above.match(fill, line_start(fill, len(fill))):
        return True
    if not _errors_without(language, site.before, site.after):
        return True
    return _is_read_in_a_room(site, fill) or not any(_is_read_in_a_room(site, text) for text in _PLAINEST)


def _is_read_in_a_room(site: Site, fill: bytes) -> bool:
    """Return whether the gap's line with `fill` parses below one of the language's headers."""
    language, line = site.language, site.before[site.line :]
    for header in language.plain.rooms:
        text = header + line + fill + site.rest
        state = open_at(language, text, len(text))
        if _is_read(language, header + line, fill, site.rest + b"\n" + state.closing(state.opened)):
            return True
    return False


def _opens_block(site: Site, fill: bytes) -> bool:
    """Return whether a block may be below the last line of `fill`, as below `begin`."""
    text = site.before + fill
    return site.language.plain.opens.search(text[line_start(text, len(text)) :].rstrip()) is not None


@lru_cache(maxsize=2)
def _tree(language: Language, before: bytes, after: bytes) -> Tree:
    """The tree with nothing in the gap."""
    return language.parse(before + after)


def _filled(language: Language, before: bytes, text: bytes, after: bytes) -> Tree:
    """The tree with `text` in the gap."""
    tree, at = _tree(language, before, after), len(before)
    return language.reparse(tree, before + after, (at, at), text)


def _neutral(language: Language, before: bytes, after: bytes) -> Iterator[bytes]:
    """Texts that may complete the line of a gap: one of the language, what closes the line, what opens the next one."""
    state, here = open_at(language, before, len(before)), line_start(before, len(before))
    closers = state.closing(at for at in state.opened if at >= here)
    lacking = next(iter(pairs_in(language, before + after).lacking), b"")
    opener = lacking if lacking in PAIRS else b""
    names = dict.fromkeys(found[1] for found in language.plain.names.finditer(after, 0, REACH))
    texts = (
        state.string * quoted + text.replace(b"{0}", name) + closers * closed + opener * opened + end
        for name in list(names)[:_NAMES] or [b"_g_"]
        for end in language.words.ends
        for text in (b"", *language.plain.fillers)
        for opened in (1, 0)
        for closed in (1, 0)
        for quoted in (1, 0)
    )
    return iter(dict.fromkeys(texts))


def _fits_alone(site: Site, fill: bytes) -> bool | None:
    """Return whether the statement of the gap parses with `fill`; None where that is not read alone, or unknown."""
    own, language = statement_of(site), site.language
    if own is None:
        return _fits_routine(site, fill)
    after = b"" if is_ended(site, own, fill) else own.after
    if _is_read(language, own.before, fill, after):
        return True
    # What begins a statement may be all of it, whatever follows.
    if own.first and not site.rest.strip():
        return None
    if not _errors_without(language, own.before, after):
        return False
    return _fits_part(site, own, fill)


def _fits_part(site: Site, own: Statement, fill: bytes) -> bool | None:
    """Return whether the statement in brackets around the gap in `own` parses with `fill`; None if none is known."""
    language = site.language
    for part in () if pairs_in(language, fill).lacking else parts_of(site, own):
        if not _errors_without(language, part.before, part.after):
            return _is_read(language, part.before, fill, part.after)
    return None


def _fits_routine(site: Site, fill: bytes) -> bool | None:
    """Return whether `fill` makes statements in the body of a routine around the gap; None if that is not known.

    In a text that the grammar does not know, a statement that no neutral text makes one tells nothing of the fill.
    """
    routine = routine_of(site)
    if routine is None or routine.reads(fill):
        return None if routine is None else True
    if _is_read_in(routine):
        return False
    part = _fits_part(site, routine.statement(), fill)
    if part is not None:
        return part
    return True if _errors_without(site.language, site.before, site.after) else None


@lru_cache(maxsize=2)
def _is_read_in(routine: Routine) -> bool:
    """Return whether a neutral text in the gap of `routine` makes statements, as far as the time is enough."""
    with suppress(Unreadable), attempt():
        texts = islice(_neutral(routine.language, routine.before, routine.after), _TRIES)
        return any(routine.reads(text) for text in texts)
    return False


def _is_read(language: Language, before: bytes, fill: bytes, after: bytes) -> bool:
    """Return whether the text with `fill` has no error, and from the fill on nothing more that is refused."""
    tree, end = language.parse(before + fill + after), len(before + fill)
    if tree.root_node.has_error or repeated(language, tree.root_node, (len(before), end)):
        return False
    refused = _refused(language, tree, (len(before), len(before + fill + after) + 1))
    refused = [node for node in refused if node.end_byte > len(before)]
    if any(node.start_byte < end for node in refused):
        return False
    known = (
        _refused(language, _tree(language, before, after), (len(before), len(before + after) + 1))
        if refused
        else []
    )
    return len(refused) <= len(known)


def _refused(language: Language, tree: Tree, span: Span) -> list[Node]:
    """Return the nodes that meet `span` of `tree`, and that its query refuses."""
    return language.captures(tree.root_node, span).get("refuse", [])


def _are_new(errors: list[Node], site: Site, length: int) -> bool:
    """Return whether one of `errors`, with `length` bytes in the gap of `site`, is none with nothing in it."""
    at = len(site.before)
    old = errors_of(_tree(site.language, site.before, site.after).root_node)
    known = {
        (node.type, *(place + length * (place >= at) for place in (node.start_byte, node.end_byte)))
        for node in old
        if not node.start_byte <= at <= node.end_byte
    }
    return any((node.type, node.start_byte, node.end_byte) not in known for node in errors)


def _is_within(node: Node, line: Span, end: int) -> bool:
    """Return whether `node` is between the start of `line` and `end`; one that is missing, in the `line`."""
    start, stop = line
    return start <= node.start_byte < stop or stop <= node.start_byte < node.end_byte <= end
