"""What a run of a test command tells, for the runners that are known."""

import pytest

from dg_lsp.cli.trial import Ran, read_run

OUTPUTS = {
    "pytest -q": ("F.\nFAILED t.py::test_a - assert 1\n1 failed, 1 passed in 0.02s\n", 1, 1, "t.py::test_a"),
    "pytest": ("== short ==\n===== 2 failed, 3 passed, 1 error in 1.20s (0:00:01) =====\n", 3, 3, ""),
    "pytest without tests": ("\n3 deselected in 0.01s\n", 0, 0, ""),
    "pytest in colours": ("\x1b[31m\x1b[1m1 failed\x1b[0m, \x1b[32m2 passed\x1b[0m in 0.01s\x1b[0m\n", 1, 2, ""),
    "unittest": (
        "FAIL: test_a (t.T.test_a)\n\nRan 5 tests in 0.001s\n\nFAILED (failures=1, errors=2)\n",
        3,
        2,
        "test_a (t.T.test_a)",
    ),
    "cargo": (
        "test a::b ... FAILED\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n"
        "test result: ok. 4 passed; 0 failed; 0 ignored\n",
        2,
        5,
        "a::b",
    ),
    "go": ("--- FAIL: TestA (0.00s)\n    a_test.go:3: no\n--- PASS: TestB (0.00s)\nFAIL\n", 1, 1, "TestA"),
    "jest": ("Tests:       1 failed, 2 passed, 3 total\nTime: 1 s\n", 1, 2, ""),
    "vitest": ("      Tests  1 failed | 2 passed (3)\n", 1, 2, ""),
    "mocha": ("  2 passing (5ms)\n  1 failing\n\n  1) a\n", 1, 2, ""),
    "node": ("# tests 3\n# pass 2\n# fail 1\n", 1, 2, ""),
    "dotnet": ("Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3\n", 1, 2, ""),
    "maven": ("[ERROR] Tests run: 3, Failures: 1, Errors: 1, Skipped: 0\n", 2, 1, ""),
}  # fmt: skip


@pytest.mark.parametrize("runner", OUTPUTS)
def test_the_tests_of_a_run_are_counted(runner: str) -> None:
    output, failed, passed, named = OUTPUTS[runner]
    for text in (output, output.replace("\n", "\r\n")):
        ran = read_run(1, text)
        assert (ran.failed, ran.passed, ran.named) == (failed, passed, named)


@pytest.mark.parametrize("output", ["", "boom\n", "3 failed attempts\n", "failed 3\npassed 2\n"])
def test_other_words_count_nothing(output: str) -> None:
    assert not read_run(1, output).counts


@pytest.mark.parametrize(
    ("before", "after", "better"),
    [
        ((1, 3, 0), (1, 2, 1), True),
        ((1, 1, 0), (1, 1, 1), True),
        ((1, 1, 0), (1, 1, 0), False),
        ((1, 2, 1), (1, 1, 0), False),
        ((1, 1, 1), (1, 2, 5), False),
        ((1, None, None), (1, 0, 5), False),
        ((1, 1, 1), (None, None, None), False),
        ((1, None, None), (0, None, None), True),
    ],
)
def test_more_that_pass_and_no_more_that_fail_are_better(
    before: tuple[int, int, int], after: tuple[int, int, int], better: bool
) -> None:
    one, other = (Ran(status, "", failed, passed) for status, failed, passed in (before, after))
    assert other.is_better(one) == better
