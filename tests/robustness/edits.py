"""Random edits sent to a server, and the text that it then has, against a splice that shares no code with it."""

import random
from typing import get_args

from dg_lsp.source.document import Encoding
from tests.robustness.row import Row, missed
from tests.server.splice import PIECES, json_text, position_in, shown_bytes, spliced
from tests.server.wire import Wire, notification, small

URI = "file:///w/odd.py"
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
_ROUND = 100  # edits of one document
_AT_ONCE = 10  # edits of one notification
_PIECES = 40  # of a document at its beginning


def edits(count: int, seed: int = 1) -> Row:
    """At least `count` edits, a third in each encoding; line ends of all kinds and odd characters in all of them."""
    differ = made = 0
    for encoding in ENCODINGS:
        rng = random.Random(seed)
        with small() as wire:
            wire.initialize(capabilities={"general": {"positionEncodings": [encoding]}})
            for number in range(-(-count // _ROUND // len(ENCODINGS))):
                differ += not _round(wire, number, rng, encoding)
                made += _ROUND
    return Row(
        "random edits, 3 encodings, line ends, odd characters",
        "0 differences from the reference",
        f"{made:,} edits, {differ} documents differ",
        missed((differ > 0, f"{differ} documents differ")),
    )


def _round(wire: Wire, number: int, rng: random.Random, encoding: Encoding) -> bool:
    """Whether the server's document is as the reference has it after a round of edits."""

    def some(most: int) -> str:
        return json_text("".join(rng.choices(PIECES, k=rng.randrange(most))))

    text = some(_PIECES)
    document = {"uri": URI, "languageId": "python", "version": 0, "text": text}
    wire.send(notification("textDocument/didOpen", {"textDocument": document}))
    for version in range(_ROUND // _AT_ONCE):
        changes = []
        for _ in range(_AT_ONCE):
            ends = [position_in(text, (rng.randrange(31), rng.randrange(61)), encoding) for _ in range(2)]
            new = some(5)
            text = spliced(text, (ends[0], ends[1]), new, encoding)
            span = {
                name: {"line": line, "character": column}
                for name, (line, column) in zip(("start", "end"), ends, strict=True)
            }
            changes.append({"range": span, "text": new})
        changed = {"uri": URI, "version": version + 1}
        wire.send(
            notification("textDocument/didChange", {"textDocument": changed, "contentChanges": changes})
        )
    told = wire.ask(number, "test/text", {"uri": URI})["result"]["text"]
    wire.messages.clear()
    wire.send(notification("textDocument/didClose", {"textDocument": {"uri": URI}}))
    return bool(told == shown_bytes(text).decode("utf-8"))
