"""Holes in real files, with what stood in them: the cases of `dg-lsp bench`.

Knows files and the text layer; knows no engine.
"""

import hashlib
import importlib.util
import io
import json
import random
import re
import sysconfig
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from dg_lsp.text.document import Document, DocumentError, read_document
from dg_lsp.text.gaps import Gap, NoGap, find_gap, find_gaps
from dg_lsp.text.messages import Kind

_LONGEST = 10  # lines of a function body


@dataclass(frozen=True, slots=True)
class Case:
    """A gap in a document, and the `truth` that stood in it. `name` says where it is."""

    name: str
    document: Document
    gap: Gap
    truth: str


@dataclass(frozen=True, slots=True)
class Located:
    """The held-out files found on this machine, and why others were left out."""

    documents: tuple[Document, ...]
    skipped: tuple[str, ...]


def find_heldout() -> Located:
    """The files that the embedded checkpoint was not trained on, those whose sha256 is as listed."""
    listing = json.loads((resources.files("dg_lsp") / "engine/embedded/heldout.json").read_text("utf-8"))
    documents, skipped = [], []
    for entry in listing["files"]:
        path = place_of(entry["path"])
        if path is None or not path.is_file():
            skipped.append(f"{entry['path']}: not installed")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            skipped.append(f"{entry['path']}: another version")
        else:
            documents.append(replace(read_document(path), uri=entry["path"]))
    return Located(tuple(documents), tuple(skipped))


def place_of(name: str) -> Path | None:
    """The path of `stdlib:textwrap.py` or `package:jinja2/loaders.py` here; None where there is none.

    Raises:
        ValueError: `name` begins with neither `stdlib:` nor `package:`.
    """
    where, _, inside = name.partition(":")
    if where == "stdlib":
        return Path(sysconfig.get_path("stdlib")) / inside
    if where != "package":
        raise ValueError(f"{name!r} must begin with stdlib: or package:")
    top, _, rest = inside.partition("/")
    spec = importlib.util.find_spec(top.removesuffix(".py"))
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin else None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0]) / rest if folders else None


def read_files(paths: Sequence[str]) -> Located:
    """Files of one's own choice; those that cannot be read are skipped, with the reason."""
    documents, skipped = [], []
    for path in paths:
        try:
            documents.append(read_document(Path(path)))
        except (DocumentError, ValueError) as error:
            skipped.append(str(error))
    return Located(tuple(documents), tuple(skipped))


def make_cases(documents: Sequence[Document], kind: Kind, count: int, seed: int) -> list[Case]:
    """At most `count` holes of one kind, spread over the documents as evenly as they allow.

    The same documents, kind, count and seed give the same holes.
    """
    chance = random.Random(f"{kind} {seed}")
    make = _bodies if kind == "function_body" else _rests
    sources = [make(document, chance) for document in chance.sample(list(documents), len(documents))]
    cases: list[Case] = []
    while sources and len(cases) < count:
        for source in list(sources):
            case = next(source, None)
            if case is None:
                sources.remove(source)
            elif len(cases) < count:
                cases.append(case)
    return cases


def _bodies(document: Document, chance: random.Random) -> Iterator[Case]:
    """Written function bodies of at most `_LONGEST` lines, in random order; docstrings are outside."""
    gaps = [g for g in find_gaps(document, 0, len(document.data)) if not g.stub]
    for gap in chance.sample(gaps, len(gaps)):
        truth = document.data[gap.start : gap.end].decode("utf-8")
        if truth.strip() and len(truth.splitlines()) <= _LONGEST:
            yield Case(_name(document, gap.start), document, gap, truth)


def _rests(document: Document, chance: random.Random) -> Iterator[Case]:
    """Lines cut at a random token, what follows removed: the gap is where a typing person's cursor is."""
    by_line = _cuts(document.text)
    for line in chance.sample(sorted(by_line), len(by_line)):
        start = document.offset(line, chance.choice(by_line[line]), "utf-32")
        end = document.offset(line, 1_000_000_000, "utf-32")
        truth = document.data[start:end].decode("utf-8")
        holed = replace(document, data=document.data[:start] + document.data[end:])
        try:
            gap = find_gap(holed, start, "rest_of_line")
        except NoGap:
            continue
        yield Case(_name(document, start), holed, gap, truth)


def _cuts(text: str) -> dict[int, list[int]]:
    """For each line of code (from 0) the columns at which it may be cut.

    Those are where a token begins, but not the line's first, and at least three characters are left.
    Lines with a comment or with a part of a string of several lines are left out, as their rest is prose.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    cuts: dict[int, list[int]] = {}
    prose: set[int] = set()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return {}
    for token in tokens:
        (row, column), (last, _) = token.start, token.end
        if token.type == tokenize.COMMENT or last > row:
            prose.update(range(row - 1, last))
        elif (
            token.string.strip()
            and lines[row - 1][:column].strip()
            and len(lines[row - 1][column:].strip()) >= 3
        ):
            cuts.setdefault(row - 1, []).append(column)
    return {line: columns for line, columns in cuts.items() if line not in prose}


def _name(document: Document, offset: int) -> str:
    return f"{document.uri}:{document.position(offset, 'utf-8')[0] + 1}"
