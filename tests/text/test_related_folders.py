"""Which files of a project are read: none that is excluded, hidden, a link, too large, or made by a program."""

import os
from pathlib import Path

from dg_lsp.settings import SECRETS
from dg_lsp.text.related.folders import files_in, index_round
from dg_lsp.text.related.index import LARGEST

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
    read = files_in(project(tmp_path), (*SECRETS, "src/deep/"))
    assert [path.relative_to(tmp_path).as_posix() for path in read] == ["a.py", "src/b.py"]


def test_a_command_reads_the_nearest_files_of_the_project_as_far_as_there_is_room(tmp_path: Path) -> None:
    (project(tmp_path) / "pyproject.toml").write_text("")
    own = tmp_path / "src" / "own.py"
    index = index_round(own, SECRETS, room=7)
    assert [Path(other.uri).name for other in index.beside(own.as_uri(), "python")] == ["b.py"]
    assert len(index_round(own, SECRETS)) == 3
