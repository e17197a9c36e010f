"""Causal networks of GGUF files, their blocks as they are: four bits stay four, others become eight; or all of eight.

transformers' own Llama or Qwen2 is made without weights and its matrices are replaced; nothing is ever in bf16 as a
whole. Every tensor of the file must be one of the network's, and every one of the network's must be in the file. The
tokenizer of such a file is the one that transformers makes of its header (`read_tokenizer` in causal.py).
"""

import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
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
from dg_lsp.model.networks.lean import without_weights
from dg_lsp.model.networks.mapped import are_same, keep_matrices, kept_matrices
from dg_lsp.model.networks.quanta import QuantizedError
from dg_lsp.model.networks.quantized import QuantizedLinear
from dg_lsp.model.networks.stacks import Packed, best_way

# The options of transformers' configuration, by the names of a header behind that of the architecture.
_OPTIONS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
}
# Entries that must say what the network does anyway, and the option that they must equal.
_HEAD = ("attention.key_length", "attention.value_length", "rope.dimension_count")
_OTHER = ("rope.freq_base", "vocab_size", "rope.scaling.type")
# The names of tensors, and those of transformers.
_TOKENS, _OUTPUT, _FREQUENCIES = "token_embd.weight", "output.weight", "rope_freqs.weight"
_NAMES = {
    _TOKENS: "model.embed_tokens.weight",
    _OUTPUT: "lm_head.weight",
    "output_norm.weight": "model.norm.weight",
}
_PARTS = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
# llama.cpp turns neighbouring numbers of a head together, transformers those half a head apart.
_TURNED = {"llama": ("self_attn.q_proj", "self_attn.k_proj")}
_MULTIPLE = 64  # outputs that are packed together
_Value = Tensor | torch.nn.Module
_log = logging.getLogger(__name__)


def config_of(opened: GgufFile) -> Any:
    """The configuration of the network in `opened`, as transformers would write it.

    Raises:
        CheckpointError: an entry is missing, or says what is not understood.
    """
    kind, tensors = opened.architecture, opened.tensors
    own = opened.entries({*_OPTIONS, *_HEAD, *_OTHER}, _OPTIONS.keys() - {"attention.head_count_kv"})
    own.setdefault("attention.head_count_kv", own["attention.head_count"])
    if own.get("rope.scaling.type", "none") != "none":
        raise opened.error(
            f"its rotary embeddings are scaled as {own['rope.scaling.type']}, which is not understood"
        )
    if _TOKENS not in tensors:
        raise opened.error(f"{_TOKENS} is missing")
    options = {theirs: own[name] for name, theirs in _OPTIONS.items()}
    head = own.get("attention.key_length", options["hidden_size"] // options["num_attention_heads"])
    for name in _HEAD:
        if own.get(name, head) != head:
            raise opened.error(f"its header has {kind}.{name} {own[name]} instead of {head}")
    if kind == "llama":
        options |= {"head_dim": head, "attention_bias": "blk.0.attn_q.bias" in tensors}
    elif head * options["num_attention_heads"] != options["hidden_size"]:
        raise opened.error(f"its heads of {head} do not make up {options['hidden_size']}")
    return AutoConfig.for_model(
        kind,
        **options,
        vocab_size=tensors[_TOKENS].shape[0],
        rope_parameters={"rope_type": "default", "rope_theta": own.get("rope.freq_base", 10_000.0)},
        bos_token_id=opened.fields.get("tokenizer.ggml.bos_token_id"),
        eos_token_id=opened.fields.get("tokenizer.ggml.eos_token_id"),
        tie_word_embeddings=False,  # a head of its own is made of the table's blocks
    )


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
    made.keep()
    if (factors := opened.tensors.get(_FREQUENCIES)) is not None:
        made.scale_frequencies(factors)
    if device.type == "cpu":
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
    wanted = {name: tuple(t.shape) for name, t in network.named_parameters()}
    sources = _sources(opened, wanted)
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
    config.tie_word_embeddings = _OUTPUT not in opened.tensors
    with without_weights():
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    network.tie_weights()  # which the context has undone
    wanted = {name: tuple(t.shape) for name, t in network.named_parameters()}
    making = _Making(opened, network, torch.device("cpu"), torch.float32)
    sources = _sources(opened, wanted)
    weights = {name: making.in_full(name, sources[name]) for name in wanted}
    network.load_state_dict(weights, strict=False, assign=True)
    network.tie_weights()
    if (factors := opened.tensors.get(_FREQUENCIES)) is not None:
        making.scale_frequencies(factors)
    return network


def _sources(opened: GgufFile, wanted: Any) -> dict[str, Stored]:
    """The tensor of the file for each parameter of transformers' network.

    Raises:
        CheckpointError: a tensor is of no use, or a parameter has none.
    """
    found = dict[str, Stored]()
    for stored in opened.tensors.values():
        name = _name_of(stored.name)
        if name in wanted:
            found[name] = stored
        elif stored.name != _FREQUENCIES:
            raise opened.error(f"{stored.name} is no tensor of this network")
    found.setdefault(_NAMES[_OUTPUT], opened.tensors[_TOKENS])
    if missing := [name for name in wanted if name not in found]:
        theirs = {_name_of(name): name for name in _all_names(len(wanted))}
        named = ", ".join(theirs[name] for name in missing[:3])
        raise opened.error(f"{len(missing)} tensors are missing, such as {named}")
    return found


def _name_of(name: str) -> str:
    """The name of transformers for the tensor `name` of a GGUF file; "" if there is none."""
    layer = _LAYER.fullmatch(name)
    if layer is None or layer[2] not in _PARTS:
        return _NAMES.get(name, "")
    return f"model.layers.{layer[1]}.{_PARTS[layer[2]]}.{layer[3]}"


def _all_names(layers: int) -> Iterator[str]:
    """All names that tensors of `layers` layers can have."""
    yield from _NAMES
    for layer in range(layers):
        for part in _PARTS:
            yield from (f"blk.{layer}.{part}.weight", f"blk.{layer}.{part}.bias")


class _Making:
    """A network without weights, whose tensors are set one by one."""

    def __init__(
        self, opened: GgufFile, network: Any, device: torch.device, dtype: torch.dtype, bits: int = 16
    ) -> None:
        self._opened, self._network, self._device, self._dtype = opened, network, device, dtype
        self._bits, self._kept = bits, dict[str, Packed | Eight]()
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
        if name == _NAMES[_TOKENS]:
            for _ in self._opened.pieces(stored):
                pass  # it is checked
            return Rows(self._opened, stored, self._dtype)
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
        module = self._network.get_submodule(parent)
        if isinstance(value, Tensor):
            setattr(module, own, Parameter(value, False))
            return
        if isinstance(value, QuantizedLinear):
            value.bias = module.bias
        self._network.set_submodule(parent, value)

    def in_full(self, name: str, stored: Stored) -> Tensor:
        """Return the parameter `name` from its tensor, as the blocks define it."""
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

    def _rows(self, parent: str, stored: Stored) -> Iterator[Tensor]:
        """The rows of `stored` in the order of transformers, in pieces."""
        order = self._order(parent, stored.rows)
        if order is None:
            return self._opened.pieces(stored)
        return iter(torch.cat([*self._opened.pieces(stored)])[order].split(_MULTIPLE))

    def _order(self, parent: str, outputs: int) -> Tensor | None:
        """The number of the file's output for each of `outputs` outputs, where they are in another order."""
        if not parent.endswith(_TURNED.get(self._opened.architecture, ())):
            return None
        half = self._network.config.head_dim // 2
        return torch.arange(outputs).view(-1, half, 2).transpose(1, 2).flatten()


class Rows(torch.nn.Module):
    """A table of tokens that stays in its file: the rows that are asked for are read and dequantised."""

    def __init__(self, opened: GgufFile, stored: Stored, dtype: torch.dtype) -> None:
        super().__init__()
        # The header, whose vocabulary takes 30 MB, is needed no longer.
        self._opened, self._stored, self._dtype = replace(opened, fields={}, tensors={}), stored, dtype

    def forward(self, tokens: Tensor) -> Tensor:
        """The embeddings of `tokens`: int64 [...] -> [..., hidden]."""
        numbers, back = tokens.flatten().cpu().unique(return_inverse=True)
        raw = torch.cat([self._opened.read(self._stored, n, n + 1) for n in numbers.tolist()])
        rows = blocks.weights_of(self._stored.kind, raw)[back].to(tokens.device, self._dtype)
        return rows.view(*tokens.shape, -1)
