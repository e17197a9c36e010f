"""The Engine protocol, its error, and the one path from a gap to an edit.

Knows text and the records; knows no torch, no editor and no wire.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from dg_lsp.settings import Settings
from dg_lsp.text.budget import BOT, bounded, current, spending
from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills import fit
from dg_lsp.text.fills.check import harm_of, unchecked
from dg_lsp.text.fills.hole import useless
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.gaps.gap import Edit, apply_edit
from dg_lsp.text.messages import Draft, Fill, Infill, Priority
from dg_lsp.text.prompts import prompt
from dg_lsp.text.reasons import NoGap, OutOfTime
from dg_lsp.text.related.definitions import Context, context_of
from dg_lsp.text.related.index import Index
from dg_lsp.text.related.retrieve import Search, search


class EngineError(Exception):
    """The engine cannot work; the message says why, and what to do."""


class EngineBusy(EngineError):
    """The engine works for so many requests that it takes no more for now. wait: seconds before another one."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class EngineBroken(EngineError):
    """The engine's process can compute no more, whatever it is asked; another process could."""


class Engine(Protocol):
    """Anything that answers one Infill with Drafts and, last, one Fill. Closing the iterator cancels."""

    def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield any number of Drafts, then exactly one Fill.

        Raises:
            EngineError: there is no answer.
        """
        ...

    async def close(self) -> None:
        """Release the model; afterwards the engine answers nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of filling a gap of a document.

    edit: the change to make, None if nothing is offered. why: the reason for that, as a sentence. others: the edits of
    further fills, if alternatives were asked for. files: the uris of the files that candidates or definitions were
    found in.
    """

    gap: Gap
    fill: Fill
    edit: Edit | None
    why: str = ""
    others: tuple[Edit, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Want:
    """What is wanted of a fill.

    alternatives: how many different texts. priority: before whom it is served. index: where candidates are found, and
    at most so many bytes of `definitions`.
    """

    alternatives: int = 1
    priority: Priority = "bot"
    index: Index | None = None
    definitions: int = 0


async def fill_gap(
    engine: Engine, document: Document, gap: Gap, settings: Settings, want: Want = Want()
) -> AsyncGenerator[Draft | Outcome, None]:
    """Fill `gap` of `document`: yield Drafts, then one Outcome. Closing the generator cancels.

    1. Build the request, with candidates out of the project; none where no edit could be checked.  2. Pass the engine's
    Drafts on.  3. Fit the Fill into the document.  4. Refuse an edit that would do harm to the whole file (laws 5, 10).

    Raises:
        EngineError: the engine gives no answer.
    """
    budget = current(BOT)
    try:
        with spending(budget):
            request, found, context = await _prepared(document, gap, settings, want)
    except NoGap as error:
        yield Outcome(gap, Fill(""), None, str(error))
        return
    fill: Fill | None = None
    async with aclosing(engine.infill(request)) as events:
        async for event in events:
            # 2. The Fill is the last event.
            if isinstance(event, Fill):
                fill = event
            else:
                yield event
    if fill is None:
        raise EngineError("the engine stopped without an answer; run the command again")
    # In a thread, because the check may parse the whole file and must not block the event loop.
    files = tuple(dict.fromkeys((*found.uris, *context.uris)))
    with spending(budget):
        outcome = await asyncio.to_thread(settle, document, gap, fill)
    yield replace(outcome, files=files)


async def _prepared(
    document: Document, gap: Gap, settings: Settings, want: Want
) -> tuple[Infill, Search, Context]:
    """Step 1 of `fill_gap`.

    Raises:
        NoGap: no edit could be checked, or the text takes too long to read.
    """
    # In threads, because a large file or project takes some milliseconds.
    request = await asyncio.to_thread(_request, document, gap, settings)
    found, context = Search(), Context()
    if want.index is not None:
        found = await asyncio.to_thread(search, document, gap, want.index)
        if want.definitions:
            context = await asyncio.to_thread(context_of, document, gap, want.index, want.definitions)
    request = replace(
        request,
        alternatives=want.alternatives,
        priority=want.priority,
        retrieved=found.texts,
        context=context.pieces,
    )
    if want.priority in ("ghost", "ahead"):
        request = replace(request, confidence=settings.confidence)
    return request, found, context


def _request(document: Document, gap: Gap, settings: Settings) -> Infill:
    """Return the request for `gap`, which holds no more of the file than the settings allow.

    Raises:
        NoGap: no edit could be checked.
    """
    if reason := next(filter(None, (unchecked(document, part) for part in gap.parts)), ""):
        raise NoGap(reason)
    return prompt.build(document, gap, settings)


async def outcome_of(events: AsyncGenerator[Draft | Outcome, None], show: Callable[[Draft], None]) -> Outcome:
    """The Outcome that `events` of `fill_gap` end with; `show` is called with each Draft. Closes `events`."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Outcome):
                return event
            show(event)
    raise AssertionError("a fill ends with its outcome")


@bounded
def settle(document: Document, gap: Gap, fill: Fill) -> Outcome:
    """Steps 3 and 4 of `fill_gap`: the edit of `document` that puts `fill` into `gap`, or the reason for none."""
    try:
        return _settle(document, gap, fill)
    except OutOfTime as error:
        return Outcome(gap, fill, None, str(error))


def _settle(document: Document, gap: Gap, fill: Fill) -> Outcome:
    if gap.further:
        return _settle_several(document, gap, fill)
    if not fill.text.strip():
        return Outcome(gap, fill, None, fill.refusal or "the model left the gap empty")
    # 3. The edit includes what the gap inserts round its fill.
    edits = dict.fromkeys(fit.make_edit(document, gap, text) for text in (fill.text, *fill.others))
    # 4. The engine has checked only the part of the file that was sent.
    harms = {
        edit: _same(document, gap, edit)
        or _repeats(document, gap, edit)
        or useless(document, gap, edit)
        or harm_of(document, gap, edit)
        for edit in edits
    }
    good = [edit for edit, harm in harms.items() if not harm]
    if not good:
        return Outcome(gap, fill, None, next(iter(harms.values())))
    # How sure the engine is was said of its first text only.
    fill = fill if good[0] == next(iter(edits)) else replace(fill, chance=None)
    # What it owes was there for the check only.
    first, *others = (replace(edit, text=edit.text.removesuffix(gap.owed)) for edit in good)
    return Outcome(gap, fill, first, others=tuple(others))


def _same(document: Document, gap: Gap, edit: Edit) -> str:
    """Why the edit of a span or of a placeholder is none, as a sentence; empty if it changes something."""
    replaced = gap.kind == "span" or gap.stub
    old = document.data[gap.start : gap.end].decode("utf-8") if replaced else ""
    return "the model wrote what stands there already" if old and edit.text == old else ""


def _repeats(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why an edit only repeats what stands round its gap, as a sentence; empty if it does not."""
    why = fit.repetition_of_edit(document, gap, edit)
    return why and f"the fill was refused: {why}"


def _settle_several(document: Document, gap: Gap, fill: Fill) -> Outcome:
    """One edit for all gaps of `gap.parts` whose fills can be shown; the other gaps stay as they are."""
    filled, edits_made, whys = document, list[Edit](), list[str]()
    # From the last gap to the first, so that the offsets of the earlier ones stay valid.
    for one, text in reversed(list(zip(gap.parts, (fill.text, *fill.further), strict=True))):
        outcome = settle(filled, replace(one, further=()), replace(fill, text=text, others=(), further=()))
        whys.append(outcome.why)
        if outcome.edit:
            edits_made.append(outcome.edit)
            filled = apply_edit(filled, outcome.edit)
    if not edits_made:
        return Outcome(gap, fill, None, whys[-1])
    start, end = edits_made[-1].start, edits_made[0].end
    text = filled.data[start : end + len(filled.data) - len(document.data)].decode("utf-8")
    left = len(gap.parts) - len(edits_made)
    why = f"{left} of {len(gap.parts)} gaps got no fill; {next(w for w in whys if w)}" if left else ""
    return Outcome(gap, fill, Edit(start, end, text), why)
