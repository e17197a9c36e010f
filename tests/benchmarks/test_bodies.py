"""Stubs of real packages: where the gap is, and the counts of the report."""

import hashlib

from benchmarks import bodies
from benchmarks.bodies import Function, stub_at

TEXT = '''def add(first, second):
    """The sum."""
    total = first + second
    return total


'''


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
