"""The engine on a CUDA device: the same laws. Skipped, with the reason, where there is none."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.canvas import Canvas
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.denoise import denoise
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule
from tests.model.gguf_files import source, tensors_of, write
from tests.model.reference import step_logits
from tests.model.tiny import CANVAS, VOCABULARY, save_checkpoint, tiny_network

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]


def on(device: str) -> tuple[Any, PrefixCache]:
    network = tiny_network(1).to(device)
    cache = PrefixCache(network.config.text_config)
    with torch.inference_mode():
        tokens = torch.arange(40, device=device)[None]
        network.model.encoder.language_model(input_ids=tokens, past_key_values=cache)
    return network, cache


def test_logits_are_those_of_the_cpu() -> None:
    found = []
    for device in ("cpu", "cuda"):
        network, cache = on(device)
        canvas = torch.arange(CANVAS, device=device)[None]
        with torch.inference_mode():
            found.append(step_logits(network, cache, canvas, torch.arange(CANVAS, device=device), None).cpu())
    assert torch.allclose(found[0], found[1], atol=2e-3)


def test_an_anchor_never_changes() -> None:
    network, cache = on("cuda")
    anchored = (torch.arange(CANVAS)[None] % 3 > 0).cuda()
    canvas = Canvas(torch.arange(CANVAS, device="cuda")[None], anchored)
    sampler = AnchoredSampler(canvas, 0.1, SeededNoise(0, VOCABULARY, torch.device("cuda")))
    for step in denoise(network, cache, sampler, Schedule(steps=20)):
        assert torch.equal(step.best[anchored], canvas.tokens[anchored])
        assert torch.equal(step.canvas[anchored], canvas.tokens[anchored])


def test_a_step_waits_for_the_device_once() -> None:
    network, cache = on("cuda")
    anchored = (torch.arange(CANVAS)[None] % 3 > 0).cuda()
    canvas = Canvas(torch.arange(CANVAS, device="cuda")[None], anchored)
    sampler = AnchoredSampler(canvas, 0.1, SeededNoise(0, VOCABULARY, torch.device("cuda")))
    steps = denoise(network, cache, sampler, Schedule(steps=20, confidence=-1.0))
    next(steps)
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as waits:
            warnings.simplefilter("always")
            for _ in range(4):
                next(steps)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    # transformers' product of stacked matrices waits, too, where they are in fp32.
    own = [
        f"{w.filename}:{w.lineno}" for w in waits if "synchroniz" in str(w.message) and "dg_lsp" in w.filename
    ]
    assert len(own) == 4, own


def test_a_request_is_answered(tmp_path: Path) -> None:
    save_checkpoint(tmp_path)
    model = load_checkpoint(str(tmp_path), "cuda")
    cache = PrefixCache(model.network.config.text_config)
    *_, fill = infill(model, cache, Infill("x = ", "\n", "python", "rest_of_line"))
    assert isinstance(fill, Fill)


def test_passes_are_replayed_as_cuda_graphs() -> None:
    model = load_checkpoint("embedded", "cuda+graphs")
    for text in ("x = 1\n", "y = 2\n" * 20):
        cache = PrefixCache(model.network.config.text_config)
        *_, fill = infill(model, cache, Infill(text + "z = ", "\n", "python", "rest_of_line"))
        assert isinstance(fill, Fill)
    # What is recorded was compared with a plain pass.
    assert not model.network.replays.broken and model.network.replays.recorded


@pytest.mark.parametrize("kind", ["qwen2", "llama biased"])
def test_a_gguf_file_gives_the_logits_of_the_cpu(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "net-q4_k_m.gguf", tensors_of(source(kind), kind))
    tokens = torch.arange(8, 40)[None]
    found = []
    for device in ("cpu", "cuda"):
        model = load_checkpoint(str(path), device)
        with torch.inference_mode():
            found.append(model.network.trial(tokens.to(device)).float().cpu())
        request = Infill("x = ", "\n", "python", "rest_of_line")
        *_, fill = infill(model, PrefixCache(model.network.text_config), request)
        assert isinstance(fill, Fill)
    assert torch.allclose(found[0], found[1], atol=0.05 * float(found[0].std()))
