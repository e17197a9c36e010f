"""The mutants fit the code as it is, so that `make mutants` breaks what it means to break."""

from tests.mutants import MUTANTS, ROOT


def test_the_text_of_each_mutant_stands_once_in_its_file() -> None:
    counts = {m.name: (ROOT / m.file).read_text(encoding="utf-8").count(m.old) for m in MUTANTS}
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_the_tests_that_notice_mutants_exist() -> None:
    named = {m.name: m.test.split("[")[0].split("::") for m in MUTANTS}
    missing = [
        name for name, (file, test) in named.items() if f"def {test}(" not in (ROOT / file).read_text()
    ]
    assert missing == []
