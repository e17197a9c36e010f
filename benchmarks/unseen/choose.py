"""Choose the holes of an unseen list, and read them again with what the rest of their project holds.

    python -m benchmarks.unseen.choose new FOLDER --before BEFORE

FOLDER and BEFORE are what `fetch` filled. Lists name files relative to FOLDER, so that they hold on every machine.
"""

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

from benchmarks.unseen.fetch import LISTS, read_pins
from dg_lsp.bench import lists
from dg_lsp.bench.holes import Case
from dg_lsp.text.documents.document import Document
from dg_lsp.training.corpus import is_code
from dg_lsp.training.heldout import long_lines, read_text, share

KINDS = ("rest_of_line", "expression", "statement", "function_body")
COUNTS = {"new": (300, 300, 300, 200), "fit": (400, 400, 400, 200)}
FILES = {"new": 10, "fit": 15}  # of a package, so that no large one dominates
_SEED = 2026
_SKIPPED = {
    *("test", "tests", "testing", "_tests", "vendor", "_vendor", "vendored", "_vendored"),
    *("migrations", "native", "locale", "data"),
}
_MOVED = 0.15  # share of long lines that a new module may have from code that was there before
_COPY = 0.3  # share of lines that makes a file of the same project a copy


def list_path(name: str) -> Path:
    """The path of the list of holes `name`, one of LISTS."""
    return Path(__file__).with_name(f"{name}.json")


def read_cases(name: str, folder: Path, kinds: Sequence[str] = KINDS, count: int = 1000) -> list[Case]:
    """The first `count` holes of each of `kinds` in the list `name`; `folder` is what `fetch` filled."""
    with chdir(folder):
        return lists.read(list_path(name), kinds, count)[0]


def others(path: Path, root: Path) -> list[Path]:
    """The Python files below `root` that may be looked up for a hole in the file `path`.

    Left out are that file and all that share 30 % of their non-blank lines with it, or it with them.
    """
    own = _lines(path)
    return [
        other
        for other in sorted(root.rglob("*.py"))
        if other.resolve() != path.resolve() and not _is_copy(own, _lines(other))
    ]


def choose(name: str, folder: Path, before: Path | None, known: Sequence[Path]) -> list[Case]:
    """The holes of the list `name` in the packages in `folder`.

    1. Take files that are written by hand and no tests.  2. Drop those that stand in `before` under the same name or
    repeat what stands there or in `known`, folders that training has read.  3. Draw some of each package.
    4. Spread the holes over them.
    """
    seen = set[int]().union(*(_long_lines_below(path) for path in known))
    documents: list[Document] = []
    for pin in read_pins(name):
        old = before / pin.name if before else None
        earlier = seen | _long_lines_below(old) if old else seen
        found = []
        for path in sorted((folder / pin.name).rglob("*.py")):
            inside = path.relative_to(folder / pin.name)
            text = read_text(path)
            # 1. and 2.
            if not text or not _is_wanted(inside, text) or (old and (old / inside).exists()):
                continue
            if share(long_lines(text), earlier) <= _MOVED:
                uri = path.relative_to(folder).as_posix()
                found.append(Document(uri, "python", 0, text.encode("utf-8")))
        # 3.
        drawn = random.Random(f"{pin.name} {_SEED}").sample(found, min(FILES[name], len(found)))
        documents += sorted(drawn, key=lambda document: document.uri)
    # 4.
    pairs = zip(KINDS, COUNTS[name], strict=True)
    return [case for kind, count in pairs for case in lists.choose(documents, [kind], count, _SEED)]


def _is_wanted(inside: Path, text: str) -> bool:
    """Whether a file is written by hand, no test, and long enough to have something to fill."""
    is_test = inside.name.startswith(("test_", "conftest", "_version", "version"))
    return (
        _SKIPPED.isdisjoint(inside.parts[:-1])
        and not is_test
        and len(text.splitlines()) >= 40
        and is_code(text)
    )


def _long_lines_below(root: Path) -> set[int]:
    """The hashes of the long lines of all Python files below `root`."""
    return set[int]().union(*(long_lines(read_text(path) or "") for path in root.rglob("*.py")))


def _lines(path: Path) -> Counter[str]:
    """The lines of a file that are not blank, without the white space round them, and how often each stands there."""
    return Counter(line.strip() for line in (read_text(path) or "").splitlines() if line.strip())


def _is_copy(one: Counter[str], other: Counter[str]) -> bool:
    """Whether the smaller of the two has 30 % of its lines in the larger."""
    common, least = (one & other).total(), min(one.total(), other.total())
    return least > 0 and common >= _COPY * least


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("list", choices=LISTS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--before", type=Path, help="the same packages in their last version of 2025")
    parser.add_argument("--known", type=Path, nargs="*", default=[], help="folders that training has read")
    given = parser.parse_args()
    cases = choose(given.list, given.folder, given.before, given.known)
    lists.write(list_path(given.list), cases)
    files = Counter(case.document.uri for case in cases)
    packages = Counter(uri.split("/")[0] for uri in files)
    print(dict(Counter(case.kind for case in cases)), f"{len(files)} files of {len(packages)} packages")
    print(dict(packages))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
