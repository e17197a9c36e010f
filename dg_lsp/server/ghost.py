"""Ghost text: from a cursor to inline items. Functions without state; they know the session and the protocol."""

import asyncio
from typing import TYPE_CHECKING

from lsprotocol import types

from dg_lsp.server import convert
from dg_lsp.server.progress import drafts_to
from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills.edit import Edit, apply_edit
from dg_lsp.text.gaps.find import NoGap, find_gap

if TYPE_CHECKING:
    from dg_lsp.server.app import DgLsp


async def ghost_text(
    ls: "DgLsp", document: Document, params: types.InlineCompletionParams
) -> list[types.InlineCompletionItem]:
    """The inline items for a cursor.

    1. If a completion menu is open, its selected entry counts as typed.  2. Answer from a recent fill that agrees with
    the text typed since.  3. Debounce.  4. Find the gap.  5. Fill it.  6. Make the items.

    Raises:
        NoGap: nothing can be offered here. EngineError: the engine gives no answer.
    """
    automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
    if automatic and not ls.session.settings.automatic:
        raise NoGap("ghost text is switched off by the setting automatic")
    encoding = ls.documents.encoding
    cursor = convert.offset_of(document, params.position, encoding)
    # 1.
    if (selected := params.context.selected_completion_info) is not None:
        return await _behind_selected(ls, document, selected, automatic=automatic)
    # 2. A request that was not automatic wants several items, so one recent fill is not enough. Directly behind an
    # accepted fill nothing is offered automatically.
    edits = ls.session.recent(document, cursor)
    if automatic and not edits and ls.session.taken(document, cursor):
        raise NoGap("the fill that ends here was just accepted")
    if not edits or (len(edits) < 2 and not automatic):
        # 3.
        if automatic:
            await ls.session.debounce(document.uri)
        edits = await _fresh(ls, document, cursor, automatic=automatic)
    # 6.
    items = [convert.inline_item(document, cursor, edit, encoding) for edit in edits]
    return items[:1] if automatic else items


async def _fresh(ls: "DgLsp", document: Document, cursor: int, *, automatic: bool) -> list[Edit]:
    """Steps 4 and 5 of `ghost_text`: the edits that agree with the text between the gap's start and the cursor."""
    # 4. In a thread, so that the event loop can read messages between the parses.
    gap = await asyncio.to_thread(find_gap, document, cursor)
    if reason := convert.not_inline(document, cursor, gap):
        raise NoGap(reason)
    # 5.
    settings = ls.session.ghost_settings(automatic=automatic)
    outcome = await ls.session.fill(document, gap, settings, drafts_to(ls, document, gap), "ghost")
    if outcome.edit is None:
        raise NoGap(outcome.why)
    typed = document.data[gap.start : cursor].decode("utf-8")
    found = [e for e in (outcome.edit, *outcome.others) if e.text.startswith(typed)]
    if not found:
        raise NoGap("no fill begins with what is typed before the cursor")
    return found


async def _behind_selected(
    ls: "DgLsp", document: Document, selected: types.SelectedCompletionInfo, *, automatic: bool
) -> list[types.InlineCompletionItem]:
    """Ghost text behind the selected entry of a completion menu: items of the same range that begin with the entry."""
    encoding = ls.documents.encoding
    start = convert.offset_of(document, selected.range.start, encoding)
    end = convert.offset_of(document, selected.range.end, encoding)
    typed = apply_edit(document, Edit(start, end, selected.text))
    cursor = start + len(selected.text.encode("utf-8"))
    edits = ls.session.recent(typed, cursor) or await _fresh(ls, typed, cursor, automatic=automatic)
    texts = [convert.text_from(typed, start, edit) for edit in edits]
    return [types.InlineCompletionItem(insert_text=text, range=selected.range) for text in texts]
