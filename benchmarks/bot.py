"""Cut stubs into a real package, one at a time, and have `dg-lsp bot` fill each; a fill counts that passes the tests.

    python -m benchmarks.bot FOLDER --source src/pluggy --count 15 --tests "python -m pytest -q -x testing"

FOLDER is an unpacked source distribution. It is copied, and stays as it is. A function counts whose tests fail while it
is a stub; the others prove nothing.
"""

import argparse
import ast
import json
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cut:
    """A function of the file `path`: its name, and the lines [first, last] of its body without the docstring."""

    path: Path
    name: str
    first: int
    last: int
    indent: int


def cuts(path: Path, longest: int) -> list[Cut]:
    """The functions of a file whose bodies have at most `longest` lines."""
    found = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body[1:] if ast.get_docstring(node) else node.body
        if not body or body[0].lineno == node.lineno or isinstance(body[0], ast.Pass | ast.Raise):
            continue
        # A decorator stands above the line of what it decorates.
        first = min([body[0].lineno, *(mark.lineno for mark in getattr(body[0], "decorator_list", []))])
        last = body[-1].end_lineno or body[-1].lineno
        if last - first < longest:
            found.append(Cut(path, node.name, first, last, body[0].col_offset))
    return found


def with_stub(text: str, cut: Cut) -> str:
    """`text` with the body of a function replaced by NotImplementedError."""
    lines = text.splitlines(keepends=True)
    stub = f"{' ' * cut.indent}raise NotImplementedError\n"
    return "".join([*lines[: cut.first - 1], stub, *lines[cut.last :]])


def main(arguments: argparse.Namespace) -> None:
    """Print a line for each stub and the sums."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / "work"
        shutil.copytree(arguments.folder, work)
        source = work / arguments.source
        # Only the tests see the package: the bot itself may stand on it.
        tests = f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={shlex.quote(str(source.parent))} {arguments.tests}"

        def passes() -> bool:
            done = subprocess.run(tests, shell=True, cwd=work, capture_output=True, check=False)
            return done.returncode == 0

        assert passes(), "the tests of the untouched package fail"
        files = [p for p in sorted(source.rglob("*.py")) if "test" not in p.relative_to(source).as_posix()]
        candidates = [cut for path in files for cut in cuts(path, arguments.longest)]
        random.Random(0).shuffle(candidates)
        told: list[dict[str, Any]] = []
        for cut in candidates:
            if len(told) == arguments.count:
                break
            whole = cut.path.read_text(encoding="utf-8")
            stubbed = with_stub(whole, cut)
            cut.path.write_text(stubbed, encoding="utf-8")
            if not passes():
                command = [sys.executable, "-P", "-m", "dg_lsp", "bot", str(cut.path), "--keep-if", tests]
                done = subprocess.run(
                    [*command, "--timeout", "120", "--json", "-"],
                    cwd=work, capture_output=True, text=True, check=False,
                )  # fmt: skip
                report = json.loads(done.stdout)
                # The package may have stubs of its own, such as abstract methods.
                named = [one for one in report["stubs"] if one["name"].rpartition(".")[2] == cut.name]
                unseen: dict[str, Any] = {"outcome": "not seen as a stub", "line": 0}
                mine = min(named, key=lambda one: abs(one["line"] - cut.first), default=unseen)
                if not report["summary"]["kept"]:
                    assert cut.path.read_text(encoding="utf-8") == stubbed, "a fill was not taken back"
                told.append(mine)
                print(
                    cut.path.relative_to(work),
                    cut.name,
                    mine["outcome"],
                    mine.get("why", "")[:100],
                    flush=True,
                )
            cut.path.write_text(whole, encoding="utf-8")
    filled = sum(one["outcome"] in ("kept", "taken back") for one in told)
    kept = sum(one["outcome"] == "kept" for one in told)
    print(f"{arguments.folder.name}: {len(told)} stubs tried, {filled} filled, {kept} kept")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--source", required=True, help="the package inside of it")
    parser.add_argument("--tests", required=True, help="a shell command, run in the copy")
    parser.add_argument("--count", type=int, default=15)
    parser.add_argument("--longest", type=int, default=6, help="lines of a body")
    main(parser.parse_args())
