"""Tiny random networks of the real layout, and the noise that `model.generate` draws."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import DiffusionGemmaConfig
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.canvas import Canvas
from dg_lsp.model.networks.gemma import DiffusionGemma
from dg_lsp.model.networks.quanta import Format, quantise
from dg_lsp.model.networks.quantized import QuantizedExperts, QuantizedLinear
from dg_lsp.model.networks.stacks import Packed
from dg_lsp.model.prompts.styles import style_of
from dg_lsp.training.shape import VISION

VOCABULARY, CANVAS, WINDOW = 64, 16, 16


def tiny_config(vocabulary: int = VOCABULARY, repeats: int = 2, inner: int = 16) -> DiffusionGemmaConfig:
    """Layers (sliding, sliding, full) `repeats` times, window 16, canvas 16, 8 experts of which 2 are used.

    inner: the width of an expert.
    """
    text: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 48,
        "moe_intermediate_size": inner,
        "num_experts": 8,
        "top_k_experts": 2,
        "num_hidden_layers": 3 * repeats,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * repeats,
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
    return DiffusionGemmaConfig(text_config=text, vision_config=dict(VISION), canvas_length=CANVAS)


def tiny_network(
    seed: int = 0, dtype: torch.dtype = torch.float32, config: DiffusionGemmaConfig | None = None
) -> Any:
    """A random network whose weights are widened so that attention and experts matter."""
    torch.manual_seed(seed)
    network = DiffusionGemma._from_config(
        config or tiny_config(),
        dtype=dtype,
        attn_implementation="sdpa",
        experts_implementation="eager" if dtype == torch.float64 else "grouped_mm",
    )
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.ndim >= 2 and "vision" not in name and "embed" not in name:
                weight.normal_(0, 0.25)
            elif "embed_tokens" in name:
                weight.normal_(0, 0.6)
    return network.eval()


def scaled_network(config: DiffusionGemmaConfig) -> Any:
    """A random network in which two layers, one of the decoder and one of the encoder, have a scale of their own."""
    network = tiny_network(3, config=config)
    network.model.decoder.layers[0].layer_scalar.fill_(0.5)
    network.model.encoder.language_model.layers[1].layer_scalar.fill_(0.75)
    return network


def canvas_logits(network: Any) -> Tensor:
    """The logits in fp32 of a canvas after a prefix longer than the window, from encoder and decoder."""
    cache = encoded(network, list(range(40)))
    logits: Tensor = network(decoder_input_ids=torch.arange(16)[None], past_key_values=cache).logits
    return logits.float()


def quantised_experts(
    experts: Any, formats: tuple[Format, Format], way: str | None = None
) -> QuantizedExperts:
    """Experts in few bits, from a module of transformers."""
    weights = experts.gate_up_proj.detach(), experts.down_proj.detach()
    gate_up, down = (
        Packed.of(quantise(some, format_), way) for some, format_ in zip(weights, formats, strict=True)
    )
    return QuantizedExperts(gate_up, down, experts.act_fn)


def pack_matrices(network: Any, bits: int = 4) -> Any:
    """`network` with each matrix of its layers that divides into groups in few bits; the others are as they were."""
    format_ = Format(bits, 32)
    for layer, twin in zip(
        network.model.decoder.layers, network.model.encoder.language_model.layers, strict=True
    ):
        if layer.experts.down_proj.shape[-1] % format_.group == 0:
            layer.experts = twin.experts = quantised_experts(layer.experts, (format_, format_))
        for name, linear in [*layer.named_modules()]:
            is_own = isinstance(linear, torch.nn.Linear) and ("_attn." in name or "mlp." in name)
            if is_own and linear.in_features % format_.group == 0:
                packed = QuantizedLinear(Packed.of(quantise(linear.weight.detach()[None], format_)))
                layer.set_submodule(name, packed)
                twin.set_submodule(name, packed)
    return network


def packed_network(seed: int = 0) -> Any:
    """A tiny random network in bf16 whose experts and most dense layers have four bits."""
    return pack_matrices(tiny_network(seed, torch.bfloat16, tiny_config(inner=32)))


def byte_tokenizer() -> Tokenizer:
    """Bytes as tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<eos>", "<bos>", "<unk>", *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<pad>", "<eos>", "<bos>", "<unk>"])
    return tokenizer


def save_checkpoint(
    path: Path,
    seed: int = 0,
    tokenizer: Tokenizer | None = None,
    canvas: int = CANVAS,
    ends: int | list[int] = 1,
) -> None:
    """A whole random checkpoint in `path`: tokenizer, network, manifest. Its prompt's style is the tokenizer's."""
    tokenizer = tokenizer or byte_tokenizer()
    config = tiny_config(tokenizer.get_vocab_size())
    config.canvas_length, config.text_config.eos_token_id = canvas, ends
    network = tiny_network(seed, config=config)
    network.generation_config = DiffusionGemmaGenerationConfig(
        max_denoising_steps=8, sampler_config=EntropyBoundSamplerConfig(0.1), t_min=0.4, t_max=0.8
    )
    network.save_pretrained(path)
    tokenizer.save(str(path / "tokenizer.json"))
    extra = {"prompt": style_of(tokenizer), "canvas_lengths": [64, 128], "max_prefix_tokens": 512}
    (path / "dg_lsp.json").write_text(json.dumps(extra))
    write_manifest(path)


def write_manifest(path: Path) -> None:
    """Make the manifest say what lies there."""
    files = {
        file.name: {"bytes": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for file in sorted(path.iterdir())
        if file.name != "manifest.json"
    }
    (path / "manifest.json").write_text(json.dumps({"files": files}))


class GenerateNoise:
    """Draws from the global generator exactly as `generate` does: for the whole canvas, in its order."""

    def __init__(self, canvas: Canvas, vocabulary: int = VOCABULARY) -> None:
        self._shape, self._free, self._vocabulary = canvas.tokens.shape, canvas.free_slots, vocabulary

    def tokens(self, canvas: Canvas) -> Tensor:
        return torch.randint(0, self._vocabulary, tuple(self._shape))

    def pick(self, probabilities: Tensor, numbers: Tensor) -> Tensor:
        race = torch.empty(self._shape.numel(), self._vocabulary).exponential_(1)
        return (probabilities / race[self._free[numbers]]).argmax(-1)


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
