"""The tasks that are cut out of HumanEval."""

import gzip
import json

import pytest

from benchmarks import humaneval
from dg_lsp.bench.humaneval import Limits, execute, read_tasks

PROBLEM = {
    "task_id": "HumanEval/0",
    "entry_point": "add",
    "prompt": "def add(a, b):\n",
    "canonical_solution": "    c = a + b\n\n    return c\n",
    "test": "def check(f):\n    assert f(1, 2) == 3\n",
}


@pytest.mark.parametrize(
    ("options", "truths"),
    [
        ((), ["    c = a + b", "    return c"]),
        (("--several",), ["    c = a + b", "    c = a + b\n\n    return c", "    return c"]),
    ],
)
def test_each_line_that_is_not_blank_is_a_task_whose_truth_passes(
    tmp_path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], truths: list[str]
):
    problems, out = tmp_path / "problems.jsonl.gz", tmp_path / "tasks.jsonl"
    with gzip.open(problems, "wt") as stream:
        stream.write(json.dumps(PROBLEM) + "\n")
    monkeypatch.setattr("sys.argv", ["humaneval", str(problems), str(out), *options])
    humaneval.main()
    tasks = read_tasks(out)
    assert [task.case.truth for task in tasks] == truths
    whole = PROBLEM["prompt"] + PROBLEM["canonical_solution"]
    for task in tasks:
        data, gap = task.case.document.data.decode(), task.case.gap
        filled = data[: gap.start] + task.case.truth + data[gap.end :]
        assert filled == whole and execute(task.program(filled), Limits()) == "passed"
        assert execute(task.program(data), Limits()) != "passed"
