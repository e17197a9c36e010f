"""Rewrites: lines that may have to follow the last edit, as a model writes them after a diff of what was edited.

An edit that may just be repeated is repeated in all such lines near it, and a model rates these together: lines that
all still have a pattern outweigh the one that has left it (docs/research/next-edits.md).
"""

import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from dg_lsp.budget import bounded
from dg_lsp.context import has_secret
from dg_lsp.edits import (
    Place,
    Related,
    guessed,
    hunks_of,
    line_edit,
    lines_from,
    may_be_followed,
    related_lines,
)
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.leaving import leaving
from dg_lsp.gaps import Edit
from dg_lsp.messages import Fill, Hunk, Infill
from dg_lsp.settings import Settings
from dg_lsp.source.bursts import Burst, Bursts
from dg_lsp.source.document import LINE_END, Document
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import tokens

# Seconds after an edit in which lines are asked for: later nobody looks at a place any more.
PATIENCE = 10.0
_NAME = re.compile(rb"[^\W\d][\w\x80-\xff]*")
# Bytes of whole lines above a line and below it in which it is rated.
_ABOVE, _BELOW = 800, 400
# Bytes between the line that is repeated nearest to the edit and the others that are rated with it.
_NEAR = 2_000
# How much likelier repeated lines must be than the old ones, in nats: one line alone, several together, and either
# where the edit was repeated before. Where it only put a text in, which may be particular to its line, it takes more.
_ALONE, _TOGETHER, _AGAIN, _PUT_IN = 7.0, 6.0, 3.2, 2.0


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A `line` that may have to follow the last edit, and the `request` that has it written.

    names: the words of all open documents. Of several lines that the edit is repeated in, the request has them rated;
    least: how much likelier they must be, in nats.
    """

    line: Related
    request: Infill
    names: frozenset[bytes]
    least: float = 0.0

    def places(self, text: str) -> list[Place]:
        """Return the document and the edits that put `text`, which was written for the line, in its place.

        Of several lines each one that changes has its own edit. A text with a name that no document has is made up.
        """
        document, start, end = self.line.document, self.line.start, self.line.end
        if not text or not self.names.issuperset(_names_in(document, text)):
            return []
        newline = LINE_END.search(document.data[end : end + 2].decode("latin-1"))
        new = text.removesuffix("\n").split("\n")
        first, last = document.line_at(start), document.line_at(end) + 1
        starts = document.line_starts[first:last]
        if len(starts) != len(new):
            whole = (newline[0] if newline else "\n").join(new)
            return [(document, line_edit(start, document.data[start:end], whole.encode()))]
        old = (document.data[at : document.line_end(document.line_at(at))] for at in starts)
        lines = zip(starts, old, map(str.encode, new), strict=True)
        return [(document, line_edit(at, one, other)) for at, one, other in lines if one != other]


@bounded
def rewrites_for(
    document: Document,
    bursts: Bursts,
    cursor: int,
    others: Sequence[Document] = (),
    settings: Settings | None = None,
) -> list[Rewrite]:
    """Return the lines that may have to follow the newest of the `bursts` of `document`, the likeliest first.

    They are of `document` and of the `others`. Those in which the edit may be repeated come as one, and are not asked
    for by themselves. settings: those that choose who writes, by default a model of this machine.

    Raises:
        OutOfTime: looking for them takes too long.
    """
    newest = bursts.last
    if newest is None or not may_be_followed(document, bursts, cursor):
        return []
    hunks, to = hunks_of(document, bursts, others), settings or Settings()
    if not hunks:
        return []
    text = "".join(hunk.above + hunk.removed + hunk.added + hunk.below for hunk in hunks).encode()
    documents = [document, *(() if has_secret(text, 0, len(text)) else others)]
    repeated = guessed(document, bursts, cursor)
    same = {document.line_at(edit.start) for edit in repeated}
    names = frozenset(name for one in (document, *others) for name in _NAME.findall(one.data))
    found = [
        (line, 0.0)
        for line in related_lines(documents, hunks)
        if line.document is not document or document.line_at(line.start) not in same
    ]
    if repeated:
        nearest = min(repeated, key=lambda edit: abs(edit.start - newest.touched))
        near = [edit for edit in repeated if abs(edit.start - nearest.start) <= _NEAR]
        found.insert(0, (lines_from(document, near), _least(near, document, newest)))
    return [
        Rewrite(line, leaving(_request(document, hunks, line), to), names, least) for line, least in found
    ]


def _least(edits: Sequence[Edit], document: Document, newest: Burst) -> float:
    """Return how much likelier `edits`, which repeat the burst `newest`, must make their lines, in nats."""
    # Changes since the newest burst are repetitions of it that were taken.
    if newest.later.spans:
        return _AGAIN
    only_put_in = all(not document.data[edit.start : edit.end].strip() for edit in edits)
    return (_ALONE if len(edits) == 1 else _TOGETHER) + (_PUT_IN if only_put_in else 0.0)


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


def _names_in(document: Document, text: str) -> set[bytes]:
    """Return the names in the code of `text`, without words of the language of `document` and those in strings."""
    language, data = load_language(document.language, document.macros), text.encode()
    quoted = ("string", "open_string", "comment")
    code = (
        data[one.start : one.end] for one in tokens(language, data, 0, len(data)) if one.kind not in quoted
    )
    names = {name for part in code for name in _NAME.findall(part)}
    return names.difference(language.keywords, language.builtins)


async def written(engine: Engine, rewrite: Rewrite, patience: float = PATIENCE) -> str | None:
    """Return what takes the place of the line of `rewrite`, as `engine` writes it; "" if nothing surely does.

    For repeated lines it is the text that they were given, if `engine` finds that likely enough.

    None if the engine could not say so within `patience`, in seconds.

    Raises:
        EngineError: the engine gives no answer.
    """
    last: Fill | None = None
    async with aclosing(engine.infill(replace(rewrite.request, deadline=patience))) as events:
        async for event in events:
            last = event if isinstance(event, Fill) else last
    if last is None or last.reason == "deadline":
        return None
    return last.text if not rewrite.least or -last.score >= rewrite.least else ""
