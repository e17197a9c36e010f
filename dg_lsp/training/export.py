"""Export: write a trained network as a checkpoint directory that `load_checkpoint` reads.

Knows the files of a checkpoint and its manifest; knows no training.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from dg_lsp.checkpoints import ABOUT, MANIFEST, read_about
from dg_lsp.model.manifest import JUDGE, write_manifest
from dg_lsp.training.shape import BOS, CANVASES, EOS, PAD


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of a tokenizer's tokens before a file, behind it, and for padding."""

    bos: int
    eos: int
    pad: int


_NOT_COPIED = {ABOUT, MANIFEST, "curve.json", "sources.json", "heldout.json", "evaluation.json"}
_EMBEDDED = {
    "prompt": "raw",
    "canvas_lengths": list(CANVASES),
    "bos": BOS,
    "eos": EOS,
    "max_prefix_tokens": 1024,
    "languages": ["python"],
}


def export(network: Any, tokenizer: Path, to: Path, about: Mapping[str, Any]) -> None:
    """Write `network`, which has the embedded config, and the file `tokenizer` as a checkpoint to the directory `to`.

    about: further entries of dg_lsp.json.
    """
    network.generation_config = _generation(Ids(BOS, EOS, PAD))

    def add(made: Path) -> None:
        _make_readable_by_old_releases(made / "config.json")
        shutil.copyfile(tokenizer, made / "tokenizer.json")
        _write(made / ABOUT, _EMBEDDED | dict(about))

    _export(network, to, add)


def export_imported(
    network: Any, tokenizer: Tokenizer, to: Path, about: Mapping[str, Any], judge: Path | None = None
) -> None:
    """Write an imported `network` with its `tokenizer` as a checkpoint to `to`.

    about: its dg_lsp.json. judge: the file with the weights of its judge, if it has one.
    """
    text = network.config.text_config
    network.generation_config = _generation(Ids(text.bos_token_id, text.eos_token_id, text.pad_token_id))

    def add(made: Path) -> None:
        _make_readable_by_old_releases(made / "config.json")
        tokenizer.save(str(made / "tokenizer.json"))
        _write(made / ABOUT, about)
        (made / "README.md").write_text(_card(about), encoding="utf-8")
        if judge is not None:
            shutil.copyfile(judge, made / JUDGE)

    _export(network, to, add)


def export_causal(
    network: Any, tokenizer: Tokenizer, to: Path, about: Mapping[str, Any], judge: Path | None = None
) -> None:
    """Write a causal `network` with its `tokenizer` as a checkpoint to `to`, in transformers' own form.

    about: its dg_lsp.json. judge: the file with the weights of its judge, if it has one.
    """

    def add(made: Path) -> None:
        tokenizer.save(str(made / "tokenizer.json"))
        _write(made / ABOUT, about)
        name, licence, adapted = about["name"], about["licence"], about.get("adapted")
        merged = f"Merged into them is {adapted}.\n" if adapted else ""
        card = f"# {name}\n\nThe weights of {name} (licence: {licence}), in bfloat16.\n{merged}"
        (made / "README.md").write_text(card, encoding="utf-8")
        if judge is not None:
            shutil.copyfile(judge, made / JUDGE)

    _export(network, to, add)


def _card(about: Mapping[str, Any]) -> str:
    """The model card of an imported checkpoint."""
    name, licence = about["imported_from"], about.get("licence", "see its source")
    adapted = about.get("adapted")
    logits = f"Merged into them is {adapted}." if adapted else "Its encoder gives the source's logits."
    return (
        f"# {name}, imported\n\n"
        f"The weights of {name} (licence: {licence}) in the classes of DiffusionGemma, made by `dg-lsp import`.\n"
        f"{logits}\n"
        "Its decoder has not learned to denoise, so fills are written from left to right, and the text behind a\n"
        "gap serves to choose among them.\n"
    )


def export_like(network: Any, base: Path, to: Path, about: Mapping[str, Any]) -> None:
    """Write `network` as a checkpoint to the directory `to`, with tokenizer and settings of the checkpoint in `base`.

    about: entries of dg_lsp.json that replace those of `base`.
    """

    def add(made: Path) -> None:
        for file in base.glob("*.json"):
            if file.name not in _NOT_COPIED and not file.name.endswith(".index.json"):
                shutil.copyfile(file, made / file.name)
        _write(made / ABOUT, read_about(base) | dict(about))

    _export(network, to, add)


def _export(network: Any, to: Path, add: Callable[[Path], None]) -> None:
    """Write a checkpoint to `to`; `add` writes the files beside the weights.

    1. Write all files to a temporary folder.  2. Write their manifest.  3. Move them, the manifest last. A reader of
    `to` meanwhile finds hashes that do not match, and never a weights file that is cut short.
    """
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        # 1.
        made = Path(folder)
        network.save_pretrained(made)
        add(made)
        # 2.
        write_manifest(made)
        # 3.
        for name in [*(file.name for file in made.iterdir() if file.name != MANIFEST), MANIFEST]:
            (made / name).chmod(0o644)
            (made / name).replace(to / name)


def _generation(ids: Ids) -> DiffusionGemmaGenerationConfig:
    """The released checkpoint's schedule, with the `ids` of a tokenizer."""
    return DiffusionGemmaGenerationConfig(
        max_denoising_steps=48,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=0.1),
        t_max=0.8,
        t_min=0.4,
        stability_threshold=1,
        confidence_threshold=0.005,
        max_new_tokens=256,
        eos_token_id=ids.eos,
        pad_token_id=ids.pad,
        bos_token_id=ids.bos,
    )


def _make_readable_by_old_releases(file: Path) -> None:
    """Rewrite a config without settings of single layers, which the oldest supported transformers cannot read."""
    config = json.loads(file.read_text())
    text = config["text_config"]
    text.pop("per_layer_config", None)
    text["global_head_dim"] = text["head_dim"]
    text["num_global_key_value_heads"] = text["num_key_value_heads"]
    _write(file, config)


def _write(file: Path, value: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
