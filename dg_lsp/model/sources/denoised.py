"""Fills denoised from noise: the gap's length searched, canvases laid out, their rows denoised, repaired and checked.

Knows the model's parts and the text checks; knows no other source of candidates.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from dg_lsp.guard import Written, fit, shorten
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.batch import (
    CANVAS_SEED,
    Batch,
    CheckedRow,
    denoise_batch,
    draft,
    rank_rows,
    read_full_canvas,
    report_steps,
    stop_when_enough,
)
from dg_lsp.model.candidates import Candidate, candidates_of, why_refused
from dg_lsp.model.canvas import Seam, lay_out, noised, stack, start_from
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.length import ScoredLength, lengths_that_fit, search_length
from dg_lsp.model.plan import ANCHORS, widths
from dg_lsp.model.repair import Origin, repair
from dg_lsp.model.step import Step
from dg_lsp.model.task import Task
from dg_lsp.model.tokens import tokenise


@dataclass(frozen=True, slots=True)
class _Section:
    """The part of a fill that one canvas writes.

    before: the text that earlier canvases wrote. seam: the tokens on both sides. slots: the canvas length. lengths: the
    gap lengths, best first. searched: denoising steps that the search for them took.
    """

    before: str
    seam: Seam
    slots: int
    lengths: tuple[ScoredLength, ...] = ()
    searched: int = 0

    @property
    def open(self) -> int:
        """The gap length that fills the canvas; it means a gap that continues beyond it."""
        return self.seam.room(self.slots, 0)

    @property
    def continues(self) -> bool:
        """Return whether the gap most likely continues beyond the canvas."""
        return bool(self.lengths) and self.lengths[0].length == self.open


def denoised(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Denoise fills for the gap from noise; yield Drafts (step 0 while encoding and searching).

    Returns the fills that can be shown, the likeliest of the first batch that has one first and the others by their
    likelihood after it; without any, one that cannot, with the reason.

    1. Tokenise: the prefix up to its last line start, the head of the gap's line, the suffix.
    2. Encode the part that the cache does not hold.  3. Search the gap's length.
    4. If the gap continues beyond the canvas, write the canvas full, add its whole lines to the prefix, and begin again
    after them.
    5. Denoise the best lengths, a batch at a time.
    6. Keep the rows that can be shown; while there is none, repair the likeliest broken one; continue with the
    next lengths until there are enough.
    7. Without any, take the longest valid beginning of a broken one.
    """
    model, cache, request, clock = task.model, task.cache, task.request, task.clock
    # 1. to 4.
    section, written = yield from _write(task)
    if written.ended:
        return candidates_of("denoised", [Fill(fit.fit(request, written.text))])
    # 5. The seed of a batch depends on its number only, so a batch is the same however many come before or after it.
    found: dict[str, Fill] = {}
    refused: list[CheckedRow] = []
    for number, (batch, steps) in enumerate(_batches(task, section)):
        last = yield from report_steps(model, batch, steps, clock)
        rows = rank_rows(model, cache, batch, last)
        # 6. The last Draft shows the row that becomes the Fill.
        if rows[0].row and not found and not rows[0].fill.refusal:
            yield draft(model, batch, last, clock.milliseconds(), rows[0].row)
        refused += [row for row in rows if row.fill.refusal]
        for row in rows:
            if not row.fill.refusal:
                found.setdefault(row.fill.text, row.fill)
        # Repairing a span takes fewer steps than denoising another length.
        if not found:
            origin = Origin(request, (section.seam, section.slots), section.before, number)
            repaired = yield from repair(model, cache, origin, rows, clock)
            found |= {} if repaired is None else {repaired.text: repaired}
        if len(found) >= request.alternatives or clock.is_over():
            break
    # 7.
    if not found:
        return candidates_of("denoised", [shortened_or_none(request, refused)])
    first, *others = found.values()
    return candidates_of("denoised", [first, *sorted(others, key=lambda fill: fill.score)])


def _write(task: Task) -> Generator[Draft, None, tuple[_Section, Written]]:
    """Write the canvases that the gap continues beyond; return the section of the last canvas, and the text so far."""
    model, cache, request, clock = task.model, task.cache, task.request, task.clock
    written = Written()
    while True:
        # 1. The prefix ends at a line start, so that it stays in the cache while a line is being typed.
        prefix, seam = tokenise(model, replace(request, prefix=request.prefix + written.text))
        # 2.
        yield from task.encode(prefix)
        # 3. In measurements the request may give the length, which replaces the search.
        section = _Section(written.text, seam, 0)
        for ranked in _search(task, section):
            section = ranked
            yield Draft(0, (), clock.milliseconds())
            if clock.is_over():
                break
        clock.searched += section.searched
        # 4. A canvas that adds no text is dropped.
        if not section.continues or clock.is_over():
            return section, written
        canvas = stack([lay_out(section.seam, section.open, section.slots)] * task.plan.batch)
        batch = Batch(canvas.to(model.device), request, task.plan.steps, section.before)
        last = yield from report_steps(model, batch, denoise_batch(model, cache, batch, 0), clock)
        clock.steps += last.number
        written = read_full_canvas(model, batch, last)
        if written.ended or written.text == section.before:
            return section, written


def shortened_or_none(request: Infill, refused: Sequence[CheckedRow]) -> Fill:
    """The longest valid beginning of a refused candidate; if there is none, an empty Fill with the reason (law 9)."""
    for fill in (c.fill for c in refused if c.whole):
        short = shorten(request, fill.text)
        if short and not why_refused(request, short):
            return replace(fill, text=short, parses=True, refusal="", shortened=True)
    why = (
        f"none of {len(refused)} candidates could be shown; the best one: {refused[0].fill.refusal}"
        if refused
        else ""
    )
    return Fill("", parses=False, refusal=why or "the deadline passed before a candidate was ready")


def _search(task: Task, section: _Section) -> Iterator[_Section]:
    """Search the gap's length; yield `section` with the lengths ranked so far after each round."""
    model, request, plan = task.model, task.request, task.plan
    seam, longest = section.seam, model.canvas_lengths[-1]
    given = request.start if request.like is None else request.like
    if given is not None:
        yield _with_given_length(task, section, given)
        return
    slots = next((n for n in widths(plan, model) if n >= plan.slots), longest)
    section = replace(section, slots=slots)
    lengths = lengths_that_fit(plan.search.lengths, seam.room(slots, ANCHORS))
    if len(model.encode(section.before)) + section.open <= plan.limit:
        lengths += (section.open,)
    search = replace(plan.search, lengths=lengths)
    seed = request.seed + CANVAS_SEED * len(section.before)
    rounds = search_length(model.network, task.cache, (seam, slots), search, seed)
    for number, ranked in enumerate(rounds, start=1):
        yield replace(section, lengths=ranked, searched=number * search.steps)


def _with_given_length(task: Task, section: _Section, like: str) -> _Section:
    """`section` with the length of the text `like`; one that no canvas holds continues beyond the longest."""
    model, plan = task.model, task.plan
    longest = model.canvas_lengths[-1]
    left = len(model.encode(like)) - len(model.encode(section.before))
    given = min(max(left, 1), section.seam.room(longest, 1))
    fits = (n for n in widths(plan, model) if n >= plan.slots and section.seam.room(n, ANCHORS) >= given)
    section = replace(section, slots=next(fits, longest))
    # The same length several times, so that there are candidates that differ by their noise.
    lengths = (ScoredLength(given, 0.0),) * plan.finalists
    if left > section.seam.room(section.slots, ANCHORS):
        lengths = (ScoredLength(section.open, 0.0), *lengths)
    return replace(section, lengths=lengths)


def _batches(task: Task, section: _Section) -> Iterator[tuple[Batch, Iterator[Step]]]:
    """Yield the batches of the best lengths, `plan.batch` lengths at a time, each with its denoising steps."""
    model, request, plan = task.model, task.request, task.plan
    lengths = [c.length for c in section.lengths if c.length != section.open][: plan.finalists]
    # If alternatives are wanted, all lengths are tried again with other noise after the first turn.
    turns = (
        (turn, first) for turn in range(request.alternatives) for first in range(0, len(lengths), plan.batch)
    )
    for turn, first in turns:
        tried = lengths[first : first + plan.batch]
        rows = [lay_out(section.seam, n, section.slots) for n in tried for _ in range(plan.draws)]
        batch = Batch(stack(rows).to(model.device), request, plan.steps, section.before)
        number = turn * len(lengths) + first + 1
        steps = denoise_batch(model, task.cache, batch, number, _start(model, batch, number))
        yield batch, stop_when_enough(model, batch, steps)


def _start(model: Checkpoint, batch: Batch, number: int) -> Tensor | None:
    """The tokens that the free slots of the `number`-th batch start from: `request.start`, a share of it as noise."""
    request = batch.request
    if request.start is None:
        return None
    text = model.encode(request.start)[len(model.encode(batch.before)) :]
    start = start_from(batch.canvas, [text] * batch.canvas.rows)
    return noised(start, request.noised, request.seed + number)
