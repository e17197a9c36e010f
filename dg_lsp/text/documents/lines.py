"""Physical lines of bytes: where they begin and end, and their indentation. Knows no language."""


def line_start(data: bytes, offset: int) -> int:
    """The offset where the physical line of `offset` begins."""
    start = data.rfind(b"\n", 0, offset) + 1
    # Looking for a CR any further would read the whole file, as most have none.
    return max(data.rfind(b"\r", start, offset) + 1, start)


def line_end(data: bytes, offset: int) -> int:
    """The offset where the text of the physical line of `offset` ends."""
    end = data.find(b"\n", offset)
    end = end if end >= 0 else len(data)
    found = data.find(b"\r", offset, end)
    return found if found >= 0 else end


def leading(data: bytes, offset: int) -> bytes:
    """The white space that the physical line of `offset` begins with."""
    start = line_start(data, offset)
    end = start
    while data[end : end + 1] in (b" ", b"\t", b"\f"):
        end += 1
    return data[start:end]


def indentation(data: bytes, offset: int) -> int:
    """The columns of indentation of the physical line of `offset`."""
    return width(leading(data, offset))


def width(space: bytes) -> int:
    """How many columns `space` takes; a form feed sets the count back to 0, as in Python."""
    return len(space.rpartition(b"\f")[2].expandtabs(8))
