"""Ghost text: from a cursor to inline items. Functions without state; they know the session and the protocol."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

from lsprotocol import types

from dg_lsp.filling.offers import accepted_end, covered, next_line
from dg_lsp.server import convert
from dg_lsp.server.progress import drafts_to
from dg_lsp.server.window import DgLsp
from dg_lsp.text.budget import ASKED, UNASKED, within
from dg_lsp.text.documents.document import Document, whole
from dg_lsp.text.fills.confirm import doubt
from dg_lsp.text.gaps.find import Gap, NoGap, find_gap
from dg_lsp.text.gaps.gap import Edit, apply_edit
from dg_lsp.text.gaps.words import endings, half_word, is_part
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import STRINGS, Priority
from dg_lsp.text.related.secrets import is_key

_OTHERS = 8  # further open documents whose words count as in sight


@dataclass(frozen=True, slots=True)
class Spot:
    """The spot for ghost text: behind the `cursor` of `document`.

    replaced: the range that an item replaces; it begins at `start`, and is empty unless an entry of a menu is selected.
    whole: the word before the cursor is such an entry, and complete. automatic: nobody has asked for it.
    """

    document: Document
    cursor: int
    start: int
    replaced: types.Range
    whole: bool
    automatic: bool


async def ghost_text(
    ls: DgLsp, document: Document, params: types.InlineCompletionParams
) -> list[types.InlineCompletionItem]:
    """The inline items for a cursor; at most one if nobody has asked for them.

    1. If a completion menu is open, its selected entry counts as typed.  2. Answer from a recent fill that agrees with
    the text typed since.  3. Debounce.  4. Find the gap.  5. Fill it.  6. Make the items, without what was dismissed.

    Raises:
        NoGap: nothing can be offered here. EngineError: the engine gives no answer.
    """
    # 1.
    spot = _spot(ls, document, params)
    if spot.automatic and (reason := _unwanted(ls, spot)):
        raise NoGap(reason)
    # 2. A request that was not automatic wants several items, so one recent fill is not enough.
    if spot.automatic:
        await ls.session.begun_ahead(spot.document, spot.cursor)
    edits = ls.session.recent(spot.document, spot.cursor)
    if not edits or (len(edits) < 2 and not spot.automatic):
        # 3.
        if spot.automatic:
            await ls.session.debounce(document.uri)
        # 4. and 5.
        edits = await fill_at(ls, spot, "ghost")
    # 6.
    items = [_item(ls, spot, edit) for edit in edits]
    if spot.automatic:
        at = convert.offset_of(document, params.position, ls.documents.encoding)
        items = [i for i in items if not ls.session.was_dismissed(document, at, str(i.insert_text))][:1]
        if not items:
            raise NoGap("this text was dismissed here")
    return items


def look_ahead(ls: DgLsp, uri: str) -> None:
    """Begin ghost text for the next line, if a fill at the end of a line has just been accepted; else end such work.

    Work that was begun for the text that the document `uri` now has goes on.
    """
    settings, offer = ls.session.settings, ls.session.offered(uri)
    if not (settings.prefetch and settings.automatic and offer):
        return
    with suppress(NoGap):
        document = ls.snapshot(uri)
        if ls.session.foresaw(document):
            return
        ls.session.stop_ahead()
        end = accepted_end(offer, document)
        if end is not None and (foreseen := next_line(document, end)):
            typed, cursor = foreseen
            replaced = convert.range_of(typed, (cursor, cursor), ls.documents.encoding)
            spot = Spot(typed, cursor, cursor, replaced, whole=False, automatic=True)
            ls.session.begin_ahead(typed, cursor, fill_at(ls, spot, "ahead"))


async def fill_at(ls: DgLsp, spot: Spot, priority: Priority) -> list[Edit]:
    """Find the gap at a spot and fill it: the edits that agree with the text between the gap's start and the cursor.

    Raises:
        NoGap: nothing can be offered here. EngineError: the engine gives no answer.
    """
    with within(UNASKED if spot.automatic else ASKED):
        return await _fill_at(ls, spot, priority)


async def _fill_at(ls: DgLsp, spot: Spot, priority: Priority) -> list[Edit]:
    document, cursor = spot.document, spot.cursor
    # In a thread, so that the event loop can read messages between the parses.
    gap = await asyncio.to_thread(find_gap, document, cursor)
    if reason := convert.not_inline(document, cursor, gap):
        raise NoGap(reason)
    prose = _is_prose(gap)
    if spot.automatic and prose and not ls.session.settings.prose:
        raise NoGap("ghost text in comments and strings is switched off by the setting prose")
    if not prose and half_word(document.data, cursor):
        others = [one.data for one in ls.beside(document) if one.language == document.language][:_OTHERS]
        gap = await asyncio.to_thread(_with_endings, spot, gap, others)
    settings = ls.session.ghost_settings(automatic=spot.automatic)
    show = drafts_to(ls, document, gap) if priority == "ghost" else lambda _: None
    outcome = await ls.session.fill(document, gap, settings, show, priority)
    if outcome.edit is None:
        raise NoGap(outcome.why)
    typed = document.data[gap.start : cursor].decode("utf-8")
    found = [e for e in (outcome.edit, *outcome.others) if e.text.startswith(typed)]
    if not found:
        raise NoGap("no fill begins with what is typed before the cursor")
    if gap.endings and not (found := [e for e in found if _completes(gap, e.text)]):
        raise NoGap("no fill completes the half word before the cursor to a word in sight")
    if reason := doubt(outcome.fill, settings.confidence):
        raise NoGap(reason)
    return found


def _spot(ls: DgLsp, document: Document, params: types.InlineCompletionParams) -> Spot:
    """The Spot of a request; an entry of a menu is put into the document.

    A recent offer that is being typed comes before an entry that disagrees with it.
    """
    automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
    encoding, selected = ls.documents.encoding, params.context.selected_completion_info
    cursor = convert.offset_of(document, params.position, encoding)
    replaced = convert.range_of(document, (cursor, cursor), encoding)
    plain = Spot(document, cursor, cursor, replaced, whole=False, automatic=automatic)
    if selected is None:
        return plain
    start = convert.offset_of(document, selected.range.start, encoding)
    end = convert.offset_of(document, selected.range.end, encoding)
    entry = whole(selected.text)
    typed = apply_edit(document, Edit(start, end, entry))
    end = start + len(entry.encode("utf-8"))
    disagrees = automatic and not ls.session.recent(typed, end) and ls.session.recent(document, cursor)
    return plain if disagrees else Spot(typed, end, start, selected.range, whole=True, automatic=automatic)


def _item(ls: DgLsp, spot: Spot, edit: Edit) -> types.InlineCompletionItem:
    """The item that makes `edit` at a spot; its range covers the closed brackets that the edit covers."""
    replaced = spot.replaced
    if not spot.whole and covered(spot.document, spot.cursor, edit):
        replaced = convert.range_of(spot.document, (spot.cursor, edit.end), ls.documents.encoding)
    text = convert.text_from(spot.document, spot.start, edit)
    return types.InlineCompletionItem(insert_text=text, range=replaced)


def _unwanted(ls: DgLsp, spot: Spot) -> str:
    """Return why nothing is offered at a spot unless somebody asks, as a sentence; empty if something may be."""
    data, cursor = spot.document.data, spot.cursor
    if reason := ls.session.silence(spot.document.language):
        return reason
    if is_part(data[cursor : cursor + 1]) and half_word(data[:cursor], cursor):
        return "the cursor is in the middle of a word"
    if not ls.session.recent(spot.document, cursor) and ls.session.taken(spot.document, cursor):
        return "the fill that ends here was just accepted"
    return ""


def _with_endings(spot: Spot, gap: Gap, others: list[bytes]) -> Gap:
    """`gap`, which begins behind half a word, with the texts that complete that word.

    Raises:
        NoGap: no word in sight begins with it.
    """
    if spot.whole:
        return gap if gap.insert_before else replace(gap, endings=("",))
    language = load_language(spot.document.language, spot.document.macros)
    found = endings(language, spot.document, spot.cursor, others)
    half = half_word(spot.document.data, spot.cursor).decode("utf-8", "replace")
    own = spot.document.data
    found = tuple(e for e in found if not is_key(half + e) or (half + e).encode() in own)
    # What the gap inserts before its fill ends the word where it is.
    if not found or (gap.insert_before and "" not in found):
        raise NoGap("no word in sight begins with the half word before the cursor")
    return gap if gap.insert_before else replace(gap, endings=found)


def _is_prose(gap: Gap) -> bool:
    """Return whether the cursor is in a comment or a string; code for a comment begins on the line below it."""
    asked_for = gap.kind == "statement" and gap.insert_before.startswith(("\n", "\r"))
    return asked_for or gap.kind in (*STRINGS, "comment")


def _completes(gap: Gap, text: str) -> bool:
    """Return whether `text` begins with one of the gap's endings and ends the word there."""
    return any(text.startswith(e) and not is_part(text.removeprefix(e).encode("utf-8")) for e in gap.endings)
