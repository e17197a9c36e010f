"""One way to install: install.sh, and the same command wherever a plug-in or a page names one."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMAND = "uv tool install --torch-backend auto"
SENTENCE = (
    "Where torch's own index cannot be reached, put `--find-links FOLDER` in the place of `--torch-backend auto`, with "
    "torch's wheel for CPUs in that folder: `make release` makes one. Without it, and by pipx or pip on Linux, it is "
    "torch's build for NVIDIA GPUs (5 GB)."
)
# A Python that makes an environment of stand-ins, which note how they are called; with torch's own index uv fails.
PYTHON = """#!/bin/sh
mkdir -p "$3/bin" && cp "$(dirname "$0")/pip" "$(dirname "$0")/uv" "$3/bin/"
"""
UV = """#!/bin/sh
echo "$*" >> "$HOME/calls"
exit "${REFUSED:-0}"
"""
PIP = """#!/bin/sh
case "$*" in
  "install --quiet uv") ;;
  "uninstall --quiet --yes uv") rm "$(dirname "$0")/uv" ;;
  "index versions"*) echo "Available versions: 2.15.0, 2.14.0+cpu, ${BUILDS}2.13.0, 2.10.0+cpu" ;;
  *) echo "pip $*" >> "$HOME/calls" ;;
esac
"""


def words(path: str) -> str:
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


def test_all_that_name_a_command_name_the_same() -> None:
    script = words("editors/vscode/src/install.ts")
    assert '["' + '", "'.join(COMMAND.split()) + '", "--", what]' in script
    for path in (
        "editors/nvim/lua/dg_lsp/server.lua",
        "editors/nvim/doc/dg_lsp.txt",
        "editors/vscode/walkthrough/server.md",
    ):
        assert COMMAND in words(path), path
    for path in ("editors/nvim/doc/dg_lsp.txt", "editors/vscode/walkthrough/server.md"):
        assert SENTENCE in words(path), path
    for page in (
        "README.md",
        *(str(path.relative_to(ROOT)) for path in (ROOT / "docs/editors").glob("*.md")),
    ):
        for found in re.findall(r"(?:pipx|pip|uv tool|uv pip) install [^`$]*dg[-_]lsp", words(page)):
            assert "--torch-backend" in found, f"{page}: {found}"


def test_what_is_named_in_the_container_and_the_action_is_the_script_or_tries_both() -> None:
    assert 'sh /source/install.sh "/source[server]"' in words("examples/team/Containerfile")
    assert '--torch-backend cpu -- "$PACKAGE" || "${install[@]}" -- "$PACKAGE"' in words(
        "examples/github-action/action.yml"
    )
    assert "sh install.sh" in words("Makefile")


@pytest.fixture
def installed(tmp_path: Path):
    """Run install.sh of a folder with `names` in it, and return its exit status, the calls, and what it says."""

    def run(*names: str, given: str = "", **variables: str) -> tuple[int, list[str], str]:
        place, programs = tmp_path / "place", tmp_path / "programs"
        for folder in (place, programs):
            folder.mkdir()
        for name, text in (("python", PYTHON), ("uv", UV), ("pip", PIP)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        (place / "install.sh").write_bytes((ROOT / "install.sh").read_bytes())
        for name in names:
            (place / name).touch()
        own = {
            "HOME": str(tmp_path),
            "PYTHON": str(programs / "python"),
            "PATH": "/usr/bin:/bin",
            **variables,
        }
        command = ["sh", str(place / "install.sh"), *([given] if given else [])]
        done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
        link = tmp_path / ".local/bin/dg-lsp"
        assert link.is_symlink() == (done.returncode == 0)
        assert not link.is_symlink() or link.readlink() == tmp_path / ".dg-lsp/bin/dg-lsp"
        calls = (tmp_path / "calls").read_text().replace(f"{place}", "HERE").replace(f"{tmp_path}", "~")
        return done.returncode, calls.splitlines(), done.stderr

    return run


UV_CALL = "pip install --python ~/.dg-lsp --reinstall-package dg-lsp --torch-backend"
WHEEL = "dg_lsp-0.1.0-py3-none-any.whl"
AGAIN = "pip install --no-compile --quiet --no-deps --force-reinstall --"


def test_the_script_installs_the_wheel_beside_it(installed) -> None:
    assert installed(WHEEL, UV_TORCH_BACKEND="cu130") == (0, [f"{UV_CALL} cu130 -- HERE/{WHEEL}"], "")


def test_the_script_installs_the_clone_that_it_is_in(installed) -> None:
    assert installed("pyproject.toml") == (0, [f"{UV_CALL} auto -- HERE"], "")


def test_the_script_installs_what_is_named_with_its_extras(installed) -> None:
    assert installed(given="/source[server]") == (0, [f"{UV_CALL} auto -- /source[server]"], "")


def test_what_no_run_needs_is_removed_and_nothing_else(installed, tmp_path) -> None:
    torch = tmp_path / ".dg-lsp/lib/python3.11/site-packages/torch"
    stay = ["bin/torch_shm_manager", "testing/a.py", "lib/libtorch.so"]
    for name in (*stay, "test/cpp/a", "bin/test_api", "bin/protoc", "bin/protoc-3.13.0.0"):
        (torch / name).parent.mkdir(parents=True, exist_ok=True)
        (torch / name).touch()
    assert installed(WHEEL)[0] == 0
    left = sorted(str(path.relative_to(torch)) for path in torch.rglob("*") if path.is_file())
    assert left == sorted(stay) and not (tmp_path / ".dg-lsp/bin/uv").exists()


def test_without_the_index_of_torch_it_takes_the_build_for_cpus_that_pip_finds(installed, tmp_path) -> None:
    status, calls, said = installed(WHEEL, REFUSED="1", BUILDS="2.13.0+cpu, 2.12.0+cpu, ")
    assert status == 0 and "asking pip" in said
    assert calls == [
        f"{UV_CALL} auto -- HERE/{WHEEL}",
        f"pip install --no-compile --find-links HERE --constraint ~/.dg-lsp/constraints.txt -- HERE/{WHEEL}",
        f"{AGAIN} HERE/{WHEEL}",
    ]
    assert (tmp_path / ".dg-lsp/constraints.txt").read_text() == "torch==2.13.0+cpu\n"


def test_it_takes_the_build_for_gpus_only_if_that_is_wanted(installed) -> None:
    status, calls, said = installed(WHEEL, REFUSED="1")
    assert status == 1 and calls == [f"{UV_CALL} auto -- HERE/{WHEEL}"]
    for words in ("5 GB", "make release", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "CUDA=1"):
        assert words in said


def test_it_takes_the_build_for_gpus_if_that_is_wanted(installed) -> None:
    status, calls, _ = installed(WHEEL, REFUSED="1", CUDA="1")
    assert status == 0 and calls[1:] == [
        f"pip install --no-compile --find-links HERE -- HERE/{WHEEL}",
        f"{AGAIN} HERE/{WHEEL}",
    ]


def test_the_builds_that_it_takes_are_those_that_the_package_asks_for() -> None:
    assert r"'^2\.1[123]\..*+cpu$'" in words("install.sh")
    assert '"torch>=2.11,<2.14"' in words("pyproject.toml")


def test_the_hook_takes_the_build_for_cpus() -> None:
    assert "[--extra-index-url=https://download.pytorch.org/whl/cpu, --retries=1]" in words(
        ".pre-commit-hooks.yaml"
    )
