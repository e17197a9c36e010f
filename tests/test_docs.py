"""What the pages say is what the code says."""

import re
from pathlib import Path

import pytest

import dg_lsp
from dg_lsp.settings import SECRETS, Settings, SettingsError, from_environment, override
from tests import architecture
from tests.configuration import PAGE, camel, page


def test_the_page_of_the_settings_is_the_one_that_the_settings_give():
    assert PAGE.read_text(encoding="utf-8") == page(), "write it again: python -m tests.configuration"


def test_the_tree_of_packages_is_the_one_that_their_docstrings_give():
    written = architecture.PAGE.read_text(encoding="utf-8")
    assert written == architecture.page(), f"write the tree again: {architecture.COMMAND}"


def test_each_name_on_the_page_sets_its_setting():
    for name in Settings.__dataclass_fields__:
        given = {"effort": "low", "log_level": "debug", "confidence": 0.7, "engine_url": "https://x"}
        value: object = given.get(name, 7)
        if isinstance(getattr(Settings(), name), bool):
            value = not getattr(Settings(), name)
        if isinstance(getattr(Settings(), name), str) and value == 7:
            value = "cpu"
        if isinstance(getattr(Settings(), name), tuple):
            value = ("*.pem",) if name == "include" else ("go",)
        written = ",".join(value) if isinstance(value, tuple) else str(value)
        by_editor = override(Settings(), {camel(name): value})
        # What is excluded is added to the default.
        wanted = (*SECRETS, "go") if name == "exclude" else value
        assert getattr(by_editor, name) == wanted != getattr(Settings(), name)
        assert from_environment({f"DG_LSP_{name.upper()}": written}) == by_editor


@pytest.mark.parametrize("value", [-0.1, 1.01, float("nan"), 40])
def test_a_confidence_is_a_probability(value: float):
    with pytest.raises(SettingsError, match="from 0 to 1"):
        override(Settings(), {"confidence": value})


# What a message on the page of troubles leaves open.
OPEN = re.compile(r"\.\.\.|\b(?:[A-Z]+|holds Z)\b")


def code() -> str:
    """All of the code, with texts that stand in several pieces put together."""
    files = sorted(Path(dg_lsp.__file__).parent.rglob("*.py"))
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(f.read_text(encoding="utf-8") for f in files))


def test_each_message_on_the_page_of_troubles_is_one_that_the_code_can_say():
    page = (PAGE.parent / "troubleshooting.md").read_text(encoding="utf-8")
    first_cells = re.findall(r"^\| (.*?) \|", page, re.MULTILINE)
    messages = [m for cell in first_cells for m in re.findall(r"`(.*?)`", cell)]
    pieces = [piece.strip(" :;()") for message in messages for piece in OPEN.split(message)]
    long = [piece for piece in pieces if len(piece) > 8]
    source = code()
    assert len(long) > 30
    assert not [piece for piece in long if piece not in source]


def pages() -> dict[str, str]:
    """The pages by name, but for the changelog, which speaks of its own day."""
    root = PAGE.parents[1]
    found = [*root.glob("*.md"), *PAGE.parent.glob("*.md")]
    return {p.name: p.read_text(encoding="utf-8") for p in found if p.name != "CHANGELOG.md"}


def test_each_module_and_file_that_a_page_names_is_there():
    root = PAGE.parents[1]
    text = "\n".join(pages().values())
    files = set(re.findall(r"\b(?:dg_lsp|tests|benchmarks|examples|docs)/[\w./-]*\w", text))
    modules = set(re.findall(r"(?:from|-m) ((?:dg_lsp|benchmarks|tests)(?:\.\w+)*)", text))
    files |= {name.replace(".", "/") for name in modules}
    assert len(files) > 50
    missing = [f for f in sorted(files) if not (root / f).exists() and not (root / f"{f}.py").exists()]
    assert not missing


def test_each_module_of_a_package_and_each_name_in_it_that_a_page_names_is_there() -> None:
    root = PAGE.parents[1]
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in found if path.name != "measured-once.md")
    tops = (root, root / "dg_lsp", root / "dg_lsp/model")
    paths = {
        name: [top / name for top in tops if (top / name).exists()]
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text)
    }
    assert len(paths) > 50 and not [name for name, found in paths.items() if not found]
    for name, module in re.findall(r"`(\w+)` in `((?:[a-z_]+/)+[a-z_]+\.py)`", text):
        assert re.search(rf"\b{name}\b", paths[module][0].read_text(encoding="utf-8")), (
            f"{name} is not in {module}"
        )


def test_each_heading_that_a_page_points_to_is_there():
    root = PAGE.parents[1]
    # `test_readme.py` sees to README and docs.
    for folder in (root, PAGE.parent / "research"):
        for path in folder.glob("*.md"):
            for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
                file, _, anchor = target.partition("#")
                if "://" in target:
                    continue
                there = (path.parent / file).resolve() if file else path
                assert there.exists(), f"{path.name} points to {target}"
                if anchor:
                    headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE)
                    assert anchor.split("-1")[0] in map(slug, headings) or anchor in map(slug, headings), (
                        target
                    )


def slug(heading: str) -> str:
    """A heading as links name it: `How code is written` is how-code-is-written."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_each_line_of_the_page_of_security_names_a_test_that_is_there() -> None:
    page = (PAGE.parent / "security.md").read_text()
    rows = [
        row for row in re.findall(r"^\|.*\|$", page, re.MULTILINE) if not row.startswith(("| what", "|---"))
    ]
    assert not [row for row in rows if not re.search(r"`test_\w+`[^|]*\|$", row)]
    named = set(re.findall(r"`(test_\w+)`", page))
    there = {
        name
        for path in (PAGE.parents[1] / "tests").rglob("*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert len(named) > 20 and named <= there
