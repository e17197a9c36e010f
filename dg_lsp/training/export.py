"""Export: write a trained network as a checkpoint directory that `load_checkpoint` reads.

Knows the files of a checkpoint and its manifest; knows no training.
"""

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

from dg_lsp.checkpoints import ABOUT, MANIFEST, read_about
from dg_lsp.model.manifest import write_manifest
from dg_lsp.training.shape import BOS, CANVASES, EOS

# Files of a checkpoint that are not copied to a checkpoint made of it.
_OWN = {ABOUT, MANIFEST, "curve.json", "sources.json", "heldout.json", "evaluation.json"}
_EMBEDDED = {
    "prompt": "raw",
    "canvas_lengths": list(CANVASES),
    "bos": BOS,
    "eos": EOS,
    "max_prefix_tokens": 1024,
    "languages": ["python"],
}


def export_embedded(network: Any, tokenizer: Path, to: Path, about: Mapping[str, Any]) -> None:
    """Write `network`, which has the embedded config, and the file `tokenizer` as a checkpoint to the directory `to`.

    about: further entries of dg_lsp.json.
    """
    network.generation_config = schedule(network.config.text_config)
    export(network, to, _EMBEDDED | dict(about), {"tokenizer.json": tokenizer})


def export_like(network: Any, base: Path, to: Path, about: Mapping[str, Any]) -> None:
    """Write `network` as a checkpoint to the directory `to`, with tokenizer and settings of the checkpoint in `base`.

    about: entries of dg_lsp.json that replace those of `base`.
    """
    copied = [f for f in base.glob("*.json") if f.name not in _OWN and not f.name.endswith(".index.json")]
    export(network, to, read_about(base) | dict(about), {file.name: file for file in copied})


def export(network: Any, to: Path, about: Mapping[str, Any], files: Mapping[str, str | Path]) -> None:
    """Write `network` as a checkpoint to the directory `to`.

    about: its dg_lsp.json. files: those beside the weights by their names, each a text or a file to copy.
    """
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        # Write all files to a temporary folder.
        made = Path(folder)
        network.save_pretrained(made)
        _make_readable_by_old_releases(made / "config.json")
        for name, given in files.items():
            if isinstance(given, Path):
                shutil.copyfile(given, made / name)
            else:
                (made / name).write_text(given, encoding="utf-8")
        _write(made / ABOUT, about)
        # Write their manifest.
        write_manifest(made)
        # Move them, the manifest last. A reader of `to` meanwhile finds hashes that do not match, and never a weights
        # file that is cut short.
        for name in [*(file.name for file in made.iterdir() if file.name != MANIFEST), MANIFEST]:
            (made / name).chmod(0o644)
            (made / name).replace(to / name)


def schedule(text: Any) -> DiffusionGemmaGenerationConfig:
    """Return the released checkpoint's schedule, with the special tokens of the config `text`."""
    return DiffusionGemmaGenerationConfig(
        max_denoising_steps=48,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=0.1),
        t_max=0.8,
        t_min=0.4,
        stability_threshold=1,
        confidence_threshold=0.005,
        max_new_tokens=256,
        eos_token_id=text.eos_token_id,
        pad_token_id=text.pad_token_id,
        bos_token_id=text.bos_token_id,
    )


def _make_readable_by_old_releases(file: Path) -> None:
    """Rewrite a config without settings of single layers, which the oldest supported transformers cannot read."""
    config = json.loads(file.read_text())
    if text := config.get("text_config"):
        text.pop("per_layer_config", None)
        text["global_head_dim"] = text["head_dim"]
        text["num_global_key_value_heads"] = text["num_key_value_heads"]
        _write(file, config)


def _write(file: Path, value: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
