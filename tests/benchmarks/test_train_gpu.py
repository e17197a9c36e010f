"""Training on a GPU machine: what is packed in two parts comes out whole, and its library is found."""

import importlib
import sys
from pathlib import Path

import pytest

from benchmarks.train_gpu import NEEDED, pack, unpack


def test_two_parts_make_the_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    run, to = tmp_path / "run", tmp_path / "to"
    for folder in (run / "library", to):
        folder.mkdir(parents=True)
    for number, name in enumerate(NEEDED[:-1]):
        (run / name).write_bytes(bytes(range(256)) * number)
    (run / "library" / "carried_along.py").write_text("there = True\n")
    (run / "state.safetensors").write_bytes(b"stays here")
    pack(run, tmp_path / "parts")
    assert all((tmp_path / "parts" / part / "part").stat().st_size for part in "ab")
    unpack([tmp_path / "parts" / part for part in "ab"], to)
    assert {file.name for file in to.iterdir()} == {*NEEDED}
    assert all((to / name).read_bytes() == (run / name).read_bytes() for name in NEEDED[:-1])
    assert importlib.import_module("carried_along").there
    with pytest.raises(AssertionError, match="not whole"):
        unpack([tmp_path / "parts" / "a"], to)
