"""Rests of lines in other languages, filled with the file alone as the project: how many are exactly right.

    python -m benchmarks.languages FOLDER LANGUAGE --count 100 --checkpoint small

FOLDER has sources of one language, such as those of benchmarks/fetch_sources.sh. The holes are chosen by a hash of
their files' paths, one a file while there are enough, so that they are the same each time.
"""

import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import torch

from benchmarks import parser_of
from benchmarks.judge import hash_of
from benchmarks.judging import examples, load_as_engine
from dg_lsp.bench.holes import Case, case_at
from dg_lsp.context import prompt
from dg_lsp.context.index import Index
from dg_lsp.context.retrieve import search
from dg_lsp.context.unimported import unimported
from dg_lsp.gaps.find import NoGap
from dg_lsp.model.judge import chances_of
from dg_lsp.reasons import OutOfTime
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document, DocumentError
from dg_lsp.source.language import load_language

SUFFIXES = {"typescript": ".ts", "go": ".go", "rust": ".rs", "java": ".java"}
_WORD = re.compile(r"\w+|[^\w\s]+")
# Parts of the types of nodes that are no code.
_PROSE = ("comment", "string", "template", "escape")


def holes(folder: Path, language: str) -> Iterator[Case]:
    """A hole of each file below `folder`, in the order of a hash of its path, and then another one of each."""
    paths = [
        p for p in folder.rglob(f"*{SUFFIXES[language]}") if p.is_file() and not p.name.endswith(".d.ts")
    ]
    paths.sort(key=lambda path: hash_of(path.relative_to(folder).as_posix()))
    for turn in range(10):
        for path in paths:
            if not 1_000 < path.stat().st_size < 100_000:
                continue
            try:
                document = Document(path.as_uri(), language, 0, path.read_bytes())
                name = f"{path.relative_to(folder).as_posix()} {turn}"
                yield case_at(document, "rest_of_line", *_cut(document, name))
            except OutOfTime as error:
                print(f"left out {path}: {error}", file=sys.stderr)
            except (DocumentError, UnicodeDecodeError, NoGap, LookupError):
                continue


def _cut(document: Document, name: str) -> tuple[int, int]:
    """The bytes of the rest of a line of code, from some word on that is not its first, chosen by a hash of `name`.

    Raises:
        LookupError: the document has no such line. OutOfTime: it takes too long to read.
    """
    root = load_language(str(document.language)).parse(document.data).root_node
    lines = document.data.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for attempt in range(50):
        chosen = crc32(f"{name} {attempt}".encode())
        number = chosen % len(lines)
        text = lines[number].decode("utf-8").rstrip("\r\n")
        words = [m.start() for m in _WORD.finditer(text)][1:]
        words = [at for at in words if len(text[at:].strip()) >= 3]
        if not words:
            continue
        start = starts[number] + len(text[: words[chosen // 7 % len(words)]].encode())
        node = root.descendant_for_byte_range(start, start + 1)
        prose = node is None or any(part in node.type for part in _PROSE)
        if not prose and not text.lstrip().startswith(("//", "*", "/*")):
            return start, starts[number] + len(text.encode())
    raise LookupError


def interval(hits: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson (1927)."""
    z = 1.96
    middle, width = hits + z * z / 2, z * math.sqrt(hits * (count - hits) / count + z * z / 4)
    return (middle - width) / (count + z * z), (middle + width) / (count + z * z)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("language", choices=SUFFIXES)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--checkpoint", default="small")
    given = parser.parse_args()
    torch.set_num_threads(1)
    model = load_as_engine(given.checkpoint)
    right, shown = list[bool](), list[bool]()
    for case, _ in zip(holes(given.folder.resolve(), given.language), range(given.count), strict=False):
        request = prompt.build(case.document, case.gap, Settings())
        request = replace(request, unimported=unimported(case.document, case.gap))
        request = replace(request, retrieved=search(case.document, case.gap, Index()).texts)
        found = list(examples(model, request, case.truth))[-1]
        chances = chances_of(model.judge[found.situation], found.rows) if found.rows else []
        best = chances.index(max(chances)) if chances else -1
        right.append(best >= 0 and best == found.right)
        if best >= 0 and max(chances) >= Settings().confidence and len(found.texts[best]) >= 4:
            shown.append(right[-1])
        said = found.texts[best] if best >= 0 else ""
        print(
            json.dumps({"hole": case.name, "right": right[-1], "said": said, "truth": case.truth}), flush=True
        )
    low, high = interval(sum(right), len(right))
    print(f"{given.language}, {len(right)}: exact {sum(right) / len(right):.1%} [{low:.1%}, {high:.1%}]")
    print(
        f"shown from {Settings().confidence:.0%} and four characters: {len(shown)}, of them right {sum(shown)}"
    )


if __name__ == "__main__":
    main()
