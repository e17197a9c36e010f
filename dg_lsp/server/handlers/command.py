"""The commands: fill one gap, and fill all stubs of a document. docs/clients.md has their arguments and results."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from lsprotocol import types

from dg_lsp.budget import ASKED, within
from dg_lsp.filling.engine import EngineError
from dg_lsp.filling.fill import FillOptions, Outcome
from dg_lsp.filling.stubs import StubEnded, StubStarted, fill_stubs, stubs_of
from dg_lsp.gaps import Edit, NoGap
from dg_lsp.guard import why_confirm
from dg_lsp.messages import Draft
from dg_lsp.reasons import OutOfTime
from dg_lsp.server.handlers.context import Context, Reply, Request, answered
from dg_lsp.server.handlers.target import code_of, cursor_of, fill_target, gap_of, settings_of, title_of
from dg_lsp.server.rpc.envelope import RequestError
from dg_lsp.server.session import Superseded
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.source.document import Document

T = TypeVar("T")
Target = Mapping[str, Any]
Result = dict[str, Any]
Handler = Callable[[Snapshot, Context, Target], Awaitable[Reply[Result]]]
_CANCELLED = types.LSPErrorCodes.RequestCancelled


async def fill(context: Context, target: Target) -> Result:
    """Run the command `dg-lsp.fill`."""
    return await _answered(context, target, _fill, {"fill": None, "confirm": ""})


async def fill_all(context: Context, target: Target) -> Result:
    """Run the command `dg-lsp.fillAll`."""
    return await _answered(context, target, _fill_all, {"filled": [], "left": []})


async def _answered(context: Context, target: Target, handler: Handler, own: Result) -> Result:
    """Return the result of `handler` for `target`. own: the fields that only its command's results have."""
    # Clients with typed records send null for what they leave out.
    given = {name: value for name, value in target.items() if value is not None}
    uri = str(given.get("uri", ""))
    request = Request(uri, lambda why: {"applied": False, "edit": None, "why": why, **own})
    document = _document(context, uri, given)
    return await answered(context, request, lambda snapshot: handler(snapshot, context, given), document)


async def _document(context: Context, uri: str, target: Target) -> Document:
    """Return the document `uri`; raise NoGap if it is not at the version, or not the text, that `target` names."""
    document = await context.workspace.open_or_on_disk(uri, target.get("version"))
    if target.get("revision", document.state) != document.state:
        raise NoGap("the document has changed since the code action was listed; ask again")
    return document


async def _fill(snapshot: Snapshot, context: Context, target: Target) -> Reply[Result]:
    """Fill the gap of `target` and have the client apply the edit; reply with the result of the command `dg-lsp.fill`.

    1. Find the gap.  2. Fill it.  3. See whether a person must confirm the edit.  4. Have the client apply it, if it
    can, nobody need confirm it, and `target` does not say otherwise.
    """
    # 1. and 2.
    with within(ASKED):
        snapshot = await code_of(snapshot, context, target)
        gap = await gap_of(snapshot, target)
        outcome = await _uninterrupted(snapshot, context, fill_target(snapshot, context, gap, target))
    result = {"applied": False, "edit": None, "why": outcome.why, "fill": asdict(outcome.fill), "confirm": ""}
    if outcome.edit is None:
        return Reply(result, outcome.why)
    # 3.
    confirm = await asyncio.to_thread(_why_confirm, snapshot, outcome, target)
    # 4.
    how = {**target, "apply": False} if confirm else target
    result.update(await _apply(snapshot, context, [outcome.edit], (title_of(gap), how)))
    result.update(why=result["why"] or outcome.why, confirm=confirm)
    if confirm and target.get("apply", True) and not snapshot.client.confirm:
        context.client.inform(
            f"nothing changed: {confirm}, and this client cannot ask before it makes an edit"
        )
    return Reply(result, fill=outcome.fill, files=outcome.files)


def _why_confirm(snapshot: Snapshot, outcome: Outcome, target: Target) -> str:
    """Return why a person must confirm the edit of `outcome`, as a sentence; empty if nobody need, or somebody has."""
    if target.get("confirmed") is True or outcome.edit is None:
        return ""
    cursor = cursor_of(snapshot, target)
    return why_confirm(snapshot.document, outcome.gap, outcome.edit, outcome.fill, cursor)


async def _fill_all(snapshot: Snapshot, context: Context, target: Target) -> Reply[Result]:
    """Fill all stubs of a document, and have the client apply one edit; reply with the command's result.

    1. List the stubs.  2. Fill one after another.  3. The fills made before the user cancels the progress, or before
    the engine fails, are kept; the other stubs are left, with the reason.  4. Have the client apply the edit.
    """
    # 1.
    with within(ASKED):
        names = [gap.name for gap in await asyncio.to_thread(stubs_of, snapshot.document)]
    if not names:
        raise NoGap("every function in the file has a body")
    # 2.
    done, why = list[StubEnded](), ""
    try:
        await _uninterrupted(snapshot, context, _fill_stubs(snapshot, context, target, (names, done)))
    # 3.
    except (RequestError, EngineError, OutOfTime) as error:
        cancelled = isinstance(error, RequestError) and error.code == _CANCELLED
        if not cancelled and (isinstance(error, RequestError) or not any(ended.edit for ended in done)):
            raise
        why = str(error)
    filled = [ended.started.gap.name for ended in done if ended.edit]
    left = [[ended.started.gap.name, ended.why] for ended in done if not ended.edit]
    left += [[name, why] for name in names[len(done) :]]
    result = {"applied": False, "edit": None, "why": "", "filled": filled, "left": left}
    # 4.
    edits = []
    for edit, stub in ((ended.edit, ended.started) for ended in done if ended.edit):
        added = _added(snapshot, stub)
        edits.append(Edit(edit.start - added, edit.end - added, edit.text))
    if edits:
        result.update(await _apply(snapshot, context, edits, ("Fill all stubs", target)))
    return Reply(result, "" if result["edit"] else str(result["why"]))


async def _fill_stubs(
    snapshot: Snapshot, context: Context, target: Target, stubs: tuple[list[str], list[StubEnded]]
) -> None:
    """Do step 2 of `_fill_all`. stubs: the names of all, and the list to which each one is added when it has ended."""
    (names, done), document = stubs, snapshot.document
    settings, client = settings_of(snapshot, target), context.client
    async with client.progress("Fill all stubs", target.get("workDoneToken")) as progress:

        def show(draft: Draft) -> None:
            # At each step, because a report right after another is dropped.
            progress.report(*report)
            send(draft)

        wanted = FillOptions(priority="fill", show=show)
        options = await context.session.fill_options(document, settings, wanted)
        door = context.session.door(document, settings)
        filling = fill_stubs(door, document, settings, options=options)
        with context.board.watched_by(progress.report_loading):
            async for event in filling:
                if isinstance(event, StubEnded):
                    done.append(event)
                    continue
                # The client shows the text before the first fill, in which this stub is elsewhere.
                send = client.drafts(snapshot, event.gap.moved(-_added(snapshot, event)))
                done_so_far = (event.number - 1) * 100 // len(names)
                report = f"{event.number} of {len(names)}: {event.gap.name}", done_so_far
                progress.report(*report)


def _added(snapshot: Snapshot, stub: StubStarted) -> int:
    """Return how many bytes the fills before `stub` have added to the document, all of them in front of it."""
    return len(stub.document.data) - len(snapshot.document.data)


async def _uninterrupted(snapshot: Snapshot, context: Context, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`; where the document changes or the user cancels, cancel it and raise RequestError."""
    try:
        return await context.session.current(snapshot.document.uri, work)
    except Superseded as error:
        await _check_current(snapshot, context)
        raise RequestError(_CANCELLED, "cancelled") from error


async def _check_current(snapshot: Snapshot, context: Context) -> None:
    """Raise RequestError if the document is not the text any more that `snapshot` has."""
    if not await context.workspace.is_current(snapshot.document):
        message = "the document changed meanwhile; ask again for the new version"
        raise RequestError(types.LSPErrorCodes.ContentModified, message)


async def _apply(
    snapshot: Snapshot, context: Context, edits: Sequence[Edit], how: tuple[str, Target]
) -> Result:
    """Have the client apply `edits` as one edit; return the fields `edit`, `applied` and `why` of a command's result.

    how: the label for the user, and the target, which may say that the edit is not to be applied.
    """
    label, target = how
    edit = snapshot.workspace_edit(edits)
    # Nothing may be awaited from here on until the edit is sent.
    await _check_current(snapshot, context)
    result = {"edit": edit, "applied": False, "why": ""}
    if target.get("apply", True) and snapshot.client.applies:
        result["why"] = await context.client.apply(edit, label)
        result["applied"] = not result["why"]
    return result
