"""Lists of holes: the shipped one, what is written and read again, what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.embedded.heldout import overlaps, windows_of
from dg_lsp.bench import holes
from dg_lsp.bench import lists as evaluation
from dg_lsp.cli.main import main
from dg_lsp.settings import UsageError
from dg_lsp.source.document import read_document

SOURCE = '''\
"""Sums."""


def total(values, start=0):
    """Add them."""
    result = start
    for value in values[1:]:
        if value.amount > 100:
            result += convert(value.amount, digits=2)
    return round(result, 2)


def report(path):
    lines = open(path).read().split("\\n")
    print(len(lines), total(lines))
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sums.py"
    path.write_text(SOURCE)
    return path


def test_expressions_and_statements_are_cut_out_whole(file: Path) -> None:
    document = read_document(file)
    expressions = {c.truth for c in holes.make_cases([document], "expression", 99, 0)}
    assert expressions <= {
        "values[1:]", "value.amount > 100", "convert(value.amount, digits=2)", "value.amount", "round(result, 2)",
        "result", "start", "path", "lines", "len(lines)", "total(lines)", '"\\n"', 'open(path).read().split("\\n")',
    }  # fmt: skip
    assert len(expressions) >= 5
    statements = {c.truth for c in holes.make_cases([document], "statement", 99, 0)}
    assert statements == {
        "result = start", "result += convert(value.amount, digits=2)", "return round(result, 2)",
        'lines = open(path).read().split("\\n")', "print(len(lines), total(lines))",
    }  # fmt: skip


def test_a_hole_is_the_file_without_its_truth(file: Path) -> None:
    document = read_document(file)
    for kind in ("expression", "statement", "rest_of_line"):
        for case in holes.make_cases([document], kind, 99, 1):
            data, at = case.document.data, case.gap.start
            assert case.gap.end == at
            assert data[:at] + case.truth.encode() + data[at:] == document.data


def test_a_list_gives_the_same_holes_again(file: Path, tmp_path: Path) -> None:
    cases = evaluation.choose([read_document(file)], list(holes.HOLES), 3, 0)
    assert {case.kind for case in cases} == set(holes.HOLES)
    evaluation.write(tmp_path / "list.json", cases)
    again, skipped = evaluation.read(tmp_path / "list.json", list(holes.HOLES), 99)
    assert again == cases and not skipped
    first, _ = evaluation.read(tmp_path / "list.json", ["statement"], 1)
    assert first == [case for case in cases if case.kind == "statement"][:1]


def test_a_file_that_has_changed_is_left_out_with_the_reason(file: Path, tmp_path: Path) -> None:
    evaluation.write(
        tmp_path / "list.json", evaluation.choose([read_document(file)], list(holes.HOLES), 3, 0)
    )
    file.write_text(SOURCE + "\n")
    assert evaluation.read(tmp_path / "list.json", ["statement"], 9) == ([], [f"{file}: another version"])


@pytest.mark.parametrize("text", ["", "[]", '{"files": 1}', '{"files": [], "holes": [[1]]}'])
def test_what_is_no_list_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.json").write_text(text)
    with pytest.raises(UsageError, match="--write-holes"):
        evaluation.read(tmp_path / "list.json", ["statement"], 1)


def test_the_command_writes_a_list_and_takes_it(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "list.json"
    assert main(["bench", "--files", str(file), "--cases", "2", "--write-holes", str(written)]) == 0
    assert len(json.loads(written.read_text())["holes"]) == 8
    assert (
        main(["bench", "--holes", str(written), "--methods", "retrieved", "--kinds", "statement,expression"])
        == 0
    )
    shown = capsys.readouterr().out
    assert "statement" in shown and "expression" in shown


def test_the_shipped_list_has_enough_of_each_kind_from_whole_projects_that_are_held_out() -> None:
    told = json.loads(evaluation.shipped().read_text())
    held = json.loads((evaluation.shipped().parent / "heldout.json").read_text())["files"]
    assert {(f["path"], f["sha256"]) for f in told["files"]} <= {(f["path"], f["sha256"]) for f in held}
    assert all(file["path"].startswith("package:") for file in told["files"])
    kinds = [hole[0] for hole in told["holes"]]
    assert all(kinds.count(kind) >= 300 for kind in holes.HOLES)


def test_the_shipped_holes_are_where_the_list_says() -> None:
    cases, skipped = evaluation.read(evaluation.shipped(), list(holes.HOLES), 500)
    assert len(cases) > 1200, skipped[:3]
    assert all(case.truth.strip() for case in cases)


def test_a_held_out_file_overlaps_with_itself_and_hardly_with_this_program() -> None:
    """The test that keeps the holes' files out of the corpus, on a file of each."""
    cases, _ = evaluation.read(evaluation.shipped(), ["statement"], 1)
    secret = windows_of(cases[0].document.text)
    known = np.unique(secret)
    assert overlaps(secret[5:6], known)
    assert not overlaps(windows_of(Path(__file__).read_text()), known)
