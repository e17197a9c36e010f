"""Rewrites: lines that may have to follow the last edit, as a model writes them after a diff of what was edited."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from dg_lsp.budget import bounded
from dg_lsp.context import has_secret
from dg_lsp.edits import Place, Related, hunks_of, line_edit, may_be_followed, related_lines
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.leaving import leaving
from dg_lsp.messages import Fill, Hunk, Infill
from dg_lsp.settings import Settings
from dg_lsp.source.bursts import Bursts
from dg_lsp.source.document import LINE_END, Document

# Seconds after an edit in which lines are asked for: later nobody looks at a place any more.
PATIENCE = 10.0
# Bytes of whole lines above a line and below it in which it is rated.
_ABOVE, _BELOW = 800, 400


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A `line` that may have to follow the last edit, and the `request` that has it written."""

    line: Related
    request: Infill

    def place(self, text: str) -> Place | None:
        """Return the document and the edit that puts `text`, which was written for the line, in its place."""
        if not text:
            return None
        document, start, end = self.line.document, self.line.start, self.line.end
        newline = LINE_END.search(document.data[end : end + 2].decode("latin-1"))
        new = (newline[0] if newline else "\n").join(text.removesuffix("\n").split("\n"))
        return document, line_edit(start, document.data[start:end], new.encode())


@bounded
def rewrites_for(
    document: Document,
    bursts: Bursts,
    cursor: int,
    others: Sequence[Document] = (),
    settings: Settings | None = None,
) -> list[Rewrite]:
    """Return the lines that may have to follow the newest of the `bursts` of `document`, the likeliest first.

    They are of `document` and of the `others`. settings: those that choose who writes, by default a model of this
    machine.

    Raises:
        OutOfTime: looking for them takes too long.
    """
    if not may_be_followed(document, bursts, cursor):
        return []
    hunks, to = hunks_of(document, bursts, others), settings or Settings()
    if not hunks:
        return []
    text = "".join(hunk.above + hunk.removed + hunk.added + hunk.below for hunk in hunks).encode()
    documents = [document, *(() if has_secret(text, 0, len(text)) else others)]
    lines = related_lines(documents, hunks)
    return [Rewrite(line, leaving(_request(document, hunks, line), to)) for line in lines]


def _request(document: Document, hunks: Sequence[Hunk], line: Related) -> Infill:
    own = line.document
    first = own.line_at(max(line.start - _ABOVE, 0))
    start = own.line_starts[min(first + 1, own.line_at(line.start))] if line.start > _ABOVE else 0
    stop = own.line_end(own.line_at(min(line.end + _BELOW, len(own.data))))
    return Infill(
        prefix=own.data[start : line.start].decode("utf-8"),
        suffix=own.data[line.end : stop].decode("utf-8"),
        language=own.language,
        kind="statement",
        session=document.uri,
        macros=own.macros,
        deadline=PATIENCE,
        priority="ahead",
        edits=(*hunks, line.hunk),
    )


async def written(engine: Engine, rewrite: Rewrite, patience: float = PATIENCE) -> str | None:
    """Return what takes the place of the line of `rewrite`, as `engine` writes it; "" if nothing surely does.

    None if the engine could not say so within `patience`, in seconds.

    Raises:
        EngineError: the engine gives no answer.
    """
    last: Fill | None = None
    async with aclosing(engine.infill(replace(rewrite.request, deadline=patience))) as events:
        async for event in events:
            last = event if isinstance(event, Fill) else last
    return None if last is None or last.reason == "deadline" else last.text
