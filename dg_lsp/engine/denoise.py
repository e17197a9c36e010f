"""The one loop: a canvas settles step by step. Knows the network's parts; knows no text and no lengths.

The loop is a generator of Steps. Closing it cancels: nothing is computed ahead of what was asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.canvas import Canvas
from dg_lsp.engine.decoder import capped_logits, hidden_states
from dg_lsp.engine.replay import passes
from dg_lsp.engine.sampler import AnchoredSampler, Noise, entropies

TILE = 1 << 24  # logits that are in memory at once: 64 MB in fp32


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a canvas is denoised; the defaults are those of the released checkpoint's generation_config.json.

    Temperatures fall linearly from `t_max` to `t_min`. A row stops when its mean entropy is below `confidence`
    nats and its best tokens were the same for `stability` steps more than one; at most `steps` are made.
    """

    steps: int = 48
    t_min: float = 0.4
    t_max: float = 0.8
    entropy_bound: float = 0.1
    confidence: float = 0.005
    stability: int = 1

    def temperature(self, step: int) -> Tensor:
        """The temperature of step `step` (counted from 1), a 0-d tensor as transformers computes it."""
        left = torch.tensor(self.steps - step + 1, dtype=torch.int32)
        return self.t_min + ((self.t_max - self.t_min) * (left / self.steps))


@dataclass(frozen=True, slots=True)
class Step:
    """One denoising step of all rows.

    number: from 1. best: int64 [rows, length], the most likely token at free slots, the anchor elsewhere.
    canvas: int64 [rows, length], what the next step starts from. accepted: bool [rows, length], true at anchors.
    entropy: nats [rows, length], 0 at anchors. surprise: nats [W], -log p of each watched anchor under the raw
    logits. finished: bool [rows].
    """

    number: int
    best: Tensor
    canvas: Tensor
    accepted: Tensor
    entropy: Tensor
    surprise: Tensor
    finished: Tensor


@torch.inference_mode()
def denoise(
    network: Any,
    cache: PrefixCache,
    sampler: AnchoredSampler,
    schedule: Schedule,
    watch: Tensor | None = None,
) -> Iterator[Step]:
    """Denoise `sampler.canvas` behind the prefix in `cache`; yield a Step after each denoising step.

    `cache` holds the one prefix of all rows, and must not change meanwhile. `watch` are slot numbers of anchors whose
    surprise is wanted. With no anchors and the same noise this equals `model.generate` of transformers token for
    token (law 2).

    1. Noise in every free slot.  2. For each step:
       a. the decoder reads canvas, prefix and self-conditioning of the rows that have not finished;
       b. of their free slots: logits and temperature; a token drawn, the best token, the entropy, the next
          self-conditioning (an anchor's is that of its own token);
       c. accept what the entropy bound allows, re-noise the other free slots;
       d. rows that had finished keep what they had; a row finishes when stable and confident.
    """
    canvas, free = sampler.canvas, sampler.free
    state, read = _State(network, canvas, schedule.stability), passes(network, cache)
    watched = free.new_empty(0) if watch is None else watch
    surprise = torch.zeros(len(watched), device=free.device)
    left, free_in, watched_in = list(range(canvas.rows)), _by_row(free, canvas), _by_row(watched, canvas)
    # 1. Anchors are in place from the start.
    current = sampler.initialize_canvas(canvas.rows, canvas.tokens.device)
    for number in range(1, schedule.steps + 1):
        # a. Finished rows have left the batch.
        rows = torch.tensor(left, device=free.device)
        soft = None if state.soft is None else state.soft[rows]
        hidden = read(current[rows], soft).flatten(0, 1)
        # b. The vocabulary is computed for free slots only, and for anchors whose surprise is wanted.
        numbers, places = _among(free_in, left, canvas)
        state.read(network, hidden[places], numbers, schedule.temperature(number), sampler.noise)
        if len(watched):
            numbers, places = _among(watched_in, left, canvas)
            raw, tokens = capped_logits(network, hidden[places]), canvas.tokens.view(-1)[watched[numbers]]
            surprise = surprise.index_copy(0, numbers, _surprise(raw, tokens))
        # c. The sampler cannot touch an anchor.
        proposed = sampler.renoise_canvas(sampler.accept(current, state.drawn, state.entropy), number)
        # d. Only free slots decide.
        current = torch.where(state.finished[:, None], current, proposed)
        state.settle(schedule.confidence)
        yield replace(
            state.step(number),
            canvas=current,
            accepted=sampler.accepted_token_mask | canvas.anchored,
            surprise=surprise,
        )
        # The only look at what the device has computed, and who takes Drafts has waited for it already.
        left = [row for row, finished in enumerate(state.finished.tolist()) if not finished]
        if not left:
            return


def step_logits(network: Any, cache: Cache, canvas: Tensor, slots: Tensor, soft: Tensor | None) -> Tensor:
    """Raw, soft-capped fp32 logits of the decoder at `slots`: [rows, length] -> [S, V].

    `soft` is the self-conditioning signal [rows, length, hidden], None at the first step. The vocabulary is
    computed for the wanted slots only: up to rounding equal to the whole forward there.
    """
    return capped_logits(network, hidden_states(network, cache, canvas, soft).flatten(0, 1)[slots])


class _State:
    """What one step leaves to the next: best tokens, self-conditioning, which rows have finished."""

    def __init__(self, network: Any, canvas: Canvas, stability: int) -> None:
        self.canvas, self.free = canvas, canvas.free_slots
        self.row_of = self.free // canvas.length
        self.per_row = (~canvas.anchored).sum(-1)
        self.finished = torch.zeros(canvas.rows, dtype=torch.bool, device=canvas.tokens.device)
        self.drawn = self.best = torch.full_like(self.free, -1)
        self.history = [self.best] * stability
        self.entropy = torch.zeros(len(self.free), device=canvas.tokens.device)
        self.anchors = network.model.decoder.embed_tokens(canvas.tokens)
        self.soft: Tensor | None = None

    def read(self, network: Any, hidden: Tensor, numbers: Tensor, temperature: Tensor, noise: Noise) -> None:
        """Take over what `hidden` [N, hidden] says of the free slots number `numbers` [N], a tile at a time.

        The other free slots, those of finished rows, keep what they had.
        """
        table = network.model.decoder.embed_tokens
        # An anchor is certain: the soft embedding of a one-hot distribution is the token's own embedding.
        soft = (self.anchors if self.soft is None else self.soft).flatten(0, 1).clone()
        drawn, best, entropy = self.drawn.clone(), self.best.clone(), self.entropy.clone()
        tile = max(TILE // table.weight.shape[0], 1)
        for some, states in zip(numbers.split(tile), hidden.split(tile), strict=True):
            logits = capped_logits(network, states) / temperature.to(states.device)
            drawn[some] = noise.pick(logits.softmax(-1, dtype=torch.float32), some)
            best[some], entropy[some] = logits.argmax(-1), entropies(logits)
            # The cast to the embedding's type comes first, as in `generate`: in bf16 it decides the outcome.
            chance = logits.to(table.weight.dtype).softmax(-1, dtype=torch.float32).to(table.weight.dtype)
            soft[self.free[some]] = (chance @ table.weight) * table.embed_scale.to(table.weight.dtype)
        self.drawn, self.best, self.entropy = drawn, best, entropy
        self.soft = soft.view_as(self.anchors)

    def settle(self, confidence: float) -> None:
        """See which rows are stable and confident; those finish."""
        rows = torch.zeros(self.canvas.rows, device=self.best.device)
        moved = torch.zeros_like(rows)
        for old in self.history:
            moved = moved.index_add(0, self.row_of, (old != self.best).float())
        self.history = [*self.history[1:], self.best] if self.history else []
        # A row without a free slot has nothing left to settle.
        mean = rows.index_add(0, self.row_of, self.entropy) / self.per_row.clamp(min=1)
        self.finished = self.finished | ((moved == 0) & (mean < confidence))

    def step(self, number: int) -> Step:
        """The record of this state, without what only the loop knows."""
        tokens, entropy = (
            self.canvas.tokens.clone(),
            torch.zeros(self.canvas.tokens.shape, device=self.best.device),
        )
        tokens.view(-1)[self.free] = self.best
        entropy.view(-1)[self.free] = self.entropy
        nothing = torch.empty(0)
        return Step(number, tokens, tokens, nothing, entropy, nothing, self.finished)


def _by_row(slots: Tensor, canvas: Canvas) -> list[list[tuple[int, int]]]:
    """For each row which of `slots` lie in it: their numbers among `slots`, and their columns."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(canvas.rows)]
    for number, slot in enumerate(slots.tolist()):
        found[slot // canvas.length].append((number, slot % canvas.length))
    return found


def _among(by_row: list[list[tuple[int, int]]], left: list[int], canvas: Canvas) -> tuple[Tensor, Tensor]:
    """Which slots lie in the rows `left`, as numbers, and where they lie when only these rows are there."""
    pairs = [
        (number, place * canvas.length + column)
        for place, row in enumerate(left)
        for number, column in by_row[row]
    ]
    numbers, places = (
        torch.tensor(pairs, dtype=torch.int64, device=canvas.tokens.device).view(-1, 2).unbind(1)
    )
    return numbers, places


def _surprise(raw: Tensor, tokens: Tensor) -> Tensor:
    return raw.logsumexp(-1) - raw.gather(-1, tokens[:, None]).squeeze(1)
