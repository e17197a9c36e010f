"""Tasks cut like those of HumanEval-Infilling: how they are cut, and how many true solutions the product keeps."""

import random
from pathlib import Path

import pytest

from benchmarks import spans

SOURCE = '''\
import os


class A:
    def first(self):
        """Say nothing."""
        # At first.
        if self:
            return 1

        return os.name

    def second(self): return 2
'''
BODY = "        # At first.\n        if self:\n            return 1\n\n        return os.name\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_text(SOURCE)
    return path


def test_a_body_is_the_lines_behind_the_docstring(file: Path) -> None:
    (function,) = spans.functions_of(file)
    assert function.name == "first"
    assert function.text[slice(*function.body)] == BODY
    alone = function.alone()
    assert alone.text.startswith("    def first") and alone.text[slice(*alone.body)] == BODY


@pytest.mark.parametrize("kind", spans.CUTS)
def test_a_task_is_the_text_in_three_parts_and_the_same_seed_gives_it_again(file: Path, kind: str) -> None:
    made = [spans.make_records([file], kind, 2, seed) for seed in range(20)]
    assert made == [spans.make_records([file], kind, 2, seed) for seed in range(20)]
    records = [record for some in made for record in some]
    assert len({record["canonical_solution"] for record in records}) > 3
    for record in records:
        assert record["prompt"] + record["canonical_solution"] + record["suffix"] == SOURCE
        assert record["canonical_solution"].strip() and record["canonical_solution"] in BODY


def test_lines_are_whole_and_at_their_ends_not_blank() -> None:
    chance = random.Random(0)
    lines = {BODY[slice(*found)] for _ in range(99) if (found := spans.single_line(BODY, chance))}
    assert lines == {line for line in BODY.splitlines(keepends=True) if line.strip()}
    for _ in range(99):
        found = spans.multi_line(BODY, chance)
        assert found is not None
        first, *_, last = BODY[slice(*found)].splitlines()
        assert first in BODY.splitlines() and last in BODY.splitlines() and first.strip() and last.strip()


def test_one_line_is_no_task_of_several() -> None:
    assert spans.multi_line("    return 1\n", random.Random(0)) is None


# Out of 600, 600 and 200 tasks of the bars so many may be lost: none, 2 % and 2 %.
BARS = {"SingleLine": 1.0, "MultiLine": 0.98, "RandomSpanLight": 0.98}


@pytest.mark.parametrize("kind", BARS)
def test_true_solutions_survive_the_whole_way_to_an_edit(kind: str) -> None:
    records = spans.make_records(spans.standard_library(), kind, 60, 2, "function")
    assert len(records) == 60
    refused = [(case.name, said) for case, said in spans.verdicts(records) if said != "survives"]
    assert len(refused) <= (1 - BARS[kind]) * len(records), refused
