"""Reports of test runners: what a command becomes, and what is read from what the runners write."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dg_lsp.cli.reports import Results, ask, read, read_jest, read_junit, with_names_of

JUNIT = """<testsuites><testsuite name="s">
<testcase classname="t" name="good"/><testcase classname="t" name="bad"><failure message="no">where</failure></testcase>
<testcase classname="t" name="broken"><error message="no"/></testcase>
<testcase classname="t" name="left"><skipped/></testcase>
<testcase classname="t" name="good"><error message="in the teardown"/></testcase>
<testsuite name="inner"><testcase name="alone"/></testsuite></testsuite><testcase name="outside"/></testsuites>"""
JEST = """{"testResults": [
{"name": "/a.test.js", "status": "failed", "message": "x", "assertionResults": [
 {"fullName": "s one", "status": "passed", "failureMessages": []},
 {"fullName": "s two", "status": "failed", "failureMessages": ["Error: 1"]},
 {"fullName": "s three", "status": "pending", "failureMessages": []}]},
{"name": "/b.test.js", "status": "failed", "message": "Cannot find module", "assertionResults": []}]}"""
GO = """{"Action":"run","Package":"a","Test":"TestA"}
{"Action":"output","Package":"a","Test":"TestA/x","Output":"    a_test.go:3: no 1\\n"}
{"Action":"fail","Package":"a","Test":"TestA/x","Elapsed":0}
{"Action":"fail","Package":"a","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"a","Test":"TestB","Elapsed":0}
{"Action":"skip","Package":"a","Test":"TestC","Elapsed":0}
{"Action":"output","Package":"a","Output":"FAIL\\ta\\t0.003s\\n"}
{"Action":"fail","Package":"a","Elapsed":0.003}
{"Action":"output","Package":"b","Output":"panic: x\\n"}
{"Action":"fail","Package":"b","Elapsed":0.003}
{"Action":"pass","Package":"c","Elapsed":0.003}
"""
CARGO = """running 4 tests
test tests::g_ig ... ignored
test tests::g_ok ... ok
test tests::g_panic - should panic ... ok
test tests::f_adds ... FAILED

failures:

---- tests::f_adds stdout ----

thread 'tests::f_adds' (32272) panicked at src/lib.rs:4:27:
not yet implemented


failures:
    tests::f_adds

test result: FAILED. 2 passed; 1 failed; 1 ignored; finished in 0.24s
   Doc-tests a
test src/lib.rs - f (line 12) ... ok
        PASS [   0.003s] (1/2) a tests::one
        FAIL [   0.003s] (2/2) a tests::two
"""


def ended(results: Results) -> tuple[list[str], list[str]]:
    """The tests that passed, and those that failed."""
    return [n for n, how in results.items() if not how], [n for n, how in results.items() if how]


def test_a_junit_xml_is_read_however_its_suites_are_nested(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(JUNIT)
    results = read_junit(tmp_path / "r.xml")
    assert ended(results) == (["alone", "outside"], ["t::good", "t::bad", "t::broken"])
    assert results["t::bad"] == "no\nwhere"


def test_the_json_of_jest_is_read_and_a_file_that_does_not_load_fails(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(JEST)
    assert ended(read_jest(tmp_path / "r.json")) == (["s one"], ["s two", "/b.test.js"])


def test_the_lines_of_go_and_cargo_are_read_from_the_output(tmp_path: Path) -> None:
    asked = ask("go test ./...", tmp_path)
    results, text = read(asked, f"compiling\n{GO}")
    assert ended(results) == (["a::TestB"], ["a::TestA/x", "a::TestA", "b"])
    assert text.startswith("compiling\n") and "a_test.go:3: no 1\n" in text and "Action" not in text
    results, text = read(ask("cargo test", tmp_path), CARGO)
    green = ["tests::g_ok", "tests::g_panic - should panic", "src/lib.rs - f (line)", "a tests::one"]
    assert ended(results) == (green, ["tests::f_adds", "a tests::two"]) and text == CARGO
    assert "not yet implemented" in results["tests::f_adds"]


@pytest.mark.parametrize("report", ["", "<testsuites><testsuite>", "{}", "[]", '{"testResults": 1}', "\x00"])
def test_a_report_that_is_cut_or_is_none_tells_nothing(tmp_path: Path, report: str) -> None:
    asked = ask("pytest; npx jest", tmp_path)
    for path, _ in asked.files:
        path.write_text(report)
    assert read(asked, 'boom\n3 failed\n{"a": 1}\n{"Action": 1}\n')[0] == {}


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("pytest -q", "pytest --junitxml=DIR/0.report GO -q"),
        ("cd x && python -m pytest a", "cd x && python -m pytest --junitxml=DIR/0.report GO a"),
        (
            "(A=1 pytest a) || bin/pytest",
            "(A=1 pytest --junitxml=DIR/0.report GO a) || bin/pytest --junitxml=DIR/1.report GO",
        ),
        ("npx jest -t add", "npx jest --json --outputFile=DIR/0.report -t add"),
        ("vitest run a", "vitest run --reporter=default --reporter=junit --outputFile.junit=DIR/0.report a"),
        ("go test ./...", "go test -json ./..."),
        ("cargo test add", "cargo test --no-fail-fast add"),
        ("pip install pytest jest", "pip install pytest jest"),
        ("./pytest-all; npm test", "./pytest-all; npm test"),
    ],
)  # fmt: skip
def test_options_stand_after_the_runner_that_is_started(tmp_path: Path, command: str, wanted: str) -> None:
    asked = ask(command, tmp_path)
    assert asked.command == wanted.replace("DIR", str(tmp_path)).replace(
        "GO", "--continue-on-collection-errors"
    )
    # Any other command may start pytest somewhere, and says so by a variable.
    assert ("PYTEST_ADDOPTS" in asked.environment) == ("--junitxml" not in wanted)


def test_what_differs_in_each_run_is_left_out_of_how_a_test_failed(tmp_path: Path) -> None:
    texts = []
    for address, line, number in (("0x7f1a", 12, 3), ("0x55ff01", 9, 4)):
        asked = ask("pytest", tmp_path)
        how = f"&lt;C at {address}&gt; in a.py:{line}, /tmp/pytest-{number}/x"
        asked.files[0][0].write_text(
            f'<testsuite><testcase name="a"><failure>{how}</failure></testcase></testsuite>'
        )
        texts.append(read(asked, "")[0])
    assert texts[0] == texts[1] and "a.py:#" in texts[0]["a"]


@pytest.mark.parametrize(
    "command", ["{python} -m pytest -q .", "make", "{python} -m pytest -q -n0 a; {python} -m pytest -q ."]
)
def test_pytest_reports_however_it_is_started(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "reports dir").mkdir()
    (tmp_path / "test_a.py").write_text("def test_b():\n    assert 0\n\ndef test_c():\n    pass\n")
    (tmp_path / "test_b.py").write_text("raise NotImplementedError\n")
    (tmp_path / "Makefile").write_text(f"all:\n\t{sys.executable} -m pytest -q -p no:cacheprovider\n")
    asked = ask(command.format(python=sys.executable), tmp_path / "reports dir")
    done = subprocess.run(
        asked.command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, **asked.environment},
    )  # fmt: skip
    results, _ = read(asked, done.stdout)
    # A file that cannot be loaded hides no other.
    assert ended(results) == (["test_a::test_c"], ["test_b", "test_a::test_b"])


def test_a_test_that_is_named_by_the_place_of_its_parameters_keeps_its_first_name() -> None:
    names = {"a::b[x-value0]", "a::b[y-value1]", "a::c[start1-end1]", "a::c[start2-end2]", "a::d"}
    results = {
        "a::b[y-value0]": "",
        "a::b[x-value1]": "red",
        "a::c[start1-end1]": "",
        "a::c[start3-end3]": "",
        "a::e": "",
    }
    assert with_names_of(names, results) == {
        "a::b[y-value1]": "",
        "a::b[x-value0]": "red",
        "a::c[start1-end1]": "",
        # The only one of its form that is missing.
        "a::c[start2-end2]": "",
        "a::e": "",
    }
    # Where several are missing, nobody knows which is which.
    several = {"a::c[start3-end3]": "", "a::c[start4-end4]": ""}
    assert with_names_of(names, several) == several
    assert with_names_of(set(), results) == results
