"""Fit the judge of candidates on holes in real files, and see how it would have done on others.

    python -m benchmarks.judge collect LIST FOLDER OUT --count 250     # the candidates of each hole, two lines of JSON
    python -m benchmarks.judge fit OUT --to judge.json                 # the weights
    python -m benchmarks.judge report OUT --weights judge.json         # on holes that had no part in the fit

LIST is `shipped`, `new` or `fit` (benchmarks/unseen), FOLDER has the files of the last two. Holes that are in OUT
already are left out, so that a run can be continued.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from benchmarks import parser_of
from benchmarks.judging import Example, examples, fit, fit_together, load_as_engine
from benchmarks.unseen.fetch import list_path
from benchmarks.unseen.projects import Projects, key_of
from dg_lsp.bench import lists
from dg_lsp.context import prompt
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.judge import chances_of
from dg_lsp.settings import Settings

KINDS = ("rest_of_line", "expression", "statement")


def collect(name: str, folder: Path, out: Path, count: int, model: Checkpoint) -> None:
    """Write the Examples of `count` holes of each kind of the list `name`."""
    projects = Projects(folder)
    known = {json.loads(line)["key"] for line in out.open()} if out.exists() else set()
    path = lists.shipped() if name == "shipped" else list_path(name)
    os.chdir(folder)
    cases = [case for kind in KINDS for case in lists.read(path, [kind], count)[0]]
    # File by file, since an index is made for each, but in no order of packages: a run may be ended early.
    cases.sort(key=lambda case: hash_of(case.document.uri))
    with out.open("a", encoding="utf-8") as stream:
        for case in (c for c in cases if key_of(c) not in known):
            request = projects.request(case, prompt.build(case.document, case.gap, Settings()))
            for stage, found in enumerate(examples(model, request, case.truth)):
                row = {
                    "key": key_of(case),
                    "kind": case.kind,
                    "stage": stage,
                    "truth": case.truth,
                    **asdict(found),
                }
                stream.write(json.dumps(row) + "\n")
            stream.flush()


def hash_of(text: str) -> int:
    """A number that mixes the order of names, the same in each run."""
    return int.from_bytes(text.encode()[::-7][:8], "big") * 2654435761 % (1 << 32)


def read(out: Path) -> list[tuple[str, int, str, Example]]:
    """The kind, the stage, the key and the Example of each line of `out`."""
    rows = [json.loads(line) for line in out.open(encoding="utf-8")]
    return [
        (
            r["kind"],
            r["stage"],
            r["key"],
            Example(r["situation"], tuple(r["texts"]), tuple(r["rows"]), r["right"]),
        )
        for r in rows
    ]


def report(rows: Sequence[tuple[str, int, str, Example]], weights: dict[str, dict[str, float]]) -> None:
    """Print for each kind: the share of truths among the candidates, that of truths chosen, and that of texts shown."""
    for stage in (0, 1):
        for kind in KINDS:
            found = [e for k, s, _, e in rows if k == kind and s == stage]
            if not found:
                continue
            rated = [chances_of(weights[e.situation], e.rows) if e.rows else [0.0] for e in found]
            best = np.array([max(range(len(r)), key=r.__getitem__) for r in rated])
            chance = np.array([r[b] for r, b in zip(rated, best, strict=True)])
            right = np.array([e.right == b for e, b in zip(found, best, strict=True)])
            long = np.array(
                [len(e.texts[b]) >= 4 if e.texts else False for e, b in zip(found, best, strict=True)]
            )
            union = np.mean([e.right >= 0 for e in found])
            name = "late" if stage else "early"
            print(f"{name:5} {kind:13} {len(found):4} among {union:.3f} exact {right.mean():.3f}", end="")
            for limit in (0.2, 0.3, 0.4, 0.5):
                shown = (chance >= limit) & long
                good = right[shown].mean() if shown.any() else 0
                print(f"   >={limit}: {shown.mean():.2f} shown, {good:.2f} right", end="")
            print(f"   said {chance.mean():.3f}")


def main() -> None:
    parser = parser_of(__doc__)
    sub = parser.add_subparsers(dest="do", required=True)
    one = sub.add_parser("collect")
    one.add_argument("name")
    one.add_argument("folder", type=Path)
    one.add_argument("out", type=Path)
    one.add_argument("--count", type=int, default=250)
    one.add_argument("--checkpoint", default="embedded")
    one.add_argument("--device", default="cpu")
    two = sub.add_parser("fit")
    two.add_argument("out", type=Path, nargs="+")
    two.add_argument("--to", type=Path, required=True)
    two.add_argument("--decay", type=float, default=0.02)
    two.add_argument("--together", action="store_true", help="the same weights for all situations")
    three = sub.add_parser("report")
    three.add_argument("out", type=Path)
    three.add_argument("--weights", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.do == "collect":
        model = load_as_engine(given.checkpoint, given.device)
        collect(given.name, given.folder.resolve(), given.out.resolve(), given.count, model)
    elif given.do == "fit":
        found = [e for out in given.out for *_, e in read(out)]
        weights = (fit_together if given.together else fit)(found, given.decay)
        given.to.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
    else:
        report(read(given.out), json.loads(given.weights.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
