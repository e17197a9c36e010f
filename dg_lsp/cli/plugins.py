"""The plug-ins for the editors: find one in this installation, install it in an editor, remove it.

Knows files and the editors' programs; prints nothing.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
from argparse import ArgumentTypeError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import dg_lsp
from dg_lsp import processes
from dg_lsp.files.writing import write_whole
from dg_lsp.processes import find_program as find
from dg_lsp.settings import UsageError

EDITORS = ("vscode", "nvim")
PROGRAMS = ("code", "codium", "code-server", "code-insiders")  # VS Code and editors that take its extensions
EXTENSION = "dg-lsp.dg-lsp"  # publisher and name of the VS Code extension
_RECORD = "installed.json"  # in the folder of the Neovim plug-in: its version, and the hash of each file
_SERVER = "server.txt"  # in the folder of either plug-in: the path of the program that installed it
_PATIENCE = 120  # seconds for an editor's program
_MISSING = {
    "vscode": "this dg-lsp has no dg-lsp.vsix; in a clone, run `make vsix` (needs npm and Node 20 or newer), then "
    "`.venv/bin/dg-lsp editor install vscode`; `make wheel` builds a wheel that has it",
    "nvim": "this dg-lsp has no Neovim plug-in; reinstall it",
}


def editor_of(name: str) -> str:
    """Return `name` if there is a plug-in for the editor of that name; raise ArgumentTypeError if there is none."""
    if name not in EDITORS:
        raise ArgumentTypeError(
            f"there is no plug-in for {name!r}, only for {' and '.join(EDITORS)}; other editors run dg-lsp --stdio by "
            "their own language client, as the pages in docs/editors describe"
        )
    return name


def plugin_of(editor: str, program: str | None = None) -> "Neovim | VSCode":
    """Return the plug-in for `editor`, one of EDITORS. program: VS Code's, else the first of PROGRAMS on PATH.

    Its methods raise UsageError where the editor or a file does not allow the work.
    """
    return Neovim(nvim_folder()) if editor == "nvim" else VSCode(find_program(program))


def source(editor: str) -> Path:
    """Return the plug-in for `editor` in this dg-lsp, a folder or a vsix file; raise UsageError if it is missing."""
    package = Path(dg_lsp.__file__).parent
    name = "nvim" if editor == "nvim" else "vscode/dg-lsp.vsix"
    # In a wheel inside of the package, in a clone beside it.
    for path in (package / "editors" / name, package.parent / "editors" / name):
        if path.exists():
            return path
    raise UsageError(_MISSING[editor])


def nvim_folder() -> Path:
    """Return the folder from which Neovim loads the plug-in at each start."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / os.environ.get("NVIM_APPNAME", "nvim") / "site" / "pack" / "dg-lsp" / "start" / "dg-lsp"


@dataclass(frozen=True, slots=True)
class Neovim:
    """The Neovim plug-in: files that are copied to `folder`, each noted with its hash."""

    folder: Path

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.folder)

    def install(self) -> str:
        """Copy the plug-in, note the files, and build the index of the help page."""
        plugin, folder = source("nvim"), self.folder
        if folder.is_symlink() or (folder.exists() and not (folder / _RECORD).is_file()):
            raise UsageError(f"{folder} already exists and was not installed by dg-lsp; move it away first")
        self.remove()
        names = [p.relative_to(plugin) for p in sorted(plugin.rglob("*")) if p.is_file()]
        names = [name for name in names if not any(part.startswith(".") for part in name.parts)]
        # The record comes first, so that an install that finds no space can be repeated.
        folder.mkdir(parents=True, exist_ok=True)
        self._note({name.as_posix(): _sum(plugin / name) for name in names})
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(plugin / name, folder / name)
        if program := find("nvim"):
            quoted = str(folder / "doc").replace("'", "''")
            index = f"execute 'helptags' fnameescape('{quoted}')"
            with suppress(UsageError):
                run(program, "--headless", "-u", "NONE", "-i", "NONE", "-c", index, "-c", "quit")
        if (server := own_program()) is not None:
            write_whole(folder / _SERVER, f"{server}\n".encode())
        made = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != _RECORD)
        self._note({path.relative_to(folder).as_posix(): _sum(path) for path in made})
        where = f"{folder}, where Neovim finds them at its next start"
        return f"{len(names)} files of version {dg_lsp.__version__} are in {where}."

    def remove(self) -> str:
        """Remove the files that are as they were installed, and the folders that are empty then; others stay.

        Return a sentence about it, or an empty text if the plug-in was not installed.
        """
        record = self._record()
        if record is None:
            return ""
        paths = {self.folder / name: digest for name, digest in record["files"].items()}
        kept = [path for path, digest in paths.items() if path.exists() and _sum(path) != digest]
        for path in [self.folder / _RECORD, *paths]:
            if path not in kept:
                path.unlink(missing_ok=True)
        inside = [p for p in self.folder.rglob("*") if p.is_dir() and not p.is_symlink()]
        # The folder of the package, and its `start`, too.
        for path in [*sorted(inside, reverse=True), self.folder, *list(self.folder.parents)[:2]]:
            with suppress(OSError):
                path.rmdir()
        lines = [f"{len(paths) - len(kept)} files are gone from {self.folder}."]
        return "\n".join([*lines, *(f"{path} stays, because it has been changed." for path in kept)])

    def version(self) -> str:
        """Return the version of the record; empty if the plug-in is not installed."""
        record = self._record()
        return str(record["version"]) if record else ""

    def server(self) -> str | None:
        """Return the path that the plug-in finds in its folder, or else where any program is found."""
        return find_server(self.folder)

    def _note(self, sums: dict[str, str]) -> None:
        record = {"version": dg_lsp.__version__, "files": sums}
        write_whole(self.folder / _RECORD, (json.dumps(record, indent=1) + "\n").encode("utf-8"))

    def _record(self) -> dict[str, dict[str, str]] | None:
        try:
            record = json.loads((self.folder / _RECORD).read_text(encoding="utf-8"))
            return record if isinstance(record["files"], dict) and record["version"] else None
        except (OSError, ValueError, LookupError, TypeError):
            return None


@dataclass(frozen=True, slots=True)
class VSCode:
    """The VS Code extension, which the editor's own program installs and removes."""

    place: str

    def install(self) -> str:
        """Install the extension of this dg-lsp, with the path of this program in it."""
        with tempfile.TemporaryDirectory() as folder:
            vsix = shutil.copy(source("vscode"), folder)
            if (server := own_program()) is not None:
                with zipfile.ZipFile(vsix, "a") as archive:
                    archive.writestr(f"extension/{_SERVER}", f"{server}\n")
            run(self.place, "--install-extension", vsix, "--force")
        return f"{self.place} has installed {EXTENSION} {dg_lsp.__version__}."

    def remove(self) -> str:
        """Remove the extension; return an empty text if it was not installed."""
        if not self.version():
            return ""
        run(self.place, "--uninstall-extension", EXTENSION)
        return f"{self.place} has removed {EXTENSION}."

    def version(self) -> str:
        """Return the version that the program lists; empty if the extension is not installed."""
        lines = run(self.place, "--list-extensions", "--show-versions").splitlines()
        found = (line.strip().partition("@") for line in lines)
        return next((version for name, _, version in found if name.lower() == EXTENSION), "")

    def server(self) -> str | None:
        """Return the path that the extension finds in its folder, or else where any program is found."""
        lines = []
        with suppress(UsageError):  # of an editor that cannot tell
            lines = run(self.place, "--locate-extension", EXTENSION).splitlines()
        return find_server(Path(lines[-1].strip()) if lines else None)


def find_program(name: str | None = None) -> str:
    """Return the path of VS Code's program `name`, or of the first of PROGRAMS on PATH; raise UsageError without it."""
    for candidate in [name] if name else PROGRAMS:
        if found := find(candidate):
            return found
    missing = f"{name} is not" if name else f"none of {', '.join(PROGRAMS)} is"
    raise UsageError(
        f"{missing} on PATH; in VS Code, the command Shell Command: Install 'code' command in PATH puts it there"
    )


def find_server(folder: Path | None) -> str | None:
    """Return the path of the server that a plug-in in `folder` finds; None if there is none.

    It is the program that installed the plug-in, else the one on PATH, else the one in ~/.local/bin.
    """
    try:
        installer = (folder / _SERVER).read_text(encoding="utf-8").strip() if folder else ""
    except (OSError, ValueError):
        installer = ""
    places = [installer or "dg-lsp", "dg-lsp", str(Path.home() / ".local/bin/dg-lsp")]
    return next((found for place in places if (found := find(place))), None)


def own_program() -> Path | None:
    """Return the absolute path of the program dg-lsp that runs now; None if Python was called in another way."""
    for path in (Path(sys.argv[0]).absolute(), Path(sys.executable).with_name("dg-lsp")):
        if path.name == "dg-lsp" and find(str(path)):
            return path
    return None


def run(program: str, *arguments: str) -> str:
    """Run `program` and return its standard output; raise UsageError if it failed, or took too long."""
    words = " ".join([Path(program).name, *arguments])
    try:
        done = processes.run([program, *arguments], _PATIENCE)
    except OSError as error:  # also a TimeoutError
        raise UsageError(f"{words} cannot be run ({type(error).__name__})") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise UsageError(f"{words} failed with {done.returncode}: {said[-1] if said else 'no output'}")
    return done.stdout


def _sum(path: Path) -> str:
    """Return the hash of a file; an empty text for anything else."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
