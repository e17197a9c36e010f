"""`dg-lsp demo`: cut gaps of several kinds out of a small file, fill each, and show the fill beside the original.

The file is `dogs.txt`; each gap in it is enclosed by ⟦ and ⟧.
"""

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib import resources

from dg_lsp.checkpoints import better_than
from dg_lsp.cli.fill import add_engine, engine_of
from dg_lsp.cli.options import explain, settings_of
from dg_lsp.cli.screen import Screen, screen_of, visible
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import Waiting
from dg_lsp.engine.choice import room_for
from dg_lsp.filling.fill import FillOptions, Outcome, fill_gap
from dg_lsp.gaps import Gap, apply_edit, find_gap
from dg_lsp.messages import Draft
from dg_lsp.source.document import Document

_WORDS = """\
Gaps of a small file, cut out one at a time. The model sees the rest of the file, and not the text that was in the gap.
They were chosen for the embedded model, a very small one: it fills most of them as they were. The last one shows where
it ends: what it writes there parses, and is not what the function does.
"""


@dataclass(frozen=True, slots=True)
class Cut:
    """A gap cut out of the file: the text before it, in it and after it."""

    before: str
    was: str
    after: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp demo`."""
    explain(
        parser,
        "Cut gaps of several kinds out of a small file of the package, fill each, and show it beside the "
        "original text. A terminal shows each gap while it is filled. No file is written.",
        "dg-lsp demo --seed 1",
        "0 some gap was filled, 1 none was, 2 usage or the engine cannot be used, 130 interrupted",
    )
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fill and show; return the exit code."""
    source = (resources.files("dg_lsp.cli.demo") / "dogs.txt").read_text(encoding="utf-8")
    show(_WORDS)
    filled, same, count = asyncio.run(_fill_all(list(cuts(source)), arguments))
    show(f"\n{filled} of {count} gaps were filled, {same} of them as they were.")
    show(
        "Next, in your editor: dg-lsp editor install vscode, or nvim; then dg-lsp doctor --editor vscode, or nvim"
    )
    settings = settings_of(arguments)
    if better := better_than(settings.checkpoint, partial(room_for, settings=settings)):
        show(f"Better fills: {better}")
    show("With a file of your own: dg-lsp fill FILE::function, or dg-lsp trace FILE:LINE:COLUMN")
    return 0 if filled else 1


def cuts(source: str) -> Iterator[Cut]:
    """Yield the gaps of `source` in order, each cut out of the file without marks."""
    pieces = source.replace("⟧", "⟦").split("⟦")
    for number in range(1, len(pieces), 2):
        yield Cut("".join(pieces[:number]), pieces[number], "".join(pieces[number + 1 :]))


async def _fill_all(todo: list[Cut], arguments: argparse.Namespace) -> tuple[int, int, int]:
    """Fill each of `todo` and print it; how many were filled, how many as they were, how many there are."""
    settings, filled, same = settings_of(arguments), 0, 0
    with Waiting("loading the model"):
        engine = await asyncio.to_thread(engine_of, arguments)
    try:
        for cut in todo:
            document = Document("dogs.py", "python", 0, (cut.before + cut.after).encode())
            gap = find_gap(document, len(cut.before.encode()))
            screen = screen_of(document, gap)
            with closing(screen), Waiting(f"filling a gap, {gap.kind.replace('_', ' ')}") as line:

                def repaint(draft: Draft, screen: Screen = screen, line: Waiting = line) -> None:
                    # Where nothing can be repainted, a picture of each step would fill pages.
                    if screen.moves and draft.runs:
                        line.stop()
                        screen.show(draft)

                outcome = await fill_gap(engine, document, gap, settings, FillOptions(show=repaint))
            text = filling_of(cut, document, outcome)
            show(summary_of(cut, gap, outcome, text), end="\n\n" if screen.moves else "\n")
            filled += outcome.edit is not None
            same += text == cut.was
    finally:
        await engine.close()
    return filled, same, len(todo)


def filling_of(cut: Cut, document: Document, outcome: Outcome) -> str:
    """Return the text in the gap of `cut` after `outcome`; empty without a fill."""
    if outcome.edit is None:
        return ""
    whole = apply_edit(document, outcome.edit).data.decode("utf-8")
    return whole.removeprefix(cut.before).removesuffix(cut.after)


def summary_of(cut: Cut, gap: Gap, outcome: Outcome, text: str) -> str:
    """Return a line about one gap, or two lines where `text`, its fill, is not the text that was cut out."""
    kind, seconds = gap.kind.replace("_", " "), outcome.fill.milliseconds / 1000
    before, after = cut.before.rpartition("\n")[2].lstrip(), cut.after.partition("\n")[0]
    line = f"{kind:14} {before}⟦{visible(text, '↵')}⟧{after}".ljust(70) + f" {seconds:5.2f} s"
    if text == cut.was:
        return line + ", as it was"
    refused = f"\n{'':14} nothing offered: {outcome.why}" if outcome.edit is None else ""
    return f"{line}{refused}\n{'':14} was: {visible(cut.was, '↵')}"
