"""Packed matrices: what they give, what is freed, and where matrices stay as they are."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import Linear

from dg_lsp.engine import memory
from dg_lsp.filling.engine import EngineError
from dg_lsp.model.networks import packed
from dg_lsp.model.networks.loading import load_network
from dg_lsp.model.networks.packed import pack
from tests.model.tiny import VOCABULARY, tiny_network
from tests.training.test_importing import SOURCES, drawn

MAPS = Path("/proc/self/maps")
needs_avx512 = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512", reason="matrices are packed with AVX-512 only"
)


def linear_layers(network: Any) -> int:
    return sum(isinstance(module, Linear) for module in network.modules())


@needs_avx512
@pytest.mark.parametrize("tokens", [1, 7, 40])
@torch.inference_mode()
def test_a_packed_network_gives_the_same_logits_bit_for_bit(tokens: int) -> None:
    network = tiny_network(1, torch.bfloat16)
    with torch.inference_mode(mode=False):
        network.lm_head.bias = torch.nn.Parameter(torch.full([VOCABULARY], 3.0, dtype=torch.bfloat16))
    text, canvas = torch.randint(VOCABULARY, (1, tokens)), torch.randint(VOCABULARY, (2, 16))

    def logits() -> list[torch.Tensor]:
        states = network.model.encoder.language_model(input_ids=text).last_hidden_state
        both = network(input_ids=text.expand(2, -1), decoder_input_ids=canvas).logits
        return [network.lm_head(states), both]

    before = logits()
    pack(network)
    assert linear_layers(network.model.decoder) == linear_layers(network.model.encoder) == 0
    for old, new in zip(before, logits(), strict=True):
        assert torch.equal(old, new)


@needs_avx512
def test_a_matrix_is_in_memory_once() -> None:
    network = tiny_network(1, torch.bfloat16)
    whole = sum(t.nbytes for t in network.parameters())
    pack(network)
    matrices = {id(t): t.nbytes for t in network.buffers() if t.is_mkldnn}
    table = network.model.decoder.embed_tokens.weight.nbytes
    assert sum(matrices.values()) + sum(t.nbytes for t in network.parameters()) == whole + table


@needs_avx512
@pytest.mark.skipif(not MAPS.exists(), reason="the system does not tell what is mapped")
@pytest.mark.parametrize("causal", [False, True])
def test_the_file_of_the_weights_does_not_stay_in_memory(tmp_path: Path, causal: bool) -> None:
    made = drawn(SOURCES["Qwen2"]) if causal else tiny_network(1)
    made.to(torch.bfloat16).save_pretrained(tmp_path)
    network = load_network(tmp_path, "cpu")
    assert str(tmp_path) in MAPS.read_text(), "transformers reads it in place"
    pack(network)
    assert str(tmp_path) not in MAPS.read_text()


@pytest.mark.parametrize("why", ["float32", "another processor", "too large"])
def test_other_networks_stay_as_they_are(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    network = tiny_network(1, torch.float32 if why == "float32" else torch.bfloat16)
    capability = "AVX2" if why == "another processor" else "AVX512"
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    if why == "too large":
        monkeypatch.setattr(packed, "MOST", sum(t.nbytes for t in network.parameters()) - 1)
    before = linear_layers(network)
    pack(network)
    assert linear_layers(network) == before > 0


def test_the_copy_of_the_head_is_counted_before_a_network_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.safetensors").write_bytes(bytes(1000))
    least = int(1000 * (memory.MARGIN + packed.SHARE))
    for free, most, device in ((least, 1000, "cpu"), (least - 1, 999, "cpu"), (least - 1, 1000, "cuda:0")):
        monkeypatch.setattr("dg_lsp.engine.memory.free", lambda _, free=free: (free, "this machine"))
        monkeypatch.setattr(packed, "MOST", most)
        memory.check(tmp_path, device)
    monkeypatch.setattr(packed, "MOST", 1000)
    with pytest.raises(EngineError, match="needs"):
        memory.check(tmp_path, "cpu")


@pytest.mark.parametrize("hidden", ["_reorder_linear_weight", "_linear_pointwise", "both", "another meaning"])
def test_without_torchs_private_operations_the_products_are_plain(
    hidden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    have = {
        "_reorder_linear_weight": lambda matrix, _: matrix,
        "_linear_pointwise": lambda states, matrix, *_: states @ matrix.T,
    }
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(**have))
    assert packed._can_pack()
    for name in have:
        if hidden in (name, "both"):
            del have[name]
            break
    changed = (
        {**have, "_linear_pointwise": lambda *_: torch.zeros(16, 16)} if hidden == "another meaning" else have
    )
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(**({} if hidden == "both" else changed)))
    network = torch.nn.Sequential(torch.nn.Linear(4, 4, dtype=torch.bfloat16))
    before = network[0]
    packed.pack(network)
    assert network[0] is before
