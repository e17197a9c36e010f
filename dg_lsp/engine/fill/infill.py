"""The whole algorithm: an Infill in, Drafts out, one Fill last. Knows the engine's parts and the text checks.

A generator: nothing runs ahead of what is asked for, so closing it cancels within one step or chunk.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from dg_lsp.engine.cache import PrefixCache, extend_to
from dg_lsp.engine.canvas import Seam, lay_out, stack
from dg_lsp.engine.denoise import Step
from dg_lsp.engine.fill.candidates import Batch, Candidate, continued, draft, fault, judged
from dg_lsp.engine.fill.length import Scored, fitting, search_length
from dg_lsp.engine.fill.mend import Place, mend
from dg_lsp.engine.fill.plan import ANCHORS, plan_for
from dg_lsp.engine.fill.settle import CANVAS_SEED, Clock, denoised, drafts, until_answered
from dg_lsp.engine.load.checkpoint import Checkpoint
from dg_lsp.engine.load.frame import frame_of
from dg_lsp.text.fills import fit
from dg_lsp.text.fills.shorten import shorten
from dg_lsp.text.fills.stitch import Written
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import Draft, Fill, Infill
from dg_lsp.text.prompts.prompt import shortened

# Bytes that a token may have at most and at least, as far as is tried.
BYTES_PER_TOKEN = (4, 3.5, 3, 2.5, 2, 1.5, 1)


@dataclass(frozen=True, slots=True)
class _Part:
    """One canvas's part of a fill: what stands before it, its seam and length, the gap lengths, the best first."""

    before: str
    seam: Seam
    slots: int
    lengths: tuple[Scored, ...] = ()
    searched: int = 0

    @property
    def open(self) -> int:
        """The gap length that fills the canvas: the gap goes on beyond it."""
        return self.seam.room(self.slots, 0)

    @property
    def goes_on(self) -> bool:
        """Whether that is the likeliest."""
        return bool(self.lengths) and self.lengths[0].length == self.open


def infill(model: Checkpoint, cache: PrefixCache, request: Infill) -> Generator[Draft | Fill, None, None]:
    """Fill the gap of `request`; yield Drafts (those of step 0 say that encoding or search goes on), then a Fill.

    1. Text to tokens: the prefix up to its last line start, the head of the gap's line, the suffix.
    2. Encode what the cache does not hold yet.  3. Search the gap's length.
    4. Where the gap goes on beyond the canvas: write such a canvas full, keep its whole lines as if they were the
    file's, and begin again behind them.
    5. Denoise the best lengths, a batch at a time.  6. Keep the candidates that can be shown; where none can, mend the
    likeliest that is broken; while there are too few, go on with the next lengths.  7. The Fill is the likeliest of the
    first batch; else the longest beginning of a broken one that is whole statements; or the reason for none.
    """
    clock = Clock(request.deadline)
    # 1. to 4.
    part, written = yield from _write(model, cache, request, clock)
    if written.ended:
        yield clock.stamp(Fill(fit.fit(request, written.text)))
        return
    # 5. Each batch is deterministic by itself: its seed depends on its number only.
    found: dict[str, Fill] = {}
    refused: list[Candidate] = []
    for number, (batch, steps) in enumerate(_batches(model, cache, request, part)):
        last = yield from drafts(model, batch, steps, clock)
        candidates = judged(model, cache, batch, last)
        # 6. The last Draft shows the row that is taken.
        best = candidates[0]
        if best.row and not found and not best.fill.refusal:
            yield draft(model, batch, last, clock.milliseconds(), best.row)
        for candidate in candidates:
            if candidate.fill.refusal:
                refused.append(candidate)
            else:
                found.setdefault(candidate.fill.text, candidate.fill)
        # A span costs fewer steps than another length.
        if not found:
            place = Place(request, (part.seam, part.slots), part.before, number)
            mended = yield from mend(model, cache, place, candidates, clock)
            found |= {} if mended is None else {mended.text: mended}
        if len(found) >= request.alternatives or clock.is_over():
            break
    # 7. So the answer is the same whether alternatives are wanted or not.
    yield clock.stamp(_answer(list(found.values()), refused, request))


def _write(
    model: Checkpoint, cache: PrefixCache, request: Infill, clock: Clock
) -> Generator[Draft, None, tuple[_Part, Written]]:
    """The canvases that the gap goes on beyond: what they wrote, and the part of the canvas that comes next."""
    written = Written()
    while True:
        # 1. A canvas begins at a line start, so the cached prefix stays while one types on a line.
        prefix, seam = tokenise(model, replace(request, prefix=request.prefix + written.text))
        # 2. A Draft after each chunk lets the caller cancel. Who waits with a deadline was promised no repetition.
        for _ in extend_to(model.network, cache, prefix, exact=request.deadline is None):
            yield Draft(0, (), clock.milliseconds())
        # 3. The oracle of measurements replaces the search.
        part = _Part(written.text, seam, 0)
        for ranked in _ranked(model, cache, request, part):
            part = ranked
            yield Draft(0, (), clock.milliseconds())
            if clock.is_over():
                break
        clock.searched += part.searched
        # 4. A canvas that adds nothing of use is taken for none.
        if not part.goes_on or clock.is_over():
            return part, written
        canvas = stack([lay_out(part.seam, part.open, part.slots)] * plan_for(request).batch)
        batch = Batch(canvas.to(model.device), request, part.before)
        last = yield from drafts(model, batch, denoised(model, cache, batch, 0), clock)
        clock.steps += last.number
        written = continued(model, batch, last)
        if written.ended or written.text == part.before:
            return part, written


def _answer(found: Sequence[Fill], refused: Sequence[Candidate], request: Infill) -> Fill:
    """The first of `found` with the texts of the others, the likeliest first; or what of the refused ones can be kept.

    Law 9: or the reason for none.
    """
    if found:
        others = sorted(found[1:], key=lambda f: f.score)[: request.alternatives - 1]
        return replace(found[0], others=tuple(f.text for f in others))
    for fill in (c.fill for c in refused if c.whole):
        short = shorten(request, fill.text)
        if short and not fault(request, short):
            return replace(fill, text=short, parses=True, refusal="", shortened=True)
    why = (
        f"none of {len(refused)} candidates could be shown; the best one: {refused[0].fill.refusal}"
        if refused
        else ""
    )
    return Fill("", parses=False, refusal=why or "the deadline passed before a candidate was ready")


def tokenise(model: Checkpoint, request: Infill) -> tuple[tuple[int, ...], Seam]:
    """The tokens to encode (the frame, then whole lines) and the seam of the canvas (head of the line, suffix).

    A prefix longer than the checkpoint takes is shortened as the text layer does, which keeps what matters from above
    the cut and cuts in hops, so that the cache survives typing. A head longer than a quarter of the canvas gives its
    beginning to the prefix.
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
    """`request` with a prefix of as many bytes as its tokens allow; how many bytes a token has is tried out."""
    before = request.prefix.encode("utf-8", "replace")
    for share in BYTES_PER_TOKEN:
        if len(model.encode(request.prefix)) < model.max_prefix:
            break
        short = shortened(load_language(request.language), before, int(share * model.max_prefix))
        request = replace(request, prefix=short.decode("utf-8"))
    return request


def _ranked(model: Checkpoint, cache: PrefixCache, request: Infill, part: _Part) -> Iterator[_Part]:
    """Yield `part` with its ranking after each round of the search."""
    plan, seam, longest = plan_for(request), part.seam, model.canvas_lengths[-1]
    if request.like is not None:
        yield _given(model, request, part)
        return
    slots = next((n for n in model.canvas_lengths if n >= plan.slots), longest)
    part = replace(part, slots=slots)
    lengths = fitting(plan.search.lengths, seam.room(slots, ANCHORS))
    if len(model.encode(part.before)) + part.open <= plan.limit:
        lengths += (part.open,)
    search = replace(plan.search, lengths=lengths)
    seed = request.seed + CANVAS_SEED * len(part.before)
    rounds = search_length(model.network, cache, (seam, slots), search, seed)
    for number, ranked in enumerate(rounds, start=1):
        yield replace(part, lengths=ranked, searched=number * search.steps)


def _given(model: Checkpoint, request: Infill, part: _Part) -> _Part:
    """`part` with the length that the request gives; one that no canvas holds goes on beyond the longest."""
    plan, longest = plan_for(request), model.canvas_lengths[-1]
    left = len(model.encode(request.like or "")) - len(model.encode(part.before))
    given = min(max(left, 1), part.seam.room(longest, 1))
    fits = (n for n in model.canvas_lengths if n >= plan.slots and part.seam.room(n, ANCHORS) >= given)
    part = replace(part, slots=next(fits, longest))
    # The same length several times: the candidates then differ by their noise only.
    lengths = (Scored(given, 0.0),) * plan.finalists
    if left > part.seam.room(part.slots, ANCHORS):
        lengths = (Scored(part.open, 0.0), *lengths)
    return replace(part, lengths=lengths)


def _batches(
    model: Checkpoint, cache: PrefixCache, request: Infill, part: _Part
) -> Iterator[tuple[Batch, Iterator[Step]]]:
    """The canvases of the best lengths, `plan.batch` rows at a time, and the steps that settle them."""
    plan = plan_for(request)
    lengths = [c.length for c in part.lengths if c.length != part.open][: plan.finalists]
    # More draws of the same lengths come only after all of them, and only where alternatives are wanted.
    for turn, start in product(range(request.alternatives), range(0, len(lengths), plan.batch)):
        tried = lengths[start : start + plan.batch]
        rows = [lay_out(part.seam, n, part.slots) for n in tried for _ in range(plan.draws)]
        batch = Batch(stack(rows).to(model.device), request, part.before)
        steps = denoised(model, cache, batch, turn * len(lengths) + start + 1)
        yield batch, until_answered(model, batch, steps)
