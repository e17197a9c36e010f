"""The whole algorithm: from an Infill to Drafts and, last, one Fill. Knows the engine's parts and the text checks.

`infill` is a generator that computes only when it is asked for the next event, so closing it cancels within one
denoising step or encoding chunk.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from dg_lsp.engine.cache import PrefixCache, extend_to
from dg_lsp.engine.canvas import Seam, lay_out, stack
from dg_lsp.engine.denoise import Step
from dg_lsp.engine.fill.candidates import (
    Batch,
    Candidate,
    draft,
    rank_by_likelihood,
    read_full_canvas,
    why_refused,
)
from dg_lsp.engine.fill.length import ScoredLength, lengths_that_fit, search_length
from dg_lsp.engine.fill.mend import Origin, mend
from dg_lsp.engine.fill.plan import ANCHORS, plan_for
from dg_lsp.engine.fill.steps import CANVAS_SEED, Clock, denoise_batch, report_steps, stop_when_enough
from dg_lsp.engine.load.checkpoint import Checkpoint
from dg_lsp.engine.load.frame import frame_of
from dg_lsp.text.fills import fit
from dg_lsp.text.fills.stitch import Written, shorten
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import Draft, Fill, Infill
from dg_lsp.text.prompts.prompt import shortened

# Bytes per token that are tried, the most first, when a prefix is cut to a number of tokens.
BYTES_PER_TOKEN = (4, 3.5, 3, 2.5, 2, 1.5, 1)


@dataclass(frozen=True, slots=True)
class _Section:
    """What one canvas writes of a fill.

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
        """The gap length that fills the canvas; it stands for a gap that goes on beyond it."""
        return self.seam.room(self.slots, 0)

    @property
    def goes_on(self) -> bool:
        """Whether the gap most likely goes on beyond the canvas."""
        return bool(self.lengths) and self.lengths[0].length == self.open


def infill(model: Checkpoint, cache: PrefixCache, request: Infill) -> Generator[Draft | Fill, None, None]:
    """Fill the gap of `request`; yield Drafts (step 0 while encoding and searching), then one Fill.

    1. Tokenise: the prefix up to its last line start, the head of the gap's line, the suffix.
    2. Encode what the cache does not hold yet.  3. Search the gap's length.
    4. If the gap goes on beyond the canvas, write the canvas full, add its whole lines to the prefix, and begin again
    behind them.
    5. Denoise the best lengths, a batch at a time.
    6. Keep the candidates that can be shown; while there is none, mend the likeliest broken one; go on with the next
    lengths until there are enough.
    7. The Fill is the likeliest candidate of the first batch that has one; else the longest valid beginning of a broken
    one; else empty, with the reason.
    """
    clock = Clock(request.deadline)
    # 1. to 4.
    section, written = yield from _write(model, cache, request, clock)
    if written.ended:
        yield clock.stamp(Fill(fit.fit(request, written.text)))
        return
    # 5. The seed of a batch depends on its number only, so a batch is the same however many come before or after it.
    found: dict[str, Fill] = {}
    refused: list[Candidate] = []
    for number, (batch, steps) in enumerate(_batches(model, cache, request, section)):
        last = yield from report_steps(model, batch, steps, clock)
        candidates = rank_by_likelihood(model, cache, batch, last)
        # 6. The last Draft shows the row that becomes the Fill.
        best = candidates[0]
        if best.row and not found and not best.fill.refusal:
            yield draft(model, batch, last, clock.milliseconds(), best.row)
        for candidate in candidates:
            if candidate.fill.refusal:
                refused.append(candidate)
            else:
                found.setdefault(candidate.fill.text, candidate.fill)
        # Mending a span takes fewer steps than denoising another length.
        if not found:
            origin = Origin(request, (section.seam, section.slots), section.before, number)
            mended = yield from mend(model, cache, origin, candidates, clock)
            found |= {} if mended is None else {mended.text: mended}
        if len(found) >= request.alternatives or clock.is_over():
            break
    # 7. The first batch decides, so that the Fill does not depend on how many alternatives are wanted.
    yield clock.stamp(_answer(list(found.values()), refused, request))


def _write(
    model: Checkpoint, cache: PrefixCache, request: Infill, clock: Clock
) -> Generator[Draft, None, tuple[_Section, Written]]:
    """Write the canvases that the gap goes on beyond; return the section of the last canvas, and the text so far."""
    written = Written()
    while True:
        # 1. The prefix ends at a line start, so that it stays in the cache while a line is being typed.
        prefix, seam = tokenise(model, replace(request, prefix=request.prefix + written.text))
        # 2. A Draft after each chunk lets the caller cancel. A request with a deadline need not be reproducible.
        for _ in extend_to(model.network, cache, prefix, exact=request.deadline is None):
            yield Draft(0, (), clock.milliseconds())
        # 3. In measurements the request may give the length, which replaces the search.
        section = _Section(written.text, seam, 0)
        for ranked in _search(model, cache, request, section):
            section = ranked
            yield Draft(0, (), clock.milliseconds())
            if clock.is_over():
                break
        clock.searched += section.searched
        # 4. A canvas that adds no text is dropped.
        if not section.goes_on or clock.is_over():
            return section, written
        canvas = stack([lay_out(section.seam, section.open, section.slots)] * plan_for(request).batch)
        batch = Batch(canvas.to(model.device), request, section.before)
        last = yield from report_steps(model, batch, denoise_batch(model, cache, batch, 0), clock)
        clock.steps += last.number
        written = read_full_canvas(model, batch, last)
        if written.ended or written.text == section.before:
            return section, written


def _answer(found: Sequence[Fill], refused: Sequence[Candidate], request: Infill) -> Fill:
    """The first of `found` with the texts of the others, likeliest first; else the valid beginning of a refused one.

    If there is neither, an empty Fill with the reason (law 9).
    """
    if found:
        others = sorted(found[1:], key=lambda f: f.score)[: request.alternatives - 1]
        return replace(found[0], others=tuple(f.text for f in others))
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


def tokenise(model: Checkpoint, request: Infill) -> tuple[tuple[int, ...], Seam]:
    """The tokens to encode (the prompt's frame, then whole lines), and the seam of the canvas (head of line, suffix).

    A prefix that is too long for the checkpoint is shortened by the text layer, which keeps the imports and headers
    from above the cut, and moves the cut in large hops so that the cached prefix survives typing. If the head is longer
    than a quarter of the canvas, its beginning is encoded with the prefix.
    """
    lines, head = _lines_and_head(model, request.prefix)
    if len(lines) + len(head) >= model.max_prefix:
        request = _shortened(model, request)
        lines, head = _lines_and_head(model, request.prefix)
    keep = plan_for(request).slots // 4
    if len(head) > keep:
        lines, head = lines + head[:-keep], head[-keep:]
    hop = max(model.max_prefix // 2, 1)
    over = max(len(lines) + 1 - model.max_prefix, 0)
    lines = lines[-(-over // hop) * hop :]
    frame = frame_of(model.tokenizer, model.style, model.bos, request)
    return (*frame.before, *lines), Seam(head, model.encode(request.suffix) + frame.after, model.eos)


def _lines_and_head(model: Checkpoint, prefix: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens of the whole lines of `prefix`, and those of the line that it ends in."""
    start = max(prefix.rfind("\n"), prefix.rfind("\r")) + 1
    return model.encode(prefix[:start]), model.encode(prefix[start:])


def _shortened(model: Checkpoint, request: Infill) -> Infill:
    """`request` with its prefix cut to fewer tokens than the checkpoint takes; BYTES_PER_TOKEN are tried in turn."""
    before = request.prefix.encode("utf-8", "replace")
    for share in BYTES_PER_TOKEN:
        if len(model.encode(request.prefix)) < model.max_prefix:
            break
        short = shortened(load_language(request.language), before, int(share * model.max_prefix))
        request = replace(request, prefix=short.decode("utf-8"))
    return request


def _search(model: Checkpoint, cache: PrefixCache, request: Infill, section: _Section) -> Iterator[_Section]:
    """Search the gap's length; yield `section` with the lengths ranked so far after each round."""
    plan, seam, longest = plan_for(request), section.seam, model.canvas_lengths[-1]
    if request.like is not None:
        yield _with_given_length(model, request, section)
        return
    slots = next((n for n in model.canvas_lengths if n >= plan.slots), longest)
    section = replace(section, slots=slots)
    lengths = lengths_that_fit(plan.search.lengths, seam.room(slots, ANCHORS))
    if len(model.encode(section.before)) + section.open <= plan.limit:
        lengths += (section.open,)
    search = replace(plan.search, lengths=lengths)
    seed = request.seed + CANVAS_SEED * len(section.before)
    rounds = search_length(model.network, cache, (seam, slots), search, seed)
    for number, ranked in enumerate(rounds, start=1):
        yield replace(section, lengths=ranked, searched=number * search.steps)


def _with_given_length(model: Checkpoint, request: Infill, section: _Section) -> _Section:
    """`section` with the length of the text `request.like`; one that no canvas holds goes on beyond the longest."""
    plan, longest = plan_for(request), model.canvas_lengths[-1]
    left = len(model.encode(request.like or "")) - len(model.encode(section.before))
    given = min(max(left, 1), section.seam.room(longest, 1))
    fits = (n for n in model.canvas_lengths if n >= plan.slots and section.seam.room(n, ANCHORS) >= given)
    section = replace(section, slots=next(fits, longest))
    # The same length several times, so that there are candidates that differ by their noise.
    lengths = (ScoredLength(given, 0.0),) * plan.finalists
    if left > section.seam.room(section.slots, ANCHORS):
        lengths = (ScoredLength(section.open, 0.0), *lengths)
    return replace(section, lengths=lengths)


def _batches(
    model: Checkpoint, cache: PrefixCache, request: Infill, section: _Section
) -> Iterator[tuple[Batch, Iterator[Step]]]:
    """The batches of the best lengths, `plan.batch` lengths at a time, each with its denoising steps."""
    plan = plan_for(request)
    lengths = [c.length for c in section.lengths if c.length != section.open][: plan.finalists]
    # If alternatives are wanted, all lengths are tried again with other noise after the first turn.
    for turn, start in product(range(request.alternatives), range(0, len(lengths), plan.batch)):
        tried = lengths[start : start + plan.batch]
        rows = [lay_out(section.seam, n, section.slots) for n in tried for _ in range(plan.draws)]
        batch = Batch(stack(rows).to(model.device), request, section.before)
        steps = denoise_batch(model, cache, batch, turn * len(lengths) + start + 1)
        yield batch, stop_when_enough(model, batch, steps)
