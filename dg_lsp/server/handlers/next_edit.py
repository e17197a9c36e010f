"""Next edits: the request `dg-lsp/nextEdit` and the notification `dg-lsp/nextEdit/dismiss`."""

import asyncio
from contextlib import suppress
from typing import Any

from lsprotocol import types

from dg_lsp.budget import UNASKED, within
from dg_lsp.edits import Place, is_sound, nearest, next_edits
from dg_lsp.filling.engine import EngineError
from dg_lsp.filling.rewrites import PATIENCE, rewrites_for, written
from dg_lsp.reasons import NoGap
from dg_lsp.server.convert import position_of
from dg_lsp.server.handlers.context import Context, Reply, Request, answered
from dg_lsp.server.repeats import Repeat
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.settings import Settings
from dg_lsp.source.bursts import Burst
from dg_lsp.source.document import Document

_LONGEST = 60  # characters of a label
_NOWHERE = "the last edit is not to be repeated at any other place"
_PAUSE = 0.3  # seconds without a key after which a model is asked; ghost text is asked for before


async def next_edit(context: Context, params: Any) -> dict[str, Any]:
    """Return the nearest place where the last edit should be repeated, or the reason why there is none."""
    try:
        uri = str(params["textDocument"]["uri"])
        position = position_of(params["position"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return _empty("a request dg-lsp/nextEdit has a textDocument with a uri, and a position")
    request = Request(uri, _empty, raises=False, quiet=True)
    return await answered(context, request, lambda found: _answer(found, context, position))


async def dismiss(context: Context, params: Any) -> None:
    """Do not offer a place again for the same edit; `params` has its id."""
    if isinstance(params, dict):
        context.session.repeats.dismiss(str(params.get("id")))


async def _answer(snapshot: Snapshot, context: Context, position: types.Position) -> Reply[dict[str, Any]]:
    """Return the reply for the cursor at `position`.

    1. Find the edit to repeat: the newest one of the document, or, if a repetition was just taken in it, the edit that
    was repeated.  2. Find its places by rules.  3. Take the first sound one.  4. If the rules find none, take the first
    line that a loaded model lets follow.
    """
    if not snapshot.settings.next_edit:
        return Reply(_empty("next edits are switched off by the setting nextEdit"), None)
    # 1.
    document, cursor = snapshot.document, snapshot.offset(position)
    source = _source(context, document)
    bursts = context.workspace.documents.bursts(source.uri)
    if (burst := bursts.last) is None or source.history is None:
        return Reply(_empty("nothing that can be followed was edited here"), None)
    others = context.workspace.beside(source)
    at = cursor if source is document else -1
    # 2.
    with within(UNASKED):
        rules = asyncio.to_thread(next_edits, source, bursts, at, others)
        places = await context.session.current(document.uri, rules)
        repeats = context.session.repeats
        if places:
            repeats.note_sure(source.uri, burst)
        # 3.
        for place in repeats.left(source.uri, burst, nearest(places, document.uri, cursor)):
            sound = await context.session.current(document.uri, asyncio.to_thread(is_sound, *place))
            # Another document may have changed meanwhile.
            if sound and await context.workspace.is_current(place[0]):
                shown = repeats.offer(source.uri, burst, place)
                return Reply({"edit": _edit(context, shown), "reason": None}, None)
    # 4.
    if repeats.is_sure(source.uri, burst):
        return Reply(_empty(_NOWHERE), None)
    work = _written(context, snapshot.settings, (source, burst), at)
    line = await context.session.current(document.uri, work)
    if line is not None and await context.workspace.is_current(line[0]):
        shown = repeats.offer(source.uri, burst, line)
        return Reply({"edit": _edit(context, shown), "reason": None}, None)
    return Reply(_empty(_NOWHERE), None)


async def _written(
    context: Context, settings: Settings, edited: tuple[Document, Burst], cursor: int
) -> Place | None:
    """Return the first line that a loaded model lets follow from the burst of the document, the last edit there.

    It is asked after a pause only. cursor: -1 where it is in another document.
    """
    (document, burst), session = edited, context.session
    bursts, others = context.workspace.documents.bursts(document.uri), context.workspace.beside(document)
    with suppress(EngineError), within(UNASKED):
        # The next key ends this, so while one types nobody asks for the engine's state.
        await asyncio.sleep(_PAUSE)
        engine = await session.loaded()
        if engine is None:
            return None
        door, repeats = session.door(document, settings, engine), session.repeats
        found = await asyncio.to_thread(rewrites_for, document, bursts, cursor, others, settings)
        end = asyncio.get_running_loop().time() + PATIENCE
        for rewrite in found:
            text = repeats.text_for(rewrite.request)
            if text is None:
                left = end - asyncio.get_running_loop().time()
                # Both documents are looked at: that of the edit, and that of the line.
                both = session.door(rewrite.line.document, settings, door)
                text = await written(both, rewrite, left) if left > 0 else None
                if text is None:  # the next request asks about the lines that are left
                    return None
                repeats.note_text(rewrite.request, text)
            places = nearest(rewrite.places(text), document.uri, cursor)
            for one in repeats.left(document.uri, burst, places):
                if await asyncio.to_thread(is_sound, *one):
                    return one
    return None


def _source(context: Context, document: Document) -> Document:
    """Return the document with the edit that is to be repeated when the cursor is in `document`."""
    documents = context.workspace.documents
    taken = context.session.repeats.taken(document)
    if taken is None:
        return document
    if taken.source != document.uri:
        try:
            return context.workspace.document(taken.source)
        except NoGap:
            return document
    newest = documents.bursts(document.uri).last
    if newest is not None and newest.number != taken.number:
        documents.absorb(document.uri)
    return document


def _edit(context: Context, repeat: Repeat) -> dict[str, Any]:
    """Return the object that the client gets for `repeat`."""
    document, edit = repeat.document, repeat.edit
    old = document.data[edit.start : edit.end].decode("utf-8", "replace")
    return {
        "id": repeat.id,
        "uri": document.uri,
        "version": document.version,
        "range": context.around(document).range(edit.start, edit.end),
        "newText": edit.text,
        "label": _label(old, edit.text),
    }


def _label(old: str, new: str) -> str:
    """Return a short description of an edit: `rate → factor`, `+ , context`, `− , debug`."""
    one, two = (" ".join(text.split()) for text in (old, new))
    label = f"{one} → {two}" if one and two else f"+ {two}" if two else f"− {one}"
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def _empty(reason: str) -> dict[str, Any]:
    return {"edit": None, "reason": reason}
