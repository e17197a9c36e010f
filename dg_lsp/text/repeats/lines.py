"""Similar lines: the changes of one edit by tokens, and lines like two that were changed in the same way."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

from dg_lsp.text.budget import check
from dg_lsp.text.documents.bursts import Burst, Bursts
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import Change
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.repeats.classes import Place, Source
from dg_lsp.text.syntax.lexer import line_end, line_start

# Longer texts are compared as a whole.
LONGEST = 200
# A name as most languages write it.
NAME = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")
_WORD_BYTE = re.compile(rb"[\w$\x80-\xff]")
_TOKENS = re.compile(rb"[\w$\x80-\xff]+|\"[^\"\\]*\"|'[^'\\]*'|[^\w\s]")
_PIECES = re.compile(rb"[\w$\x80-\xff]+|\s+|[^\w\s]")


def similar_lines(source: Source, bursts: Bursts) -> Iterator[Place]:
    """Yield the places in lines like two that were changed in the same way, one after the other.

    1. Both changes put in the same text for the same text, at the same tokens of lines of the same form.  2. Another
    line of that form is a statement of the same block if both are of one, or is the same line.
    """
    # 1.
    data, recent = source.document.data, bursts.recent[-2:]
    if len(recent) < 2:
        return
    one, two = (_Example.of(burst, data) for burst in recent)
    if one is None or two is None or one.edits != two.edits or one.start == two.start:
        return
    form = _form(one.tokens, two.tokens)
    if form is None:
        return
    # 2.
    parents = {_statement_parent(source, e.start) for e in (one, two)}
    at, fixed = 0, [text for text, number in form if number < 0]
    for line in data.splitlines(keepends=True):
        begin, at = at, at + len(line)
        check()
        if not all(token in line for token in fixed):
            continue
        tokens = tuple(_TOKENS.finditer(line))
        texts = tuple(t[0] for t in tokens)
        if begin in (one.start, two.start) or not _fits(form, texts):
            continue
        same = texts in (one.tokens, two.tokens)
        if (
            not same
            and len(parents) == 1
            and _statement_parent(source, begin + tokens[0].start()) not in parents
        ):
            continue
        yield from _repeated(source.document, begin, tokens, two.edits)


def spans_of(burst: Burst, data: bytes) -> tuple[Change, ...]:
    """Return the changes of `burst` by whole tokens, however much of a line the client has replaced.

    `x` that became `str(x)` is two changes: `str(` was put in before it, and `)` behind it.
    """
    found = list[Change]()
    for span in whole_words(burst.spans(data), burst.before, data):
        old, new = burst.before[span.start : span.end], data[span.now : span.stop]
        if not old or not new or max(len(old), len(new)) > LONGEST or b"\n" in old + new:
            found.append(span)
            continue
        texts = [_PIECES.findall(text) for text in (old, new)]
        starts = [[0, *accumulate(map(len, pieces))] for pieces in texts]
        for tag, i, j, k, m in SequenceMatcher(a=texts[0], b=texts[1], autojunk=False).get_opcodes():
            if tag != "equal":
                first, last = span.start + starts[0][i], span.start + starts[0][j]
                found.append(Change(first, last, span.now + starts[1][k], span.now + starts[1][m]))
    blank = [c for c in found if not (burst.before[c.start : c.end] + data[c.now : c.stop]).strip()]
    return tuple(c for c in found if c not in blank) or tuple(found)


def whole_words(spans: tuple[Change, ...], old: bytes, new: bytes) -> tuple[Change, ...]:
    """Return `spans` extended to the whole words that they change a part of: `total` to `tot` for `al` to nothing."""
    found = list[Change]()
    for span in spans:
        word = _word(span, old, new)
        if found and found[-1].stop >= word.now:
            one = found.pop()
            first, now = min(one.start, word.start), min(one.now, word.now)
            word = Change(first, max(one.end, word.end), now, max(one.stop, word.stop))
        found.append(word)
    return tuple(found)


def _word(span: Change, old: bytes, new: bytes) -> Change:
    """Return `span` extended to whole words; both texts have the same bytes before it and behind it."""
    start, end, now, stop = span
    is_part = _WORD_BYTE.match
    if is_part(old, start) or is_part(new, now):
        while min(start, now) > 0 and is_part(old, start - 1):
            start, now = start - 1, now - 1
    if (end > 0 and is_part(old, end - 1)) or (stop > 0 and is_part(new, stop - 1)):
        while is_part(old, end) and is_part(new, stop):
            end, stop = end + 1, stop + 1
    return Change(start, end, now, stop)


@dataclass(frozen=True, slots=True)
class _Example:
    """A line that was changed: the start of it as it is now, its old tokens, and what was put in between which edges.

    The edges of the tokens of a line are numbered: 0 is the start of the first one, 1 its end, and so on.
    """

    start: int
    tokens: tuple[bytes, ...]
    edits: tuple[tuple[int, int, bytes], ...]

    @staticmethod
    def of(burst: Burst, data: bytes) -> "_Example | None":
        """Return the line that `burst` has changed; None if it has changed none, or several."""
        spans = spans_of(burst, data)
        if not spans or any(line_start(data, c.now) != line_start(data, spans[0].now) for c in spans):
            return None
        start = line_start(burst.before, spans[0].start)
        line = burst.before[start : line_end(burst.before, spans[-1].end)]
        tokens = tuple(_TOKENS.finditer(line))
        edges = [edge for token in tokens for edge in token.span()]
        if not edges:
            return None
        edits = list[tuple[int, int, bytes]]()
        for change in (_slid(c, burst.before, data) for c in spans):
            first, last = change.start - start, change.end - start
            low, high = _edges(edges, first, last)
            text = line[edges[low] : first] + data[change.now : change.stop] + line[last : edges[high]]
            edits.append((low, high, text))
        if any(a[1] > b[0] for a, b in pairwise(edits)):
            return None
        return _Example(line_start(data, spans[0].now), tuple(t[0] for t in tokens), tuple(edits))


def _edges(edges: list[int], first: int, last: int) -> tuple[int, int]:
    """Return the numbers of the edges around the bytes [first, last) of a line: whole tokens, and their blanks."""
    low, high = bisect_right(edges, first) - 1, bisect_left(edges, last)
    if first == last and low >= 0 and edges[low] == first:
        return low, low
    return max(low, 0), min(high, len(edges) - 1)


def _slid(change: Change, old: bytes, new: bytes) -> Change:
    """Return `change` with the blanks of its text behind it, not before it: `final ` is put in before `int`."""
    start, end, now, stop = change
    text = b"" if start < end and now < stop else old[start:end] or new[now:stop]
    while text[:1] in (b" ", b"\t") and text[:1] == old[end : end + 1]:
        text = text[1:] + text[:1]
        start, end, now, stop = start + 1, end + 1, now + 1, stop + 1
    return Change(start, end, now, stop)


def _form(one: tuple[bytes, ...], two: tuple[bytes, ...]) -> tuple[tuple[bytes, int], ...] | None:
    """Return the form that two lines share: each token, and which of the differing pairs it is, or -1 if they agree.

    None if they share too little. `self.a = a` and `self.b = b` share `self . ? = ?`, with the same name twice.
    """
    if len(one) != len(two):
        return None
    pairs: dict[tuple[bytes, bytes], int] = {}
    form = list[tuple[bytes, int]]()
    for a, b in zip(one, two, strict=True):
        if a != b and kind_of(a) != kind_of(b):
            return None
        form.append((a, -1 if a == b else pairs.setdefault((a, b), len(pairs))))
    fixed = [token for token, number in form if number < 0]
    return tuple(form) if any(map(NAME.fullmatch, fixed)) or len(fixed) >= 3 else None


def _fits(form: tuple[tuple[bytes, int], ...], tokens: tuple[bytes, ...]) -> bool:
    if len(form) != len(tokens):
        return False
    known: dict[int, bytes] = {}
    for (text, number), token in zip(form, tokens, strict=True):
        if number < 0 and token != text:
            return False
        if number >= 0 and (kind_of(token) != kind_of(text) or known.setdefault(number, token) != token):
            return False
    return True


def kind_of(token: bytes) -> str:
    if token[:1] in b"\"'`":
        return "string"
    return "number" if token[:1].isdigit() else "word" if NAME.fullmatch(token) else token.decode("latin-1")


def _statement_parent(source: Source, offset: int) -> int:
    """Return the identity of the node whose children begin with the line of `offset`."""
    data = source.document.data
    while data[offset : offset + 1] in (b" ", b"\t"):
        offset += 1
    node = source.root.descendant_for_byte_range(offset, offset)
    while node is not None and node.parent is not None and node.parent.start_byte == node.start_byte:
        node = node.parent
    return node.parent.id if node is not None and node.parent is not None else 0


def _repeated(
    document: Document,
    begin: int,
    tokens: tuple[re.Match[bytes], ...],
    edits: tuple[tuple[int, int, bytes], ...],
) -> Iterator[Place]:
    """Yield one edit that makes all of `edits` in the line at `begin`."""
    edges = [begin + edge for token in tokens for edge in token.span()]
    text, at = b"", edges[edits[0][0]]
    for low, high, new in edits:
        text += document.data[at : edges[low]] + new
        at = edges[high]
    yield document, Edit(edges[edits[0][0]], at, text.decode("utf-8", "replace"))
