"""The shape of the embedded network: DiffusionGemma's own class, some four thousand times smaller.

Knows the config and how a fresh network is made from it; knows no data, no loss and no file.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

PAD, EOS, BOS = 0, 1, 2
CANVASES = (64, 128, 256)

# The class insists on a vision tower. This is the least it can be; a loader drops it.
VISION = {
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


def embedded_config(vocabulary: int = 4096, hidden: int = 256, layers: int = 4) -> DiffusionGemmaConfig:
    """The config of the embedded checkpoint; smaller numbers give the shape that tests use.

    Layers alternate between a window of 256 tokens and the full prefix, and end with the full one. Each has a
    dense part and 4 experts of which 2 work on a token, as the released model has 128 and 8.
    """
    assert layers % 2 == 0
    text: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "moe_intermediate_size": hidden,
        "num_experts": 4,
        "top_k_experts": 2,
        "num_hidden_layers": layers,
        "layer_types": ["sliding_attention", "full_attention"] * (layers // 2),
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": hidden // 4,
        "num_global_key_value_heads": 2,
        "global_head_dim": hidden // 4,
        "sliding_window": 256,
        "max_position_embeddings": 4096,
        "use_bidirectional_attention": "vision",
        "final_logit_softcapping": 30.0,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "bos_token_id": BOS,
        "tie_word_embeddings": True,
    }
    return DiffusionGemmaConfig(text_config=text, vision_config=dict(VISION), canvas_length=CANVASES[-1])


def fresh_network(
    config: DiffusionGemmaConfig, seed: int, dtype: torch.dtype = torch.bfloat16, attention: str = "sdpa"
) -> Any:
    """A network of `config` with random weights, made the same for the same seed."""
    torch.manual_seed(seed)
    return DiffusionGemmaForBlockDiffusion._from_config(
        config, dtype=dtype, attn_implementation=attention, experts_implementation="grouped_mm"
    )


def stored_network(path: Path, file: str | None = None) -> Any:
    """The whole network of the checkpoint in `path`, in bf16 and for training: its vision tower stays.

    file: another file of weights beside the checkpoint's own, in the same format, to be taken instead.
    """
    network = DiffusionGemmaForBlockDiffusion.from_pretrained(
        str(path),
        dtype=torch.bfloat16,
        local_files_only=True,
        attn_implementation="eager",
        experts_implementation="grouped_mm",
    )
    if file is not None:
        stored, known = load_file(path / file), dict(network.named_parameters())
        assert stored.keys() == known.keys(), f"{path / file} does not belong to the checkpoint beside it"
        with torch.no_grad():
            for name, weight in known.items():
                weight.copy_(stored[name])
    return network
