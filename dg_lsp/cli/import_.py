"""`dg-lsp import`: convert a pretrained left-to-right network of the Llama family to a checkpoint."""

import argparse
from pathlib import Path

from dg_lsp.checkpoints import is_hub_name
from dg_lsp.cli.options import explain
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import telling
from dg_lsp.settings import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp import`."""
    explain(
        parser,
        "Make a DiffusionGemma checkpoint of a pretrained Llama, Qwen2 or Mistral whose encoder computes exactly what "
        "the source does. It then drafts fills from left to right and uses the suffix to choose among them; its "
        "denoiser has learned nothing until it is trained: dg-lsp train --from DIR. No code of the source is "
        "executed.",
        "dg-lsp import ~/models/SmolLM2-135M --out smol",
        "0 written, 2 usage, or the source cannot be imported exactly",
    )
    parser.add_argument(
        "source", help="a directory with safetensors, a GGUF file, or OWNER/NAME that dg-lsp fetch has got"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the checkpoint goes here")
    parser.add_argument("--licence", help="what the model card and dg_lsp.json say of the source's licence")


def run(arguments: argparse.Namespace) -> int:
    """Import; 0 when the checkpoint was written."""
    if (arguments.out / "config.json").exists():
        raise UsageError(f"{arguments.out} holds a checkpoint already; name another folder with --out")
    if arguments.out.is_file():
        raise UsageError(f"{arguments.out} is a file; name a folder with --out")
    if not (Path(arguments.source).exists() or is_hub_name(arguments.source)):
        raise UsageError(
            f"there is no file or folder {arguments.source}; name a directory, a GGUF file, or OWNER/NAME of the hub"
        )
    about = {"licence": arguments.licence} if arguments.licence else {}
    with telling(f"importing {arguments.source}") as tell:
        tell("importing torch")
        from dg_lsp.training.importing import import_checkpoint

        import_checkpoint(arguments.source, arguments.out, about, tell)
    show(f"Use it with --checkpoint {arguments.out.absolute()}.")
    return 0
