"""Harm: the last look at an edit, which compares the whole file before and after it (laws 5 and 10)."""

import re
from dataclasses import replace
from functools import lru_cache, partial

import tree_sitter
from tree_sitter import Node, Tree

from dg_lsp.budget import bounded, tried
from dg_lsp.gaps import Edit, Gap, reach
from dg_lsp.guard.baseline import (
    WHOLE,
    Text,
    complaint,
    errors_of,
    filled_in,
    filler,
    is_sound,
    name_clash,
    neutral_text,
    parsed,
)
from dg_lsp.guard.check import faults_of_edit, is_blind, undisturbed
from dg_lsp.guard.room import closes_more, is_complete
from dg_lsp.guard.site import Site, site_of_edit, to_bytes
from dg_lsp.messages import STRINGS
from dg_lsp.reasons import OutOfTime, Unreadable
from dg_lsp.source.bodies import MARKER
from dg_lsp.source.document import Document
from dg_lsp.source.items import member_around, top_level_item
from dg_lsp.source.language import Language, check_shape, load_language, query_cursor
from dg_lsp.source.lexer import Span, line_end

# How many bytes behind a gap strings and brackets are compared; a quote too many shows at the next one.
REACH = 20_000
# Bytes of a top-level item that is checked, which takes about ten parses of it.
LARGEST = 1_000_000
_OTHERWISE = "the fill would change how the text after it is read: a string or bracket would end elsewhere"
_BARE = "jsx_text"
# What binds names in a way that Python's parser does not check.
_BINDS = re.compile(rb"\b(?:nonlocal|global|def|lambda|class)\b|\bimport[ \t]*\*")
_BRACKETS = '["(" ")" "[" "]" "{" "}"] @bracket'


@bounded
def harm_of(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why `edit`, made for `gap` of `document`, must not be applied, as a sentence; empty where it does no harm.

    1. It replaces the gap and nothing else.  2. Typed text stays, unless the gap was asked for by name; so do
    comments in a stub.  3. It adds no syntax error: what parsed before parses afterwards.  4. The text behind the
    gap is read as before: the same strings, comments and brackets, in the same bodies.
    """
    if (edit.start, edit.end) != (gap.start, gap.end):
        return "the fill would change text outside of its gap"
    language = load_language(document.language, document.macros)
    try:
        if language.is_plain:
            return _refusal(document, gap, edit)
        # Steps 2 to 4, in the part of the document that the parser can read.
        document, gap, edit = _readable(language, document, gap, edit)
        if lost := _lost(language, document, gap):
            return f"the fill would delete `{lost}`"
        return _refusal(document, gap, edit) or _harm_in(language, document, gap, edit)
    except OutOfTime as error:
        # What cannot be checked is not offered.
        return str(error)
    except RecursionError:
        return "the code around the gap is nested too deeply for a fill to be checked"


def _refusal(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why nothing is left of a fill, it cannot be checked, or has faults, as a sentence; empty otherwise."""
    # A fill of which its place leaves nothing would only delete what is in the gap.
    if not edit.text.removeprefix(gap.insert_before).removesuffix(gap.insert_after).strip():
        return "no part of the fill fits into the gap"
    if reason := unchecked(document, gap):
        return reason
    if faults := faults_of_edit(document, gap, edit):
        return f"the fill would add a syntax error: {faults[0].message}"
    return ""


def unchecked(document: Document, gap: Gap) -> str:
    """Return why no fill of `gap` can be checked, such as a line that nobody writes; empty where one can."""
    data = document.data
    if reach(data, gap.start) != (0, len(data)):
        return "the line is too long, or too many brackets are open, for a fill to be checked here"
    language = load_language(document.language, document.macros)
    if language.is_plain:
        return ""
    start, stop = _scope(language, data, gap.start)
    if gap.end > stop or stop - start > LARGEST:
        return "the gap extends beyond the code that can be checked; fill a smaller one"
    return ""


def _readable(language: Language, document: Document, gap: Gap, edit: Edit) -> tuple[Document, Gap, Edit]:
    """The largest part of `document` around `gap` that can be read, and the gap and edit in it; or Unreadable."""
    at, data = _readable_part(language, document.data, gap.start)
    if data is document.data:
        return document, gap, edit
    part = replace(document, data=data, history=None)
    return part, gap.moved(-at), replace(edit, start=edit.start - at, end=edit.end - at)


@lru_cache(maxsize=2)
def _readable_part(language: Language, data: bytes, at: int) -> tuple[int, bytes]:
    """Return the start of the largest part of `data` around `at` that the parser can read in time, and the part."""
    if tried(partial(_tree, language, data)):
        return 0, data
    start, stop = top_level_item(language, data, at)
    item = data[start:stop]
    for part in (item, member_around(language, item, at - start)):
        if tried(partial(_tree, language, part)):
            return start, part
    raise Unreadable


def _lost(language: Language, document: Document, gap: Gap) -> str:
    """Return the first words in the gap that the edit would delete and must keep, such as a stub's comments."""
    old = document.data[gap.start : gap.end]
    if not old.strip():
        return ""
    found = language.captures(_tree(language, document.data).root_node, (gap.start, gap.end))
    stubs = [
        _cut(n, gap) for n in found.get("stub", ()) if gap.start <= n.start_byte and n.end_byte <= gap.end
    ]
    comments = [_cut(n, gap) for n in found.get("comment", ()) if gap.start <= n.start_byte]
    markers = [span for span in comments if MARKER.fullmatch(old, *span)]
    left = _blanked(old, [*stubs, *markers])
    is_stub = not _blanked(left, comments).strip(b" \t\f\r\n;")
    if gap.asked and not is_stub:
        return ""
    kept, at = (gap.insert_before + gap.insert_after).encode(), 0
    for word in re.finditer(rb"[^\s;]+", left):
        at = kept.find(word[0], at)
        if at < 0:
            return left[word.start() : line_end(left, word.start())].decode("utf-8", "replace").rstrip()[:40]
        at += len(word[0])
    return ""


def _harm_in(language: Language, document: Document, gap: Gap, edit: Edit) -> str:
    """Steps 3 and 4 of `harm_of`, in the scope of the gap. "Sound" means without an error.

    | the file    | with a neutral text | with the fill | the fill is refused where                             |
    | ----------- | ------------------- | ------------- | ----------------------------------------------------- |
    | sound       |                     | not sound     | always                                                |
    | sound       |                     | sound         | text behind it is read otherwise than in the file     |
    | not sound   | sound               |               | text behind it is read otherwise than with the filler |
    | not sound   | not sound, blind    |               | it closes brackets for others, or is wrong by itself  |
    | not sound   | not sound           |               | there are more errors, or other pairs behind it       |
    """
    start, stop = _scope(language, document.data, edit.start)
    data = document.data[start:stop]
    first, last = edit.start - start, edit.end - start
    old = Text(Site(language, gap.kind, data[:first], data[last:]), data[first:last], _tree(language, data))
    new = old.filled(to_bytes(edit.text))
    if language.name == "python" and complaint(old.data) is None and (said := complaint(new.data)):
        return f"the fill would add a syntax error: {said[0]}"
    binds = language.name == "python" and (gap.kind == "parameters" or _BINDS.search(new.fill))
    if binds and (clash := name_clash(new.data)) and not name_clash(old.data):
        return f"the fill would add a syntax error: {clash}"
    if is_sound(old):
        if not new.clean:
            return "the fill would add a syntax error: the file would no longer parse"
        return _changed(gap, old, new)
    return _harm_in_broken(document, gap, edit, old, new)


def _harm_in_broken(document: Document, gap: Gap, edit: Edit, old: Text, new: Text) -> str:
    """The same for a file that is not sound, which `edit` makes `new` of `old`."""
    site, fill = site_of_edit(document, gap, edit)
    neutral = neutral_text(site)
    filled = filled_in(neutral, fill)
    sound = is_sound(new)
    if is_sound(neutral) and (filled.clean or not sound):
        changed = _changed(gap, neutral, filled)
        # What was read in a part of the file, or with guessed ends, may be read otherwise in the file itself.
        if _is_whole(gap, old, neutral) or (changed and not sound):
            return changed
    if not neutral.clean and is_blind(site, neutral):
        # The text inserted around it may be a guess at what is missing in the file.
        if closes_more(old.site, edit.text.encode()):
            return _OTHERWISE
        # A fill that is right by itself and leaves nothing open changes nothing that could be read.
        if undisturbed(site, neutral, fill).clean:
            return ""
    return _worse(gap, old, new.fill)


def _is_whole(gap: Gap, old: Text, neutral: Text) -> bool:
    """Return whether `neutral` is `old` with another fill and line end: no part of it, nor longer at its ends."""
    inserted = len((gap.insert_before + gap.insert_after).encode()) + len(neutral.tail[1])
    return len(neutral.data) - len(neutral.fill) == len(old.data) - len(old.fill) + inserted


def _worse(gap: Gap, old: Text, fill: bytes) -> str:
    """Return the harm that `fill` does to a broken file, compared with the file as it is, `old`; empty if none."""
    site, lead = old.site, gap.insert_before.encode()
    text = lead + filler(site.between(site.before + lead, site.after))
    text += gap.insert_after.encode() or (site.closers + site.language.words.ends[0] if site.closers else b"")
    # A parser that continues an older tree recovers otherwise than one that begins again.
    new, plain = parsed(site, fill), parsed(site, text)
    complete = is_complete(site, fill)
    # A line that was asked for may open the string that the text behind it closes.
    if is_sound(new) and (complete or _is_asked_line(gap) or not _may_quote(site.language, fill)):
        return ""
    # One quote too many may turn all errors into a single one; a span may begin what its last line ends.
    guarded = gap.kind != "span" and not complete
    if guarded and _marks(new) not in (_marks(old), _marks(plain)):
        return _OTHERWISE
    most = 0 if plain.clean else _count_errors(old)
    # The text of a string adds none, but what ends the string may.
    most = max(most, _count_errors(plain)) if gap.kind in STRINGS or site.state.string else most
    return (
        "the fill would add a syntax error to a file that already has some"
        if _count_errors(new) > most
        else ""
    )


def _count_errors(text: Text) -> int:
    """Return how many different errors the tree of `text` has; a parser may miss the same twice in one place."""
    return len({(n.type, n.start_byte, n.end_byte) for n in errors_of(text.tree.root_node)})


def _is_asked_line(gap: Gap) -> bool:
    """Return whether a line or a span was asked for by name, which may begin what ends behind it."""
    return gap.asked and gap.kind in ("rest_of_line", "span")


def _may_quote(language: Language, fill: bytes) -> bool:
    """Return whether `fill` holds what can begin or end a string or a comment."""
    marks = (language.comment, *(mark for pair in language.block_comments for mark in pair))
    quotes = (mark for string in language.strings for mark in (string.open, string.close))
    return any(mark in fill for mark in (*quotes, *marks))


def _changed(gap: Gap, old: Text, new: Text) -> str:
    """Return the text behind the gap that is read differently in `new` than in `old`; empty if none is.

    A line or a span that was asked for may end a block, such as `else:`, and anything defined within the outermost
    function, but not that function. A span may also begin the text that the rest of its last line ends.
    """
    line = line_end(old.data, old.end) - old.end if gap.kind == "span" else -1
    if [m for m in _marks(old) if m[1] >= line] != [m for m in _marks(new) if m[1] >= line]:
        return _OTHERWISE
    held = _holders(old, old) - _begun(gap, old)
    if _is_asked_line(gap):
        outermost = min((at for name, at, _ in held if name == "function.outer"), default=old.start)
        held = {holder for holder in held if holder[1] <= outermost and not holder[0].startswith("block")}
    if not held <= _holders(new, old):
        return "the fill would end the block that it is in, and the code after it would belong to another one"
    return ""


def _begun(gap: Gap, old: Text) -> set[tuple[str, int, int]]:
    """The holders that begin on the gap's line and have their bodies below it, if the gap is at the line's end.

    A parser joins half a line with the next one: `priv` above `Kind() {` is a type for it.
    """
    site = old.site
    if gap.kind not in ("rest_of_line", "expression", "statement") or site.rest.strip():
        return set()
    if site.state.opened and site.state.opened[-1] >= site.line:
        return set()
    held = {holder for holder in _holders(old, old) if holder[1] >= site.line}
    return set() if any(name.endswith(".body") for name, *_ in held) else held


def _marks(text: Text) -> list[tuple[str, int, int]]:
    """The strings, comments and brackets behind the gap, counted from where the text behind it begins.

    One that begins before and takes in text behind the gap begins at -1: in C, `// a\\` takes in the next line.
    """
    root, end, language = text.tree.root_node, text.end, text.language
    check_shape(root)
    cursor = query_cursor(_brackets(language), (end, end + REACH))
    found = [(n.type, n) for n in cursor.captures(root).get("bracket", ())]
    captured = language.captures(root, (end, end + REACH))
    found += [(name, n) for name in ("string", "comment") for n in captured.get(name, ())]
    behind = [(name, n) for name, n in found if n.end_byte > end and text.data[end : n.end_byte].strip()]
    # The text between tags has no quote where it begins, so any element may be written in it.
    places = ((name, -1 if n.type == _BARE else max(n.start_byte - end, -1), n) for name, n in behind)
    marks = {(name, at, n.end_byte - end) for name, at, n in places}
    return sorted(mark for mark in marks if mark[1] < REACH)


def _holders(text: Text, old: Text) -> set[tuple[str, int, int]]:
    """The functions, classes, blocks and bodies around the gap: type, beginning, end counted from the text's end."""
    # White space behind the gap may belong to what ends there or not.
    first, rest, size = len(text.site.before.rstrip()), len(old.site.after.lstrip()), len(text.data)
    found = text.language.captures(text.tree.root_node, (max(text.start - 1, 0), text.end + 1))
    return {
        (name, node.start_byte, size - node.end_byte)
        for name, nodes in found.items()
        for node in nodes
        if name.endswith((".outer", ".body")) and node.start_byte < first and size - node.end_byte < rest
    }


def _scope(language: Language, data: bytes, at: int) -> Span:
    """The whole file, or of a large one the top-level item at the offset `at`, as far as one is looked for."""
    return (0, len(data)) if len(data) <= WHOLE else top_level_item(language, data, at)


def _cut(node: Node, gap: Gap) -> Span:
    """The span of `node` within the gap, counted from where the gap begins."""
    return node.start_byte - gap.start, min(node.end_byte, gap.end) - gap.start


def _blanked(text: bytes, spans: list[Span]) -> bytes:
    """`text` with blanks for the bytes of `spans`."""
    for start, end in spans:
        text = text[:start] + b" " * (end - start) + text[end:]
    return text


@lru_cache(maxsize=1)
def _tree(language: Language, data: bytes) -> Tree:
    """The tree of a text; the last one is kept, since each candidate of one request asks for it."""
    return language.parse(data)


@lru_cache
def _brackets(language: Language) -> tree_sitter.Query:
    return tree_sitter.Query(language.grammar, _BRACKETS)
