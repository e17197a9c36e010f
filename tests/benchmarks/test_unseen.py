"""The unseen lists: no package in two of them or in the corpus, and what a hole may look up."""

import json
from pathlib import Path

import pytest

from benchmarks.unseen.fetch import LISTS, list_path, read_pins
from benchmarks.unseen.projects import others

KINDS = ("rest_of_line", "expression", "statement", "function_body")
COUNTS = {"new": (300, 300, 300, 200), "fit": (400, 400, 400, 200)}
ROOT = Path(__file__).parents[2]


def _packages_trained_on() -> set[str]:
    """The names in the corpus, and the packages that the shipped list is made of."""
    listed = json.loads((ROOT / "dg_lsp/model/embedded/heldout.json").read_text())["files"]
    shipped = {one["path"].partition(":")[2].split("/")[0] for one in listed if "package:" in one["path"]}
    return shipped | set((ROOT / "benchmarks/corpus.txt").read_text().split())


def test_no_package_is_in_two_lists_or_in_the_corpus():
    new, fit = ({pin.name for pin in read_pins(name)} for name in LISTS)
    assert not new & fit
    assert not (new | fit) & _packages_trained_on()
    assert len(new) >= 10
    assert len(fit) >= 20


@pytest.mark.parametrize("name", LISTS)
def test_a_list_has_its_holes_and_files_of_its_packages_only(name):
    listed = json.loads(list_path(name).read_text())
    kinds = [hole[0] for hole in listed["holes"]]
    assert tuple(map(kinds.count, KINDS)) == COUNTS[name]
    assert {file["path"].split("/")[0] for file in listed["files"]} <= {pin.name for pin in read_pins(name)}
    assert list_path(name).stat().st_size < 150_000


def test_new_code_has_a_last_version_of_2025():
    assert all(pin.before and pin.before != pin.version for pin in read_pins("new"))


def test_a_hole_looks_neither_into_its_own_file_nor_into_copies(tmp_path):
    lines = [f"value_{n} = {n}" for n in range(10)]
    (tmp_path / "pack").mkdir()
    own = tmp_path / "pack" / "own.py"
    own.write_text("\n\n".join(lines))
    (tmp_path / "copy.py").write_text("\n".join(["    " + line for line in lines[:3]] + ["other = 0"] * 20))
    (tmp_path / "pack" / "near.py").write_text("\n".join(lines[:2] + [f"x{n} = {n}" for n in range(20)]))
    (tmp_path / "empty.py").write_text("")
    assert [path.name for path in others(own, tmp_path)] == ["empty.py", "near.py"]
