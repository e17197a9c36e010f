"""What all tests share: one torch thread, hypothesis' settings, and a runtime directory for each test with engines."""

import gc
import os
import signal
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import settings

from tests.processes import own_runtime

# Set before torch is imported anywhere, also by the conftest.py of a folder, and inherited by the processes that tests
# start; two test runs on a small machine then do not fight for cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure() -> None:
    # A shell that starts the tests in the background lets them ignore interrupts, and what they start inherits that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # A checkpoint that a developer has fetched changes no test.
    os.environ["XDG_DATA_HOME"] = str(Path(__file__).parent / "no data")
    # Nor do tests count as the use of ghost text by a developer.
    os.environ["DG_LSP_STATISTICS"] = "off"
    # The same examples in each run, without a time limit, so that a busy machine and a lucky draw turn nothing red;
    # HYPOTHESIS_PROFILE=search looks for new ones.
    settings.register_profile("same", max_examples=300, deadline=None, derandomize=True, database=None)
    settings.register_profile("few", max_examples=40, deadline=None, derandomize=True, database=None)
    settings.register_profile("search", max_examples=10_000, deadline=None, print_blob=True)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


# Files all of whose tests are slow: they train, load the embedded checkpoint, start a server or an engine for each
# test, or try many places of long files. `make check` leaves them out.
SLOW = {
    "tests/benchmarks/test_gaps.py",
    *("tests/bench/test_lists.py", "tests/bench/test_run.py", "tests/model/test_denoise.py"),
    *("tests/model/test_embedded.py", "tests/model/test_flat.py", "tests/model/test_denoised.py"),
    *("tests/model/test_law.py", "tests/model/test_law_cases.py", "tests/model/test_length.py"),
    *(
        "tests/model/test_repair.py",
        "tests/model/test_offload.py",
        "tests/model/test_released.py",
        "tests/model/test_replay.py",
    ),
    *("tests/model/test_several.py", "tests/model/test_stitch.py"),
    *("tests/engine/test_local.py", "tests/engine/test_resident.py"),
    *(
        "tests/robustness/test_robustness.py",
        "tests/robustness/test_empty.py",
    ),
    *("tests/server/test_app.py", "tests/server/test_protocol.py", "tests/server/test_streams.py"),
    *("tests/cli/test_fill.py", "tests/cli/test_interrupt.py", "tests/source/test_indented.py"),
    *("tests/source/test_near.py", "tests/gaps/test_nothing_is_lost.py", "tests/guard/test_wild.py"),
    *("tests/training/test_adapted.py", "tests/benchmarks/test_judging.py"),
    *("tests/benchmarks/test_embedded_recipe.py", "tests/training/test_train.py"),
}


@pytest.fixture(scope="module", autouse=True)
def few_objects_to_walk() -> None:
    """Keep the garbage collector from walking through thousands of tests, and through what tests before have loaded.

    That takes longer than a call has for its text work.
    """
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if file_of(item) in SLOW:
            item.add_marker(pytest.mark.slow)
    in_order(items)


def file_of(item: pytest.Item) -> str:
    """The file of a test, which one worker runs as a whole."""
    return item.nodeid.partition("::")[0]


def in_order(items: list[pytest.Item]) -> None:
    """Put the files with slow tests first, so that none is left for the end.

    Those with an editor, which mostly wait, take turns with the others, which mostly compute.
    """
    slow = dict.fromkeys(file_of(item) for item in items if item.get_closest_marker("slow"))
    kinds = [
        [name for name in slow if name.startswith("tests/editors/") is editors] for editors in (True, False)
    ]
    order = [name for pair in zip_longest(*kinds) for name in pair]
    items.sort(key=lambda item: order.index(file_of(item)) if file_of(item) in slow else len(order))


@pytest.fixture
def runtime() -> Iterator[Path]:
    """No test meets another's engine, and none is left behind."""
    with own_runtime() as path:
        yield path
