"""The command lines that the extension for VS Code sends to a terminal. Node is needed, and no editor."""

import json
import shlex
import subprocess
from typing import Any

import pytest

from dg_lsp.cli.main import main
from tests.editors.sandbox import HERE, NODE, skip_without

pytestmark = skip_without(NODE)

MODULE = HERE.parents[1] / "editors/vscode/src/shell.ts"
SET = {
    "checkpoint": "small",
    "device": "cpu",
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
    assert shlex.split(call("commandLine", AWKWARD, "linux")) == AWKWARD


def test_powershell_is_sent_its_own_quotes_and_calls_a_quoted_program() -> None:
    assert call("commandLine", ["C:\\Program Files\\it's\\dg-lsp.exe", "doctor", "a b", "$x"], "win32") == (
        "& 'C:\\Program Files\\it''s\\dg-lsp.exe' doctor 'a b' '$x'"
    )
    assert call("commandLine", ["C:\\dg-lsp.exe", "doctor"], "win32") == "C:\\dg-lsp.exe doctor"
    for word in AWKWARD[1:]:
        quoted = call("quoted", word, "win32")
        assert quoted == "'" + word.replace("'", "''") + "'", word
