"""The command lines that the extension for VS Code sends to a terminal. Node is needed, and no editor."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.cli.main import main
from tests.editors.sandbox import HERE, NODE, skip_without

pytestmark = skip_without(NODE)

MODULE = HERE.parents[1] / "editors/vscode/src/shell.ts"
SET = {
    "checkpoint": "small",
    "device": "cpu",
    "weightBits": 4,
    "threads": 2,
    "effort": "high",
    "seed": 7,
    "deadline": 1.5,
    "engineUrl": "https://team.example:8765",
    "engineTokenFile": "/home/it's me/token",
    "engineCa": "/etc/ca; rm -rf $HOME/x.pem",
    "engineFallback": True,
}
AWKWARD = [
    "plain",
    "two words",
    "it's",
    "$HOME",
    "a;b",
    "`x`",
    '"',
    "",
    "a&b",
    "(x)",
    "@x",
    "a,b",
    "C:\\x y\\z",
]


def call(name: str, *arguments: Any) -> Any:
    """The result of a function of the module."""
    given = ", ".join(map(json.dumps, arguments))
    script = f"import {{ {name} }} from '{MODULE}'; console.log(JSON.stringify({name}({given})))"
    command = [str(NODE), "--no-warnings", "--input-type=module", "--eval", script]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout)


def test_the_doctor_and_the_trace_get_all_that_is_set_of_the_engine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = call("flagsFrom", {**SET, "confidence": 0.5, "exclude": ["x"], "related": None})
    assert dict(zip(flags[::2], flags[1::2], strict=True)) == {
        "--checkpoint": "small",
        "--device": "cpu",
        "--weight-bits": "4",
        "--threads": "2",
        "--effort": "high",
        "--seed": "7",
        "--deadline": "1.5",
        "--engine-url": "https://team.example:8765",
        "--engine-token-file": "/home/it's me/token",
        "--engine-ca": "/etc/ca; rm -rf $HOME/x.pem",
        "--engine-fallback": "true",
    }
    for command in ("doctor", "trace"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        said = capsys.readouterr().out
        assert all(flag in said for flag in flags[::2]), command
    assert call("flagsFrom", {}) == []


def test_a_posix_shell_reads_the_words_that_were_meant() -> None:
    assert shlex.split(call("commandLine", AWKWARD)) == AWKWARD


# Calls the extension's own search and message on another platform. `vscode` is a stub that keeps the messages.
ELSEWHERE = """
import { registerHooks } from 'node:module';
const [platform, folder] = process.argv.slice(1);
Object.defineProperty(process, 'platform', { value: platform });
globalThis.__dirname = folder;
globalThis.said = [];
const stub = `const nothing = { getConfiguration: () => ({ inspect: () => undefined }), isTrusted: true };
export const workspace = nothing, extensions = { getExtension: () => undefined }, commands = {};
export const window = { showErrorMessage: async (...words) => void globalThis.said.push(words) };
export class Uri {} export class Range {} export class Disposable {} export const ConfigurationTarget = {};`;
registerHooks({
  resolve: (name, context, next) =>
    name === 'vscode'
      ? { url: `data:text/javascript,${encodeURIComponent(stub)}`, shortCircuit: true }
      : next(name.startsWith('./') ? `${name}.ts` : name, context),
});
const { findServer } = await import(`${folder}/server.ts`);
const { sayMissing } = await import(`${folder}/install.ts`);
const found = await findServer();
if (!found.program) await sayMissing(found.why);
console.log(JSON.stringify([found, globalThis.said]));
"""


def found_on(platform: str, path: Path, home: Path = Path("/nowhere")) -> Any:
    """The program that the extension finds on `platform` with this PATH and home, and its messages."""
    command = [
        str(NODE),
        "--no-warnings",
        "--input-type=module",
        "--eval",
        ELSEWHERE,
        platform,
        str(MODULE.parent),
    ]
    environment = {"PATH": str(path), "HOME": str(home)}
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60, env=environment)
    return json.loads(done.stdout)


def test_on_windows_itself_the_extension_points_to_wsl_and_starts_no_program(tmp_path: Path) -> None:
    for name in ("dg-lsp", "dg-lsp.exe"):
        (tmp_path / name).touch(mode=0o755)
    found, said = found_on("win32", tmp_path)
    assert "program" not in found
    assert said == [[found["why"]]]
    assert (
        "Windows" in said[0][0] and "wsl --install" in said[0][0] and "WSL: Open Folder in WSL" in said[0][0]
    )
    # In WSL the extension runs on Linux.
    found, said = found_on("linux", tmp_path)
    assert found["program"] == str(tmp_path / "dg-lsp") and said == []
    found, said = found_on("linux", tmp_path / "empty")
    assert "Install it" in said[0][0] and "WSL" not in said[0][0]


def test_a_program_in_the_users_own_folder_is_found_without_a_path(tmp_path: Path) -> None:
    program = tmp_path / ".local/bin/dg-lsp"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    found, said = found_on("linux", tmp_path / "empty", tmp_path)
    assert found == {"program": str(program), "origin": "~/.local/bin"} and said == []
