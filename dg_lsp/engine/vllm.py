"""A vLLM server that serves DiffusionGemma, as a Denoiser: it denoises the canvases that are laid out here.

Runs in the engine's own process, which holds the tokenizer and the config of the served checkpoint, and no weights.
vLLM sends no drafts, and takes no seed for its noise. Anchors are in the result, whatever it answers there.
"""

import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from dg_lsp.budget import BOT, current
from dg_lsp.checkpoints import CheckpointError
from dg_lsp.engine.completions import Answer, Asked, Served, VllmServer
from dg_lsp.engine.local import ForeignEngine
from dg_lsp.engine.wire import BEAT
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.cache import CHUNK, PrefixCache, PrefixCaches
from dg_lsp.model.checkpoint import load_tokenizer
from dg_lsp.model.fill import fill
from dg_lsp.model.sampler import AnchoredSampler
from dg_lsp.model.step import Schedule, Step
from dg_lsp.reasons import OutOfTime
from dg_lsp.settings import Settings

# Anchors of a canvas whose likelihood is asked for. vLLM answers with that of each of their tokens in every slot, so an
# answer grows with them.
WATCHED = 4
_LOOK = 0.1  # seconds after which a request that waits for the server can be cancelled
_DOCUMENTS = 32  # whose tokens are kept; the server has the rest
_UNKNOWN = 100.0  # the entropy of a slot that is not denoised yet, nats


@dataclass(frozen=True, slots=True)
class VllmDenoiser:
    """A Denoiser (model/networks/base.py) that is a vLLM server, for one request.

    eos: the token in slots that are not denoised yet. end: time.monotonic() of the request's deadline.
    """

    server: VllmServer
    text_config: Any
    eos: int
    end: float = math.inf

    @property
    def device(self) -> torch.device:
        """The CPU, where canvases are laid out."""
        return torch.device("cpu")

    @property
    def chunk(self) -> int:
        """A number of tokens, all of which the server encodes at once."""
        return CHUNK

    def encode(self, cache: Cache, tokens: Sequence[int]) -> Iterator[None]:  # noqa: ARG002
        """Do nothing: the server encodes the prompt of each request, or finds it in its own cache."""
        return iter(())

    def denoise(
        self, cache: PrefixCache, sampler: AnchoredSampler, schedule: Schedule, watch: Tensor | None = None
    ) -> Iterator[Step]:
        """Ask for each row of `sampler.canvas`; yield a Step when rows have come, and each second."""
        budget, number = current(BOT), 0
        rows = partial(_rows, cache.tokens, sampler, schedule, watch)
        with self.server.denoising(rows) as futures:
            pending, heard = {*futures}, time.monotonic()
            while pending:
                done, pending = wait(
                    pending, min(max(self.end - time.monotonic(), 0.0), _LOOK), FIRST_COMPLETED
                )
                late = time.monotonic() >= self.end
                if budget.cancelled or (late and len(pending) == len(futures)):
                    raise OutOfTime("the deadline passed before a candidate was ready")
                if done or late or time.monotonic() - heard > BEAT:
                    number, heard = number + 1, time.monotonic()
                    answers = [one.result() if one.done() else None for one in futures]
                    yield _step(number, sampler, answers, watch, self.eos)
                if late:
                    return


def _rows(
    prompt: tuple[int, ...],
    sampler: AnchoredSampler,
    schedule: Schedule,
    watch: Tensor | None,
    served: Served,
) -> list[Asked]:
    """Return the request for each row of `sampler.canvas` after `prompt`."""
    canvas, watched = sampler.canvas, _watched(watch, sampler.canvas.length)
    if len(prompt) + canvas.length > served.longest:
        raise EngineError(
            f"the text before the gap takes {len(prompt)} tokens, and the server takes {served.longest} with a canvas "
            f"of {canvas.length}; set prefixBytes lower"
        )
    rows = []
    for row, start in enumerate(sampler.first_canvas().tolist()):
        pinned = canvas.anchored[row].nonzero().flatten().tolist()
        tokens = {int(canvas.tokens[row, slot]) for slot in watched.get(row, ())}
        rows.append(Asked(prompt, tuple(start), tuple(pinned), schedule.steps, tuple(sorted(tokens))))
    return rows


def _watched(watch: Tensor | None, length: int) -> dict[int, list[int]]:
    """Return the slots of each row whose likelihood is asked for: the first WATCHED of those that `watch` names."""
    found = dict[int, list[int]]()
    for slot in [] if watch is None else watch.tolist():
        found.setdefault(slot // length, []).append(slot % length)
    return {row: slots[:WATCHED] for row, slots in found.items()}


def _step(
    number: int, sampler: AnchoredSampler, answers: Sequence[Answer | None], watch: Tensor | None, eos: int
) -> Step:
    """Return the Step for the `answers` so far, None for a row that has not come: it holds `eos` in its free slots.

    No row counts as finished before all have come: the order in which they come says nothing of them.
    Anchors are in the result, whatever vLLM wrote there. The negative log probability of the best token replaces a
    slot's entropy, which vLLM does not send; the likelihoods of the anchors that were asked for replace those of all
    that are watched in their row.
    """
    canvas = sampler.canvas
    best = torch.full_like(canvas.tokens, eos)
    entropy = torch.full(canvas.tokens.shape, _UNKNOWN)
    for row, answer in enumerate(answers):
        if answer is not None:
            best[row], entropy[row] = torch.tensor(answer.tokens), -torch.tensor(answer.best)
    best = torch.where(canvas.anchored, canvas.tokens, best)
    came = torch.tensor([answer is not None for answer in answers])
    slots = [] if watch is None else watch.tolist()
    asked = {
        row: cycle([_likelihood(answers[row], slot, int(canvas.tokens[row, slot])) for slot in slots_of_row])
        for row, slots_of_row in _watched(watch, canvas.length).items()
    }
    likelihoods = torch.tensor([next(asked[slot // canvas.length]) for slot in slots])
    return Step(
        number=number,
        best=best,
        canvas=best,
        accepted=came[:, None] | canvas.anchored,
        entropy=entropy.masked_fill(canvas.anchored, 0.0),
        neg_log_likelihood=likelihoods,
        finished=came & came.all(),
    )


def _likelihood(answer: Answer | None, slot: int, token: int) -> float:
    """Return -log p of the `token` that is pinned in `slot`."""
    return _UNKNOWN if answer is None else -answer.watched[slot].get(f"token_id:{token}", -9999.0)


class VllmEngine(ForeignEngine):
    """The engine whose network is the server at `settings.engine_url`, with the tokenizer of `settings.checkpoint`."""

    server: VllmServer

    def __init__(self, settings: Settings) -> None:
        try:
            model = load_tokenizer(settings.checkpoint)
        except CheckpointError as error:
            raise EngineError(
                f"{error}; a vLLM server needs its config.json and tokenizer.json only"
            ) from error
        server = VllmServer(settings, model.encode, model.canvas_lengths[-1])
        caches = PrefixCaches(model.network.text_config, 1 << 20, most=_DOCUMENTS)

        def run(request: Infill) -> Iterator[Draft | Fill]:
            end = time.monotonic() + request.deadline if request.deadline else math.inf
            network = VllmDenoiser(server, model.network.text_config, model.eos, end)
            with caches.lend(request.session) as cache:
                yield from fill(replace(model, network=network), cache, request)

        super().__init__(server, run)
