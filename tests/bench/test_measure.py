"""`dg-lsp bench` measures the fills that users get: the same requests, made and finished by the same path."""

import json
from pathlib import Path

import pytest

from dg_lsp.bench.holes import Case, make_cases
from dg_lsp.cli.main import main
from dg_lsp.messages import Infill
from dg_lsp.source.document import read_document
from tests.scripts import install

SHAPES = "def area(side):\n    return side * side\n\n\ndef volume(side):\n    total = area(side) * 3\n    return 0\n"
USER = "import shapes\n\n\ndef double(side, one=shapes.area(1)):\n    total = shapes.area(side) * 2\n    return total\n"
CHAT = "google/diffusiongemma-26B-A4B-it"  # a model that is sent definitions


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shapes.py").write_text(SHAPES)
    path = tmp_path / "app" / "user.py"
    path.parent.mkdir()
    path.write_text(USER)
    return path


def bench(patch: pytest.MonkeyPatch, file: Path, kind: str, *more: str) -> list[Infill]:
    """The requests of `dg-lsp bench` for all holes of `kind` in `file`, which are filled with `side)`."""
    installed = install(patch, "side)")
    asked = ["--files", str(file), "--kinds", kind, "--cases", "9", "--methods", "searched"]
    assert main(["bench", *asked, *more]) == 0
    return installed.requests[1:]  # the first one is not counted


def fill(patch: pytest.MonkeyPatch, file: Path, case: Case, *more: str) -> Infill:
    """The request of `dg-lsp fill` for the hole `case` of `file`."""
    installed = install(patch, "side)")
    file.write_bytes(case.document.data)
    line, column = case.document.position(case.gap.start, "utf-32")
    by_name = case.kind == "function_body"
    place = f"{file}::{case.gap.name}" if by_name else f"{file}:{line + 1}:{column + 1}"
    main(["fill", "--alone", place, *([] if by_name else ["--kind", "rest_of_line"]), *more])
    (request,) = installed.requests
    return request


@pytest.mark.parametrize("checkpoint", ["embedded", CHAT])
@pytest.mark.parametrize("kind", ["rest_of_line", "function_body"])
def test_bench_asks_for_what_fill_asks_for(
    monkeypatch: pytest.MonkeyPatch, file: Path, kind: str, checkpoint: str
) -> None:
    cases = make_cases([read_document(file)], kind, 9, seed=0)
    measured = bench(monkeypatch, file, kind, "--checkpoint", checkpoint)
    assert measured == [fill(monkeypatch, file, case, "--checkpoint", checkpoint) for case in cases]
    assert any(request.retrieved for request in measured) == (kind == "rest_of_line")
    assert any(request.context for request in measured) == (checkpoint == CHAT)


def test_bench_gives_no_edit_where_users_get_none(
    monkeypatch: pytest.MonkeyPatch, file: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    bench(monkeypatch, file, "function_body", "--json", str(report))
    (case,) = json.loads(report.read_text())["cases"]
    assert case["text"] == "" and "syntax error" in case["why"]
    # The engine is not asked where no edit could be checked.
    monkeypatch.setattr("dg_lsp.filling.fill.unchecked", lambda *_: "no fill can be checked here")
    assert not bench(monkeypatch, file, "function_body", "--json", str(report))
    (case,) = json.loads(report.read_text())["cases"]
    assert case["why"] == "no fill can be checked here"
