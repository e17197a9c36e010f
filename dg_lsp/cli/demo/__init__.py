"""`dg-lsp demo`: fill an unwritten function of a small file and show how it settles."""

import argparse

from dg_lsp.cli.fill import add_engine, diff_of, fill, report
from dg_lsp.cli.options import FILLING_CODES, explain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp demo`."""
    explain(
        parser,
        "Fill an unwritten function of a small file that comes along, and show step by step how it settles. Nothing "
        "is written.",
        "dg-lsp demo --seed 1",
        FILLING_CODES,
    )
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fill and show; return the exit code."""
    import tempfile
    import time
    from importlib import resources
    from pathlib import Path

    from dg_lsp.cli.screen import screen_of
    from dg_lsp.cli.target import Target, locate

    source = (resources.files("dg_lsp.cli.demo") / "word_statistics.py").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "word_statistics.py").write_bytes(source)
        document, gap = locate(Target(path, name="longest_word"))
    print("The body of longest_word() is missing; the model settles it from both sides:\n", flush=True)
    screen = screen_of(document, gap)
    start = time.perf_counter()
    outcome = fill((document, gap), arguments, screen.show)
    whole = time.perf_counter() - start
    screen.close()
    print("\n" + diff_of(document, outcome, path.name), end="")
    code = report(outcome)
    done, took = "answered" if code else "filled", outcome.fill.milliseconds / 1000
    print(f"\ngap {done} in {took:.2f} s; {max(whole - took, 0):.1f} s to reach or start the engine")
    print("Next, with a file of your own: dg-lsp fill FILE::function")
    return code
