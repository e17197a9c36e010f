"""Fills without a model: the true body and mutants of it."""

import ast
import random

from benchmarks.mutated import COUNT, fills_of, mutants

BODY = "if a is None:\n        return 3\n    x = f(a, b=1) + 2\n    return [x, 'ä'] if a or not (x and b and c) else x"


def test_each_mutant_is_a_body_that_differs_from_the_true_one_in_one_place() -> None:
    found = [*mutants(BODY, "    ")]
    whole = [ast.unparse(ast.parse(f"def f():\n    {text}\n")) for text in (*found, BODY)]
    assert len(found) == len({*whole}) - 1 > 12
    for changed in ("a is not None", "return 4", "f(a) + 2", "f(a, b=1) - 2", "[x]", "x and b)", "if True"):
        assert sum(changed in text for text in whole) == 1 + (changed == "if True"), changed


def test_an_f_string_stays_one() -> None:
    found = [*mutants('a = f"b{c + 1}d{e:>3}"\n    return a', "    ")]
    assert any("{c - 1}" in text for text in found)
    assert all("f'b{c" in text for text in found if "a = " in text)


def test_the_true_body_is_among_half_of_all_fills_and_none_is_there_twice() -> None:
    lists = [fills_of(BODY, "    ", random.Random(seed)) for seed in range(100)]
    assert all(len({*fills}) == len(fills) == COUNT for fills in lists)
    assert 30 < sum(BODY in fills for fills in lists) < 70
    assert {fills.index(BODY) for fills in lists if BODY in fills} == set(range(COUNT))
