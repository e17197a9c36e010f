"""GGUF files of the architecture diffusion-gemma, made here in the names and layouts of the published ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGUFWriter
from gguf.quants import dequantize
from torch import Tensor
from transformers import DiffusionGemmaConfig

from dg_lsp.checkpoints import CheckpointError
from dg_lsp.engine import memory
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.fill import fill
from dg_lsp.model.networks.base import Denoiser, Reader
from dg_lsp.model.networks.gguf_file import read_gguf
from dg_lsp.model.networks.gguf_gemma import _NAMES, _PARTS, KIND, load_gguf_gemma
from dg_lsp.model.networks.quantized import QuantizedExperts
from dg_lsp.model.networks.stacks import Packed
from dg_lsp.training.shape import VISION
from tests.model.gguf_files import VOCABULARY, Kind, add_tokenizer, blocks_of
from tests.model.tiny import canvas_logits, scaled_network

TOLERANCE = 3e-2  # of the largest logit, everything but the kernel's products in bf16 as well
KINDS = {
    "ffn_gate_up_exps": Kind.Q4_K,
    "ffn_down_exps": Kind.Q8_0,
    "attn_q": Kind.Q4_K,
    "token_embd": Kind.Q6_K,
}
SHAPES: dict[str, Any] = {
    "block_count": 3,
    "context_length": 4096,
    "embedding_length": 256,
    "feed_forward_length": 64,
    "expert_feed_forward_length": 64,
    "expert_count": 8,
    "expert_used_count": 2,
    "attention.head_count": 4,
    "attention.key_length_swa": 32,
    "attention.value_length_swa": 32,
    "attention.key_length": 64,
    "attention.value_length": 64,
    "attention.sliding_window": 16,
    "rope.dimension_count": 64,
    "rope.dimension_count_swa": 32,
}
SLIDING = [True, True, False]


def config() -> DiffusionGemmaConfig:
    """The configuration that a header with SHAPES describes."""
    text = {
        "vocab_size": VOCABULARY,
        "hidden_size": 256,
        "intermediate_size": 64,
        "moe_intermediate_size": 64,
        "num_experts": 8,
        "top_k_experts": 2,
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention" if one else "full_attention" for one in SLIDING],
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 32,
        "global_head_dim": 64,
        "sliding_window": 16,
        "max_position_embeddings": 4096,
        "use_bidirectional_attention": "vision",
        "final_logit_softcapping": 30.0,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    }
    return DiffusionGemmaConfig(text_config=text, vision_config=dict(VISION), canvas_length=16)


def their_name(name: str) -> str:
    """The name in a GGUF file for the tensor `name` of transformers' decoder."""
    own = name.removeprefix("model.decoder.")
    for theirs, ours in _NAMES.items():
        if ours == own:
            return theirs
    _, layer, part = own.split(".", 2)
    return f"blk.{layer}.{next(theirs for theirs, ours in _PARTS.items() if ours == part)}"


def write(path: Path, network: Any, change: Callable[[dict[str, Any]], object] = lambda _: None) -> Path:
    """Write the tensors of `network` to `path`, and let it hold what the written blocks stand for."""
    writer = GGUFWriter(path, KIND)
    for name, value in SHAPES.items():
        writer.add_uint32(f"{KIND}.{name}", value)
    writer.add_array(f"{KIND}.attention.head_count_kv", [2 if one else 1 for one in SLIDING])
    writer.add_array(f"{KIND}.attention.sliding_window_pattern", SLIDING)
    for name, number in (
        ("attention.layer_norm_rms_epsilon", 1e-6),
        ("final_logit_softcapping", 30.0),
        ("rope.freq_base", 1e6),
        ("rope.freq_base_swa", 1e4),
    ):
        writer.add_float32(f"{KIND}.{name}", number)
    writer.add_bool(f"{KIND}.attention.causal", False)
    writer.add_uint32("diffusion.canvas_length", 16)
    add_tokenizer(writer)
    tensors: dict[str, Any] = {"rope_freqs.weight": np.array([1.0] * 8 + [1e30] * 24, np.float32)}
    layers = network.model.encoder.language_model.layers
    tensors |= {
        f"blk.{n}.enc_layer_output_scale.weight": layer.layer_scalar for n, layer in enumerate(layers)
    }
    scalars = [(name, t) for name, t in network.named_buffers() if name.endswith("layer_scalar")]
    tied = dict(network.named_parameters(remove_duplicate=False))
    for name, value in [*tied.items(), *scalars]:
        if name.startswith("model.decoder."):
            tensors[their_name(name)] = value
    change(tensors)
    for name, value in tensors.items():
        plain = value.detach().float().numpy() if isinstance(value, Tensor) else value
        kind = KINDS.get(name.split(".")[-2])
        if plain.ndim == 1 or kind is None:
            writer.add_tensor(name, plain)
            continue
        raw = blocks_of(plain.reshape(-1, plain.shape[-1]), kind)
        writer.add_tensor(name, raw.reshape(*plain.shape[:-1], -1), raw_dtype=kind)
        if isinstance(value, Tensor):
            value.data = torch.from_numpy(dequantize(raw, kind)).view(value.shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def network() -> Any:
    return scaled_network(config())


@pytest.mark.parametrize("bits", [16, 8])
@torch.inference_mode()
def test_the_logits_are_those_of_the_dequantised_file(tmp_path: Path, network: Any, bits: int) -> None:
    with torch.inference_mode(mode=False), torch.no_grad():
        path = write(tmp_path / "net.gguf", network)
    wanted = canvas_logits(network)
    made = load_gguf_gemma(read_gguf(path), "cpu", bits)
    experts = made.model.decoder.layers[1].experts
    assert (
        isinstance(experts, QuantizedExperts)
        and experts is made.model.encoder.language_model.layers[1].experts
    )
    assert isinstance(experts.gate_up, Packed) and isinstance(experts.down, Packed)
    assert (experts.gate_up.format.bits, experts.down.format.bits) == (4, 8)
    far = float((canvas_logits(made) - wanted).abs().max() / wanted.abs().max())
    in_bf16 = float((canvas_logits(network.bfloat16()) - wanted).abs().max() / wanted.abs().max())
    assert far < max(2 * in_bf16, TOLERANCE)


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_the_memory_that_it_takes_is_counted_from_the_header(tmp_path: Path, network: Any, bits: int) -> None:
    with torch.no_grad():
        path = write(tmp_path / "net.gguf", network)
    made = load_gguf_gemma(read_gguf(path), "cpu", bits)
    held = sum(t.nbytes for t in (*made.parameters(), *made.buffers()))
    for place in (path, tmp_path):  # the file, and the folder of a checkpoint that it is in
        assert held <= memory.needed(place, "cuda", bits=bits) / memory.MARGIN < 1.1 * held


def test_a_damaged_file_is_counted_by_its_size(tmp_path: Path, network: Any) -> None:
    with torch.no_grad():
        path = write(tmp_path / "net.gguf", network)
    for data in (path.read_bytes()[:-64], b"GGUF", path.read_bytes()[:200]):
        path.write_bytes(data)
        assert memory.needed(path, "cuda", bits=4) >= len(data)


def test_a_file_is_a_checkpoint_that_denoises(tmp_path: Path, network: Any) -> None:
    with torch.no_grad():
        write(tmp_path / "net.gguf", network)
    model = load_checkpoint(str(tmp_path / "net.gguf"), "cpu", bits=4)
    assert model.network.model.decoder.layers[0].experts.down.format.bits == 4
    assert isinstance(model.network, Reader) and isinstance(model.network, Denoiser)
    assert model.canvas_lengths == (16,) and model.schedule.steps > 0
    *_, last = fill(
        model, PrefixCache(model.network.text_config), Infill("x = ", "\n", "python", "rest_of_line")
    )
    assert isinstance(last, Fill)


def rename(tensors: dict[str, Any]) -> None:
    tensors["blk.0.ffn_gate_up_expert.weight"] = tensors.pop("blk.0.ffn_gate_up_exps.weight")


def lose_a_scale(tensors: dict[str, Any]) -> None:
    tensors["blk.1.ffn_down_exps.weight"] = torch.full_like(tensors["blk.1.ffn_down_exps.weight"], torch.nan)


def turn_all(tensors: dict[str, Any]) -> None:
    tensors["rope_freqs.weight"] = np.full(32, 2.0, np.float32)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: t.pop("blk.2.ffn_down_exps.scale"), "layers.2.router.per_expert_scale"),
        (
            lambda t: t.pop("blk.1.enc_layer_output_scale.weight"),
            "encoder.language_model.layers.1.layer_scalar",
        ),
        (lambda t: t.pop("self_cond_up.weight"), "self_conditioning.up_proj.weight"),
        (lambda t: t.pop("rope_freqs.weight"), "rope_freqs.weight is missing"),
        (rename, "blk.0.ffn_gate_up_expert.weight is no tensor of this network"),
        (lose_a_scale, "blk.1.ffn_down_exps.weight holds scales that are not finite"),
        (turn_all, "rope_freqs.weight holds factors that are not understood"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, network: Any, change: Any, why: str
) -> None:
    with torch.no_grad():
        path = write(tmp_path / "net.gguf", network, change)
    with pytest.raises(CheckpointError, match=why):
        load_gguf_gemma(read_gguf(path), "cpu", 8)
