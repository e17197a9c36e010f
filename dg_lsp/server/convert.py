"""Conversion of edits and Drafts to the types of the protocol."""

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit, Gap
from dg_lsp.text.messages import BODIES, Draft


def plain(position: types.Position) -> dict[str, int]:
    """Return a position as a JSON object."""
    return {"line": position.line, "character": position.character}


def plain_range(span: types.Range) -> dict[str, dict[str, int]]:
    """Return a range as a JSON object."""
    return {"start": plain(span.start), "end": plain(span.end)}


def not_inline(document: Document, cursor: int, gap: Gap) -> str:
    """Return why a fill of `gap` cannot be shown as ghost text at `cursor`, as a sentence; empty if it can."""
    start, end = gap.start, gap.end
    line_end = document.line_end(document.line_at(cursor))
    if start <= cursor <= end <= line_end and not document.data[start:end].strip(b" \t\f"):
        return ""
    if gap.kind in BODIES:
        return "the function body to fill is not at the cursor; use the code action Fill this function body"
    return f"the {gap.kind.replace('_', ' ')} at the cursor is not empty, and ghost text replaces nothing"


def text_from(document: Document, start: int, edit: Edit) -> str:
    """Return the text between `start` and the end of `edit` once `edit` is made; lines end at LF.

    Example: in `x = fo|`, with `start` at the cursor, an edit that writes `foo(1)` over `fo` gives `o(1)`. Clients put
    in their buffer's own line ends, and would show a carriage return.
    """
    new = document.data[start : edit.start] + edit.text.encode("utf-8")[max(start - edit.start, 0) :]
    return new.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def draft_params(draft: Draft, request: Any, where: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the notification `dg-lsp/draft`; `where` holds uri, version and range."""
    runs = [[run.text, run.anchored, run.accepted, round(run.entropy, 3)] for run in draft.runs]
    return {**where, "requestId": request, "step": draft.step, "runs": runs}


def wants(only: Sequence[str] | None, kind: str) -> bool:
    """Return whether a request for code actions of the kinds `only` includes `kind`; None includes all."""
    return only is None or any(kind == o or kind.startswith(f"{o}.") or o == "" for o in only)
