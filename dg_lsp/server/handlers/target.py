"""Targets: the place and the options in a code action or a command, and the fill of its gap."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dg_lsp.filling.fill import FillOptions, Outcome
from dg_lsp.gaps import Gap, NoGap, code_with, find_gap, find_gaps, find_named, find_span
from dg_lsp.messages import BODIES, WANTED, Draft
from dg_lsp.server.convert import position_of
from dg_lsp.server.handlers.context import Context
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.settings import Settings, SettingsError, override
from dg_lsp.source.document import DocumentError

FILL, FILL_ALL = "dg-lsp.fill", "dg-lsp.fillAll"


def title_of(gap: Gap) -> str:
    """Return the title of the code action for `gap`."""
    if gap.kind in BODIES:
        return "Fill this function body" if gap.is_placeholder else "Rewrite this function body"
    if gap.kind == "span":
        return "Rewrite the selection"
    count = len(gap.parts)
    return f"Fill the {count} holes in this function" if count > 1 else "Fill the hole in this function"


async def code_of(snapshot: Snapshot, context: Context, target: Mapping[str, Any]) -> Snapshot:
    """Return `snapshot` with the code that `target` means, if its document is a file of another language.

    Raises:
        NoGap: nothing is filled there.
    """
    document = snapshot.document
    try:
        cursor = cursor_of(snapshot, target)
    except (KeyError, TypeError, ValueError):
        return snapshot  # `gap_of` says what is wrong
    if cursor is not None:
        code, _ = context.workspace.part(document, cursor)
    elif isinstance(name := target.get("name"), str):
        code, _ = await asyncio.to_thread(code_with, document, name)
        context.workspace.permit(document.uri, code.language)
    else:
        return snapshot
    return replace(snapshot, document=code)


async def gap_of(snapshot: Snapshot, target: Mapping[str, Any]) -> Gap:
    """Return the gap at the position, the range or the function's name in `target`; raise NoGap if there is none."""
    document, kind = snapshot.document, target.get("kind")
    if kind not in (None, "span", *WANTED):
        raise NoGap(f"the kind is one of {', '.join(WANTED)} or span, not {str(kind)[:40]!r}")
    try:
        if kind == "span":
            return await asyncio.to_thread(find_span, document, *_range(snapshot, target))
        if "position" in target:
            at = snapshot.offset(position_of(target["position"]))
            return await asyncio.to_thread(find_gap, document, at, kind)
        if "range" in target:
            start, end = _range(snapshot, target)
            gaps = await asyncio.to_thread(find_gaps, document, start, end)
            exact = [g for g in gaps if (g.start, g.end) == (start, end)]
            return exact[0] if exact else await asyncio.to_thread(find_gap, document, start, kind)
        return await asyncio.to_thread(find_named, document, str(target["name"]), kind)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, NoGap | DocumentError):
            raise
        raise NoGap("say where to fill: position, range or name; see docs/clients.md") from error


def cursor_of(snapshot: Snapshot, target: Mapping[str, Any]) -> int | None:
    """Return the offset of the position in `target`, or of the beginning of its range; None where it has neither."""
    if "position" in target:
        return snapshot.offset(position_of(target["position"]))
    return _range(snapshot, target)[0] if "range" in target else None


def settings_of(snapshot: Snapshot, target: Mapping[str, Any]) -> Settings:
    """Return the settings with seed, effort and deadline from `target`; raise NoGap if one of these is wrong."""
    own = {name: target[name] for name in ("seed", "effort", "deadline") if name in target}
    try:
        return override(snapshot.settings, {**own, "alternatives": 1})
    except SettingsError as error:
        raise NoGap(str(error)) from error


async def fill_target(snapshot: Snapshot, context: Context, gap: Gap, target: Mapping[str, Any]) -> Outcome:
    """Fill `gap` with the settings in `target`, and report progress to the client."""
    settings, show = settings_of(snapshot, target), context.client.drafts(snapshot, gap)
    async with context.client.progress(title_of(gap), target.get("workDoneToken")) as progress:

        def report(draft: Draft) -> None:
            progress.report(draft.progress)
            show(draft)

        with context.board.watched_by(progress.report_loading):
            wanted = FillOptions(priority="fill", show=report)
            return await context.session.fill(snapshot.document, gap, settings, wanted)


def _range(snapshot: Snapshot, target: Mapping[str, Any]) -> tuple[int, int]:
    """Return the offsets of the range in `target`."""
    start, end = (snapshot.offset(position_of(target["range"][name])) for name in ("start", "end"))
    return start, end
