"""A random checkpoint of bytes, and a tiny network that really denoises: it was taught to count."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from transformers.cache_utils import DynamicCache

from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from tests.model.stored import counting
from tests.model.tiny import CANVAS, VOCABULARY, save_checkpoint, tiny_config, tiny_network

# Enough for a wide margin on every CPU, each of which has other last digits: all 12 cases of test_law.py that are to
# stop by themselves do so within 31 of 48 steps, with AVX-512 and with AVX2.
STEPS = 400
PROMPTS = (2, 6, 12, 20, 29)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A checkpoint of a random network whose tokens are bytes."""
    path = tmp_path_factory.mktemp("bytes")
    save_checkpoint(path)
    return load_checkpoint(str(path), "cpu")


@pytest.fixture(scope="session")
def counting_network() -> Any:
    """The network that `teach_counting` gave, stored."""
    return counting()


def teach_counting() -> Any:
    """Knows one thing: each token is the one before plus one. Uniform corruption only, as the published loss."""
    network = tiny_network(0, config=tiny_config(repeats=1))
    weights = [w for name, w in network.named_parameters() if "vision" not in name]
    with torch.no_grad():
        for weight in weights:
            if weight.ndim >= 2:
                weight.mul_(0.3)
    optimiser = torch.optim.AdamW(weights, lr=4e-3)
    # A rate that falls to nothing ends at nearly the same network on every CPU.
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0.02, total_iters=STEPS)
    draw = torch.Generator().manual_seed(0)
    for number in range(STEPS):
        prompt = PROMPTS[number % len(PROMPTS)]
        start = torch.randint(VOCABULARY, (32, 1), generator=draw)
        tokens = (start + torch.arange(prompt + CANVAS)) % VOCABULARY
        clean = tokens[:, prompt:]
        noise = torch.randint(VOCABULARY, clean.shape, generator=draw)
        hit = torch.rand(clean.shape, generator=draw) < torch.rand(32, 1, generator=draw)
        logits = _twice(network, tokens[:, :prompt], torch.where(hit, noise, clean))
        loss = F.cross_entropy(logits.flatten(0, 1), clean.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    assert float(loss.detach()) < 1, "the counting network did not learn to count"
    return network.eval()


def _twice(network: Any, prompt: torch.Tensor, canvas: torch.Tensor) -> torch.Tensor:
    """Logits of the second of two passes, conditioned on the first for half of the rows."""

    def once(previous: torch.Tensor | None) -> torch.Tensor:
        cache = DynamicCache(config=network.config.text_config)
        mask = None if previous is None else torch.arange(len(canvas)) % 2 == 0
        return network(  # type: ignore[no-any-return]
            input_ids=prompt,
            decoder_input_ids=canvas,
            past_key_values=cache,
            self_conditioning_logits=previous,
            self_conditioning_mask=mask,
        ).logits

    with torch.no_grad():
        first = once(None)
    return once(first)
