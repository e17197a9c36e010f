"""What all tests share: one torch thread, so that two test runs on a small machine do not fight for cores."""

import os


def pytest_configure() -> None:
    # Set before torch is imported anywhere, and inherited by the processes that tests start.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
