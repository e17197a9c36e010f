"""Fill the holes of a list with the dg_lsp that PYTHONPATH names, this commit's or an older one's; a JSON line a hole.

    PYTHONPATH=CHECKOUT python -P benchmarks/worth_run.py LIST OUT --kinds KINDS --count N

`worth.py` calls it; it uses nothing that older commits lack, and looks for what they do. The names in LIST are relative
to the current folder. Holes that stand in OUT already are not filled again.
"""

import argparse
import asyncio
import importlib.util
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dg_lsp.bench import lists
from dg_lsp.bench.files import installed_path
from dg_lsp.bench.holes import Case
from dg_lsp.bench.measure import score_of
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.fill import finish
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import find_gaps
from dg_lsp.text.gaps.gap import apply_edit
from dg_lsp.text.messages import Fill, Infill
from dg_lsp.text.prompts import prompt

_BLOCK = 60


class Projects:
    """The index of the project that the last hole was in, where the code has one; holes come file by file."""

    def __init__(self, folder: Path, use: bool) -> None:
        self._folder = folder.resolve()
        self.indexes: dict[Path, Any] = {}
        self._allowed: dict[Path, set[Path]] = {}
        self.there = use and importlib.util.find_spec("dg_lsp.text.related") is not None

    def request(self, case: Case, request: Infill) -> Infill:
        """`request` with what the rest of the project says; the hole's own file and its copies are left out."""
        if not self.there:
            return request
        retrieve: Any = importlib.import_module("dg_lsp.text.related.retrieve")
        path = self.path_of(case)
        return replace(request, retrieved=retrieve.retrieve(case.document, case.gap, self.indexes[path]))

    def prepare(self, case: Case) -> None:
        """Read the project of `case`, which no request waits for: an editor has done it when the folder was opened."""
        path = self.path_of(case)
        if not self.there or path in self.indexes:
            return
        index: Any = importlib.import_module("dg_lsp.text.related.index")
        choose: Any = importlib.import_module("benchmarks.unseen.choose")
        self.indexes = {path: index.Index()}  # one at a time: memory
        for other in choose.others(path, self.root_of(path)):
            self.indexes[path].put(other.as_uri(), "python", other.read_bytes())

    def path_of(self, case: Case) -> Path:
        """The file of a hole, installed or below the folder."""
        uri = case.document.uri
        if uri.startswith("file:"):
            return Path(unquote(urlsplit(uri).path))
        found = installed_path(uri)
        assert found is not None  # the list's reader has found it
        return found.resolve()

    def root_of(self, path: Path) -> Path:
        """The folder of the project: the first below the given one, or the installed package."""
        if path.is_relative_to(self._folder):
            return self._folder / path.relative_to(self._folder).parts[0]
        root = path.parent
        while (root.parent / "__init__.py").exists():
            root = root.parent
        return root


def key_of(case: Case) -> str:
    """What names a hole in every commit: its kind, file and place."""
    return f"{case.kind} {case.document.uri} {case.gap.start}"


async def results(
    cases: list[Case], engine: LocalEngine, settings: Settings, projects: Projects, alternatives: int = 1
) -> AsyncIterator[dict[str, Any]]:
    """What became of each hole."""
    for case in cases:
        projects.prepare(case)
        start = time.perf_counter()
        request = projects.request(case, prompt.build(case.document, case.gap, settings))
        request = replace(request, alternatives=alternatives)
        fill = Fill("", refusal="the engine gave no answer")
        async with aclosing(engine.infill(request)) as events:
            async for event in events:
                if isinstance(event, Fill):
                    fill = event
        outcome = finish(case.document, case.gap, fill)
        spent = (time.perf_counter() - start) * 1000
        score = score_of(case, "searched", outcome.edit, fill)
        yield {
            "key": key_of(case),
            "kind": case.kind,
            "text": outcome.edit.text if outcome.edit else "",
            "truth": case.truth,
            "offered": score.offered,
            "exact": score.exact,
            "parses": score.parses,
            "partial": bool(getattr(fill, "partial", False)),
            "chance": getattr(fill, "chance", None),
            "source": getattr(fill, "source", ""),
            "milliseconds": round(spent, 1),
            "why": outcome.why,
            **({"filled": score.filled, "others": _others(case, outcome)} if case.gap.stub else {}),
        }


def _others(case: Case, outcome: Any) -> list[str]:
    """The document with each further fill."""
    return [apply_edit(case.document, edit).data.decode() for edit in getattr(outcome, "others", ())]


def in_blocks(cases: list[Case]) -> list[Case]:
    """The holes in blocks of 60 of each kind, so that a run that was ended early has measured all kinds alike.

    A block's holes follow each other file by file.
    """
    kinds, files, places = Counter[str](), dict[str, int](), list[tuple[int, int]]()
    for case in cases:
        places.append((kinds[case.kind] // _BLOCK, files.setdefault(case.document.uri, len(files))))
        kinds[case.kind] += 1
    return [cases[n] for n in sorted(range(len(cases)), key=lambda n: places[n])]


def stubs(path: Path) -> Iterator[Case]:
    """The stubs that a list of files with their texts names, each at the byte where it begins."""
    for item in json.loads(path.read_text("utf-8")):
        data, start = item["text"].encode("utf-8"), item["start"]
        document = Document(Path(item["path"]).as_uri(), "python", 0, data)
        gap = next(
            gap for gap in find_gaps(document, 0, len(data)) if gap.start <= start <= gap.end and gap.stub
        )
        yield Case(item["path"], "function_body", document, gap, item["truth"])


def read(given: argparse.Namespace) -> Iterator[Case]:
    """The holes that are not in `given.out` yet; stubs in their order."""
    if given.stubs:
        yield from stubs(given.stubs)
        return
    done = set()
    if given.out.exists():
        done = {json.loads(line)["key"] for line in given.out.read_text("utf-8").splitlines()}
    path = lists.shipped() if given.list == "shipped" else Path(given.list)
    cases, skipped = lists.read(path, given.kinds.split(","), given.count)
    if skipped:
        print(f"{len(skipped)} files skipped, such as {skipped[0]}", file=sys.stderr)
    yield from (case for case in in_blocks(cases) if key_of(case) not in done)


async def run(given: argparse.Namespace) -> None:
    """Append a line to `given.out` for each hole; the first fill is made twice, since a model's first one is slow."""
    settings = Settings(threads=1, checkpoint=given.checkpoint)
    cases = list(read(given))
    projects = Projects(Path.cwd(), given.related == "yes")
    engine = LocalEngine.open(settings)
    try:
        async for _ in results(cases[:1], engine, settings, projects):
            pass
        with given.out.open("a", encoding="utf-8") as out:
            async for result in results(cases, engine, settings, projects, given.alternatives):
                out.write(json.dumps(result, ensure_ascii=False) + "\n")
                out.flush()
    finally:
        await engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("list", help="a list of holes, or `shipped`")
    parser.add_argument("out", type=Path)
    parser.add_argument("--kinds", default="rest_of_line,expression,statement")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--stubs", type=Path, help="fill these stubs instead of the list's holes")
    parser.add_argument("--related", choices=("yes", "no"), default="yes")
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--alternatives", type=int, default=1)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
