"""Repair of a fill that would add a syntax error: the broken span is denoised again, all its other tokens are anchors.

Knows tokens, canvases and the text layer's diagnosis of a broken fill; knows no length search and no other fills.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from dg_lsp.guard import Break, find_break
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.batch import (
    Batch,
    CheckedRow,
    denoise_batch,
    draft,
    rank_rows,
    report_steps,
    stop_when_enough,
)
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.canvas import Canvas, Seam, lay_out, stack
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.plan import REPAIR_STEPS, ROUNDS

# Tokens freed before the point of failure at the first, the second and the third try; then the whole statement.
WIDTHS = (1, 4, 12)
# Tokens freed after the point at least; the first of them is the one that the parser could not take.
BEHIND = 2
# Changes of the span's length that are tried: a canvas has no delete token, and a bracket may be missing or surplus.
CHANGES = (0, 1, -1)


@dataclass(frozen=True, slots=True)
class Origin:
    """The batch that the broken fills come from.

    layout: the seam of the gap, and the slots of its canvas. before: the text that earlier canvases wrote of the fill.
    number: of the batch.
    """

    request: Infill
    layout: tuple[Seam, int]
    before: str
    number: int


@dataclass(frozen=True, slots=True)
class Freed:
    """A fill with a freed span.

    head, tail: the tokens before and after the span. length: the tokens of the span. around: the texts before and after
    it.
    """

    head: tuple[int, ...]
    length: int
    tail: tuple[int, ...]
    around: tuple[str, str]


def repair(
    model: Checkpoint, cache: PrefixCache, origin: Origin, candidates: Sequence[CheckedRow], clock: Clock
) -> Generator[Draft, None, Fill | None]:
    """Repair the first of `candidates` that has a syntax error; yield Drafts; return a Fill that can be shown, or None.

    1. Take the first candidate with a syntax error.  2. Free the span around the error, in its length and in those that
    CHANGES gives; anchor its other tokens.  3. Denoise, and rank the rows.  4. Without a fill that can be shown,
    continue with a text that parses better; if there is none, free a wider span. At most ROUNDS rounds.
    """
    # 1. An empty fill or a stub has no error to free.
    broken = ((c.fill, find_break(origin.request, c.fill.text)) for c in candidates if c.whole)
    fill, damage = next(((f, b) for f, b in broken if b), (None, None))
    if fill is None or damage is None:
        return None
    text, steps, width = fill.text, fill.steps, 0
    for number in range(1, ROUNDS[origin.request.effort] + 1):
        # 2.
        freed = free(model, text.removeprefix(origin.before), damage.after(origin.before), width)
        rows = _rows(freed, origin.layout)
        if clock.is_over() or not rows or not text.startswith(origin.before):
            break
        batch = Batch(
            stack(rows).to(model.device), origin.request, REPAIR_STEPS, origin.before, freed.around, number
        )
        # 3.
        steps_of_round = stop_when_enough(model, batch, denoise_batch(model, cache, batch, origin.number))
        last = yield from report_steps(model, batch, steps_of_round, clock)
        steps += last.number
        again = rank_rows(model, cache, batch, last)
        if not again[0].fill.refusal:
            if again[0].row:
                yield draft(model, batch, last, clock.milliseconds(), again[0].row)
            score = max(again[0].fill.score, fill.score)
            return replace(again[0].fill, score=score, steps=steps, repairs=number)
        # 4.
        better = _better(origin.request, again, damage, freed)
        width = 0 if better else width + 1
        text, damage = better or (text, damage)
    return None


def free(model: Checkpoint, text: str, damage: Break, width: int) -> Freed:
    """Free the span around the `damage` in `text` that belongs to try number `width` (0 is the narrowest)."""
    encoding = model.tokenizer.encode(text, add_special_tokens=False)
    spans, ids = encoding.offsets, tuple(encoding.ids)
    ends = [len(text[:end].encode("utf-8", "replace")) for _, end in spans]
    start, stop = _span(damage, lambda offset: sum(end <= offset for end in ends), width)
    start = min(max(start, 0), max(len(ids) - 1, 0))
    stop = min(max(stop, start + 1), len(ids))
    # All tokens of a character are freed together.
    while 0 < start < len(ids) and spans[start][0] < spans[start - 1][1]:
        start -= 1
    while 0 < stop < len(ids) and spans[stop][0] < spans[stop - 1][1]:
        stop += 1
    around = (text[: spans[start][0]], text[spans[stop - 1][1] :]) if ids else ("", "")
    return Freed(ids[:start], stop - start, ids[stop:], around)


def _span(damage: Break, token_at: Callable[[int], int], width: int) -> tuple[int, int]:
    """The tokens to free, as a half-open span; `token_at` gives the token at a byte offset."""
    point, closed = token_at(damage.point), damage.closed
    # The closer of an open bracket is most likely missing on its own line, however far after it the parser failed.
    if width == 0 and closed is not None and closed[1] < damage.point:
        return token_at(closed[0]), token_at(closed[1])
    wide = WIDTHS[min(width, len(WIDTHS) - 1)]
    start, stop = point - wide, point + max(BEHIND, min(token_at(damage.end) - point, wide))
    if width == 0:
        # If the parser fails at the next line, this line is wrong; so the span ends with this line.
        return start, min(stop, max(token_at(damage.line), point))
    if width >= len(WIDTHS):
        first, last = damage.statement
        start, stop = min(start, token_at(first)), max(stop, token_at(last))
    return min(start, token_at(closed[0])) if closed else start, stop


def _rows(freed: Freed, layout: tuple[Seam, int]) -> list[Canvas]:
    """The canvases with the span in each length that CHANGES gives; those that fit."""
    seam, slots = layout
    around = Seam((*seam.head, *freed.head), (*freed.tail, *seam.suffix), seam.filler)
    lengths = [freed.length + change for change in CHANGES]
    return [lay_out(around, n, slots) for n in lengths if 1 <= n <= around.room(slots, len(freed.tail) + 1)]


def _better(
    request: Infill, again: Sequence[CheckedRow], damage: Break, freed: Freed
) -> tuple[str, Break] | None:
    """The likeliest text that parses better, with its damage: fewer faults, the first of them after the freed span."""
    for candidate in again:
        text = candidate.fill.text
        left = find_break(request, text) if candidate.whole else None
        reached = len(text.encode("utf-8", "replace")) - len(freed.around[1].encode("utf-8", "replace"))
        if left is not None and left.point > reached and len(left.faults) < len(damage.faults):
            return text, left
    return None
