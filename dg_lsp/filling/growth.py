"""Growth: text that is shown already gets the item that belongs below it, as an edit that begins with the shown one."""

import asyncio
from dataclasses import replace

from dg_lsp.budget import BOT, bounded, current, spending
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.fill import FillOptions, Outcome, answer_of, finish, prepare
from dg_lsp.filling.inside import place_inside
from dg_lsp.filling.offers import Offer
from dg_lsp.gaps import Edit, Gap, apply_edit
from dg_lsp.messages import LISTS, Fill
from dg_lsp.reasons import NoGap
from dg_lsp.settings import Settings
from dg_lsp.source.document import LINE_END, Document
from dg_lsp.source.lexer import line_end

# Line ends that a text has at most.
_LINES = 24
_KINDS = ("statement", "rest_of_line", "expression", "block", *LISTS)
NOTHING = "nothing more belongs below the text"


def may_grow(offer: Offer, document: Document) -> bool:
    """Return whether text may be written below the first text of `offer`, made for `document`: it ends its line.

    If it ends with an empty block, the user continues in that.
    """
    fill, gap = offer.fill, offer.gap
    if fill is None or gap is None or not fill.grows or place_inside(offer.texts[0]) is not None:
        return False
    plain = gap.kind in _KINDS and (offer.start, offer.end) == (gap.start, gap.end) and not gap.further
    ends = not document.data[offer.end : line_end(document.data, offer.end)].strip()
    return plain and ends and len(LINE_END.findall(offer.texts[0])) < _LINES


async def grow(
    engine: Engine, offer: Offer, document: Document, settings: Settings, options: FillOptions
) -> Outcome:
    """Return the edit of `offer`, made for `document`, with the item below it, or the reason for none.

    1. Ask the engine for it.  2. Fit and check the item as the fill of a gap of its own, in the document that has the
    shown text.
    """
    assert offer.gap is not None and offer.fill is not None
    gap, shown = offer.gap, Edit(offer.start, offer.end, offer.texts[0])
    text = shown.text.removeprefix(gap.insert_before)
    budget = current(BOT)
    # 1.
    try:
        with spending(budget):
            request, files = await asyncio.to_thread(prepare, document, gap, settings, options)
    except NoGap as error:
        return Outcome(gap, Fill(""), None, str(error))
    chance = 1.0 if offer.fill.chance is None else offer.fill.chance
    request = replace(request, shown=text, chance=chance)
    fill = await answer_of(engine, request, options)
    # 2.
    with spending(budget):
        outcome = await asyncio.to_thread(_joined, document, gap, shown, fill)
    return replace(outcome, files=tuple(dict.fromkeys((*offer.files, *files))))


@bounded
def _joined(document: Document, gap: Gap, shown: Edit, fill: Fill) -> Outcome:
    """Return the edit `shown` with the item that `fill` has below it."""
    below = fill.text.removeprefix(shown.text.removeprefix(gap.insert_before))
    item = below.lstrip()
    if not item or below == fill.text:
        return Outcome(gap, fill, None, fill.refusal or NOTHING)
    lead = below[: len(below) - len(item)]
    at = shown.start + len(shown.text.encode("utf-8"))
    kind = gap.kind if gap.kind in LISTS else "statement"
    place = Gap(at, at, kind, LINE_END.split(lead)[-1], insert_before=lead)
    outcome = finish(apply_edit(document, shown), place, replace(fill, text=item))
    if outcome.edit is None:
        return Outcome(gap, fill, None, outcome.why)
    return Outcome(gap, fill, Edit(shown.start, shown.end, shown.text + outcome.edit.text))
