"""Streaming: a checkpoint in bf16 that is quantised while its files are read, experts in few bits, the rest as it is.

One matrix is in memory at a time beside the result, so a checkpoint of 52 GB needs 17 GB and a little. Every tensor of
the files must be one of the network's, and every one of the network's must be in the files. Knows the names of
transformers' DiffusionGemma; knows no tokenizer and no manifest.
"""

from pathlib import Path
from typing import Any

import torch
from accelerate import init_empty_weights
from safetensors import safe_open
from torch import Tensor
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

from dg_lsp.model.networks.attention import GROUPED
from dg_lsp.model.networks.loading import FETCH_AGAIN, CheckpointError
from dg_lsp.model.networks.norms import fuse_norms
from dg_lsp.model.networks.quantized import (
    Format,
    Packed,
    Quanta,
    QuantizedError,
    QuantizedExperts,
    quantise,
)

_VISION = ("vision_tower.", "embed_vision.")  # dropped: text needs none of it


def load_quantised(path: Path, formats: tuple[Format, Format], device: torch.device) -> Any:
    """The network in `path` on `device`; its experts' matrices (gate and up, down) in `formats`, the rest in bf16.

    Raises:
        CheckpointError: a tensor is missing, unknown, misshapen or not finite, or torch lacks the operations.
    """
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise CheckpointError(f"{path} has no *.safetensors file; {FETCH_AGAIN}")
    network = empty_network(DiffusionGemmaConfig.from_pretrained(str(path), local_files_only=True))
    filling = _Filling(network, formats, device, path)
    for file in files:
        with safe_open(file, "pt") as opened:
            for name in opened.keys():  # noqa: SIM118 - it is no dict
                if not any(part in name for part in _VISION):
                    filling.take(name, opened.get_slice(name))
    filling.finish()
    fuse_norms(network)
    return network.to(device).eval()


def empty_network(config: Any) -> Any:
    """A network of `config` in bf16 on the meta device, encoder and decoder tied, without a vision tower."""
    with init_empty_weights(include_buffers=False):
        network = DiffusionGemmaForBlockDiffusion._from_config(
            config, dtype=torch.bfloat16, attn_implementation=GROUPED, experts_implementation="grouped_mm"
        )
    network.tie_weights()  # which the context has undone
    network.model.encoder.vision_tower = network.model.encoder.embed_vision = None
    return network


class _Filling:
    """A network whose tensors arrive one by one."""

    def __init__(
        self, network: Any, formats: tuple[Format, Format], device: torch.device, path: Path
    ) -> None:
        self._network, self._device, self._path = network, device, path
        self._formats = dict(zip(("gate_up_proj", "down_proj"), formats, strict=True))
        self._known = dict(network.named_parameters(remove_duplicate=False))
        self._scalars = {name: b for name, b in network.named_buffers() if name.endswith("layer_scalar")}
        # Of twins that are one weight, the file has the decoder's.
        first = {
            self._known[name]: name for name in sorted(self._known, reverse=True) if "decoder" not in name
        }
        first |= {self._known[name]: name for name in sorted(self._known, reverse=True) if "decoder" in name}
        self._left = {*first.values(), *self._scalars}
        self._made: dict[Tensor, torch.nn.Parameter] = {}
        self._packed: dict[str, dict[str, Packed]] = {}

    def take(self, name: str, stored: Any) -> None:
        """Set the tensor called `name` from its slice of a file."""
        where = self._known.get(name, self._scalars.get(name))
        if where is None:
            raise self._error(f"{name} is no tensor of this network")
        if list(where.shape) != stored.get_shape():
            raise self._error(f"{name} has the shape {stored.get_shape()} instead of {list(where.shape)}")
        parent, _, own = name.rpartition(".")
        # A tied weight is known by the name of either twin.
        names = {n for n in self._left if n == name or self._known.get(n) is where}
        self._left -= names
        if parent.endswith(".experts"):
            self._packed.setdefault(parent, {})[own] = self._pack(name, stored, self._formats[own])
        elif name in self._scalars:
            where.copy_(self._checked(name, stored[:]))
        else:
            value = self._checked(name, stored[:]).to(self._device, torch.bfloat16, copy=True)
            self._made[where] = torch.nn.Parameter(value, False)

    def finish(self) -> None:
        """Put everything in its place.

        Raises:
            CheckpointError: a tensor has not arrived.
        """
        if self._left:
            some = ", ".join(sorted(self._left)[:3])
            raise self._error(f"{len(self._left)} tensors are missing, such as {some}")
        encoder = self._network.model.encoder.language_model
        for parent, packed in self._packed.items():
            layer = int(parent.split(".")[-2])
            ours, twin = self._network.model.decoder.layers[layer], encoder.layers[layer]
            act = ours.experts.act_fn
            ours.experts = twin.experts = QuantizedExperts(packed["gate_up_proj"], packed["down_proj"], act)
        for module in self._network.modules():
            for name, old in module._parameters.items():
                if old is not None:
                    module._parameters[name] = self._made[old]

    def _pack(self, name: str, stored: Any, format_: Format) -> Packed:
        """Quantise one expert after the other on the device; none but its own numbers stay."""
        parts = []
        try:
            for expert in range(stored.get_shape()[0]):
                weight = self._checked(name, stored[expert]).to(self._device)
                parts.append(quantise(weight[None], format_))
            numbers, scale, zero = (
                torch.cat([getattr(part, field) for part in parts]) for field in ("numbers", "scale", "zero")
            )
            parts.clear()
            return Packed.of(Quanta(numbers, scale, zero, format_))
        except QuantizedError as error:
            raise self._error(f"{name}: {error}") from error

    def _checked(self, name: str, value: Tensor) -> Tensor:
        if not bool(torch.isfinite(value).all()):
            raise self._error(f"{name} holds numbers that are not finite")
        return value

    def _error(self, why: str) -> CheckpointError:
        return CheckpointError(f"the weights of {self._path} do not fit: {why}; {FETCH_AGAIN}")
