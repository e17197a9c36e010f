"""`dg-lsp editor`: put the plug-in that comes along into VS Code or Neovim, or take it out, or list what is where."""

import argparse
import shutil

import dg_lsp
from dg_lsp.cli import plugins
from dg_lsp.cli.options import explain
from dg_lsp.settings import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dg-lsp editor`."""
    explain(
        parser,
        "Put the plug-in that comes along with dg-lsp into an editor, or take it out again. Nothing is downloaded. For "
        "VS Code on another machine (SSH, WSL, a container), run it there.",
        "dg-lsp editor install nvim",
        "0 done, 1 it was not there, 2 it cannot be done",
    )
    parser.add_argument("action", choices=("install", "remove", "list"), help="what to do")
    parser.add_argument("editor", nargs="?", choices=plugins.EDITORS, help="not for list")
    parser.add_argument(
        "--with",
        dest="program",
        metavar="PROGRAM",
        help=f"VS Code's program (default: the first of {', '.join(plugins.PROGRAMS)} that is on PATH)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked; return the exit code."""
    if arguments.action == "list":
        for line in _list(arguments.program):
            print(line)
        return 0
    if arguments.editor is None:
        raise UsageError(f"say which editor: dg-lsp editor {arguments.action} {' or '.join(plugins.EDITORS)}")
    work = {
        ("install", "nvim"): _install_nvim,
        ("install", "vscode"): _install_vscode,
        ("remove", "nvim"): _remove_nvim,
        ("remove", "vscode"): _remove_vscode,
    }[arguments.action, arguments.editor]
    return work(arguments.program)


def _install_nvim(_: str | None) -> int:
    folder = plugins.nvim_folder()
    count = plugins.install_nvim(folder)
    print(
        f"{count} files of version {dg_lsp.__version__} are in {folder}, where Neovim finds them at its next start."
    )
    _say_next(
        "nvim",
        "open a file in Neovim 0.12 or newer and type; :checkhealth dg_lsp checks it, :help dg_lsp tells all",
    )
    return 0


def _install_vscode(name: str | None) -> int:
    program = plugins.find_program(name)
    version = plugins.vsix_version(plugins.source("vscode"))
    plugins.install_vscode(program)
    print(f"{program} has installed {plugins.EXTENSION} {version}.")
    _say_next("vscode", "open a file in VS Code and type; a window that is open must be reloaded once")
    return 0


def _remove_nvim(_: str | None) -> int:
    removed = plugins.remove_nvim(plugins.nvim_folder())
    if removed is None:
        print(f"dg-lsp has put nothing into {plugins.nvim_folder()}.")
        return 1
    print(f"{removed.files} files are gone from {removed.folder}.")
    for path in removed.kept:
        print(f"{path} stays, because it has been changed.")
    return 0


def _remove_vscode(name: str | None) -> int:
    program = plugins.find_program(name)
    if not plugins.remove_vscode(program):
        print(f"{program} has no extension {plugins.EXTENSION}.")
        return 1
    print(f"{program} has removed {plugins.EXTENSION}.")
    return 0


def _list(name: str | None) -> list[str]:
    """A line for each editor: whether it is there, and which version of the plug-in it has."""
    folder = plugins.nvim_folder()
    version = plugins.nvim_version(folder)
    lines = [
        f"nvim         {shutil.which('nvim') or 'not on PATH'}: plug-in {version or 'not installed'} ({folder})"
    ]
    for program in [name] if name else plugins.PROGRAMS:
        if found := shutil.which(program):
            lines.append(f"{program:<12} {found}: {_extension(found)}")
    if len(lines) == 1:
        lines.append(f"vscode       none of {', '.join(plugins.PROGRAMS)} is on PATH")
    return [*lines, f"dg-lsp       {dg_lsp.__version__}: {_brought('nvim')}, {_brought('vscode')}"]


def _extension(program: str) -> str:
    try:
        return f"extension {plugins.vscode_version(program) or 'not installed'}"
    except UsageError as error:
        return str(error)


def _brought(editor: str) -> str:
    try:
        return f"brings the plug-in for {editor}" if plugins.source(editor) else ""
    except UsageError:
        return f"came without the plug-in for {editor}"


def _say_next(editor: str, then: str) -> None:
    """Say what the user does next."""
    if not shutil.which("dg-lsp"):
        print(
            "The editor looks for dg-lsp on PATH, and it is not there: add its folder, or tell the plug-in where it is."
        )
    print(f"Next: {then}.\nTo check the whole chain: dg-lsp doctor --editor {editor}")
