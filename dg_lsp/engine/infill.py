"""The whole algorithm: an Infill in, Drafts out, one Fill last. Knows every part of the engine and the text checks.

A generator: nothing runs ahead of what is asked for, so closing it cancels within one step or chunk.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dg_lsp.engine.cache import PrefixCache, extend_to
from dg_lsp.engine.canvas import Canvas, Seam, lay_out, stack
from dg_lsp.engine.checkpoint import Checkpoint
from dg_lsp.engine.denoise import Schedule, Step, denoise
from dg_lsp.engine.length import Scored, Search, fitting, search_length
from dg_lsp.engine.sampler import AnchoredSampler, SeededNoise
from dg_lsp.text import edits, syntax
from dg_lsp.text.messages import Draft, Fill, Infill, Reason, Run

ANCHORS = 12  # slots that a canvas keeps for the suffix, so that the fill knows where it must arrive


@dataclass(frozen=True, slots=True)
class Plan:
    """What a kind of gap and an effort come to.

    slots: canvas length wanted. steps: denoising steps at most. finalists: lengths that are denoised to the
    end, in batches of `batch`, until one gives a fill that parses.
    """

    slots: int
    steps: int
    batch: int
    finalists: int
    search: Search


_LINE = (1, 2, 3, 4, 6, 8, 10, 13, 17, 22, 28)
_BODY = (5, 8, 12, 16, 21, 27, 34, 42, 52, 64, 80)
_PLANS = {
    ("rest_of_line", "low"): Plan(64, 8, 1, 2, Search(_LINE[1::2], draws=1, steps=1, refined=2)),
    ("rest_of_line", "normal"): Plan(64, 12, 2, 4, Search(_LINE, draws=1, steps=1, refined=4)),
    ("rest_of_line", "high"): Plan(64, 24, 4, 12, Search(_LINE, draws=4, steps=2, refined=12)),
    ("function_body", "low"): Plan(128, 16, 1, 2, Search(_BODY[::2], draws=1, steps=1, refined=2)),
    ("function_body", "normal"): Plan(128, 32, 2, 6, Search(_BODY, draws=1, steps=2, refined=6)),
    ("function_body", "high"): Plan(128, 48, 4, 16, Search(_BODY, draws=4, steps=2, refined=16)),
}


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One denoised row: its text, or the reason why it cannot be shown."""

    text: str
    score: float
    steps: int
    reason: Reason
    refusal: str = ""


def infill(model: Checkpoint, cache: PrefixCache, request: Infill) -> Iterator[Draft | Fill]:
    """Fill the gap of `request`; yield Drafts (those of step 0 say that encoding or search goes on), then a Fill.

    1. Text to tokens: the prefix up to its last line start, the head of the gap's line, the suffix.
    2. Encode what the cache does not hold yet.  3. Search the gap's length.
    4. Denoise the best lengths, a batch at a time.  5. Take the best candidate that adds no syntax error;
    when there is none, go on with the next lengths.  6. The Fill, or the reason for none.
    """
    clock = _Clock(request.deadline)
    plan = _PLANS[request.kind, request.effort]
    # 1. A canvas begins at a line start, so the cached prefix stays while one types on a line.
    prefix, seam = tokenise(model, request)
    # 2. Fixed chunks; a Draft after each lets the caller cancel.
    for _ in extend_to(model.network, cache, prefix):
        yield Draft(0, (), clock.milliseconds())
    # 3. The oracle of measurements replaces the search.
    size, ranked, searched = 0, tuple[Scored, ...](), 0
    for size, ranked, searched in _lengths(model, cache, request, seam):  # noqa: B007
        yield Draft(0, (), clock.milliseconds())
        if clock.is_over():
            break
    # 4. Each batch is deterministic by itself: its seed depends on its number only.
    refusals: list[str] = []
    for number, start in enumerate(range(0, min(plan.finalists, len(ranked)), plan.batch)):
        batch = [c.length for c in ranked[start : start + plan.batch]]
        canvas = stack([lay_out(seam, n, size) for n in batch]).to(model.device)
        schedule = replace(model.schedule, steps=plan.steps)
        last: Step | None = None
        for last in _settle(model, cache, canvas, schedule, request.seed + 7919 * (number + 1)):
            yield _draft(model, canvas, last, clock)
            if clock.is_over():
                break
        assert last is not None
        # 5. Among those that parse the surest wins.
        for found in sorted(_candidates(model, canvas, last, schedule), key=lambda c: c.score):
            text = edits.fit(request, found.text)
            refusal = found.refusal or _fault(request, text)
            if not refusal:
                reason: Reason = "deadline" if clock.is_over() else found.reason
                yield Fill(
                    text=text, score=found.score, steps=found.steps, searched=searched, reason=reason,
                    milliseconds=clock.milliseconds(),
                )  # fmt: skip
                return
            refusals.append(refusal)
        if clock.is_over():
            break
    # 6. Law 9: an empty answer has its reason.
    tried = f"none of {len(refusals)} candidates could be shown; the best one: {refusals[0]}" if refusals else (
        "the deadline passed before a candidate was ready"
    )  # fmt: skip
    yield Fill("", searched=searched, parses=False, milliseconds=clock.milliseconds(), refusal=tried)


def tokenise(model: Checkpoint, request: Infill) -> tuple[tuple[int, ...], Seam]:
    """The tokens to encode (bos, then whole lines) and the seam of the canvas (head of the line, suffix).

    A prefix longer than the checkpoint takes loses its beginning in hops of half the limit, so that the cut
    moves rarely and the cache survives typing. A head longer than a quarter of the canvas gives its beginning
    to the prefix.
    """
    start = max(request.prefix.rfind("\n"), request.prefix.rfind("\r")) + 1
    lines, head = model.encode(request.prefix[:start]), model.encode(request.prefix[start:])
    keep = _PLANS[request.kind, request.effort].slots // 4
    if len(head) > keep:
        lines, head = lines + head[:-keep], head[-keep:]
    hop = max(model.max_prefix // 2, 1)
    over = max(len(lines) + 1 - model.max_prefix, 0)
    lines = lines[-(-over // hop) * hop :]
    return (model.bos, *lines), Seam(head, model.encode(request.suffix), model.eos)


def _lengths(
    model: Checkpoint, cache: PrefixCache, request: Infill, seam: Seam
) -> Iterator[tuple[int, tuple[Scored, ...], int]]:
    """Yield (canvas length, ranked lengths, search steps so far) after each round of the search."""
    plan = _PLANS[request.kind, request.effort]
    longest = model.canvas_lengths[-1]
    if request.like is not None:
        given = min(max(len(model.encode(request.like)), 1), seam.room(longest, 1))
        size = next(
            (n for n in model.canvas_lengths if seam.room(n, ANCHORS) >= given and n >= plan.slots), longest
        )
        # The same length several times: the candidates then differ by their noise only.
        yield size, (Scored(given, 0.0),) * plan.finalists, 0
        return
    size = next((n for n in model.canvas_lengths if n >= plan.slots), longest)
    search = replace(plan.search, lengths=fitting(plan.search.lengths, seam.room(size, ANCHORS)))
    rounds = search_length(model.network, cache, (seam, size), search, request.seed)
    for number, ranked in enumerate(rounds, start=1):
        yield size, ranked, number * search.steps


def _settle(
    model: Checkpoint, cache: PrefixCache, canvas: Canvas, schedule: Schedule, seed: int
) -> Iterator[Step]:
    noise = SeededNoise(seed, model.vocabulary, model.device)
    sampler = AnchoredSampler(canvas, schedule.entropy_bound, noise)
    return denoise(model.network, cache.seen_by(canvas.rows), sampler, schedule)


def _candidates(model: Checkpoint, canvas: Canvas, step: Step, schedule: Schedule) -> list[_Candidate]:
    """Each row of the last step as text, with the mean entropy of its free slots as its score."""
    found = []
    free = ~canvas.anchored
    for row in range(canvas.rows):
        ids = step.best[row][free[row]].tolist()
        text, refusal = decode(model, ids)
        score = float(step.entropy[row].sum() / free[row].sum())
        reason: Reason = "stable" if bool(step.finished[row]) else "steps"
        found.append(_Candidate(text, score, step.number, reason, refusal))
    return found


def decode(model: Checkpoint, ids: Sequence[int]) -> tuple[str, str]:
    """The text of free tokens, and the reason why it cannot be shown (else empty)."""
    text = model.tokenizer.decode(list(ids), skip_special_tokens=False)
    if model.special.intersection(ids):
        return text, "it holds a special token"
    if "\ufffd" in text:
        return text, "it holds an unfinished character"
    return text, ""


def _fault(request: Infill, text: str) -> str:
    """Why `text` must not be shown (law 5), or an empty sentence."""
    if not text.strip():
        return "it is empty"
    faults = syntax.faults(request.language, request.kind, request.prefix, text, request.suffix)
    return f"it would add a syntax error, {faults[0].message}" if faults else ""


def _draft(model: Checkpoint, canvas: Canvas, step: Step, clock: "_Clock") -> Draft:
    """The first row of `step` as text: neighbouring slots of the same state and like entropy are one Run."""
    states = zip(
        canvas.anchored[0].tolist(), step.accepted[0].tolist(), step.entropy[0].tolist(), strict=True
    )
    runs: list[Run] = []
    group: list[int] = []
    before: tuple[bool, bool, float] | None = None
    for token, (anchored, accepted, entropy) in zip(step.best[0].tolist(), states, strict=True):
        state = (anchored, accepted, round(entropy, 1))
        if before is not None and state != before:
            runs.append(Run(_plain(model, group), *before))
            group = []
        group.append(token)
        before = state
    assert before is not None
    runs.append(Run(_plain(model, group), *before))
    return Draft(step.number, tuple(runs), clock.milliseconds())


def _plain(model: Checkpoint, ids: list[int]) -> str:
    return str(model.tokenizer.decode([i for i in ids if i not in model.special]))


class _Clock:
    """Milliseconds since the request was taken up, and whether its deadline has passed."""

    def __init__(self, deadline: float | None) -> None:
        self._start, self._deadline = time.perf_counter(), deadline

    def milliseconds(self) -> float:
        return (time.perf_counter() - self._start) * 1000

    def is_over(self) -> bool:
        return self._deadline is not None and self.milliseconds() > self._deadline * 1000
