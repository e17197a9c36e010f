"""The released checkpoint's true shape, without its weights: what it is made of, what it takes, how it is spoken to."""

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.released import released_config
from dg_lsp.messages import Draft, Fill
from dg_lsp.model.cache import CHUNK, PrefixCache
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.networks.gemma import DiffusionGemma
from tests.model.test_chat import REQUEST, tokenizer
from tests.model.tiny import save_checkpoint, write_manifest

__all__ = ["tokenizer"]  # a fixture


@pytest.fixture(scope="module")
def network() -> Any:
    with torch.device("meta"):
        return DiffusionGemma._from_config(released_config(), dtype=torch.bfloat16)


def test_the_class_at_the_true_shape_has_the_published_tensors(network: Any) -> None:
    """661 tensors of the decoder; 25.82 billion weights, of which the vision tower has 0.57."""
    names = [name for name in network.state_dict() if name.startswith("model.decoder.")]
    assert len(names) == 661
    weights = sum(w.numel() for name, w in network.named_parameters() if "vision" not in name)
    assert weights == 25_250_986_752


def test_a_token_of_prefix_takes_what_the_budget_counts_on(network: Any) -> None:
    text = network.config.text_config
    cache = PrefixCache(text)
    for layer, kind in zip(cache.layers, text.layer_types, strict=True):
        heads, size = (2, 512) if kind == "full_attention" else (8, 256)
        part = torch.empty(1, heads, CHUNK, size, dtype=torch.bfloat16, device="meta")
        layer.update(part, part)
    assert cache.bytes == 225_280 * CHUNK


def test_a_checkpoint_without_our_own_file_is_used_as_it_describes_itself(
    tokenizer: Any, tmp_path: Path
) -> None:
    """As the released one comes: no dg_lsp.json, one canvas length, two ends, a chat tokenizer."""
    save_checkpoint(tmp_path, tokenizer=tokenizer, canvas=256, ends=[1, 6])
    (tmp_path / "dg_lsp.json").unlink()
    write_manifest(tmp_path)
    model = load_checkpoint(str(tmp_path), "cpu")
    assert (model.style, model.canvas_lengths, model.bos, model.eos) == ("chat", (256,), 2, 1)
    events = list(infill(model, PrefixCache(model.network.config.text_config), REQUEST))
    drafts = [event for event in events if isinstance(event, Draft) and event.runs]
    assert isinstance(events[-1], Fill) and drafts
    # The canvas is drawn as text, so it holds the file's end and, after it, the end of the turn.
    assert "return 2 * b" in "".join(run.text for run in drafts[0].runs)
