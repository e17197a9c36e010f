"""Lists of holes, so that a number can be measured again: the shipped list, and those that users write.

A list names each file with its sha256 and each hole with its bytes; files that differ are skipped. Knows files and
holes; knows no engine.
"""

import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from dg_lsp.bench.files import read_listed
from dg_lsp.bench.holes import Case, case_at, make_cases, span_of, whole_of
from dg_lsp.files.excluded import path_of
from dg_lsp.files.writing import write_whole
from dg_lsp.settings import UsageError
from dg_lsp.source.document import Document, DocumentError

SHIPPED = "model/embedded/evaluation.json"


def shipped() -> Path:
    """The path of the list behind all published numbers of the embedded checkpoint, which never saw its files."""
    return Path(str(resources.files("dg_lsp") / SHIPPED))


def choose(documents: Sequence[Document], kinds: Sequence[str], count: int, seed: int) -> list[Case]:
    """At most `count` holes of each of `kinds` in `documents`; the same `seed` gives the same holes."""
    return [case for kind in kinds for case in make_cases(documents, kind, count, seed)]


def write(path: Path, cases: Sequence[Case]) -> None:
    """Write the list of `cases` to `path` as JSON, with a line for each file and each hole."""
    whole = {_name(case.document): whole_of(case) for case in cases}
    names = sorted(whole)
    files = [{"path": name, "sha256": hashlib.sha256(whole[name]).hexdigest()} for name in names]
    spans = [(c.kind, names.index(_name(c.document)), *span_of(c)) for c in cases]
    parts = [",\n".join(json.dumps(item) for item in part) for part in (files, spans)]
    write_whole(path, f'{{"files": [\n{parts[0]}\n],\n"holes": [\n{parts[1]}\n]}}\n'.encode())


def read(path: Path, kinds: Sequence[str], count: int) -> tuple[list[Case], list[str]]:
    """The first `count` holes of each of `kinds` in files that are here unchanged, and why other files are skipped.

    Raises:
        UsageError: `path` is no list of holes.
    """
    try:
        listed = json.loads(path.read_text("utf-8"))
        files = [(str(file["path"]), str(file["sha256"])) for file in listed["files"]]
        holes = [
            (str(kind), int(number), int(start), int(end)) for kind, number, start, end in listed["holes"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is no list of holes ({type(error).__name__}); --write-holes makes one"
        ) from error
    documents: dict[int, Document] = {}
    skipped = []
    for number, (name, digest) in enumerate(files):
        try:
            documents[number] = read_listed(name, digest)
        except (DocumentError, ValueError) as error:
            skipped.append(f"{name}: {error}")
    found: list[Case] = []
    for kind in kinds:
        like = [hole for hole in holes if hole[0] == kind and hole[1] in documents]
        found += [case_at(documents[number], kind, start, end) for _, number, start, end in like[:count]]
    return found, skipped


def _name(document: Document) -> str:
    """The name by which a list finds the file again: a path, or a name such as `package:jinja2/loaders.py`."""
    return path_of(document.uri) or document.uri
