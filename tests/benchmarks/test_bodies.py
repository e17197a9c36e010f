"""Stubs of real packages: which functions are chosen, where the gap is, and what the report counts."""

import hashlib

import pytest

from benchmarks import bodies
from benchmarks.bodies import Function, Package, cuts, stub_at, with_stub

PACKAGE = Package("pack", "1.0", "pack", ".", "tests")
TEXT = '''def add(first, second):
    """The sum."""
    total = first + second
    return total


def unseen(value):
    value += 1
    return value


def short(value):
    return value
'''


@pytest.fixture
def folder(tmp_path):
    """A package of three functions."""
    source = tmp_path / "pack-1.0" / "pack"
    source.mkdir(parents=True)
    (source / "sums.py").write_text(TEXT)
    return tmp_path


def test_a_function_is_chosen_whose_stub_the_tests_notice(folder, monkeypatch):
    def passes(package, work):
        return "total = first" in (work / "pack" / "sums.py").read_text()

    monkeypatch.setattr(bodies, "passes", passes)
    chosen = list(bodies.choose(PACKAGE, folder, 8))
    assert [(one.name, one.first, one.last) for one in chosen] == [("add", 3, 4)]
    assert (folder / "pack-1.0" / "pack" / "sums.py").read_text() == TEXT


def test_a_package_whose_own_tests_fail_proves_nothing(folder, monkeypatch):
    monkeypatch.setattr(bodies, "passes", lambda package, work: False)
    assert not list(bodies.choose(PACKAGE, folder, 8))


def test_the_gap_of_a_stub_holds_nothing_of_the_truth(tmp_path):
    path = tmp_path / "sums.py"
    path.write_text(TEXT)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    document, gap, truth = stub_at(path, Function("pack", "sums.py", digest, "add", 3, 4, 4))
    assert gap.name == "add"
    assert truth == "total = first + second\n    return total"
    assert document.data[gap.start : gap.end].strip() == b"raise NotImplementedError"
    assert b"total" not in document.data


def test_the_report_counts_lines_where_the_truth_has_several():
    long, one = "a = 1\nreturn a", "return 1"
    told = [
        {"text": long, "truth": long, "passed": 1},
        {"text": one, "truth": long, "passed": 0},
        {"text": long, "truth": one, "passed": 2},
        {"text": "", "truth": long, "passed": 0},
    ]
    counts = "4 functions: 3 filled, 1 of 3 with more than one line where the truth has"
    assert bodies.report(told) == f"{counts}, 1 pass their tests, 2 with one of their fills"


def test_a_cut_begins_with_the_decorator_of_what_the_body_begins_with(tmp_path):
    path = tmp_path / "wrap.py"
    path.write_text("def wrap(f):\n    @mark\n    def inner():\n        return f\n\n    return inner\n")
    cut = next(cut for cut in cuts(path, 12) if cut.name == "wrap")
    assert (cut.first, cut.last) == (2, 6)
    assert with_stub(path.read_text(), cut) == "def wrap(f):\n    raise NotImplementedError\n"
