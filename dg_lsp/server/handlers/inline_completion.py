"""Ghost text: from a cursor to inline items, and the work on the line that is likely to come next."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from lsprotocol import types

from dg_lsp.budget import ASKED, UNASKED, within
from dg_lsp.context import is_key
from dg_lsp.engine.power import on_battery
from dg_lsp.filling.fill import FillOptions
from dg_lsp.filling.growth import may_grow
from dg_lsp.filling.inside import place_inside
from dg_lsp.filling.offers import Offer, covered, next_place
from dg_lsp.filling.pairs import may_open, pairs_of
from dg_lsp.gaps import Edit, Gap, NoGap, apply_edit, endings, find_gap, half_word, is_part
from dg_lsp.guard import doubt
from dg_lsp.messages import STRINGS, Draft, Priority
from dg_lsp.reasons import NO_WORD, OutOfTime
from dg_lsp.server import convert
from dg_lsp.server.handlers.context import Context, Reply, Request, answered
from dg_lsp.server.rpc.envelope import GhostText
from dg_lsp.server.settings import silence
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.server.trigger import opens
from dg_lsp.settings import Settings
from dg_lsp.source.document import UNITS, Document, whole
from dg_lsp.source.jsx import is_attribute
from dg_lsp.source.language import injections_of, load_language

# A command of the client, for the cursor.
_INSIDE = types.Command("Continue in the block", "dg-lsp.inside")
_PAIRS = 0.03  # seconds for the pairs of a text
_OTHERS = 8  # further open documents whose words count as in sight


@dataclass(frozen=True, slots=True)
class Spot:
    """The place for ghost text: after the `cursor` of `snapshot`.

    replaced: the range that an item replaces; it begins at `start`, and is empty unless an entry of a menu is selected.
    whole: the word before the cursor is such an entry, and complete. automatic: the editor asks by itself.
    """

    snapshot: Snapshot
    cursor: int
    start: int
    replaced: types.Range
    whole: bool
    automatic: bool

    @property
    def document(self) -> Document:
        """The document of the snapshot."""
        return self.snapshot.document


async def inline_completion(
    context: Context, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """Return at most one item while the user types, and several different ones if the user asks.

    Always a list, because clients keep showing old ghost text after null or an error.
    """
    uri = params.text_document.uri
    request = Request(uri, lambda _: types.InlineCompletionList([]), raises=False)
    return await answered(context, request, lambda snapshot: _complete(snapshot, context, params))


async def _complete(
    snapshot: Snapshot, context: Context, params: types.InlineCompletionParams
) -> Reply[types.InlineCompletionList]:
    session, uri = context.session, snapshot.document.uri
    items = await session.newest(uri, ghost_text(snapshot, context, params))
    offer = session.offers.shown(uri)
    if offer and params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic:
        _grow(context, snapshot, offer, params.position)
    fill, files = (offer.fill, offer.files) if offer else (None, ())
    return Reply(types.InlineCompletionList(items=items), fill=fill, files=files)


async def ghost_text(
    snapshot: Snapshot, context: Context, params: types.InlineCompletionParams
) -> list[types.InlineCompletionItem]:
    """Return the inline items for a cursor; at most one if the editor asks by itself.

    1. If a completion menu is open, its selected entry counts as typed.  2. Wait for a fill that was begun before the
    last letters of a word, and answer from a recent fill that agrees with the text typed since.  3. Debounce.  4. Find
    the gap.  5. Fill it.  6. Make the items, without dismissed texts.
    """
    # 1.
    offers, spot = context.session.offers, _spot(snapshot, context, params)
    if spot.automatic and (reason := _unwanted(context, spot)):
        raise NoGap(reason)
    edits = await (_unasked if spot.automatic else _asked)(context, spot)
    # 6.
    found = [(_item(spot, edit), edit) for edit in edits]
    if spot.automatic:
        at, document = snapshot.offset(params.position), snapshot.document
        found = [
            (item, edit)
            for item, edit in found
            if not offers.was_dismissed(document, at, str(item.insert_text))
        ][:1]
        if not found:
            raise NoGap("this text was dismissed here")
    if snapshot.client.pairs:
        for item, edit in found:
            item.pairs = await asyncio.to_thread(_pairs, spot, edit, item) if may_open(edit.text) else []
    return [item for item, _ in found]


async def _asked(context: Context, spot: Spot) -> list[Edit]:
    """Return the edits for a spot that the user asks for by a key: several, so that one recent fill is not enough.

    The text that is shown stays the first one, with the lines that it has got below it.
    """
    # 2.
    shown = context.session.offers.edits_at(spot.snapshot, spot.cursor)
    if len(shown) > 1:
        return shown
    # 4. and 5.
    context.session.ahead.stop_unasked()
    found = await fill_at(context, spot, "ghost")
    others = [edit for edit in found if not any(one.text.startswith(edit.text) for one in shown)]
    return [*shown, *others]


async def _unasked(context: Context, spot: Spot) -> list[Edit]:
    """Return the edits for a spot while the user types."""
    session, clock = context.session, asyncio.get_running_loop().time
    # Where text must follow, the user should not wait.
    must_follow = opens(spot.document.data, spot.cursor)
    until = clock() + (0.0 if must_follow else session.trigger.pause(spot.snapshot, spot.cursor))
    # 2.
    await session.ahead.ended(spot.document, spot.cursor)
    if edits := session.offers.edits_at(spot.snapshot, spot.cursor):
        return edits
    # 3.
    await asyncio.sleep(until - clock())
    # 4. and 5.
    return await session.ahead.result(spot.document, spot.cursor, partial(fill_at, context, spot, "ghost"))


def look_ahead(context: Context, uri: str) -> None:
    """Begin ghost text for the next line, if a fill at the end of a line has just been accepted; else end such work.

    Work whose text may be right in the text that the document `uri` has now continues.
    """
    ahead, offer = context.session.ahead, context.session.offers.shown(uri)
    with suppress(NoGap):
        snapshot = context.around(context.workspace.document(uri))
        settings, document = snapshot.settings, _code_ahead(context, snapshot.document)
        ahead.changed(document)
        if offer is None or ahead.is_for(document) or not (settings.prefetch and settings.automatic):
            return
        if expected := next_place(offer, document):
            typed, cursor = replace(snapshot, document=expected[0]), expected[1]
            spot = Spot(typed, cursor, cursor, typed.range(cursor, cursor), whole=False, automatic=True)
            ahead.begin(typed.document, cursor, fill_at(context, spot, "ahead"))


def _code_ahead(context: Context, document: Document) -> Document:
    """Return `document`, or the code in it that work ahead or the shown text is in."""
    if injections_of(document.language) is None:
        return document
    line, offer = context.session.ahead.line(document.uri), context.session.offers.shown(document.uri)
    if line is None and offer is not None:
        line = replace(document, data=offer.data).line_at(offer.start)
    if line is None or line >= len(document.line_starts):
        return document
    return context.workspace.part(document, document.line_end(line))[0]


def _grow(context: Context, snapshot: Snapshot, offer: Offer, position: types.Position) -> None:
    """Begin to write what belongs below the text of `offer` that `position` shows, unless that is done or known.

    A client that asks again is notified of longer text. If nothing belongs there, and the text has been accepted
    meanwhile, ghost text for the next line is begun.
    """
    session, settings = context.session, snapshot.settings
    document, cursor = context.workspace.part(snapshot.document, snapshot.offset(position))
    if not _writes_on(settings) or session.ahead.grows(document):
        return
    made_for = replace(document, data=offer.data, history=None)
    if session.offers.has_ended(offer) or not may_grow(offer, made_for):
        return

    async def growing() -> list[Edit]:
        unhurried = replace(settings, deadline=2 * settings.ghost_deadline, alternatives=1)
        with context.board.growing():
            is_longer = await session.grow(made_for, offer, unhurried)
        if is_longer:
            context.client.send_grown(document.uri)
        else:
            session.offers.end(offer)
            asyncio.get_running_loop().call_soon(look_ahead, context, document.uri)
        return []

    shown = offer.texts[0].encode("utf-8").removeprefix(document.data[offer.start : cursor])
    session.ahead.begin(document, cursor, growing(), shown)


def _writes_on(settings: Settings) -> bool:
    """Return whether what belongs below a shown text is written while one looks at it."""
    return settings.prefetch and settings.automatic and not on_battery()


async def fill_at(context: Context, spot: Spot, priority: Priority) -> list[Edit]:
    """Find the gap at a spot and fill it: the edits that agree with the text between the gap's start and the cursor."""
    document, cursor, settings = spot.document, spot.cursor, spot.snapshot.settings
    with within(UNASKED if spot.automatic else ASKED):
        # In a thread, so that the event loop can read messages between the parses.
        gap = await asyncio.to_thread(find_gap, document, cursor)
        if reason := convert.not_inline(document, cursor, gap):
            raise NoGap(reason)
        prose = _is_prose(gap)
        if spot.automatic and prose and not (settings.prose or _is_data(document, gap)):
            raise NoGap("ghost text in comments and strings is switched off by the setting prose")
        if not prose and half_word(document.data, cursor):
            beside = context.workspace.beside(document)
            others = [one.data for one in beside if one.language == document.language][:_OTHERS]
            gap = await asyncio.to_thread(_with_endings, spot, gap, others)
        settings = _ghost_settings(spot)
        show = _shown(context, spot, gap) if priority == "ghost" else lambda _: None
        soon = spot.automatic and spot.snapshot.client.grows and _writes_on(settings)
        inside = spot.snapshot.client.inside
        wanted = FillOptions(priority=priority, show=show, soon=soon, unasked=spot.automatic, inside=inside)
        outcome = await context.session.fill(document, gap, settings, wanted)
    if outcome.edit is None:
        raise NoGap(outcome.why)
    typed = document.data[gap.start : cursor].decode("utf-8")
    found = [e for e in (outcome.edit, *outcome.others) if e.text.startswith(typed)]
    if not found:
        raise NoGap("no fill begins with the text before the cursor")
    if gap.endings == ("",):
        found = [e for e in found if not is_part(e.text.removeprefix(typed).encode("utf-8"))]
    if not found:
        raise NoGap("no fill ends the word where it is complete")
    if reason := doubt(outcome.fill, settings.confidence):
        raise NoGap(reason)
    return found


def _shown(context: Context, spot: Spot, gap: Gap) -> Callable[[Draft], None]:
    """Return a function that sends a Draft of `gap`, until the document changes."""
    send, documents = context.client.drafts(spot.snapshot, gap), context.workspace.documents

    def show(draft: Draft) -> None:
        if documents.state(spot.document.uri) == spot.document.state:
            send(draft)

    return show


def _ghost_settings(spot: Spot) -> Settings:
    """Return the settings for ghost text: one sure fill while the user types, else several and twice the deadline."""
    settings = spot.snapshot.settings
    if spot.automatic:
        return replace(settings, deadline=settings.ghost_deadline, alternatives=1)
    return replace(settings, deadline=2 * settings.ghost_deadline, confidence=0.0)


def _spot(snapshot: Snapshot, context: Context, params: types.InlineCompletionParams) -> Spot:
    """Return the Spot of a request; an entry of a menu is put into the document.

    A recent offer that the user is typing comes before an entry that disagrees with it. Of a Markdown file the document
    is the code fence.
    """
    automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
    document, cursor = context.workspace.part(snapshot.document, snapshot.offset(params.position))
    snapshot, selected = replace(snapshot, document=document), params.context.selected_completion_info
    replaced = snapshot.range(cursor, cursor)
    plain = Spot(snapshot, cursor, cursor, replaced, whole=False, automatic=automatic)
    if selected is None:
        return plain
    start, end = snapshot.offset(selected.range.start), snapshot.offset(selected.range.end)
    entry, edits_at = whole(selected.text), context.session.offers.edits_at
    typed = replace(snapshot, document=apply_edit(snapshot.document, Edit(start, end, entry)))
    end = start + len(entry.encode("utf-8"))
    disagrees = automatic and not edits_at(typed, end) and edits_at(snapshot, cursor)
    return plain if disagrees else Spot(typed, end, start, selected.range, whole=True, automatic=automatic)


def _item(spot: Spot, edit: Edit) -> GhostText:
    """Return the item that makes `edit` at a spot; its range covers the closed brackets that the edit covers.

    Its command has the client put the cursor into the empty block that the text ends with.
    """
    replaced = spot.replaced
    if not spot.whole and covered(spot.document, spot.cursor, edit):
        replaced = spot.snapshot.range(spot.cursor, edit.end)
    text = convert.text_from(spot.document, spot.start, edit)
    inside = spot.snapshot.client.inside and place_inside(edit.text) is not None
    return GhostText(text, range=replaced, command=_INSIDE if inside else None)


def _pairs(spot: Spot, edit: Edit, item: GhostText) -> list[list[int]]:
    """Return the pairs of `edit` in the text of `item`, which makes it at a spot, in UTF-16 code units.

    A statement that takes too long to read has none: the text need not wait for them.
    """
    new, shift = str(item.insert_text).encode("utf-8"), edit.start - spot.start
    codec, size = UNITS["utf-16"]

    def units(at: int) -> int:
        return len(new[:at].decode("utf-8").encode(codec)) // size

    try:
        with within(_PAIRS):
            found = pairs_of(spot.document, replace(edit, text=convert.at_line_feeds(edit.text)))
    except OutOfTime:
        return []
    return [[units(at + shift) for at in pair] for pair in found if pair.open + shift >= 0]


def _unwanted(context: Context, spot: Spot) -> str:
    """Return why nothing is offered at a spot unless the user asks, as a sentence; empty if something may be."""
    data, cursor, offers = spot.document.data, spot.cursor, context.session.offers
    if reason := silence(spot.snapshot.settings, spot.document.language):
        return reason
    if is_part(data[cursor : cursor + 1]) and half_word(data[:cursor], cursor):
        return "the cursor is in the middle of a word"
    if not offers.edits_at(spot.snapshot, cursor) and offers.accepted_at(spot.document, cursor):
        return "the fill that ends here was just accepted"
    if offers.continues_dismissed(spot.document, cursor):
        return "the text before the cursor begins a text that was dismissed here; type something else"
    return "" if spot.whole else context.session.trigger.silence(spot.snapshot, spot.cursor)


def _with_endings(spot: Spot, gap: Gap, others: list[bytes]) -> Gap:
    """Return `gap`, which begins after half a word, with the texts that complete that word to one in sight."""
    if spot.whole:
        return gap if gap.insert_before else replace(gap, endings=("",))
    language = load_language(spot.document.language, spot.document.macros)
    found = endings(language, spot.document, spot.cursor, others)
    half = half_word(spot.document.data, spot.cursor).decode("utf-8", "replace")
    own = spot.document.data
    found = tuple(e for e in found if not is_key(half + e) or (half + e).encode() in own)
    # The text that the gap inserts before its fill ends the word where it is.
    if gap.insert_before and "" not in found:
        raise NoGap(NO_WORD)
    return gap if gap.insert_before else replace(gap, endings=found)


def _is_prose(gap: Gap) -> bool:
    """Return whether the cursor is in a comment or a string; code for a comment begins on the line below it."""
    asked_for = gap.kind == "statement" and gap.insert_before.startswith(("\n", "\r"))
    return asked_for or gap.kind in (*STRINGS, "comment")


def _is_data(document: Document, gap: Gap) -> bool:
    """Return whether the gap is in a string that is code: in a key or value of JSON, or an attribute of JSX."""
    if gap.kind not in STRINGS:
        return False
    language = load_language(document.language)
    return language.plain.data or (language.jsx and is_attribute(document.data, gap.start))
