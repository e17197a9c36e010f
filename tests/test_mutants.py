"""The mutants fit the code as it is, so that `make mutants` breaks what it means to break."""

import ast
from pathlib import Path

from tests.mutants import MUTANTS, ROOT, Mutant, broken, places_of

CODE = "def f(a, b):\n    if a and not b:\n        return g(a, h(b))\n    return g(b)\n"
WRAPPED = """def f(
    a,
    b,
):
    if (
        a and not b  # a comment
    ):
        return g(
            a,
            h(b),
        )
    return g(b)
"""


def test_the_code_of_each_mutant_is_in_its_file_once() -> None:
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in {m.file for m in MUTANTS}}
    counts = {m.name: len(places_of(m.old, texts[m.file], Path(m.file).suffix)) for m in MUTANTS}
    assert {name: count for name, count in counts.items() if count != 1} == {}
    changed = {m.name: broken(m, texts[m.file]) for m in MUTANTS}
    assert [m.name for m in MUTANTS if changed[m.name] == texts[m.file]] == []
    for mutant in MUTANTS:
        if mutant.file.endswith(".py"):
            ast.parse(changed[mutant.name])


def test_code_is_found_however_it_is_laid_out() -> None:
    mutant = Mutant(1, "", "f.py", "return g(a, h(b))\n", "return g(a)\n", "")
    assert broken(mutant, CODE) == CODE.replace("g(a, h(b))", "g(a)")
    assert ast.dump(ast.parse(broken(mutant, WRAPPED))) == ast.dump(ast.parse(broken(mutant, CODE)))
    assert len(places_of("a and not b", WRAPPED)) == len(places_of("a, h(", WRAPPED)) == 1
    assert places_of("a and b", CODE) == [] and len(places_of("g(", CODE)) == 2
    text = 'a = "met an error"\n'
    assert places_of("met an", text) == places_of("met an", text, ".lua") == [(5, 11)]


def test_the_tests_that_notice_mutants_exist() -> None:
    named = {m.name: m.test.split("[")[0].split("::") for m in MUTANTS}
    missing = [
        name for name, (file, test) in named.items() if f"def {test}(" not in (ROOT / file).read_text()
    ]
    assert missing == []
