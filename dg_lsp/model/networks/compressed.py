"""DiffusionGemma of compressed-tensors checkpoints, each expert a matrix of its own: INT8 and NVFP4.

Experts in INT8 keep their numbers, with scales rounded to bf16; experts in NVFP4 stay as the file has
them (`Float4`), since whole numbers in groups of 32 cannot hold its fp4 numbers in groups of 16, and eight bits would
take twice the memory. Other matrices become bf16. With four bits asked for, all experts are rounded to whole numbers of
four bits, for which a CPU has a fast kernel. Activations are not quantised, whatever the scheme says of them.

Names and layouts are those that public dumps of such files show; nobody here has loaded a real one. Every tensor of the
files must be one of the network's, and the other way round.
"""

import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import DiffusionGemmaConfig

from dg_lsp.checkpoints import CheckpointError, read_json
from dg_lsp.model.networks.quanta import GROUPS, Format, Quanta, size_in
from dg_lsp.model.networks.stacks import Float4, Packed, halves_of
from dg_lsp.model.networks.streaming import VISION, Filling, tensors_of

_ENTRY = "quantization_config"
_INSTEAD = (
    "get its bf16 version and set weightBits to 8 or 4, or one in int-quantized or nvfp4-pack-quantized"
)
_INT8, _NVFP4 = "int-quantized", "nvfp4-pack-quantized"
# The values that each option of a format's weights may have.
_WEIGHTS: dict[str, dict[str, tuple[Any, ...]]] = {
    _INT8: {"num_bits": (8,), "type": ("int",), "symmetric": (True,), "strategy": ("channel", "group")},
    _NVFP4: {
        "num_bits": (4,),
        "type": ("float",),
        "symmetric": (True,),
        "strategy": ("tensor_group",),
        "group_size": (16,),
    },
}
_OPTIONAL: dict[str, tuple[Any, ...]] = {"actorder": (None, False), "dynamic": (None, False)}
_UNUSED = ("kv_cache_scheme", "sparsity_config", "transform_config")  # which must be empty
_SCALE, _GLOBAL, _INPUT = ".weight_scale", ".weight_global_scale", ".input_global_scale"
_EXPERTS = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}
_PLAIN = ("BF16", "F16", "F32")


@dataclass(frozen=True, slots=True)
class _Scheme:
    """The storage of matrices. group: inputs that share a scale; 0 are all of them."""

    format: str
    group: int

    @property
    def numbers(self) -> str:
        """The suffix of the tensor with a matrix's numbers."""
        return ".weight_packed" if self.format == _NVFP4 else ".weight"


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A stored matrix: int8 numbers, or fp4 ones in pairs; scales [outputs, groups]; divisor fp32 [outputs]."""

    numbers: Tensor
    scale: Tensor
    divisor: Tensor

    def dequantised(self) -> Tensor:
        """The weights in fp32 [outputs, inputs], exactly as the format defines them."""
        numbers = (
            halves_of(self.numbers).float() if self.numbers.dtype == torch.uint8 else self.numbers.float()
        )
        scaled = numbers.unflatten(1, (self.scale.shape[1], -1)) * self.scale.float()[:, :, None]
        return scaled.flatten(1) / self.divisor[:, None]

    @classmethod
    def joined(cls, parts: list["_Matrix"]) -> "_Matrix":
        """The outputs of all `parts` in turn."""
        return cls(
            torch.cat([part.numbers for part in parts]),
            torch.cat([part.scale for part in parts]),
            torch.cat([part.divisor for part in parts]),
        )


def is_compressed(path: Path) -> bool:
    """Return whether the checkpoint in `path` says that its weights are quantised, in whatever way."""
    return (path / "config.json").is_file() and bool(read_json(path / "config.json").get(_ENTRY))


def loaded_size(path: Path, bits: int) -> int:
    """The bytes that `load_compressed` takes for the network in `path`."""
    total = 0.0
    for name, stored in tensors_of(path):
        shape, kind = stored.get_shape(), stored.get_dtype()
        size = math.prod(shape)
        weights = 2 * size if kind == "U8" else size
        if ".experts." not in name:
            total += 2 * weights
        elif bits == 4:
            total += size_in(4, weights)
        elif kind == "U8":
            total += size + 4 * shape[0]  # a divisor for each output
        else:
            total += size_in(8, size) if kind == "I8" else size
    return int(total)


def load_compressed(path: Path, device: str, bits: int) -> Any:
    """The network in `path` on `device`; 4 `bits` round its experts, 8 and 16 leave them as they are.

    Raises:
        CheckpointError: its scheme is not understood, a tensor is missing, unknown, misshapen or cut short, a scale is
            zero or not finite, or the device cannot hold it so.
    """
    scheme = scheme_of(path)
    config = DiffusionGemmaConfig.from_pretrained(str(path), local_files_only=True)
    del config.quantization_config  # transformers would look for a package that reads it
    filling = Filling(path, device, bits, config)
    try:
        with ExitStack() as opened:
            files = [
                opened.enter_context(safe_open(file, "pt")) for file in sorted(path.glob("*.safetensors"))
            ]
            where = {name: file for file in files for name in file.keys()}  # noqa: SIM118 - it is no dict
            kept = {name: file for name, file in where.items() if not any(part in name for part in VISION)}
            _Reading(filling, scheme, kept).fill(bits)
    except (SafetensorError, OSError) as error:
        raise filling.error(f"a file is cut short or damaged ({error})") from error
    return filling.finish()


def scheme_of(path: Path) -> _Scheme:
    """Return the scheme by which the checkpoint in `path` stores matrices.

    Raises:
        CheckpointError: its entry quantization_config is not understood.
    """

    def refused(what: str) -> CheckpointError:
        return CheckpointError(f"{path / 'config.json'}: {what} is not understood; {_INSTEAD}")

    entry = read_json(path / "config.json")[_ENTRY]
    if not isinstance(entry, dict) or (method := entry.get("quant_method")) != "compressed-tensors":
        raise refused(f"{_ENTRY}.quant_method {method if isinstance(entry, dict) else entry}")
    format_, groups = entry.get("format"), entry.get("config_groups")
    if format_ not in _WEIGHTS:
        raise refused(f"{_ENTRY}.format {format_}")
    if (status := entry.get("quantization_status", "compressed")) != "compressed":
        raise refused(f"{_ENTRY}.quantization_status {status}")
    if used := [name for name in _UNUSED if entry.get(name)]:
        raise refused(f"{_ENTRY}.{used[0]}")
    if not isinstance(groups, dict) or len(groups) != 1:
        raise refused(f"{_ENTRY}.config_groups with other than one group")
    (name, group), *_ = groups.items()
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict) or group.get("format") not in (None, format_):
        raise refused(f"{_ENTRY}.config_groups.{name}")
    for option, values in (_WEIGHTS[format_] | _OPTIONAL).items():
        if weights.get(option) not in values:
            raise refused(f"{_ENTRY}: {option} {weights.get(option)} of weights in {format_}")
    if weights["strategy"] == "channel":
        return _Scheme(format_, 0)
    size, step = weights.get("group_size"), GROUPS[-1] if format_ == _INT8 else 1
    if not isinstance(size, int) or size <= 0 or size % step:
        raise refused(f"{_ENTRY}: group_size {size} of weights, which is no multiple of {step},")
    return _Scheme(format_, size)


class _Reading:
    """The tensors of a checkpoint that have not been read, each with its file, and the network that they go into."""

    def __init__(self, filling: Filling, scheme: _Scheme, where: dict[str, Any]) -> None:
        self._filling, self._scheme, self._where = filling, scheme, where

    def fill(self, bits: int) -> None:
        """Read every tensor: matrices that are quantised first, then the others."""
        for name, shape in self._filling.awaited().items():
            parent, _, own = name.rpartition(".")
            if parent.endswith(".experts"):
                self._filling.arrive(name, shape)
                self._filling.keep(name, self._stack(name, shape, bits))
            elif own == "weight" and {parent + _SCALE, parent + ".weight_packed"} & self._where.keys():
                self._filling.arrive(name, shape)
                weights = self._matrix(parent, (shape[0], shape[1])).dequantised()
                self._filling.keep(name, weights.to(self._filling.device, torch.bfloat16))
        for name, file in self._where.items():
            stored = file.get_slice(name)
            if stored.get_dtype() not in _PLAIN:
                # Without its scale a matrix would be read as whole numbers.
                scale = name.removesuffix(self._scheme.numbers) + _SCALE
                raise self._filling.error(f"{name} is {stored.get_dtype()}, and {scale} is missing")
            self._filling.keep(name, self._filling.converted(name, stored))

    def _stack(self, name: str, shape: list[int], bits: int) -> Packed | Float4:
        """Return the stack of experts called `name`."""
        count, outputs, inputs = shape
        experts, _, own = name.rpartition(".")
        each = (outputs // len(_EXPERTS[own]), inputs)

        def matrix(number: int) -> _Matrix:
            return _Matrix.joined(
                [self._matrix(f"{experts}.{number}.{part}", each) for part in _EXPERTS[own]]
            )

        if bits == 4:
            return self._filling.pack(name, shape, lambda number: matrix(number).dequantised())
        matrices = map(matrix, range(count))
        if self._scheme.format == _NVFP4:
            some, device = [*matrices], self._filling.device
            return Float4(
                torch.stack([matrix.numbers for matrix in some]).to(device),
                torch.stack([matrix.scale for matrix in some]).to(device),
                torch.stack([matrix.divisor for matrix in some]).to(device),
            )
        group = next((size for size in GROUPS if (self._scheme.group or inputs) % size == 0), 0)
        if not group:
            raise self._filling.error(
                f"{name} has {inputs} inputs, which do not divide into groups of {GROUPS[-1]}"
            )
        return Packed.stacked(Packed.of(self._eight(one, group)) for one in matrices)

    def _eight(self, matrix: _Matrix, group: int) -> Quanta:
        """Return a matrix of int8 numbers as numbers around 128 in groups of `group` inputs."""
        repeated = matrix.numbers.shape[1] // group // matrix.scale.shape[1]
        scale = matrix.scale.bfloat16().repeat_interleave(repeated, 1)[None].to(self._filling.device)
        numbers = matrix.numbers.to(self._filling.device, torch.int16).add_(128).to(torch.uint8)[None]
        return Quanta(numbers, scale, torch.zeros_like(scale), Format(8, group))

    def _matrix(self, name: str, shape: tuple[int, int]) -> _Matrix:
        """Read the matrix called `name` of `shape` (outputs, inputs), and check its scales."""
        outputs, inputs = shape
        groups = inputs // (self._scheme.group or inputs)
        if inputs != groups * (self._scheme.group or inputs):
            raise self._filling.error(
                f"{name} has {inputs} inputs, no multiple of its groups' {self._scheme.group}"
            )
        if self._scheme.format == _INT8:
            numbers = self._tensor(name + self._scheme.numbers, [outputs, inputs], torch.int8)
            scale = self._tensor(name + _SCALE, [outputs, groups])
            divisor = torch.ones(outputs)
        else:
            numbers = self._tensor(name + self._scheme.numbers, [outputs, inputs // 2], torch.uint8)
            scale = self._tensor(name + _SCALE, [outputs, groups], torch.float8_e4m3fn)
            divisor = self._whole(name + _GLOBAL).expand(outputs)
            if name + _INPUT in self._where:
                self._whole(name + _INPUT)
        lost = (scale.float() == 0) | ~torch.isfinite(scale.float())
        in_groups = (halves_of(numbers) if numbers.dtype == torch.uint8 else numbers).unflatten(
            1, (groups, -1)
        )
        if bool((lost & ((in_groups != 0).any(2) | ~torch.isfinite(scale.float()))).any()):
            raise self._filling.error(f"{name}{_SCALE} holds scales that are zero or not finite")
        return _Matrix(numbers, scale, divisor)

    def _whole(self, name: str) -> Tensor:
        """Read the scale called `name` of a whole matrix, in fp32."""
        scale = self._read(name)
        if scale.numel() != 1 or not bool(torch.isfinite(scale.float()).all() and (scale.float() > 0).all()):
            raise self._filling.error(f"{name} is not one positive number")
        return scale.float().view(1)

    def _tensor(self, name: str, shape: list[int], kind: torch.dtype | None = None) -> Tensor:
        """Read the tensor called `name`, of the type `kind`, or of bf16, fp16 or fp32."""
        tensor = self._read(name)
        kinds = (kind,) if kind is not None else (torch.bfloat16, torch.float16, torch.float32)
        if list(tensor.shape) != shape or tensor.dtype not in kinds:
            raise self._filling.error(
                f"{name} is {tensor.dtype} {list(tensor.shape)} instead of {kinds[0]} {shape}"
            )
        return tensor

    def _read(self, name: str) -> Tensor:
        if name not in self._where:
            raise self._filling.error(f"{name} is missing")
        tensor: Tensor = self._where.pop(name).get_tensor(name)
        return tensor
