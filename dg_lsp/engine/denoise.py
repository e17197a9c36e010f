"""The one loop: a canvas settles step by step. Knows the network's parts; knows no text and no lengths.

The loop is a generator of Steps. Closing it cancels: nothing is computed ahead of what was asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from dg_lsp.engine.canvas import Canvas
from dg_lsp.engine.decoder import behind, capped_logits, decode
from dg_lsp.engine.sampler import AnchoredSampler, entropies


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
    network: Any, cache: Cache, sampler: AnchoredSampler, schedule: Schedule, watch: Tensor | None = None
) -> Iterator[Step]:
    """Denoise `sampler.canvas` behind the prefix in `cache`; yield a Step after each denoising step.

    `cache` shows as many rows as the canvas has. `watch` are slot numbers of anchors whose surprise is wanted.
    With no anchors and the same noise this equals `model.generate` of transformers token for token (law 2).

    1. Noise in every free slot.  2. For each step:
       a. the decoder reads canvas, prefix and self-conditioning; logits of the free slots only;
       b. temperature; a token is drawn from, and the best token read off, each free slot's distribution;
       c. accept what the entropy bound allows, re-noise the other free slots;
       d. rows that had finished keep what they had; a row finishes when stable and confident;
       e. the logits become the self-conditioning of the next step, an anchor's that of its own token.
    """
    canvas, free = sampler.canvas, sampler.free
    watched = free.new_empty(0) if watch is None else watch
    state = _State(network, canvas, schedule.stability)
    # 1. Anchors are in place from the start.
    current = sampler.initialize_canvas(canvas.rows, canvas.tokens.device)
    for number in range(1, schedule.steps + 1):
        # a. Anchors that are only watched get logits too, but no sampling.
        raw = step_logits(network, cache, current, torch.cat([free, watched]), state.soft)
        surprise = _surprise(raw[len(free) :], canvas.tokens.view(-1)[watched])
        # b. From here on there are free rows only.
        logits = raw[: len(free)] / schedule.temperature(number).to(raw.device)
        drawn = sampler.noise.pick(logits.softmax(-1, dtype=torch.float32))
        entropy = entropies(logits)
        # c. The sampler cannot touch an anchor.
        proposed = sampler.renoise_canvas(sampler.accept(current, drawn, entropy), number)
        # d. Only free slots decide.
        current = torch.where(state.finished[:, None], current, proposed)
        state.settle(logits.argmax(-1), entropy, schedule.confidence)
        # e. It is computed even after the last step: only then are all steps alike.
        state.condition(network, logits)
        yield replace(
            state.step(number),
            canvas=current,
            accepted=sampler.accepted_token_mask | canvas.anchored,
            surprise=surprise,
        )
        if bool(state.finished.all()):
            return


def step_logits(network: Any, cache: Cache, canvas: Tensor, slots: Tensor, soft: Tensor | None) -> Tensor:
    """Raw, soft-capped fp32 logits of the decoder at `slots`: [rows, length] -> [S, V].

    `soft` is the self-conditioning signal [rows, length, hidden], None at the first step. The vocabulary is
    computed for the wanted slots only: up to rounding equal to the whole forward there.
    """
    embedded = network.model.decoder.embed_tokens(canvas)
    signal = torch.zeros_like(embedded) if soft is None else soft
    view = behind(cache.get_seq_length(), embedded.shape[1], embedded.device)
    hidden = decode(network, cache, embedded, signal, view)
    return capped_logits(network, hidden.flatten(0, 1)[slots])


class _State:
    """What one step leaves to the next: best tokens, self-conditioning, which rows have finished."""

    def __init__(self, network: Any, canvas: Canvas, stability: int) -> None:
        self.canvas, self.free = canvas, canvas.free_slots()
        self.row_of = self.free // canvas.length
        self.per_row = (~canvas.anchored).sum(-1)
        self.finished = torch.zeros(canvas.rows, dtype=torch.bool, device=canvas.tokens.device)
        self.held = self.finished[self.row_of]  # free slots whose row had finished before this step
        self.best = torch.full_like(self.free, -1)
        self.history = [self.best] * stability
        self.entropy = torch.zeros(len(self.free), device=canvas.tokens.device)
        self.soft: Tensor | None = None
        self.soft_free = torch.empty(0)
        self.anchor_embeddings = network.model.decoder.embed_tokens(canvas.tokens)

    def settle(self, best: Tensor, entropy: Tensor, confidence: float) -> None:
        """Take over the new best tokens in unfinished rows, then see which rows are stable and confident."""
        self.held = self.finished[self.row_of]
        self.best = torch.where(self.held, self.best, best)
        self.entropy = torch.where(self.held, self.entropy, entropy)
        rows = torch.zeros(self.canvas.rows, device=self.best.device)
        moved = torch.zeros_like(rows)
        for old in self.history:
            moved = moved.index_add(0, self.row_of, (old != self.best).float())
        self.history = [*self.history[1:], self.best] if self.history else []
        # A row without a free slot has nothing left to settle.
        mean = rows.index_add(0, self.row_of, self.entropy) / self.per_row.clamp(min=1)
        self.finished = self.finished | ((moved == 0) & (mean < confidence))

    def condition(self, network: Any, logits: Tensor) -> None:
        """Turn the free rows' processed logits [F, V] into the next self-conditioning signal."""
        table = network.model.decoder.embed_tokens
        # The cast to the embedding's type comes first, as in `generate`: in bf16 it decides the outcome.
        chance = logits.to(table.weight.dtype).softmax(-1, dtype=torch.float32).to(table.weight.dtype)
        soft = (chance @ table.weight) * table.embed_scale.to(table.weight.dtype)
        if self.soft is not None:
            # Rows that had finished before this step keep their signal, as all else of theirs.
            soft = torch.where(self.held[:, None], self.soft_free, soft)
        self.soft_free = soft
        # An anchor is certain: the soft embedding of a one-hot distribution is the token's own embedding.
        self.soft = self.anchor_embeddings.clone()
        self.soft.view(-1, soft.shape[-1])[self.free] = soft

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


def _surprise(raw: Tensor, tokens: Tensor) -> Tensor:
    return raw.logsumexp(-1) - raw.gather(-1, tokens[:, None]).squeeze(1)
