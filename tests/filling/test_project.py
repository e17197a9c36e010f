"""Which files of a project are read: none that is excluded, hidden, a link, too large, or made by a program."""

import os
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.context.index import LARGEST, Index
from dg_lsp.filling.project import Rules, files_near, index_near, may_be_read, read_file
from dg_lsp.settings import SECRETS, Settings
from dg_lsp.source import document

FILES = (
    "a.py",
    "src/b.py",
    "src/deep/c.js",
    "notes.txt",
    ".env.py",
    "node_modules/d.js",
    ".venv/e.py",
    "build/f.py",
)


def project(folder: Path) -> Path:
    for name in (*FILES, ".ssh/g.py", "my_secrets.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x = 1\n")
    (folder / "large.py").write_text("x = 1\n" * LARGEST)
    (folder / "link.py").symlink_to(folder / "a.py")
    os.mkfifo(folder / "pipe.py")
    return folder


def test_only_ordinary_files_of_known_languages_are_read(tmp_path: Path) -> None:
    folder = project(tmp_path)
    read = files_near(folder, Rules((folder,), (*SECRETS, "src/deep/")))
    assert [path.relative_to(tmp_path).as_posix() for path in read] == ["a.py", "src/b.py"]


def test_a_command_reads_the_nearest_files_of_the_project_as_far_as_there_is_room(tmp_path: Path) -> None:
    (project(tmp_path) / "pyproject.toml").write_text("")
    own = tmp_path / "src" / "own.py"
    index = index_near(own, Settings(), room=7)
    assert [Path(other.uri).name for other in index.beside(own.as_uri(), "python")] == ["b.py"]
    assert len(index_near(own, Settings())) == 2  # not JavaScript


def tree(folder: Path, names: str) -> Path:
    for name in names.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"x = {name!r}\n")
    return folder


def test_the_nearest_files_come_first(tmp_path: Path) -> None:
    tree(tmp_path, "app/top.py app/a/own.py app/a/b/c/deep.py app/a/z/flat.py app/0/other.py 0lib/far.py")
    rules = Rules((tmp_path / "0lib", tmp_path / "app"), ())
    read = files_near(tmp_path / "app" / "a", rules)
    assert [path.stem for path in read] == ["own", "flat", "deep", "top", "other", "far"]
    # A file in a folder that nobody lists, and one outside of the workspace, begin with what is listed.
    tree(tmp_path, "app/a/node_modules/pack/own.js")
    for start in ("app/a/node_modules/pack", "elsewhere"):
        read = files_near(tmp_path / start, Rules((tmp_path / "app",), ()))
        assert "pack" not in {path.parent.name for path in read}
    assert next(files_near(tmp_path / "app/a/node_modules/pack", rules)).stem == "own"


def test_of_nested_folders_each_file_is_read_once(tmp_path: Path) -> None:
    tree(tmp_path, "a/b/one.py a/two.py three.py")
    rules = Rules((tmp_path, tmp_path / "a"), ())
    assert [path.stem for path in files_near(tmp_path / "a" / "b", rules)] == ["one", "two", "three"]


def test_a_walk_ends_where_it_is_told_to_although_it_finds_nothing(tmp_path: Path) -> None:
    tree(tmp_path, " ".join(f"{n}/none.txt" for n in range(50)))
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 10

    assert list(files_near(tmp_path, Rules((tmp_path,), ()), stop)) == []
    assert len(asked) == 11


class Work:
    """What a walk costs: folders listed, files looked up, files read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listed: list[Path] = []
        self.read: list[Path] = []
        scandir, regular = os.scandir, document._regular_bytes

        def listed(folder: Path) -> Any:
            self.listed.append(folder)
            return scandir(folder)

        def read(path: Path) -> bytes:
            self.read.append(path)
            return regular(path)

        monkeypatch.setattr(os, "scandir", listed)
        monkeypatch.setattr(document, "_regular_bytes", read)


def test_a_fill_in_a_large_project_looks_at_what_is_near_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 4,000 files, as many are read as there is room for, and no folder is listed that none of them is in."""
    for a in range(20):
        folder = tmp_path / f"pack{a:02}" / "sub"
        folder.mkdir(parents=True)
        for n in range(200):
            (folder / f"m{n:03}.py").write_text("x = 1\n" * 10)
    tree(tmp_path, "pyproject.toml node_modules/a/b.js .git/c.py pack07/sub/build/d.py pack07/sub/e.js")
    work = Work(monkeypatch)
    own = tmp_path / "pack07" / "sub" / "m100.py"
    index = index_near(own, Settings(), room=60 * 250, seconds=60)
    assert len(index) == 250
    assert {path.parent for path in work.read} == {own.parent, tmp_path / "pack00" / "sub"}
    assert len(work.read) == 251  # those, and the one that there was no room for
    # The folders above it, those beside its package, one level down at a time, and the first that holds files.
    assert len(work.listed) <= 3 + 19 + 1
    assert not any("node_modules" in path.parts or path.name == ".git" for path in work.listed)


def test_a_fill_takes_what_has_been_read_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, "pyproject.toml own.py a.py b.py c.py d.py")
    assert len(index_near(tmp_path / "own.py", Settings(), seconds=-1.0)) == 0
    now = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    assert 0 < len(index_near(tmp_path / "own.py", Settings(), seconds=4)) < 4


def test_rules_of_git_that_change_just_before_a_file_is_read_hold_for_it(tmp_path: Path) -> None:
    for name in ("HEAD", "objects/x", "refs/x"):
        (tmp_path / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".git" / name).write_text("ref: refs/heads/main\n")
    path, rules = tmp_path / "keys.py", Rules((tmp_path,), (), git=True)
    path.write_text("y = load(key)\n")
    assert may_be_read(path, rules) and read_file(Index(), path, rules)
    (tmp_path / ".gitignore").write_text("keys.py\n")
    assert read_file(Index(), path, rules) is None
