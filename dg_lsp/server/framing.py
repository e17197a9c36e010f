"""Message bodies out of a stream of bytes: the header is read with patience, the size is limited.

Knows bytes and lengths; knows no JSON, no thread and no loop.
"""

import re
from typing import BinaryIO

LIMIT = 64 << 20

_READ_AWAY = 1 << 30
_LINE = 8192
_HEADER = re.compile(rb"[ \t]*[A-Za-z][A-Za-z0-9-]*[ \t]*:")
_LENGTH = re.compile(rb"[ \t]*Content-Length[ \t]*:[ \t]*(.*?)[ \t]*\r?\n", re.IGNORECASE | re.DOTALL)


class FrameError(ValueError):
    """A frame that cannot be taken, with the JSON-RPC error code for it; reading may go on."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_frame(stream: BinaryIO, limit: int = LIMIT) -> bytes | None:
    """The next message body of `stream`, None at its end (also in the middle of a message).

    Raises:
        FrameError: the header has no usable length, or the body is too large; the next call goes on behind it.
    """
    lengths = _read_header(stream)
    if lengths is None:
        return None
    if len(lengths) != 1 or not re.fullmatch(rb"[0-9]+", lengths[0]):
        what = "no" if not lengths else "more than one" if len(lengths) > 1 else "an invalid"
        raise FrameError(-32700, f"a message header has {what} Content-Length; send exactly one, a number")
    # Python refuses to read numbers of thousands of digits, and one of 20 is absurd enough.
    length = int(lengths[0][-20:]) if len(lengths[0]) <= 20 else _READ_AWAY + 1
    if length > limit:
        # A length that no client can mean is a broken header, and what follows it is probably no body.
        left = length if length <= _READ_AWAY else 0
        while left and (piece := stream.read(min(left, 1 << 16))):
            left -= len(piece)
        raise FrameError(-32600, f"a message is larger than {limit} bytes; send less at a time")
    body = stream.read(length)
    return body if len(body) == length else None


def _read_header(stream: BinaryIO) -> list[bytes] | None:
    """What the next header block gives as its length, each time it gives one; None at the end of the input."""
    lengths: list[bytes] = []
    begun = False
    while line := stream.readline(_LINE):
        if not line.strip():
            if begun:
                return lengths
            continue
        begun = True
        # After a broken header its body may come as if it were a header, and the next one on the same line.
        found = _LENGTH.match(line) if _HEADER.match(line) else _LENGTH.search(line)
        if found:
            lengths.append(found[1])
    return None
