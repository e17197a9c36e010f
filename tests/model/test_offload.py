"""A network of which some layers stay on the disk gives the logits of one that is whole in memory."""

from pathlib import Path
from typing import Any

import pytest
import torch

from dg_lsp.checkpoints import CheckpointError
from dg_lsp.model.cache import CHUNK, PrefixCache, extend_to
from dg_lsp.model.canvas import Canvas
from dg_lsp.model.denoise import denoise
from dg_lsp.model.networks.loading import check_logits, load_network, split_layers
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule, Step
from tests.model.reference import step_logits
from tests.model.tiny import CANVAS, save_checkpoint

KEPT = 2
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved")
    save_checkpoint(path)
    return path


@torch.inference_mode()
def run(network: Any) -> tuple[torch.Tensor, list[Step]]:
    """Logits of the first step after a prefix of two chunks, and three steps with self-conditioning."""
    cache = PrefixCache(network.config.text_config)
    vocabulary = network.config.text_config.vocab_size
    list(extend_to(network, cache, [7 * i % vocabulary for i in range(CHUNK + 40)]))
    canvas = Canvas(torch.arange(CANVAS)[None], torch.arange(CANVAS)[None] % 3 == 0)
    logits = step_logits(network, cache.seen_by(1), canvas.tokens, torch.arange(CANVAS), None)
    sampler = AnchoredSampler(canvas, 0.1, SeededNoise(0, vocabulary, CPU))
    return logits, list(denoise(network, cache, sampler, Schedule(steps=3, confidence=1e-9)))


def test_layers_on_the_disk_give_the_same_logits(saved: Path) -> None:
    whole, split = load_network(saved, "cpu"), load_network(saved, f"cpu+disk:{KEPT}")
    (wanted, steps), (got, again) = run(whole), run(split)
    assert torch.equal(got, wanted)
    assert len(steps) == 3
    for a, b in zip(steps, again, strict=True):
        assert torch.equal(a.best, b.best)
        assert torch.equal(a.canvas, b.canvas)
        assert torch.equal(a.entropy, b.entropy)
    check_logits(split, saved)


def test_the_layers_stay_on_the_disk_and_the_ties_hold(saved: Path) -> None:
    network = load_network(saved, f"cpu+disk:{KEPT}")
    run(network)
    encoder, decoder = network.model.encoder.language_model, network.model.decoder
    for layers in (encoder.layers, decoder.layers):
        for number, layer in enumerate(layers):
            homes = {weight.device.type for weight in layer.parameters()}
            assert homes == ({"cpu"} if number < KEPT else {"meta"})
    table = decoder.embed_tokens.weight
    assert table.device.type == "cpu"
    assert network.lm_head.weight is table
    assert encoder.embed_tokens.weight is table


@pytest.mark.parametrize("device", ["cpu+graphs", "cpu+disk:1+graphs", "balanced+graphs", "auto+graphs"])
def test_graphs_without_a_gpu_are_refused(saved: Path, device: str) -> None:
    if device == "auto+graphs" and torch.cuda.is_available():
        pytest.skip("auto is a GPU here")
    with pytest.raises(CheckpointError, match=r"leave \+graphs out"):
        load_network(saved, device)


@pytest.mark.parametrize("device", ["cpu+disk", "cpu+tape:3", "disk+cpu:1", "cpu+disk:-1"])
def test_a_split_that_is_not_understood_is_refused_with_the_mend(saved: Path, device: str) -> None:
    with pytest.raises(CheckpointError, match=r"cuda\+cpu:20"):
        load_network(saved, device)


def test_a_split_names_every_part_of_the_network(saved: Path) -> None:
    placed = split_layers(saved, "cpu+disk:1")
    network = load_network(saved, "cpu")
    for name, _ in network.named_parameters():
        assert any(name.startswith(f"{part}.") for part in placed), name
