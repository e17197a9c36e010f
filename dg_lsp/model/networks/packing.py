"""A checkpoint of the released kind in few bits on disk: written once, then loaded by mapping its files.

The folder has the source's small files, a dg_lsp.json with an entry "packed", and files packed-NNNNN.safetensors.
"packed" has the `bits` of the experts, and the `order` in which their matrices are stored: "cpu" is that of torch's
kernel for four bits on a CPU, "rows" that of the other ways in stacks.py. A tensor has the name that it has in the
source: as it is, in bf16, or, of a stack of experts, in parts called NAME.quanta and NAME.both ("cpu": see `Packed`),
or NAME.quanta, NAME.scale and NAME.zero ("rows"). The tensor `_PROBE` is a fixed matrix in the order "cpu", which
differs from one kind of CPU to another: where the kernel of this machine has another order, the folder is refused.
"""

import math
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from dg_lsp.checkpoints import CheckpointError, read_about
from dg_lsp.model.networks.quanta import Format, QuantizedError, quantise
from dg_lsp.model.networks.stacks import Packed, best_way
from dg_lsp.model.networks.streaming import Filling, files_of, tensors_in

ENTRY = "packed"  # of dg_lsp.json
_SHARD = 1 << 29  # bytes after which the next file is begun
_PARTS = {"cpu": ("quanta", "both"), "rows": ("quanta", "scale", "zero")}
_PROBE = "packing.probe"


def is_packed(path: Path) -> bool:
    """Return whether the checkpoint in `path` has been packed."""
    return path.is_dir() and ENTRY in read_about(path)


@dataclass(frozen=True, slots=True)
class Watch:
    """The calls that packing makes.

    read: with the bytes of the source that have been read. file: in other threads, with each file of the source while
    it is read, and with each file that has been written, so that none has to be read from the disk twice.
    """

    read: Callable[[int], object] = lambda _: None
    file: Callable[[Path], object] = lambda _: None


def write_packed(source: Path, to: Path, device: str, bits: int, watch: Watch = Watch()) -> dict[str, Any]:
    """Write the weights of the checkpoint in `source` to the folder `to` in `bits` bits, in the order for `device`.

    One stack of matrices and two files of the result are in memory at a time. Returns the entry for dg_lsp.json.

    Raises:
        CheckpointError: a tensor is missing, unknown, misshapen or not finite, or the device cannot compute so.
    """
    filling, read = Filling(source, device, bits), 0
    order = _order(filling, bits)
    with ThreadPoolExecutor(2) as beside:
        shards = _Shards(to, _probe() if order == "cpu" else {}, watch, beside)
        for file in files_of(source):
            watched = beside.submit(watch.file, file)
            for name, stored in tensors_in(file):
                value = filling.converted(name, stored)
                shards.take(_parts_of(name, value, order) if isinstance(value, Packed) else {name: value})
                read += 2 * math.prod(stored.get_shape())
                watch.read(read)
            watched.result()
        filling.check_complete()
        shards.finish()
    return {"bits": bits, "order": order}


class _Shards:
    """The files of a packed folder, each written by the threads `beside` when it is full, one after another.

    first: the tensors that the first file begins with.
    """

    def __init__(self, to: Path, first: dict[str, Tensor], watch: Watch, beside: Executor) -> None:
        self._to, self._tensors, self._watch, self._beside = to, first, watch, beside
        self._written = list[Future[None]]()

    def take(self, tensors: dict[str, Tensor]) -> None:
        """Take `tensors` by their names."""
        self._tensors |= {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        if sum(tensor.nbytes for tensor in self._tensors.values()) >= _SHARD:
            self._begin()

    def finish(self) -> None:
        """Write the tensors that are left, and wait until all files are written."""
        if self._tensors:
            self._begin()
        self._written[-1].result()

    def _begin(self) -> None:
        """Begin to write the tensors taken so far, once the file before is written."""
        if self._written:
            self._written[-1].result()
        file = self._to / f"packed-{len(self._written) + 1:05}.safetensors"
        self._written.append(self._beside.submit(self._write, self._tensors, file))
        self._tensors = {}

    def _write(self, tensors: dict[str, Tensor], file: Path) -> None:
        save_file(tensors, file)
        self._watch.file(file)


def load_packed(path: Path, device: str, bits: int) -> Any:
    """The network in the packed checkpoint in `path` on `device`; on a CPU its weights stay in the mapped files.

    bits: those of the settings; 16 means those of the folder.

    Raises:
        CheckpointError: it is packed in other bits or for another device, or a tensor is missing, unknown or misshapen.
    """
    stored_bits, order = packed_as(path)
    if bits not in (16, stored_bits):
        raise CheckpointError(
            f"{path} is packed in {stored_bits} bits, not {bits}; set weightBits to 16 or {stored_bits}"
        )
    filling = Filling(path, device, stored_bits)
    if order != _order(filling, stored_bits):
        other = "a CPU" if order == "cpu" else "a GPU"
        raise CheckpointError(f"{path} is packed for {other}; run dg-lsp pack again with --device {device}")
    for file in files_of(path):
        with safe_open(file, "pt") as opened:
            _take(filling, {key: opened.get_tensor(key) for key in opened.keys()}, order, stored_bits)  # noqa: SIM118
    filling.check_complete()
    return filling.finish()


def packed_as(path: Path) -> tuple[int, str]:
    """The bits and the order in which the checkpoint in `path` is packed.

    Raises:
        CheckpointError: its dg_lsp.json does not say so.
    """
    packed = read_about(path).get(ENTRY)
    bits, order = (packed.get("bits"), packed.get("order")) if isinstance(packed, dict) else (None, None)
    if type(bits) is not int or bits not in (4, 8) or order not in ("cpu", "rows"):
        raise CheckpointError(f"{path / 'dg_lsp.json'} does not say how it is packed; pack it again")
    return bits, order


def _take(filling: Filling, tensors: dict[str, Tensor], order: str, bits: int) -> None:
    """Put the `tensors` of one file into the network, each as it is."""
    if (probe := tensors.pop(_PROBE, None)) is not None and not torch.equal(probe, _probe()[_PROBE]):
        raise CheckpointError(
            "it was packed on a machine whose processor or torch orders matrices in another way; run dg-lsp pack here"
        )
    while tensors:
        key = next(iter(tensors))
        name, _, part = key.rpartition(".")
        if part not in _PARTS[order] or not name.rpartition(".")[0].endswith(".experts"):
            value = tensors.pop(key)
            filling.arrive(key, list(value.shape))
            if value.dtype != torch.bfloat16 and value.numel() > 1:
                raise filling.error(f"{key} is {value.dtype} instead of bfloat16")
            filling.keep(key, value.to(filling.device))
            continue
        try:
            parts = tuple(tensors.pop(f"{name}.{part}").to(filling.device) for part in _PARTS[order])
        except KeyError as error:
            raise filling.error(f"{error.args[0]} is missing") from error
        stack = _stack(filling, name, parts, bits)
        filling.arrive(name, [stack.count, stack.outputs, stack.inputs])
        filling.keep(name, stack)


def _stack(filling: Filling, name: str, parts: tuple[Tensor, ...], bits: int) -> Packed:
    """Return the stack of matrices called `name` from its stored `parts`, which must fit each other."""
    quanta, *scales = parts
    shape = scales[0].shape
    fits = all(part.dtype == torch.bfloat16 and part.shape[:3] == shape[:3] for part in scales)
    fits = fits and len(shape) == (4 if len(parts) == 2 else 3) and quanta.dtype == torch.uint8
    matrices, groups, outputs = shape[:3] if len(shape) >= 3 else (0, 0, 0)
    weights = quanta.numel() * 8 // bits
    inputs = weights // max(matrices * outputs, 1)
    if not fits or not groups or inputs % groups or matrices * outputs * inputs != weights:
        raise filling.error(f"the parts of {name} do not fit each other")
    if not all(bool(torch.isfinite(part).all()) for part in scales):
        raise filling.error(f"{name} has scales that are not finite")
    format_ = Format(bits, inputs // groups)
    try:
        format_.check(inputs)
        return Packed(parts, format_, best_way(filling.device, format_))
    except QuantizedError as error:
        raise filling.error(f"{name}: {error}") from error


def _order(filling: Filling, bits: int) -> str:
    """Return the order in which the device of `filling` reads matrices of `bits` bits."""
    try:
        way = best_way(filling.device, Format(bits, 32))
    except QuantizedError as error:
        raise filling.error(str(error)) from error
    return "cpu" if way == "cpu" else "rows"


def _parts_of(name: str, packed: Packed, order: str) -> dict[str, Tensor]:
    """Return the tensors of `packed`, which is called `name`, by their names in a file."""
    return {f"{name}.{part}": getattr(packed, part) for part in _PARTS[order]}


def _probe() -> dict[str, Tensor]:
    """Return a fixed matrix in the order of this machine's kernel."""
    weights = torch.arange(128 * 256, dtype=torch.float32).mul(7).remainder(251).view(1, 128, 256)
    return {_PROBE: Packed.of(quantise(weights, Format(4, 32)), "cpu").quanta}
