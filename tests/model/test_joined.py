"""Layers with few operations: the numbers of transformers' own; only the norm of a single row is rounded otherwise."""

from pathlib import Path
from typing import Any

import pytest
import torch

from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.networks import gguf_causal
from dg_lsp.model.networks.causal import Causal
from dg_lsp.model.networks.gguf_causal import load_gguf
from dg_lsp.model.networks.gguf_file import read_gguf
from dg_lsp.model.networks.joined import Attention, GatedUnit, Norm
from dg_lsp.model.networks.quantized import QuantizedLinear
from dg_lsp.model.tree import Tree
from tests.model.gguf_files import MIXED, VOCABULARY, Kind, source, tensors_of, write
from tests.model.test_gguf import far

CPU = torch.device("cpu")
TOKENS = torch.randint(VOCABULARY, (90,), generator=torch.Generator().manual_seed(6)).tolist()


@pytest.fixture(
    params=[
        ("qwen2", {}, 16),
        ("qwen2", MIXED, 16),
        ("qwen2", MIXED, 8),
        ("llama", {}, 16),
        ("llama biased", MIXED, 16),
    ],
    ids=["qwen2", "qwen2 mixed", "qwen2 in eight bits", "llama", "llama biased"],
)
def both(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Causal, Causal]:
    """A network with joined layers, and the same one with those of transformers."""
    kind, kinds, bits = request.param
    architecture = kind.split()[0]
    opened = read_gguf(
        write(tmp_path / "net.gguf", tensors_of(source(kind), architecture), architecture, kinds, Kind.Q4_K)
    )
    joined = load_gguf(opened, CPU, torch.bfloat16, bits)
    monkeypatch.setattr(gguf_causal, "join_layers", lambda _: None)
    return joined, load_gguf(opened, CPU, torch.bfloat16, bits)


def read(network: Causal, prefix: int, pieces: list[list[int]]) -> Any:
    """The logits of `pieces`, read one after another after the first tokens."""
    cache = PrefixCache(network.text_config)
    list(extend_to(network, cache, TOKENS[:prefix]))
    texts = Tree(network, cache, prefix)
    return torch.cat([network.logits(texts.read([piece])[0]) for piece in pieces])


@torch.inference_mode()
def test_several_rows_give_the_same_bit_for_bit(both: tuple[Causal, Causal]) -> None:
    joined, apart = (read(network, 20, [TOKENS[20:25], TOKENS[25:32]]) for network in both)
    assert torch.equal(joined, apart)


@torch.inference_mode()
def test_one_row_gives_the_same_up_to_rounding(both: tuple[Causal, Causal]) -> None:
    joined, apart = (read(network, 20, [[token] for token in TOKENS[20:26]]) for network in both)
    assert far(joined, apart) < 2e-2


@torch.inference_mode()
def test_a_layer_is_of_joined_parts(both: tuple[Causal, Causal]) -> None:
    joined, apart = (network.network.model for network in both)
    theirs = [m for m in apart.modules() if isinstance(m, QuantizedLinear)]
    ours = [m for m in joined.modules() if isinstance(m, QuantizedLinear)]
    assert len(ours) < len(theirs)
    assert sum(m.out_features for m in ours) == sum(m.out_features for m in theirs)
    held = [sum(t.nbytes for t in (*n.parameters(), *n.buffers())) for n in (joined, apart)]
    assert held[0] == held[1]
    for layer in joined.layers:
        assert isinstance(layer.self_attn, Attention) and isinstance(layer.mlp, GatedUnit)
        assert isinstance(layer.input_layernorm, Norm)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_the_norm_of_one_row_is_that_of_the_row_among_others(dtype: torch.dtype) -> None:
    norm = Norm(source("qwen2").to(dtype).model.norm)
    states = torch.randn(7, 256, generator=torch.Generator().manual_seed(1)).to(dtype) * 30
    together = norm(states)
    for row, wanted in zip(states, together, strict=True):
        torch.testing.assert_close(norm(row[None]), wanted[None], rtol=2**-7, atol=0.0)
    assert bool(torch.isfinite(norm(torch.zeros(1, 256, dtype=dtype))).all())
