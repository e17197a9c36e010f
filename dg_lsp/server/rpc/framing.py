"""Reading of message bodies from a stream of bytes, tolerant of broken headers and limited in size.

Knows bytes and lengths; knows no JSON, no thread and no event loop.
"""

import re
from typing import BinaryIO

LIMIT = 64 << 20  # bytes of a body

_READ_AWAY = 1 << 30  # bytes of a body that is too large, but is read and dropped
_LINE = 8192  # bytes of a header line that are read at once
_HEADER = re.compile(rb"[ \t]*[A-Za-z][A-Za-z0-9-]*[ \t]*:")
_LENGTH = re.compile(rb"[ \t]*Content-Length[ \t]*:[ \t]*(.*?)[ \t]*\r?\n", re.IGNORECASE | re.DOTALL)


class FrameError(ValueError):
    """A frame cannot be read; `code` is the JSON-RPC error code. The next frame may be readable."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_frame(stream: BinaryIO, limit: int = LIMIT) -> bytes | None:
    """Read the next message body of `stream`; return None at its end, even in the middle of a message.

    Raises:
        FrameError: the header has no valid length, or the body is too large; the next call reads the frame after it.
    """
    lengths = _read_header(stream)
    if lengths is None:
        return None
    if len(lengths) != 1 or not re.fullmatch(rb"[0-9]+", lengths[0]):
        what = "no" if not lengths else "more than one" if len(lengths) > 1 else "an invalid"
        raise FrameError(-32700, f"a message header has {what} Content-Length; send exactly one, a number")
    # More than 20 digits are not converted, because Python refuses to convert thousands of digits.
    length = int(lengths[0][-20:]) if len(lengths[0]) <= 20 else _READ_AWAY + 1
    if length > limit:
        # An absurd length is a broken header, and no body of that length follows.
        left = length if length <= _READ_AWAY else 0
        while left and (piece := stream.read(min(left, 1 << 16))):
            left -= len(piece)
        raise FrameError(-32600, f"a message is larger than {limit} bytes; send less at a time")
    body = stream.read(length)
    return body if len(body) == length else None


def _read_header(stream: BinaryIO) -> list[bytes] | None:
    """Read the next header; return the values of all Content-Length fields in it, None at the end of the input."""
    lengths: list[bytes] = []
    begun = False
    while line := stream.readline(_LINE):
        if not line.strip():
            if begun:
                return lengths
            continue
        begun = True
        # After a broken header its body is read as header lines, and the next header may begin in the middle of one.
        found = _LENGTH.match(line) if _HEADER.match(line) else _LENGTH.search(line)
        if found:
            lengths.append(found[1])
    return None
