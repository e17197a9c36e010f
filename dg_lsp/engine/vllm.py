"""A vLLM server as an Engine: it serves DiffusionGemma already, and denoises canvases that are laid out here.

Runs in the engine's own process, which holds the tokenizer and the config of the served checkpoint, and no weights.
vLLM knows one canvas, no drafts and no seed for its noise. What is pinned is in the result, whatever it answers there.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from statistics import fmean

import torch

from dg_lsp.checkpoints import CheckpointError
from dg_lsp.engine.backoff import Backoff
from dg_lsp.engine.completions import AT_ONCE, Answer, Asked, Served, VllmServer
from dg_lsp.engine.http import EngineAbsent, EngineSilent
from dg_lsp.engine.wire import BEAT
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.model.candidates import why_refused
from dg_lsp.model.canvas import FREE, Canvas, LayoutError, Seam, anchors_from, lay_out, noised, start_from
from dg_lsp.model.checkpoint import Checkpoint, load_tokenizer
from dg_lsp.model.length import (
    ScoredLength,
    leave_one_out,
    lengths_that_fit,
    neg_log_prior,
    neighbours,
)
from dg_lsp.model.plan import ANCHORS, Plan, plan_for
from dg_lsp.model.rows import CheckedRow, decode
from dg_lsp.model.sources.denoised import shortened_or_none
from dg_lsp.model.steps import Clock
from dg_lsp.model.tokens import tokenise
from dg_lsp.settings import Settings
from dg_lsp.text.fills import fit
from dg_lsp.text.gaps.words import is_part
from dg_lsp.text.messages import PARTS, Draft, Fill, Infill, Run

# Anchors behind the gap whose likelihood is scored. vLLM tells that of each of their tokens in every slot, so an answer
# grows with them; 12, as in our own search, did no better (docs/research/server-and-editors.md).
WATCHED = 4
_FIRST_CANVAS = 600.0  # seconds that a server may take that is busy or still compiles
# Lengths of bodies beside those of the plan, since nothing is written beyond one canvas.
_LONG = (120, 150, 185, 225)


@dataclass(frozen=True, slots=True)
class Gap:
    """A request as tokens: the prompt, the seam, the canvas length, the gap lengths to try.

    start: the tokens that free slots start from; () is noise.
    """

    request: Infill
    prompt: tuple[int, ...]
    seam: Seam
    slots: int
    lengths: tuple[int, ...]
    start: tuple[int, ...] = ()

    def canvas(self, length: int) -> Canvas:
        """The canvas with `length` free slots."""
        return lay_out(self.seam, length, self.slots)

    def watched(self, length: int) -> dict[int, int]:
        """The anchors directly behind a gap of `length` slots: their tokens by slot."""
        canvas = self.canvas(length)
        slots = anchors_from(canvas, [len(self.seam.head) + length], WATCHED).tolist()
        return {slot: int(canvas.tokens[0, slot]) for slot in slots}


class VllmEngine:
    """The engine at `settings.engine_url`, with the tokenizer of `settings.checkpoint`.

    device: which vLLM it is. passes: the canvases that were denoised. hits: always 0, as vLLM does not tell them.

    Raises:
        EngineError: there is no such tokenizer, or the certificates cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        try:
            self._model = load_tokenizer(settings.checkpoint)
        except CheckpointError as error:
            raise EngineError(
                f"{error}; a vLLM server needs its config.json and tokenizer.json only"
            ) from error
        self._server, self._served = VllmServer(settings), Served("", "", 0)
        self._turns, self._live = asyncio.Semaphore(AT_ONCE), 0
        self._backoff = Backoff(first=1.0)
        self.device, self.passes, self.hits = "vLLM", 0, 0
        self.first_step = _FIRST_CANVAS

    @property
    def queue(self) -> int:
        """The number of infills beside the first."""
        return max(self._live - 1, 0)

    def memory(self) -> int:
        """0: the model is elsewhere."""
        return 0

    async def close(self) -> None:
        """Close the connections; the server runs on."""
        await self._server.close()

    async def connect(self) -> None:
        """Check the server; it is done again by the next infill where the server was away.

        Raises:
            EngineError: it cannot be used; the message says why.
        """
        self._served = await self._server.connect(self._model.encode, self._model.canvas_lengths[-1])
        self.device = f"vLLM {self._served.version}"

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts of step 0, then one Fill. Closing the generator closes the connections of its requests.

        Raises:
            EngineBusy: the server takes no more for now, or was away a moment ago. EngineError: there is no answer.
        """
        if (wait := self._backoff.left) > 0:
            raise EngineBusy(f"{self._backoff.why} (it is asked again in {wait:.0f} s)", wait)
        self._live += 1
        count = self._backoff.count
        try:
            if not self._served.version:
                await self.connect()
            async with aclosing(self._events(request)) as events:
                async for event in events:
                    yield event
            self._backoff.succeed()
        except (EngineAbsent, EngineBusy, EngineSilent) as error:
            wait = max(error.wait, 0.5) if isinstance(error, EngineBusy) else 0.0
            self._backoff.fail(error, count, wait)
            if not isinstance(error, EngineBusy):
                # It may be another one by then.
                self._served = replace(self._served, version="")
            raise
        finally:
            self._live -= 1

    async def _events(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield the events of `infill`.

        1. Lay the gap out.  2. Score its lengths.  3. Denoise the best ones, a batch at a time, until there are enough
        texts that can be shown.  4. The likeliest of the first batch that has one is the Fill.
        """
        clock, plan = Clock(request.deadline), plan_for(request)
        # 1.
        try:
            gap = await asyncio.to_thread(lay, self._model, request)
        except LayoutError as error:
            yield clock.stamp(Fill("", parses=False, refusal=str(error)))
            return
        if len(gap.prompt) + gap.slots > self._served.longest:
            raise EngineError(
                f"the text before the gap takes {len(gap.prompt)} tokens, and the server takes {self._served.longest} "
                f"with a canvas of {gap.slots}; set prefixBytes lower"
            )
        # 2.
        ranked = gap.lengths * plan.finalists
        if len(gap.lengths) > 1:
            scores = dict[int, float]()
            async with aclosing(self._search(gap, plan, clock, scores)) as drafts:
                async for draft in drafts:
                    yield draft
            ranked = tuple(sorted(scores, key=lambda n: scores[n])[: plan.finalists])
        # 3.
        read = list[CheckedRow]()
        async with aclosing(self._denoise(gap, plan, clock, (ranked, read))) as drafts:
            async for draft in drafts:
                yield draft
        # 4.
        shown = dict[str, Fill]()
        for fill in (one.fill for one in read if not one.fill.refusal):
            shown.setdefault(fill.text, fill)
        best, *others = shown.values() or [shortened_or_none(request, read)]
        run = Run(best.text, anchored=False, accepted=True, entropy=0.0)
        yield Draft(1, (run,), clock.milliseconds())
        texts = tuple(fill.text for fill in sorted(others, key=lambda fill: fill.score))
        yield clock.stamp(replace(best, others=texts[: request.alternatives - 1]))

    async def _search(
        self, gap: Gap, plan: Plan, clock: Clock, scores: dict[int, float]
    ) -> AsyncGenerator[Draft, None]:
        """Put the scores of `gap.lengths` into `scores`, then of those next to the best ones; yield Drafts."""
        lengths = gap.lengths
        for number in (-1, -2):
            rows = [n for n in lengths for _ in range(plan.search.draws)]
            answers = dict[int, Answer]()
            async with aclosing(
                self._answers(gap, rows, (plan.search.steps, number), clock, answers)
            ) as drafts:
                async for draft in drafts:
                    yield draft
            clock.searched += plan.search.steps
            for n in lengths:
                if nats := [score(self._model, gap, n, a) for row, a in answers.items() if rows[row] == n]:
                    scores[n] = fmean(nats) + neg_log_prior(n, plan.search.prior)
            ranked = sorted((ScoredLength(n, s) for n, s in scores.items()), key=lambda one: one.score)
            lengths = neighbours(ranked, plan.search)
            if clock.is_over() or not lengths:
                return

    async def _denoise(
        self, gap: Gap, plan: Plan, clock: Clock, lists: tuple[tuple[int, ...], list[CheckedRow]]
    ) -> AsyncGenerator[Draft, None]:
        """Denoise lengths, a batch at a time, until enough texts can be shown; yield Drafts.

        lists: the lengths, the best first, and the list that the candidates are added to.
        """
        (lengths, read), wanted = lists, gap.request.alternatives
        turns = ((turn, first) for turn in range(wanted) for first in range(0, len(lengths), plan.batch))
        for turn, first in turns:
            rows = [n for n in lengths[first : first + plan.batch] for _ in range(plan.draws)]
            answers = dict[int, Answer]()
            number = turn * len(lengths) + first + 1
            async with aclosing(self._answers(gap, rows, (plan.steps, number), clock, answers)) as drafts:
                async for draft in drafts:
                    yield draft
            came = [(rows[row], answer) for row, answer in sorted(answers.items())]
            read += await asyncio.to_thread(candidates, self._model, gap, came)
            if clock.is_over() or len({c.fill.text for c in read if not c.fill.refusal}) >= wanted:
                return

    async def _answers(
        self, gap: Gap, lengths: Sequence[int], how: tuple[int, int], clock: Clock, found: dict[int, Answer]
    ) -> AsyncGenerator[Draft, None]:
        """Denoise a canvas for each of `lengths`; put the answers into `found`, by row, up to the deadline.

        how: the steps at most, and the number of the batch. A Draft is yielded after each answer, and each second.
        """
        tasks = {}
        for row, length in enumerate(lengths):
            asked = ask(self._model, gap, (length, how[0]), 1000 * how[1] + row)
            tasks[asyncio.create_task(self._denoised(asked))] = row
        left = {*tasks}
        try:
            while left and not clock.is_over():
                seconds = min(BEAT, clock.left() or BEAT)
                done, left = await asyncio.wait(left, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                found |= {tasks[task]: task.result() for task in done}
                yield Draft(0, (), clock.milliseconds())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _denoised(self, asked: Asked) -> Answer:
        """The canvas `asked`, once it is its turn."""
        async with self._turns:
            answer = await self._server.denoised(asked, self._served.model)
        self.passes += 1
        return answer


def lay(model: Checkpoint, request: Infill) -> Gap:
    """`request` as tokens, with the lengths to try: that of the text that it names, or those of the plan.

    Raises:
        LayoutError: it takes more than one canvas, or is no single gap.
    """
    if request.between:
        raise LayoutError("a vLLM server fills one gap at a time; fill them one by one")
    plan, (prompt, seam) = plan_for(request), tokenise(model, request)
    like = request.start if request.like is None else request.like
    known = model.encode(like or "")
    fits = [n for n in model.canvas_lengths if seam.room(n, ANCHORS) >= max(len(known), 1)]
    if not fits:
        room = max(seam.room(model.canvas_lengths[-1], ANCHORS), 0)
        raise LayoutError(
            f"the gap takes {len(known)} tokens, and the one canvas of a vLLM server has room for {room}; fill a part "
            "of it, or empty the setting engineUrl"
        )
    slots = next((n for n in fits if n >= plan.slots), fits[-1])
    if like is not None:
        start = () if request.start is None else model.encode(request.start)
        return Gap(request, prompt, seam, slots, (max(len(known), 1),), start)
    grid = plan.search.lengths + (() if request.kind in PARTS else _LONG)
    return Gap(request, prompt, seam, slots, lengths_that_fit(grid, seam.room(slots, ANCHORS)))


def ask(model: Checkpoint, gap: Gap, how: tuple[int, int], number: int) -> Asked:
    """The request for a canvas; how: the length of its gap, and its steps at most.

    Its free slots are seeded with the gap's start, or with noise, drawn from the request's seed and the `number`.
    """
    canvas, seed = gap.canvas(how[0]), gap.request.seed + number
    start = noised(start_from(canvas, [gap.start]), gap.request.noised, seed)
    filled = torch.where(canvas.anchored, canvas.tokens, start)[0].tolist()
    dice = random.Random(seed)
    row = tuple(dice.randrange(model.vocabulary) if token == FREE else token for token in filled)
    pinned = tuple(canvas.anchored[0].nonzero().flatten().tolist())
    return Asked(gap.prompt, row, pinned, how[1], tuple(sorted({*gap.watched(how[0]).values()})))


def score(model: Checkpoint, gap: Gap, length: int, answer: Answer) -> float:
    """Return the misfit of a gap of `length` slots in nats; lower is better. `search_length` tells why it is this sum.

    The mean of -log p of the best tokens in the free slots stands for their entropy, which vLLM does not tell.
    """
    head = len(gap.seam.head)
    nats = [-answer.watched[slot].get(f"token_id:{t}", -9999.0) for slot, t in gap.watched(length).items()]
    behind = float(leave_one_out(torch.tensor(nats), model.vocabulary).mean()) if nats else 0.0
    return behind - fmean(answer.best[head : head + length])


def candidates(model: Checkpoint, gap: Gap, read: Sequence[tuple[int, Answer]]) -> list[CheckedRow]:
    """The answers as candidates, those that can be shown first and the likeliest first among equals.

    read: each with its gap's length. Only free slots are read: around them stands what is pinned, whatever vLLM says.
    """
    found, request, head = list[CheckedRow](), gap.request, len(gap.seam.head)
    for row, (length, answer) in enumerate(read):
        raw, cut = decode(model, answer.tokens[head : head + length])
        text = fit.fit(request, raw)
        refusal = cut or _other_word(request, text) or why_refused(request, text)
        fill = Fill(text, score(model, gap, length, answer), parses=not refusal, refusal=refusal)
        found.append(CheckedRow(row, fill, whole=not cut))
    return sorted(found, key=lambda one: (bool(one.fill.refusal), one.fill.score))


def _other_word(request: Infill, text: str) -> str:
    """Return why `text` does not complete the half-typed word before the gap, as a sentence; empty if it does."""
    behind = (text[len(end) :] for end in request.endings if text.startswith(end))
    if not request.endings or any(not is_part(rest.encode("utf-8")) for rest in behind):
        return ""
    return "it makes another word of the half word before it"
