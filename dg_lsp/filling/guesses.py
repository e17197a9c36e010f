"""Guesses: edits that may repeat the last one, each rated by how much likelier the new text is than the old one.

A model reads the text around the line as it is now, with the last edit in it, and then the line as it is, or changed.
A pattern that two lines still have and one has left says little; so the next guess is rated after the first, too.
"""

import math
import posixpath
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, zip_longest

from dg_lsp.budget import bounded
from dg_lsp.context import shortened
from dg_lsp.edits import Example, adds_parameter, example_of, guesses, is_sound, source_of
from dg_lsp.files.excluded import split_uri
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.leaving import leaving
from dg_lsp.gaps import Edit, apply_edit
from dg_lsp.messages import Fill, Infill, Piece
from dg_lsp.settings import Settings
from dg_lsp.source.bursts import Bursts
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language

# Bytes that are read above a line and below it: few, because each guess is read alone.
_ABOVE, _BELOW = 1200, 600
# Seconds after which nobody looks at a place any more.
_DEADLINE = 10.0
# How much likelier the new lines must be than the old ones, in nats, one line alone and two together: where the edit
# replaced a text, where it only put one in, which may be particular to its line, and where it was repeated already.
# Fitted to the ratings of coder in the scenarios (docs/research/next-edits.md).
_REPLACED, _PUT_IN, _REPEATED = (7.0, 4.0), (9.0, 6.0), (3.2, 3.2)
# A line that has become less likely by as much is not repeated, whatever the next one is.
_HOPELESS = -5.0


@dataclass(frozen=True, slots=True)
class Guess:
    """An `edit` that may repeat the last one, and the `request` that has its line rated, old and new.

    then: the request for the next guess where this edit is made. least: how much likelier the new line must be, alone
    and together with the next one.
    """

    edit: Edit
    request: Infill
    then: Infill | None = None
    least: tuple[float, float] = _REPLACED


@bounded
def guesses_for(
    document: Document, bursts: Bursts, cursor: int, settings: Settings | None = None
) -> list[Guess]:
    """Return the guesses for the newest of the `bursts` of `document`, the most similar lines first.

    settings: those that choose who rates them, by default a model of this machine.

    Raises:
        OutOfTime: looking for them takes too long.
    """
    example = example_of(document, bursts, cursor)
    if example is None or bursts.last is None:
        return []
    source, to = source_of(document), settings or Settings()
    request = partial(_request, to, document, example)
    found = guesses(document, example)
    edits = [edit for edit in found if is_sound(document, edit) and not adds_parameter(source, edit)]
    # Changes since the newest burst are repetitions of it that were taken.
    if bursts.last.later.spans:
        return [Guess(edit, request(edit), None, _REPEATED) for edit in edits]
    least = _PUT_IN if example.is_put_in else _REPLACED
    made = [_after(to, document, example, *pair) for pair in pairwise(edits)]
    return [Guess(edit, request(edit), then, least) for edit, then in zip_longest(edits, made)]


def _after(to: Settings, document: Document, example: Example, edit: Edit, other: Edit) -> Infill:
    """Return the request for the `other` edit where `edit` is made."""
    added = len(edit.text.encode()) - (edit.end - edit.start)
    shift, moved = (added if edit.start < at else 0 for at in (example.start, other.start))
    moved_example = replace(example, start=example.start + shift, end=example.end + shift)
    again = Edit(other.start + moved, other.end + moved, other.text)
    return _request(to, apply_edit(document, edit), moved_example, again)


def _request(to: Settings, document: Document, example: Example, edit: Edit) -> Infill:
    """Return the request to rate `edit`. The lines of an `example` that is out of sight come as those of another file.

    They come as they are now: the text that was removed is in no request.
    """
    data, line = document.data, document.line_at(edit.start)
    start, end = document.line_starts[line], document.line_end(line)
    above = shortened(load_language(document.language, document.macros), data[:start], _ABOVE)
    below = data[end : document.line_end(document.line_at(min(end + _BELOW, len(data))))]
    new = data[start : edit.start] + edit.text.encode() + data[edit.end : end]
    pieces: tuple[Piece, ...] = ()
    if not start - len(above) <= example.start <= end + len(below):
        name = posixpath.basename(split_uri(document.uri)[1])
        shown = data[example.start : example.end]
        pieces = (Piece(name, f"{shown.decode('utf-8', 'replace')}\n"),)
    request = Infill(
        prefix=above.decode("utf-8", "replace"),
        suffix=below.decode("utf-8", "replace"),
        language=document.language,
        kind="rest_of_line",
        session=document.uri,
        macros=document.macros,
        deadline=_DEADLINE,
        priority="ahead",
        rated=tuple(text.decode("utf-8", "replace") for text in (data[start:end], new)),
        context=pieces,
    )
    return leaving(request, to)


async def is_likely(engine: Engine, guess: Guess) -> bool:
    """Return whether `engine` finds the new line of `guess` likely enough to be shown, alone or with the next one.

    The next one must be likely enough to be shown once this one is made.

    Raises:
        EngineError: the engine gives no answer.
    """
    alone, together = guess.least
    gain = await _gain(engine, guess.request)
    if gain > alone:
        return True
    if guess.then is None or gain < _HOPELESS:
        return False
    after = await _gain(engine, guess.then)
    return after > _REPEATED[0] and gain + after > together


async def _gain(engine: Engine, request: Infill) -> float:
    """Return how much likelier the new line of `request` is than the old one, in nats."""
    ratings: tuple[float, ...] = ()
    async with aclosing(engine.infill(request)) as events:
        async for event in events:
            ratings = event.ratings if isinstance(event, Fill) else ratings
    return ratings[0] - ratings[1] if len(ratings) == len(request.rated) else -math.inf
