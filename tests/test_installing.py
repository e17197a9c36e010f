"""One way to install: install.sh, and the same command wherever a plug-in or a page names one."""

import os
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
# A Python that makes an environment of stand-ins: its uv notes how it is called, and fails with torch's own index.
PYTHON = """#!/bin/sh
mkdir -p "$3/bin" && cp "$(dirname "$0")/pip" "$(dirname "$0")/uv" "$3/bin/"
"""
UV = """#!/bin/sh
echo "$*" >> "$HOME/calls"
test -z "$UV_TORCH_BACKEND" || exit 9
case "$*" in *--torch-backend*) exit "${REFUSED:-0}" ;; esac
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
    """Run install.sh of a folder with `names` in it, and return the calls of uv, without the folder."""

    def run(*names: str, given: str = "", refused: int = 0) -> list[str]:
        place, programs = tmp_path / "place", tmp_path / "programs"
        for folder in (place, programs):
            folder.mkdir()
        for name, text in (("python", PYTHON), ("uv", UV), ("pip", "#!/bin/sh\n")):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        (place / "install.sh").write_bytes((ROOT / "install.sh").read_bytes())
        for name in names:
            (place / name).touch()
        own = {"HOME": str(tmp_path), "PYTHON": str(programs / "python"), "REFUSED": str(refused)}
        inherited = {**os.environ, "UV_TORCH_BACKEND": "cu130"}
        command = ["sh", str(place / "install.sh"), *([given] if given else [])]
        done = subprocess.run(command, env={**inherited, **own}, capture_output=True, text=True, check=True)
        assert (tmp_path / ".local/bin/dg-lsp").readlink() == tmp_path / ".dg-lsp/bin/dg-lsp"
        assert ("this takes 5 GB" in done.stderr) == bool(refused)
        calls = (tmp_path / "calls").read_text().replace(f"{place}", "HERE").splitlines()
        start = f"pip install --python {tmp_path}/.dg-lsp --reinstall-package dg-lsp "
        assert all(call.startswith(start) for call in calls)
        return [call.removeprefix(start) for call in calls]

    return run


def test_the_script_installs_the_wheel_beside_it(installed) -> None:
    assert installed("dg_lsp-0.1.0-py3-none-any.whl") == [
        "--torch-backend cu130 -- HERE/dg_lsp-0.1.0-py3-none-any.whl"
    ]


def test_the_script_installs_the_clone_that_it_is_in(installed) -> None:
    assert installed("pyproject.toml") == ["--torch-backend cu130 -- HERE"]


def test_without_the_index_of_torch_it_takes_a_wheel_beside_it(installed) -> None:
    wheels = ("dg_lsp-0.1.0-py3-none-any.whl", "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl")
    assert installed(*wheels, refused=1) == [
        "--torch-backend cu130 -- HERE/dg_lsp-0.1.0-py3-none-any.whl",
        "--find-links HERE -- HERE/dg_lsp-0.1.0-py3-none-any.whl",
    ]


def test_the_script_installs_what_is_named_with_its_extras(installed) -> None:
    assert installed(given="/source[server]") == ["--torch-backend cu130 -- /source[server]"]
