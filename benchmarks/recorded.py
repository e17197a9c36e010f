"""Run a command of dg-lsp with recorded fills: what FILE has fills of is not asked for again.

    python benchmarks/recorded.py FILE bot PATH --keep-if COMMAND

What is not in FILE is asked for and added, so that a changed rule of the bot can be judged by the same fills. A
function is known by its file's path from the current folder, its name, the text of the file, and the seed; or by the
path and the name alone, if its fills are the same whatever the file's text is.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dg_lsp.cli.main import main
from dg_lsp.filling import stubs
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.fill import ONE, FillOptions, Outcome, fill_gap
from dg_lsp.gaps.gap import Edit, Gap
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document


def record(store: Path) -> None:
    """Let the bot's fills come from `store`, and add the others."""
    known = json.loads(store.read_bytes()) if store.exists() else {}

    async def recorded(
        engine: Engine, document: Document, gap: Gap, settings: Settings, options: FillOptions = ONE
    ) -> Outcome:
        state = hashlib.sha256(document.data).hexdigest()[:12]
        place = place_of(document.uri.removeprefix(Path.cwd().as_uri()), gap.name)
        key = place if place in known else f"{place} {state} {settings.seed}"
        if key not in known:
            outcome = await fill_gap(engine, document, gap, settings, options)
            edits = (outcome.edit, *outcome.others) if outcome.edit else ()
            known[key] = entry([_moved(edit, -gap.start) for edit in edits], outcome.why)
            store.write_text(json.dumps(known, indent=1))
        edits = tuple(_moved(Edit(**one), gap.start) for one in known[key]["edits"])
        return Outcome(gap, Fill(""), edits[0] if edits else None, known[key]["why"], edits[1:])

    stubs.fill_gap = recorded  # type: ignore[attr-defined]


def place_of(path: str, name: str) -> str:
    """Return the name of a function in a store, by its file's path from the current folder with a slash before it."""
    return f"{path}::{name}"


def entry(edits: Sequence[Edit], why: str = "") -> dict[str, Any]:
    """Return what a store holds of a function: edits as if its gap began at 0, and why there is none."""
    return {"why": why, "edits": [asdict(edit) for edit in edits]}


def _moved(edit: Edit, by: int) -> Edit:
    return Edit(edit.start + by, edit.end + by, edit.text)


if __name__ == "__main__":
    record(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
