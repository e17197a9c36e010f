"""What README and docs tell a reader to type exists, with its options; what they link to is there."""

import importlib.util
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from dg_lsp.cli.main import main

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "editors").glob("*.md")),
]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
# What a console block may hold besides: programs that are not ours.
OUTSIDE = {
    "ray",
    "pip",
    "npm",
    "code",
    "git",
    "cd",
    "cat",
    "curl",
    "hf",
    "nvim",
    "docker",
    "ln",
    "mkdir",
    "pipx",
    "uv",
    "ssh",
    "systemctl",
    "export",
}


def commands() -> list[tuple[str, str]]:
    """(page, command) for each command line in a console block, and each one of ours in the text, without comments."""
    found: dict[tuple[str, str], None] = {}
    for page, text in TEXTS.items():
        blocks = re.findall(r"^ *```console\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
        lines = [line for block in blocks for line in re.findall(r"^ *\$ (.+)", block, re.MULTILINE)]
        lines += re.findall(r"(?<!`)`((?:dg-lsp|make|python) [^`\n]+)`(?!`)", text)
        found |= dict.fromkeys((page, re.split(r"\s{2,}#", line)[0].strip()) for line in lines)
    return list(found)


def words_of(command: str) -> list[str]:
    """The words of a command, from its program on: `A=1 .venv/bin/dg-lsp fill` -> `dg-lsp fill`."""
    words = command.removesuffix("...").split()
    while re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    return [words[0].rpartition("/")[2], *words[1:]]


def options_of(words: list[str]) -> set[str]:
    return {option for word in words for option in re.findall(r"^\[?(--[a-z][a-z-]*)", word)}


@lru_cache
def help_of(*words: str) -> str:
    """What a module or a script of ours tells of its options."""
    command = [sys.executable, *words, "--help"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


COMMANDS = commands()


@pytest.mark.parametrize(("page", "command"), [c for c in COMMANDS if words_of(c[1])[0] == "dg-lsp"])
def test_a_command_of_ours_has_the_options_that_are_shown(
    page: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_of(command)[1:]
    # Without a subcommand it is the server; `engine start|stop` are two.
    given = words[0] if words and not words[0].startswith("-") else "serve"
    for action in words[1].split("|") if given == "engine" and words[1:] else [""]:
        with pytest.raises(SystemExit) as ended:
            main([given, *filter(None, [action]), "--help"])
        assert ended.value.code == 0, f"{page}: {command}"
        told = capsys.readouterr().out
        assert options_of(words) <= set(re.findall(r"--[a-z][a-z-]*", told)), f"{page}: {command}"


@pytest.mark.parametrize(("page", "command"), [c for c in COMMANDS if words_of(c[1])[0] == "make"])
def test_a_target_of_make_is_one(page: str, command: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert words_of(command)[1] in targets, f"{page}: {command}"


@pytest.mark.parametrize("target", ["oldest", "ray", "mutants"])
def test_a_target_of_make_runs_tests_that_are_there(target: str) -> None:
    shown = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    named = re.findall(r"tests/[\w/]+\.py", shown)
    assert named and all((ROOT / name).is_file() for name in named), named


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command"), [c for c in COMMANDS if words_of(c[1])[0].startswith("python")])
def test_a_module_or_script_has_the_options_that_are_shown(page: str, command: str) -> None:
    words = words_of(command)[1:]
    if words[0] == "-m":
        if words[1].partition(".")[0] not in ("benchmarks", "dg_lsp"):
            assert importlib.util.find_spec(words[1]) is not None, f"{page}: {command}"
            return
        told = help_of("-m", words[1])
        if words[2:] and re.search(rf"[{{,]{re.escape(words[2])}[,}}]", told):
            told += help_of("-m", words[1], words[2])
    elif words[0] == "-c":
        imported = re.findall(r"from (dg_lsp[\w.]*) import (\w+)", command)
        assert all(hasattr(importlib.import_module(module), name) for module, name in imported), command
        return
    elif (ROOT / words[0]).is_file():
        told = help_of(str(ROOT / words[0]))
    else:
        assert any(f"$ cat > {words[0]}" in text for text in TEXTS.values()), f"{page}: {command}"
        return
    assert options_of(words) <= set(re.findall(r"--[a-z][a-z-]*", told)), f"{page}: {command}"


def test_no_other_program_is_told_to_be_run() -> None:
    ours = {"dg-lsp", "make", "python", "python3", "pytest"}
    found = {words_of(command)[0] for _, command in COMMANDS}
    assert found <= ours | OUTSIDE and "make" in found and "dg-lsp" in found


@pytest.mark.parametrize("page", TEXTS)
def test_what_a_page_links_to_is_there(page: str) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", TEXTS[page], flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            file = (ROOT / page).parent / path if path else ROOT / page
            assert file.exists(), f"{page} links to {target}"
            if anchor:
                titles = re.findall(r"^#+ (.+)", file.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
                assert anchor in anchors, f"{page} links to {target}"


def test_the_readme_is_short() -> None:
    text = TEXTS["README.md"]
    # The table of numbers is written by `benchmarks.results`; those in sentences are kept by hand, so they are few.
    prose = re.sub(
        r"^```.*?^```|<!-- results:.*?<!-- end -->|<!--.*?-->|`[^`]*`|\]\([^)]*\)|^\d+\.",
        "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    assert len(text.splitlines()) <= 100 and len(re.findall(r"\d+(?:[.,]\d+)*", prose)) <= 25
