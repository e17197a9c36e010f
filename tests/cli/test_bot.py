"""The bot as a program, with the scripted engine."""

import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from dg_lsp.cli.fill import index_for
from dg_lsp.cli.main import main
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Fill, Infill
from dg_lsp.settings import Settings
from dg_lsp.source.document import read_document
from tests.cli.test_waiting import in_terminal

ROOT = Path(__file__).parents[2]
SHOP = (
    'def price(n):\n    """The price of n."""\n    raise NotImplementedError\n\n\n'
    "def tax(n):\n    return n\n\n\ndef sum(n):\n    pass\n"
)
CART = "class Cart:\r\n    def total(self):\r\n        pass\r\n\r\n    def count(self):\r\n        ...\r\n"
ADD = "function add(a: number) {\n}\n"

# Each starts an engine.
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    (tmp_path / "inner").mkdir()
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "inner" / "cart.py").write_bytes(CART.encode())
    (tmp_path / "inner" / "add.ts").write_text(ADD)
    (tmp_path / "secrets.py").write_text(SHOP)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "shop.py").write_text(SHOP)
    return tmp_path


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "dg_lsp", "bot", *map(str, arguments)]


def run(*arguments: str | Path) -> tuple[dict, str, int]:
    """The report, what stands on standard error, and the exit code."""
    done = subprocess.run([*command(*arguments), "--json", "-"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout), done.stderr, done.returncode


def outcomes(report: dict) -> dict[str, str]:
    return {entry["name"]: entry["outcome"] for entry in report["stubs"]}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_dry_run_shows_the_diff_and_changes_no_file(folder: Path) -> None:
    before = contents(folder)
    done = subprocess.run(command(folder, "--dry-run"), capture_output=True, text=True, check=False)
    assert done.returncode == 0 and contents(folder) == before
    assert done.stdout.count("return None") == 5 and "-    raise NotImplementedError" in done.stdout
    assert "5 stubs, 5 filled; a dry run tests and writes nothing" in done.stderr
    assert "kept" not in done.stderr and done.stderr.count(": filled") == 5
    report, _, _ = run(folder, "--dry-run")
    assert {*outcomes(report).values()} == {"filled"} and report["summary"]["kept"] == 0
    both = subprocess.run(command(folder, "--dry-run", "--keep-if", "true"), capture_output=True, check=False)
    assert both.returncode == 2 and b"leave one of them out" in both.stderr


def test_stubs_in_all_languages_are_filled_and_line_ends_stay(folder: Path) -> None:
    report, _, code = run(folder, "--seed", "2")
    assert code == 0 and report["summary"] == {
        "tried": 5,
        "filled": 5,
        "kept": 5,
        "partial": 0,
        "unproven": 0,
    }
    assert outcomes(report) == dict.fromkeys(["price", "sum", "Cart.total", "Cart.count", "add"], "kept")
    assert [e["line"] for e in report["stubs"] if e["name"] == "Cart.count"] == [6]
    filled = CART.replace("pass", "return False").replace("...", "return False")
    assert (folder / "inner" / "cart.py").read_bytes() == filled.encode()
    assert "return False" in (folder / "inner" / "add.ts").read_text()
    assert (folder / "secrets.py").read_text() == (folder / ".hidden" / "shop.py").read_text() == SHOP


def test_what_is_abstract_is_left_alone_and_said(folder: Path) -> None:
    path = folder / "shape.py"
    path.write_text(text := "class Shape(ABC):\n    @abstractmethod\n    def area(self):\n        ...\n")
    report, said, code = run(path)
    assert code == 0 and path.read_text() == text and report["stubs"] == []
    assert report["meant"] == [[str(path), 4, "Shape.area"]]
    assert f"{path}: left alone, as abstract, overloads or empty on purpose: Shape.area" in said


def test_only_fills_that_pass_the_command_are_kept(folder: Path) -> None:
    path = folder / "shop.py"
    report, reported, code = run(
        path, "--keep-if", "echo said {path}; grep -q return {path} && test {name} != price"
    )
    assert code == 1 and outcomes(report) == {"price": "taken back", "sum": "kept"}
    assert path.read_text() == SHOP.replace("pass", "return None")
    assert (
        f"the command exited with 1: said {path}" in report["stubs"][0]["why"]
        and "price: taken back" in reported
    )
    assert sorted(p.name for p in folder.iterdir()) == [".hidden", "inner", "secrets.py", "shop.py"]


def test_the_next_fill_is_tried_where_the_command_refuses_the_first(folder: Path) -> None:
    path = folder / "shop.py"
    # The scripted engine's fills are, in this order, `return None`, `return True`, ...
    only = ("--keep-if", "! grep -q 'return None' {path}")
    report, _, code = run(path, *only, "--tries", "1")
    assert code == 1 and outcomes(report) == {"price": "taken back", "sum": "taken back"}
    assert path.read_text() == SHOP
    report, _, code = run(path, *only)
    assert code == 0 and outcomes(report) == {"price": "kept", "sum": "kept"}
    filled = SHOP.replace("raise NotImplementedError", "return True").replace("pass", "return True")
    assert path.read_text() == filled


def test_a_command_that_takes_too_long_is_ended_with_its_children(folder: Path) -> None:
    path, mark = folder / "shop.py", folder / "mark"
    slow = f"(sleep 3; touch {mark}) & sleep 60"
    report, _, code = run(path, "--keep-if", slow, "--timeout", "0.5")
    assert code == 1 and path.read_text() == SHOP
    assert all("longer than 0.5 s" in entry["why"] for entry in report["stubs"])
    time.sleep(3)
    assert not mark.exists()


CASH = """class Cart:
    def __init__(self):
        self.items = []

    def last(self):
        \"\"\"The last item.\"\"\"
        raise NotImplementedError

    def full(self):
        def limit():
            pass

        return limit()


def valid(cart):
    ...
"""
# The scripted engine's fills are, in this order, `return None`, `return True`, `return False`, `return 0`.
CASH_TESTS = """from cash import Cart, valid


def test_valid():
    assert valid(Cart()) is True


def test_limit():
    assert Cart().full() == 0 and Cart().full() is not False


def test_last():
    assert Cart().last() is None
"""
# What pytest says and reports of these tests, in a tenth of its time.
RUNNER = """import os, sys, test_cash, traceback
from xml.sax.saxutils import escape
arguments = sys.argv[1:]
wanted = arguments[arguments.index("-k") + 1] if "-k" in arguments else ""
failed = passed = 0
cases = []
for name, test in [*vars(test_cash).items()]:
    if name.startswith("test_") and wanted in name and not (failed and "-x" in arguments):
        how = ""
        try:
            test()
            passed += 1
        except Exception:
            failed += 1
            how = f"<failure>{escape(traceback.format_exc())}</failure>"
            print(f"FAILED test_cash.py::{name}")
        cases.append(f'<testcase classname="test_cash" name="{name}">{how}</testcase>')
for option in os.environ["PYTEST_ADDOPTS"].split():
    if option.startswith("--junitxml="):
        with open(option.partition("=")[2], "w") as file:
            file.write(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
print(f"{failed} failed, {passed} passed in 0.01s")
sys.exit(1 if failed else 0 if passed else 5)
"""
RUN = f"{sys.executable} run.py"
PYTEST = f"{sys.executable} -m pytest -p no:cacheprovider"
CASH_RIGHT = (
    CASH.replace("raise NotImplementedError", "return None")
    .replace("pass", "return 0")
    .replace("...", "return True")
)


@pytest.fixture
def tested(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with three stubs, whose three tests stand in another order; its folder is the current one."""
    (folder / "cash").mkdir()
    path = folder / "cash" / "cash.py"
    path.write_text(CASH)
    (folder / "cash" / "test_cash.py").write_text(CASH_TESTS)
    (folder / "cash" / "run.py").write_text(RUNNER)
    monkeypatch.chdir(folder / "cash")
    # The tests of the three stubs need no plug-in of pytest, and loading ours takes longer than they do.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return path


@pytest.mark.parametrize("command", [f"{PYTEST} -q -x", f"{RUN} -x", RUN])
def test_what_other_stubs_fail_too_is_no_reason_to_take_a_fill_back(tested: Path, command: str) -> None:
    report, reported, code = run(tested, "--keep-if", command)
    assert tested.read_text() == CASH_RIGHT
    assert code == 0 and report["summary"] == {
        "tried": 3,
        "filled": 3,
        "kept": 3,
        "partial": 0,
        "unproven": 0,
    }
    failed = 1 if command.endswith("-x") else 3
    assert "before the first fill the command exited with 1: " in reported and f"{failed} failed" in reported
    assert not report["failing"] and "no report" not in reported
    assert report["diff"].count("--- a/") == 1 and report["diff"].count("\n+") == 4


def test_a_name_selects_the_tests_of_methods_and_of_nested_functions(tested: Path) -> None:
    report, _, code = run(tested, "--keep-if", f"{PYTEST} -q -k {{name}}")
    assert code == 0 and tested.read_text() == CASH_RIGHT
    assert outcomes(report) == dict.fromkeys(["Cart.last", "Cart.full.limit", "valid"], "kept")


def test_the_qualified_name_is_a_word_of_its_own(tested: Path) -> None:
    report, _, _ = run(tested, "--keep-if", "echo {name} {qualname}; test {qualname} = Cart.last")
    assert outcomes(report) == {"Cart.last": "kept", "Cart.full.limit": "taken back", "valid": "taken back"}
    assert "the command exited with 1: limit Cart.full.limit, as before the fill" in report["stubs"][1]["why"]


def test_one_red_test_of_another_stub_hides_nothing(tested: Path) -> None:
    (tested.parent / "test_cash.py").write_text(CASH_TESTS.replace("is True", "== 5"))
    report, reported, code = run(tested, "--keep-if", RUN)
    wanted = {"Cart.last": "kept", "Cart.full.limit": "kept", "valid": "taken back"}
    assert code == 1 and outcomes(report) == wanted and "again" not in reported
    assert tested.read_text() == CASH_RIGHT.replace("return True", "...")
    assert [stub["green"] for stub in report["stubs"]] == [
        ["test_cash::test_last"],
        ["test_cash::test_limit"],
        [],
    ]
    assert all(stub["red"] == [] for stub in report["stubs"])
    assert [stub["failing"] for stub in report["stubs"]] == [[], [], ["test_cash::test_valid"]]
    assert [stub["tries"] for stub in report["stubs"]] == [1, 4, 4]
    # The command is red at the end, and the next run finds the stub again.
    assert "1 failed, 2 passed" in report["failing"] and report["failing"] in reported
    report, reported, code = run(tested, "--keep-if", RUN)
    assert code == 1 and outcomes(report) == {"valid": "taken back"}
    assert "1 stub, 1 filled, 0 kept\n" in reported
    why = report["stubs"][0]["why"]
    assert "1 failed, 2 passed" in why and "(test_cash::test_valid), as before the fill" in why


TWO = CASH_TESTS + "\n\ndef test_both():\n    assert Cart().last() is None and valid(1) is False\n"


def test_a_fill_with_which_a_test_of_its_own_fails_is_taken_back_unless_it_is_wanted(tested: Path) -> None:
    # No fill of `valid` passes both of its tests; each passes with one, and with that `last` passes all of its own.
    (tested.parent / "test_cash.py").write_text(TWO)
    wanted = {"Cart.last": "kept", "Cart.full.limit": "kept", "valid": "partial"}
    for _ in range(2):  # the next run finds the same stub
        report, reported, code = run(tested, "--keep-if", RUN)
        assert code == 1 and outcomes(report) == {name: wanted[name] for name in outcomes(report)}
        assert tested.read_text() == CASH_RIGHT.replace("return True", "...")
        assert reported.count("valid: partial, so it was taken back") == 1 and "1 partial" in reported
    tested.write_text(CASH)
    report, reported, code = run(tested, "--keep-if", RUN, "--keep-partial")
    assert code == 1 and tested.read_text().count("return") == CASH_RIGHT.count("return")
    assert outcomes(report) == wanted and "partial, and kept as --keep-partial says" in reported
    # It is marked, and found again until somebody changes it.
    marked = tested.read_text()
    assert marked.count("# dg-lsp: partial, its tests do not all pass (") == 1
    report, _, _ = run(tested, "--keep-if", RUN)
    assert [*outcomes(report)] == ["valid"]
    tested.write_text(marked.replace("return True", "return True  # mine"))
    report, _, _ = run(tested, "--keep-if", RUN)
    assert [*outcomes(report)] == [] and "return True  # mine" in tested.read_text()


@pytest.mark.parametrize("answers", [0, 1, 3])
def test_an_engine_that_fails_leaves_the_other_stubs_and_every_one_is_reported(
    tested: Path, answers: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = list[Infill]()

    def answer(request: Infill) -> Fill:
        asked.append(request)
        if len(asked) > answers:
            raise EngineError("the engine died twice on this; free memory")
        return Fill(("return None", "return 0", "return True")[len(asked) - 1], parses=True)

    monkeypatch.setattr("dg_lsp.cli.bot.engine_of", lambda _: ScriptedEngine(answer))
    (tested.parent / "more.py").write_text(SHOP)
    code = main(["bot", ".", "--keep-if", RUN, "--json", "-"])
    out, said = capsys.readouterr()
    stubs = json.loads(out)["stubs"]
    assert code == 2 and said.endswith("dg-lsp: error: the engine died twice on this; free memory\n")
    names = ["Cart.last", "Cart.full.limit", "valid", "price", "sum"]
    assert [stub["name"] for stub in stubs] == names
    assert [stub["outcome"] for stub in stubs] == ["kept"] * answers + ["no fill"] * (5 - answers)
    assert all("free memory" in stub["why"] and stub["line"] for stub in stubs[answers:])
    assert len(asked) == answers + 1 and (tested.parent / "more.py").read_text() == SHOP
    assert tested.read_text().count("return") == CASH.count("return") + answers
    assert not [*tested.parent.glob(".*")]


def test_with_no_stub_the_command_decides(tested: Path) -> None:
    tested.write_text(CASH_RIGHT)
    assert run(tested, "--keep-if", RUN)[2] == 0
    tested.write_text(CASH_RIGHT.replace("return True", "return 7"))
    report, reported, code = run(tested, "--keep-if", RUN)
    assert code == 1 and report["stubs"] == [] and "1 failed, 2 passed" in reported


CHAIN = """def first(n):
    return second(n)


def outer(n):
    raise NotImplementedError


def inner(n):
    raise NotImplementedError
"""


def test_a_caller_waits_for_what_it_calls(tested: Path) -> None:
    # The scripted engine writes `return None` first, and `outer` is reached by nothing but a test of both.
    tested.write_text(CHAIN)
    (tested.parent / "test_cash.py").write_text(
        "import cash\n\ndef test_both():\n    assert cash.outer(1) is None\n    assert cash.inner(1) is True\n"
    )
    report, _, code = run(tested, "--keep-if", RUN)
    assert code == 0 and outcomes(report) == {"outer": "kept", "inner": "kept"}


TWINS = """def first(n):
    pass


def second(n):
    pass
"""


def test_another_fill_is_tried_once_those_of_other_stubs_are_there(tested: Path) -> None:
    # The fills `True` and `0` of `first` both pass its own test, and which is right only a test of both tells.
    tested.write_text(TWINS)
    (tested.parent / "test_cash.py").write_text(
        "import cash\n\ndef test_first():\n    assert cash.first(1) in (0, True)\n\n"
        "def test_second():\n    assert cash.second(1) is True\n\n"
        "def test_both():\n    assert cash.first(1) is 0 and cash.second(1) is True\n"
    )
    report, _, code = run(tested, "--keep-if", RUN)
    assert code == 0 and outcomes(report) == {"first": "kept", "second": "kept"}
    assert tested.read_text() == TWINS.replace("pass", "return 0", 1).replace("pass", "return True")
    assert "return 0" in report["diff"]


# Two functions that raise. Their tests, which fill of each stays at the end, and what is said of the first.
PAIR = "".join(f"def {name}(n):\n    raise NotImplementedError\n\n\n" for name in ("first", "second"))
# Reaches both, and `second` also where `first` is not written.
BOTH = """def both():
    try:
        return first(1), second(1)
    except NotImplementedError:
        return None, second(1)
"""
MASKED = {
    "one that ends in an unwritten function tells nothing": (
        ("first(1) is None", "first(1) is None and second(1) == 7"),
        ("", ""),
        "of its own tests, 1 passed with it and 1 ended in functions that are not written",
    ),
    "one that ends there before it reaches the function tells nothing either": (
        ("first(1) is None", "(second(1), first(2)) == (7, 7)"),
        ("", ""),
        "of its own tests, 1 passed with it and 1 ended in functions that are not written",
    ),
    "one that passes once another fill lets it through shows that it is right": (
        ("first(1) is None", "second(1) == 7", "(second(1) or 1, first(2)) == (1, None)"),
        ("return None", ""),
        "its own tests have passed with it, 1 of them before fills of other stubs were taken back",
    ),
    "one that fails before it tells something": (
        ("first(1) is None", "first(1) == 7 and second(1) == 7"),
        ("", ""),
        "its own tests fail: ",
    ),
    "with no other test nothing is known": (
        ("first(1) is None and second(1) == 7",),
        ("", ""),
        "its own tests fail: ",
    ),
    "the worse fill goes first": (
        ("first(1) is None", "second(1) is True", "second(1) is 0", "first(1) is None and second(1) == 7"),
        ("", ""),
        "of its own tests, 1 passed with it and 1 ended in functions that are not written",
    ),
    "one that is wrong for certain goes first": (
        (
            "first(1) is None",
            *("second(1) is None",) * 3,
            "second(1) == 7",
            *("first(1) is None and second(1) == 7",) * 3,
        ),
        ("", ""),
        "of its own tests, 1 passed with it and 3 ended in functions that are not written",
    ),
    "what fell with one that is wrong for certain is judged again": (
        (
            "first(1) is None",
            *("second(1) is None",) * 3,
            "both() == (None, 7)",
            *("both() == (None, None, 7)",) * 2,
        ),
        ("", ""),
        "of its own tests, 1 passed with it and 3 ended in functions that are not written",
    ),
    "two of three that pass are not enough": (
        ("first(1) is None", "first(2) is None", "first(1) is None and second(1) == 7"),
        ("", ""),
        "of its own tests, 2 passed with it and 1 ended in functions that are not written",
    ),
    "five of six that pass are not enough": (
        (*("first(1) is None",) * 5, "first(1) is None and second(1) == 7"),
        ("", ""),
        "of its own tests, 5 passed with it and 1 ended in functions that are not written",
    ),
    "six of seven that pass are enough": (
        (*("first(1) is None",) * 6, "first(1) is None and second(1) == 7"),
        ("return None", ""),
        "of its own tests, 6 passed with it and 1 ended in functions that are not written",
    ),
    "six of seven that pass are not enough if the seventh fails": (
        (*("first(1) is None",) * 6, "first(1) == 7"),
        ("", ""),
        "its own tests fail: ",
    ),
    "one that passes with a fill that is wrong for others shows that it is right": (
        (
            "first(1) is None",
            *("second(1) is None",) * 2,
            "second(1) == 7",
            "first(1) is None and second(1) is True",
        ),
        ("return None", ""),
        "its own tests have passed with it, 1 of them before fills of other stubs were taken back",
    ),
    "of two that may be wrong none is kept": (
        ("first(1) is None", "second(1) is None", "second(1) is None and first(1) == 7"),
        ("", ""),
        "its tests have passed, and fail with the fills that are in the files at the end",
    ),
    "a test that was stopped earlier finds the right one": (
        ("first(1) in (None, True)", "second(1) is None", "second(1) is None and first(1) is True"),
        ("return True", "return None"),
        "its own tests pass with the fills of other stubs",
    ),
}


@pytest.mark.parametrize("case", MASKED)
def test_a_test_that_ends_in_a_function_that_is_not_written_counts_for_no_other(
    tested: Path, case: str
) -> None:
    tests, fills, said = MASKED[case]
    tested.write_text(PAIR)
    checks = "\n\n".join(f"def test_{n}():\n    assert {check}\n" for n, check in enumerate(tests))
    (tested.parent / "test_cash.py").write_text(f"from cash import first, second\n\n{BOTH}\n\n{checks}")
    report, _, code = run(tested, "--keep-if", RUN)
    wanted = PAIR
    for fill in fills:
        head, _, tail = wanted.partition("raise NotImplementedError")
        wanted = f"{head}{fill or '@'}{tail}"
    assert tested.read_text() == wanted.replace("@", "raise NotImplementedError")
    assert code == (not all(fills)) and report["stubs"][0]["why"].startswith(said)
    assert [stub["outcome"] == "kept" for stub in report["stubs"]] == [bool(fill) for fill in fills]
    assert (report["stubs"][0]["outcome"] == "unproven") == ("not written" in said and not fills[0])


def test_a_test_that_two_stubs_stop_is_passed_with_fills_of_both(tested: Path) -> None:
    tested.write_text(text := PAIR + "def third(n):\n    raise NotImplementedError\n")
    (tested.parent / "test_cash.py").write_text(
        "from cash import first, second, third\n\ndef test_first():\n    assert first(1) is None\n\n"
        "def test_second():\n    assert second(1) == 7\n\ndef test_third():\n    assert third(1) == 7\n\n"
        "def test_all():\n    assert (second(1), third(1), first(2)) == (None, True, None)\n"
    )
    report, _, code = run(tested, "--keep-if", RUN)
    assert code == 1 and outcomes(report) == {"first": "kept", "second": "partial", "third": "partial"}
    assert tested.read_text() == text.replace("raise NotImplementedError", "return None", 1)
    assert [path.name for path in tested.parent.iterdir() if path.name.startswith(".cash")] == []


def test_stubs_that_only_tests_of_several_tell_apart_are_filled_together(tested: Path) -> None:
    # No test passes with a right fill of `second` or `third` alone, and their first fills are wrong.
    tested.write_text(text := PAIR + "def third(n):\n    raise NotImplementedError\n")
    (tested.parent / "test_cash.py").write_text(
        "from cash import first, second, third\n\ndef test_first():\n    assert first(1) is None\n\n"
        "def test_all():\n    assert (str(third(1)), second(1), first(2)) == ('0', True, None)\n"
        "    assert second(1) is True\n\n"
        "def test_both():\n    assert (second(2), str(third(2))) == (True, '0')\n"
    )
    report, _, code = run(tested, "--keep-if", RUN)
    assert code == 0 and outcomes(report) == dict.fromkeys(["first", "second", "third"], "kept")
    assert 0 < report["exchanges"] <= 16
    for fill in ("None", "True", "0"):
        text = text.replace("raise NotImplementedError", f"return {fill}", 1)
    assert tested.read_text() == text


def test_a_stub_that_no_test_reached_at_first_stops_none_later(tested: Path) -> None:
    # `first` is filled before `second` lets the last test get to it, and no fill of it passes.
    tested.write_text(PAIR + "def third(n):\n    raise NotImplementedError\n")
    (tested.parent / "test_cash.py").write_text(
        "from cash import first, second, third\n\ndef test_third():\n    assert third(1) is None\n\n"
        "def test_second():\n    assert second(1) is None\n\n"
        "def test_all():\n    assert (second(1), first(1), third(2)) == (None, 7, 7)\n"
    )
    report, _, _ = run(tested, "--keep-if", RUN)
    assert outcomes(report) == {"first": "taken back", "second": "unproven", "third": "unproven"}


def test_a_test_that_needs_the_function_no_more_shows_nothing(tested: Path) -> None:
    tested.write_text(PAIR + "def third(n):\n    raise NotImplementedError\n")
    (tested.parent / "test_cash.py").write_text(
        "from cash import first, second, third\n\ndef test_either():\n    try:\n        assert first(1) is None\n"
        "    except NotImplementedError:\n        assert third(1) is None\n\n"
        "def test_second():\n    assert second(1) is None\n\ndef test_wrong():\n    assert second(1) == 7\n\n"
        "def test_third():\n    assert third(1) is None\n\n"
        "def test_both():\n    assert second(1) is None and first(1) == 7\n"
    )
    report, _, _ = run(tested, "--keep-if", RUN)
    assert outcomes(report) == {"first": "unproven", "second": "partial", "third": "kept"}


def test_a_fill_that_makes_a_test_fail_that_passed_is_not_kept(tested: Path) -> None:
    text = (
        CASH_TESTS.replace("is True", "in (None, 7)") + "\n\ndef test_more():\n    assert valid(1) is False\n"
    )
    (tested.parent / "test_cash.py").write_text(text)
    report, _, code = run(tested, "--keep-if", RUN)
    (stub,) = (one for one in report["stubs"] if one["name"] == "valid")
    assert code == 1 and stub["outcome"] == "taken back" and tested.read_text().endswith("    ...\n")
    assert stub["red"] == ["test_cash::test_valid"] or stub["failing"] == ["test_cash::test_more"]


def test_tests_that_are_named_by_their_place_in_a_set_are_found_again(
    tested: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    # pytest names `object()` by its place among the parameters.
    more = "[(word, object()) for word in {*'abcdefgh'}]"
    (tested.parent / "test_cash.py").write_text(
        f"import pytest\n{CASH_TESTS}\n\n@pytest.mark.parametrize(('word', 'value'), {more})\n"
        "def test_of_others(word, value):\n    assert word\n"
    )
    report, _, code = run(tested, "--keep-if", f"{PYTEST} -q")
    assert code == 0 and [(stub["outcome"], stub["red"]) for stub in report["stubs"]] == [("kept", [])] * 3


def test_silent_stubs_are_judged_by_the_tests_that_reach_them(tested: Path) -> None:
    # With the first fill `test_same` fails in the very words as before: only that it reaches `valid` tells whose it is.
    text = CASH_TESTS.replace("is True", "is None") + "\n\ndef test_same():\n    assert valid(2) == 1\n"
    (tested.parent / "test_cash.py").write_text(text.replace("def test_valid", "def test_it"))
    report, _, code = run(tested, "--keep-if", RUN, "--tries", "1")
    (stub,) = (one for one in report["stubs"] if one["name"] == "valid")
    assert code == 1 and stub["outcome"] != "kept" and stub["failing"] == ["test_cash::test_same"]


def test_a_command_without_a_report_is_judged_by_its_exit_status_which_is_said_once(tested: Path) -> None:
    report, reported, code = run(tested, "--keep-if", f"PYTEST_ADDOPTS= {RUN}")
    assert (
        code == 1 and tested.read_text() == CASH and reported.count("no report of its tests can be read") == 1
    )
    assert {*outcomes(report).values()} == {"taken back"}


def test_a_report_that_the_command_writes_by_itself_is_read(tested: Path) -> None:
    written = tested.parent / "own.xml"
    own = f"PYTEST_ADDOPTS=--junitxml={written} {RUN}"
    _, reported, code = run(tested, "--keep-if", own, "--report", written)
    assert code == 0 and tested.read_text() == CASH_RIGHT and "no report" not in reported
    # One that was there before and is not written again tells nothing.
    tested.write_text(CASH)
    _, reported, code = run(tested, "--keep-if", f"PYTEST_ADDOPTS= {RUN}", "--report", written)
    assert code == 1 and tested.read_text() == CASH and "no report" in reported
    assert run_error(tested, "--report", written) == 2


def test_of_several_fills_the_one_with_which_most_tests_pass_is_partial(tested: Path) -> None:
    tests = "from cash import valid\n\n" + "\n\n".join(
        f"def test_{n}():\n    assert {check}"
        for n, check in enumerate(
            ("valid(1) is not None", "valid(1) == 0", "valid(1) is not False", "valid(1) == 9")
        )
    )
    (tested.parent / "test_cash.py").write_text(tests)
    report, _, code = run(tested, "--keep-if", RUN, "--keep-partial")
    assert code == 1 and outcomes(report)["valid"] == "partial"
    assert tested.read_text().endswith("    return 0\n")
    why = report["stubs"][2]["why"]
    assert "1 failed, 3 passed" in why and why.startswith("its own tests fail: test_cash::test_3; ")
    assert report["stubs"][2]["tries"] == 4


def test_an_interrupt_takes_partial_fills_back(tested: Path) -> None:
    (tested.parent / "test_cash.py").write_text(
        f"{CASH_TESTS}    assert Cart().last() == 7\n\n\ndef test_more():\n    Cart().last()\n"
    )
    stop = f"{RUN}; code=$?; test $(grep -c return cash.py) -lt 4 || {{ kill -TERM $PPID; sleep 60; }}; exit $code"
    report, _, code = run(tested, "--keep-if", stop)
    assert code == 130 and tested.read_text() == CASH.replace("pass", "return 0")
    assert outcomes(report) == {"Cart.last": "partial", "Cart.full.limit": "kept"}


def test_a_partial_fill_that_a_killed_run_left_is_named_by_the_next(tested: Path) -> None:
    tests = f"{CASH_TESTS}    assert Cart().last() == 7\n\n\ndef test_more():\n    Cart().last()\n"
    (tested.parent / "test_cash.py").write_text(tests)
    # The third stub is tried once the partial fill of the first one stays.
    stop = f"{RUN}; code=$?; test $(grep -c return cash.py) -lt 4 || {{ kill -KILL $PPID; sleep 1; }}; exit $code"
    killed = subprocess.run(
        [sys.executable, "-m", "dg_lsp", "bot", "cash.py", "--keep-if", stop], cwd=tested.parent, check=False
    )
    assert killed.returncode == -signal.SIGKILL and "return None" in tested.read_text()
    before, copy = tested.parent / ".cash.py.dg-lsp-before", tested.parent / ".cash.py.dg-lsp-partial"
    before.replace(tested)  # as the user is told to
    left = tested.read_text()
    assert left != CASH and copy.read_text() == CASH
    report, reported, code = run(tested, "--keep-if", RUN)
    assert code == 1 and "may hold an untested fill" in reported and str(copy) in reported
    assert tested.read_text() == left and not report["stubs"]
    copy.replace(tested)
    (tested.parent / "test_cash.py").write_text(CASH_TESTS)
    assert run(tested, "--keep-if", RUN)[2] == 0
    assert not list(tested.parent.glob(".*.dg-lsp-*"))


def test_a_fill_that_others_break_is_taken_back(folder: Path) -> None:
    path = folder / "shop.py"
    # The fill of each stub passes, and that of the second makes the command of the first fail.
    command = "test {name} = sum || test $(grep -c 'return None' {path}) -lt 2"
    report, reported, code = run(path, "--keep-if", command, "--tries", "1")
    assert outcomes(report) == {"price": "partial", "sum": "kept"} and code == 1
    assert (
        "its tests have passed, and fail" in report["stubs"][0]["why"] and "so it was taken back" in reported
    )
    assert path.read_text() == SHOP.replace("pass", "return None")


def test_nothing_is_tried_again_where_the_first_red_test_is_the_same(tested: Path) -> None:
    first = "\n\ndef test_none():\n    assert False\n"
    text = CASH_TESTS.replace("\n\ndef test_limit", first + "\n\ndef test_limit")
    (tested.parent / "test_cash.py").write_text(text)
    report, reported, code = run(tested, "--keep-if", f"{RUN} -x", "--keep-partial")
    assert code == 1 and outcomes(report) == {
        "Cart.last": "taken back",
        "Cart.full.limit": "taken back",
        "valid": "partial",
    }
    # After the test of `valid`, which was the first red one, there is one that no stub can make pass.
    assert "asking" not in reported


def test_a_terminal_shows_what_runs_and_a_pipe_gets_nothing_of_it(tested: Path) -> None:
    words = ["bot", str(tested), "--keep-if", f"sleep 0.3; {RUN}"]
    program = f"import sys; from dg_lsp.cli.main import main; sys.exit(main({words!r}))"
    said = in_terminal(program)
    for phase in ("the model writes", "the tests run on the files as they are", "the tests run, fill 1 of 4"):
        assert f"cash.py:7 Cart.last: {phase}" in said
    tested.write_text(CASH)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "the tests run" not in done.stderr and "writes" not in done.stderr


def on_trial(folder: Path, path: Path | None = None, **how: Any) -> subprocess.Popen[bytes]:
    """A bot in the middle of a trial of shop.py, or of another name of it."""
    slow = f"grep -q 'return None' {{path}} && {{ echo $$ > {folder / 'pid'}; sleep 60; }}"
    prepare: Callable[[], object] = how.pop("preexec_fn", lambda: None)

    def heed_signals() -> None:
        # Whoever runs the tests in the background may ignore some, which a child would inherit.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        prepare()

    how = {"stderr": subprocess.DEVNULL, "preexec_fn": heed_signals} | how
    start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
    bot = start(command(path or folder / "shop.py", "--keep-if", slow), **how)
    until(lambda: (folder / "pid").exists() and (folder / "pid").read_text().endswith("\n"), bot)
    return bot


def members(group: int) -> list[int]:
    """The processes of a group; one that has ended counts no more, though nobody may have asked for its end."""
    found = []
    for process in psutil.process_iter():
        with suppress(OSError, psutil.Error):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def until(met: Callable[[], bool], bot: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while not met():
        assert time.monotonic() < end and bot.poll() is None
        time.sleep(0.02)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_an_interrupt_in_the_middle_of_a_trial_takes_it_back(
    folder: Path, how: signal.Signals, times: int
) -> None:
    before = contents(folder)
    bot = on_trial(folder)
    shell = int((folder / "pid").read_text())
    (folder / "pid").unlink()
    for _ in range(times):
        bot.send_signal(how)
    assert bot.wait(60) == 130
    assert contents(folder) == before
    end = time.monotonic() + 10
    while members(shell):
        assert time.monotonic() < end, "the command goes on"
        time.sleep(0.02)


def test_a_closed_terminal_takes_a_trial_back(folder: Path) -> None:
    before = contents(folder)
    ours, theirs = os.openpty()
    ends: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    bot = on_trial(folder, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **ends)
    (folder / "pid").unlink()
    os.close(theirs)
    os.close(ours)
    bot.wait(60)
    assert contents(folder) == before


def test_what_nohup_ignores_ends_no_trial(folder: Path) -> None:
    bot = on_trial(folder, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    bot.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert bot.poll() is None
    bot.terminate()
    assert bot.wait(60) == 130 and (folder / "shop.py").read_text() == SHOP


def test_after_a_kill_the_text_from_before_is_beside_the_file_and_is_reported(folder: Path) -> None:
    (folder / "link.py").symlink_to("shop.py")
    bot = on_trial(folder, folder / "link.py")
    bot.kill()
    bot.wait()
    now = (folder / "shop.py").read_text()
    assert (folder / ".shop.py.dg-lsp-before").read_text() == SHOP
    for name in ("shop.py", "link.py"):
        report, _, code = run(folder / name, "--keep-if", "true")
        assert code == 1 and report["stubs"] == []
        why = report["skipped"][0][1]
        assert "put it back, or delete it" in why and "the untested fill is in line 3" in why
        assert (folder / "shop.py").read_text() == now
    assert (folder / ".shop.py.dg-lsp-before").read_text() == SHOP


def test_a_second_bot_waits_for_the_first(folder: Path) -> None:
    bot = on_trial(folder)
    report, _, code = run(folder / "shop.py")
    assert code == 1 and report["stubs"] == []
    assert f"another run (process {bot.pid}) is trying a change of" in report["skipped"][0][1]
    fill = [sys.executable, "-m", "dg_lsp", "fill", str(folder / "shop.py::sum"), "--write"]
    told = subprocess.run(fill, capture_output=True, text=True, check=False)
    assert told.returncode == 2 and "another run" in told.stderr
    bot.terminate()
    assert bot.wait(60) == 130 and (folder / "shop.py").read_text() == SHOP


SAVED = {
    "below": (SHOP + "# mine\n", True),
    "above": ("# mine\n" + SHOP, True),
    "by an editor that had the text from before": (SHOP + "# mine\n", False),
}


@pytest.mark.parametrize("end", ["fails", "interrupt"])
@pytest.mark.parametrize("where", SAVED)
def test_what_a_person_saves_during_a_trial_stays_and_the_fill_goes(
    folder: Path, where: str, end: str
) -> None:
    wanted, with_fill = SAVED[where]
    path = folder / "shop.py"
    saved = wanted.replace("raise NotImplementedError", "return None") if with_fill else wanted
    (folder / "saved").write_text(saved)
    stop = "{ kill -TERM $PPID; sleep 60; }" if end == "interrupt" else "exit 1"
    save = f"grep -q 'return None' {{path}} && cat {folder / 'saved'} > {{path}} && {stop}"
    report, reported, code = run(path, "--keep-if", save)
    assert path.read_text() == wanted and not list(folder.glob(".*before"))
    assert outcomes(report) == {"price": "taken back"} and "what was saved is in the file" in reported
    assert code == (130 if end == "interrupt" else 1)


@pytest.mark.parametrize("end", ["fails", "passes", "interrupt"])
def test_a_fill_that_a_person_has_worked_on_is_left_and_told(folder: Path, end: str) -> None:
    path = folder / "shop.py"
    saved = SHOP.replace("raise NotImplementedError", "return None or mine")
    (folder / "saved").write_text(saved)
    stop = {"interrupt": "{ kill -TERM $PPID; sleep 60; }", "passes": "exit 0", "fails": "exit 1"}[end]
    save = f"grep -q 'return None' {{path}} && cat {folder / 'saved'} > {{path}} && {stop}"
    report, reported, code = run(path, "--keep-if", save)
    copy = folder / ".shop.py.dg-lsp-before"
    assert path.read_text() == saved and copy.read_text() == SHOP
    assert outcomes(report) == {"price": "left"} and code == (130 if end == "interrupt" else 1)
    assert (
        f"from line 3 on it may hold text of the untested fill; the text from before is in {copy}" in reported
    )
    why = run(path)[0]["skipped"][0][1]
    assert "what was saved since" in why and str(copy) in why and "put it back" not in why


def test_a_file_that_is_removed_during_a_trial_is_not_made_again(folder: Path) -> None:
    path = folder / "shop.py"
    report, reported, code = run(path, "--keep-if", "grep -q 'return None' {path} && rm {path}; exit 1")
    assert code == 1 and not path.exists() and outcomes(report) == {"price": "left"}
    assert (folder / ".shop.py.dg-lsp-before").read_text() == SHOP and "removed or replaced" in reported


def test_a_copy_that_somebody_removes_during_a_trial_is_no_error(folder: Path) -> None:
    path = folder / "shop.py"
    report, _, code = run(path, "--keep-if", f"rm -f {folder}/.shop.py.dg-lsp-before; exit 1")
    assert code == 1 and path.read_text() == SHOP and {*outcomes(report).values()} == {"taken back"}


def test_a_closed_standard_error_stops_no_bot(folder: Path) -> None:
    script = shlex.join(
        command(folder / "shop.py", "--keep-if", "test {name} = sum", "--json", folder / "r.json")
    )
    subprocess.run(f"{script} 2>&1 | true", shell=True, check=False)
    report = json.loads((folder / "r.json").read_text())
    assert outcomes(report) == {"price": "taken back", "sum": "kept"}
    assert (folder / "shop.py").read_text() == SHOP.replace("pass", "return None")


def test_a_file_that_somebody_else_changes_is_left_alone(folder: Path) -> None:
    path = folder / "shop.py"
    report, _, code = run(path, "--keep-if", "grep -q 'return None' {path} && echo '# mine' >> {path}")
    assert (
        code == 1
        and path.read_text() == SHOP.replace("raise NotImplementedError", "return None") + "# mine\n"
    )
    assert outcomes(report) == {"price": "kept"} and "changed meanwhile" in report["skipped"][0][1]


def test_a_named_file_that_is_excluded_or_unknown_is_reported(folder: Path) -> None:
    (folder / "words.txt").write_text("x")
    report, said, code = run(folder / "secrets.py", folder / "words.txt")
    assert "secrets.py: excluded by" in said and "no language is known for words.txt" in said
    assert code == 1 and [
        "excluded" in report["skipped"][0][1],
        "no language" in report["skipped"][1][1],
    ] == [True, True]
    assert run_error(folder / "nothing.py") == 2


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_filled(folder: Path) -> None:
    (folder / "a_latin.py").write_bytes(b"s = '\xe9'\n" + SHOP.encode())
    os.mkfifo(folder / "a_pipe.py")
    report, _, _ = run(folder)
    assert outcomes(report) and [Path(name).name for name, _ in report["skipped"]] == ["a_latin.py"]
    assert "convert it to UTF-8" in report["skipped"][0][1]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--timeout", "0", "more than 0"),
        ("--tries", "0", "from 1 to 10"),
        ("--json", "/no/report.json", "there is no folder /no"),
    ],
)
def test_what_cannot_be_used_is_refused_before_a_file_is_changed(
    folder: Path, option: str, value: str, said: str
) -> None:
    before = contents(folder)
    done = subprocess.run(command(folder, option, value), capture_output=True, text=True, check=False)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    assert contents(folder) == before


def run_error(*arguments: str | Path) -> int:
    return subprocess.run(command(*arguments), capture_output=True, check=False).returncode


def test_what_git_ignores_is_not_filled(folder: Path) -> None:
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    (folder / ".gitignore").write_text("inner/\n")
    report, _, _ = run(folder)
    assert sorted(entry["name"] for entry in report["stubs"]) == ["price", "price", "sum", "sum"]
    assert (folder / "inner" / "cart.py").read_bytes() == CART.encode()


OPTION = "--keep-if=touch PWNED; true #.py"


def hook() -> list[str]:
    """The words of the hook for pre-commit, which puts a user's own `args` and then the names of files after them."""
    entry = re.search(r"entry: dg-lsp (.*)", (ROOT / ".pre-commit-hooks.yaml").read_text())
    assert entry is not None
    return entry[1].split()


def test_the_hook_for_pre_commit_fills_the_files_it_is_given_whatever_they_are_called(folder: Path) -> None:
    (folder / OPTION).write_text(SHOP)
    words = [sys.executable, "-P", "-m", "dg_lsp", *hook(), OPTION, "shop.py"]
    done = subprocess.run(words, cwd=folder, check=False)
    assert done.returncode == 0
    assert not any("NotImplementedError" in (folder / name).read_text() for name in (OPTION, "shop.py"))
    assert not (folder / "PWNED").exists()
    # Options in `args` are no names of files, and are refused as such.
    done = subprocess.run([*words[:-2], "--dry-run", "shop.py"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 2 and b"there is no --dry-run" in done.stderr
    # With an `entry` of the user's own they work.
    (folder / "shop.py").write_text(SHOP)
    own = [*words[:4], "bot", "--keep-if", "false", "--", "shop.py"]
    assert subprocess.run(own, cwd=folder, check=False).returncode == 1
    assert (folder / "shop.py").read_text() == SHOP


@pytest.mark.parametrize("name", [OPTION, "--dry-run", "-h", "--alone"])
def test_a_word_that_is_an_option_and_a_file_is_refused(name: str, folder: Path) -> None:
    (folder / name).write_text(SHOP)
    words = [sys.executable, "-P", "-m", "dg_lsp", "bot", name, "shop.py"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and f"write ./{name} for that" in done.stderr
    assert not (folder / "PWNED").exists() and (folder / name).read_text() == SHOP


def test_the_script_of_the_action_fills_and_forgives_stubs_that_are_left(
    folder: Path, tmp_path: Path
) -> None:
    text = (ROOT / "examples" / "github-action" / "action.yml").read_text()
    script = textwrap.dedent(text.rpartition("run: |\n")[2])
    (tmp_path / "dg-lsp" / "bin").mkdir(parents=True)
    program = tmp_path / "dg-lsp" / "bin" / "dg-lsp"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dg_lsp "$@"\n')
    program.chmod(0o755)
    inputs = {
        "PATHS": f"{folder / 'shop.py'} {folder / 'inner'}",
        "KEEP_IF": "test {name} != price",
        "SEED": "0",
        "MODEL": "scripted",
    }
    environment = {**os.environ, **inputs, "RUNNER_TEMP": str(tmp_path), "TIMEOUT": "60"}
    subprocess.run(["bash", "-e", "-c", script], env=environment, check=True)
    assert json.loads((tmp_path / "dg-lsp.json").read_text())["summary"] == {
        "tried": 5,
        "filled": 5,
        "kept": 4,
        "partial": 0,
        "unproven": 0,
    }


def test_the_files_near_a_stub_are_looked_into_for_a_model_that_is_sent_definitions(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("def area(shape):\n    return 1\n")
    path = tmp_path / "user.py"
    path.write_text("import shapes\n\n\ndef f(x):\n    shapes.area(x)\n    pass\n")
    chat = Settings(checkpoint="google/diffusiongemma-26B-A4B-it")
    document, shapes = read_document(path), (tmp_path / "shapes.py").as_uri()
    index = index_for(document, chat, "function_body")
    assert index is not None and [other.uri for other in index.beside(document.uri, "python")] == [shapes]
    raw = replace(chat, checkpoint="embedded")
    assert index_for(document, raw, "function_body") is None
    assert index_for(document, raw, "expression") is not None
    assert index_for(document, replace(chat, related=False), "expression") is None


def test_a_file_that_takes_too_long_to_read_is_skipped_and_the_rest_is_kept(folder: Path) -> None:
    # Its parser never ends.
    (folder / "inner" / "endless.tsx").write_text("function g(x = (, y}")
    done = subprocess.run(
        command(folder, "--dry-run"), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1
    assert "endless.tsx: reading the file takes too long" in done.stderr
    assert "+++ b/" in done.stdout and "cart.py" in done.stdout and "shop.py" in done.stdout


def test_a_gap_in_a_file_that_its_parser_never_ends_with_has_a_reason(folder: Path) -> None:
    (folder / "endless.tsx").write_text("const a = <div style={{ color:>red: x(")
    for name in ("fill", "trace"):
        ask = [sys.executable, "-m", "dg_lsp", name, str(folder / "endless.tsx:1")]
        done = subprocess.run(ask, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 1
        assert "nothing offered after" in done.stderr and "syntax error" in done.stderr
