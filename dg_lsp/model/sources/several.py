"""Several gaps on one canvas: anchors, free, anchors, free, anchors. Each gap is filled in view of the others.

The gaps are lines or parts of lines. One that gets no fill on the shared canvas is filled alone.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from dg_lsp.guard import fit
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.batch import Batch, decode, denoise_batch, fill_of, report_steps, row_neg_log_likelihoods
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.candidates import Candidate, why_refused
from dg_lsp.model.canvas import FREE, LayoutError, Seam, lay_out, stack
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.length import lengths_that_fit, search_length
from dg_lsp.model.plan import ANCHORS, plan_for
from dg_lsp.model.step import Step
from dg_lsp.model.task import Task, read_in_time
from dg_lsp.model.tokens import tokenise
from dg_lsp.source.language import load_language


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of `request`, whose `between` holds the texts between them.

    lengths: the gaps' lengths in tokens if a measurement gives them; else empty, and they are searched.
    """

    request: Infill
    lengths: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of gaps."""
        return len(self.request.between) + 1

    def alone(self, number: int, texts: Sequence[str] = ()) -> Infill:
        """The request for gap `number` alone; the other gaps hold their `texts`, or a placeholder for an empty one."""
        request = self.request
        filler = load_language(request.language, request.macros).placeholders[request.kind]
        held = [text or filler for text in texts] or [filler] * self.count
        before = [text + around for text, around in zip(held[:number], request.between, strict=False)]
        after = [around + text for around, text in zip(request.between, held[1:], strict=True)][number:]
        prefix, suffix = request.prefix + "".join(before), "".join(after) + request.suffix
        return replace(request, prefix=prefix, suffix=suffix, between=())


def several(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Fill all gaps of the request; return one candidate, whose Fill holds the texts of the later gaps in `further`.

    1. Fill all gaps on one canvas, if they fit.  2. Fill each gap that got no text alone, among the fills of the
    others; there a broken one can be repaired.  3. Join the Fills into one: its score is the worst of them, its steps
    are their sum.
    """
    gaps = Gaps(task.request)
    # 1.
    try:
        fills = yield from fill_together(task.model, task.cache, gaps, task.clock)
    except LayoutError as error:
        fills = (Fill("", parses=False, refusal=str(error)),) * gaps.count
    # 2. and 3.
    return (yield from _fill_rest(task, gaps, list(fills)))


def one_by_one(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Fill all gaps of the request as `several` does, each alone: for a network that cannot denoise."""
    gaps = Gaps(task.request)
    late = "one gap after another was filled, and the deadline passed before this one"
    return (yield from _fill_rest(task, gaps, [Fill("", parses=False, refusal=late)] * gaps.count))


def _fill_rest(task: Task, gaps: Gaps, fills: list[Fill]) -> Generator[Draft, None, list[Candidate]]:
    """Fill each gap alone whose Fill is refused, and join all Fills into one candidate."""
    clock = task.clock
    for number, fill in enumerate(fills):
        if not fill.refusal or clock.is_over():
            continue
        alone = gaps.alone(number, ["" if f.refusal else f.text for f in fills])
        for event in task.fill(replace(alone, deadline=clock.left())):
            if isinstance(event, Fill):
                fills[number] = event
            else:
                # Its canvas is not the shared one that clients show, so the Draft carries no text.
                yield Draft(0, (), clock.milliseconds(), pause=event.pause)
    refusal = next((f.refusal for f in fills if f.refusal), "")
    first, *further = ("" if f.refusal else f.text for f in fills)
    worst, cut = max(fills, key=lambda f: f.score), any(f.shortened for f in fills)
    steps = sum(f.steps for f in fills)
    whole = replace(worst, text=first, further=tuple(further), refusal=refusal, parses=not refusal)
    return [Candidate(first, fill=replace(whole, steps=steps, shortened=cut))]


def fill_together(
    model: Checkpoint, cache: PrefixCache, gaps: Gaps, clock: Clock
) -> Generator[Draft, None, tuple[Fill, ...]]:
    """Fill all of `gaps` on one canvas; yield Drafts; return a Fill for each gap.

    1. Encode the prefix.  2. Search the lengths one gap after another: gaps already measured are free slots on the
    canvas, and the slots after the text that follows the gap are free too.  3. Denoise all gaps at once.  4. Take the
    row with the most gaps that can be shown, and the likeliest of several such rows.

    Raises:
        LayoutError: the gaps and the text between them do not fit the longest canvas.
    """
    request, plan = gaps.request, plan_for(gaps.request, model)
    # 1.
    prefix, seam = tokenise(model, request)
    yield from read_in_time(model, cache, prefix, clock)
    # 2.
    between = [model.encode(text) for text in request.between]
    slots = _slots(model, seam, between, gaps, plan.search.lengths)
    head, found = list(seam.head), list[tuple[int, int]]()
    for number in range(len(between) + 1):
        last = number == len(between)
        after = Seam(tuple(head), *((seam.suffix, seam.filler) if last else (between[number], FREE)))
        length = gaps.lengths[number] if gaps.lengths else 0
        if not length:
            room = after.room(slots, ANCHORS + sum(len(ids) + 1 for ids in between[number:]))
            search = replace(plan.search, lengths=lengths_that_fit(plan.search.lengths, room))
            for ranked in search_length(model.network, cache, (after, slots), search, request.seed + number):
                length = ranked[0].length
                clock.searched += search.steps
                yield Draft(0, (), clock.milliseconds())
        found.append((len(head), len(head) + length))
        head += [*([FREE] * length), *([] if last else between[number])]
    # 3.
    begin, end = found[-1]
    row = lay_out(Seam(tuple(head[:begin]), seam.suffix, seam.filler), end - begin, slots)
    canvas = stack([row] * plan.batch).to(model.device)
    batch = Batch(canvas, request, plan.steps)
    step = yield from report_steps(model, batch, denoise_batch(model, cache, batch, 0), clock)
    # 4.
    scores = row_neg_log_likelihoods(model, cache, batch, step)
    rows = [_fills(model, gaps, (step, row), found) for row in range(len(scores))]
    best = min(range(len(rows)), key=lambda row: (sum(bool(f.refusal) for f in rows[row]), scores[row]))
    return tuple(replace(fill, score=scores[best]) for fill in rows[best])


def _slots(
    model: Checkpoint, seam: Seam, between: Sequence[Sequence[int]], gaps: Gaps, usual: Sequence[int]
) -> int:
    """Return the shortest canvas that holds the texts between the gaps, and gaps of the middle of the `usual` lengths.

    Raises:
        LayoutError: the longest canvas is too short.
    """
    free = sum(gaps.lengths) or (len(between) + 1) * usual[len(usual) // 2]
    needed = len(seam.head) + sum(map(len, between)) + free + ANCHORS
    slots = next((n for n in model.canvas_lengths if n >= needed), 0)
    if not slots:
        raise LayoutError(
            f"{len(between) + 1} gaps and the text between them take {needed} slots, and the longest canvas has "
            f"{model.canvas_lengths[-1]}; fill them one by one"
        )
    return slots


def _fills(
    model: Checkpoint, gaps: Gaps, at: tuple[Step, int], found: Sequence[tuple[int, int]]
) -> list[Fill]:
    """A Fill for each gap from `at` = (step, row); `found` holds the gaps' columns as half-open spans."""
    (step, row), fills = at, []
    for number, (begin, end) in enumerate(found):
        request = gaps.alone(number)
        raw, refusal = decode(model, step.best[row, begin:end].tolist())
        text = fit.fit(request, raw)
        fills.append(fill_of(step, row, text, refusal or why_refused(request, text)))
    return fills
