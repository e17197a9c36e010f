"""The programs that dg-lsp starts: where they start, and what they find there."""

import asyncio
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dg_lsp.processes import environment, find_program, python, run, start, start_talking, start_users_command

EDITORS = Path(__file__).parents[1] / "editors"
# How a plug-in could start a program, open a terminal or what a text names, type into a shell, or run a text.
STARTS = {
    ".ts": re.compile(
        r"child_process|worker_threads|node-pty|\b(?:spawn|exec|fork|execFile)(?:Sync)?\s*\(|createTerminal|sendText|"
        r"\b\w+Execution\s*\(|executeTask|\btasks\.|\bdebug\.|openExternal|sendSequence|TransportKind\.\w+|"
        r"\b(?:eval|Function|require|import)\s*\(|process\.(?:binding|dlopen|kill)|process\s*\[|runInTerminal|"
        r"""(?<!a )\bshell["']?\s*:|windowsVerbatim"""
    ),
    ".lua": re.compile(
        r"""\bvim\s*\[\s*["']|"""
        r"\bvim\.system|\b(?:jobstart|rpcstart|termopen|systemlist|chansend|sockconnect|serverstart)\b|"
        r"fn\.system\b|\bio\.popen|\bos\.execute|\.spawn\b|nvim_open_term|nvim_input\b|ui\.open|lsp\.rpc\.\w+|"
        r"\b(?:loadstring|loadfile|dofile|luaeval)\b|nvim_(?:exec|exec2|exec_lua|command|cmd|call_function)\b|"
        r"""vim\.cmd(?!\.(?:redraw|redrawstatus|checkhealth|tabedit|normal)\b|\("normal! m'"\))"""
    ),
}
# The functions that do: the server, and what is shown in a terminal or by a command.
STARTING = {
    "vscode/src/client.ts": Counter(["TransportKind.stdio"]),
    "vscode/src/install.ts": Counter(["createTerminal"]),
    "nvim/lua/dg_lsp/server.lua": Counter(["vim.system", "lsp.rpc.start"]),
}
WHERE = "import os; print(os.getcwd(), os.environ['PATH'], os.environ.get('PYTHONPATH'))"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a program, as the current folder, and some relative folders in lists."""
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the workspace')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".::/usr/bin:bin:/bin")
    monkeypatch.setenv("PYTHONPATH", ".")
    return tmp_path


def by_start(command: list[str]) -> str:
    with tempfile.TemporaryFile() as output:
        assert start(command, output, {}).wait() == 0
        output.seek(0)
        return output.read().decode()


def by_talking(command: list[str]) -> str:
    async def said() -> str:
        process = await start_talking(command, 1 << 16)
        return (await process.communicate())[0].decode()

    return asyncio.run(said())


@pytest.mark.parametrize("started", [lambda command: run(command, 60).stdout, by_start, by_talking])
def test_a_program_of_ours_starts_elsewhere(started: Callable[[list[str]], str], folder: Path) -> None:
    assert started(python("-c", f"import json; {WHERE}")) == "/ /usr/bin:/bin None\n"


def test_a_program_is_found_in_absolute_folders_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_program("tool") is None
    assert find_program("./tool") == str(folder / "tool")
    assert find_program("sh") in ("/usr/bin/sh", "/bin/sh")
    monkeypatch.setenv("PATH", f".:{folder}")
    assert find_program("tool") == str(folder / "tool")
    monkeypatch.setenv("PATH", ".:")
    assert find_program("sh") is None and "PATH" not in environment()


def test_the_users_own_command_runs_where_the_user_is(folder: Path) -> None:
    async def ran() -> str:
        with tempfile.TemporaryFile() as output:
            command = (
                f'{sys.executable} -c \'import os; print(os.getcwd(), os.environ["PATH"], os.environ["A"])\''
            )
            process = await start_users_command(f"env -u PYTHONPATH {command}", output, {"A": "1"})
            await process.wait()
            output.seek(0)
            return output.read().decode()

    assert asyncio.run(ran()) == f"{folder} .::/usr/bin:bin:/bin 1\n"


def test_a_program_that_takes_too_long_or_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(TimeoutError):
        run(python("-c", "import time; time.sleep(60)"), 0.2)
    with pytest.raises(OSError, match="No such file"):
        run([str(folder / "none")], 5)


def test_a_plug_in_starts_programs_in_one_function_for_each_purpose() -> None:
    sources = [*EDITORS.glob("vscode/src/**/*.ts"), *EDITORS.glob("nvim/**/*.lua")]
    assert len(sources) > 25
    found = {
        str(path.relative_to(EDITORS)): Counter(STARTS[path.suffix].findall(path.read_text()))
        for path in sources
    }
    assert {name: starts for name, starts in found.items() if starts} == STARTING


@pytest.mark.parametrize(
    "text",
    [
        'import { execFile } from "node:child_process"',
        "terminal.sendText(name)",
        "window.createTerminal(name)",
        "new ShellExecution(name)",
        "tasks.executeTask(task)",
        "env.openExternal(uri)",
        'commands.executeCommand("workbench.action.terminal.sendSequence", { text })',
        "new Function(text)",
        'process["binding"]("spawn_sync")',
        "eval(text)",
        "{ command, args, options: { shell: true } }",
    ],
)
def test_each_way_of_a_plug_in_for_vs_code_is_noticed(text: str) -> None:
    assert STARTS[".ts"].search(text)


@pytest.mark.parametrize(
    "text",
    [
        "vim.system({ name })",
        'vim["system"]({ name })',
        "vim.fn.jobstart(name)",
        "vim.fn.system(name)",
        "vim.fn.termopen(name)",
        "vim.uv.spawn(name, {})",
        "io.popen(name)",
        "os.execute(name)",
        'vim.cmd("!" .. name)',
        "vim.cmd.terminal()",
        "vim.cmd.make()",
        "vim.api.nvim_exec2(text, {})",
        "vim.ui.open(name)",
        "loadstring(text)()",
        "vim.lsp.rpc.start({ name }, {})",
    ],
)
def test_each_way_of_a_plug_in_for_neovim_is_noticed(text: str) -> None:
    assert STARTS[".lua"].search(text)
