"""Streaming: a checkpoint in bf16 that is quantised while its files are read, experts in few bits, the rest as it is.

One matrix is in memory at a time beside the result, so a checkpoint of 52 GB needs 17 GB and a little. Every tensor of
the files must be one of the network's, and every one of the network's must be in the files. Knows the names of
transformers' DiffusionGemma; knows no tokenizer and no manifest.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from transformers import DiffusionGemmaConfig

from dg_lsp.model.networks.attention import GROUPED
from dg_lsp.model.networks.gemma import DiffusionGemma
from dg_lsp.model.networks.lean import without_weights
from dg_lsp.model.networks.loading import FETCH_AGAIN, SPREAD, CheckpointError, device_map
from dg_lsp.model.networks.norms import fuse_norms
from dg_lsp.model.networks.quanta import GROUPS, Format, QuantizedError, quantise, size_in
from dg_lsp.model.networks.quantized import QuantizedExperts
from dg_lsp.model.networks.replay import enable
from dg_lsp.model.networks.stacks import Float4, Packed
from dg_lsp.settings import GRAPHS

VISION = ("vision_tower.", "embed_vision.")  # dropped: text needs none of it


def load_quantised(path: Path, device: str, bits: int) -> Any:
    """The network in `path` on `device`, its experts' weights rounded to `bits` bits, the rest in bf16.

    Raises:
        CheckpointError: a tensor is missing, unknown, misshapen or not finite, or the device cannot hold it so.
    """
    filling = Filling(path, device, bits)
    for name, stored in tensors_of(path):
        value = filling.converted(name, stored)
        # A mapped tensor is copied: the network does not depend on the file.
        filling.keep(name, value if isinstance(value, Packed) else value.clone())
    return filling.finish()


def quantised_size(path: Path, bits: int) -> int:
    """The bytes that the network in `path` takes in `bits` bits."""
    total = 0.0
    for name, stored in tensors_of(path):
        size = math.prod(stored.get_shape())
        total += size_in(bits, size) if ".experts." in name and bits < 16 else 2 * size
    return int(total)


def tensors_of(path: Path) -> Iterator[tuple[str, Any]]:
    """The names and slices of the tensors in the files of `path` that text needs."""
    for file in files_of(path):
        yield from tensors_in(file)


def files_of(path: Path) -> list[Path]:
    """The files of `path` that have tensors."""
    return sorted(path.glob("*.safetensors"))


def tensors_in(file: Path) -> Iterator[tuple[str, Any]]:
    """The names and slices of the tensors in `file` that text needs."""
    with safe_open(file, "pt") as opened:
        for name in opened.keys():  # noqa: SIM118 - it is no dict
            if not any(part in name for part in VISION):
                yield name, opened.get_slice(name)


def empty_network(config: Any) -> Any:
    """A network of `config` in bf16 on the meta device, encoder and decoder tied, without a vision tower."""
    with without_weights():
        network = DiffusionGemma._from_config(
            config, dtype=torch.bfloat16, attn_implementation=GROUPED, experts_implementation="grouped_mm"
        )
    network.tie_weights()  # which the context has undone
    network.model.encoder.vision_tower = network.model.encoder.embed_vision = None
    return network


class Filling:
    """A network of the released kind whose tensors arrive one by one.

    Raises CheckpointError, also in its methods, where a tensor or the device does not fit.
    """

    def __init__(self, path: Path, device: str, bits: int, config: Any = None) -> None:
        """Make an empty network for the checkpoint in `path`; its configuration is `config`, or lies there."""
        self._graphs, place = device.endswith(GRAPHS), device.removesuffix(GRAPHS)
        if "+" in place or place in SPREAD:
            raise CheckpointError(
                f"a network in {bits} bits stays on one device; use --device cuda, cpu or auto"
            )
        self.device, self._bits, self._path = torch.device(device_map(place)[""]), bits, path
        network = empty_network(
            config or DiffusionGemmaConfig.from_pretrained(str(path), local_files_only=True)
        )
        if (path / "generation_config.json").is_file():
            network.generation_config = type(network.generation_config).from_pretrained(str(path))
        self._network = network
        self._known = dict(network.named_parameters(remove_duplicate=False))
        self._scalars = {name: b for name, b in network.named_buffers() if name.endswith("layer_scalar")}
        # Of twins that are one weight, the file has the decoder's.
        first = {
            self._known[name]: name for name in sorted(self._known, reverse=True) if "decoder" not in name
        }
        first |= {self._known[name]: name for name in sorted(self._known, reverse=True) if "decoder" in name}
        self._left = {*first.values(), *self._scalars}
        self._made: dict[Tensor, torch.nn.Parameter] = {}
        self._packed: dict[str, dict[str, Packed | Float4]] = {}

    def awaited(self) -> dict[str, list[int]]:
        """Return the shapes of the tensors that have not arrived, by their names."""
        known = {**self._known, **self._scalars}
        return {name: list(known[name].shape) for name in sorted(self._left)}

    def arrive(self, name: str, shape: list[int]) -> None:
        """Count the tensor called `name` as arrived, if the network has one of that name and `shape`."""
        where = self._known.get(name, self._scalars.get(name))
        if where is None:
            raise self.error(f"{name} is no tensor of this network")
        if list(where.shape) != shape:
            raise self.error(f"{name} has the shape {shape} instead of {list(where.shape)}")
        # A tied weight is known by the name of either twin.
        self._left -= {n for n in self._left if n == name or self._known.get(n) is where}

    def converted(self, name: str, stored: Any) -> Tensor | Packed:
        """Return the tensor called `name` from its slice of a file: experts packed, others in bf16, maybe mapped."""
        self.arrive(name, stored.get_shape())
        if name.rpartition(".")[0].endswith(".experts"):
            return self.pack(name, stored.get_shape(), lambda expert: stored[expert])
        if name in self._scalars:
            return self._checked(name, stored[:])
        return self._checked(name, stored[:]).to(self.device, torch.bfloat16)

    def keep(self, name: str, value: Tensor | Packed | Float4) -> None:
        """Put a tensor that has arrived into the network, with `finish`."""
        parent, _, own = name.rpartition(".")
        if isinstance(value, Packed | Float4):
            self._packed.setdefault(parent, {})[own] = value
        elif name in self._scalars:
            self._scalars[name].copy_(value)
        else:
            self._made[self._known[name]] = torch.nn.Parameter(value, False)

    def check_complete(self) -> None:
        """Do nothing if every tensor has arrived."""
        if self._left:
            some = ", ".join(sorted(self._left)[:3])
            raise self.error(f"{len(self._left)} tensors are missing, such as {some}")

    def finish(self) -> Any:
        """Return the network with every tensor in its place."""
        self.check_complete()
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
        fuse_norms(self._network)
        if self._graphs:
            enable(self._network)
        return self._network.to(self.device).eval()

    def pack(self, name: str, shape: Sequence[int], weights: Callable[[int], Tensor]) -> Packed:
        """Quantise the experts called `name` on the device. weights: those of the expert with a number.

        On a CPU as many at once as it has threads, each by one thread: their operations are too short to be shared.
        """
        group = next((group for group in GROUPS if shape[-1] % group == 0), GROUPS[-1])
        format_, threads = Format(self._bits, group), torch.get_num_threads()

        def packed(expert: int) -> Packed:
            quanta = quantise(weights(expert).to(self.device)[None], format_)
            self._checked(name, quanta.scale)
            return Packed.of(quanta)

        at_once = threads if self.device.type == "cpu" else 1
        try:
            with ThreadPoolExecutor(at_once, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                return Packed.stacked(pool.map(packed, range(shape[0])))
        except QuantizedError as error:
            raise self.error(f"{name}: {error}") from error
        finally:
            torch.set_num_threads(threads)  # the number is also that of threads that begin later

    def _checked(self, name: str, value: Tensor) -> Tensor:
        if not all(bool(torch.isfinite(extreme)) for extreme in value.aminmax()):
            raise self.error(f"{name} holds numbers that are not finite")
        return value

    def error(self, why: str) -> CheckpointError:
        """Return the error that the weights do not fit, because of `why`."""
        return CheckpointError(f"the weights of {self._path} do not fit: {why}; {FETCH_AGAIN}")
