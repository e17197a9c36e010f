"""Rows: the words and signs of a text as strings with one character each, so that runs of them are found by `find`.

By patterns, so any text can be read, however broken.
"""

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from zlib import crc32

from dg_lsp.budget import check
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import closed_string, comment_patterns, width

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

    words: a character for the text of the entry; two texts share one by chance, one time in 65,000. kinds: the same
    character for signs and keywords, but one for all names, one for all numbers and one for all strings. starts: where
    the entries begin in `data`. Comments are in no row; they are part of the line ends.
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
    for word, kind, start in _entries(language, data, columns):
        words.append(word)
        kinds.append(kind)
        starts.append(start)
    return Rows(data, "".join(words), "".join(kinds), starts)


def _entries(language: Language, data: bytes, columns: int) -> Iterator[tuple[str, str, int]]:
    """The entries of `data`, whose first line has so many `columns` of indentation: word, kind and start."""
    known = dict(_fixed(language))
    for number, match in enumerate(_pattern(language).finditer(data)):
        if not number % _OFTEN:
            check()
        group = match.lastgroup or ""
        if group == "skip":
            continue
        text = match[group]
        if group == "line":
            # After the empty lines, if any.
            now = width(text[max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 :])
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
        yield word, kind, match.start(group)


@lru_cache(maxsize=32)
def _fixed(language: Language) -> dict[bytes, tuple[str, str]]:
    """The entries of keywords and brackets, whose kinds are their own words."""
    texts = (*language.keywords, b"self", b"cls", b"this")
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
