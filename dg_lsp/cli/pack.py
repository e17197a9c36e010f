"""`dg-lsp pack`: write a checkpoint in four or eight bits, which then loads by mapping its files."""

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dg_lsp.checkpoints import ABOUT, MANIFEST, CheckpointError, folder_of, pinned, read_about
from dg_lsp.cli.options import explain
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import telling
from dg_lsp.settings import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp pack`."""
    explain(
        parser,
        "Round the experts of a DiffusionGemma checkpoint in bf16 to four or eight bits, once, and write them to a "
        "folder that loads in the time that the disk takes. It has the values that the setting weightBits gives while "
        "it loads the original. The order on disk is that of this machine's processor or GPU. Takes less than 2 GB of "
        "memory. Tried with random weights only: of DiffusionGemma 26B it is untried.",
        "dg-lsp pack google/diffusiongemma-26B-A4B-it --bits 4 --out ~/diffusiongemma-4bit",
        "0 written, 2 usage, or the checkpoint cannot be packed, 130 interrupted",
    )
    parser.add_argument(
        "checkpoint", help="a folder with safetensors, or OWNER/NAME that dg-lsp fetch has fetched"
    )
    parser.add_argument("--bits", type=int, choices=(4, 8), default=4, help="of the experts' weights (4)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write; by default beside the source, with -4bit at its end",
    )
    parser.add_argument(
        "--device", default="auto", help="the device that will run it: auto, cpu or cuda (auto)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Pack; 0 when the folder has been written.

    1. Write everything to a folder beside the place where it belongs, and meanwhile compare the source with its
    manifest.  2. Put it there as a whole.

    Raises:
        UsageError: the checkpoint cannot be packed, or the place cannot hold it.
    """
    source = folder_of(arguments.checkpoint)
    to = (arguments.out or _beside(arguments.checkpoint, source, arguments.bits)).absolute()
    if to.exists():
        raise UsageError(f"{to} exists already; name another folder with --out")
    if not (source / "config.json").is_file():
        raise UsageError(
            f"{source} has no config.json, so there is nothing to pack; name a folder, or fetch it first"
        )
    to.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".dg-lsp-", suffix=".part", dir=to.parent))
    try:
        # A folder in it has the rights that the user's other folders have.
        made = part / "made"
        made.mkdir()
        with telling("importing torch") as tell:
            _pack(arguments, source, made, tell)
        made.replace(to)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    size = sum(file.stat().st_size for file in to.iterdir())
    show(f"{to}: {size / 1e9:.1f} GB. --checkpoint {to} uses it.")
    return 0


def _pack(arguments: argparse.Namespace, source: Path, to: Path, tell: Callable[[str], None]) -> None:
    """Write the packed checkpoint of `source` to the folder `to`."""
    tell("importing torch")
    from dg_lsp.model.manifest import LOADED, compare, entry_of, listed, verify, write_manifest
    from dg_lsp.model.networks.compressed import is_compressed
    from dg_lsp.model.networks.loading import kind_of
    from dg_lsp.model.networks.packing import ENTRY, Watch, is_packed, write_packed
    from dg_lsp.model.networks.streaming import files_of, quantised_size
    from dg_lsp.training.fetching import Rate, check_room

    pin = pinned(arguments.checkpoint)
    kind = "packed" if is_packed(source) else "quantised" if is_compressed(source) else kind_of(source)
    if kind != "diffusion_gemma":
        raise CheckpointError(
            f"{source} holds {kind} weights, which are not packed; name a DiffusionGemma in bf16"
        )
    pins = pin.files if pin else None
    verify(source, pins=pins, but={file.name for file in files_of(source)})
    wanted, made = {**listed(source), **(pins or {})}, dict[str, Any]()

    def seen(file: Path) -> None:
        if file.parent == to:
            made[file.name] = entry_of(file)
        elif file.name in wanted:
            compare(source, {file.name: wanted[file.name]})

    check_room(to, quantised_size(source, arguments.bits))
    rate = Rate(quantised_size(source, 16), 0)
    tell(f"packing {source}")
    watch = Watch(lambda done: tell(rate.describe(done) + "\r"), seen)
    packed = write_packed(source, to, arguments.device, arguments.bits, watch)
    for file in source.iterdir():
        if file.suffix in LOADED - {".safetensors"} and not file.name.endswith((MANIFEST, ".index.json")):
            shutil.copyfile(file, to / file.name)
    (to / ABOUT).write_text(
        json.dumps(read_about(source) | {ENTRY: packed}, indent=1) + "\n", encoding="utf-8"
    )
    write_manifest(to, made)


def _beside(checkpoint: str, source: Path, bits: int) -> Path:
    """Return the folder beside `source` that its packed form goes to; in the current folder for one of the hub."""
    if pinned(checkpoint):
        return Path(f"{checkpoint.rpartition('/')[2]}-{bits}bit")
    return source.with_name(f"{source.name}-{bits}bit")
