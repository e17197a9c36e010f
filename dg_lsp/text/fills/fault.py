"""Fault: a syntax error that a fill adds; found by comparing two trees, with the fill and with a neutral filler.

Where tree-sitter gave up every reading of a text is told by its own log.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from dg_lsp.text.documents.lines import indentation, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.baseline import Text
from dg_lsp.text.syntax.items import window

_PLACE = re.compile(r"process version:\d+, .*\brow:(\d+), col:(\d+)")
# A line with text and its first character; those that go on with what is above; the end of a header or a statement.
_LINE = re.compile(rb"(?<=[\r\n])[ \t\f]*([^\s])")
_JOINED = b")]}>.?:|&,="
_BLANK = re.compile(rb"[ \t\f]*[\r\n]")
_ENDED = re.compile(rb"[{}:;][ \t]*(?:[\r\n]|//|/\*|#)")


def given_up(language: Language, text: Text, behind: bytes) -> Iterator[int]:
    """Yield the places in `text.before` + `behind` where every reading had failed, counted from the start of `behind`.

    The text up to such a place, from the one before it on, is the beginning of something that parses. A `detect_error`
    in the log alone is not enough: in an ambiguous grammar one reading fails and another goes on.
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


def added(language: Language, kind: str, neutral: Text, filled: Text) -> tuple[Fault, ...]:
    """The errors of `filled`, which has a fill in a gap of `kind`, that are not those of the `neutral` text."""
    blamed = kind in ("rest_of_line", "span") and _is_sound_but_for_its_gap(language, kind, neutral)
    return _new_errors(neutral, filled, [] if blamed else errors_of(neutral.tree.root_node))


@lru_cache(maxsize=4)
def _is_sound_but_for_its_gap(language: Language, kind: str, neutral: Text) -> bool:
    """Whether nothing is broken but the gap's line, which has only begun and can still be gone on with.

    Of a span the same is asked of its top-level item.

    1. What only the right words complete, such as an import, has no neutral filler, and neither have the lines that
    belong to it.  2. The word that the cursor touches may be half of one; before it the parser must not have given up.

    The last few answers are kept, since all candidates of one request are compared with the same text.
    """
    # 1.
    if neutral.clean:
        return False
    spans = (
        iter((window(language, neutral.data, len(neutral.before)),)) if kind == "span" else _spans(neutral)
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
        # A line of white space may be less deep than what is to stand there.
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
    found = []
    for node in sorted(new, key=lambda n: (n.start_byte, n.end_byte)):
        first = min(max(node.start_byte - start, 0), len(filled.fill))
        last = min(max(node.end_byte - start, first), len(filled.fill))
        found.append(fault_at(filled.fill, first, last, _name(node, filled)))
    return tuple(found)


def _key(text: Text, node: Node) -> tuple[str, bool, int, int]:
    """What makes an error of two texts the same: its ends, behind the fill counted from the text's end."""
    start, end = (
        at if at < len(text.before) else at - len(text.data) - 1 for at in (node.start_byte, node.end_byte)
    )
    return node.type, node.is_missing, start, end


def errors_of(root: Node) -> list[Node]:
    """ERROR and MISSING nodes; where what is missing cannot be seen, the innermost node that lacks it."""
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        below = [child for child in node.children if child.has_error or child.is_error or child.is_missing]
        if node.is_error or node.is_missing or (node.has_error and not below):
            found.append(node)
        stack.extend(below)
    return found


def _name(node: Node, filled: Text) -> str:
    if node.is_missing:
        return f"a missing `{node.type}`"
    if node.start_byte >= filled.end:
        return "an end that does not fit what follows"
    return (
        unexpected(node.text or b"")
        if node.is_error
        else f"something missing in `{_begun(node.text or b'')}`"
    )


def unexpected(text: bytes) -> str:
    """Return the words for `text` where it cannot stand."""
    begun = _begun(text)
    return f"unexpected `{begun}`" if begun else "an unexpected end"


def _begun(text: bytes) -> str:
    line = text.split(b"\n")[0].strip().decode("utf-8", "replace")
    return f"{line[:20]}…" if len(line) > 20 else line
