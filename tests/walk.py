"""The modules from `source` to `guard` that one request goes through, counted with a tracer.

    python -m tests.walk FILE LINE COLUMN --fill TEXT        (counted from 1, in characters)

Three stages: the gap at the cursor, the request to the engine, the edit that a fill becomes. TEXT is the fill, so no
model is loaded. The walk is done twice, and the second one is traced: the first loads the grammar.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from dg_lsp.cli.target import Target, locate
from dg_lsp.context import prompt
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document, read_document

ROOMS = tuple(f"dg_lsp.{room}." for room in ("source", "gaps", "context", "guard"))
BUDGET = "dg_lsp.budget"  # reads no text: all that read one look at it
READ = "_parsed.<locals>.read"  # gives a parser, and each query of its tree, the text


@dataclass(slots=True)
class Stage:
    """One stage of a request: its modules in the order in which they are entered, and the calls between modules."""

    name: str
    modules: list[str] = field(default_factory=list)
    crossings: int = 0

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Count one event of `sys.setprofile`."""
        name, caller = frame.f_globals.get("__name__", ""), frame.f_back
        if event != "call" or not name.startswith(ROOMS) or name == BUDGET:
            return
        if frame.f_code.co_qualname == READ:
            return
        if name not in self.modules:
            self.modules.append(name)
        self.crossings += caller is not None and caller.f_globals.get("__name__") != name


def walk(document: Document, offset: int, fill: str) -> list[Stage]:
    """The stages of a request at the byte `offset` of `document` that is answered with `fill`."""
    stages: list[Stage] = []

    def traced(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        stages.append(Stage(name))
        sys.setprofile(stages[-1].note)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(None)

    gap = traced("find the gap", find_gap, document, offset)
    traced("build the request", prompt.build, document, gap, Settings())
    traced("fit and check the fill", finish, document, gap, Fill(fill))
    return stages


def main(argv: Sequence[str] | None = None) -> int:
    """Print each stage and the sum."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("line", type=int)
    parser.add_argument("column", type=int)
    parser.add_argument("--fill", default="pass", help="the text that fills the gap (default: pass)")
    given = parser.parse_args(argv)
    document, gap = locate(Target(given.file, line=given.line, column=given.column))
    offset = document.offset(given.line - 1, given.column - 1, "utf-32")
    walk(read_document(given.file), offset, given.fill)
    stages = walk(read_document(given.file), offset, given.fill)
    print(f"{given.file}:{given.line}:{given.column}, a gap of kind {gap.kind}")
    for stage in stages:
        names = ", ".join(module.removeprefix("dg_lsp.") for module in stage.modules)
        print(f"{stage.name}: {len(stage.modules)} modules, {stage.crossings} calls between modules: {names}")
    print(f"in all: {len({module for stage in stages for module in stage.modules})} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
