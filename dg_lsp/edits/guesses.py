"""Guesses: places where an edit of one line may be repeated, though no rule is sure of it; a model rates them.

It is repeated where its old text is, and at the same tokens of lines that are written like that line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeVar

from dg_lsp.budget import check
from dg_lsp.edits.places import WORDS
from dg_lsp.edits.spans import CONSTANT, NAME, TOKENS, line_edit, spans_of
from dg_lsp.gaps import Edit
from dg_lsp.source.bursts import Burst
from dg_lsp.source.document import Document
from dg_lsp.source.history import Change
from dg_lsp.source.lexer import line_end, line_start
from dg_lsp.source.names import whole

# How alike two lines must be, by their tokens and by the kinds of their tokens; the letters of a word that is no chance
# find in any other line.
_TOKENS_ALIKE, _KINDS_ALIKE, _TELLING = 0.34, 0.7, 4
# Guesses of one edit, those in the most similar lines first; and the longest line.
_MOST, _LONGEST = 4, 300
_PREFIX = re.compile(rb"[A-Za-z]{1,2}")
Token = TypeVar("Token", str, bytes)


@dataclass(frozen=True, slots=True)
class Example:
    """A line that was edited. start, end: the line as it is now; old: as it was; spans: its changes, within the line.

    now, stop of a span are offsets in the text as it is now.
    """

    start: int
    end: int
    old: bytes
    spans: tuple[Change, ...]

    @staticmethod
    def of(burst: Burst, data: bytes) -> "Example | None":
        """Return the line that `burst` has changed; None if it has changed several, or has put in or removed one."""
        spans = spans_of(burst, data)
        if not spans:
            return None
        start, first = line_start(data, spans[0].now), line_start(burst.before, spans[0].start)
        end, last = line_end(data, start), line_end(burst.before, first)
        if spans[-1].stop > end or spans[-1].end > last or not burst.before[first:last].strip():
            return None
        moved = tuple(Change(c.start - first, c.end - first, c.now, c.stop) for c in spans)
        return Example(start, end, burst.before[first:last], moved)

    def changed(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the text from the first change to the last one, before and after; `data` is the text as it is now."""
        first, last = self.spans[0], self.spans[-1]
        return self.old[first.start : last.end], data[first.now : last.stop]


def _is_value(example: Example, data: bytes) -> bool:
    """Return whether a constant, an operator or all of a string has become another: such an edit is rarely repeated."""
    if len(example.spans) != 1:
        return False
    (change,), both = example.spans, example.changed(data)
    after = example.old[change.end : change.end + 1]
    quotes = example.old[change.start - 1 : change.start] + after
    if both[0] and quotes in (b'""', b"''", b"``"):
        return True
    if not both[0] and after in (b'"', b"'") and _PREFIX.fullmatch(both[1]):
        return True
    constants = [bool(text.strip() and CONSTANT.fullmatch(text)) for text in both]
    # `NULL` and `nullptr` are two words for one constant.
    return any(constants) and both[0][:4].lower() != both[1][:4].lower()


def guesses(document: Document, example: Example) -> list[Edit]:
    """Return the edits that may repeat `example` in other lines of `document`, one a line, the most similar first.

    Raises:
        OutOfTime: looking for them takes too long.
    """
    data, found = document.data, list[tuple[float, int, Edit]]()
    if len(example.old) > _LONGEST or _is_value(example, data):
        return []
    mine, at = [*TOKENS.finditer(example.old)], 0
    texts, (old, new) = {t[0] for t in mine}, example.changed(data)
    for whole_line in data.splitlines(keepends=True):
        begin, at = at, at + len(whole_line)
        check()
        line = whole_line.rstrip(b"\r\n")
        done = not old.strip() and new.strip() in line
        yours = [] if len(line) > _LONGEST or begin == example.start or done else [*TOKENS.finditer(line)]
        # Most lines have too little in common to be compared.
        common = len(texts.intersection(t[0] for t in yours))
        if not yours or (2 * common < _TOKENS_ALIKE * (len(texts) + common) and (not old or old not in line)):
            continue
        kinds = _matched([_kind_of(t[0]) for t in mine], [_kind_of(t[0]) for t in yours])
        alike = _matched([t[0] for t in mine], [t[0] for t in yours]).ratio(), kinds.ratio()
        near = alike[0] >= _TOKENS_ALIKE and alike[1] >= _KINDS_ALIKE
        changed = _replaced(example, data, line, near=near)
        if near and not changed:
            changed = _aligned(example, data, (mine, yours), kinds)
        if changed and changed != line:
            found.append((-sum(alike), abs(begin - example.start), line_edit(begin, line, changed)))
    return [edit for _, _, edit in sorted(found, key=lambda one: one[:2])[:_MOST]]


def _matched(mine: list[Token], yours: list[Token]) -> SequenceMatcher[Token]:
    return SequenceMatcher(None, mine, yours, autojunk=False)


def _replaced(example: Example, data: bytes, line: bytes, *, near: bool) -> bytes:
    """Return `line` with the new text wherever the old one is in it; b"" if it is not, or is too short to tell."""
    old, new = example.changed(data)
    telling = any(len(word) >= _TELLING for word in WORDS.findall(old))
    if not old.strip() or not (near or telling):
        return b""
    word = whole(old) if WORDS.match(old) and WORDS.match(old[-1:]) else re.compile(re.escape(old))
    # Where the edit has left one, or the line has more of them, it is not all of them that are meant.
    left, count = word.search(data, example.start, example.end), len(word.findall(line))
    if not 0 < count <= len(word.findall(example.old)) or (left and old not in new):
        return b""
    return word.sub(lambda _: new, line)


def _aligned(
    example: Example, data: bytes, tokens: Sequence[list[re.Match[bytes]]], kinds: SequenceMatcher[str]
) -> bytes:
    """Return the line of the second `tokens` with the changes at the counterparts of the tokens of the first.

    New text that repeats a token of its line repeats the counterpart: where `need(name)` became `need(name, "name")`,
    `need(mail)` becomes `need(mail, "mail")`. b"" where a token has no counterpart, or would replace another text.
    """
    mine, yours = tokens
    line, new, at = yours[0].string, b"", 0
    pairs = [(mine[i + n], yours[j + n]) for i, j, size in kinds.get_matching_blocks() for n in range(size)]
    kept, meant = {*TOKENS.findall(example.changed(data)[1])}, dict[bytes, set[bytes]]()
    for one, other in pairs:
        meant.setdefault(one[0], set()).add(other[0])
    alone = {text: others.pop() for text, others in meant.items() if len(others) == 1 and text in kept}
    starts = {one.start(): other.start() for one, other in pairs}
    ends = {one.end(): other.end() for one, other in pairs}
    for change in example.spans:
        old, text = example.old[change.start : change.end], data[change.now : change.stop]
        # What is put in before a closing bracket is the last of what is in the brackets.
        is_last = not old and example.old[change.end : change.end + 1] in (b")", b"]", b"}")
        last = starts.get(change.end, -1) if is_last else ends.get(change.end, starts.get(change.end, -1))
        first = starts.get(change.start, ends.get(change.start, -1)) if old else last
        old, text = (TOKENS.sub(lambda token: alone.get(token[0], token[0]), one) for one in (old, text))
        if not at <= first <= last or (text.strip() and line[first:last] != old):
            return b""
        new, at = new + line[at:first] + text, last
    return new + line[at:]


def _kind_of(token: bytes) -> str:
    if token[:1] in b"\"'`":
        return "string"
    return "number" if token[:1].isdigit() else "word" if NAME.fullmatch(token) else token.decode("latin-1")
