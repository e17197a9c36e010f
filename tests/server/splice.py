"""What the documents are compared with: a splice that shares no code with ours, and texts that are hard to count in.

A text is a list of code units; lines are found by walking over it.
"""

import json
import struct

from dg_lsp.server.documents import Position
from dg_lsp.source.document import Encoding

PIECES = [
    "\n", "\r\n", "\r", "\n", "\r\n", "\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029",
    "a", "xyz", "\t", " ", "é", "e\u0301", "√", "🙂", "👩\u200d💻", "\U0001f1eb\U0001f1f7", "\ufeff", "\x00",
    "\ud83d", "\ude42", "\ud800", "\udfff", "\ud83d\n", "def f(x):\r\n\treturn x\n",
]  # fmt: skip


def to_units(text: str, encoding: Encoding) -> list[int]:
    if encoding == "utf-8":
        return list(text.encode("utf-8", "surrogatepass"))
    if encoding == "utf-32":
        return [ord(character) for character in text]
    data = text.encode("utf-16-le", "surrogatepass")
    return list(struct.unpack(f"<{len(data) // 2}H", data))


def to_text(units: list[int], encoding: Encoding) -> str:
    if encoding == "utf-8":
        return bytes(units).decode("utf-8", "surrogatepass")
    if encoding == "utf-32":
        return "".join(map(chr, units))
    return struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "surrogatepass")


def line_spans(units: list[int]) -> list[tuple[int, int]]:
    """Where each line begins, and where its text ends."""
    spans, start, at = [], 0, 0
    while at < len(units):
        if units[at] in (10, 13):
            spans.append((start, at))
            at += 2 if units[at : at + 2] == [13, 10] else 1
            start = at
        else:
            at += 1
    return [*spans, (start, len(units))]


def index_of(units: list[int], position: Position, encoding: Encoding) -> int:
    spans = line_spans(units)
    if position[0] >= len(spans):
        return len(units)
    start, end = spans[position[0]]
    at = min(start + position[1], end)
    while encoding == "utf-8" and start < at < end and 0x80 <= units[at] < 0xC0:
        at -= 1
    return at


def spliced(text: str, span: tuple[Position, Position] | None, new: str, encoding: Encoding) -> str:
    if span is None:
        return new
    units = to_units(text, encoding)
    start, end = sorted(index_of(units, position, encoding) for position in span)
    return to_text(units[:start] + to_units(new, encoding) + units[end:], encoding)


def json_text(text: str) -> str:
    """`text` as it arrives: JSON makes one character of two halves that stand together."""
    return str(json.loads(json.dumps(text)))


def position_in(text: str, place: tuple[int, int], encoding: Encoding) -> Position:
    spans = line_spans(to_units(text, encoding))
    line = place[0] % (len(spans) + 1)
    start, end = spans[line] if line < len(spans) else (0, 3)
    return line, place[1] % (end - start + 4)


def is_half(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def shown_bytes(text: str) -> bytes:
    """The bytes of a snapshot of `text`."""
    return "".join("\ufffd" if is_half(character) else character for character in text).encode()
