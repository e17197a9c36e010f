"""The suite, and few failures once more, alone: a test that fails beside others only is named and forgiven.

python -m tests.again [OPTIONS OF PYTEST]
"""

import subprocess
import sys

import pytest

MOST = 3  # more failures than that are no accident


class Failures:
    """A plug-in of pytest. tests: the ids of the tests that failed. broken: whether a file could not be collected."""

    def __init__(self) -> None:
        self.tests: dict[str, None] = {}
        self.broken = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the test of a failed setup, call or teardown; from xdist's workers, too."""
        if report.failed:
            self.tests[report.nodeid] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.broken |= report.failed


def main(options: list[str]) -> int:
    """Run pytest, and at most MOST failed tests alone in a new process; return the exit code of pytest."""
    failures = Failures()
    code = pytest.main(options, plugins=[failures])
    if code != pytest.ExitCode.TESTS_FAILED or failures.broken or not 0 < len(failures.tests) <= MOST:
        return int(code)
    names = ", ".join(failures.tests)
    print(f"\nonce more, alone: {names}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-n", "0", *failures.tests], check=False)
    print(f"failed beside others, {'failed' if again.returncode else 'passed'} alone: {names}", flush=True)
    return again.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
