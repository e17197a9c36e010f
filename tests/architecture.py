"""Write the tree of packages in docs/architecture.md: one line a package, the first sentence of its docstring.

    python -m tests.architecture

`tests/test_docs.py` compares the page with the packages.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
COMMAND = "python -m tests.architecture"
# The packages from the lowest layer to the highest. The few modules beside them come first.
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
    """Return the text of docs/architecture.md with the tree of the packages as they are now."""
    old = PAGE.read_text(encoding="utf-8")
    top = ROOT / "dg_lsp"
    modules = sorted(path for path in top.glob("*.py") if not path.name.startswith("__"))
    lines = [*(_line(path.name, sentence(path), 1) for path in modules), *_packages(top, 1)]
    tree = "dg_lsp/\n" + "".join(lines) + _REST
    assert _TREE.search(old), "docs/architecture.md has no block under the heading `The house`"
    return _TREE.sub(lambda _: tree, old, count=1)


def sentence(path: Path) -> str:
    """Return the first sentence of the docstring of the module `path`, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert text, f"{path.relative_to(ROOT)} has no docstring"
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"\.(?: |$)", paragraph, maxsplit=1)[0]


def _packages(folder: Path, depth: int) -> Iterator[str]:
    """Yield a line for each package in `folder`, followed by the lines of its own packages."""
    for path in sorted((path.parent for path in folder.glob("*/__init__.py")), key=_rank):
        yield _line(f"{path.name}/", sentence(path / "__init__.py"), depth)
        yield from _packages(path, depth + 1)


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
