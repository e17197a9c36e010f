"""Docstrings and spans of code that no network has seen, cut out and filled: what is offered, and how near it is.

    python -m benchmarks.prose FOLDER OUT --checkpoint NAME [--count N]

FOLDER is what `unseen.fetch` filled for the list `new`. A docstring is cut between its quotes, the function behind it
stays; a span is a line or a part of one, `lines` one to six whole lines or parts of two, of a function's body.
"""

import argparse
import ast
import difflib
import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.spans import functions_of
from benchmarks.unseen.choose import list_path
from dg_lsp.bench.holes import Case
from dg_lsp.filling.fill import finish
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import infill
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import Gap, NoGap, find_gap
from dg_lsp.text.gaps.gap import apply_edit
from dg_lsp.text.messages import Fill
from dg_lsp.text.prompts import prompt

_LINES, _LONG = 6, 100  # lines of a span of whole lines, characters of another


def documents(folder: Path) -> list[Document]:
    """The files of the list `new`, in random order."""
    names = [one["path"] for one in json.loads(list_path("new").read_text("utf-8"))["files"]]
    paths = [folder / name for name in names]
    found = [Document(path.as_uri(), "python", 0, path.read_bytes()) for path in paths if path.exists()]
    return random.Random(1).sample(found, len(found))


def docstrings(document: Document, chance: random.Random) -> Iterator[Case]:
    """The docstrings of the document's functions that have a body besides, as gaps between their quotes."""
    nodes = [
        n for n in ast.walk(ast.parse(document.data)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for node in chance.sample(nodes, len(nodes)):
        if ast.get_docstring(node) is None or len(node.body) < 2:
            continue
        first = node.body[0].value  # type: ignore[attr-defined]
        begin = document.line_starts[first.lineno - 1] + first.col_offset
        end = document.line_starts[first.end_lineno - 1] + first.end_col_offset
        if document.data[begin : begin + 3] == document.data[end - 3 : end] == b'"""' and end - begin > 6:
            truth = document.data[begin + 3 : end - 3].decode()
            holed = Document(document.uri, "python", 0, document.data[: begin + 3] + document.data[end - 3 :])
            try:
                gap = find_gap(holed, begin + 3)
            except NoGap:
                continue
            yield Case(f"{document.uri}:{first.lineno}", "docstring", holed, gap, truth)


def spans(document: Document, chance: random.Random) -> Iterator[Case]:
    """Spans of the document's functions: whole lines without the last line end, and parts of one or two lines."""
    path = Path(document.uri.removeprefix("file://"))
    for function in chance.sample(found := functions_of(path), len(found)):
        start, end = function.body
        body = function.text[start:end]
        lines = [n for n, line in enumerate(body.splitlines()) if line.strip()]
        if len(lines) < 2:
            continue
        begins = [0]
        for line in body.splitlines(keepends=True):
            begins.append(begins[-1] + len(line))
        if chance.random() < 2 / 3:
            first = chance.choice(lines)
            last = chance.choice([n for n in lines if first <= n < first + _LINES])
            span = begins[first], begins[last + 1]
        else:
            places = [
                n for n in range(1, len(body)) if body[n].isidentifier() and not body[n - 1].isidentifier()
            ]
            places = places or [0]
            first = chance.choice(places)
            span = first, first + chance.randint(10, _LONG)
            span = first, next((n for n in range(span[1], len(body)) if not body[n].isalnum()), len(body))
        text = body[span[0] : span[1]]
        left, right = start + span[0] + len(text) - len(text.lstrip()), start + span[0] + len(text.rstrip())
        if right <= left:
            continue
        data = function.text.encode()
        at, behind = len(function.text[:left].encode()), len(function.text[:right].encode())
        holed = Document(document.uri, "python", 0, data[:at] + data[behind:])
        above = function.text[function.text.rfind("\n", 0, left) + 1 : left]
        indent = above[: len(above) - len(above.lstrip())]
        gap = Gap(at, at, "span", indent, asked=True)
        truth = function.text[left:right]
        yield Case(
            f"{function.place} {function.name}", "lines" if "\n" in truth else "span", holed, gap, truth
        )


def cases(found: Sequence[Document], kind: str, count: int, seed: int) -> list[Case]:
    """At most `count` cases, spread over the documents."""
    chance, chosen = random.Random(f"{kind} {seed}"), list[Case]()
    make = docstrings if kind == "docstring" else spans
    sources = [make(document, chance) for document in found]
    while sources and len(chosen) < count:
        for source in list(sources):
            case = next((case for case in source if case.kind == kind), None)
            if case is None:
                sources.remove(source)
            elif len(chosen) < count:
                chosen.append(case)
    return chosen


def result(model: Checkpoint, case: Case) -> dict[str, Any]:
    """What became of a case."""
    begun, fill = time.perf_counter(), Fill("")
    request = prompt.build(case.document, case.gap, Settings(deadline=0))
    for event in infill(model, PrefixCache(model.network.config.text_config), request):
        if isinstance(event, Fill):
            fill = event
    seconds = time.perf_counter() - begun
    outcome = finish(case.document, case.gap, fill)
    text, truth = (outcome.edit.text if outcome.edit else "").strip(), case.truth.strip()
    parses = False
    if outcome.edit:
        try:
            ast.parse(apply_edit(case.document, outcome.edit).data)
            parses = True
        except (SyntaxError, ValueError):
            pass
    return {
        "case": case.name,
        "kind": case.kind,
        "text": text,
        "truth": truth,
        "offered": bool(text),
        "parses": parses,
        "exact": text == truth,
        "first": bool(text) and text.splitlines()[0].strip() == truth.splitlines()[0].strip(),
        "similar": difflib.SequenceMatcher(None, text, truth, autojunk=False).ratio() if text else 0.0,
        "similar_first": difflib.SequenceMatcher(
            None, text.splitlines()[0], truth.splitlines()[0], autojunk=False
        ).ratio()
        if text
        else 0.0,
        "seconds": round(seconds, 2),
        "why": outcome.why,
        "shortened": fill.shortened,
        "chance": fill.chance,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="docstring,span,lines")
    given = parser.parse_args()
    torch.set_num_threads(1)
    model, found = load_checkpoint(given.checkpoint, "cpu"), documents(given.folder)
    with given.out.open("w", encoding="utf-8") as out:
        for kind in given.kinds.split(","):
            rows = []
            for case in cases(found, kind, given.count, given.seed):
                rows.append(result(model, case))
                out.write(json.dumps(rows[-1], ensure_ascii=False) + "\n")
                out.flush()
            seconds = sorted(row["seconds"] for row in rows)
            names = ("offered", "parses", "exact", "first", "similar", "similar_first")
            shares = {name: round(statistics.fmean(float(row[name]) for row in rows), 3) for name in names}
            print(kind, len(rows), shares, "p50", seconds[len(seconds) // 2], "most", seconds[-1], flush=True)


if __name__ == "__main__":
    main()
