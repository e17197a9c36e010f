"""Writes the tree of modules in docs/architecture.md: the first sentence of each module's docstring.

    python -m tests.architecture

`tests/test_docs.py` compares the page with the modules.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
COMMAND = "python -m tests.architecture"
# The packages from the lowest layer to the highest; other modules of dg_lsp stand before them.
LAYERS = ("text", "filling", "model", "engine", "serving", "server", "training", "bench", "cli")
_WIDTH = 22  # characters of a name with its indentation
_TREE = re.compile(r"(?<=## The house\n\n```\n).*?(?=```)", re.DOTALL)
_REST = """\
benchmarks/           programs that reproduce the numbers of docs/results.md; not in the wheel
grammars/NAME/        a language as data: gaps.scm, language.toml, fixtures/
editors/              the plug-ins for VS Code and Neovim
tests/                the tests of each package, in the same folders
"""


def page() -> str:
    """The text of docs/architecture.md with the tree of the modules as they are now."""
    old = PAGE.read_text(encoding="utf-8")
    tree = "dg_lsp/\n" + "".join(_lines(ROOT / "dg_lsp", 1)) + _REST
    assert _TREE.search(old), "docs/architecture.md has lost the block under the heading `The house`"
    return _TREE.sub(lambda _: tree, old, count=1)


def sentence(path: Path) -> str:
    """The first sentence of the docstring of the module `path`, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert text, f"{path.relative_to(ROOT)} has no docstring"
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"\.(?: |$)", paragraph, maxsplit=1)[0]


def _lines(folder: Path, depth: int) -> Iterator[str]:
    """The lines of the modules of a package, then those of its subpackages, each indented by `depth`."""
    modules = sorted(path for path in folder.glob("*.py") if not path.name.startswith("__"))
    packages = sorted((path.parent for path in folder.glob("*/__init__.py")), key=_rank)
    for path in modules:
        yield _line(path.name, sentence(path), depth)
    for path in packages:
        yield _line(f"{path.name}/", sentence(path / "__init__.py"), depth)
        yield from _lines(path, depth + 1)


def _rank(path: Path) -> tuple[int, str]:
    return LAYERS.index(path.name) if path.name in LAYERS else len(LAYERS), path.name


def _line(name: str, what: str, depth: int) -> str:
    return (
        f"{'  ' * depth + name:{_WIDTH}}{what}\n"
        if len(name) + 2 * depth < _WIDTH
        else f"{'  ' * depth}{name}  {what}\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
