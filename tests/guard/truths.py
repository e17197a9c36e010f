"""True fills of real files, whole or damaged, and the checks that they pass."""

import random
import re
from collections.abc import Iterator

from benchmarks.gaps.sources import find_corpus
from benchmarks.gaps.truth import truth_of
from dg_lsp.context import prompt
from dg_lsp.gaps.find import Gap, find_gap
from dg_lsp.gaps.gap import Edit
from dg_lsp.guard.check import faults_of_edit
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from tests.guard.faulty import faults

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
