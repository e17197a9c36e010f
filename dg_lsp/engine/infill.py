"""The whole algorithm: an Infill in, Drafts out, one Fill last. Knows the engine's parts and the text checks.

A generator: nothing runs ahead of what is asked for, so closing it cancels within one step or chunk.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from dg_lsp.engine.cache import PrefixCache, extend_to
from dg_lsp.engine.canvas import Canvas, Seam, lay_out, stack
from dg_lsp.engine.checkpoint import Checkpoint
from dg_lsp.engine.denoise import Step, denoise
from dg_lsp.engine.frame import frame_of
from dg_lsp.engine.length import Scored, fitting, search_length
from dg_lsp.engine.plan import ANCHORS, plan_for
from dg_lsp.engine.sampler import AnchoredSampler, SeededNoise
from dg_lsp.text import edits, syntax
from dg_lsp.text.functions import STUB
from dg_lsp.text.messages import Draft, Fill, Infill, Reason, Run


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Where the length search stands: the canvas length, the gap lengths best first, the steps it took."""

    slots: int
    lengths: tuple[Scored, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One denoised row of a canvas: its Fill; `fill.refusal` says why it cannot be shown, else is empty."""

    row: int
    fill: Fill


def infill(model: Checkpoint, cache: PrefixCache, request: Infill) -> Iterator[Draft | Fill]:
    """Fill the gap of `request`; yield Drafts (those of step 0 say that encoding or search goes on), then a Fill.

    1. Text to tokens: the prefix up to its last line start, the head of the gap's line, the suffix.
    2. Encode what the cache does not hold yet.  3. Search the gap's length.
    4. Denoise the best lengths, a batch at a time.  5. Keep the candidates that can be shown; while there are
    too few, go on with the next lengths.  6. The Fill is the surest of the first batch; or the reason for none.
    """
    clock = _Clock(request.deadline)
    # 1. A canvas begins at a line start, so the cached prefix stays while one types on a line.
    prefix, seam = tokenise(model, request)
    # 2. Fixed chunks; a Draft after each lets the caller cancel.
    for _ in extend_to(model.network, cache, prefix):
        yield Draft(0, (), clock.milliseconds())
    # 3. The oracle of measurements replaces the search.
    ranking = _Ranking(0, (), 0)
    for ranking in _rank(model, cache, request, seam):  # noqa: B007  (the last one is used below)
        yield Draft(0, (), clock.milliseconds())
        if clock.is_over():
            break
    # 4. Each batch is deterministic by itself: its seed depends on its number only.
    found: dict[str, Fill] = {}
    refused: list[str] = []
    for canvas, steps in _batches(model, cache, request, (seam, ranking)):
        last = yield from _drafts(model, canvas, steps, clock)
        candidates = _candidates(model, canvas, last, request, range(canvas.rows))
        # 5. The last Draft shows the row that is taken.
        best = candidates[0]
        if best.row and not found and not best.fill.refusal:
            yield _draft(model, canvas, last, clock, best.row)
        for candidate in candidates:
            if candidate.fill.refusal:
                refused.append(candidate.fill.refusal)
            else:
                found.setdefault(candidate.fill.text, candidate.fill)
        if len(found) >= request.alternatives or clock.is_over():
            break
    # 6. So the answer is the same whether alternatives are wanted or not.
    yield _stamped(_answer(list(found.values()), refused, request), ranking, clock)


def _answer(found: Sequence[Fill], refused: Sequence[str], request: Infill) -> Fill:
    """The first of `found` with the texts of the others, the surest first; law 9: or the reason for none."""
    if found:
        others = sorted(found[1:], key=lambda f: f.score)[: request.alternatives - 1]
        return replace(found[0], others=tuple(f.text for f in others))
    why = f"none of {len(refused)} candidates could be shown; the best one: {refused[0]}" if refused else ""
    return Fill("", parses=False, refusal=why or "the deadline passed before a candidate was ready")


def tokenise(model: Checkpoint, request: Infill) -> tuple[tuple[int, ...], Seam]:
    """The tokens to encode (the frame, then whole lines) and the seam of the canvas (head of the line, suffix).

    A prefix longer than the checkpoint takes loses its beginning in hops of half the limit, so that the cut
    moves rarely and the cache survives typing. A head longer than a quarter of the canvas gives its beginning
    to the prefix.
    """
    start = max(request.prefix.rfind("\n"), request.prefix.rfind("\r")) + 1
    lines, head = model.encode(request.prefix[:start]), model.encode(request.prefix[start:])
    keep = plan_for(request).slots // 4
    if len(head) > keep:
        lines, head = lines + head[:-keep], head[-keep:]
    hop = max(model.max_prefix // 2, 1)
    over = max(len(lines) + 1 - model.max_prefix, 0)
    lines = lines[-(-over // hop) * hop :]
    frame = frame_of(model.tokenizer, model.style, model.bos, request)
    return (*frame.before, *lines), Seam(head, model.encode(request.suffix) + frame.after, model.eos)


def decode(model: Checkpoint, ids: Sequence[int]) -> tuple[str, str]:
    """The text of free tokens, and the reason why it cannot be shown (else empty)."""
    text = model.tokenizer.decode(list(ids), skip_special_tokens=False)
    if model.special.intersection(ids):
        return text, "it holds a special token"
    if "\ufffd" in text:
        return text, "it holds an unfinished character"
    return text, ""


def _rank(model: Checkpoint, cache: PrefixCache, request: Infill, seam: Seam) -> Iterator[_Ranking]:
    """Yield the ranking after each round of the search."""
    plan = plan_for(request)
    longest = model.canvas_lengths[-1]
    if request.like is not None:
        given = min(max(len(model.encode(request.like)), 1), seam.room(longest, 1))
        fits = (n for n in model.canvas_lengths if n >= plan.slots and seam.room(n, ANCHORS) >= given)
        # The same length several times: the candidates then differ by their noise only.
        yield _Ranking(next(fits, longest), (Scored(given, 0.0),) * plan.finalists, 0)
        return
    slots = next((n for n in model.canvas_lengths if n >= plan.slots), longest)
    search = replace(plan.search, lengths=fitting(plan.search.lengths, seam.room(slots, ANCHORS)))
    rounds = search_length(model.network, cache, (seam, slots), search, request.seed)
    for number, lengths in enumerate(rounds, start=1):
        yield _Ranking(slots, lengths, number * search.steps)


def _batches(
    model: Checkpoint, cache: PrefixCache, request: Infill, layout: tuple[Seam, _Ranking]
) -> Iterator[tuple[Canvas, Iterator[Step]]]:
    """The canvases of the best lengths, `plan.batch` rows at a time, and the steps that settle them."""
    plan, (seam, ranking) = plan_for(request), layout
    lengths = [c.length for c in ranking.lengths[: plan.finalists]]
    schedule = replace(model.schedule, steps=plan.steps)
    # More draws of the same lengths come only after all of them, and only where alternatives are wanted.
    for turn, start in product(range(request.alternatives), range(0, len(lengths), plan.batch)):
        rows = [lay_out(seam, n, ranking.slots) for n in lengths[start : start + plan.batch]]
        canvas = stack(rows).to(model.device)
        number = turn * len(lengths) + start + 1
        noise = SeededNoise(request.seed + 7919 * number, model.vocabulary, model.device)
        sampler = AnchoredSampler(canvas, schedule.entropy_bound, noise)
        steps = denoise(model.network, cache.seen_by(canvas.rows), sampler, schedule)
        yield canvas, _until_answered(model, canvas, steps, request)


def _drafts(
    model: Checkpoint, canvas: Canvas, steps: Iterator[Step], clock: "_Clock"
) -> Generator[Draft, None, Step]:
    """A Draft of the best length's row after each step, until the deadline; returns the last Step."""
    last: Step | None = None
    for last in steps:
        yield _draft(model, canvas, last, clock)
        if clock.is_over():
            break
    assert last is not None, "a schedule has at least one step"
    return last


def _until_answered(
    model: Checkpoint, canvas: Canvas, steps: Iterator[Step], request: Infill
) -> Iterator[Step]:
    """`steps` up to the first at which a row has finished that can be shown: the others would only cost time."""
    known = 0
    for step in steps:
        yield step
        finished = step.finished.nonzero().flatten().tolist()
        if len(finished) > known:
            known = len(finished)
            if not _candidates(model, canvas, step, request, finished)[0].fill.refusal:
                return


def _candidates(
    model: Checkpoint, canvas: Canvas, step: Step, request: Infill, rows: Sequence[int]
) -> list[_Candidate]:
    """Each of `rows` as a Fill: those that can be shown first, then the surest, by the mean entropy of its slots."""
    found = []
    free = ~canvas.anchored
    for row in rows:
        raw, refusal = decode(model, step.best[row][free[row]].tolist())
        text = edits.fit(request, raw)
        refusal = refusal or _fault(request, text)
        score = float(step.entropy[row].sum() / free[row].sum())
        reason: Reason = "stable" if bool(step.finished[row]) else "steps"
        fill = Fill(text, score, step.number, reason=reason, parses=not refusal, refusal=refusal)
        found.append(_Candidate(row, fill))
    return sorted(found, key=lambda c: (bool(c.fill.refusal), c.fill.score))


def _fault(request: Infill, text: str) -> str:
    """Why `text` must not be shown (law 5), or an empty sentence."""
    if not text.strip():
        return "it is empty"
    if request.kind == "function_body" and STUB.fullmatch(text.strip().encode()):
        return "it is a stub again"
    faults = syntax.faults(request.language, request.kind, request.prefix, text, request.suffix)
    return f"it would add a syntax error, {faults[0].message}" if faults else ""


def _stamped(fill: Fill, ranking: _Ranking, clock: "_Clock") -> Fill:
    """`fill` with what the whole request took, and whether the deadline ended it."""
    reason: Reason = "deadline" if clock.is_over() and fill.reason != "stable" else fill.reason
    return replace(fill, searched=ranking.steps, reason=reason, milliseconds=clock.milliseconds())


def _draft(model: Checkpoint, canvas: Canvas, step: Step, clock: "_Clock", row: int = 0) -> Draft:
    """One row of `step` as text: neighbouring slots of the same state and like entropy are one Run."""
    tokens, anchored = step.best[row].tolist(), canvas.anchored[row].tolist()
    accepted, entropy = step.accepted[row].tolist(), step.entropy[row].tolist()
    states = [(a, b, round(e, 1)) for a, b, e in zip(anchored, accepted, entropy, strict=True)]
    runs: list[Run] = []
    start = 0
    for slot in range(1, len(tokens) + 1):
        if slot == len(tokens) or states[slot] != states[start]:
            text = model.tokenizer.decode([t for t in tokens[start:slot] if t not in model.special])
            runs.append(Run(text, *states[start]))
            start = slot
    return Draft(step.number, tuple(runs), clock.milliseconds())


class _Clock:
    """Milliseconds since the request was taken up, and whether its deadline has passed."""

    def __init__(self, deadline: float | None) -> None:
        self._start, self._deadline = time.perf_counter(), deadline

    def milliseconds(self) -> float:
        return (time.perf_counter() - self._start) * 1000

    def is_over(self) -> bool:
        return self._deadline is not None and self.milliseconds() > self._deadline * 1000
