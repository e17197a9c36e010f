"""The editors' plug-ins: where they are in this installation, and how they get into an editor and out of it again.

Knows files and the editors' programs; prints nothing.
"""

import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import dg_lsp
from dg_lsp.settings import UsageError

EDITORS = ("vscode", "nvim")
PROGRAMS = ("code", "codium", "code-server", "code-insiders")  # VS Code and what takes its extensions
EXTENSION = "dg-lsp.dg-lsp"  # publisher and name of the VS Code extension
_RECORD = "installed.json"  # in the folder of the Neovim plug-in: what was put there
_PATIENCE = 120  # seconds for an editor's program
_NO_VSIX = (
    "this dg-lsp came without dg-lsp.vsix; in a clone of its repository, make vsix (needs Node 20 or newer) makes it, "
    "and dg-lsp editor install vscode from there puts it in"
)


@dataclass(frozen=True, slots=True)
class Removed:
    """What a removal did; kept: files that it left, because they are not as they were put there."""

    folder: Path
    files: int
    kept: tuple[Path, ...]


def source(editor: str) -> Path:
    """The plug-in for `editor` in this installation: a folder, or a vsix file.

    Raises:
        UsageError: it did not come along.
    """
    package = Path(dg_lsp.__file__).parent
    name = "nvim" if editor == "nvim" else "vscode/dg-lsp.vsix"
    # In a wheel inside of the package, in a clone beside it.
    for path in (package / "editors" / name, package.parent / "editors" / name):
        if path.exists():
            return path
    reason = _NO_VSIX if editor == "vscode" else "this dg-lsp came without its Neovim plug-in; reinstall it"
    raise UsageError(reason)


def nvim_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where Neovim finds a plug-in by itself, at each start."""
    data = Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / environment.get("NVIM_APPNAME", "nvim") / "site" / "pack" / "dg-lsp" / "start" / "dg-lsp"


def install_nvim(folder: Path) -> int:
    """Copy the Neovim plug-in to `folder`, in the place of an older one; return how many files it has.

    1. Take an older one away.  2. Copy, and record what was put there.  3. Make the index of the help page.

    Raises:
        UsageError: `folder` exists, and dg-lsp has not put it there.
    """
    plugin = source("nvim")
    # 1.
    if folder.is_symlink() or (folder.exists() and not (folder / _RECORD).is_file()):
        raise UsageError(f"{folder} is there already, and dg-lsp has not put it there; take it away first")
    remove_nvim(folder)
    # 2.
    names = [p.relative_to(plugin) for p in sorted(plugin.rglob("*")) if p.is_file()]
    names = [name for name in names if not any(part.startswith(".") for part in name.parts)]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(plugin / name, folder / name)
    # 3.
    made = [*names, *_help_index(folder)]
    sums = {name.as_posix(): _sum(folder / name) for name in made}
    record = {"version": dg_lsp.__version__, "files": sums}
    (folder / _RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return len(names)


def remove_nvim(folder: Path) -> Removed | None:
    """Remove what `install_nvim` put into `folder`, and folders that are empty then; None if it is not there.

    A file that has been changed since stays, and so does every file of somebody else.
    """
    record = _record(folder)
    if record is None:
        return None
    kept, files = [], record["files"]
    for name, digest in files.items():
        path = folder / name
        if path.is_file() and _sum(path) == digest:
            path.unlink()
        elif path.exists():
            kept.append(path)
    (folder / _RECORD).unlink()
    inside = [p for p in folder.rglob("*") if p.is_dir() and not p.is_symlink()]
    # The folder of the package, and its `start`, too.
    for path in [*sorted(inside, reverse=True), folder, folder.parent, folder.parent.parent]:
        with suppress(OSError):
            path.rmdir()
    return Removed(folder, len(files) - len(kept), tuple(kept))


def nvim_version(folder: Path) -> str:
    """The version of the plug-in that `install_nvim` put into `folder`; empty if there is none."""
    record = _record(folder)
    return str(record["version"]) if record else ""


def find_program(name: str | None = None) -> str:
    """The path of VS Code's program `name`, or of the first of PROGRAMS that is there.

    Raises:
        UsageError: there is none.
    """
    for candidate in [name] if name else PROGRAMS:
        if found := shutil.which(candidate):
            return found
    missing = f"{name} is not" if name else f"none of {', '.join(PROGRAMS)} is"
    raise UsageError(
        f"{missing} on PATH; in VS Code, the command Shell Command: Install 'code' command in PATH puts it there"
    )


def install_vscode(program: str) -> str:
    """Install the extension by VS Code's `program`; return what that said.

    Raises:
        UsageError: there is no vsix, or the program failed.
    """
    return run(program, "--install-extension", str(source("vscode")), "--force")


def remove_vscode(program: str) -> bool:
    """Remove the extension by VS Code's `program`; return False if it was not there.

    Raises:
        UsageError: the program failed.
    """
    if not vscode_version(program):
        return False
    run(program, "--uninstall-extension", EXTENSION)
    return True


def vscode_version(program: str) -> str:
    """The version of the extension that is installed in VS Code; empty if there is none.

    Raises:
        UsageError: the program failed.
    """
    lines = run(program, "--list-extensions", "--show-versions").splitlines()
    found = (line.strip().partition("@") for line in lines)
    return next((version for name, _, version in found if name.lower() == EXTENSION), "")


def vsix_version(vsix: Path) -> str:
    """The version that a vsix file has.

    Raises:
        UsageError: it is none.
    """
    try:
        with zipfile.ZipFile(vsix) as archive:
            return str(json.loads(archive.read("extension/package.json"))["version"])
    except (OSError, LookupError, ValueError, zipfile.BadZipFile) as error:
        raise UsageError(f"{vsix} is no vsix file; make vsix makes it anew") from error


def run(program: str, *arguments: str) -> str:
    """What `program` says on standard output.

    Raises:
        UsageError: it failed, or took too long.
    """
    words = " ".join([Path(program).name, *arguments])
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{words} cannot be run ({type(error).__name__})") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise UsageError(f"{words} failed with {done.returncode}: {said[-1] if said else 'it said nothing'}")
    return done.stdout


def _help_index(folder: Path) -> list[Path]:
    """Let Neovim make the index of the help page, if there are both; the files made."""
    program, doc = shutil.which("nvim"), folder / "doc"
    if not program or not doc.is_dir():
        return []
    with suppress(UsageError):
        index = f"execute 'helptags' fnameescape('{doc}')"
        run(program, "--headless", "-u", "NONE", "-i", "NONE", "-c", index, "-c", "quit")
    return [Path("doc/tags")] if (doc / "tags").is_file() else []


def _record(folder: Path) -> dict[str, dict[str, str]] | None:
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        return record if isinstance(record["files"], dict) and record["version"] else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
