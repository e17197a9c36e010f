"""GGUF files: the header, and the rows of tensors, read where they are needed. Knows the format; knows no network.

The format is described in docs/gguf.md of ggml. The package gguf has a reader too, which makes an object of each of the
150,000 texts of a vocabulary, so that opening a file takes seconds.
"""

import math
import os
import stat
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from gguf import GGMLQuantizationType
from torch import Tensor

from dg_lsp.checkpoints import FETCH_AGAIN, CheckpointError
from dg_lsp.model.networks.blocks import check, row_bytes, weights_of
from dg_lsp.model.networks.quanta import QuantizedError

GGUF = ".gguf"
_VERSIONS = (2, 3)
_ALIGNMENT, _ARCHITECTURE = "general.alignment", "general.architecture"
_COUNTS = 16  # the byte at which the number of entries is, after the version and the number of tensors
# Numbers in a header, by their type; texts and lists have types of their own.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_AT_ONCE = 1 << 22  # weights that are read at once
_MULTIPLE = 64  # rows that are packed together
# Bytes of a header, values in it with the items of lists, and lists in each other, beyond which it is damaged. A
# vocabulary of 262,144 tokens takes 1.5 million values.
_BYTES, _VALUES, _DEPTH = 1 << 28, 1 << 23, 4
_GREATEST = 1 << 20  # bytes to whose multiples tensors are moved
_LENGTH = struct.Struct("<Q")  # of a text; a vocabulary has hundreds of thousands
_CUT = "its header is cut short"
_UNREADABLE = (OSError, ValueError, struct.error, OverflowError, MemoryError)


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor in a GGUF file: rows of blocks.

    shape: as torch counts, so that the last number is that of the inputs. at: the byte that it begins at.
    """

    name: str
    kind: GGMLQuantizationType
    shape: tuple[int, ...]
    at: int

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return math.prod(self.shape[:-1])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return row_bytes(self.kind, self.shape[-1])


@dataclass(frozen=True, slots=True)
class GgufFile:
    """An open GGUF file. fields: the entries of its header; lists of texts are lists."""

    path: Path
    fields: Mapping[str, Any]
    tensors: Mapping[str, Stored]
    stream: BinaryIO

    @property
    def architecture(self) -> str:
        """The kind of network, as the format names it."""
        return str(self.fields.get(_ARCHITECTURE))

    def entries(self, known: Collection[str], needed: Collection[str]) -> dict[str, Any]:
        """The entries of the header that begin with the architecture, by their names after it.

        Raises:
            CheckpointError: one is none of `known`, or one of `needed` is missing.
        """
        kind, own = self.architecture, self.entries_of_kind()
        if unknown := sorted(own.keys() - {*known}):
            raise self.error(f"its header has {kind}.{unknown[0]}, which is not understood")
        if missing := sorted(name for name in needed if own.get(name) is None):
            raise self.error(f"its header has no {kind}.{missing[0]}")
        return own

    def entries_of_kind(self) -> dict[str, Any]:
        """The entries of the header that begin with the architecture, by their names after it."""
        kind = f"{self.architecture}."
        return {n.removeprefix(kind): value for n, value in self.fields.items() if n.startswith(kind)}

    def read(self, stored: Stored, first: int = 0, last: int | None = None) -> Tensor:
        """The rows from `first` up to `last` of a tensor, uint8 [rows, bytes].

        Raises:
            CheckpointError: the file has become shorter.
        """
        last = stored.rows if last is None else last
        size, count = stored.row_bytes, last - first
        data = bytearray(size * count)
        view, done = memoryview(data), 0
        while done < len(data):  # a system call reads 2 GB at most
            got = os.preadv(self.stream.fileno(), [view[done:]], stored.at + first * size + done)
            if not got:
                raise self.error(f"{stored.name} is cut short")
            done += got
        return torch.frombuffer(data, dtype=torch.uint8).view(count, size)

    def pieces(self, stored: Stored, first: int = 0, last: int | None = None) -> Iterator[Tensor]:
        """The rows from `first` up to `last` of a tensor as `read` gives them, checked, some at a time.

        Raises:
            CheckpointError: a scale is not finite, or lost.
        """
        last = stored.rows if last is None else last
        step = max(_AT_ONCE // stored.shape[-1] // _MULTIPLE, 1) * _MULTIPLE
        for begin in range(first, last, step):
            piece = self.read(stored, begin, min(begin + step, last))
            try:
                check(stored.kind, piece)
            except QuantizedError as error:
                raise self.error(f"{stored.name} {error}") from error
            yield piece

    def weights(self, stored: Stored, dtype: torch.dtype) -> Tensor:
        """A whole tensor in `dtype`, its blocks dequantised."""
        whole = torch.empty(stored.rows, stored.shape[-1], dtype=dtype)
        first = 0
        for piece in self.pieces(stored):
            whole[first : (first := first + len(piece))] = weights_of(stored.kind, piece)
        return whole.view(stored.shape)

    def error(self, why: str) -> CheckpointError:
        """The refusal of this file, for the reason `why`."""
        return CheckpointError(f"{self.path} cannot be loaded: {why}; {FETCH_AGAIN}")


def read_gguf(path: Path) -> GgufFile:
    """Open the GGUF file `path` and read its header.

    Raises:
        CheckpointError: it is damaged, cut short, or holds blocks that are not read here.
    """
    try:
        stream = path.open("rb")
        reader = _Reader(stream)
        if stream.read(4) != b"GGUF" or reader.number("I") not in _VERSIONS:
            raise ValueError(f"it does not begin with GGUF and a version of {_VERSIONS}")
        count, entries = reader.number("Q"), reader.number("Q")
        fields = dict[str, Any]()
        for name, value in reader.entries(entries):
            if name in fields:
                raise ValueError(f"its header has {name} twice")
            fields[name] = value
        found = [reader.tensor() for _ in range(reader.expected(count))]
        alignment = fields.get(_ALIGNMENT, 32)
        if type(alignment) is not int or not 0 < alignment <= _GREATEST:
            raise ValueError(f"its {_ALIGNMENT} is no number from 1 to {_GREATEST:,}")
    except _UNREADABLE as error:
        raise CheckpointError(f"{path} is no GGUF file that can be read ({error}); {FETCH_AGAIN}") from error
    start = -(-stream.tell() // alignment) * alignment
    tensors = {one.name: Stored(one.name, one.kind, one.shape, start + one.at) for one in found}
    opened = GgufFile(path, fields, tensors, stream)
    _check(opened, len(found))
    return opened


def architecture_of(path: Path) -> str:
    """The kind of network in the GGUF file `path`, for which its header is read up to that entry; "" without one."""
    try:
        with path.open("rb") as stream:
            reader, _ = _Reader(stream), stream.seek(_COUNTS)
            for name, value in reader.entries(reader.number("Q")):
                if name == _ARCHITECTURE:
                    return str(value)
    except _UNREADABLE:
        pass  # the loader says why
    return ""


def _check(opened: GgufFile, count: int) -> None:
    """Raise CheckpointError if a tensor is there twice, has unknown blocks, or holds bytes of another or none."""
    if len(opened.tensors) != count:
        raise opened.error(f"two of its {count} tensors have the same name")
    size, ends = opened.path.stat().st_size, 0
    for stored in sorted(opened.tensors.values(), key=lambda stored: stored.at):
        try:
            end = stored.at + stored.rows * stored.row_bytes
        except QuantizedError as error:
            raise opened.error(f"{stored.name} {error}") from error
        if end > size:
            raise opened.error(f"{stored.name} is cut short: it ends at byte {end} of {size}")
        if stored.at < ends:
            raise opened.error(f"{stored.name} begins before another tensor ends")
        ends = end


class _Reader:
    """The parts of a header, one after another, up to bounds that no sound one has."""

    def __init__(self, stream: BinaryIO) -> None:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no regular file")
        self._stream = stream
        self._left, self._values = min(found.st_size, _BYTES), _VALUES

    def entries(self, count: int) -> Iterator[tuple[str, Any]]:
        """Yield the name and the value of each of `count` entries."""
        for _ in range(self.expected(count)):
            yield self.text(), self.value(self.number("I"))

    def expected(self, count: int) -> int:
        """Return `count`, the number of values that come next."""
        self._values -= count
        if min(self._values, self._left - count) < 0:
            raise ValueError(f"its header says that {count} values follow, more than it has room for")
        return count

    def number(self, code: str) -> Any:
        """A number of the type `code` of struct."""
        (found,) = struct.unpack("<" + code, self._bytes(struct.calcsize("<" + code)))
        return found

    def text(self) -> str:
        """A text in UTF-8, after its length."""
        return self.texts(1)[0]

    def texts(self, count: int) -> list[str]:
        """The next `count` texts: a vocabulary has hundreds of thousands, so no other call is made for one of them."""
        read, (unpack, size), left, found = (
            self._stream.read,
            (_LENGTH.unpack, _LENGTH.size),
            self._left,
            list[str](),
        )
        for _ in range(count):
            head = read(size)
            length = unpack(head)[0] if len(head) == size else left
            left -= size + length
            text = read(length) if left >= 0 else b""
            if len(text) != length:
                raise ValueError(_CUT)
            found.append(text.decode("utf-8"))
        self._left = left
        return found

    def value(self, kind: int, depth: int = 0) -> Any:
        """A value of the type with the number `kind`, which is in `depth` lists."""
        if kind == _TEXT:
            return self.text()
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind != _LIST or depth >= _DEPTH:
            raise ValueError(f"its header has a value of the unknown type {kind}, or lists in lists")
        of, count = self.number("I"), self.expected(self.number("Q"))
        if of in _NUMBERS:
            code = f"<{count}{_NUMBERS[of]}"
            return list(struct.unpack(code, self._bytes(struct.calcsize(code))))
        return self.texts(count) if of == _TEXT else [self.value(of, depth + 1) for _ in range(count)]

    def tensor(self) -> Stored:
        """A tensor's entry; its place is counted from the first tensor."""
        name, dimensions = self.text(), self.number("I")
        if not 1 <= dimensions <= 4:
            raise ValueError(f"{name} has {dimensions} dimensions")
        shape = tuple(self.number("Q") for _ in range(dimensions))
        if 0 in shape:
            raise ValueError(f"{name} holds nothing")
        return Stored(name, GGMLQuantizationType(self.number("I")), shape[::-1], self.number("Q"))

    def _bytes(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        self._left -= count
        data = self._stream.read(count) if self._left >= 0 else b""
        if len(data) != count:
            raise ValueError(_CUT)
        return data
