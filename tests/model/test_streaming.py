"""A checkpoint in bf16, quantised while it is read: the values of one quantised in memory, and nothing left out."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmarks.released import tiny_config
from dg_lsp.model.networks.attention import GROUPED
from dg_lsp.model.networks.loading import CheckpointError
from dg_lsp.model.networks.quantized import Format, QuantizedExperts
from dg_lsp.model.networks.streaming import load_quantised
from tests.model.tiny import encoded, tiny_network

CPU = torch.device("cpu")
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
    found = load_quantised(path, FORMATS, CPU)
    network.set_attn_implementation(GROUPED)
    layers = network.model.decoder.layers, network.model.encoder.language_model.layers
    for ours, twin in zip(*layers, strict=True):
        ours.experts = twin.experts = QuantizedExperts.of(ours.experts, FORMATS)
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
        load_quantised(path, FORMATS, CPU)
    assert name in str(refused.value) or "model.decoder.other" in str(refused.value)


def test_experts_that_do_not_divide_into_groups_are_refused_by_name(stored: tuple[Path, Any]) -> None:
    with pytest.raises(CheckpointError, match=r"experts.*use smaller groups"):
        load_quantised(stored[0], (Format(4, 128), Format(4, 128)), CPU)


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="safetensors"):
        load_quantised(tmp_path, FORMATS, CPU)
