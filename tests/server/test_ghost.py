"""Ghost text without a wire: an empty answer is a NoGap with its reason, never an empty list."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from dg_lsp.host.base import Outcome
from dg_lsp.server import ghost
from dg_lsp.server.ghost import ghost_text
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills.edit import Edit
from dg_lsp.text.gaps.gap import Gap, NoGap
from dg_lsp.text.messages import Fill

INVOKED = types.InlineCompletionTriggerKind.Invoked


class _Session:
    """A session whose fills are all `edit`, with others beside it."""

    settings = Settings()

    def __init__(self, edit: Edit, recent: tuple[Edit, ...] = ()) -> None:
        self._edit, self._recent = edit, list(recent)

    def recent(self, _document: Document, _cursor: int) -> list[Edit]:
        return self._recent

    def ghost_settings(self, *, automatic: bool) -> Settings:
        return self.settings if automatic else Settings(alternatives=3)

    async def fill(self, _document: Document, gap: Gap, *_: Any) -> Outcome:
        return Outcome(gap, Fill(self._edit.text), self._edit)


def asked(session: _Session, text: bytes, column: int, selected: Any = None) -> Any:
    client = types.ClientCapabilities()
    server: Any = SimpleNamespace(
        session=session, documents=SimpleNamespace(encoding="utf-32"), client_capabilities=client
    )
    line = text.count(b"\n")
    params = types.InlineCompletionParams(
        types.InlineCompletionContext(INVOKED, selected),
        types.TextDocumentIdentifier("file:///a.py"),
        types.Position(line, column),
    )
    return asyncio.run(ghost_text(server, Document("file:///a.py", "python", 1, text), params))


def test_a_fill_that_does_not_begin_with_what_is_typed_has_that_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = b"def f():\n    return 1\n\n\nx = "
    (item,) = asked(_Session(Edit(len(text), len(text), "None")), text, 4)
    assert item.insert_text == "x = None"
    blank = b"def f():\n    "
    # Blanks before the cursor may be part of a gap.
    monkeypatch.setattr(ghost, "find_gap", lambda *_: Gap(9, 13, "function_body", "    "))
    with pytest.raises(NoGap, match="begins with what is typed"):
        asked(_Session(Edit(9, 13, "return 1")), blank, 4)


def test_a_fill_that_begins_before_the_selected_entry_has_that_reason() -> None:
    text = b"x = fo"
    span = types.Range(types.Position(0, 4), types.Position(0, 6))
    selected = types.SelectedCompletionInfo(range=span, text="foo")
    (item,) = asked(_Session(Edit(7, 7, "()"), (Edit(7, 7, "()"),)), text, 6, selected)
    assert item.insert_text == "foo()"
    with pytest.raises(NoGap, match="before the selected entry"):
        asked(_Session(Edit(0, 7, "y = 1"), (Edit(0, 7, "y = 1"),)), text, 6, selected)
