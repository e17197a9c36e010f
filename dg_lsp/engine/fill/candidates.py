"""Candidates: the rows of a canvas as text, judged whether they can be shown.

Knows tokens and the text checks; no loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.canvas import Canvas
from dg_lsp.engine.denoise import Step
from dg_lsp.engine.fill.likelihood import surprises
from dg_lsp.engine.load.checkpoint import Checkpoint
from dg_lsp.text.fills import check, fit
from dg_lsp.text.fills.stitch import Written, go_on
from dg_lsp.text.messages import Draft, Fill, Infill, Reason, Run

READ_ON = 24  # tokens of the suffix that a finished fill is judged by, too


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that are denoised together for a request.

    before: what earlier canvases wrote of the same fill. around: what of the fill is anchored on the canvas, before and
    after its free slots. round: of mending; 0 where the whole fill is free.
    """

    canvas: Canvas
    request: Infill
    before: str = ""
    around: tuple[str, str] = ("", "")
    round: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One denoised row of a canvas: its Fill; `fill.refusal` says why it cannot be shown, else is empty.

    whole: its tokens are text, each of them.
    """

    row: int
    fill: Fill
    whole: bool


def judged(model: Checkpoint, cache: PrefixCache, batch: Batch, step: Step) -> list[Candidate]:
    """Each row as a Fill: those that can be shown first, then the one that the encoder finds likeliest."""
    rows = range(batch.canvas.rows)
    scores = unlikeliness(model, cache, batch, step)
    found = candidates(model, batch, step, rows)
    rated = [replace(c, fill=replace(c.fill, score=score)) for c, score in zip(found, scores, strict=True)]
    return sorted(rated, key=lambda c: (bool(c.fill.refusal), c.fill.score))


def candidates(model: Checkpoint, batch: Batch, step: Step, rows: Sequence[int]) -> list[Candidate]:
    """Each of `rows` as a Fill, with what is wrong with it; unrated."""
    found = []
    for row in rows:
        raw, strange = decode(model, _free(batch, step, row))
        head, tail = batch.around
        written = batch.before + head + raw + tail
        text = fit.fit(batch.request, written)
        # What is fitted may have been ended, too.
        kept = text.startswith(batch.before + head) and (text.endswith(tail) or text.startswith(written))
        lost = "it would end before its end" if batch.round and not kept else ""
        refusal = strange or fault(batch.request, text) or lost
        fill = fill_of(step, row, text, refusal)
        found.append(Candidate(row, fill, whole=not strange))
    return found


def unlikeliness(model: Checkpoint, cache: PrefixCache, batch: Batch, step: Step) -> list[float]:
    """Of each row -log p in nats of all from its first free slot on, as far into the suffix as every row holds it."""
    texts, firsts, _ = read_on(batch.canvas, step, model.eos)
    return surprises(model.network, cache, texts, firsts)


def read_on(canvas: Canvas, step: Step, eos: int) -> tuple[list[list[int]], list[int], list[int]]:
    """Each row of `step` as far into the suffix as every row holds it, READ_ON tokens at most, and not behind `eos`.

    Returns the rows, and where in each the first free slot is and where what follows the last one begins.
    """
    free = [(~anchored).nonzero().flatten().tolist() for anchored in canvas.anchored]
    firsts, ends = [slots[0] for slots in free], [slots[-1] + 1 for slots in free]
    rows = [(row[:end], row[end:]) for row, end in zip(step.best.tolist(), ends, strict=True)]
    behind = min(READ_ON, *(len(suffix) for _, suffix in rows))
    # Nothing follows the end of a file.
    behind = next((n for n, token in enumerate(rows[0][1][:behind], 1) if token == eos), behind)
    return [text + suffix[:behind] for text, suffix in rows], firsts, ends


def fill_of(step: Step, row: int, text: str, refusal: str) -> Fill:
    """What a row wrote, as a Fill."""
    reason: Reason = "stable" if bool(step.finished[row]) else "steps"
    return Fill(text, 0.0, step.number, reason=reason, parses=not refusal, refusal=refusal)


def continued(model: Checkpoint, batch: Batch, step: Step) -> Written:
    """What stands written when an open canvas is full: the surest row that adds something, else no more than before.

    A special token ends the text: so a model says that it is done.
    """
    request, before = batch.request, batch.before
    for row in sorted(range(batch.canvas.rows), key=lambda row: _doubt(batch, step, row)):
        ids = _free(batch, step, row)
        said = next((n for n, token in enumerate(ids) if token in model.special), len(ids))
        raw, _ = decode(model, ids[:said])
        # A character that the canvas cut in two is the next one's.
        further = go_on(request, before, raw.split("\ufffd")[0])
        if said < len(ids):
            further = Written(before + raw, ended=True)
        if further.ended and fault(request, fit.fit(request, further.text)):
            continue
        if further.text != before:
            return further
    return Written(before)


def decode(model: Checkpoint, ids: Sequence[int]) -> tuple[str, str]:
    """The text of free tokens, and the reason why it cannot be shown (else empty)."""
    text = model.tokenizer.decode(list(ids), skip_special_tokens=False)
    if model.special.intersection(ids):
        return text, "it holds a special token"
    if "\ufffd" in text:
        return text, "it holds an unfinished character"
    return text, ""


def fault(request: Infill, text: str) -> str:
    """Why `text` must not be shown (law 5), or an empty sentence."""
    if not text.strip():
        return "it is empty"
    if check.is_stub(request, text):
        return "it is a stub again"
    faults = check.faults(request.language, request.kind, request.prefix, text, request.suffix)
    return f"it would add a syntax error, {faults[0].message}" if faults else ""


def draft(model: Checkpoint, batch: Batch, step: Step, milliseconds: float, row: int = 0) -> Draft:
    """One row of `step` as text: neighbouring slots of the same state and like entropy are one Run.

    The whole lines written before come first, as a Run of their own; the line behind them lies on the canvas.
    """
    tokens, anchored = step.best[row].tolist(), batch.canvas.anchored[row].tolist()
    accepted, entropy = step.accepted[row].tolist(), step.entropy[row].tolist()
    states = [(a, b, round(e, 1)) for a, b, e in zip(anchored, accepted, entropy, strict=True)]
    lines = batch.before[: max(batch.before.rfind("\n"), batch.before.rfind("\r")) + 1]
    runs = [Run(lines, True, True, 0.0)] if lines else []
    start = 0
    for slot in range(1, len(tokens) + 1):
        if slot == len(tokens) or states[slot] != states[start]:
            text = model.tokenizer.decode([t for t in tokens[start:slot] if t not in model.special])
            runs.append(Run(text, *states[start]))
            start = slot
    return Draft(step.number, tuple(runs), milliseconds)


def _free(batch: Batch, step: Step, row: int) -> list[int]:
    return list(step.best[row][~batch.canvas.anchored[row]].tolist())


def _doubt(batch: Batch, step: Step, row: int) -> float:
    """The mean entropy of a row's free slots, in nats."""
    return float(step.entropy[row].sum() / (~batch.canvas.anchored[row]).sum())
