"""A batch: rows of a canvas that are denoised together, and their texts as Drafts and as Fills, checked and ranked.

Knows tokens and the text checks; knows no length search, and not which batch comes next.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from dg_lsp.guard import Written, fit, go_on
from dg_lsp.messages import Draft, Fill, Infill, Reason, Run
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.candidates import why_refused
from dg_lsp.model.canvas import Canvas
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.likelihood import neg_log_likelihoods
from dg_lsp.model.networks.base import Reader
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Step
from dg_lsp.source.document import last_line

SUFFIX_READ = 24  # tokens of the suffix that count in the likelihood of a row
# Primes that keep the seeds of a request's batches apart, so that each draws other noise: by the text that earlier
# canvases of the fill wrote, by the round of repair, by the number of the batch.
CANVAS_SEED, _ROUND_SEED, _BATCH_SEED = 104729, 1299709, 7919


@dataclass(frozen=True, slots=True)
class Batch:
    """A canvas whose rows are denoised together for `request`, in so many `steps` at most.

    before: the text that earlier canvases wrote of the same fill. around: the texts of the fill that are anchored on
    this canvas, before and after its free slots (in a repair). round: the number of the round of repair, 0 outside it.
    """

    canvas: Canvas
    request: Infill
    steps: int
    before: str = ""
    around: tuple[str, str] = ("", "")
    round: int = 0


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row of a denoised batch as a Fill; `fill.refusal` says why it cannot be shown, and is empty if it can.

    whole: its tokens decode to text, without special tokens and cut characters.
    """

    row: int
    fill: Fill
    whole: bool


def denoise_batch(
    model: Checkpoint, cache: PrefixCache, batch: Batch, number: int, start: Tensor | None = None
) -> Iterator[Step]:
    """Start to denoise `batch`, the `number`-th one of its canvas or a round of repair; an iterator of its steps.

    start: the tokens that its free slots start from, where it is not noise (see AnchoredSampler).

    The seed depends on the request's seed and on which batch it is, and on nothing that other batches did.
    """
    schedule = replace(model.schedule, steps=batch.steps)
    seed = (
        batch.request.seed
        + _BATCH_SEED * number
        + CANVAS_SEED * len(batch.before)
        + _ROUND_SEED * batch.round
    )
    noise = SeededNoise(seed, model.vocabulary, model.device)
    sampler = AnchoredSampler(batch.canvas, schedule.entropy_bound, noise, start)
    steps: Iterator[Step] = model.network.denoise(cache, sampler, schedule)
    return steps


def stop_when_enough(model: Checkpoint, batch: Batch, steps: Iterator[Step]) -> Iterator[Step]:
    """Yield `steps` until half of the rows have finished with a fill that can be shown.

    Half of the rows leave a choice between candidates, and nobody waits for the slowest row.
    """
    known, enough = 0, (batch.canvas.rows + 1) // 2
    for step in steps:
        yield step
        finished = step.finished.nonzero().flatten().tolist()
        if len(finished) > known:
            known = len(finished)
            accepted = [c for c in check_rows(model, batch, step, finished) if not c.fill.refusal]
            if len(accepted) >= enough:
                return


def report_steps(
    model: Checkpoint, batch: Batch, steps: Iterator[Step], clock: Clock
) -> Generator[Draft, None, Step]:
    """Run `steps` while the deadline allows one more, and yield a Draft of the first row (the best length) after each.

    Returns the last step. A step that would end after the deadline is not begun, nor one whose rows could not be read
    before it, which takes about as long as a step.
    """
    last: Step | None = None
    begun = clock.milliseconds()
    for last in steps:
        took = clock.milliseconds() - begun
        yield draft(model, batch, last, clock.milliseconds())
        begun = clock.milliseconds()
        if not clock.has_room(2 * took / 1000):
            break
    assert last is not None, "a schedule has at least one step"
    return last


def rank_rows(model: Checkpoint, cache: PrefixCache, batch: Batch, step: Step) -> list[CheckedRow]:
    """Every row of `step`, checked: those that can be shown first, and the likeliest first among equals.

    A row's score is its negative log likelihood under the encoder, in nats.
    """
    scores = row_neg_log_likelihoods(model, cache, batch, step)
    found = check_rows(model, batch, step, range(batch.canvas.rows))
    rated = [replace(c, fill=replace(c.fill, score=score)) for c, score in zip(found, scores, strict=True)]
    return sorted(rated, key=lambda c: (bool(c.fill.refusal), c.fill.score))


def check_rows(model: Checkpoint, batch: Batch, step: Step, rows: Sequence[int]) -> list[CheckedRow]:
    """The given `rows` of `step`, fitted to the gap and checked; their scores are 0."""
    found = []
    for row in rows:
        raw, undecodable = decode(model, _free_tokens(batch, step, row))
        head, tail = batch.around
        written = batch.before + head + raw + tail
        text = fit.fit(batch.request, written)
        # Fitting may shorten the text, or end it with closers; the anchored tail must not be lost.
        kept = text.startswith(batch.before + head) and (text.endswith(tail) or text.startswith(written))
        lost = "it would end before its end" if batch.round and not kept else ""
        refusal = undecodable or why_refused(batch.request, text) or lost
        found.append(CheckedRow(row, fill_of(step, row, text, refusal), whole=not undecodable))
    return found


def row_neg_log_likelihoods(model: Checkpoint, cache: PrefixCache, batch: Batch, step: Step) -> list[float]:
    """-log p in nats of each row under the encoder, from its first free slot into the suffix.

    For a network that cannot read, the mean entropy of the row's free slots replaces it.
    """
    if not isinstance(model.network, Reader):
        return [_mean_entropy(batch, step, row) for row in range(batch.canvas.rows)]
    texts, firsts, _ = rows_with_suffix(batch.canvas, step, model.eos)
    return neg_log_likelihoods(model.network, cache, texts, firsts)


def rows_with_suffix(canvas: Canvas, step: Step, eos: int) -> tuple[list[list[int]], list[int], list[int]]:
    """The tokens of each row of `step`, cut at the same distance after its last free slot, so that rows compare.

    That distance is SUFFIX_READ tokens, fewer where a row has fewer, and not beyond `eos`. Returns the rows, and for
    each the column of its first free slot and the one after its last free slot.
    """
    free = [(~anchored).nonzero().flatten().tolist() for anchored in canvas.anchored]
    firsts, ends = [slots[0] for slots in free], [slots[-1] + 1 for slots in free]
    rows = [(row[:end], row[end:]) for row, end in zip(step.best.tolist(), ends, strict=True)]
    after = min(SUFFIX_READ, *(len(suffix) for _, suffix in rows))
    # Only filler follows the end of the file.
    after = next((n for n, token in enumerate(rows[0][1][:after], 1) if token == eos), after)
    return [text + suffix[:after] for text, suffix in rows], firsts, ends


def fill_of(step: Step, row: int, text: str, refusal: str) -> Fill:
    """A Fill of the `text` that a row of `step` wrote; an empty `refusal` means that it can be shown."""
    reason: Reason = "stable" if bool(step.finished[row]) else "steps"
    return Fill(text, 0.0, step.number, reason=reason, parses=not refusal, refusal=refusal)


def read_full_canvas(model: Checkpoint, batch: Batch, step: Step) -> Written:
    """The fill so far after a canvas without suffix anchors was written full.

    Rows are tried from the lowest mean entropy on; the first that adds text is taken, and none adds no text. A special
    token ends the fill: with it a model says that it is done.
    """
    request, before = batch.request, batch.before
    for row in sorted(range(batch.canvas.rows), key=lambda row: _mean_entropy(batch, step, row)):
        ids = _free_tokens(batch, step, row)
        end = next((n for n, token in enumerate(ids) if token in model.special), len(ids))
        raw, _ = decode(model, ids[:end])
        # A character cut by the end of the canvas is written again by the next canvas.
        further = go_on(request, before, raw.split("\ufffd")[0])
        if end < len(ids):
            further = Written(before + raw, ended=True)
        if further.ended and why_refused(request, fit.fit(request, further.text)):
            continue
        if further.text != before:
            return further
    return Written(before)


def decode(model: Checkpoint, ids: Sequence[int]) -> tuple[str, str]:
    """Return the text of `ids`, and why it cannot be shown, such as a cut character; empty if it can.

    A server's ids may be no tokens at all, which the tokenizer drops, or fails at.
    """
    if not all(0 <= one < model.vocabulary for one in ids):
        return "", "it holds a number that is no token"
    text = model.tokenizer.decode(list(ids), skip_special_tokens=False)
    if model.special.intersection(ids):
        return text, "it holds a special token"
    if "\ufffd" in text:
        return text, "it holds an unfinished character"
    return text, ""


def draft(model: Checkpoint, batch: Batch, step: Step, milliseconds: float, row: int = 0) -> Draft:
    """One row of `step` as a Draft: neighbouring slots of the same state and about the same entropy form one Run.

    The first Run holds the whole lines that earlier canvases wrote; the line after them lies on this canvas.
    """
    tokens, anchored = step.best[row].tolist(), batch.canvas.anchored[row].tolist()
    accepted, entropy = step.accepted[row].tolist(), step.entropy[row].tolist()
    states = [(a, b, round(e, 1)) for a, b, e in zip(anchored, accepted, entropy, strict=True)]
    lines = batch.before[: last_line(batch.before)]
    runs = [Run(lines, True, True, 0.0)] if lines else []
    start = 0
    for slot in range(1, len(tokens) + 1):
        if slot == len(tokens) or states[slot] != states[start]:
            text = model.tokenizer.decode([t for t in tokens[start:slot] if t not in model.special])
            runs.append(Run(text, *states[start]))
            start = slot
    return Draft(step.number, tuple(runs), milliseconds)


def _free_tokens(batch: Batch, step: Step, row: int) -> list[int]:
    """The best tokens of a row's free slots."""
    return list(step.best[row][~batch.canvas.anchored[row]].tolist())


def _mean_entropy(batch: Batch, step: Step, row: int) -> float:
    """The mean entropy of a row's free slots, in nats."""
    return float(step.entropy[row].sum() / (~batch.canvas.anchored[row]).sum())
