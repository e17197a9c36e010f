"""Scanner: what the part of a grammar that is written by hand in C can hold, and the texts that it cannot.

Such a scanner keeps what is open, such as levels of indentation, in 1,024 bytes, and some write past their end.
"""

import re
from dataclasses import dataclass, field

from dg_lsp.reasons import TooDeep

_NEVER = re.compile(rb"\A(?!)")
# Columns are counted in 16 bits.
_COLUMNS = 32_767
_INDENTED = re.compile(rb"^[ \t\f\r]*+\\?", re.MULTILINE)
_BLANK = bytes.maketrans(b"\t\r", b"  ")
_MARK_OF_ORDER = b"\xef\xbb\xbf"
# With fewer bytes of state no scanner reaches its end; those of a literal and of a heredoc without its name; and the
# most bytes of a name.
_STATE, _LITERAL, _HEREDOC, _NAME = 1_000, 5, 4, 250
_QUOTES = b"\"'`/%"
_LINE_OF_NAME = re.compile(rb"^([ \t]*+)([\w\x80-\xff]++)(?=[ \t]*+\r?$)", re.MULTILINE)
# Letters that hardly ever are a line of their own.
_LETTERS = b"ghjklmpqrstuvwyzGHJKLMQRUVWYZ"
_DEEP = "the file cannot be read, because its lines are nested deeper than its parser can hold"
_LONG = "the file cannot be read, because it has more line ends than its parser can count, which is {:,}"


@dataclass(frozen=True, slots=True)
class Scanner:
    """The bounds of a grammar's scanner. lines: the most line ends that it counts; 0 for any number.

    levels: the most levels that may be open; 0 for any number. least: the fewest bytes of a text with so many, a tab
    counted as eight. marks: what begins levels within a line, in front of a blank; without any only lines that are
    indented deeper do. heredoc: a pattern of the beginning of a heredoc up to its name, with the groups `mark`, and
    `name`, or `quote` and `quoted` for a name in quotes, which is empty if it is more than a word. last: what is read
    after each text, because the scanner looks for it without an end.
    """

    lines: int = 0
    last: bytes = b""
    levels: int = 0
    least: int = 0
    marks: tuple[bytes, ...] = ()
    heredoc: re.Pattern[bytes] = field(default=_NEVER)


def check_depth(scanner: Scanner, data: bytes) -> None:
    """Raise TooDeep if `scanner` cannot hold what is open somewhere in `data`: its parser might end the process."""
    if scanner.lines and data.count(b"\n") + data.count(b"\r") > scanner.lines:
        raise TooDeep(_LONG.format(scanner.lines))
    if scanner.levels and len(data) * (8 if b"\t" in data else 1) >= scanner.least:
        levels = _marked_levels(scanner.marks, data) if scanner.marks else _indented_levels(data)
        if levels > scanner.levels:
            raise TooDeep(_DEEP)


def _indented_levels(data: bytes) -> int:
    """Return at least the most levels of indentation that are open at once.

    However badly the text is read, each level is deeper than the one around it, so that there are no more than
    different indentations. A backslash alone joins the next line to its own, so that each may make one more.
    """
    starts: list[bytes] = _INDENTED.findall(data)
    return len(set(starts)) + sum(start.endswith(b"\\") for start in starts)


def _marked_levels(marks: tuple[bytes, ...], data: bytes) -> int:
    """Return at least the most levels that `marks` and indentation open at once, such as 6 for `- a: b`.

    1. A mark opens its own level and one for the key in front of it, and a line two more; a line that is indented less
    or as much closes them.  2. A line that begins with a tab closes none.  3. A comment has no levels, but may be
    read as something else in broken text; of those that are indented alike one is.
    """
    opened, most, noted = list[tuple[int, int]](), 0, dict[int, int]()
    for line in data.removeprefix(_MARK_OF_ORDER).split(b"\n"):
        text = line.lstrip(b" ")
        words, at = text.translate(_BLANK) + b" ", len(line) - len(text)
        if len(line) > _COLUMNS and (at > _COLUMNS or any(line.find(m[:1], _COLUMNS) >= 0 for m in marks)):
            raise TooDeep(_DEEP)
        count = 2 * sum(words.count(mark) for mark in marks)
        # 3.
        if text.startswith(b"#"):
            noted[at] = max(noted.get(at, 0), count)
            continue
        # 2.
        if text[:1] != b"\t" and not words.isspace():
            while opened and opened[-1][0] >= at:
                opened.pop()
            count += 2
        # 1.
        if count:
            opened.append((at, count + (opened[-1][1] if opened else 0)))
            most = max(most, opened[-1][1])
    return most + sum(noted.values())


def with_short_names(scanner: Scanner, data: bytes) -> bytes:
    """Return `data` with one letter for each name of a heredoc, and as long as before: `<<HTML` becomes `<<q   `.

    The state of a scanner with such names never ends at a size from which it writes past its end. A text with few
    heredocs and literals, which has less state, stays as it is.
    """
    if scanner.heredoc is _NEVER or b"<<" not in data:
        return data
    found = list(scanner.heredoc.finditer(data))
    names = {match["name"] or match["quoted"] for match in found} - {None}
    sizes = [_size(match) for match in found]
    literals = len(data) - len(data.translate(None, _QUOTES))
    if max(sizes, default=0) <= _NAME and sum(sizes) + literals * _LITERAL < _STATE:
        return data
    data = _LINE_OF_NAME.sub(lambda m: m[1] + _short(m[2]) if m[2] in names else m[0], data)
    return scanner.heredoc.sub(_shortened, data)


def _size(heredoc: re.Match[bytes]) -> int:
    """Return at least the bytes that a scanner keeps of `heredoc`."""
    name = heredoc["name"] or heredoc["quoted"]
    if name is None:
        end = heredoc.string.find(heredoc["quote"], heredoc.end())
        return _HEREDOC + (end if end >= 0 else len(heredoc.string)) - heredoc.end()
    return _HEREDOC + len(name)


def _shortened(heredoc: re.Match[bytes]) -> bytes:
    """Return the beginning of a heredoc with a short name; where that is no word, an operator in its place."""
    name, mark, quote = heredoc["name"] or heredoc["quoted"], heredoc["mark"], heredoc["quote"] or b""
    if name is None:
        return b"+ " + mark + quote
    short = _short(name)
    return b"<<" + mark + quote + short[:1] + quote + short[1:]


def _short(name: bytes) -> bytes:
    """Return a letter, mostly another one for another name, and blanks up to the length of `name`."""
    at = sum(name) % len(_LETTERS)
    return _LETTERS[at : at + 1].ljust(len(name))
