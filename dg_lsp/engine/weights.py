"""The weights of a checkpoint onto a device: safetensors only, every tensor accounted for, logits that are numbers.

Knows transformers' loader and torch's devices; knows no tokenizer and no manifest.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import DiffusionGemmaForBlockDiffusion
from transformers.utils import logging

AGAIN = "fetch the checkpoint again, or name another with --checkpoint"
_SPREAD = {"balanced", "sequential"}  # accelerate's device maps over several GPUs and the CPU


class CheckpointError(Exception):
    """The checkpoint cannot be used; the message says why and what mends it."""


def device_map(device: str) -> Any:
    """What accelerate is told for the setting `device`: "auto" is the first GPU, else the CPU.

    Raises:
        CheckpointError: there is no such device here.
    """
    if device in _SPREAD:
        return device
    if device == "auto":
        return {"": "cuda" if torch.cuda.is_available() else "cpu"}
    try:
        wanted = torch.device(device)
    except RuntimeError as error:
        raise CheckpointError(
            f"there is no device called {device!r}; --device takes auto, cpu, cuda, cuda:1, balanced or sequential"
        ) from error
    if wanted.type == "cuda" and (wanted.index or 0) >= torch.cuda.device_count():
        raise CheckpointError(
            f"there is no device {device} here (torch sees {torch.cuda.device_count()} GPUs); try --device cpu"
        )
    return {"": device}


def disk_split(path: Path, kept: int) -> dict[str, str]:
    """A device map of the network in `path`: all on the CPU but the layers from number `kept` on (counted from 0).

    Those stay in the files of the checkpoint; accelerate reads each when it is used. The encoder's and the decoder's
    layer of one number share their weights and go together: with one of them alone on the disk accelerate looks for
    weights that are nowhere. An entry "" would be hooked as a block of its own, so all else is named.
    """
    count = json.loads((path / "config.json").read_text(encoding="utf-8"))["text_config"]["num_hidden_layers"]
    encoder, decoder = "model.encoder.language_model", "model.decoder"
    parts = [
        f"{side}.{part}" for side in (encoder, decoder) for part in ("embed_tokens", "norm", "rotary_emb")
    ]
    parts += [
        "lm_head",
        f"{decoder}.self_conditioning",
        "model.encoder.vision_tower",
        "model.encoder.embed_vision",
    ]
    layers = {f"{side}.layers.{i}": i for side in (encoder, decoder) for i in range(count)}
    return dict.fromkeys(parts, "cpu") | {name: "cpu" if i < kept else "disk" for name, i in layers.items()}


def load_network(path: Path, device: str, placed: Mapping[str, str] | None = None) -> Any:
    """The network in `path` on `device`, without its vision tower; `placed` says for each part where it goes instead.

    Raises:
        CheckpointError: weights are missing, surplus, of the wrong shape or cut short, or the memory does not do.
    """
    if not list(path.glob("*.safetensors")):
        raise CheckpointError(f"{path} has no *.safetensors file, and no other format is read; {AGAIN}")
    logging.disable_progress_bar()  # its bar would fall into the middle of ours
    where = device_map(device) if placed is None else dict(placed)
    try:
        network, info = DiffusionGemmaForBlockDiffusion.from_pretrained(
            str(path),
            dtype="auto",
            device_map=where,
            local_files_only=True,
            use_safetensors=True,
            attn_implementation="sdpa",
            experts_implementation="grouped_mm",
            output_loading_info=True,
        )
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise CheckpointError(f"{path} does not fit the memory of {device}; try --device cpu") from error
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"the weights of {path} cannot be loaded: {first}; {AGAIN}") from error
    faults = [(kind, sorted(map(str, info[kind]))) for kind in info if info[kind]]
    if faults:
        listed = "; ".join(f"{kind}: {', '.join(names[:3])}" for kind, names in faults)
        raise CheckpointError(f"the weights of {path} do not fit its config ({listed}); {AGAIN}")
    # The tower is of no use for text, and its weights take memory.
    network.model.encoder.vision_tower = network.model.encoder.embed_vision = None
    return network.eval()


@torch.inference_mode()
def probe(network: Any, path: Path) -> None:
    """Run it once. Raises CheckpointError when the logits are not finite."""
    device = network.model.decoder.embed_tokens.weight.device
    tokens = torch.arange(8, device=device)[None]
    try:
        logits = network(input_ids=tokens, decoder_input_ids=tokens).logits
    except torch.OutOfMemoryError as error:
        raise CheckpointError(
            f"{path} leaves no memory on {device} to work with; try --device cpu"
        ) from error
    if not bool(torch.isfinite(logits).all()):
        raise CheckpointError(f"{path} gives logits that are no numbers: its weights are damaged; {AGAIN}")
