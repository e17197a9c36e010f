"""Causal networks of GGUF files, their blocks as they are: four bits stay four, others become eight; or all of eight.

transformers' own network of the architecture (layouts.py) is made without weights and its matrices are replaced;
nothing is ever in bf16 as a whole. Every tensor of the file must be one of the network's, and every one of the
network's must be in the file. The tokenizer of such a file is made of its header (`read_tokenizer` in causal.py).
"""

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear, Parameter
from transformers import AutoConfig, AutoModelForCausalLM

from dg_lsp.model.networks import blocks
from dg_lsp.model.networks.attention import GROUPED
from dg_lsp.model.networks.causal import Causal
from dg_lsp.model.networks.eight import Beside, Eight
from dg_lsp.model.networks.gguf_file import GgufFile, Stored
from dg_lsp.model.networks.joined import join_layers
from dg_lsp.model.networks.layouts import FREQUENCIES, HEAD, LAYOUTS, OTHER, OUTPUT, TOKENS, Layout, rope_of
from dg_lsp.model.networks.lean import without_weights
from dg_lsp.model.networks.mapped import are_same, keep_matrices, kept_matrices
from dg_lsp.model.networks.quanta import GROUPS, Format, QuantizedError, quantise
from dg_lsp.model.networks.quantized import QuantizedExperts, QuantizedLinear
from dg_lsp.model.networks.stacks import Packed, SideBySide, best_way

# The names of tensors outside of layers, and those of transformers.
_NAMES = {
    TOKENS: "model.embed_tokens.weight",
    OUTPUT: "lm_head.weight",
    "output_norm.weight": "model.norm.weight",
    "output_norm.bias": "model.norm.bias",
}
_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
_EXPERTS, _GATE_UP = ".mlp.experts.", "gate_up_proj"
_MULTIPLE = 64  # outputs that are packed together
_Value = Tensor | torch.nn.Module
_log = logging.getLogger(__name__)


def layout_of(opened: GgufFile) -> Layout:
    """The layout of the network in `opened`.

    Raises:
        CheckpointError: its architecture is none of LAYOUTS.
    """
    if (found := LAYOUTS.get(opened.architecture)) is None:
        raise opened.error(f"its architecture {opened.architecture} is none of {', '.join(LAYOUTS)}")
    return found


def config_of(opened: GgufFile) -> Any:
    """The configuration of the network in `opened`, as transformers would write it.

    Raises:
        CheckpointError: an entry is missing, or says what is not understood.
    """
    kind, tensors, layout = opened.architecture, opened.tensors, layout_of(opened)
    needed = layout.options.keys() - {"attention.head_count_kv"}
    own = opened.entries({*layout.options, *layout.optional, *HEAD, *OTHER}, needed)
    own.setdefault("attention.head_count_kv", own["attention.head_count"])
    if own.get("rope.scaling.type", "none") not in ("none", "linear"):
        raise opened.error(
            f"its rotary embeddings are scaled as {own['rope.scaling.type']}, which is not understood"
        )
    if TOKENS not in tensors:
        raise opened.error(f"{TOKENS} is missing")
    options = {theirs: own[name] for name, theirs in layout.options.items()}
    head = own.get("attention.key_length", options["hidden_size"] // options["num_attention_heads"])
    for name in HEAD:
        if own.get(name, head) != head:
            raise opened.error(f"its header has {kind}.{name} {own[name]} instead of {head}")
    if not layout.free and head * options["num_attention_heads"] != options["hidden_size"]:
        raise opened.error(f"its heads of {head} do not make up {options['hidden_size']}")
    options |= {
        "vocab_size": tensors[TOKENS].shape[0],
        "rope_parameters": rope_of(own),
        "bos_token_id": opened.fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": opened.fields.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": None,
        "tie_word_embeddings": False,  # a head of its own is made of the table's blocks
    }
    return AutoConfig.for_model(layout.kind, **options | layout.further(opened, own, head))


def load_gguf(opened: GgufFile, device: torch.device, dtype: torch.dtype, bits: int = 16) -> Causal:
    """The network in `opened` on `device`, its states and norms in `dtype`; with 8 `bits` no matrix stays in four.

    Raises:
        CheckpointError: a tensor is missing, unknown, misshapen, or holds scales that are lost.
    """
    network, sources = matched(opened, dtype)
    made = _Making(opened, network, device, dtype, bits)
    made.take_kept(sources)
    for name, value in zip(sources, _in_threads(made.read, sources), strict=True):
        made.put(name, value)
    made.put_experts()
    made.keep()
    if (factors := opened.tensors.get(FREQUENCIES)) is not None:
        made.scale_frequencies(factors)
    if device.type == "cpu" and layout_of(opened).joins:
        join_layers(network.model)
    return Causal(network.to(device).eval())


def matched(opened: GgufFile, dtype: torch.dtype) -> tuple[Any, dict[str, Stored]]:
    """The network in `opened` without weights, and the tensor of the file for each of its parameters.

    Raises:
        CheckpointError: a tensor is missing, unknown or misshapen.
    """
    config = config_of(opened)
    with without_weights():
        network = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=GROUPED)
    sources = _sources(opened, wanted := _wanted(network))
    for name, stored in sources.items():
        if stored.shape != wanted[name]:
            raise opened.error(f"{stored.name} has the shape {stored.shape} instead of {wanted[name]}")
    return network, sources


def _in_threads(read: Callable[[str, Stored], _Value], sources: Mapping[str, Stored]) -> Iterator[_Value]:
    """Yield what `read` returns for each of `sources`; there are as many threads as torch has.

    Most of the operations that make a matrix have one thread alone.
    """
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from pool.map(read, sources, sources.values())
    finally:
        torch.set_num_threads(threads)  # for threads that begin later


def read_in_full(opened: GgufFile) -> Any:
    """The network of transformers in `opened` with its weights in fp32, as the blocks define them.

    Raises:
        CheckpointError: a tensor is missing, unknown, misshapen, or holds scales that are lost.
    """
    config = config_of(opened)
    config.tie_word_embeddings = OUTPUT not in opened.tensors
    with without_weights():
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    network.tie_weights()  # which the context has undone
    wanted = {name: tuple(t.shape) for name, t in network.named_parameters()}
    making = _Making(opened, network, torch.device("cpu"), torch.float32)
    sources = _sources(opened, wanted)
    weights = {name: making.in_full(name, sources[name]) for name in wanted}
    network.load_state_dict(weights, strict=False, assign=True)
    network.tie_weights()
    if (factors := opened.tensors.get(FREQUENCIES)) is not None:
        making.scale_frequencies(factors)
    return network


def _wanted(network: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters of `network`; of experts two halves of `gate_up_proj`, which files have apart."""
    found = dict[str, tuple[int, ...]]()
    for name, parameter in network.named_parameters():
        shape = tuple(parameter.shape)
        if _EXPERTS in name and name.endswith(_GATE_UP):
            halves = shape[0], shape[1] // 2, shape[2]
            found |= {name.replace(_GATE_UP, half): halves for half in ("gate_proj", "up_proj")}
        else:
            found[name] = shape
    return found


def _sources(opened: GgufFile, wanted: Any) -> dict[str, Stored]:
    """The tensor of the file for each parameter of transformers' network.

    Raises:
        CheckpointError: a tensor is of no use, or a parameter has none.
    """
    found, parts = dict[str, Stored](), layout_of(opened).parts
    for stored in opened.tensors.values():
        name = _name_of(stored.name, parts)
        if name in wanted:
            found[name] = stored
        elif stored.name != FREQUENCIES:
            raise opened.error(f"{stored.name} is no tensor of this network")
    found.setdefault(_NAMES[OUTPUT], opened.tensors[TOKENS])
    if missing := [name for name in wanted if name not in found]:
        theirs = {_name_of(name, parts): name for name in _all_names(len(wanted), parts)}
        named = ", ".join(theirs[name] for name in missing[:3])
        raise opened.error(f"{len(missing)} tensors are missing, such as {named}")
    return found


def _name_of(name: str, parts: Mapping[str, str]) -> str:
    """The name of transformers for the tensor `name` of a GGUF file, by its layout's `parts`; "" if there is none."""
    layer = _LAYER.fullmatch(name)
    if layer is None or layer[2] not in parts:
        return _NAMES.get(name, "")
    part = f"model.layers.{layer[1]}.{parts[layer[2]]}"
    return part if _EXPERTS in part else f"{part}.{layer[3]}"


def _all_names(layers: int, parts: Iterable[str]) -> Iterator[str]:
    """All names that tensors of `layers` layers can have."""
    yield from _NAMES
    for layer in range(layers):
        for part in parts:
            yield from (f"blk.{layer}.{part}.bias", f"blk.{layer}.{part}.weight")


class _Making:
    """A network without weights, whose tensors are set one by one."""

    def __init__(
        self, opened: GgufFile, network: Any, device: torch.device, dtype: torch.dtype, bits: int = 16
    ) -> None:
        self._opened, self._network, self._device, self._dtype = opened, network, device, dtype
        self._bits, self._kept, self._layout = bits, dict[str, Packed | Eight](), layout_of(opened)
        self._experts = dict[str, dict[str, Tensor | Packed]]()
        try:
            best_way(device, blocks.FOUR)
        except QuantizedError as error:
            _log.warning("%s: %s; until then its matrices are in bf16", opened.path, error)
            self._few = False
        else:
            self._few = True

    def read(self, name: str, stored: Stored) -> _Value:
        """Return the parameter `name` from its tensor, or the layer that holds it in few bits."""
        parent, _, own = name.rpartition(".")
        if name == _NAMES[TOKENS]:
            for _ in self._opened.pieces(stored):
                pass  # it is checked
            scale = getattr(self._network.model.embed_tokens, "scalar_embed_scale", None)
            return Rows(self._opened, stored, self._dtype, scale)
        if _EXPERTS in name and self._few and stored.kind not in blocks.PLAIN:
            return self._stack(stored)
        is_matrix = own == "weight" and isinstance(self._network.get_submodule(parent), Linear)
        if is_matrix and self._is_quantised(stored):
            return QuantizedLinear(self._kept.get(parent) or self._matrix(parent, stored))
        return self.in_full(name, stored)

    def take_kept(self, sources: Mapping[str, Stored]) -> None:
        """Take the matrices that an earlier start has kept, if the smallest of them is made of its tensor again."""
        if self._device.type != "cpu" or not (kept := kept_matrices(self._opened.path, self._bits)):
            return
        tensors = {name: sources[key] for name in kept if (key := f"{name}.weight") in sources}
        shapes = {name: (matrix.outputs, matrix.inputs) for name, matrix in kept.items()}
        if shapes != {name: stored.shape for name, stored in tensors.items()}:
            return
        smallest = min(kept, key=lambda name: math.prod(shapes[name]))
        if are_same(kept[smallest], self._matrix(smallest, tensors[smallest])):
            self._kept = kept

    def keep(self) -> None:
        """Keep the matrices for later starts, unless they are those of an earlier one."""
        if self._device.type != "cpu" or self._kept:
            return
        made = {
            name: layer.matrix
            for name, layer in self._network.named_modules()
            if isinstance(layer, QuantizedLinear) and not isinstance(layer.matrix, Beside)
        }
        keep_matrices(self._opened.path, self._bits, made)

    def put(self, name: str, value: _Value) -> None:
        """Set the parameter `name`, or put a layer in the place of the one that has it."""
        parent, _, own = name.rpartition(".")
        if _EXPERTS in name:
            assert isinstance(value, Tensor | Packed)
            self._experts.setdefault(parent, {})[own] = value
            return
        module = self._network.get_submodule(parent)
        if isinstance(value, Tensor):
            setattr(module, own, Parameter(value, False))
            return
        if isinstance(value, QuantizedLinear):
            value.bias = module.bias
        self._network.set_submodule(parent, value)

    def put_experts(self) -> None:
        """Put the experts of each layer into their place: in few bits, or as transformers has them."""
        for parent, own in self._experts.items():
            experts = self._network.get_submodule(parent)
            gate, up, down = own["gate_proj"], own["up_proj"], own["down_proj"]
            if isinstance(gate, Packed) and isinstance(up, Packed) and isinstance(down, Packed):
                made = QuantizedExperts(SideBySide(gate, up), down, experts.act_fn)
                self._network.set_submodule(parent, made)
                continue
            if isinstance(gate, Packed) or isinstance(up, Packed) or isinstance(down, Packed):
                raise self._opened.error(f"the experts of {parent} are in blocks in part only")
            experts.gate_up_proj = Parameter(torch.cat([gate, up], 1), False)
            experts.down_proj = Parameter(down, False)

    def in_full(self, name: str, stored: Stored) -> Tensor:
        """Return the parameter `name` from its tensor, as the blocks define it."""
        if self._layout.adds_one and name.endswith("norm.weight"):
            return self._opened.weights(stored, torch.float32).sub_(1).to(self._device, self._dtype)
        whole = self._opened.weights(stored, self._dtype)
        if (order := self._order(name.rpartition(".")[0], len(whole))) is not None:
            whole = whole[order]
        return whole.to(self._device)

    def scale_frequencies(self, stored: Stored) -> None:
        """Divide the frequencies of the rotary embeddings by the factors in `stored`, as Llama 3.1 has them."""
        factors, rotary = self._opened.weights(stored, torch.float32), self._network.model.rotary_emb
        if len(factors) != len(rotary.inv_freq):
            raise self._opened.error(
                f"{stored.name} has {len(factors)} numbers instead of {len(rotary.inv_freq)}"
            )
        rotary.inv_freq = rotary.inv_freq / factors

    def _is_quantised(self, stored: Stored) -> bool:
        """Return whether `stored` is kept in few bits: torch's kernels read 16 outputs at a time."""
        return self._few and stored.kind not in blocks.PLAIN and stored.rows % 16 == 0

    def _matrix(self, parent: str, stored: Stored) -> Packed | Eight:
        pieces = self._rows(parent, stored)
        if self._bits != 8 and blocks.has_four_bits(stored.kind):
            quanta = (blocks.quanta_of(stored.kind, piece.to(self._device)) for piece in pieces)
            return Packed.joined(Packed.of(some) for some in quanta)
        weights = (blocks.weights_of(stored.kind, piece) for piece in pieces)
        return Eight.of(weights, (stored.rows, stored.shape[-1]), self._device)

    def _stack(self, stored: Stored) -> Packed:
        """The stack of experts in `stored`, one after another; those in other than four bits are rounded to eight."""
        count, outputs, inputs = stored.shape
        four = self._bits != 8 and blocks.has_four_bits(stored.kind)
        format_ = Format(8, next((group for group in GROUPS if inputs % group == 0), GROUPS[-1]))

        def packed(number: int) -> Packed:
            raw = torch.cat([*self._opened.pieces(stored, number * outputs, (number + 1) * outputs)])
            if four:
                return Packed.of(blocks.quanta_of(stored.kind, raw.to(self._device)))
            return Packed.of(quantise(blocks.weights_of(stored.kind, raw).to(self._device)[None], format_))

        return Packed.stacked(packed(number) for number in range(count))

    def _rows(self, parent: str, stored: Stored) -> Iterator[Tensor]:
        """The rows of `stored` in the order of transformers, in pieces."""
        order = self._order(parent, stored.rows)
        if order is None:
            return self._opened.pieces(stored)
        return iter(torch.cat([*self._opened.pieces(stored)])[order].split(_MULTIPLE))

    def _order(self, parent: str, outputs: int) -> Tensor | None:
        """The number of the file's output for each of `outputs` outputs, where they are in another order."""
        if not parent.endswith(self._layout.turned or ("-",)):
            return None
        config = self._network.config
        half = (getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads) // 2
        return torch.arange(outputs).view(-1, half, 2).transpose(1, 2).flatten()


class Rows(torch.nn.Module):
    """A table of tokens that stays in its file: the rows that are asked for are read, dequantised, and scaled."""

    def __init__(
        self, opened: GgufFile, stored: Stored, dtype: torch.dtype, scale: float | None = None
    ) -> None:
        super().__init__()
        self._scale = None if scale is None else torch.tensor(scale, dtype=dtype)
        # The header, whose vocabulary takes 30 MB, is needed no longer.
        self._opened, self._stored, self._dtype = replace(opened, fields={}, tensors={}), stored, dtype

    def forward(self, tokens: Tensor) -> Tensor:
        """The embeddings of `tokens`: int64 [...] -> [..., hidden]."""
        numbers, back = tokens.flatten().cpu().unique(return_inverse=True)
        raw = torch.cat([self._opened.read(self._stored, n, n + 1) for n in numbers.tolist()])
        rows = blocks.weights_of(self._stored.kind, raw)[back].to(tokens.device, self._dtype)
        return (rows if self._scale is None else rows * self._scale).view(*tokens.shape, -1)
