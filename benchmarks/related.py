"""What retrieval alone gets right, and what an index of a large project costs.

    python -m benchmarks.related --cases 300
    python -m benchmarks.related --files 2000

The first takes the shipped holes, each with the rest of its package as the project; the hole's own file on disk and any
file that shares 30 % of its lines are left out. The second reads so many installed files, each as it is, then types at
random places of random files. Times are those of the processor, so that other programs on the machine do not count.
"""

import argparse
import random
import sysconfig
import time
import tracemalloc
from collections import Counter
from pathlib import Path

from dg_lsp.bench import lists
from dg_lsp.bench.projects import project_of
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import find_gap
from dg_lsp.text.related.index import LARGEST, Index
from dg_lsp.text.related.retrieve import retrieve

KINDS = ("rest_of_line", "expression", "statement")


def hits(cases: int) -> None:
    """Print the share of holes whose true text comes first, and that of those where it is among the candidates."""
    counts: Counter[tuple[str, str]] = Counter()
    for case in lists.read(lists.shipped(), KINDS, cases)[0]:
        found = [one.text.strip() for one in retrieve(case.document, case.gap, project_of(case))]
        truth = case.truth.strip()
        counts[case.kind, "holes"] += 1
        counts[case.kind, "first"] += found[:1] == [truth]
        counts[case.kind, "among"] += truth in found
    for kind in KINDS:
        holes = counts[kind, "holes"]
        print(kind, holes, *(f"{name} {counts[kind, name] / holes:.1%}" for name in ("first", "among")))


def costs(count: int, keys: int) -> None:
    """Print the bytes of an index of `count` files, and the times of building, of an update, and of a look-up."""
    chance = random.Random(0)
    paths = [p for p in Path(sysconfig.get_path("purelib")).rglob("*.py") if 0 < p.stat().st_size <= LARGEST]
    texts = {path.as_uri(): path.read_bytes() for path in chance.sample(sorted(paths), count)}
    index, began = Index(), time.process_time()
    tracemalloc.start()
    left_out = sum(not index.put(uri, "python", data) for uri, data in texts.items())
    # The texts themselves were read before; the index holds them from now on.
    held = tracemalloc.get_traced_memory()[0] + index.bytes
    tracemalloc.stop()
    print(
        f"{len(index)} files, {index.bytes / 1e6:.1f} MB of text, {left_out} left out; {held / 1e6:.1f} MB in all"
    )
    print(f"built in {time.process_time() - began:.1f} s, with the measuring of memory")
    updates, lookups = [], []
    for uri in chance.choices([uri for uri in texts if index.holds(uri, texts[uri])], k=keys):
        data = texts[uri]
        at = chance.randrange(len(data))
        began = time.process_time()
        index.put(uri, "python", data[:at] + b"x" + data[at:])
        updates.append(time.process_time() - began)
        document = Document(uri, "python", 0, data)
        gap = find_gap(document, data.rfind(b"\n", 0, at) + 1, "rest_of_line")
        began = time.process_time()
        retrieve(document, gap, index)
        lookups.append(time.process_time() - began)
    for name, times in (("update", sorted(updates)), ("look-up", sorted(lookups))):
        print(name, *(f"p{part} {times[len(times) * part // 100] * 1e3:.2f} ms" for part in (50, 95, 99)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=0, help="holes of each kind")
    parser.add_argument("--files", type=int, default=0, help="files in the index")
    parser.add_argument("--keys", type=int, default=200, help="updates that are timed")
    arguments = parser.parse_args()
    if arguments.cases:
        hits(arguments.cases)
    if arguments.files:
        costs(arguments.files, arguments.keys)
