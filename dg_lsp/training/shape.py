"""The network to train: the config of the embedded network, and functions that make or load a network.

Knows no data and no loss.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import DiffusionGemmaConfig

from dg_lsp.model.networks.gemma import DiffusionGemma

PAD, EOS, BOS = 0, 1, 2
CANVASES = (64, 128, 256)

# The class requires a vision tower. This is the smallest one; `load_network` drops it.
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
    """The config of the embedded checkpoint; tests use smaller numbers.

    vocabulary: tokens. hidden: size of a hidden state. layers: even; they alternate between a sliding window of 256
    tokens and full attention. Each has a dense part and 4 experts, of which 2 are active for a token (the released
    model has 128 and 8).
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
    """A network of `config` with random weights; the same seed gives the same weights."""
    torch.manual_seed(seed)
    return DiffusionGemma._from_config(
        config, dtype=dtype, attn_implementation=attention, experts_implementation="grouped_mm"
    )


def stored_network(path: Path, file: str | None = None, attention: str = "eager") -> Any:
    """The network of the checkpoint in `path` in bf16, for training; unlike `load_network` it keeps the vision tower.

    file: the name of another weights file in `path`, which is read instead of the checkpoint's own. attention:
    transformers' name of the function that computes it.
    """
    network = DiffusionGemma.from_pretrained(
        str(path),
        dtype=torch.bfloat16,
        local_files_only=True,
        attn_implementation=attention,
        experts_implementation="grouped_mm",
    )
    if file is not None:
        stored, known = load_file(path / file), dict(network.named_parameters())
        assert stored.keys() == known.keys(), f"{path / file} does not belong to the checkpoint beside it"
        with torch.no_grad():
            for name, weight in known.items():
                weight.copy_(stored[name])
    return network
