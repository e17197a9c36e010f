"""The mutants fit the code as it is, so that `make mutants` breaks what it means to break."""

from tests.mutants import MUTANTS, ROOT


def test_the_text_of_each_mutant_stands_once_in_its_file() -> None:
    counts = {m.name: (ROOT / m.file).read_text(encoding="utf-8").count(m.old) for m in MUTANTS}
    assert {name: count for name, count in counts.items() if count != 1} == {}
