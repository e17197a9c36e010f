"""Tests are found: each module has a test file of its name, or a row in tests/README.md."""

import re
from fnmatch import fnmatch
from pathlib import Path

import dg_lsp

TESTS = Path(__file__).parent
PACKAGE = Path(dg_lsp.__file__).parent
MODULES = sorted(
    path.relative_to(PACKAGE).with_suffix("").as_posix()
    for path in PACKAGE.rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)
ROWS = [
    (re.findall(r"`([^`]+)`", left), re.findall(r"`([^`]+\.py)`", right))
    for left, right in re.findall(r"^\| (`.*) \| (.*) \|$", (TESTS / "README.md").read_text("utf-8"), re.M)
]
LISTED = [name for names, _ in ROWS for name in names]


def own_test(module: str) -> bool:
    """Whether a test file of its package, or of the package above that, has the name of `module`."""
    path = Path(module)
    folders = (path.parent, *path.parent.parents)
    return any((TESTS / folder / f"test_{path.name}.py").exists() for folder in folders)


def test_each_module_has_a_test_file_of_its_name_or_a_row_in_the_table() -> None:
    missing = [m for m in MODULES if not own_test(m) and not any(fnmatch(m, name) for name in LISTED)]
    assert not missing


def test_the_table_names_modules_that_are_there_and_that_need_it() -> None:
    for name in LISTED:
        meant = [m for m in MODULES if fnmatch(m, name)]
        assert meant and not all(map(own_test, meant)), name


def test_the_test_files_in_the_table_are_there() -> None:
    files = [file for _, files in ROWS for file in files]
    assert len(files) > 50 and not [file for file in files if not (TESTS / file).exists()]
