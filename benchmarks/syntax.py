"""How often the syntax check and the fitting of fills are right on the standard library's functions and lines.

Run it by hand: `python -m benchmarks.syntax --positions 200`. A fill is the true text, whole or damaged.
"""

import argparse
import random
import re
from collections.abc import Iterator

from benchmarks.gaps.sources import find_corpus
from benchmarks.gaps.truth import truth_of
from benchmarks.gaps.valid import is_python
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills.check import faults, faults_of_edit
from dg_lsp.text.fills.fit import make_edit
from dg_lsp.text.gaps.find import Gap, find_gap
from dg_lsp.text.gaps.gap import Edit, apply_edit
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.prompts import prompt

CUT = Settings(prefix_bytes=2_000, suffix_bytes=500)


def stubbed(count: int, seed: int) -> Iterator[tuple[Document, Gap, str, str]]:
    """(document with a stub, its gap, the true body, what follows it in the file) for `count` functions."""
    rng = random.Random(seed)
    files = find_corpus("python", {}, max(count // 2, 20), seed).valid
    done = 0
    while done < count:
        data = rng.choice(files)
        found = truth_of(load_language("python"), data).of("function_body")
        if not found:
            continue
        body = rng.choice(found)
        document = Document("file:///case.py", "python", 0, data[: body.start] + b"pass" + data[body.end :])
        gap = find_gap(document, body.start, "function_body")
        done += 1
        yield document, gap, data[body.start : body.end].decode(), data[body.end :].decode()


def lines(count: int, seed: int) -> Iterator[tuple[Document, Gap, str]]:
    """(document without the rest of a line, its gap, that rest) for `count` places in functions."""
    rng = random.Random(seed)
    files = find_corpus("python", {}, max(count // 2, 20), seed).valid
    done = 0
    while done < count:
        data = rng.choice(files)
        starts = [m.span() for m in re.finditer(rb"[^\s#][^\n]*[^\s]", data)]
        start, end = rng.choice(starts)
        at = rng.randrange(start, end)
        if data[at] & 0xC0 == 0x80:
            continue
        document = Document("file:///case.py", "python", 0, data[:at] + data[end:])
        done += 1
        yield document, find_gap(document, at, "rest_of_line"), data[at:end].decode()


def damaged(fill: str, rng: random.Random) -> dict[str, str]:
    """`fill` with one bracket less, one more, or one line moved; only those that it lends itself to."""
    brackets = [
        m.start()
        for m in re.finditer(r"[()\[\]{}]", re.sub(r"(['\"]).*?\1|#.*", lambda m: "_" * len(m[0]), fill))
    ]
    found = {}
    if brackets:
        at = rng.choice(brackets)
        found["bracket deleted"] = fill[:at] + fill[at + 1 :]
        found["bracket doubled"] = fill[:at] + fill[at] + fill[at:]
    ends = [m.end() for m in re.finditer("\n", fill)]
    if ends:
        at = rng.choice(ends)
        found["line moved"] = fill[:at] + " " * rng.choice((1, 4)) + fill[at:]
    return found


def passes(document: Document, gap: Gap, fill: str) -> bool:
    """Whether the whole document passes with `fill`."""
    edit = Edit(gap.start, gap.end, gap.insert_before + fill + gap.insert_after)
    return not faults_of_edit(document, gap, edit)


def passes_cut(document: Document, gap: Gap, fill: str) -> bool:
    """Whether the part of the document that an engine would see passes with `fill`."""
    request = prompt.build(document, gap, CUT)
    return not faults(request.language, request.kind, request.prefix, fill, request.suffix)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    tally: dict[str, list[bool]] = {}

    def note(name: str, good: bool, *what: object) -> None:
        tally.setdefault(name, []).append(good)
        if not good and tally[name].count(False) <= options.show:
            print("---", name, *what, sep="\n")

    for document, gap, fill, after in stubbed(options.positions, options.seed):
        full = gap.insert_before + fill
        note("body: true fill passes", passes(document, gap, fill), full)
        note("body: true fill passes in the cut text", passes_cut(document, gap, fill), full)
        note("body: true fill is not changed", make_edit(document, gap, fill).text == full, full)
        long = make_edit(document, gap, fill + after[:300]).text
        note("body: over-long fill is cut at the true end", long == full, full, "=====", long)
        for name, broken in damaged(fill, rng).items():
            edit = Edit(gap.start, gap.end, gap.insert_before + broken)
            if not is_python(apply_edit(document, edit).data):
                note(f"body: {name} is found", not passes(document, gap, broken), broken)
    for document, gap, fill in lines(options.positions, options.seed):
        before = document.data[: gap.start].decode()[-300:]
        note("line: true fill passes", passes(document, gap, fill), before + "<<<" + fill + ">>>")
        note(
            "line: true fill passes in the cut text",
            passes_cut(document, gap, fill),
            before + "<<<" + fill + ">>>",
        )
        note(
            "line: true fill is not changed",
            make_edit(document, gap, fill).text == gap.insert_before + fill,
            fill,
        )
        for name, broken in damaged(fill, rng).items():
            if not is_python(apply_edit(document, Edit(gap.start, gap.end, broken)).data):
                note(
                    f"line: {name} is found",
                    not passes(document, gap, broken),
                    before + "<<<" + broken + ">>>",
                )
                note(f"line: {name} is found in the cut text", not passes_cut(document, gap, broken))
    for name, hits in tally.items():
        print(f"{100 * sum(hits) / len(hits):5.1f} % of {len(hits):4d}  {name}")


if __name__ == "__main__":
    main()
