"""The released checkpoint's true shape, without its weights: what it is made of, what it takes, how it is spoken to."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

from dg_lsp.model.cache import CHUNK, PrefixCache
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.fill import infill
from dg_lsp.text.messages import Draft, Fill
from dg_lsp.training.shape import VISION
from tests.model.test_frame import REQUEST, tokenizer
from tests.model.tiny import save_checkpoint, write_manifest

__all__ = ["tokenizer"]  # a fixture


def released_config() -> DiffusionGemmaConfig:
    """The values of the released checkpoint's config.json, but for its vision tower, which is dropped after loading."""
    rope = {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    text: dict[str, Any] = {
        "vocab_size": 262144,
        "hidden_size": 2816,
        "intermediate_size": 2112,
        "moe_intermediate_size": 704,
        "num_experts": 128,
        "top_k_experts": 8,
        "num_hidden_layers": 30,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 256,
        "num_global_key_value_heads": 2,
        "global_head_dim": 512,
        "sliding_window": 1024,
        "max_position_embeddings": 262144,
        "rope_parameters": rope,
        "use_bidirectional_attention": "vision",
        "final_logit_softcapping": 30.0,
        "pad_token_id": 0,
        "eos_token_id": [1, 106],
        "bos_token_id": 2,
        "tie_word_embeddings": True,
    }
    return DiffusionGemmaConfig(text_config=text, vision_config=dict(VISION), canvas_length=256)


@pytest.fixture(scope="module")
def network() -> Any:
    with torch.device("meta"):
        return DiffusionGemmaForBlockDiffusion._from_config(released_config(), dtype=torch.bfloat16)


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
    # The canvas is drawn as text, so it holds the file's end and, behind it, the end of the turn.
    assert "return 2 * b" in "".join(run.text for run in drafts[0].runs)
