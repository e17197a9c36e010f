"""Streaming: a checkpoint in bf16 that is quantised while its files are read, experts in few bits, the rest as it is.

One matrix is in memory at a time beside the result, so a checkpoint of 52 GB needs 17 GB and a little. Every tensor of
the files must be one of the network's, and every one of the network's must be in the files. Knows the names of
transformers' DiffusionGemma; knows no tokenizer and no manifest.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from accelerate import init_empty_weights
from safetensors import safe_open
from torch import Tensor
from transformers import DiffusionGemmaConfig

from dg_lsp.model.networks.attention import GROUPED
from dg_lsp.model.networks.gemma import DiffusionGemma
from dg_lsp.model.networks.loading import FETCH_AGAIN, SPREAD, CheckpointError, device_map
from dg_lsp.model.networks.norms import fuse_norms
from dg_lsp.model.networks.quantized import (
    GROUPS,
    Format,
    Packed,
    QuantizedError,
    QuantizedExperts,
    quantise_each,
)
from dg_lsp.model.networks.replay import enable
from dg_lsp.settings import GRAPHS

_VISION = ("vision_tower.", "embed_vision.")  # dropped: text needs none of it


def load_quantised(path: Path, device: str, bits: int) -> Any:
    """The network in `path` on `device`, its experts' weights rounded to `bits` bits, the rest in bf16.

    Raises:
        CheckpointError: a tensor is missing, unknown, misshapen or not finite, or the device cannot hold it so.
    """
    graphs, place = device.endswith(GRAPHS), device.removesuffix(GRAPHS)
    if "+" in place or place in SPREAD:
        raise CheckpointError(f"a network in {bits} bits stays on one device; use --device cuda, cpu or auto")
    chosen = torch.device(device_map(place)[""])
    network = empty_network(DiffusionGemmaConfig.from_pretrained(str(path), local_files_only=True))
    if (path / "generation_config.json").is_file():
        network.generation_config = type(network.generation_config).from_pretrained(str(path))
    filling = _Filling(network, bits, chosen, path)
    for name, stored in _tensors(path):
        filling.take(name, stored)
    filling.finish()
    fuse_norms(network)
    if graphs:
        enable(network)
    return network.to(chosen).eval()


def quantised_size(path: Path, bits: int) -> int:
    """The bytes that the network in `path` takes in `bits` bits."""
    total = 0.0
    for name, stored in _tensors(path):
        size = math.prod(stored.get_shape())
        # The smallest groups of 32 inputs have a scale and a zero of two bytes each.
        total += size * (bits / 8 + 4 / 32 if ".experts." in name else 2)
    return int(total)


def _tensors(path: Path) -> Iterator[tuple[str, Any]]:
    """The names and slices of the tensors in the files of `path` that text needs."""
    for file in sorted(path.glob("*.safetensors")):
        with safe_open(file, "pt") as opened:
            for name in opened.keys():  # noqa: SIM118 - it is no dict
                if not any(part in name for part in _VISION):
                    yield name, opened.get_slice(name)


def empty_network(config: Any) -> Any:
    """A network of `config` in bf16 on the meta device, encoder and decoder tied, without a vision tower."""
    with init_empty_weights(include_buffers=False):
        network = DiffusionGemma._from_config(
            config, dtype=torch.bfloat16, attn_implementation=GROUPED, experts_implementation="grouped_mm"
        )
    network.tie_weights()  # which the context has undone
    network.model.encoder.vision_tower = network.model.encoder.embed_vision = None
    return network


class _Filling:
    """A network whose tensors arrive one by one."""

    def __init__(self, network: Any, bits: int, device: torch.device, path: Path) -> None:
        self._network, self._bits, self._device, self._path = network, bits, device, path
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
            self._packed.setdefault(parent, {})[own] = self._pack(name, stored)
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

    def _pack(self, name: str, stored: Any) -> Packed:
        """Quantise one expert after the other on the device; none but its own numbers stay."""
        count, *_, inputs = stored.get_shape()
        format_ = Format(self._bits, next((group for group in GROUPS if inputs % group == 0), GROUPS[-1]))
        weights = (self._checked(name, stored[expert]).to(self._device) for expert in range(count))
        try:
            return Packed.of(quantise_each(weights, format_))
        except QuantizedError as error:
            raise self._error(f"{name}: {error}") from error

    def _checked(self, name: str, value: Tensor) -> Tensor:
        if not bool(torch.isfinite(value).all()):
            raise self._error(f"{name} holds numbers that are not finite")
        return value

    def _error(self, why: str) -> CheckpointError:
        return CheckpointError(f"the weights of {self._path} do not fit: {why}; {FETCH_AGAIN}")
