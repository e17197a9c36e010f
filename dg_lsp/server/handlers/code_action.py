"""Code actions that fill a gap: listed without a model, and resolved to an edit with it."""

import asyncio
from dataclasses import replace
from typing import Any

from lsprotocol import types

from dg_lsp.budget import ASKED, within
from dg_lsp.checkpoints import denoises, named
from dg_lsp.filling.fill import Outcome
from dg_lsp.gaps import Gap, NoGap, find_function, find_selected
from dg_lsp.guard import why_confirm, written_lines
from dg_lsp.messages import BODIES
from dg_lsp.server import convert
from dg_lsp.server.handlers.context import Context, Reply, Request, answered
from dg_lsp.server.handlers.target import FILL, code_of, fill_target, gap_of, title_of
from dg_lsp.server.session import Superseded
from dg_lsp.server.settings import unlearned
from dg_lsp.server.snapshot import Snapshot

ACTION, SELECTION = (f"{types.CodeActionKind.RefactorRewrite.value}.{name}" for name in ("fill", "selection"))


async def code_action(context: Context, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Offer to fill the holes or the body of the function at a cursor; for a selection, to rewrite its text, or each
    body in it. Only what the checkpoint can do is offered. Runs no model.
    """
    uri = params.text_document.uri
    # Some editors ask at each move of the cursor.
    quiet = params.context.trigger_kind == types.CodeActionTriggerKind.Automatic
    request: Request[list[types.CodeAction]] = Request(uri, lambda _: [], quiet=quiet)
    return await answered(context, request, lambda snapshot: _list(snapshot, context, params))


async def resolve(context: Context, action: types.CodeAction) -> types.CodeAction:
    """Fill the gap of a code action; an action for an older version of the document is returned unchanged."""
    uri = str(action.data.get("uri", "")) if isinstance(action.data, dict) else ""
    request = Request(uri, lambda _: action)
    return await answered(context, request, lambda snapshot: _resolve(snapshot, context, action))


async def _list(
    snapshot: Snapshot, context: Context, params: types.CodeActionParams
) -> Reply[list[types.CodeAction]]:
    document, only = snapshot.document, params.context.only
    # Editors ask wherever the cursor rests.
    context.workspace.documents.visit(document.uri, params.range.start.line)
    if not any(convert.wants(only, kind) for kind in (ACTION, SELECTION)):
        raise NoGap(f"the client asked for code actions of other kinds: {', '.join(only or ())}")
    start, end = snapshot.offset(params.range.start), snapshot.offset(params.range.end)
    # Code in a file of another language ends where that code ends.
    code, first = context.workspace.part(document, start)
    snapshot, start, end = replace(snapshot, document=code), first, min(end + first - start, len(code.data))
    with within(ASKED):
        if start == end:
            gaps = await asyncio.to_thread(find_function, code, start)
        else:
            gaps = await asyncio.to_thread(find_selected, code, start, end)
    if not gaps:
        raise NoGap("no function is in the selection")
    reasons = [(gap, _refusal(snapshot, gap)) for gap in gaps]
    for reason in (reason for _, reason in reasons if reason):
        context.log_refusal(document.uri, reason)
    gaps = [gap for gap, reason in reasons if not reason]
    cursor = start if start == end else None
    bodies = sum(gap.kind != "span" for gap in gaps)
    several = cursor is None and bodies > 1
    found = [
        _action(
            snapshot,
            context.client.prefix + FILL,
            gap,
            f"{title_of(gap)}: {gap.name}" if several and gap.kind != "span" else title_of(gap),
            cursor,
        )
        for gap in gaps
        if convert.wants(only, _kind(gap))
    ]
    return Reply(found, None)


async def _resolve(snapshot: Snapshot, context: Context, action: types.CodeAction) -> Reply[types.CodeAction]:
    document, data = snapshot.document, action.data
    if not isinstance(data, dict) or data.get("revision") != document.state:
        return Reply(action, "the document has changed since the code action was listed")
    with within(ASKED):
        snapshot = await code_of(snapshot, context, data)
        gap = await gap_of(snapshot, data)
        work = fill_target(snapshot, context, gap, {})
        outcome = await context.session.current(document.uri, work)
    if not await context.workspace.is_current(document):
        raise Superseded
    if outcome.edit:
        action.edit, outcome = _edit(snapshot, outcome)
    if outcome.why:
        # The user has asked for this, and an action that silently does nothing looks broken.
        context.client.inform(outcome.why if outcome.edit else f"nothing offered: {outcome.why}")
    return Reply(action, "" if outcome.edit else outcome.why, outcome.fill, outcome.files)


def _action(snapshot: Snapshot, command: str, gap: Gap, title: str, cursor: int | None) -> types.CodeAction:
    """Return the code action that fills `gap`, or rewrites it if it is a span. cursor: None for a selection.

    It is resolved to an edit. A client that cannot resolve actions gets the command instead, and so does one that asks
    a person by itself where the command's result says why.
    """
    data: dict[str, Any] = {
        "uri": snapshot.document.uri,
        "version": snapshot.document.version,
        "revision": snapshot.document.state,
        "range": snapshot.range(*gap.span),
        "kind": gap.kind if gap.kind in (*BODIES, "span") else "holes",
        "stub": gap.stub,
        "name": gap.name,
    }
    if cursor is not None:
        data["position"] = snapshot.position(cursor)
    listed = types.CodeAction(title, kind=_kind(gap))
    listed.is_preferred = gap.stub or None
    if snapshot.client.tags:
        listed.tags = [types.CodeActionTag.LlmGenerated]
    if snapshot.client.resolves and not snapshot.client.confirm:
        listed.data = data
    else:
        listed.command = types.Command(title=title, command=command, arguments=[data])
    return listed


def _kind(gap: Gap) -> str:
    """Return the kind of the code action for `gap`."""
    return SELECTION if gap.kind == "span" else ACTION


def _refusal(snapshot: Snapshot, gap: Gap) -> str:
    """Return why no code action is listed for `gap`, as a sentence; empty if one is.

    The model must be able to do it. Written code is not replaced before a person has seen how, so the client must be
    able to ask.
    """
    client, settings = snapshot.client, snapshot.settings
    if reason := unlearned(settings, snapshot.document.language):
        return reason
    # The model of a team's server, which is not known here, may.
    if gap.kind == "span" and not (settings.engine_url or denoises(settings.checkpoint)):
        return f"the checkpoint {named(settings.checkpoint)} cannot rewrite a selection"
    if client.confirm or client.annotations or not written_lines(snapshot.document, gap):
        return ""
    return f"{title_of(gap)} replaces written code, and this client cannot ask before it makes an edit"


def _edit(snapshot: Snapshot, outcome: Outcome) -> tuple[types.WorkspaceEdit | None, Outcome]:
    """Return the edit of `outcome` for a code action, and `outcome`, without its edit if the client may not have it.

    An edit that a person must confirm is annotated; a client that cannot ask does not get it.
    """
    assert outcome.edit is not None
    why = why_confirm(snapshot.document, outcome.gap, outcome.edit, outcome.fill)
    if not why:
        return snapshot.workspace_edit([outcome.edit]), outcome
    if snapshot.client.annotations:
        return snapshot.edit_to_confirm(outcome.edit, title_of(outcome.gap), why), outcome
    return None, replace(outcome, edit=None, why=f"{why}, and this client cannot ask before it makes an edit")
