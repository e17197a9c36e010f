"""Files of strange shape and size, opened in the real server: each is answered or refused, and nobody else waits."""

import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.processes import own_runtime
from tests.robustness.row import Row, complaint, missed
from tests.robustness.window import Window

ANSWERED = 1.0  # seconds
OTHERS, PER_MB = (
    0.05,
    0.01,
)  # seconds in which other requests are answered, and so many more for each MB to decode
_PING = 0.02  # seconds between two of those requests
SHAPES = {
    "10 MB": ("value = compute(1, other=2)\n" * 370_000, "python"),
    "a line of 5 MB": ("x = " + "f(a, " * 1_000_000, "python"),
    "200,000 brackets": ("x = " + "(" * 200_000, "typescript"),
    "NUL bytes": ("x = \x00\x00\n" * 1_000 + "y = ", "python"),
    "lone surrogates": ("x = '\ud83d'\n" * 1_000 + "y = ", "python"),
    "no language": ("x = \n" * 1_000, ""),
    "no line end": ("", "python"),
}


def bad_files(times: int) -> Row:
    """Ask for ghost text at the end of each shape and in its middle, `times` times; and for fills of odd files."""
    os.environ["DG_LSP_CHECKPOINT"] = "scripted"
    took, others, silent = dict[str, float](), dict[str, float](), list[str]()
    with own_runtime(), tempfile.TemporaryDirectory() as folder:
        window = Window()
        for _ in range(times):
            for name, (text, language) in SHAPES.items():
                took[name], others[name] = waits_for(window, name, text, language)
            silent += _on_disk(window, Path(folder))
        lost = window.odd()
        noise = complaint(window.wire.stderr)
        code = window.close()
    late = {n: w for n, w in others.items() if w > OTHERS + PER_MB * len(SHAPES[n][0]) / 2**20}
    slow = {name: seconds for name, seconds in took.items() if seconds > ANSWERED}
    return Row(
        "bad files: 10 MB, a line of 5 MB, 200,000 brackets, NUL, surrogates, no language; pipe, folder, changing file",
        "answered within 1 s or refused with the reason; others 50 ms + 10 ms per MB",
        f"{len(took)} shapes: at most {max(took.values()):.2f} s; other requests at most "
        f"{max(others.values()) * 1000:.0f} ms",
        missed(
            (bool(lost), f"not answered once: {lost[:3]}"),
            (bool(silent), f"without a reason: {silent}"),
            (bool(noise), noise),
            (code != 0, f"exit code {code}"),
        ),
        missed((bool(slow), f"slow: {slow}"), (bool(late), f"others waited: {late}")),
    )


def waits_for(window: Window, name: str, text: str, language: str, kind: int = 1) -> tuple[float, float]:
    """Return the seconds until ghost text in `text` is answered, at most, and how long other requests wait meanwhile.

    kind: of the request, 1 for one that somebody has asked for and 2 for an automatic one.
    """
    uri, over, waits = f"file:///w/{name.replace(' ', '-')}.py", threading.Event(), [0.0]

    def ping() -> None:
        while not over.wait(_PING):
            began = time.monotonic()
            number = window.ask("no/such/method", None)
            window.wait(number)
            waits.append(window.answers[number][0][0] - began)

    window.open(uri, text, language)
    window.wait(window.ask("no/such/method", None))  # the document has been read by then
    pinging = threading.Thread(target=ping)
    pinging.start()
    took = []
    for at in (len(text), len(text) // 2):
        began = time.monotonic()
        number = window.ask("textDocument/inlineCompletion", window.inline(uri, at, kind))
        assert "items" in window.wait(number)["result"]
        took.append(window.answers[number][0][0] - began)
    over.set()
    pinging.join()
    window.close_document(uri)
    return max(took), max(waits)


def _on_disk(window: Window, folder: Path) -> list[str]:
    """The files that `dg-lsp.fill` neither fills nor refuses with a reason."""
    for name in ("pipe.py", "folder.py", "changing.py"):
        path = folder / name
        if path.exists():
            continue
        if name == "pipe.py":
            os.mkfifo(path)
        elif name == "folder.py":
            path.mkdir()
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            (folder / "changing.py").write_text("def f():\n    pass\n" * (1 + time.monotonic_ns() % 5_000))

    (folder / "changing.py").write_text("def f():\n    pass\n")
    writing = threading.Thread(target=write)
    writing.start()
    silent = []
    for path in sorted(folder.iterdir()):
        target: dict[str, Any] = {"uri": path.as_uri(), "name": "f", "apply": False}
        params = {"command": "dg-lsp.fill", "arguments": [target]}
        result = window.wait(window.ask("workspace/executeCommand", params)).get("result") or {}
        silent += [] if result.get("edit") or result.get("why") else [path.name]
    over.set()
    writing.join()
    return silent
