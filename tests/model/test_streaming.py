"""A checkpoint in bf16, quantised while it is read: the values of one quantised in memory, and nothing left out."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmarks.released import tiny_config
from dg_lsp.engine import memory
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.fill import fill
from dg_lsp.model.networks.attention import GROUPED
from dg_lsp.model.networks.base import Denoiser, Reader
from dg_lsp.model.networks.loading import CheckpointError
from dg_lsp.model.networks.quanta import Format
from dg_lsp.model.networks.quantized import QuantizedExperts
from dg_lsp.model.networks.streaming import load_quantised, quantised_size
from tests.model.tiny import (
    byte_tokenizer,
    encoded,
    quantised_experts,
    save_checkpoint,
    tiny_network,
    write_manifest,
)

FORMATS = (Format(4, 128), Format(4, 64))
EXPERTS = "model.decoder.layers.1.experts.down_proj"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    path = tmp_path_factory.mktemp("stored")
    network = tiny_network(1, torch.bfloat16, tiny_config())
    network.model.decoder.layers[0].layer_scalar.fill_(0.5)
    network.model.encoder.language_model.layers[1].layer_scalar.fill_(0.75)
    # In several files, as the released one comes.
    network.save_pretrained(path, max_shard_size="200KB")
    assert len([*path.glob("*.safetensors")]) > 2
    return path, network


def logits(network: Any) -> torch.Tensor:
    cache = encoded(network, list(range(40)))
    found: torch.Tensor = network(decoder_input_ids=torch.arange(16)[None], past_key_values=cache).logits
    return found


@torch.inference_mode()
def test_the_logits_are_those_of_the_network_quantised_in_memory(stored: tuple[Path, Any]) -> None:
    path, network = stored
    found = load_quantised(path, "cpu", 4)
    network.set_attn_implementation(GROUPED)
    layers = network.model.decoder.layers, network.model.encoder.language_model.layers
    for ours, twin in zip(*layers, strict=True):
        ours.experts = twin.experts = quantised_experts(ours.experts, FORMATS)
    assert torch.equal(logits(found), logits(network))
    assert found.lm_head.weight is found.model.decoder.embed_tokens.weight
    assert found.model.decoder.layers[0].experts is found.model.encoder.language_model.layers[0].experts


def damaged(path: Path, target: Path, name: str, change: Any) -> Path:
    """A copy of `path` in which the tensor called `name` went through `change`, or is gone where that gives None."""
    target.mkdir()
    (target / "config.json").write_text((path / "config.json").read_text())
    tensors = {n: t for file in path.glob("*.safetensors") for n, t in load_file(file).items()}
    new = change(tensors.pop(name))
    if isinstance(new, dict):
        tensors |= new
    elif new is not None:
        tensors[name] = new.contiguous()
    save_file(tensors, target / "model.safetensors")
    return target


@pytest.mark.parametrize(
    "name", [EXPERTS, "model.decoder.norm.weight", "model.encoder.language_model.layers.1.layer_scalar"]
)
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda _: None, "missing"),
        (lambda t: {"model.decoder.other": t}, "no tensor of this network"),
        (lambda t: torch.cat([t, t]), "has the shape"),
        (lambda t: torch.full_like(t, torch.nan), "not finite"),
    ],
    ids=["missing", "renamed", "misshapen", "no numbers"],
)
def test_a_tensor_that_does_not_fit_is_refused_by_name(
    stored: tuple[Path, Any], tmp_path: Path, name: str, change: Any, why: str
) -> None:
    path = damaged(stored[0], tmp_path / "damaged", name, change)
    with pytest.raises(CheckpointError, match=why) as refused:
        load_quantised(path, "cpu", 4)
    assert name in str(refused.value) or "model.decoder.other" in str(refused.value)


@pytest.mark.parametrize(
    ("device", "bits", "why"), [("cpu", 5, "use 4 or 8 bits"), ("cpu+disk:1", 4, "one device")]
)
def test_what_cannot_be_held_so_is_refused(
    stored: tuple[Path, Any], device: str, bits: int, why: str
) -> None:
    with pytest.raises(CheckpointError, match=why):
        load_quantised(stored[0], device, bits)


def test_the_size_in_few_bits_is_counted_from_the_files_before_they_are_loaded(
    stored: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = load_quantised(stored[0], "cpu", 4)
    held = sum(t.nbytes for t in (*network.parameters(), *network.buffers()))
    monkeypatch.setattr(
        "dg_lsp.engine.memory.free", lambda _: (int(1.15 * quantised_size(stored[0], 4)), "this machine")
    )
    memory.check(stored[0], "cuda:0", bits=4)
    with pytest.raises(EngineError, match="needs"):
        memory.check(stored[0], "cuda:0")
    assert held <= quantised_size(stored[0], 4) < 1.2 * held < quantised_size(stored[0], 16)


@pytest.mark.parametrize("bits", [4, 8])
def test_a_checkpoint_in_few_bits_fills_a_gap(tmp_path: Path, bits: int) -> None:
    save_checkpoint(tmp_path)
    config = tiny_config()
    config.text_config.vocab_size = byte_tokenizer().get_vocab_size()
    network = tiny_network(1, torch.bfloat16, config)
    network.generation_config = type(network.generation_config).from_pretrained(str(tmp_path))
    network.save_pretrained(tmp_path)
    write_manifest(tmp_path)
    model = load_checkpoint(str(tmp_path), "cpu", bits=bits)
    assert isinstance(model.network.model.decoder.layers[0].experts, QuantizedExperts)
    assert isinstance(model.network, Reader) and isinstance(model.network, Denoiser)
    *_, done = fill(
        model, PrefixCache(model.network.text_config), Infill("x = ", "\n", "python", "rest_of_line")
    )
    assert isinstance(done, Fill)
