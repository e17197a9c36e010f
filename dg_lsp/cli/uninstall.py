"""`dg-lsp uninstall`: list all that dg-lsp has written on this machine, with sizes, and remove it."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dg_lsp.checkpoints import OFFERED, cache_folder, data_folder, folder_of, similar_to
from dg_lsp.cli import plugins
from dg_lsp.cli.options import explain
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import Waiting
from dg_lsp.engine.resident import stop_at
from dg_lsp.engine.runtime import LOADING, is_of_engine, runtime_directory, sockets
from dg_lsp.filling.engine import EngineError
from dg_lsp.model.manifest import kept_matrices_of
from dg_lsp.processes import find_program
from dg_lsp.server import counts
from dg_lsp.settings import UsageError


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder that dg-lsp has written. what: its contents, in words. files: those of dg-lsp in it; () for all."""

    what: str
    folder: Path
    files: tuple[Path, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp uninstall`."""
    explain(
        parser,
        "List the files of dg-lsp on this machine: checkpoints, caches, counts, engines, plug-ins. With --yes, stop "
        "the engines and remove all of it; with NAME, only this checkpoint. The program itself is removed by the tool "
        "that installed it, which the last line names.",
        "dg-lsp uninstall --yes",
        "0 listed or removed, 2 something cannot be removed",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"a checkpoint: {', '.join(OFFERED)}")
    parser.add_argument("--yes", action="store_true", help="remove it")


def run(arguments: argparse.Namespace) -> int:
    """List, or with --yes remove; return the exit code."""
    found = list(_checkpoint(arguments.name) if arguments.name else _folders())
    for kept in found:
        show(f"{_size(kept) / 1e6:8.1f} MB  {kept.what}: {kept.folder}")
    with Waiting("asking the editors"):
        plugged = [] if arguments.name else list(_plugged())
    for plugin in plugged:
        show(f"             plug-in: {plugin.place}")
    if not found and not plugged:
        show("dg-lsp has written nothing on this machine.")
    elif not arguments.yes:
        show("Nothing was removed. --yes removes all of this.")
    else:
        with Waiting("removing"):
            # An engine has the files of its checkpoint open.
            asyncio.run(_stop_engines())
            for plugin in plugged:
                show(plugin.remove())
            for kept in found:
                _remove(kept)
        show("All of this is removed.")
    if not arguments.name:
        show(_last_step())
    return 0


def _checkpoint(name: str) -> Iterator[Kept]:
    """Yield the folder of the fetched checkpoint `name`."""
    if name not in OFFERED:
        raise UsageError(f"{name} is none of {', '.join(OFFERED)}{similar_to(name)}")
    if not folder_of(name).is_dir():
        raise UsageError(f"the checkpoint {name} is not here; dg-lsp uninstall lists what is")
    if made := [path for file in folder_of(name).glob("*.gguf") for path in kept_matrices_of(file)]:
        yield Kept("its matrices as this processor reads them", made[0].parent, tuple(made))
    yield Kept(f"the checkpoint {name}", folder_of(name))


def _folders() -> Iterator[Kept]:
    """Yield the folders of this user that dg-lsp has written, the largest kind first."""
    places = [
        ("checkpoints", data_folder()),
        ("cache", cache_folder()),
        ("counts of use", counts.path().parent),
    ]
    yield from (Kept(what, folder) for what, folder in places if folder.is_dir() and any(folder.iterdir()))
    with suppress(EngineError):
        # DG_LSP_RUNTIME_DIR may name a folder that holds other files, too.
        folder = runtime_directory()
        if files := [path for path in folder.iterdir() if is_of_engine(path) or path.name == LOADING]:
            yield Kept("sockets, locks and logs of engines", folder, tuple(files))


def _plugged() -> Iterator[plugins.Neovim | plugins.VSCode]:
    """Yield the plug-ins that are installed in editors."""
    found = [plugins.plugin_of("nvim")]
    found += [plugins.plugin_of("vscode", name) for name in plugins.PROGRAMS if find_program(name)]
    for plugin in found:
        with suppress(UsageError):
            if plugin.version():
                yield plugin


async def _stop_engines() -> None:
    """End all engines of this user."""
    with suppress(EngineError):
        for path in sockets():
            await stop_at(path)


def _remove(kept: Kept) -> None:
    """Remove a folder with its contents, or only its files of dg-lsp; of a link only the link."""
    if kept.folder.is_symlink():
        kept.folder.unlink()
    elif kept.files:
        for path in kept.files:
            path.unlink(missing_ok=True)
        with suppress(OSError):
            kept.folder.rmdir()
    else:
        shutil.rmtree(kept.folder)


def _size(kept: Kept) -> int:
    """Return the bytes of the files of dg-lsp in a folder."""
    return sum(path.lstat().st_size for path in kept.files or kept.folder.rglob("*") if path.is_file())


def _last_step() -> str:
    """Return a sentence that says how the program itself is removed."""
    own = plugins.own_program()
    program = f"{own} is in" if own else "It is in"
    if sys.prefix == sys.base_prefix:
        return f"To remove the program: {sys.executable} -m pip uninstall dg-lsp"
    return (
        f"To remove the program: {program} the environment {sys.prefix}; delete that folder, or run uv tool uninstall "
        "dg-lsp or pipx uninstall dg-lsp if one of these made it."
    )
