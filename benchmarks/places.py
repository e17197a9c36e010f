"""Ghost text at the 27 ordinary places of `places.toml`: how many get some unasked, and how much of it deserves it.

    python -m benchmarks.places [--code CHECKOUT] [--deadline SECONDS]

The real server is asked as an editor asks it. What deserves to be shown was written down before any result was seen: an
offer that is one of those texts, or the beginning of one with four characters or more that cuts no word.
"""

import argparse
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import parser_of
from tests.server.wire import Wire, notification

_CURSOR = "|>"
_LEAST = 4  # characters of a beginning
_PATIENCE = 300.0  # seconds


@dataclass(frozen=True, slots=True)
class Place:
    """A file with a cursor, a file beside it, and the texts and patterns that deserve to be shown."""

    name: str
    text: str
    other: str
    accept: tuple[str, ...]
    like: tuple[str, ...]

    @property
    def before(self) -> str:
        """The file up to the cursor."""
        return self.text.partition(_CURSOR)[0]

    @property
    def behind(self) -> str:
        """The file from the cursor on."""
        return self.text.partition(_CURSOR)[2]


def read_places() -> list[Place]:
    """The places in `places.toml`."""
    with Path(__file__).with_suffix(".toml").open("rb") as stream:
        listed = tomllib.load(stream)["place"]
    return [
        Place(
            *(one["name"], one["text"], one.get("other", "")),
            *(tuple(one.get("accept", ())), tuple(one.get("like", ()))),
        )
        for one in listed
    ]


def deserves(place: Place, offer: str) -> str:
    """How an offer deserves to be shown: "whole", "begun", or "" if it does not."""
    said = _plain(offer)
    if any(said == _plain(text) for text in place.accept) or any(
        re.fullmatch(_plain(pattern), said) for pattern in place.like
    ):
        return "whole"
    begun = len(said) >= _LEAST and any(is_begun(said, _plain(text)) for text in place.accept)
    return "begun" if begun else ""


def is_begun(text: str, truth: str) -> bool:
    """Whether the truth begins with `text` and no word of it is cut: `foo(a` begins `foo(a, b)`, `fo` does not."""
    if not text or not truth.startswith(text):
        return False
    behind = truth[len(text) : len(text) + 1]
    return not (_in_word(text[-1]) and _in_word(behind))


def _in_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _plain(text: str) -> str:
    """`text` with one kind of quotes, and one blank wherever there is white space."""
    return " ".join(text.replace("'", '"').split())


def offered(place: Place, items: Sequence[dict[str, Any]]) -> list[str]:
    """The texts that the items would put behind the cursor; an item may replace what stands before it in its line."""
    found = []
    line = place.before.rpartition("\n")[2]
    for item in items:
        typed = line[item["range"]["start"]["character"] :] if item.get("range") else ""
        found.append(item["insertText"].removeprefix(typed))
    return found


def ask(wire: Wire, folder: Path, number: int, place: Place) -> tuple[list[str], float]:
    """What the server offers at a place unasked, and the seconds that it takes."""
    path = folder / f"place{number}.py"
    path.write_text(place.before + place.behind)
    if place.other:
        (folder / "models.py").write_text(place.other)
    uri, rows = path.as_uri(), place.before.split("\n")
    document = {"uri": uri, "languageId": "python", "version": 1, "text": place.before + place.behind}
    wire.send(notification("textDocument/didOpen", {"textDocument": document}))
    params = {
        "textDocument": {"uri": uri},
        "position": {"line": len(rows) - 1, "character": len(rows[-1])},
        "context": {"triggerKind": 2},
    }
    began = time.perf_counter()
    reply = wire.ask(number, "textDocument/inlineCompletion", params, _PATIENCE)
    took = time.perf_counter() - began
    wire.send(notification("textDocument/didClose", {"textDocument": {"uri": uri}}))
    result = reply.get("result") or []
    items = result["items"] if isinstance(result, dict) else result
    return offered(place, items), took


def measure(given: argparse.Namespace) -> None:
    """Ask at each place, in a workspace of its own, and print a line for each and the sums."""
    python = [sys.executable, "-P", "-m", "dg_lsp"]
    shown, deserved = 0, {"whole": 0, "begun": 0}
    with tempfile.TemporaryDirectory(prefix="dg-") as runtime:
        environment = ["env", f"PYTHONPATH={given.code.resolve()}", f"DG_LSP_RUNTIME_DIR={runtime}"]
        for number, place in enumerate(read_places()):
            with tempfile.TemporaryDirectory() as folder:
                wire = Wire([*environment, *python, "--stdio", "--log-level", "error"])
                options = {"ghostDeadline": given.deadline, "prefetch": False}
                wire.initialize(rootUri=Path(folder).as_uri(), initializationOptions=options)
                texts, took = ask(wire, Path(folder), number, place)
                wire.__exit__()
            how = deserves(place, texts[0]) if texts else ""
            shown += bool(texts)
            if how:
                deserved[how] += 1
            print(
                f"{how or ('wrong' if texts else 'silent'):7} {took:6.2f} s  {place.name}: {texts[:1]}",
                flush=True,
            )
        Wire([*environment, *python, "engine", "stop", "--all"]).process.wait(60)
    right = sum(deserved.values())
    print(f"shown {shown}, deserved {right} ({deserved['whole']} whole, {deserved['begun']} begun)")


def main() -> None:
    parser = parser_of(__doc__)
    root = Path(__file__).resolve().parents[1]
    parser.add_argument("--code", type=Path, default=root, help="the checkout whose server is asked")
    parser.add_argument("--deadline", type=float, default=2.0, help="seconds for ghost text; 0 is no limit")
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
