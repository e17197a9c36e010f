"""Names of files and words of other programs in a terminal: nothing of them controls it."""

import ast
import io
import logging
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import dg_lsp
from dg_lsp.cli.doctor import Finding, _line
from dg_lsp.cli.main import main
from dg_lsp.cli.options import say
from dg_lsp.cli.shown import Formatter, show
from dg_lsp.cli.trial import Ran
from dg_lsp.cli.tried import Tried
from dg_lsp.source.shown import sentence, shown

CONTROLS = [chr(code) for code in (*range(32), *range(127, 160), 0x202E, 0x2066, 0x2028, 0x200F, 0xD800)]
EVIL = "a\x1b]0;title\x07\x15touch x\n\x9b31m\u202eb"


def test_a_control_character_is_shown_as_its_escape_and_all_else_as_it_is() -> None:
    assert not {*shown("".join(CONTROLS))} & {*CONTROLS}
    assert shown("é日 ok\u200d\t", "\t") == "é日 ok\u200d\t"
    assert shown("\x1b[1m") == "\\x1b[1m"


def test_a_sentence_is_one_line_whose_middle_is_left_out_if_it_is_very_long() -> None:
    assert sentence("no file\r\n   a\x1b\tb  ") == "no file a\\x1b\\tb  "
    long = sentence("begins " + "x" * 5_000 + " ends")
    assert long.startswith("begins ") and long.endswith(" ends") and len(long) == 1_000


def printed(path: Path) -> list[str]:
    """Return what a module prints without `show`, except constants and what `shown` returns."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    names = [
        call for call in calls if ast.unparse(call.func) in ("print", "sys.stdout.write", "sys.stderr.write")
    ]
    values = [value for call in names for value in call.args if not isinstance(value, ast.Constant)]
    texts = [
        part for value in values for part in (value.values if isinstance(value, ast.JoinedStr) else [value])
    ]
    said = [ast.unparse(text) for text in texts if not isinstance(text, ast.Constant)]
    return [text for text in said if not text.lstrip("f'{").startswith("shown(")]


def test_no_module_prints_what_controls_a_terminal() -> None:
    root = Path(dg_lsp.__file__).parent
    found = {str(path.relative_to(root)): said for path in root.rglob("*.py") if (said := printed(path))}
    assert not found


def is_harmless(text: str) -> bool:
    return not {*text} & {*CONTROLS} - {"\n"}


def test_sentences_findings_errors_and_logs_control_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"{EVIL}: kept")
    say(Tried(EVIL, EVIL, 1, "taken back", Ran(1, EVIL, {EVIL: EVIL}).sentence, 0.1).words)
    assert main(["fill", f"{EVIL}.py:1"]) == 2
    assert main([EVIL]) == 2
    said = capsys.readouterr().err
    assert is_harmless(said) and len(said.splitlines()) == 4
    assert is_harmless(_line(Finding(EVIL, "fail", EVIL, EVIL)).replace(EVIL, ""))
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "opened %s", (EVIL,), None)
    assert is_harmless(Formatter().format(record))


def test_a_diff_is_harmless_in_a_terminal_and_exact_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show(EVIL, end="")
    assert capsys.readouterr().out == EVIL
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", stream)
    show(f"+x\t{EVIL}", end="")
    assert is_harmless(stream.getvalue().replace("\t", ""))


def test_a_command_waits_for_a_key_only_in_a_terminal_that_closes_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "dg_lsp", "--version"]
    environment = {**os.environ, "DG_LSP_WAIT": "1"}
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=60,
    )
    assert "Enter" not in done.stderr
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stderr=subprocess.PIPE, env=environment, text=True) as child:
        assert child.stderr is not None
        assert "press Enter" in child.stderr.readline()
        assert child.poll() is None
        os.write(ours, b"\n")
        assert child.wait(60) == 0


def test_the_parser_shows_no_control_character_of_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bot", "--tries", EVIL])
    assert is_harmless(capsys.readouterr().err.replace("\t", ""))
