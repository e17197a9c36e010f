"""Tiny random networks of the real layout, and the noise that `model.generate` draws."""

from typing import Any

import torch
from torch import Tensor
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.canvas import Canvas

VOCABULARY, CANVAS, WINDOW = 64, 16, 16


def tiny_config() -> DiffusionGemmaConfig:
    """Six layers (sliding, sliding, full, twice), window 16, canvas 16, 8 experts of which 2 are used."""
    text: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "moe_intermediate_size": 16,
        "num_experts": 8,
        "top_k_experts": 2,
        "num_hidden_layers": 6,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_global_key_value_heads": 1,
        "global_head_dim": 16,
        "sliding_window": WINDOW,
        "max_position_embeddings": 4096,
        "use_bidirectional_attention": "vision",
        "final_logit_softcapping": 30.0,
    }
    vision = {
        "model_type": "gemma4_vision",
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "patch_size": 4,
        "position_embedding_size": 4,
    }
    return DiffusionGemmaConfig(text_config=text, vision_config=vision, canvas_length=CANVAS)


def tiny_network(seed: int = 0, dtype: torch.dtype = torch.float32, sharpness: float = 1.0) -> Any:
    """A random network whose weights are widened so that attention and experts matter.

    `sharpness` scales the embedding, and with it how far the logits lie apart.
    """
    torch.manual_seed(seed)
    network = DiffusionGemmaForBlockDiffusion._from_config(
        tiny_config(),
        dtype=dtype,
        attn_implementation="sdpa",
        experts_implementation="eager" if dtype == torch.float64 else "grouped_mm",
    )
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.ndim >= 2 and "vision" not in name and "embed" not in name:
                weight.normal_(0, 0.25)
            elif "embed_tokens" in name:
                weight.normal_(0, 0.6 * sharpness)
    return network.eval()


class GenerateNoise:
    """Draws from the global generator exactly as `generate` does: for the whole canvas, in its order."""

    def __init__(self, canvas: Canvas, vocabulary: int = VOCABULARY) -> None:
        self._shape, self._free, self._vocabulary = canvas.tokens.shape, canvas.free_slots(), vocabulary

    def tokens(self, canvas: Canvas) -> Tensor:
        return torch.randint(0, self._vocabulary, tuple(self._shape))

    def pick(self, probabilities: Tensor) -> Tensor:
        race = torch.empty(self._shape.numel(), self._vocabulary).exponential_(1)
        return (probabilities / race[self._free]).argmax(-1)


def encoded(network: Any, tokens: list[int]) -> PrefixCache:
    """A cache that holds `tokens`, encoded in one go."""
    cache = PrefixCache(network.config.text_config)
    extend(network, cache, tokens)
    return cache


@torch.inference_mode()
def extend(network: Any, cache: PrefixCache, tokens: list[int]) -> None:
    """Append `tokens` to `cache` as one chunk."""
    network.model.encoder.language_model(input_ids=torch.tensor([tokens]), past_key_values=cache)
    cache.tokens += tuple(tokens)
