"""Syntax errors that a fill adds: errors of the text with the fill, less those with a neutral placeholder.

Knows trees, repairs, what a cut at either end of a text may have taken away, and what Python's own parser says.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice

from tree_sitter import Node, Tree

from dg_lsp.text.budget import check, tried
from dg_lsp.text.checked import CHECKED
from dg_lsp.text.documents.document import BOM
from dg_lsp.text.languages.language import Language
from dg_lsp.text.messages import PARTS, STRINGS
from dg_lsp.text.reasons import Unreadable
from dg_lsp.text.syntax.brackets import closers, state_at
from dg_lsp.text.syntax.items import block, top_level_item
from dg_lsp.text.syntax.lexer import LogicalLine, indentation, line_end, line_start
from dg_lsp.text.syntax.lines import function_over
from dg_lsp.text.syntax.near import surroundings
from dg_lsp.text.syntax.repair import Closing, closings, cost_of, insertions, out_of_reach

_PLACE = re.compile(r"process version:\d+, .*\brow:(\d+), col:(\d+)")
# A line with text and its first character; those that go on with what is above; the end of a header or a statement.
_LINE = re.compile(rb"(?<=[\r\n])[ \t\f]*([^\s])")
_JOINED = b")]}>.?:|&,="
_BLANK = re.compile(rb"[ \t\f]*[\r\n]")
_ENDED = re.compile(rb"[{}:;][ \t]*(?:[\r\n]|//|/\*|#)")
# What a message says of lines, which count from the beginning of a part: `expected ':' (detected at line 3)`.
_LINE_NUMBER = re.compile(r" \((?:<checked>|detected at).*\)$| on line \d+")
# It is refused, but only once all of the text is parsed: so nothing is compiled, and no object is made of each node as
# by `ast.parse`, which takes a third more memory and twice the time, in which it keeps Python's lock.
_UNKNOWN = b"from __future__ import _\n"
# Texts that may have been before a text whose beginning was cut off: a block, a string, a bracket, several.
LEADS = {
    "indent": (b"", b"if 1:\n", b'"""\n', b"'''\n", b"(\n", b"[\n", b"{\n", b"if 1:\n ((\n", b"if 1:\n {(\n"),
    "brace": (b"", b"{\n", b"{{\n", b"/*\n", b"(\n", b"[\n"),
}
# A longer text that is broken elsewhere is searched only around its gap.
SEARCHED = 50_000
# How many bytes are parsed at most to find a filler.
EFFORT = 1_000_000
# Of a text longer than this only the top-level item around the gap is parsed.
WHOLE = 400_000


@dataclass(frozen=True, slots=True)
class Text:
    """before + fill + after as bytes, and its tree.

    tail: what of `after` was put there to end the line, and where: behind the brackets that close behind the fill.
    """

    before: bytes
    fill: bytes
    after: bytes
    tree: Tree
    tail: tuple[int, bytes] = (0, b"")

    @property
    def data(self) -> bytes:
        """The whole text."""
        return self.before + self.fill + self.after

    @property
    def end(self) -> int:
        """Return where the fill ends."""
        return len(self.before) + len(self.fill)

    @property
    def clean(self) -> bool:
        """Return whether the tree has no error."""
        return not self.tree.root_node.has_error

    def filled(self, language: Language, fill: bytes) -> "Text":
        """The same text with another fill, parsed incrementally."""
        tree = language.reparse(self.tree, self.data, (len(self.before), self.end), fill)
        return Text(self.before, fill, self.after, tree, self.tail)

    def ended(self, language: Language, fill: bytes, tail: tuple[int, bytes]) -> "Text":
        """The same text with another fill, and with a `tail` put into what follows it."""
        at, text = tail
        if not text:
            return self.filled(language, fill)
        between = self.after[:at]
        span = len(self.before), self.end + at
        tree = language.reparse(self.tree, self.data, span, fill + between + text)
        return Text(self.before, fill, between + text + self.after[at:], tree, tail)


@lru_cache(maxsize=2)
def neutral_text(language: Language, kind: str, before: bytes, after: bytes) -> Text:
    """before + filler + after, or the part of it around the gap that parses cleanly, or the best there is.

    1. The whole with the kind's placeholder, and a span always.  2. The top-level item around the gap, or its block,
    any filler.  3. The whole with any filler.  4. The whole with what cuts at its ends may have taken.

    What the parser cannot read in time is left out; then the surroundings of the gap in its item must do. The last two
    answers are kept, since the candidates of one request all ask for the same, and a few only, since each holds a tree,
    which takes some forty times as many bytes as its text.
    """
    # 1. Nearly every body ends here.
    data = before + language.placeholder(kind).encode() + after
    whole = tried(partial(_placed, language, kind, before, after)) if len(data) <= WHOLE else None
    if whole is not None and (whole.clean or kind == "span"):
        # No filler is neutral where the fill may begin and end in the middle of anything.
        return whole
    short = len(data) <= SEARCHED and whole is not None
    # What is open at the end of a cut text is closed behind it, and not by a filler.
    if short and (after_ended := _ended(language, kind, before, after)) is not None:
        ended = tried(partial(searched, language, kind, before, after_ended))
        if ended and ended.clean:
            return ended
    # 2. Damage elsewhere in the file must not drown the comparison.
    part = _part(language, kind, before, after) or whole
    if part is None:
        return _surroundings(language, kind, before, after)
    if whole is not None and part.clean:
        # The item alone would not show what a fill does to the next one.
        ended = tried(partial(whole.ended, language, part.fill, part.tail))
        if ended and ended.clean:
            return ended
    # 3. The item may have been found wrongly, for a string can look like a def.
    if short and not part.clean:
        part = tried(partial(searched, language, kind, before, after)) or part
    # 4. What an engine sees of a file is cut at both ends.
    return part if part.clean else _completed(language, kind, part)


def _part(language: Language, kind: str, before: bytes, after: bytes) -> Text | None:
    """The best filler in the top-level item around the gap, or in its block; None if neither can be read in time."""
    data, best = before + language.placeholder(kind).encode() + after, None
    for start, stop in (top_level_item(language, data, len(before)), block(language, data, len(before))):
        behind = len(data) - stop
        if start <= len(before) and behind <= len(after) and not (best and best.clean):
            item = before[start:], after[: len(after) - behind]
            best = tried(partial(searched, language, kind, *item)) or best
    return best


def _surroundings(language: Language, kind: str, before: bytes, after: bytes) -> Text:
    """The best filler in the surroundings of the gap in its top-level item."""
    start, stop = top_level_item(language, before + after, len(before))
    near = surroundings((before + after)[start:stop], len(before) - start)
    at = len(before) - start
    return searched(language, kind, near[:at], near[at:])


@lru_cache(maxsize=2)
def alone(language: Language, kind: str, header: bytes, line: bytes) -> Text:
    """A neutral filler in a body of nothing else: behind its `header` and what its `line` has before the gap."""
    return _completed(language, kind, _placed(language, kind, header.rstrip() + b"\n" + line, b"\n"))


def filled_in(language: Language, kind: str, neutral: Text, fill: bytes) -> Text:
    """`neutral` with `fill` in its gap; a header that the fill leaves without an end or a body gets them behind it.

    The filler of `def f() -> |` is `_g_: pass`; so `int` and `int:` begin a header, which is no error.
    """
    plain = neutral.filled(language, fill)
    end = language.words.headers[-1]
    # The rest of a line has its header's end from `fit`.
    header = kind in PARTS and kind != "rest_of_line" and neutral.clean and neutral.fill.endswith(end)
    if not header or (plain.clean and not _lacks_body(language, plain)):
        return plain
    # A text that has begun to end it needs the rest; a brace that the fill opens is its own to close.
    begun = fill.rstrip()[-1:] == end.strip()[:1] and language.style == "indent"
    whole = plain.filled(language, fill + (end.strip()[1:] if begun else end))
    return whole if whole.clean else plain


def _lacks_body(language: Language, text: Text) -> bool:
    """Return whether Python's own parser refuses what the grammar takes: a header that nothing follows."""
    return language.name == "python" and complaint(text.data) is not None


@dataclass(frozen=True, slots=True)
class Fault:
    """A syntax error that a fill adds: a half-open byte span inside the fill, and a sentence for the user."""

    start: int
    end: int
    message: str


def fault_at(fill: bytes, start: int, end: int, what: str) -> Fault:
    """Return the fault that fill[start:end] is `what`, with the number of its line in the message."""
    line = len(re.findall(rb"\r\n|\n|\r", fill[:start])) + 1
    return Fault(start, end, f"{what} at line {line} of the fill")


def unexpected(text: bytes) -> str:
    """Return the words for `text` where it is not valid."""
    begun = _begun(text)
    return f"unexpected `{begun}`" if begun else "an unexpected end"


def added(language: Language, kind: str, neutral: Text, filled: Text) -> tuple[Fault, ...]:
    """The errors of `filled`, which has a fill in a gap of `kind`, that are not those of the `neutral` text."""
    blamed = kind in ("rest_of_line", "span") and is_sound_but_for_its_gap(language, kind, neutral)
    return _new_errors(neutral, filled, [] if blamed else errors_of(neutral.tree.root_node))


def errors_of(root: Node) -> list[Node]:
    """ERROR and MISSING nodes; where a missing token is no node, the innermost node without it."""
    found, stack = [], [root]
    while stack:
        check()
        node = stack.pop()
        below = [child for child in node.children if child.has_error or child.is_error or child.is_missing]
        if node.is_error or node.is_missing or (node.has_error and not below):
            found.append(node)
        stack.extend(below)
    return found


def given_up(language: Language, text: Text, behind: bytes) -> Iterator[int]:
    """Yield the places in `text.before` + `behind` where every reading had failed, counted from the start of `behind`.

    The text up to such a place, from the one before it on, is the beginning of something that parses. A `detect_error`
    in the log alone is not enough: in an ambiguous grammar one reading fails and another continues.
    """
    log: list[str] = []
    span = (len(text.before), len(text.data))
    language.reparse(text.tree, text.data, span, behind, log.append)
    # Rows are counted as tree-sitter does in what Language gives it to read.
    rows = re.finditer(rb"\r\n|\n|\r", text.before + behind)
    starts = [0, *(found.end() for found in rows)]
    at, failed = 0, [0]
    for words in log:
        if place := _PLACE.match(words):
            at = starts[int(place[1])] + int(place[2])
        elif words.startswith("detect_error"):
            failed.append(at)
        elif words.startswith("resume version"):
            yield max(failed) - len(text.before)
            failed = [0]


def container_of(language: Language, text: Text) -> tuple[int, int] | None:
    """Return the places of the innermost brackets around the fill, by the tree of `text`; None if it has none."""
    state = state_at(language, text.before, len(text.before))
    if not state.opened:
        return None
    opened = text.tree.root_node.descendant_for_byte_range(state.opened[-1], state.opened[-1] + 1)
    holder = opened.parent if opened and opened.child_count == 0 else None
    if opened is None or holder is None or holder.is_error:
        return None
    last = _closer(opened, holder)
    return (opened.start_byte, last.start_byte) if last else None


def function_of_span(language: Language, before: bytes) -> LogicalLine | None:
    """The header of the function that a span behind `before` may not leave; None where there is none.

    That is the outermost one: a span may end a function in it, and the text behind the span does not show that.
    """
    if language.style != "indent":
        return None
    start, _ = top_level_item(language, before, len(before))
    return function_over(language, before, start, len(before))


def complaint(text: bytes) -> tuple[str, int, int] | None:
    """Return None if Python's parser takes `text`; else its message, and the line and the byte column, both from 0."""
    # An indented function needs something above it that it may be indented under.
    lead = _UNKNOWN + (b"if 1:\n" if text[:1] in (b" ", b"\t", b"\f") else b"")
    try:
        compile((lead + text.removeprefix(BOM)).decode("utf-8", "replace"), CHECKED, "exec", 0, True)
    except SyntaxError as error:
        if error.lineno == 1 and "future feature" in error.msg:
            return None
        message = _LINE_NUMBER.sub("", error.msg or "a syntax error")
        column = len((error.text or "")[: max((error.offset or 1) - 1, 0)].encode("utf-8", "replace"))
        return message, max((error.lineno or 1) - 1 - lead.count(b"\n"), 0), column
    except (ValueError, MemoryError, RecursionError):
        return "text that cannot be parsed", 0, 0
    return None


@lru_cache(maxsize=1)
def is_sound_but_for_its_gap(language: Language, kind: str, neutral: Text) -> bool:
    """Return whether the only error is the unfinished line of the gap, which can still be continued.

    Of a span the same is asked of its top-level item.

    1. What only the right words complete, such as an import, has no neutral filler, and neither have the lines that
    belong to it.  2. The word that the cursor touches may be half of one; before it the parser must not have given up.

    The last answer is kept, since all candidates of one request are compared with the same text.
    """
    # 1.
    if neutral.clean:
        return False
    spans = (
        iter((top_level_item(language, neutral.data, len(neutral.before)),))
        if kind == "span"
        else _spans(neutral)
    )
    start = next((span[0] for span in spans if _parses_without(language, neutral, span)), None)
    if start is None:
        return False
    # 2.
    typed = neutral.before[start:]
    last = re.search(rb"\s*(?:\w+|[^\w\s)\]},;])?\s*\Z", typed)
    assert last is not None, "it matches nothing, too"
    return not any(-len(typed) <= at < last.start() - len(typed) for at in given_up(language, neutral, b""))


def _parses_without(language: Language, neutral: Text, span: tuple[int, int]) -> bool:
    return not language.reparse(neutral.tree, neutral.data, span, b"").root_node.has_error


def _spans(neutral: Text) -> Iterator[tuple[int, int]]:
    """Yield the spans of the gap's line, of it with the indented lines below, and of both with the line above."""
    data, line = neutral.data, line_start(neutral.before, len(neutral.before))
    yield line, neutral.end
    yield line, _below(data, line, neutral.end)
    start, columns = line, indentation(data, line)
    if not neutral.before[line:].strip() and (next_line := _LINE.search(data, neutral.end)):
        # A line of white space may be less deep than the text that replaces it.
        columns = max(columns, indentation(data, next_line.start()))
    while start and (_BLANK.match(data, start) or indentation(data, start) >= columns):
        start = line_start(data, start - 1)
    if indentation(data, start) < columns and not _ENDED.search(data, start, line):
        yield start, _below(data, start, neutral.end)


def _below(data: bytes, start: int, end: int) -> int:
    """Return the end of the lines from `end` on that belong to the one at `start`: deeper ones, or closing ones."""
    columns = indentation(data, start)
    for line in _LINE.finditer(data, end):
        deeper = indentation(data, line.start()) - columns
        if deeper < 0 or (deeper == 0 and line[1] not in _JOINED):
            return line.start()
    return len(data)


def _new_errors(neutral: Text, filled: Text, old: Sequence[Node]) -> tuple[Fault, ...]:
    """ERROR and MISSING nodes of `filled` that are not those `old` ones of `neutral`.

    Where there are any of those, only what touches or follows the fill counts.
    """
    all_new = errors_of(filled.tree.root_node)
    # In a text that stays broken the ends of errors move with every byte; then only their number tells.
    if old and len(all_new) <= len(old):
        return ()
    known = {_key(neutral, node) for node in old}
    start = len(filled.before)
    new = [n for n in all_new if not old or (n.end_byte >= start and _key(filled, n) not in known)]
    new = [] if all(_awaits_operand(node, filled) for node in new) else new
    found = []
    for node in sorted(new, key=lambda n: (n.start_byte, n.end_byte)):
        first = min(max(node.start_byte - start, 0), len(filled.fill))
        last = min(max(node.end_byte - start, first), len(filled.fill))
        found.append(fault_at(filled.fill, first, last, _name(node, filled)))
    return tuple(found)


def _awaits_operand(node: Node, filled: Text) -> bool:
    """Return whether `node` is the missing operand of a cast that the fill completes, as in `x = (byte)`."""
    parent, behind = node.parent, filled.data[filled.end : node.start_byte]
    is_cast = node.is_missing and parent is not None and parent.type == "cast_expression"
    return is_cast and node.start_byte > filled.end and not behind.strip(b") \t\r\n")


def _key(text: Text, node: Node) -> tuple[str, bool, int, int]:
    """Return the key by which errors of two texts are the same: type and ends, behind the fill from the text's end."""
    start, end = (
        at if at < len(text.before) else at - len(text.data) - 1 for at in (node.start_byte, node.end_byte)
    )
    return node.type, node.is_missing, start, end


def _name(node: Node, filled: Text) -> str:
    if node.is_missing:
        return f"a missing `{node.type}`"
    if node.start_byte >= filled.end:
        return "an end that does not match what follows"
    return (
        unexpected(node.text or b"")
        if node.is_error
        else f"something missing in `{_begun(node.text or b'')}`"
    )


def _begun(text: bytes) -> str:
    line = text.split(b"\n")[0].strip().decode("utf-8", "replace")
    return f"{line[:20]}…" if len(line) > 20 else line


def _ended(language: Language, kind: str, before: bytes, after: bytes) -> bytes | None:
    """`after` without the statement that its end cuts, and with the brackets closed that are open there."""
    text = before + after
    state = state_at(language, text, len(text))
    if not (state.brackets or state.string or state.comment):
        return None
    stop = state.begins if state.comment else state.line
    whole = stop <= line_end(text, len(before))
    stop = len(text) if whole else stop
    # What the gap's own line opens the fill may close.
    here = range(line_start(before, len(before)), len(before))
    shut = state.closing(at for at in state.opened if at < stop and at not in here)
    string = state.string if whole and (kind in STRINGS or state.begins not in here) else b""
    return text[len(before) : stop] + string + shut


def _placed(language: Language, kind: str, before: bytes, after: bytes) -> Text:
    text = filler(language, kind, before)
    return Text(before, text, after, language.parse(before + text + after))


def filler(language: Language, kind: str, before: bytes) -> bytes:
    """The placeholder of a gap of `kind` behind `before`; in a string it completes a backslash that is begun."""
    slashes = len(before) - len(before.rstrip(b"\\")) if kind in STRINGS else 0
    return b"\\" * (slashes % 2) + language.placeholder(kind).encode()


def searched(language: Language, kind: str, before: bytes, after: bytes) -> Text:
    """The text with the filler that parses best; a body has one filler, a line may want brackets closed."""
    best = _placed(language, kind, before, after)
    if kind not in PARTS or best.clean:
        return best
    data = before + after
    state = state_at(language, data, len(before))
    first, lowest = best, cost_of(best.tree)
    # Parsing costs by the byte, and no filler repairs an error above the line.
    tries = 1 if out_of_reach(best.tree, state.line) else max(EFFORT // (len(data) + 1), 1)
    ended, later = closings(language, data, len(before), state)
    plain = (Closing(text, len(before), b"") for text in insertions(language, data, len(before), state))
    ways = chain((Closing(b"", len(before), b""),), ended, plain, later)
    for way in islice(ways, tries):
        try:
            candidate = first.ended(language, way.text, (way.at - len(before), way.tail))
        except Unreadable:
            continue
        cost = cost_of(candidate.tree)
        if cost < lowest:
            best, lowest = candidate, cost
        if cost == 0:
            break
    return best


def _completed(language: Language, kind: str, broken: Text) -> Text:
    """`broken` with an opening before it and what closes it behind it, where that parses cleanly."""
    if len(broken.data) > SEARCHED:
        return broken
    for lead in LEADS[language.style]:
        before = state_at(language, lead + broken.before, len(lead + broken.before), 0)
        if (before.string or before.comment) and kind not in (*STRINGS, "comment"):
            # Within a string everything is clean.
            continue
        data = lead + broken.data
        state = state_at(language, data, len(data), 0)
        trail = state.string + closers(state.brackets)
        text = searched(language, kind, lead + broken.before, broken.after + trail)
        if text.clean:
            return text
    return broken


def _closer(opened: Node, holder: Node) -> Node | None:
    """Return the bracket among the children of `holder` that closes `opened`."""
    behind = [c for c in holder.children if c.start_byte > opened.start_byte and not c.is_missing]
    return next((c for c in reversed(behind) if c.type in (")", "]", "}")), None)
