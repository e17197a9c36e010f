"""Families of networks in GGUF files, from made files of their layouts: transformers' logits (law 13), and law 3.

The names are those of the package gguf, which is llama.cpp's; the values are those of a network of transformers.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf.quants import dequantize

from dg_lsp.checkpoints import CheckpointError
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.fill import fill
from dg_lsp.model.networks.causal import Causal, read_tokenizer
from dg_lsp.model.networks.eight import _EXACT
from dg_lsp.model.networks.gguf_causal import load_gguf
from dg_lsp.model.networks.gguf_file import read_gguf
from dg_lsp.model.networks.joined import Attention
from dg_lsp.model.networks.layouts import LAYOUTS
from dg_lsp.model.networks.loading import load_network
from dg_lsp.model.networks.quantized import QuantizedExperts, QuantizedLinear
from dg_lsp.model.networks.stacks import Packed
from dg_lsp.model.prompts.fim import FAMILIES, family_of
from dg_lsp.model.tree import Tree
from tests.model.gguf_files import (
    ENTRIES,
    VOCABULARY,
    Kind,
    add_pieces,
    add_tokenizer,
    architecture_of,
    blocks_of,
    source,
    tensors_of,
    write,
)
from tests.model.test_gguf import CPU

LOADED = (
    "llama",
    "llama all biased",
    "deepseek",
    "qwen2",
    "qwen3",
    "qwen3moe",
    "granite",
    "starcoder2",
    "gemma",
    "gemma3",
)
TOKENS = torch.randint(VOCABULARY, (1, 40), generator=torch.Generator().manual_seed(5))


def file_of(path: Path, kind: str, least: Kind, network: Any) -> Path:
    architecture = architecture_of(kind)
    tensors = tensors_of(network, architecture)
    return write(path / "net.gguf", tensors, architecture, {}, least, ENTRIES.get(kind))


@pytest.mark.parametrize("kind", LOADED)
@torch.inference_mode()
def test_the_logits_are_those_of_the_network_that_was_written(tmp_path: Path, kind: str) -> None:
    network = source(kind)
    found = load_gguf(read_gguf(file_of(tmp_path, kind, Kind.F32, network)), CPU, torch.float32)
    wanted = network(input_ids=TOKENS).logits
    assert float(wanted.std()) > 0.02
    torch.testing.assert_close(found.trial(TOKENS), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("least", [Kind.Q4_0, Kind.Q5_0, Kind.Q8_0, Kind.F16])
@pytest.mark.parametrize("kind", LOADED)
@torch.inference_mode()
def test_the_logits_are_those_of_the_values_that_the_blocks_hold(
    tmp_path: Path, kind: str, least: Kind, dtype: torch.dtype
) -> None:
    network = source(kind)
    path = file_of(tmp_path, kind, least, network)
    for name, weight in network.named_parameters():
        if weight.ndim > 1 and not name.endswith("mlp.gate.weight"):
            held = dequantize(blocks_of(weight.numpy().reshape(-1, weight.shape[-1]), least), least)
            weight.copy_(torch.from_numpy(held).view(weight.shape))
    loaded = load_gguf(read_gguf(path), CPU, dtype)
    assert any(isinstance(module, QuantizedLinear) for module in loaded.modules()) is (least != Kind.F16)
    few = TOKENS[:, :_EXACT]
    wanted, place = network(input_ids=few).logits, 20 if kind == "qwen3moe" else -1
    # Among experts that are nearly as good as others rounding decides, that of bf16, too: there it is the middle token.
    own, found = (
        (logits.float() - wanted).abs().amax(-1)[0].sort().values[place]
        for logits in (network.bfloat16()(input_ids=few).logits, loaded.trial(few))
    )
    assert float(found) < 3 * float(own)


@torch.inference_mode()
def test_experts_stay_in_few_bits(tmp_path: Path) -> None:
    network = load_gguf(
        read_gguf(file_of(tmp_path, "qwen3moe", Kind.Q4_0, source("qwen3moe"))), CPU, torch.float32
    )
    for layer in network.network.model.layers:
        assert isinstance(layer.mlp.experts, QuantizedExperts) and isinstance(layer.self_attn, Attention)
        stacks = [module for module in layer.mlp.experts.modules() if isinstance(module, Packed)]
        assert [stack.format.bits for stack in stacks] == [4, 4, 4]


@pytest.mark.parametrize(
    ("kind", "gone", "why"),
    [
        ("qwen3", "blk.1.attn_q_norm.weight", "1 tensors are missing, such as blk.1.attn_q_norm.weight"),
        ("qwen3moe", "blk.0.ffn_gate_exps.weight", "such as blk.0.ffn_gate_exps.weight"),
        ("starcoder2", "blk.1.ffn_up.bias", "such as blk.1.ffn_up.bias"),
        ("starcoder2", "output_norm.bias", "such as output_norm.bias"),
        ("gemma3", "blk.6.post_ffw_norm.weight", "such as blk.6.post_ffw_norm.weight"),
    ],
)
def test_a_tensor_that_is_missing_is_named(tmp_path: Path, kind: str, gone: str, why: str) -> None:
    tensors = tensors_of(source(kind), kind)
    del tensors[gone]
    path = write(tmp_path / "net.gguf", tensors, kind, {}, Kind.F32, ENTRIES.get(kind))
    with pytest.raises(CheckpointError, match=why):
        load_network(path, "cpu")


@pytest.mark.parametrize(
    ("kind", "entries", "why"),
    [
        ("granite", {"expert_count": 8}, "granite.expert_count, which is not understood"),
        ("qwen3", {"rope.scaling.type": "yarn"}, "scaled as yarn, which is not understood"),
        ("starcoder2", {"attention.sliding_window": 16}, "starcoder2.attention.sliding_window, which is"),
        ("gemma3", {"final_logit_softcapping": 30.0}, "gemma3.final_logit_softcapping, which is not"),
        ("qwen3moe", {"expert_shared_count": 1}, "qwen3moe.expert_shared_count, which is not understood"),
        ("gemma", {"rope.dimension_count": 16}, "gemma.rope.dimension_count 16 instead of 32"),
    ],
)
def test_an_entry_that_is_not_understood_is_named(
    tmp_path: Path, kind: str, entries: dict[str, Any], why: str
) -> None:
    own = ENTRIES.get(kind, {}) | entries
    path = write(tmp_path / "net.gguf", tensors_of(source(kind), kind), kind, {}, Kind.F32, own)
    with pytest.raises(CheckpointError, match=why):
        load_network(path, "cpu")


@pytest.mark.parametrize("architecture", ["deepseek2", "granitehybrid", "qwen3next", "gemma4"])
def test_another_architecture_is_refused_by_a_sentence_that_names_those_that_are_read(
    tmp_path: Path, architecture: str
) -> None:
    with pytest.raises(CheckpointError, match=f"holds a '{architecture}' model, and only") as refused:
        load_network(write(tmp_path / "net.gguf", {}, architecture), "cpu")
    assert all(name in str(refused.value) for name in LAYOUTS)


@pytest.mark.parametrize("kind", LOADED)
@torch.inference_mode()
def test_a_prefix_in_a_cache_gives_the_logits_of_a_whole_pass(tmp_path: Path, kind: str) -> None:
    """Past the window of 16, too, after a cut in the middle."""
    loaded = load_gguf(read_gguf(file_of(tmp_path, kind, Kind.F32, source(kind))), CPU, torch.float32)
    tokens, cache = TOKENS[0].tolist(), PrefixCache(loaded.text_config)
    for length in (30, 10, 40):
        list(extend_to(loaded, cache, tokens[:length]))
        assert_last(loaded, cache, tokens[:length])


def assert_last(loaded: Causal, cache: PrefixCache, tokens: list[int]) -> None:
    tree = Tree(loaded, cache, len(tokens) - 1)
    (states,) = tree.read([tokens[-1:]])
    wanted = loaded.trial(torch.tensor([tokens]))[0, -1].float()
    torch.testing.assert_close(loaded.logits(states)[0], wanted, rtol=1e-4, atol=1e-4)


DEEPSEEK = ("<｜end▁of▁sentence｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "<|EOT|>")
STARCODER = ("<|endoftext|>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>")
GEMMA = ("<eos>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>")
HEADERS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "DeepSeek-Coder": ("deepseek", partial(add_tokenizer, pre="deepseek-coder", special=DEEPSEEK)),
    "StarCoder2": ("starcoder2", partial(add_tokenizer, pre="starcoder", special=STARCODER)),
    "StarCoder, Granite": ("granite", partial(add_tokenizer, pre="refact", special=STARCODER[:-1])),
    "Codestral": ("llama", partial(add_pieces, special=("[PREFIX]", "[SUFFIX]", "[MIDDLE]"))),
    "CodeGemma": ("gemma", partial(add_pieces, special=GEMMA)),
}


@pytest.mark.parametrize("family", HEADERS)
def test_a_file_of_each_family_is_a_checkpoint_that_fills_between_two_texts(
    tmp_path: Path, family: str
) -> None:
    kind, tokens = HEADERS[family]
    architecture = architecture_of(kind)
    path = write(
        tmp_path / "net.gguf",
        tensors_of(source(kind), architecture),
        architecture,
        {},
        Kind.Q8_0,
        ENTRIES.get(kind),
        tokens,
    )
    model = load_checkpoint(str(path), "cpu")
    assert family_of(model.tokenizer) == FAMILIES[family] and model.style == "fim"
    assert model.ends and {*FAMILIES[family].needed} <= {
        model.tokenizer.id_to_token(number) for number in model.special
    }
    assert model.tokenizer.get_vocab_size() <= VOCABULARY
    for text in ("  def f():\n\treturn 12", " def", "é😀", FAMILIES[family].prefix):
        assert model.tokenizer.decode(list(model.encode(text)), skip_special_tokens=False) == text
    request = Infill("def f(x):\n    return ", "\n", "python", "rest_of_line")
    *_, last = fill(model, PrefixCache(model.network.text_config), request)
    assert isinstance(last, Fill)


@pytest.mark.parametrize(
    ("pre", "count"), [("qwen2", 2), ("starcoder", 2), ("deepseek-coder", 2), ("llama3", 1)]
)
def test_digits_are_split_as_the_header_says(tmp_path: Path, pre: str, count: int) -> None:
    path = write(tmp_path / "net.gguf", {}, tokens=partial(add_tokenizer, pre=pre))
    assert len(read_tokenizer(path).encode("12", add_special_tokens=False).ids) == count


def test_a_way_to_split_that_is_not_known_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read_tokenizer(write(tmp_path / "net.gguf", {}, tokens=partial(add_tokenizer, pre="toy")))
    assert "splits text as toy, which is not known" in caplog.text
