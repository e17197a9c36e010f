"""Holes, baselines, scores and HumanEval tasks, with a scripted engine and files of the tests' own."""

import gzip
import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dg_lsp.bench import baselines, humaneval
from dg_lsp.bench import files as located
from dg_lsp.bench.files import installed_path
from dg_lsp.bench.holes import HOLES, make_cases
from dg_lsp.bench.score import METHODS, Score, make_report
from dg_lsp.cli.main import main
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import find_gap, find_named
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings, UsageError
from dg_lsp.source.document import Document
from tests.scripts import install

SOURCE = '''\
"""Areas."""


def square(side):
    """Return the area of a square."""
    if side < 0:
        raise ValueError(side)
    return side * side  # for all sides


def circle(radius):
    """Return the area of a circle."""
    # It is nearly this.
    return 3.14 * radius * radius


class Solid:
    def volume(self):
        return 0.0


def cube(side):
    """Return the surface of a cube."""
    if side < 0:
        raise ValueError(side)
    return 6 * square(side)


def later(side):
    """Nobody has written this."""
    raise NotImplementedError


TEXT = """
not code at all here
"""
'''
DOCUMENT = Document("areas.py", "python", 0, SOURCE.encode())


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "areas.py"
    path.write_text(SOURCE)
    return path


def bench(tmp_path, *arguments):
    """Run the subcommand; the report."""
    report = tmp_path / "report.json"
    assert main(["bench", "--json", str(report), *map(str, arguments)]) == 0
    return json.loads(report.read_text())


def test_body_holes_are_written_bodies_without_their_docstrings():
    cases = make_cases([DOCUMENT], "function_body", 10, seed=0)
    assert sorted(case.gap.name for case in cases) == ["Solid.volume", "circle", "cube", "square"]
    assert all(
        '"""' not in case.truth and case.truth.splitlines()[-1].strip().startswith("return") for case in cases
    )


def test_a_body_of_more_than_ten_lines_is_no_hole():
    long = "def f():\n" + "    x = 1\n" * 11 + "def g():\n" + "    x = 1\n" * 10
    cases = make_cases([Document("l.py", "python", 0, long.encode())], "function_body", 10, seed=0)
    assert [case.gap.name for case in cases] == ["g"]


def test_line_holes_cut_code_lines_and_take_away_the_rest():
    cases = make_cases([DOCUMENT], "rest_of_line", 100, seed=3)
    lines = SOURCE.splitlines()
    assert len(cases) > 8
    for case in cases:
        number = int(case.name.rpartition(":")[2])
        line, holed = lines[number - 1], case.document.text.splitlines()[number - 1]
        assert holed + case.truth == line and holed.strip() and len(case.truth) >= 3
        assert not any(prose in line for prose in ("nearly", "for all", "TEXT", "not code"))
        assert case.document.data[case.gap.end : case.gap.end + 1] == b"\n"


def test_the_same_seed_gives_the_same_holes_and_another_seed_others():
    one, same, other = (make_cases([DOCUMENT], "rest_of_line", 5, seed) for seed in (1, 1, 2))
    assert one == same != other


def test_holes_are_spread_over_the_files():
    second = replace(DOCUMENT, uri="b.py")
    names = [case.name.partition(":")[0] for case in make_cases([DOCUMENT, second], "rest_of_line", 6, 0)]
    assert names.count("areas.py") == names.count("b.py") == 3


def test_a_file_that_is_no_python_gives_no_holes():
    assert make_cases([Document("x.py", "python", 0, b"def (:\n  '''\n")], "rest_of_line", 5, 0) == []


def test_places_are_found_in_the_standard_library_and_in_packages():
    for name in ("stdlib:textwrap.py", "package:pytest/__init__.py"):
        place = installed_path(name)
        assert place is not None and place.is_file()
    assert installed_path("package:no_such_package_here/a.py") is None


def cursor(text):
    """A document and the gap at the mark."""
    before, after = text.split("|")
    document = Document("c.py", "python", 0, (before + after).encode())
    return document, find_gap(document, len(before.encode()), "rest_of_line")


def test_counting_knows_what_stands_after_the_hole_up_to_the_end():
    assert baselines.count_tokens(*cursor("x = |\ny = two")) == "two"


def test_counting_goes_on_with_what_mostly_follows_and_ends_with_the_line():
    assert baselines.count_tokens(*cursor("a = f(x)\nb = f(x)\nc = f(y)\nd = f|\n")) == "(x)"


def test_counting_sees_nothing_of_the_hole():
    document = Document(
        "h.py", "python", 0, b"def f():\n    return secret_name\n\n\ndef g():\n    return 1\n"
    )
    assert "secret" not in baselines.count_tokens(document, find_named(document, "f"))


def test_counting_ends_a_body_at_its_dedent():
    document = Document("h.py", "python", 0, b"def f():\n    x = 1\n    return x\n\n\ndef g():\n    y\n")
    fill = baselines.count_tokens(document, find_named(document, "g"))
    assert fill and "def" not in fill


def test_the_oracle_tells_the_length_and_the_search_does_not(monkeypatch, file, tmp_path):
    installed = install(monkeypatch, "return 1")
    bench(tmp_path, "--files", file, "--kinds", "function_body", "--cases", 2)
    likes = [request.like for request in installed.requests[1:]]  # the first one is the uncounted
    assert [like is None for like in likes] == [False, False, True, True]
    assert all("return" in (like or "") for like in likes[:2])


def test_a_folder_means_the_python_files_in_it(monkeypatch, file, tmp_path):
    install(monkeypatch, "return 1")
    for name in ("inner/twin.py", ".hidden/secret.py", "inner/words.txt"):
        (file.parent / name).parent.mkdir(exist_ok=True)
        (file.parent / name).write_text(file.read_text())
    found = located.read_files([str(file.parent)])
    assert [Path(document.uri).name for document in found.documents] == [file.name, "twin.py"]
    assert not found.skipped


def test_the_progress_is_told_once_a_while(monkeypatch, file, tmp_path, capsys):
    install(monkeypatch, "return 1")
    monkeypatch.setattr("dg_lsp.bench.measure._SILENCE", 0.0)
    bench(tmp_path, "--files", file, "--kinds", "function_body", "--cases", 2, "--methods", "given")
    said = capsys.readouterr().err
    assert "dg-lsp: 1 of 2 holes are filled (given)\ndg-lsp: 2 of 2 holes are filled (given)\n" in said


def test_a_perfect_engine_scores_one_everywhere(monkeypatch, file, tmp_path, capsys):
    install(monkeypatch, lambda request: Fill(request.like or "x", steps=4))
    report = bench(tmp_path, "--files", file, "--methods", "given")
    for result in report["results"]:
        assert [result[m] for m in ("exact", "similarity", "parses", "offered", "steps")] == [1, 1, 1, 1, 4]
    assert re.search(r"^rest_of_line +given +\d+ +1\.00 +1\.00", capsys.readouterr().out, re.MULTILINE)


def test_the_95th_percentile_is_the_nearest_rank():
    score = Score("c", "k", "given", "", "", "", True, 1.0, True, True, seconds=0.0)
    settings = Settings()
    scores = [replace(score, seconds=float(n)) for n in range(1, 41)]
    (result,) = make_report(scores, settings)["results"]
    assert (result["p50"], result["p95"]) == (20.5, 38.0)


def test_steps_are_a_mean_over_what_was_offered():
    score = Score("c", "k", "given", "", "", "", True, 1.0, True, True, seconds=1.0, steps=10)
    refused = replace(score, offered=False, steps=0)
    (result,) = make_report([score, refused], Settings())["results"]
    assert (result["steps"], result["offered"]) == (10, 0.5)


@pytest.mark.parametrize("answer", ["raise NotImplementedError", "pass", "", "return (1"])
def test_stubs_silence_and_broken_code_count_as_nothing(monkeypatch, file, tmp_path, answer):
    install(monkeypatch, answer)
    report = bench(tmp_path, "--files", file, "--kinds", "function_body", "--methods", "searched")
    (result,) = report["results"]
    assert [result[m] for m in ("exact", "parses", "offered")] == [0, 0, 0]
    # A stub is shown and scored as a text; what is refused or empty has no text at all.
    assert bool(result["similarity"]) == (answer in {"raise NotImplementedError", "pass"})


def test_the_report_says_what_repeats_it(monkeypatch, file, tmp_path):
    install(monkeypatch, "return 1")
    report = bench(tmp_path, "--files", file, tmp_path / "missing.py", "--cases", 1, "--seed", 7)
    assert {r["kind"] for r in report["results"]} == set(HOLES)
    assert {r["method"] for r in report["results"]} == set(METHODS)
    assert report["settings"]["seed"] == 7 and "missing.py" in report["files_skipped"][0]
    assert {"machine", "load", "date", "command", "checkpoint_sha256"} <= set(report)
    assert len(report["cases"]) == 4 * len(METHODS) and "truth" in report["cases"][0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--kinds", "bodies"],
        ["--methods", ""],
        ["--files", "none.py"],
        ["--json", "no/report.json"],
        ["--execute"],
        ["--humaneval", "none.jsonl"],
    ],
)
def test_bad_arguments_are_exit_two(monkeypatch, capsys, arguments):
    install(monkeypatch, "x")
    assert main(["bench", *arguments]) == 2
    assert capsys.readouterr().err.startswith("dg-lsp: error: ")


TASKS = [
    {
        "task_id": "SingleLineInfilling/Own/0/L0",
        "entry_point": "double",
        "prompt": 'def double(x):\n    """Return twice x."""\n',
        "suffix": "",
        "canonical_solution": "    return 2 * x\n",
        "test": "def check(candidate):\n    assert candidate(3) == 6\n",
    },
    {
        "task_id": "MultiLineInfilling/Own/1/L0_L1",
        "entry_point": "largest",
        "prompt": 'def largest(xs):\n    """Return the largest, or None."""\n',
        "suffix": "",
        "canonical_solution": "    if not xs:\n        return None\n    return max(xs)\n",
        "test": "def check(f):\n    assert f([1, 3, 2]) == 3\n    assert f([]) is None\n",
    },
    {
        "task_id": "SingleLineInfilling/Own/2/L1",
        "entry_point": "mean",
        "prompt": 'def mean(xs):\n    """Return the mean."""\n    total = sum(xs)\n',
        "suffix": "    return total / count\n",
        "canonical_solution": "    count = len(xs)\n",
        "test": "def check(candidate):\n    assert candidate([1, 3]) == 2\n",
    },
]
RIGHT = {
    "double": "    return 2 * x",
    "largest": "    if not xs:\n        return None\n    return max(xs)",
    "mean": "    count = len(xs)",
}


def tasks_file(tmp_path, tasks=TASKS, name="tasks.jsonl"):
    path = tmp_path / name
    text = "".join(json.dumps(task) + "\n" for task in tasks)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def answering(fills):
    """An engine that knows each task by its function."""
    return lambda request: Fill(fills[re.findall(r"\Adef (\w+)", request.prefix)[0]])


def passed(monkeypatch, tmp_path, fills, *arguments):
    """Which tasks passed, by their function."""
    install(monkeypatch, answering(RIGHT | fills))
    tasks = tasks_file(tmp_path)
    report = bench(tmp_path, "--humaneval", tasks, "--execute", "--methods", "searched", *arguments)
    names = {task["task_id"]: task["entry_point"] for task in TASKS}
    return {names[case["case"]]: case["passed"] for case in report["cases"]}, report


def test_right_fills_pass_and_count_as_exact(monkeypatch, tmp_path):
    verdicts, report = passed(monkeypatch, tmp_path, {})
    assert verdicts == {"double": True, "largest": True, "mean": True}
    assert all(result["pass@1"] == result["exact"] == 1 for result in report["results"])


def test_a_task_of_one_line_is_a_rest_of_line_and_of_several_a_span(tmp_path):
    kinds = [task.case.gap.kind for task in humaneval.read_tasks(tasks_file(tmp_path, name="t.jsonl.gz"))]
    assert kinds == ["rest_of_line", "span", "rest_of_line"]


def test_lines_less_deep_than_the_first_belong_to_the_task(tmp_path):
    task = {
        **TASKS[0],
        "prompt": "def double(x):\n    for _ in x:\n",
        "canonical_solution": "        pass\n    y = 2\n    return y * x\n",
    }
    (read,) = humaneval.read_tasks(tasks_file(tmp_path, [task]))
    outcome = finish(read.case.document, read.case.gap, Fill(read.case.truth))
    assert outcome.edit is not None and outcome.edit.text + "\n" == task["canonical_solution"]


def test_another_indentation_is_not_exact(monkeypatch, tmp_path):
    deeper = "        if not xs:\n            return None\n        return max(xs)"
    _, report = passed(monkeypatch, tmp_path, {"largest": deeper, "mean": "count = len(xs)"})
    exact = {case["case"]: case["exact"] for case in report["cases"]}
    assert [exact[task["task_id"]] for task in TASKS] == [True, False, False]


def test_white_space_after_what_has_begun_is_still_exact(monkeypatch, file, tmp_path):
    install(monkeypatch, lambda request: Fill(f" {request.like} " if request.like else "x"))
    report = bench(tmp_path, "--files", file, "--kinds", "rest_of_line", "--methods", "given")
    assert [result["exact"] for result in report["results"]] == [1]


def test_without_a_fill_no_program_runs_and_none_passes(monkeypatch, tmp_path):
    ran = []

    def execute(program, limits):
        ran.append(program)
        return "passed"

    monkeypatch.setattr(humaneval, "execute", execute)
    verdicts, report = passed(monkeypatch, tmp_path, {"double": "", "mean": "    count = 1)"})
    assert verdicts == {"double": False, "largest": True, "mean": False}
    assert len(ran) == 1 and "def largest" in ran[0]
    assert {result["kind"]: result["pass@1"] for result in report["results"]} == {
        "rest_of_line": 0,
        "span": 1,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        "    return 3 * x",
        "    raise SystemExit(0)",
        "    import os; os._exit(0)",
        "    return len(bytearray(1 << 40))",
        "    import sys; return sys.setrecursionlimit(10)",
    ],
)
def test_a_wrong_fill_fails_and_the_others_still_pass(monkeypatch, tmp_path, wrong):
    verdicts, report = passed(monkeypatch, tmp_path, {"double": wrong})
    assert verdicts == {"double": False, "largest": True, "mean": True}
    assert next(r for r in report["results"] if r["kind"] == "rest_of_line")["pass@1"] == 0.5


def test_a_looping_fill_is_ended(monkeypatch, tmp_path):
    verdicts, _ = passed(monkeypatch, tmp_path, {"largest": "    while True:\n        pass"}, "--timeout", 1)
    assert verdicts == {"double": True, "largest": False, "mean": True}


def test_a_memory_hungry_program_is_ended():
    hungry = "xs = []\nwhile True:\n    xs.append(bytearray(1 << 24))\n"
    assert humaneval.execute(hungry, humaneval.Limits(20.0, 256 << 20)).startswith("failed")


def test_a_program_sees_no_environment_no_input_and_no_packages(monkeypatch):
    monkeypatch.setenv("TOKEN", "secret")
    program = "import os, sys\nassert 'TOKEN' not in os.environ\nassert sys.stdin.read() == ''\n"
    program += "assert sys.argv[1:] == []\nassert not any('site-packages' in p for p in sys.path)\n"
    assert humaneval.execute(program, humaneval.Limits()) == "passed"


def test_a_program_that_leaves_children_behind_does_not_hold_the_bench_up():
    program = (
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    )
    assert humaneval.execute(program, humaneval.Limits(10.0)) == "passed"


def test_what_a_program_leaves_behind_is_ended(tmp_path):
    mark = tmp_path / "mark"
    late = f"import pathlib, time; time.sleep(0.5); pathlib.Path({str(mark)!r}).touch()"
    program = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {late!r}])\n"
    assert humaneval.execute(program, humaneval.Limits(10.0)) == "passed"
    time.sleep(0.9)
    assert not mark.exists()


def test_a_program_writes_into_its_own_folder_only_for_its_time(tmp_path):
    program = f"import os, pathlib\npathlib.Path({str(tmp_path / 'at')!r}).write_text(os.getcwd())\n"
    assert humaneval.execute(program, humaneval.Limits()) == "passed"
    assert not Path((tmp_path / "at").read_text()).exists()


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("{not json", "no JSON"),
        ("[]", "object"),
        ('{"task_id": "x"}', "'prompt'"),
        ('{"task_id": 3}', "'task_id'"),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path, second, said):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(TASKS[0]) + "\n" + second + "\n")
    with pytest.raises(UsageError, match="line 2") as error:
        humaneval.read_tasks(path)
    assert said in str(error.value)


def test_a_cut_archive_and_an_empty_file_are_refused(tmp_path):
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(tasks_file(tmp_path, name="t.jsonl.gz").read_bytes()[:-12])
    (tmp_path / "empty.jsonl").write_text("\n")
    for path in (cut, tmp_path / "empty.jsonl", tmp_path):
        with pytest.raises(UsageError):
            humaneval.read_tasks(path)


def test_programs_run_on_this_python():
    assert (
        humaneval.execute(f"import sys\nassert sys.version == {sys.version!r}\n", humaneval.Limits())
        == "passed"
    )
