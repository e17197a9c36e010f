"""Heal: damage round a cursor put right well enough for a parser, as far as brackets and indentation tell of it.

Knows which brackets belong together; knows no tree and no forms.
"""

import re
from dataclasses import dataclass

from dg_lsp.text.documents.lines import leading, line_end, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.braced_headers import head_of
from dg_lsp.text.syntax.braced_lack import lack_at
from dg_lsp.text.syntax.braced_opened import Opened
from dg_lsp.text.syntax.braced_reading import Reading, read
from dg_lsp.text.syntax.braced_tokens import marks
from dg_lsp.text.syntax.tokens import PAIRS, Span, State

# More damage than this is another style of writing.
MOST = 12
_TEXT = re.compile(rb"[^\s]")
_FIRST = re.compile(rb"[\w$]+")
# A quote behind one of these begins a string.
_OPENS = re.compile(rb"(?:[(\[{,=:+?&|<>]|\breturn)[ \t]*\Z")
_NEXT = re.compile(rb"[,)\]};]|(?=[\r\n])|\Z")
# Where an argument or a value may begin.
_BEGINS = (b"(", b",", b"=", b"[", b"{")


@dataclass(frozen=True, slots=True)
class Healed:
    """`data` is the text with each text of `put` inserted at its offset of the text before, in their order."""

    data: bytes
    put: tuple[tuple[int, bytes], ...]


def heal(language: Language, data: bytes, offset: int, state: State) -> Healed:
    """`data` without the damage that is not the cursor's own statement's.

    1. What closes nothing gets back what it has lost, or goes.  2. Brackets that nothing closes are closed where a
    line shows that they were.  3. Half a string goes.
    """
    reading = read(language, data, 0, len(data))
    # A string that holds code at the cursor is the cursor's too.
    quoted = [at for at in (*state.opened, state.begins) if at >= 0 and data[at] not in b"([{"]
    own = min(state.line, *quoted, offset), line_end(data, offset)
    typed = lack_at(language, data, offset, state).missing
    lost = [o for o in reading.all if o.closed < 0 <= o.stop and o.at not in typed and not _is_in(own, o.at)]
    strays = [(at, line) for at, line in reading.strays if not _is_in(own, at)]
    quotes = [(at, line) for at, line in reading.quotes if line >= 0 and not _is_in(own, at)]
    if not 0 < len(strays) + len(lost) + len(quotes) <= MOST:
        return Healed(data, ())
    text = bytearray(data)
    put: list[tuple[int, bytes]] = []
    # 1.
    for at, line in strays:
        header = _header_above(language, data, at) if data[at : at + 1] == b"}" else -1
        if header >= 0 and not _is_in(own, header):
            put.append((header, b" {"))
        elif header < 0:
            _take(text, line, at)
    # 2.
    put += [_closer(language, reading, opened) for opened in lost]
    # 3.
    for at, line in quotes:
        _unquote(text, line, at)
    return _joined(bytes(text), sorted(put, key=lambda p: p[0]))


def _is_in(span: Span, at: int) -> bool:
    return span[0] <= at <= span[1]


def _joined(data: bytes, put: list[tuple[int, bytes]]) -> Healed:
    """`data` with the texts put in."""
    parts, last = [], 0
    for at, text in put:
        parts += [data[last:at], text]
        last = at
    return Healed(b"".join((*parts, data[last:])), tuple(put))


def _header_above(language: Language, data: bytes, at: int) -> int:
    """The end of the line above the brace at `at` that is as deep as it and begins a body; -1 without one."""
    depth = at - line_start(data, at)
    line = line_start(data, at)
    while line > 0:
        line = line_start(data, line - 1)
        text = _TEXT.search(data, line, line_end(data, line))
        if text is None or text.start() - line > depth:
            continue
        word, words = _FIRST.match(data, text.start()), language.words
        opens = word is not None and word[0] in words.blocks | words.functions | words.classes
        end = line_end(data, line)
        end -= len(data[line:end]) - len(data[line:end].rstrip())
        whole = data.endswith((b"{", b";"), line, end)
        return end if text.start() - line == depth and opens and not whole else -1
    return -1


def _take(text: bytearray, line: int, at: int) -> None:
    """What closes nothing goes; the statement with it where that has lost what it opened."""
    if text[at : at + 1] == b"}":
        # It stays a part of the body that it stands in.
        text[at : at + 1] = b";"
        return
    text[at : at + 1] = b" "
    begun = bytes(text[line:at]) if 0 <= line < at else b""
    if b"{" not in begun and b"\n" not in begun and len(begun) > 3:
        text[line:at] = b"_g_" + b" " * (len(begun) - 3)


def _closer(language: Language, reading: Reading, opened: Opened) -> tuple[int, bytes]:
    """What closes a bracket, and where: behind the last code before the line or semicolon that shows it."""
    data, closer = reading.data, PAIRS[opened.bracket]
    if opened.bracket != b"{":
        return _end_of_header(language, reading, opened), closer
    at = _code_end(language, data, opened.at, opened.stop)
    head = head_of(language, data, opened.line, opened.at)
    closer += b"" if head else language.words.ends[0]
    if line_start(data, at) <= opened.at:
        return at, closer
    end = b"\r\n" if data.startswith(b"\r\n", line_end(data, at)) else b"\n"
    return line_end(data, at), end + leading(data, head.start if head else opened.at) + closer


def _end_of_header(language: Language, reading: Reading, opened: Opened) -> int:
    """Where a round bracket is to be closed: at its statement's end, or before the brace if that is a header."""
    data = reading.data
    first = _FIRST.match(data, opened.line)
    braces = (
        o.at for o in reading.all if o.bracket == b"{" and opened.at < o.at <= line_end(data, opened.at)
    )
    brace = next((at for at in braces if not data[at + 1 : line_end(data, at)].strip()), -1)
    if brace >= 0 and first and first[0] in language.words.blocks:
        return brace - (data[brace - 1 : brace] == b" ")
    return _code_end(language, data, opened.at, opened.stop)


def _code_end(language: Language, data: bytes, start: int, stop: int) -> int:
    """Where the last code of data[start:stop] ends."""
    end, at = start, start
    for kind, first, last in (*marks(language, data, start, stop), ("", stop, stop)):
        if data[at:first].strip():
            end = first - (len(data[at:first]) - len(data[at:first].rstrip()))
        if kind not in ("newline", "comment", "joined", ""):
            end = last
        at = last
    return end


def _unquote(text: bytearray, line: int, at: int) -> None:
    """A lone quote in the statement at `line` goes, with what can be the rest of its string; a number stands for it."""
    before = bytes(text[line:at])
    stop = at + 1
    if _OPENS.search(before):
        found = _NEXT.search(bytes(text[at : at + 1_000]))
        stop = at + found.start() if found else stop
    else:
        at = line + max(before.rfind(sign) for sign in _BEGINS) + 1
    text[at:stop] = b"0" + b" " * (stop - at - 1)
