"""Rows: the words and signs of a text as strings with one character each, so that runs of them are found by `find`.

Reads bytes by patterns, so any text can be read, however broken; parses nothing.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from zlib import crc32

from dg_lsp.text.budget import check
from dg_lsp.text.documents.history import common
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.lexer import closed_string, comment_patterns, width

# The characters of a line end, by where the next line begins: further in, at the same place, or further out.
DEEPER, LEVEL, OUTER = "\x01", "\x02", "\x03"
LINE_ENDS = DEEPER + LEVEL + OUTER
NAME, NUMBER, STRING = "i", "0", "s"
OPENERS, CLOSERS = "([{", ")]}"
# No text of a candidate is in a string that is longer than this, so it needs no place of its own.
_OFTEN = 256  # entries between two looks at the budget
_PART = rb"[\w$\x80-\xff]"
_SIGNS = rb"\*\*=?|//=?|<<=?|>>=?|->|=>|::|&&|\|\||\?\?|\?\.|\.\.\.|[=!<>+\-*/%&|^:@]=|[^\s\w]"


@dataclass(frozen=True, slots=True)
class Rows:
    """A text as rows with one entry for each word, sign, string, number and line end of it.

    words: a character for the text of the entry; two texts share one by chance, one time in 65,000. kinds:
    the same character for signs and keywords, but one for all names, one for all numbers and one for all strings.
    starts: where the entries begin in `data`. Comments are in no row; they are part of the line ends.
    """

    data: bytes = field(repr=False)
    words: str
    kinds: str
    starts: "array[int]" = field(repr=False)

    def __len__(self) -> int:
        return len(self.words)

    def text(self, first: int, stop: int) -> bytes:
        """The text of the entries [first, stop), without white space at its end."""
        end = self.starts[stop] if stop < len(self.starts) else len(self.data)
        return self.data[self.starts[first] : end].rstrip()


def read_rows(language: Language, data: bytes, columns: int = 0) -> Rows:
    """The rows of `data`, whose first line has so many `columns` of indentation."""
    words, kinds, starts = [], [], array("I")
    for word, kind, start, _ in _entries(language, data, 0, columns):
        words.append(word)
        kinds.append(kind)
        starts.append(start)
    return Rows(data, "".join(words), "".join(kinds), starts)


def reread(language: Language, old: Rows, data: bytes) -> Rows:
    """The rows of `data`, of which `old` are those before a change; only what the change may have changed is read.

    1. Find the line end before the first byte that differs.  2. Read from there.  3. At a line end behind the last byte
    that differs, which was one before, and below which the line has the same indentation, take the rest from `old`.
    """
    # 1.
    same, rest = _same(old.data, data)
    moved = len(data) - len(old.data)
    changed = [text[max(same - 2, 0) : len(text) - rest + 2] for text in (old.data, data)]
    if not old.words or any(_closes_lines(language, text) for text in changed):
        return read_rows(language, data)
    entry = bisect_right(old.starts, same) - 1
    first = max(0, *(old.kinds.rfind(end, 0, max(entry, 0)) for end in LINE_ENDS))
    above = max(old.kinds.rfind(end, 0, first) for end in LINE_ENDS)
    columns = _columns(language, old, above) if above >= 0 else 0
    begin = old.starts[first] if first else 0
    words, kinds, starts = [old.words[:first]], [old.kinds[:first]], old.starts[:first]
    # 2.
    for word, kind, start, column in _entries(language, data, begin, columns):
        # 3.
        if kind in LINE_ENDS and start >= len(data) - rest:
            at = bisect_left(old.starts, start - moved)
            known = at < len(old) and old.starts[at] == start - moved and old.kinds[at] in LINE_ENDS
            if known and at + 1 < len(old) and _columns(language, old, at) == column:
                behind = array("I", [place + moved for place in old.starts[at + 1 :]])
                return Rows(
                    data,
                    "".join((*words, word, old.words[at + 1 :])),
                    "".join((*kinds, kind, old.kinds[at + 1 :])),
                    starts + array("I", [start]) + behind,
                )
        words.append(word)
        kinds.append(kind)
        starts.append(start)
    return Rows(data, "".join(words), "".join(kinds), starts)


def _same(one: bytes, other: bytes) -> tuple[int, int]:
    """Return how many bytes two texts have in common at the beginning, and how many more at the end."""
    first = common(one, other)
    return first, common(one[first:][::-1], other[first:][::-1])


def _closes_lines(language: Language, text: bytes) -> bool:
    """Return whether `text` holds the end of a string or comment of several lines, so may change text above."""
    ends = [q.close for q in language.strings if q.lines] + [b.encode() for _, b in language.block_comments]
    return any(end in text for end in ends)


def _columns(language: Language, rows: Rows, at: int) -> int:
    """The columns of indentation of the line behind the line end `at`."""
    found = _pattern(language).match(rows.data, rows.starts[at])
    return _width(found["line"]) if found else 0


def _width(line_end: bytes) -> int:
    """The columns of the white space that a line end, with the empty lines behind it, ends with."""
    return width(line_end[max(line_end.rfind(b"\n"), line_end.rfind(b"\r")) + 1 :])


def _entries(
    language: Language, data: bytes, start: int, columns: int
) -> Iterator[tuple[str, str, int, int]]:
    """The entries of `data` from `start` on: word, kind, start, and the columns of the line behind it."""
    known = dict(_fixed(language))
    for number, match in enumerate(_pattern(language).finditer(data, start)):
        if not number % _OFTEN:
            check()
        group = match.lastgroup or ""
        if group == "skip":
            continue
        text = match[group]
        if group == "line":
            now = _width(text)
            word = kind = LEVEL if now == columns else DEEPER if now > columns else OUTER
            columns = now
        elif (found := known.get(text)) is not None:
            word, kind = found
        else:
            word = chr(32 + crc32(text) % 55_000)
            kind = STRING if group == "string" else NUMBER if group == "number" else word
            if group in ("name", "short"):
                kind = NAME
            known[text] = word, kind
        yield word, kind, match.start(group), columns


@lru_cache(maxsize=32)
def _fixed(language: Language) -> dict[bytes, tuple[str, str]]:
    """The entries of keywords and brackets, whose kinds are their own words."""
    texts = (*language.keywords, *(w for w in (b"self", b"cls", b"this")))
    found = {text: (chr(32 + crc32(text) % 55_000),) * 2 for text in texts}
    return found | {sign.encode(): (sign, sign) for sign in OPENERS + CLOSERS + ",.:=;"}


@lru_cache(maxsize=32)
def _pattern(language: Language) -> re.Pattern[bytes]:
    """Return the pattern of the next entry, the commonest kinds first; white space separates entries."""
    comment, *blocks = comment_patterns(language)
    end = rb"(?:%s)?+(?:\r\n|\n|\r)" % comment
    kinds = (
        rb"(?P<name>(?!\d)%s{3,}+)" % _PART,
        rb"(?P<line>%s(?:[ \t\f]*+%s)*+[ \t]*+)" % (end, end),
        rb"(?P<skip>%s)" % b"|".join((*blocks, comment, rb"\\(?:\r\n|\n|\r)")),
        rb"(?P<string>[A-Za-z]{0,2}+(?:%s))" % b"|".join(map(closed_string, language.strings)),
        rb"(?P<number>\d(?:[\w.]|(?<=[eE])[+-])*+)",
        rb"(?P<short>%s++)" % _PART,
        rb"(?P<sign>%s)" % _SIGNS,
    )
    return re.compile(rb"[ \t\f]*+(?:%s)" % b"|".join(kinds), re.DOTALL)
