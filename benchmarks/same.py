"""Whether two versions of the code make the same gaps, requests and edits: `python -m benchmarks.same FOLDER > FILE`.

Run it in both checkouts and compare the two files: one line a request, at places that the seed chooses among the
folder's files. No model is loaded; the edits are those of fixed texts.
"""

import argparse
import hashlib
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document, DocumentError, read_document
from dg_lsp.text.fills.check import harm_of
from dg_lsp.text.fills.fit import make_edit
from dg_lsp.text.gaps.find import Gap, NoGap, find_gap, find_gaps
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.prompts import prompt

# A longer file would be most of the time.
LONGEST = 200_000


def lines(document: Document, chosen: random.Random) -> Iterator[tuple[Document, Gap, str]]:
    """One line of `document` cut at any place, as if it were being typed, with its gap and what was cut."""
    filled = [n for n, line in enumerate(document.data.splitlines()) if line.strip()]
    if filled:
        line = chosen.choice(filled)
        start, end = document.line_starts[line], document.line_end(line)
        at = chosen.choice([n for n in range(start, end + 1) if document.data[n : n + 1] < b"\x80"])
        text = document.data[at:end].decode("utf-8", "replace")
        cut = Document(document.uri, document.language, 0, document.data[:at] + document.data[end:])
        with suppress(NoGap):
            yield cut, find_gap(cut, at), text


def bodies(document: Document, chosen: random.Random) -> Iterator[tuple[Document, Gap, str]]:
    """One function of `document`, with its body as the gap and the body's text."""
    gaps = find_gaps(document, 0, len(document.data))
    if gaps:
        gap = chosen.choice(gaps)
        yield document, gap, document.data[gap.start : gap.end].decode()


def told(document: Document, gap: Gap, text: str) -> str:
    """One line: the gap, its request as a digest, and the edit that `text` becomes, or why it must not be made."""
    infill = hashlib.sha256(repr(prompt.build(document, gap, Settings())).encode()).hexdigest()[:16]
    edit: Edit = make_edit(document, gap, text)
    return f"{document.uri} {astuple(gap)} {infill} {astuple(edit)} {harm_of(document, gap, edit)!r}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the lines of `--count` cut lines and as many bodies."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    chosen = random.Random(given.seed)
    paths = sorted(path for path in given.folder.rglob("*.*") if path.is_file())
    chosen.shuffle(paths)
    for places in (lines, bodies):
        left = given.count
        for path in paths:
            with suppress(DocumentError):
                document = read_document(path)
                for found in places(document, chosen) if len(document.data) <= LONGEST else ():
                    print(told(*found))
                    left -= 1
            if not left:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
