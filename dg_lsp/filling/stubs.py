"""Stubs: the unwritten functions of a document, filled one after another."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from dg_lsp.budget import BOT, within
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.fill import ONE, FillOptions, fill_gap
from dg_lsp.gaps import Edit, Gap, apply_edit, find_gaps
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import newline_at

_PARTIAL = "dg-lsp: partial, its tests do not all pass"


@dataclass(frozen=True, slots=True)
class StubStarted:
    """The filling of one stub starts. number: counts from 1. document: the text now, in which `gap` is its body."""

    number: int
    gap: Gap
    document: Document


@dataclass(frozen=True, slots=True)
class StubEnded:
    """The filling of one stub has ended.

    edit: of the document that it started with, None if the stub stays. why: the reason for that, as a sentence.
    filled: there was a fill to choose from. document: the text now.
    """

    started: StubStarted
    edit: Edit | None
    why: str
    filled: bool
    document: Document


# Called with the documents after each of the different fills of a stub, the likeliest first; returns the number of the
# one to keep, None to keep none, and the reason.
Choose = Callable[[StubStarted, Sequence[Document]], Awaitable[tuple[int | None, str]]]


async def choose_first(_: StubStarted, __: Sequence[Document]) -> tuple[int | None, str]:
    """Keep the likeliest fill."""
    return 0, ""


def stubs_of(document: Document) -> list[Gap]:
    """Return the bodies of all functions of `document` that are not written yet, in the order of the text.

    A body that `mark_partial` has marked is one, until somebody changes it.
    """
    gaps = find_gaps(document, 0, len(document.data))
    return [gap for gap in gaps if gap.stub or _is_marked(document, gap)]


def meant_of(document: Document) -> list[Gap]:
    """Return the bodies of `document` without code that are to stay so: of abstract methods, overloads and the like."""
    gaps = find_gaps(document, 0, len(document.data))
    return [gap for gap in gaps if gap.is_placeholder and not gap.stub]


def mark_partial(document: Document, name: str) -> Document:
    """Return `document` with a comment in the body of the function `name` that says that its tests do not all pass.

    Example: `return 1` becomes `# dg-lsp: partial, its tests do not all pass (1f2e3d4c)`, a line end, and `return 1`.
    """
    gaps = [gap for gap in find_gaps(document, 0, len(document.data)) if gap.name == name and not gap.stub]
    comment = load_language(document.language).comment.decode()
    if not gaps or not comment:
        return document
    gap = gaps[-1]
    body = document.data[gap.start : gap.end]
    mark = f"{comment} {_PARTIAL} ({_digest(body)}){newline_at(document.data, gap.start)}{gap.indent}"
    return apply_edit(document, Edit(gap.start, gap.start, mark))


def _is_marked(document: Document, gap: Gap) -> bool:
    first, _, body = document.data[gap.start : gap.end].partition(b"\n")
    return _PARTIAL.encode() in first and _digest(body).encode() in first


def _digest(body: bytes) -> str:
    """Return a short digest of the words of a body, whatever white space is between them."""
    return hashlib.sha256(b" ".join(body.split())).hexdigest()[:8]


async def fill_stubs(
    engine: Engine,
    document: Document,
    settings: Settings,
    choose: Choose = choose_first,
    options: FillOptions = ONE,
) -> AsyncGenerator[StubStarted | StubEnded, None]:
    """Fill the stubs of `document` in the order of the text; yield a StubStarted and a StubEnded for each.

    Cancelling the task that iterates stops the fill.
    """
    done, number = 0, 0
    while True:
        # Find the next stub in the text as it is now: earlier fills have moved it.
        with within(BOT):
            stubs = await asyncio.to_thread(stubs_of, document)
        gap = next((stub for stub in stubs if stub.start >= done), None)
        if gap is None:
            return
        number += 1
        started = StubStarted(number, gap, document)
        yield started
        # Fill it.
        outcome = await fill_gap(engine, document, gap, settings, options)
        # Keep the fill that `choose` takes.
        kept, why = None, outcome.why
        # An empty body has no byte of its own.
        done = max(gap.end, gap.start + 1)
        if outcome.edit is not None:
            edits = (outcome.edit, *outcome.others)
            filled = [apply_edit(document, edit) for edit in edits]
            chosen, why = await choose(started, filled)
            if chosen is not None:
                kept, document = edits[chosen], filled[chosen]
                done = kept.start + len(kept.text.encode("utf-8"))
        yield StubEnded(started, kept, why, outcome.edit is not None, document)
