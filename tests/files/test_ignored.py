"""Which files git ignores, as read from a repository, without any process."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dg_lsp.cli.bot import find_files
from dg_lsp.cli.tried import Report
from dg_lsp.files.ignored import TRACKED, ignored, listed
from dg_lsp.filling.project import Rules, files_near, index_near, project_files
from dg_lsp.settings import SECRETS, Settings


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "src").mkdir()
    for name in ("a.py", "local.py", "kept_local.py", "src/b.py", "src/local.py", "src/näme\n.py"):
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / ".gitignore").write_text("*local.py\n!src/local.py\nn*.py\n")
    git(tmp_path, "add", "--force", "kept_local.py")
    return tmp_path


def test_nested_rules_exceptions_and_what_is_tracked_count(repository: Path) -> None:
    files = sorted(repository.rglob("*.py"))
    names = {path.relative_to(repository).as_posix() for path in ignored(repository, files)}
    assert names == {"local.py", "src/näme\n.py"}


def test_outside_of_a_repository_nothing_is_ignored(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.py\n")
    assert ignored(tmp_path, [tmp_path / "a.py"]) == set()


def test_no_git_is_needed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert ignored(repository, [repository / "local.py"]) == {repository / "local.py"}


@pytest.mark.parametrize(
    "ask",
    [
        lambda folder: ignored(folder, [folder / "a.py"]),
        lambda folder: list(find_files([folder], Settings(), Report())),
        lambda folder: project_files(folder, TRACKED),
    ],
    ids=["ignored", "bot", "train"],
)
def test_a_repository_starts_no_program(repository: Path, ask: Callable[[Path], object]) -> None:
    program = repository / "watch.sh"
    program.write_text(f"#!/bin/sh\ntouch {repository}/started\n")
    program.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(program))
    assert ask(repository) is not None
    assert not (repository / "started").exists()
    # It would have been started without what we do against it.
    subprocess.run(["git", "status"], cwd=repository, check=True, capture_output=True)
    assert (repository / "started").exists()


def test_the_repository_in_the_environment_is_not_asked(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert ignored(repository, [repository / "local.py"]) == {repository / "local.py"}


def test_the_files_of_a_project_are_those_that_git_does_not_ignore(repository: Path) -> None:
    wanted = {"a.py", "kept_local.py", "b.py", "local.py"}
    rules = Rules((repository,), SECRETS)
    assert {path.name for path in files_near(repository, replace(rules, git=True))} == wanted
    assert len(list(files_near(repository, rules))) == 6
    own, settings = repository / "own.py", Settings()
    assert len(index_near(own, replace(settings, exclude_ignored=True))) < len(index_near(own, settings))
    found = [path.relative_to(repository).as_posix() for path in project_files(repository)]
    assert found == [".gitignore", "a.py", "kept_local.py", "src/b.py", "src/local.py"]
    assert [path.name for path in project_files(repository, TRACKED)] == ["kept_local.py"]


def test_a_file_is_listed_once_during_a_merge(repository: Path) -> None:
    blob = subprocess.run(
        ["git", "hash-object", "-w", "a.py"], cwd=repository, check=True, capture_output=True
    )
    stages = "".join(f"100644 {blob.stdout.decode().strip()} {stage}\ta.py\n" for stage in (1, 2, 3))
    command = ["git", "update-index", "--index-info"]
    subprocess.run(command, cwd=repository, input=stages.encode(), check=True, capture_output=True)
    assert [path.name for path in project_files(repository, TRACKED)] == ["a.py", "kept_local.py"]


def test_a_folder_of_which_git_lists_nothing_is_walked(repository: Path) -> None:
    for name in ("vendor/package/a.py", "vendor/package/build/b.py", "vendor/package/.c/d.py"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).touch()
    (repository / "vendor/package/link.py").symlink_to(repository / "a.py")
    (repository / ".gitignore").write_text("vendor/\n")
    assert [path.name for path in project_files(repository / "vendor/package")] == ["a.py"]


def test_a_link_that_leads_back_to_itself_ends_nothing(repository: Path) -> None:
    (repository / "circle").symlink_to("circle")
    (repository / "local.circle.py").symlink_to("local.circle.py")
    (repository / ".gitignore").write_text("local*\n")
    (repository / "own.circle.py").symlink_to("own.circle.py")
    links = [repository / f"{name}.circle.py" for name in ("local", "own")]
    assert ignored(repository, links) == {links[0]}
    # What cannot be read may be ignored.
    assert ignored(repository / "circle", [repository / "circle/a.py"]) == {repository / "circle/a.py"}
    assert listed(repository / "circle", "unignored") == []
