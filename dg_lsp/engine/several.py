"""Several gaps on one canvas: anchors, free, anchors, free, anchors; each gap is written with the others in view.

Knows what `infill` knows; its gaps are lines or parts of lines that stand close together.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import torch

from dg_lsp.engine.cache import PrefixCache, extend_to
from dg_lsp.engine.candidates import Batch, decode, fault
from dg_lsp.engine.canvas import FREE, LayoutError, Seam, lay_out, stack
from dg_lsp.engine.checkpoint import Checkpoint
from dg_lsp.engine.denoise import Step
from dg_lsp.engine.infill import tokenise
from dg_lsp.engine.length import fitting, search_length
from dg_lsp.engine.plan import ANCHORS, plan_for
from dg_lsp.engine.settle import denoised
from dg_lsp.text import edits
from dg_lsp.text.language import load_language
from dg_lsp.text.messages import Fill, Infill, Reason


@dataclass(frozen=True, slots=True)
class Gaps:
    """Several gaps of a file: `request` is for the first one, and its suffix what stands behind the last one.

    between: what stands between a gap and the next, one text fewer than gaps. lengths: of the gaps in tokens where they
    are known, the oracle of measurements.
    """

    request: Infill
    between: tuple[str, ...]
    lengths: tuple[int, ...] = ()

    def alone(self, number: int) -> Infill:
        """The request for one of the gaps, placeholders in the others."""
        filler = load_language(self.request.language).placeholder(self.request.kind)
        texts = [self.request.prefix, *self.between, self.request.suffix]
        return replace(
            self.request, prefix=filler.join(texts[: number + 1]), suffix=filler.join(texts[number + 1 :])
        )


def infill_several(
    model: Checkpoint, cache: PrefixCache, gaps: Gaps
) -> Generator[Step | None, None, tuple[Fill, ...]]:
    """Fill all of `gaps`; yield None while encoding and searching go on, then each Step; return a Fill for each gap.

    1. Encode the prefix.  2. Search the lengths one after another: the gaps found stand free on the canvas, what comes
    behind the text that follows is left open.  3. Denoise all gaps at once.  4. Of the rows take the one with the most
    gaps that can be shown, and of those the surest.

    Raises:
        LayoutError: the gaps and what stands between them do not fit the longest canvas.
    """
    request, plan = gaps.request, plan_for(gaps.request)
    # 1.
    prefix, seam = tokenise(model, request)
    for _ in extend_to(model.network, cache, prefix):
        yield None
    # 2.
    between = [model.encode(text) for text in gaps.between]
    slots = _slots(model, seam, between, gaps)
    head, found = list(seam.head), list[tuple[int, int]]()
    for number in range(len(between) + 1):
        last = number == len(between)
        behind = Seam(tuple(head), *((seam.suffix, seam.filler) if last else (between[number], FREE)))
        length = gaps.lengths[number] if gaps.lengths else 0
        if not length:
            room = behind.room(slots, ANCHORS + sum(len(ids) + 1 for ids in between[number:]))
            search = replace(plan.search, lengths=fitting(plan.search.lengths, room))
            for ranked in search_length(model.network, cache, (behind, slots), search, request.seed + number):
                length = ranked[0].length
                yield None
        found.append((len(head), len(head) + length))
        head += [*([FREE] * length), *([] if last else between[number])]
    # 3.
    begin, end = found[-1]
    row = lay_out(Seam(tuple(head[:begin]), seam.suffix, seam.filler), end - begin, slots)
    canvas = stack([row] * plan.batch).to(model.device)
    step: Step | None = None
    for step in denoised(model, cache, Batch(canvas, request), 0):
        yield step
    assert step is not None
    # 4.
    rows = [_fills(model, gaps, step, number, found) for number in range(canvas.rows)]
    return min(rows, key=lambda fills: (sum(bool(f.refusal) for f in fills), sum(f.score for f in fills)))


def _slots(model: Checkpoint, seam: Seam, between: Sequence[Sequence[int]], gaps: Gaps) -> int:
    """The shortest canvas that holds what stands between the gaps and gaps of a usual length."""
    usual = plan_for(gaps.request).search.lengths
    free = sum(gaps.lengths) or (len(between) + 1) * usual[len(usual) // 2]
    needed = len(seam.head) + sum(map(len, between)) + free + ANCHORS
    slots = next((n for n in model.canvas_lengths if n >= needed), 0)
    if not slots:
        raise LayoutError(
            f"{len(between) + 1} gaps and what stands between them take {needed} slots, and the longest canvas has "
            f"{model.canvas_lengths[-1]}; fill them one by one"
        )
    return slots


def _fills(
    model: Checkpoint, gaps: Gaps, step: Step, row: int, found: Sequence[tuple[int, int]]
) -> tuple[Fill, ...]:
    """One row's Fills; `found` are the columns of its gaps."""
    fills = []
    for number, (begin, end) in enumerate(found):
        request = gaps.alone(number)
        raw, refusal = decode(model, step.best[row, begin:end].tolist())
        text = edits.fit(request, raw)
        refusal = refusal or fault(request, text)
        reason: Reason = "stable" if bool(step.finished[row]) else "steps"
        score = float(torch.mean(step.entropy[row, begin:end]))
        fills.append(Fill(text, score, step.number, reason=reason, parses=not refusal, refusal=refusal))
    return tuple(fills)
