"""Heal: damage round a cursor put right well enough for a parser, by brackets and indentation, at the same length.

What is put in takes the place of white space, so offsets stay what they were. Knows no tree and no forms.
"""

import re

from dg_lsp.text.brace_headers import head_of
from dg_lsp.text.brace_lack import lack_at
from dg_lsp.text.brace_opened import Opened
from dg_lsp.text.brace_reading import read
from dg_lsp.text.language import Language
from dg_lsp.text.lines import line_end, line_start
from dg_lsp.text.tokens import PAIRS, State

# More damage than this is another style of writing.
MOST = 12
_BREAK = re.compile(rb"[ \t\r\n]")
_TEXT = re.compile(rb"[^\s]")
# A quote behind one of these begins a string.
_OPENS = re.compile(rb"(?:[(\[{,=:+?&|<>]|\breturn)[ \t]*\Z")
_FIRST = re.compile(rb"[\w$]+")


def heal(language: Language, data: bytes, offset: int, state: State) -> bytes:
    """`data` without the damage that is not the cursor's own statement's; `data` itself where none is found.

    1. Brackets that closed nothing go, or get their mates.  2. Those that nothing closes are closed where a line
    shows that they were.  3. Half a string goes.
    """
    reading = read(language, data, 0, len(data))
    own = state.line, line_end(data, offset)
    healed = bytearray(data)
    # From the end, so that what is put in moves nothing that comes later.
    strays = [(at, None) for at in reading.strays if not own[0] <= at <= own[1]]
    typed = lack_at(language, data, offset, state).missing
    lost = [(o.stop, o) for o in reading.all if o.closed < 0 <= o.stop and o.at not in typed]
    lost = [(stop, o) for stop, o in lost if not own[0] <= o.at <= own[1]]
    if not 0 < len(strays) + len(lost) + len(reading.quotes) <= MOST:
        return data
    for at, opened in sorted([*strays, *lost], key=lambda s: s[0], reverse=True):
        if opened is None:
            # 1.
            _take(language, healed, at)
        else:
            # 2.
            _close(language, healed, opened)
    # 3.
    for at, line in reading.quotes:
        if not own[0] <= at <= own[1] and line >= 0:
            _unquote(healed, line, at)
    return bytes(healed)


def _take(language: Language, healed: bytearray, at: int) -> None:
    """What closes nothing goes; a brace whose header has lost its own gets that back."""
    data = bytes(healed)
    if data[at : at + 1] == b"}":
        header = _header_above(language, data, at)
        if header >= 0 and _insert(healed, header, b"{"):
            return
    # It stays a part of the body that it stands in.
    healed[at : at + 1] = b";" if data[at : at + 1] == b"}" else b" "


def _header_above(language: Language, data: bytes, at: int) -> int:
    """The end of the line above the brace at `at` that is as deep as it and begins a body; -1 without one."""
    depth = at - line_start(data, at)
    line = line_start(data, at)
    while line > 0:
        line = line_start(data, line - 1)
        text = _TEXT.search(data, line, line_end(data, line))
        if text is None or text.start() - line > depth:
            continue
        word = _FIRST.match(data, text.start())
        words = language.words
        opens = word is not None and word[0] in words.blocks | words.functions | words.classes
        end = line_end(data, line)
        whole = data[line:end].rstrip().endswith((b"{", b";"))
        return end if text.start() - line == depth and opens and not whole else -1
    return -1


def _close(language: Language, healed: bytearray, opened: Opened) -> None:
    """Close a bracket in front of where it ended: in front of a semicolon, or behind the last text above a line."""
    data, at = bytes(healed), opened.stop
    closer = PAIRS[opened.bracket]
    if opened.bracket != b"{":
        _insert(healed, at if data[at : at + 1] == b";" else len(data[:at].rstrip()), closer)
        return
    value = head_of(language, data, opened.line, opened.at) is None
    closer += language.words.ends[0] if value and data[at : at + 1] != b";" else b""
    line = line_start(data, at)
    if line + len(closer) <= at:
        healed[line : line + len(closer)] = closer
    elif line > 0:
        _insert(healed, line - 1, closer[:1])


def _insert(healed: bytearray, at: int, text: bytes) -> bool:
    """Put `text` in at `at`, taking up as much of the white space behind it; whether there is some."""
    found = _BREAK.search(bytes(healed[at : at + 200]))
    if found is None or len(text) != 1:
        return False
    stop = at + found.start()
    healed[at : stop + 1] = text + healed[at:stop]
    return True


def _unquote(healed: bytearray, line: int, at: int) -> None:
    """A lone quote in the statement at `line` goes; one that ends a string takes what can be the string along."""
    before = bytes(healed[line:at])
    if not _OPENS.search(before):
        begins = max((before.rfind(text) for text in (b"(", b",", b"=", b"[", b"{")), default=-1) + 1
        healed[line + begins : at] = b" " * (at - line - begins)
        healed[at : at + 1] = b"0"
    else:
        healed[at : at + 1] = b" "
