"""Write a trained network as a checkpoint directory that `load_checkpoint` reads.

Knows the files of a checkpoint and its manifest; knows no training.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from dg_lsp.engine.shape import BOS, CANVASES, EOS, PAD

_LISTED = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "dg_lsp.json")


def export(network: Any, tokenizer: Path, to: Path, about: Mapping[str, Any]) -> None:
    """Write `network` (bf16) and the file `tokenizer` to the directory `to`; `about` goes to dg_lsp.json.

    1. Write all files beside it.  2. The manifest over them.  3. Move them, the manifest last: a reader that comes
    between finds hashes that do not match, and never weights cut short.
    """
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        # 1.
        made = Path(folder)
        network.generation_config = _generation()
        network.save_pretrained(made)
        _spell_as_before(made / "config.json")
        shutil.copyfile(tokenizer, made / "tokenizer.json")
        extra = {
            "prompt": "raw",
            "canvas_lengths": list(CANVASES),
            "bos": BOS,
            "eos": EOS,
            "max_prefix_tokens": 1024,
            **about,
        }
        (made / "dg_lsp.json").write_text(json.dumps(extra, indent=1) + "\n")
        # 2.
        files = {}
        for name in _LISTED:
            data = (made / name).read_bytes()
            files[name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        (made / "manifest.json").write_text(json.dumps({"files": files}, indent=1) + "\n")
        # 3.
        for name in (*_LISTED, "manifest.json"):
            (made / name).chmod(0o644)
            (made / name).replace(to / name)


def _generation() -> DiffusionGemmaGenerationConfig:
    """The released checkpoint's schedule, with the ids of the embedded tokenizer."""
    return DiffusionGemmaGenerationConfig(
        max_denoising_steps=48,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=0.1),
        t_max=0.8,
        t_min=0.4,
        stability_threshold=1,
        confidence_threshold=0.005,
        max_new_tokens=256,
        eos_token_id=EOS,
        pad_token_id=PAD,
        bos_token_id=BOS,
    )


def _spell_as_before(file: Path) -> None:
    """Rewrite a config so that the oldest supported release reads it, too: no override of single layers."""
    config = json.loads(file.read_text())
    text = config["text_config"]
    text.pop("per_layer_config", None)
    text["global_head_dim"] = text["head_dim"]
    text["num_global_key_value_heads"] = text["num_key_value_heads"]
    file.write_text(json.dumps(config, indent=1) + "\n")
