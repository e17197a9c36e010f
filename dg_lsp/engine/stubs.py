"""All unwritten functions of a document, filled one after another. Knows an engine and text; no file, no editor."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from dg_lsp.engine.base import Engine, Outcome, Want, fill_gap
from dg_lsp.settings import Settings
from dg_lsp.text.budget import BOT, within
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import Gap, find_gaps
from dg_lsp.text.gaps.gap import Edit, apply_edit
from dg_lsp.text.messages import Draft

ONE = Want()


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of one stub begins. number: counts from 1. document: the text now, in which `gap` is its body."""

    number: int
    gap: Gap
    document: Document


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn of a stub has ended.

    edit: of the document before the turn, None if the stub is left as it was. why: the reason for that, as a sentence.
    document: the text now.
    """

    turn: Turn
    edit: Edit | None
    why: str
    document: Document


async def choose_first(_: Sequence[Document]) -> tuple[int | None, str]:
    """Keep the likeliest fill."""
    return 0, ""


def stubs_of(document: Document) -> list[Gap]:
    """The bodies of all functions of `document` that are not written yet, in the order of the text.

    Raises:
        UnknownLanguage: the document's language has no grammar.
    """
    return [gap for gap in find_gaps(document, 0, len(document.data)) if gap.stub]


async def fill_stubs(
    engine: Engine,
    document: Document,
    settings: Settings,
    choose: Callable[[Sequence[Document]], Awaitable[tuple[int | None, str]]] = choose_first,
    want: Want = ONE,
) -> AsyncGenerator[Turn | Draft | Ended, None]:
    """Fill the stubs of `document` in the order of the text; yield for each its Turn, Drafts, and how it Ended.

    choose: called with the documents after each of at most `want.alternatives` different fills of a stub, the likeliest
    first; it returns the number of the one that is kept, None if none is, and why. Closing the generator cancels.

    1. Find the next stub in the text as it is now: earlier fills have moved it.  2. Fill it.  3. Keep the fill that is
    chosen.

    Raises:
        EngineError: the engine gives no answer. UnknownLanguage: the document's language has no grammar.
        OutOfTime: the text takes too long to read.
    """
    behind, number = 0, 0
    while True:
        # 1.
        with within(BOT):
            found = await asyncio.to_thread(stubs_of, document)
        gap = next((gap for gap in found if gap.start >= behind), None)
        if gap is None:
            return
        number += 1
        turn = Turn(number, gap, document)
        yield turn
        # 2.
        outcome: Outcome | None = None
        async with aclosing(fill_gap(engine, document, gap, settings, want)) as events:
            async for event in events:
                if isinstance(event, Outcome):
                    outcome = event
                else:
                    yield event
        assert outcome is not None, "a fill ends with its outcome"
        # 3.
        kept, why = None, outcome.why
        # An empty body has no byte of its own.
        behind = max(gap.end, gap.start + 1)
        if outcome.edit is not None:
            edits = (outcome.edit, *outcome.others)
            filled = [apply_edit(document, edit) for edit in edits]
            chosen, why = await choose(filled)
            if chosen is not None:
                kept, document = edits[chosen], filled[chosen]
                behind = kept.start + len(kept.text.encode("utf-8"))
        yield Ended(turn, kept, why, document)
