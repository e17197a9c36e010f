"""The one path from a gap to an edit: `prepare` the request, ask an Engine, `finish` its Fill.

The server, `fill`, `bot`, `trace` and `bench` all fill by `fill_gap`.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from dg_lsp.budget import BOT, bounded, current, spending
from dg_lsp.checkpoints import definitions_for
from dg_lsp.context import Edited, Index, Search, context_of, prompt, recent_edits, search, unimported
from dg_lsp.filling.engine import Engine, EngineError
from dg_lsp.filling.inside import with_line_inside
from dg_lsp.filling.leaving import leaving
from dg_lsp.gaps import Edit, Gap, apply_edit
from dg_lsp.guard import fit, harm_of, unchecked, useless
from dg_lsp.messages import Draft, Fill, Infill, Priority
from dg_lsp.reasons import NoGap, OutOfTime
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of filling a gap: an edit, or the reason for none.

    edit: the change of the document, None if there is none. why: the reason for that, as a sentence; with an edit of
    several gaps, the reason why some of them got no fill. others: the edits of the alternatives. files: the uris of the
    files that candidates or definitions come from.
    """

    gap: Gap
    fill: Fill
    edit: Edit | None
    why: str = ""
    others: tuple[Edit, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FillOptions:
    """Options of one fill.

    alternatives: the number of different texts. priority: who is served first. index: the other files; without it no
    candidates and no definitions are sent. like: a text of the fill's length, for measurements. show: called
    with each Draft. above: text that is read before the document's own, such as that of the cells above one of a
    notebook. edited: other open documents with their recent edits, the one used last at the end, for a model that
    reads these. soon: the first lines of a text are wanted as soon as they can be shown and grow. unasked: nobody has
    asked for the text, so a smaller model may write it. inside: an empty block at the end of a text gets a line for the
    cursor.
    """

    alternatives: int = 1
    priority: Priority = "bot"
    index: Index | None = None
    like: str | None = None
    show: Callable[[Draft], None] = lambda _: None
    above: bytes = b""
    edited: tuple[Edited, ...] = ()
    soon: bool = False
    unasked: bool = False
    inside: bool = False


ONE = FillOptions()


async def fill_gap(
    engine: Engine, document: Document, gap: Gap, settings: Settings, options: FillOptions = ONE
) -> Outcome:
    """Fill `gap` of `document` and return the Outcome; cancelling closes the engine's stream.

    1. Prepare the request; without one, the Outcome has the reason.  2. Show the engine's Drafts.  3. Finish the Fill.
    Steps 1 and 3 read text, so they run in threads, and spend one budget.
    """
    budget = current(BOT)
    # 1.
    try:
        with spending(budget):
            request, files = await asyncio.to_thread(prepare, document, gap, settings, options)
    except NoGap as error:
        return Outcome(gap, Fill(""), None, str(error))
    # 2.
    fill = await answer_of(engine, request, options)
    # 3.
    with spending(budget):
        outcome = await asyncio.to_thread(finish, document, gap, fill)
    if options.inside:
        outcome = await asyncio.to_thread(_with_lines_inside, document, outcome)
    return replace(outcome, files=files)


def _with_lines_inside(document: Document, outcome: Outcome) -> Outcome:
    """Return `outcome` with a line for the cursor in each empty block at the end of a text."""
    if outcome.edit is None:
        return outcome
    edit, *others = (with_line_inside(document, one) for one in (outcome.edit, *outcome.others))
    return replace(outcome, edit=edit, others=tuple(others))


async def answer_of(engine: Engine, request: Infill, options: FillOptions) -> Fill:
    """Return the engine's Fill of `request`; show its Drafts."""
    fill: Fill | None = None
    async with aclosing(engine.infill(request)) as events:
        async for event in events:
            if isinstance(event, Fill):
                fill = event
            else:
                options.show(event)
    if fill is None:
        raise EngineError("the engine stopped without an answer; run the command again")
    return fill


@bounded
def prepare(
    document: Document, gap: Gap, settings: Settings, options: FillOptions
) -> tuple[Infill, tuple[str, ...]]:
    """Return the request for `gap`, and the uris of the other files that it holds text of.

    1. Refuse a gap where no edit could be checked.  2. Take the text around the gap, as much as the settings allow.
    3. Add candidates, names to be imported, and definitions or recent edits where the model reads them.  4. Keep what
    may leave.

    Raises:
        NoGap: no edit could be checked, or reading the text takes too long.
    """
    # 1.
    if reason := next(filter(None, (unchecked(document, part) for part in gap.parts)), ""):
        raise NoGap(reason)
    # 2.
    if options.above:
        document = replace(document, data=options.above + document.data, history=None)
        gap = gap.moved(len(options.above))
    request = prompt.build(document, gap, settings)
    # 3.
    found, context = Search(), recent_edits(document, options.edited)
    if options.index is not None:
        found = search(document, gap, options.index)
        if room := definitions_for(settings):
            context = context_of(document, gap, options.index, room)
    request = replace(
        request,
        like=options.like,
        alternatives=options.alternatives,
        priority=options.priority,
        retrieved=found.texts,
        context=context.pieces,
        unimported=unimported(document, gap),
        confidence=settings.confidence if options.priority in ("ghost", "ahead") else 0.0,
        soon=options.soon,
    )
    # 4.
    return leaving(request, settings), tuple(dict.fromkeys((*found.uris, *context.uris)))


def finish(document: Document, gap: Gap, fill: Fill) -> Outcome:
    """Return the edit that puts `fill` into `gap` of `document`, or the reason for none.

    1. Fit each text of the fill into the gap.  2. Refuse an edit that says nothing new, or does harm to the file: the
    engine has checked only the part that was sent (laws 5 and 10).  3. The first good edit is the result. Several gaps
    are finished one by one, and their edits joined.
    """
    try:
        return _finish(document, gap, fill)
    except OutOfTime as error:
        return Outcome(gap, fill, None, str(error))


@bounded
def _finish(document: Document, gap: Gap, fill: Fill) -> Outcome:
    if gap.further:
        return _finish_several(document, gap, fill)
    if not fill.text.strip():
        return Outcome(gap, fill, None, _late(fill, fill.refusal or "the model left the gap empty"))
    # 1.
    edits = dict.fromkeys(fit.make_edit(document, gap, text) for text in (fill.text, *fill.others))
    # 2.
    refusals = {edit: _refusal(document, gap, edit) for edit in edits}
    good = [edit for edit, refusal in refusals.items() if not refusal]
    first = next(iter(edits))
    if not good:
        return Outcome(gap, fill, None, _late(fill, refusals[first]))
    # 3. The engine has estimated the chance of its first text only.
    fill = fill if good[0] == first else replace(fill, chance=None)
    return Outcome(gap, fill, good[0], others=tuple(good[1:]))


def _late(fill: Fill, why: str) -> str:
    """Return `why` no text is offered; after the deadline where that has cut one, since half a text has faults."""
    is_cut = fill.reason == "deadline" and (fill.text or not fill.parses) and "deadline" not in why
    return f"the deadline passed before the text was complete; {why}" if is_cut else why


def _refusal(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why `edit` is not offered, as a sentence; empty if it is."""
    replaced = document.data[gap.start : gap.end] if gap.kind == "span" or gap.stub else b""
    if replaced and edit.text == replaced.decode("utf-8"):
        return "the model wrote the text that is already there"
    if repeated := fit.repetition_of_edit(document, gap, edit):
        return f"the fill was refused: {repeated}"
    return useless(document, gap, edit) or harm_of(document, gap, edit)


def _finish_several(document: Document, gap: Gap, fill: Fill) -> Outcome:
    """Return one edit for those gaps of `gap.parts` whose fills are not refused; the others stay as they are."""
    filled, edits, whys = document, list[Edit](), list[str]()
    # From the last gap to the first, so that the offsets of the earlier ones stay valid.
    for part, text in reversed(list(zip(gap.parts, (fill.text, *fill.further), strict=True))):
        outcome = finish(filled, replace(part, further=()), replace(fill, text=text, others=(), further=()))
        whys.append(outcome.why)
        if outcome.edit:
            edits.append(outcome.edit)
            filled = apply_edit(filled, outcome.edit)
    if not edits:
        return Outcome(gap, fill, None, whys[-1])
    start, end = edits[-1].start, edits[0].end
    text = filled.data[start : end + len(filled.data) - len(document.data)].decode("utf-8")
    left = len(gap.parts) - len(edits)
    why = f"{left} of {len(gap.parts)} gaps got no fill; {next(filter(None, whys))}" if left else ""
    return Outcome(gap, fill, Edit(start, end, text), why)
