"""`dg-lsp editor`: install the plug-in for VS Code or Neovim, remove it, or list the versions."""

import argparse
from collections.abc import Iterator

import dg_lsp
from dg_lsp.cli import plugins
from dg_lsp.cli.options import explain
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import Waiting
from dg_lsp.processes import find_program
from dg_lsp.settings import UsageError

# The setting that names the server, as a line of the user's own settings.
_SETTING = {
    "nvim": 'vim.g.dg_lsp = { cmd = { "PATH/TO/dg-lsp", "--stdio" } }',
    "vscode": '"dg-lsp.path": "PATH/TO/dg-lsp"',
}
_NEXT = {
    "nvim": "open a file in Neovim 0.12 or newer and type; :checkhealth dg_lsp checks it, :help dg_lsp has the rest",
    "vscode": "open a file in VS Code and type; a window that is open must be reloaded once",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp editor`."""
    explain(
        parser,
        "Install the plug-in that is part of dg-lsp in an editor, or remove it. Nothing is downloaded. For "
        "VS Code on another machine (SSH, WSL, a container), run it there.",
        "dg-lsp editor install nvim",
        "0 done, 1 it was not there, 2 it cannot be done",
    )
    parser.add_argument("action", choices=("install", "remove", "list"), help="what to do")
    parser.add_argument(
        "editor", nargs="?", type=plugins.editor_of, help=f"{' or '.join(plugins.EDITORS)}; not for list"
    )
    parser.add_argument(
        "--with",
        dest="program",
        metavar="PROGRAM",
        help=f"VS Code's program (default: the first of {', '.join(plugins.PROGRAMS)} that is on PATH)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Install, remove or list; return the exit code."""
    editor = arguments.editor
    if arguments.action == "list":
        with Waiting("asking the editors"):
            lines = [*_list(arguments.program)]
        show("\n".join(lines))
        return 0
    if editor is None:
        raise UsageError(f"say which editor: dg-lsp editor {arguments.action} {' or '.join(plugins.EDITORS)}")
    plugin = plugins.plugin_of(editor, arguments.program)
    if arguments.action == "remove":
        with Waiting(f"removing the plug-in for {editor}"):
            said = plugin.remove()
        show(said or f"dg-lsp has installed nothing by {plugin.place}.")
        return 0 if said else 1
    with Waiting(f"installing the plug-in for {editor}"):
        said = plugin.install()
    show(said)
    if plugin.server() is None:
        show(
            "The editor looks for dg-lsp on PATH, and it is not there. Add the folder of the program to PATH, or"
        )
        show(f"this line to the editor's user settings: {_SETTING[editor]}")
    show(f"Next: {_NEXT[editor]}.\nTo check the whole chain: dg-lsp doctor --editor {editor}")
    return 0


def _list(name: str | None) -> Iterator[str]:
    """Yield a line for each editor, with the version of its plug-in, and one for this installation."""
    nvim = plugins.plugin_of("nvim")
    said = f"plug-in {nvim.version() or 'not installed'} ({nvim.place})"
    yield f"nvim         {find_program('nvim') or 'not on PATH'}: {said}"
    programs = [program for program in ([name] if name else plugins.PROGRAMS) if find_program(program)]
    for program in programs:
        plugin = plugins.plugin_of("vscode", program)
        try:
            yield f"{program:<12} {plugin.place}: extension {plugin.version() or 'not installed'}"
        except UsageError as error:
            yield f"{program:<12} {plugin.place}: {error}"
    if not programs:
        yield f"vscode       none of {', '.join(plugins.PROGRAMS)} is on PATH"
    yield f"dg-lsp       {dg_lsp.__version__}: {', '.join(map(_brought, ('nvim', 'vscode')))}"


def _brought(editor: str) -> str:
    """Return a clause that says whether this installation has the plug-in for `editor`."""
    try:
        return f"includes the plug-in for {editor}" if plugins.source(editor) else ""
    except UsageError:
        return f"has no plug-in for {editor}"
