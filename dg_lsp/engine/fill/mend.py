"""Mending: a fill that would add a syntax error is denoised again where it is broken, all else of it anchors.

Knows tokens, canvases and what the text layer says of a broken fill; knows no length search and no other fills.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.canvas import Canvas, Seam, lay_out, stack
from dg_lsp.engine.fill.candidates import Batch, Candidate, draft, judged
from dg_lsp.engine.fill.plan import ROUNDS
from dg_lsp.engine.fill.settle import Clock, denoised, drafts, until_answered
from dg_lsp.engine.load.checkpoint import Checkpoint
from dg_lsp.text.fills.resume import Break, find_break
from dg_lsp.text.messages import Draft, Fill, Infill

# Tokens before the point that are freed: at the first try, at the second, at the third; then the whole statement.
WIDTHS = (1, 4, 12)
BEHIND = (
    2  # tokens behind the point that are freed at least: the one that could not follow is the first of them
)
# There is no delete token, and a bracket too many or too few wants a span of another length.
CHANGES = (0, 1, -1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where broken fills were written: the layout, what earlier canvases wrote of them, the number of their batch.

    layout: the seam of the gap and the slots of its canvas.
    """

    request: Infill
    layout: tuple[Seam, int]
    before: str
    number: int


@dataclass(frozen=True, slots=True)
class Freed:
    """A fill with a span of it freed: the tokens before and after the span, how many it had, and the texts round it."""

    head: tuple[int, ...]
    length: int
    tail: tuple[int, ...]
    around: tuple[str, str]


def mend(
    model: Checkpoint, cache: PrefixCache, place: Place, candidates: Sequence[Candidate], clock: Clock
) -> Generator[Draft, None, Fill | None]:
    """Denoise the broken places of the likeliest of `candidates` again; yield Drafts; return a Fill that can be shown.

    1. Take the first that is broken.  2. Free the span round its break, as long as it is, longer and shorter; anchor
    all else of it.  3. Denoise, judge.  4. Go on from what parses better; where nothing does, free more.
    """
    # 1. What is empty or a stub has nothing broken to free.
    broken = ((c.fill, find_break(place.request, c.fill.text)) for c in candidates if c.whole)
    fill, damage = next(((f, b) for f, b in broken if b), (None, None))
    if fill is None or damage is None:
        return None
    text, steps, width = fill.text, fill.steps, 0
    for number in range(1, ROUNDS[place.request.effort] + 1):
        # 2.
        freed = free(model, text.removeprefix(place.before), damage.behind(place.before), width)
        rows = _rows(freed, place.layout)
        if clock.is_over() or not rows or not text.startswith(place.before):
            break
        batch = Batch(stack(rows).to(model.device), place.request, place.before, freed.around, number)
        # 3.
        settling = until_answered(model, batch, denoised(model, cache, batch, place.number))
        last = yield from drafts(model, batch, settling, clock)
        steps += last.number
        again = judged(model, cache, batch, last)
        if not again[0].fill.refusal:
            if again[0].row:
                yield draft(model, batch, last, clock.milliseconds(), again[0].row)
            score = max(again[0].fill.score, fill.score)
            return replace(again[0].fill, score=score, steps=steps, repairs=number)
        # 4.
        better = _better(place.request, again, damage, freed)
        width = 0 if better else width + 1
        text, damage = better or (text, damage)
    return None


def free(model: Checkpoint, text: str, damage: Break, width: int) -> Freed:
    """`text`, with the span round its `damage` freed that the `width`-th try takes."""
    encoding = model.tokenizer.encode(text, add_special_tokens=False)
    spans, ids = encoding.offsets, tuple(encoding.ids)
    ends = [len(text[:end].encode("utf-8", "replace")) for _, end in spans]
    start, stop = _span(damage, lambda offset: sum(end <= offset for end in ends), width)
    start = min(max(start, 0), max(len(ids) - 1, 0))
    stop = min(max(stop, start + 1), len(ids))
    # A character of several tokens is freed as a whole.
    while 0 < start < len(ids) and spans[start][0] < spans[start - 1][1]:
        start -= 1
    while 0 < stop < len(ids) and spans[stop][0] < spans[stop - 1][1]:
        stop += 1
    around = (text[: spans[start][0]], text[spans[stop - 1][1] :]) if ids else ("", "")
    return Freed(ids[:start], stop - start, ids[stop:], around)


def _span(damage: Break, token_at: Callable[[int], int], width: int) -> tuple[int, int]:
    """The tokens to free: the first, and the one behind the last."""
    point, shut = token_at(damage.point), damage.shut
    # What a bracket lacks is likeliest at the end of its own line, however far the parser got.
    if width == 0 and shut is not None and shut[1] < damage.point:
        return token_at(shut[0]), token_at(shut[1])
    wide = WIDTHS[min(width, len(WIDTHS) - 1)]
    start, stop = point - wide, point + max(BEHIND, min(token_at(damage.end) - point, wide))
    if width == 0:
        # Where the next line cannot follow it is this one that is wrong, so its end stays.
        return start, min(stop, max(token_at(damage.line), point))
    if width >= len(WIDTHS):
        first, last = damage.statement
        start, stop = min(start, token_at(first)), max(stop, token_at(last))
    return min(start, token_at(shut[0])) if shut else start, stop


def _rows(freed: Freed, layout: tuple[Seam, int]) -> list[Canvas]:
    """The canvases of the lengths that the span is tried with; none where it does not fit."""
    seam, slots = layout
    around = Seam((*seam.head, *freed.head), (*freed.tail, *seam.suffix), seam.filler)
    lengths = [freed.length + change for change in CHANGES]
    return [lay_out(around, n, slots) for n in lengths if 1 <= n <= around.room(slots, len(freed.tail) + 1)]


def _better(
    request: Infill, again: Sequence[Candidate], damage: Break, freed: Freed
) -> tuple[str, Break] | None:
    """The likeliest text of which more parses than before: fewer faults, and none up to where the span ended."""
    for candidate in again:
        text = candidate.fill.text
        left = find_break(request, text) if candidate.whole else None
        reached = len(text.encode("utf-8", "replace")) - len(freed.around[1].encode("utf-8", "replace"))
        if left is not None and left.point > reached and len(left.faults) < len(damage.faults):
            return text, left
    return None
