"""The commands: fill one gap, and fill all stubs of a document. docs/bots.md describes their arguments and results.

Functions without state; they know the session and the protocol's types.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from dg_lsp.filling.engine import EngineError
from dg_lsp.filling.fill import Outcome
from dg_lsp.filling.stubs import StubEnded, StubStarted, fill_stubs, stubs_of
from dg_lsp.server import convert
from dg_lsp.server.actions import ASKS, cursor_of, fill_gap, gap_of, settings_of, title_of
from dg_lsp.server.progress import Progress, drafts_to, loading_to
from dg_lsp.server.session import Superseded
from dg_lsp.server.window import DgLsp
from dg_lsp.text.budget import ASKED, within
from dg_lsp.text.documents.document import Document, DocumentError, read_document
from dg_lsp.text.documents.excluded import path_of
from dg_lsp.text.fills.confirm import why_confirm
from dg_lsp.text.gaps.find import NoGap
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.reasons import OutOfTime

FILL_ALL = "dg-lsp.fillAll"
# Seconds that a client has to apply an edit.
APPLYING = 30.0
_LONGEST_WHY = 300  # characters of a client's own error


async def fill_command(ls: DgLsp, target: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the gap of `target` and have the client apply the edit; return the result of the command `dg-lsp.fill`.

    1. Take the document, open or from the disk, and check its version.  2. Find the gap.  3. Fill it.
    4. See whether a person must confirm the edit.  5. Have the client apply it, if it can, nobody need confirm it, and
    `target` does not say otherwise.

    Raises:
        NoGap, DocumentError, UnknownLanguage: there is nothing to fill. EngineError: the engine gives no answer.
        Superseded: the document changed meanwhile.
    """
    # 1.
    document = await _document(ls, target)
    # 2. and 3.
    with within(ASKED):
        gap = await gap_of(ls, document, target)
        outcome = await ls.session.current(document.uri, fill_gap(ls, document, gap, target))
    result: dict[str, Any] = {
        "applied": False,
        "edit": None,
        "why": outcome.why,
        "fill": asdict(outcome.fill),
        "confirm": "",
    }
    if outcome.edit is not None:
        # 4.
        confirm = await asyncio.to_thread(_why_confirm, ls, document, outcome, target)
        # 5.
        how = {**target, "apply": False} if confirm else target
        result.update(await _apply(ls, document, [outcome.edit], (title_of(gap), how)))
        result.update(why=result["why"] or outcome.why, confirm=confirm)
        if confirm and target.get("apply", True) and not convert.asked_for(ls.client_capabilities, ASKS):
            ls.inform(f"nothing changed: {confirm}, and this client cannot ask before it makes an edit")
    return result


def _why_confirm(ls: DgLsp, document: Document, outcome: Outcome, target: Mapping[str, Any]) -> str:
    """Return why a person must confirm the edit of `outcome`, as a sentence; empty if nobody need, or somebody has."""
    if target.get("confirmed") is True or outcome.edit is None:
        return ""
    cursor = cursor_of(document, target, ls.documents.encoding)
    return why_confirm(document, outcome.gap, outcome.edit, outcome.fill, cursor)


async def fill_all_command(ls: DgLsp, target: Mapping[str, Any]) -> dict[str, Any]:
    """Fill all stubs of the document of `target`, and have the client apply one edit; return the command's result.

    1. Take the document, and list its stubs.  2. Fill one after another.  3. What is filled when the user cancels the
    progress, or when the engine fails, is kept; the other stubs are left, with the reason.  4. Have the client apply
    the edit.

    Raises:
        NoGap, DocumentError, UnknownLanguage: there is nothing to fill. EngineError: the engine gives no answer at all.
        Superseded: the document changed meanwhile, so an edit would not fit it.
    """
    # 1.
    document = await _document(ls, target)
    with within(ASKED):
        names = [gap.name for gap in await asyncio.to_thread(stubs_of, document)]
    if not names:
        raise NoGap("every function in the file has a body")
    # 2.
    work, why = _Filling(), ""
    try:
        await ls.session.current(document.uri, _fill_stubs(ls, document, target, (work, len(names))))
    # 3.
    except Superseded:
        if ls.documents.snapshot(document.uri) not in (None, document):
            raise
        why = "cancelled"
    except (EngineError, OutOfTime) as error:
        if not work.filled:
            raise
        why = str(error)
    done = len(work.filled) + len(work.left)
    left = [*work.left, *([name, why] for name in names[done:])]
    result = {"applied": False, "edit": None, "why": "", "filled": work.filled, "left": left}
    # 4.
    if work.edits:
        result.update(await _apply(ls, document, work.edits, ("Fill all stubs", target)))
    return result


@dataclass(slots=True)
class _Filling:
    """The stubs of a document done so far. edits: of the text before the first; shift: bytes that they add to it."""

    edits: list[Edit] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)
    left: list[list[str]] = field(default_factory=list)
    shift: int = 0

    def add(self, ended: StubEnded) -> None:
        """Add the result of a stub."""
        edit = ended.edit
        if edit is None:
            self.left.append([ended.started.gap.name, ended.why])
            return
        self.filled.append(ended.started.gap.name)
        self.edits.append(Edit(edit.start - self.shift, edit.end - self.shift, edit.text))
        self.shift += len(edit.text.encode("utf-8")) - (edit.end - edit.start)


async def _fill_stubs(
    ls: DgLsp, document: Document, target: Mapping[str, Any], into: tuple[_Filling, int]
) -> None:
    """Step 2 of `fill_all_command`: `into` is where the fills are added, and the number of stubs."""
    (work, total), settings = into, settings_of(ls, target)
    options = await ls.session.fill_options(document, 1, "fill")
    token = target.get("workDoneToken")
    async with Progress(ls, "Fill all stubs", asyncio.current_task(), token) as progress:
        with loading_to(progress, ls.watchers):
            filling = fill_stubs(ls.session.engine, document, settings, options=options)
            async with aclosing(filling) as events:
                async for event in events:
                    if isinstance(event, StubEnded):
                        work.add(event)
                        continue
                    if isinstance(event, StubStarted):
                        # The client shows the text before the first fill, where this stub stands elsewhere.
                        start, end = (at - work.shift for at in (event.gap.start, event.gap.end))
                        show = drafts_to(ls, document, replace(event.gap, start=start, end=end))
                        told = (
                            f"{event.number} of {total}: {event.gap.name}",
                            (event.number - 1) * 100 // total,
                        )
                    else:
                        show(event)
                    # At each step, because the report of a turn that begins right after another is dropped.
                    progress.report(*told)


async def _document(ls: DgLsp, target: Mapping[str, Any]) -> Document:
    """The document of `target`: open, else read from the disk.

    Raises:
        NoGap: it gets no fills, or is not at the version in `target`. DocumentError: it cannot be read.
    """
    uri = str(target.get("uri", ""))
    if ls.documents.snapshot(uri) is None:
        await ls.session.git_answered(uri)
        ls.permit(uri)
        # In a thread, because a disk may be slow.
        unopened = replace(await asyncio.to_thread(read_document, _path(uri)), uri=uri)
        ls.permit(uri, unopened.language)
        return unopened
    document, wanted = await ls.permitted(uri), target.get("version")
    if wanted is not None and wanted != document.version:
        raise NoGap(f"the document is at version {document.version}, not {wanted}; ask again")
    return document


async def _apply(
    ls: DgLsp, document: Document, edits: Sequence[Edit], how: tuple[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Have the client apply `edits` as one edit; the fields `edit`, `applied` and `why` of the command's result.

    how: the label for the user, and the target, which may say that the edit is not to be applied.
    """
    label, target = how
    edit = convert.workspace_edit(document, edits, ls.documents.encoding, ls.client_capabilities)
    result = {"edit": ls.as_json(edit), "applied": False, "why": ""}
    workspace = ls.client_capabilities.workspace
    if target.get("apply", True) and workspace and workspace.apply_edit:
        result["why"] = await _refusal(ls, types.ApplyWorkspaceEditParams(edit, label=label))
        result["applied"] = not result["why"]
    return result


async def _refusal(ls: DgLsp, params: types.ApplyWorkspaceEditParams) -> str:
    """Ask the client to apply an edit; return why it did not, as a sentence, empty if it did."""
    asked = ls.workspace_apply_edit_async(params)
    try:
        async with asyncio.timeout(APPLYING):
            answer = await asked
    except TimeoutError:
        return (
            f"the client did not answer within {APPLYING:g} s and may still apply the edit; compare the document "
            "before you apply the edit yourself"
        )
    except JsonRpcException as error:
        return f"the client did not apply the edit: {str(error)[:_LONGEST_WHY] or type(error).__name__}"
    if answer is not None and answer.applied:
        return ""
    return (answer and answer.failure_reason) or "the client did not apply the edit"


def _path(uri: str) -> Path:
    """The path of a file:// address; raises DocumentError for another one."""
    path = path_of(uri)
    if not path:
        raise DocumentError(f"{uri[:80]!r} is not open and is no file:// address; open it first")
    return Path(path)
