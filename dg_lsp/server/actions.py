"""Code actions that fill a gap, and the work that they share with the commands.

Functions without state; they know the session and the protocol's types.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lsprotocol import types

from dg_lsp.filling.fill import Outcome
from dg_lsp.server import convert
from dg_lsp.server.progress import Progress, drafts_to, loading_to
from dg_lsp.server.window import DgLsp
from dg_lsp.settings import Settings, SettingsError, override
from dg_lsp.text.documents.document import Document, DocumentError, Encoding
from dg_lsp.text.fills.confirm import why_confirm, written_lines
from dg_lsp.text.gaps.find import Gap, NoGap, find_gap, find_gaps, find_named, find_span
from dg_lsp.text.messages import BODIES, WANTED, Draft

TITLE, AGAIN, REWRITE = "Fill this function body", "Rewrite this function body", "Rewrite the selection"
ACTION, SELECTION = (f"{types.CodeActionKind.RefactorRewrite.value}.{name}" for name in ("fill", "selection"))
FILL = "dg-lsp.fill"
ASKS = "confirm"  # in the client's capability experimental.dgLsp: it asks a person where a result says why


def action(
    ls: DgLsp, document: Document, gap: Gap, cursor: int | None, *, named: bool = False
) -> types.CodeAction:
    """The code action that fills `gap`, or writes it again if it is a span.

    cursor: the offset at which it was asked for, if at a cursor. named: put the function's name into the title.
    It is resolved to an edit. A client that cannot resolve actions gets the command instead, and so does one that asks
    a person by itself where the command's result says why.
    """
    span = convert.range_of(document, gap.span, ls.documents.encoding)
    data: dict[str, Any] = {
        "uri": document.uri,
        "version": document.version,
        "range": {"start": convert.plain(span.start), "end": convert.plain(span.end)},
        "kind": gap.kind if gap.kind in (*BODIES, "span") else "holes",
        "stub": gap.stub,
        "name": gap.name,
    }
    if cursor is not None:
        position = types.Position(*document.position(cursor, ls.documents.encoding))
        data["position"] = convert.plain(position)
    title = f"{title_of(gap)}: {gap.name}" if named else title_of(gap)
    listed = types.CodeAction(title, kind=kind_of(gap))
    listed.is_preferred = gap.stub or None
    can = ls.client_capabilities.text_document
    offered = can.code_action if can else None
    if offered and offered.tag_support and types.CodeActionTag.LlmGenerated in offered.tag_support.value_set:
        listed.tags = [types.CodeActionTag.LlmGenerated]
    resolves = offered and offered.resolve_support and "edit" in offered.resolve_support.properties
    if resolves and not convert.asked_for(ls.client_capabilities, ASKS):
        listed.data = data
    else:
        listed.command = types.Command(title=title, command=ls.prefix + FILL, arguments=[data])
    return listed


def kind_of(gap: Gap) -> str:
    """The kind of the code action for `gap`."""
    return SELECTION if gap.kind == "span" else ACTION


def refusal_of(ls: DgLsp, document: Document, gap: Gap) -> str:
    """Return why no code action is listed for `gap`, as a sentence; empty if one is.

    Nothing that is written is replaced before a person has seen how, so the client must be able to ask.
    """
    client = ls.client_capabilities
    if (
        not written_lines(document, gap)
        or convert.asked_for(client, ASKS)
        or convert.takes_annotations(client)
    ):
        return ""
    return f"{title_of(gap)} replaces written code, and this client cannot ask before it makes an edit"


def title_of(gap: Gap) -> str:
    """The title of the code action for `gap`."""
    if gap.kind in BODIES:
        return TITLE if gap.hollow else AGAIN
    if gap.kind == "span":
        return REWRITE
    count = len(gap.parts)
    return f"Fill the {count} holes in this function" if count > 1 else "Fill the hole in this function"


async def gap_of(ls: DgLsp, document: Document, target: Mapping[str, Any]) -> Gap:
    """The gap of `document` at the position, the range or the function's name in `target`.

    Raises:
        NoGap: there is no gap, or `target` has none of these. DocumentError: a position is outside the document.
    """
    encoding, kind = ls.documents.encoding, target.get("kind")
    if kind not in (None, "span", *WANTED):
        raise NoGap(f"the kind is one of {', '.join(WANTED)} or span, not {str(kind)[:40]!r}")
    try:
        if kind == "span":
            return await asyncio.to_thread(find_span, document, *_range(document, target, encoding))
        if "position" in target:
            at = convert.offset_of(document, _position(target["position"]), encoding)
            return await asyncio.to_thread(find_gap, document, at, kind)
        if "range" in target:
            start, end = _range(document, target, encoding)
            gaps = await asyncio.to_thread(find_gaps, document, start, end)
            exact = [g for g in gaps if (g.start, g.end) == (start, end)]
            return exact[0] if exact else await asyncio.to_thread(find_gap, document, start, kind)
        return await asyncio.to_thread(find_named, document, str(target["name"]), kind)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, NoGap | DocumentError):
            raise
        raise NoGap("say where to fill: position, range or name; see docs/bots.md") from error


def edit_of(ls: DgLsp, document: Document, outcome: Outcome) -> tuple[types.WorkspaceEdit | None, Outcome]:
    """The edit of `outcome` as a client may get it by a code action, and `outcome`, without its edit if there is none.

    An edit that a person must confirm is annotated; a client that cannot ask does not get it.
    """
    assert outcome.edit is not None
    client = ls.client_capabilities
    edit = convert.workspace_edit(document, [outcome.edit], ls.documents.encoding, client)
    why = why_confirm(document, outcome.gap, outcome.edit, outcome.fill)
    if not why:
        return edit, outcome
    if convert.takes_annotations(client) and edit.document_changes:
        return convert.annotated(edit, title_of(outcome.gap), why), outcome
    return None, replace(outcome, edit=None, why=f"{why}, and this client cannot ask before it makes an edit")


def cursor_of(document: Document, target: Mapping[str, Any], encoding: Encoding) -> int | None:
    """The offset of the position in `target`, or of the beginning of its range; None where it has neither."""
    if "position" in target:
        return convert.offset_of(document, _position(target["position"]), encoding)
    return _range(document, target, encoding)[0] if "range" in target else None


async def fill_gap(ls: DgLsp, document: Document, gap: Gap, target: Mapping[str, Any]) -> Outcome:
    """Fill `gap` with the settings in `target`, and report progress to the client.

    Raises:
        EngineError: the engine gives no answer. NoGap: a setting in `target` is wrong.
    """
    settings = settings_of(ls, target)
    task = asyncio.current_task()
    async with Progress(ls, title_of(gap), task, target.get("workDoneToken")) as progress:
        show = drafts_to(ls, document, gap)

        def report(draft: Draft) -> None:
            progress.report(f"step {draft.step}" if draft.step else "reading the file, trying lengths")
            show(draft)

        with loading_to(progress, ls.watchers):
            return await ls.session.fill(document, gap, settings, report, "fill")


def settings_of(ls: DgLsp, target: Mapping[str, Any]) -> Settings:
    """The session's settings with seed, effort and deadline from `target`."""
    own = {name: target[name] for name in ("seed", "effort", "deadline") if name in target}
    try:
        return override(ls.session.settings, {**own, "alternatives": 1})
    except SettingsError as error:
        raise NoGap(str(error)) from error


def _range(document: Document, target: Mapping[str, Any], encoding: Encoding) -> tuple[int, int]:
    """The offsets of the range in `target`."""
    start, end = (_position(target["range"][name]) for name in ("start", "end"))
    return convert.offset_of(document, start, encoding), convert.offset_of(document, end, encoding)


def _position(value: Any) -> types.Position:
    return types.Position(int(value["line"]), int(value["character"]))
