"""By hand: the time from the last key to ghost text on the screen, in Neovim and in VS Code.

    python -m benchmarks.ghost [--rounds 50] [--pause 400] [--checkpoint scripted]

The key opens a new line (`o`, Enter), and the ghost text is on it, so that no earlier answer can have brought it.
The pause before it tells a key by itself from one amid fast typing, in which the server waits for the next key.
Neither waits for a further key, as the option `debounce` is 0. In VS Code a provider inside the editor takes turns
with the server: what it costs is the editor's own, and the difference is ours.
"""

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import parser_of
from tests.editors.nvim import Editor
from tests.editors.sandbox import Sandbox, open_sandbox
from tests.editors.vscode import YARDSTICK, open_vscode

BEFORE = "def add(first, second):\n    total = 1\n"
WARM_UP = 5  # rounds that start engines and fill caches
SERVED, TRIVIAL = "served.py", "trivial.txt"


def measure_neovim(sandbox: Sandbox, rounds: int, pause: int) -> list[float]:
    """Open a line in each round, time it until Neovim draws the ghost text, accept."""
    taken: list[float] = []
    (sandbox.project / "measured.py").write_text(BEFORE)
    with Editor(sandbox, {"debounce": 0}) as editor:
        editor.open("measured.py")
        editor.keys("2G")
        for _ in range(rounds):
            time.sleep(pause / 1000)
            editor.mark()
            began = time.perf_counter()
            editor.keys("o")
            editor.wait_drawn("None")
            taken.append((time.perf_counter() - began) * 1000)
            editor.keys("<Tab>")
            editor.wait(lambda: editor.rpc.current.line == "    None", "the ghost text was not accepted")
            editor.keys("<Esc>")
    return taken


def measure_vscode(sandbox: Sandbox, rounds: int, pause: int) -> dict[str, list[float]]:
    """The same in VS Code, by turns in a file that the server serves and in one that the yardstick serves."""
    for name in (SERVED, TRIVIAL):
        (sandbox.project / name).write_text(BEFORE)
    with open_vscode(sandbox, SERVED, extensions=[YARDSTICK]) as editor:
        editor.settings(debounce=0, **{"editor.quickSuggestions": "off", "editor.autoIndent": "keep"})
        editor.status("ready", patience=60_000)
        patience = rounds * (pause + 1000) * 2
        files = [SERVED, TRIVIAL]
        return dict(editor.ask("measure", files=files, rounds=rounds, pause=pause, patience=patience))


def report(name: str, taken: list[float]) -> tuple[float, float]:
    """Print one line of figures and give back the median and the 95th percentile."""
    counted = sorted(taken[WARM_UP:])
    median, worst = statistics.median(counted), statistics.quantiles(counted, n=20)[-1]
    print(f"{name:<34} n={len(counted):<4} p50 {median:6.1f} ms   p95 {worst:6.1f} ms")
    return median, worst


def main() -> None:
    """Measure both editors and print the figures."""
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--pause", type=int, default=400, help="milliseconds before the key")
    parser.add_argument("--checkpoint", default="scripted", help="a scripted one, such as scripted:10:20")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with open_sandbox(Path(folder) / "neovim", options.checkpoint) as sandbox:
            report("Neovim", measure_neovim(sandbox, options.rounds, options.pause))
        with open_sandbox(Path(folder) / "vscode", options.checkpoint) as sandbox:
            taken = measure_vscode(sandbox, options.rounds, options.pause)
        served = report("VS Code, dg-lsp", taken[SERVED])
        trivial = report("VS Code, a provider inside it", taken[TRIVIAL])
        median, worst = (ours - own for ours, own in zip(served, trivial, strict=True))
        print(f"our share in VS Code: {median:.1f} ms of the median, {worst:.1f} ms of the 95th percentile")


if __name__ == "__main__":
    main()
