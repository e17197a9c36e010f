"""`dg-lsp demo`: its file, and what it prints, with a scripted engine and with the model."""

import ast
from importlib import resources

import pytest

from dg_lsp.cli.demo import cuts
from dg_lsp.cli.main import main
from dg_lsp.engine import team
from tests import scripts

SOURCE = (resources.files("dg_lsp.cli.demo") / "dogs.txt").read_text(encoding="utf-8")


def reach(patch, answer):
    """Put an engine that always says `answer` in the place of the shared one."""
    installed = scripts.install(patch, answer)
    patch.setattr(team, "ResidentEngine", lambda *_: installed.engine)
    return installed


def test_the_file_is_python_with_nine_gaps_and_each_is_cut_out_of_all_of_it():
    plain = SOURCE.replace("⟦", "").replace("⟧", "")
    ast.parse(plain)
    found = list(cuts(SOURCE))
    assert [cut.before + cut.was + cut.after for cut in found] == [plain] * 9
    assert [cut.was for cut in found[:4]] == ["__name__", "self.name = name", "(self):", "self"]


def test_it_tells_each_gap_its_fill_and_what_was_there(monkeypatch, capsys, tmp_path):
    installed = reach(monkeypatch, "result")
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith("rest of line   return ⟦result⟧") and line.endswith("as it was") for line in lines
    )
    at = lines.index(next(line for line in lines if "getLogger(⟦result⟧)" in line))
    assert lines[at].startswith("arguments ")
    assert lines[at + 1].split() == ["was:", "__name__"]
    assert len(installed.requests) == 9
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_is_filled_it_says_why_and_ends_with_1(monkeypatch, capsys):
    reach(monkeypatch, "")
    assert main(["demo"]) == 1
    out = capsys.readouterr().out
    assert out.count("nothing offered: ") == 9
    assert "0 of 9 gaps were filled, 0 of them as they were." in out


@pytest.mark.slow
def test_the_model_fills_at_least_five_of_the_first_seven_as_they_were(capsys):
    assert main(["demo", "--alone", "--threads", "1"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "⟦" in line]
    assert sum(line.endswith("as it was") for line in lines[:7]) >= 5
