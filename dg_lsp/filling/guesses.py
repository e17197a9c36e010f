"""Guesses: edits that may repeat the last one, each rated by how much likelier the new text is than the old one.

A model reads the text around the line as it is now, with the last edit in it, and then the line as it is, or changed.
"""

import posixpath
from contextlib import aclosing
from dataclasses import dataclass

from dg_lsp.filling.engine import Engine
from dg_lsp.filling.next_edit import example_of, is_sound
from dg_lsp.text.budget import bounded
from dg_lsp.text.documents.bursts import Bursts
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.excluded import split_uri
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import Fill, Infill, Piece
from dg_lsp.text.prompts.prompt import shortened
from dg_lsp.text.repeats.guesses import Example, guesses

# Bytes that are read above a line and below it: few, because each guess is read alone.
_ABOVE, _BELOW = 1200, 600
# Seconds after which nobody looks at a place any more.
_DEADLINE = 10.0
# How much likelier the new line must be than the old one, in nats: fitted to the ratings of coder in the scenarios.
_LIKELIER = 2.2


@dataclass(frozen=True, slots=True)
class Guess:
    """An `edit` that may repeat the last one, and the `request` that has its line rated, old and new."""

    edit: Edit
    request: Infill


@bounded
def guesses_for(document: Document, bursts: Bursts, cursor: int) -> list[Guess]:
    """Return the guesses for the newest of the `bursts` of `document`, the most similar lines first.

    Raises:
        OutOfTime: looking for them takes too long.
    """
    example = example_of(document, bursts, cursor)
    if example is None:
        return []
    edits = (edit for edit in guesses(document, example) if is_sound(document, edit))
    return [_guess(document, example, edit) for edit in edits]


def _guess(document: Document, example: Example, edit: Edit) -> Guess:
    """Return the guess that `edit` is right. An `example` that is out of sight comes as a diff in another file."""
    data, line = document.data, document.line_at(edit.start)
    start, end = document.line_starts[line], document.line_end(line)
    above = shortened(load_language(document.language, document.macros), data[:start], _ABOVE)
    below = data[end : document.line_end(document.line_at(min(end + _BELOW, len(data))))]
    new = data[start : edit.start] + edit.text.encode() + data[edit.end : end]
    pieces: tuple[Piece, ...] = ()
    if not start - len(above) <= example.start <= end + len(below):
        name = posixpath.basename(split_uri(document.uri)[1])
        shown = b"-%b\n+%b\n" % (example.old, data[example.start : example.end])
        pieces = (Piece(f"{name}.diff", shown.decode("utf-8", "replace")),)
    request = Infill(
        prefix=above.decode("utf-8", "replace"),
        suffix=below.decode("utf-8", "replace"),
        language=document.language,
        kind="rest_of_line",
        session=document.uri,
        context=pieces,
        macros=document.macros,
        deadline=_DEADLINE,
        priority="ahead",
        rated=tuple(text.decode("utf-8", "replace") for text in (data[start:end], new)),
    )
    return Guess(edit, request)


async def is_likely(engine: Engine, guess: Guess) -> bool:
    """Return whether `engine` finds the new line of `guess` likely enough to be shown.

    Raises:
        EngineError: the engine gives no answer.
    """
    ratings: tuple[float, ...] = ()
    async with aclosing(engine.infill(guess.request)) as events:
        async for event in events:
            ratings = event.ratings if isinstance(event, Fill) else ratings
    return len(ratings) == len(guess.request.rated) and ratings[0] - ratings[1] > _LIKELIER
