"""Conversion between edits and the types of the protocol."""

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from dg_lsp.gaps import Edit, Gap
from dg_lsp.messages import BODIES
from dg_lsp.source.document import Document


def position_of(value: Any) -> types.Position:
    """Return the position in a JSON object; raise KeyError, TypeError, ValueError or OverflowError if it is none."""
    return types.Position(int(value["line"]), int(value["character"]))


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
    return at_line_feeds(new.decode("utf-8"))


def at_line_feeds(text: str) -> str:
    """Return `text` with LF at the end of each line."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def wants(only: Sequence[str] | None, kind: str) -> bool:
    """Return whether a request for code actions of the kinds `only` includes `kind`; None includes all."""
    return only is None or any(kind == o or kind.startswith(f"{o}.") or o == "" for o in only)
