"""Matrices in few bits as this processor computes with them, in a file of the cache folder that a later start maps.

Making them of a GGUF file takes ten seconds, mapping them none. The file is of the safetensors format; its name says
which file it was made of and for which torch and processor, and its header how each matrix is ordered.
"""

import ctypes
import json
import logging
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dg_lsp.files.writing import make_whole
from dg_lsp.model.manifest import kept_matrices_of, matrices_file
from dg_lsp.model.networks.eight import Eight, multiplies_bytes
from dg_lsp.model.networks.quanta import Format
from dg_lsp.model.networks.stacks import Packed

_FORMAT = 1  # of these files; another one is made again
_LEAST = 64 << 20  # bytes of matrices below which they are made in a second
_SPARE = 4  # times the file's size that must be free on the disk
_ALIGNED = 64  # bytes
_TYPES = {torch.uint8: "U8", torch.int8: "I8", torch.bfloat16: "BF16", torch.float32: "F32"}
Matrix = Eight | Packed
_log = logging.getLogger(__name__)


def kept_matrices(source: Path, bits: int) -> dict[str, Matrix]:
    """Return the matrices made of the file `source` in `bits` earlier, by their names; {} if there are none.

    Their weights stay in the mapped file.
    """
    path = _file_of(source, bits)
    if not path.is_file():
        return {}
    try:
        with safe_open(path, "pt") as opened:
            tensors = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
            orders = {name: json.loads(text) for name, text in opened.metadata().items()}
        return {name: _matrix_of(order, _under(tensors, name)) for name, order in orders.items()}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        _log.warning("%s cannot be used and is made again: %s", path, error)
        return {}


def keep_matrices(source: Path, bits: int, matrices: Mapping[str, Matrix]) -> None:
    """Write `matrices`, made of the file `source` in `bits`, for later starts.

    Few small ones are left, and all where the disk has little space or this torch cannot map them.
    """
    path, parts = _file_of(source, bits), {name: _parts_of(matrix) for name, matrix in matrices.items()}
    if any(order is None for order, _ in parts.values()):
        return
    tensors = {f"{name}.{key}": some for name, (_, own) in parts.items() for key, some in own.items()}
    size = sum(some.nbytes for some in tensors.values())
    if size < _LEAST:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if shutil.disk_usage(path.parent).free < _SPARE * size:
            _log.warning("%s has too little space to keep %s as it is computed with", path.parent, source)
            return
        # A gigabyte each: those of the file before it changed, or in other bits, are not kept beside.
        for old in kept_matrices_of(source):
            old.unlink()
        orders = {name: json.dumps(order) for name, (order, _) in parts.items()}
        make_whole(path, lambda part: _write(part, tensors, orders))
    except OSError as error:
        _log.warning("%s cannot be written: %s", path, error)


def are_same(one: Matrix, other: Matrix) -> bool:
    """Return whether two matrices have the same numbers in the same order."""
    (order, parts), (others, found) = _parts_of(one), _parts_of(other)
    return (
        order == others
        and parts.keys() == found.keys()
        and all(torch.equal(parts[key], found[key]) for key in parts)
    )


def _file_of(source: Path, bits: int) -> Path:
    """Return the file for the matrices of `source` in `bits`; what it depends on is in its name."""
    stat = source.stat()
    about = (_FORMAT, bits, stat.st_size, stat.st_mtime_ns, torch.__version__, multiplies_bytes())
    return matrices_file(source, f"{about} {torch.backends.cpu.get_cpu_capability()}")


def _write(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
    """Write a file of the safetensors format with `tensors` and the texts `about` them; nothing is copied.

    https://huggingface.co/docs/safetensors describes the format.
    """
    header, at = dict[str, Any](__metadata__=dict(about)), 0
    for name, some in tensors.items():
        end = at + some.nbytes
        header[name] = {"dtype": _TYPES[some.dtype], "shape": [*some.shape], "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % _ALIGNED)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for some in tensors.values():
            stream.write((ctypes.c_char * some.nbytes).from_address(some.data_ptr()))


def _parts_of(matrix: Matrix) -> tuple[dict[str, Any] | None, dict[str, Tensor]]:
    """Return how `matrix` is ordered, None if it cannot be kept, and its tensors by name."""
    about: dict[str, Any]
    if isinstance(matrix, Packed):
        about = {"bits": matrix.format.bits, "group": matrix.format.group}
        return (about if matrix.way == "cpu" else None), {"quanta": matrix.quanta, "both": matrix.both}
    if not matrix.in_bytes:
        return {}, {"numbers": matrix.numbers, "scale": matrix.scale}
    if not maps_order():
        return None, {}
    order = torch.ops.mkldnn._get_mkldnn_serialized_md(matrix.numbers)
    about = {"order": bytes(order.tolist()).hex(), "shape": [matrix.inputs, matrix.outputs]}
    return about, {"numbers": _bytes_of(matrix.numbers), "scale": matrix.scale}


def _matrix_of(about: Mapping[str, Any], parts: Mapping[str, Tensor]) -> Matrix:
    """Return the matrix that `_parts_of` took apart."""
    if "bits" in about:
        return Packed((parts["quanta"], parts["both"]), Format(about["bits"], about["group"]), "cpu")
    if "order" not in about:
        return Eight(parts["numbers"], parts["scale"])
    return Eight(_in_order(parts["numbers"], about["order"], about["shape"]), parts["scale"])


def _under(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return those of `tensors` that belong to the matrix `name`, by the rest of their names."""
    return {key.removeprefix(f"{name}."): some for key, some in tensors.items() if key.startswith(f"{name}.")}


@lru_cache(maxsize=1)
def maps_order() -> bool:
    """Return whether this torch gives and takes the bytes of a matrix in oneDNN's order. The calls are private."""
    numbers = torch.arange(64 * 64, dtype=torch.int32).remainder(251).sub(125).to(torch.int8).view(64, 64)
    with suppress(AttributeError, OSError, RuntimeError, TypeError, ValueError):
        packed = torch.ops.onednn.qlinear_prepack(numbers, None)
        order = bytes(torch.ops.mkldnn._get_mkldnn_serialized_md(packed).tolist()).hex()
        scale = torch.ones(64, dtype=torch.bfloat16)
        again = Eight(_in_order(_bytes_of(packed).clone(), order, packed.shape), scale)
        states = torch.eye(64).bfloat16()
        return torch.equal(again.product(states), Eight(packed, scale).product(states))
    return False


def _bytes_of(packed: Tensor) -> Tensor:
    """Return the bytes of a matrix in oneDNN's order, uint8 [bytes], which is not copied and must outlive them."""
    size, at = torch.ops.mkldnn._nbytes(packed), torch.ops.mkldnn.data_ptr(packed)
    return torch.frombuffer((ctypes.c_uint8 * size).from_address(at), dtype=torch.uint8)


def _in_order(data: Tensor, order: str, shape: Iterable[int]) -> Tensor:
    """Return the matrix in oneDNN's `order` whose bytes are `data`, which is not copied.

    torch's stable interface for C makes such a tensor for compiled models:
    torch/csrc/inductor/aoti_torch/c/shim.h, aoti_torch_create_tensor_from_blob_v2.
    """
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    about, found = torch.frombuffer(bytearray.fromhex(order), dtype=torch.uint8), ctypes.c_void_p()
    inputs, outputs = shape
    failed = library.aoti_torch_create_tensor_from_blob_v2(
        ctypes.c_void_p(data.data_ptr()),
        ctypes.c_int64(2),
        (ctypes.c_int64 * 2)(inputs, outputs),
        (ctypes.c_int64 * 2)(outputs, 1),
        ctypes.c_int64(0),
        ctypes.c_int32(library.aoti_torch_dtype_int8()),
        ctypes.c_int32(library.aoti_torch_device_type_cpu()),
        ctypes.c_int32(0),
        ctypes.byref(found),
        ctypes.c_int32(library.aoti_torch_layout__mkldnn()),
        ctypes.c_void_p(about.data_ptr()),
        ctypes.c_int64(about.numel()),
    )
    if failed:
        raise RuntimeError("torch refuses a matrix in oneDNN's order")
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    made: Tensor = torch._C._aoti.alloc_tensor_by_stealing_from_void_ptr(capsule(found, None, None))
    made._bytes = data  # type: ignore[attr-defined]  # which it does not own
    return made
