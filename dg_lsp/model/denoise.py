"""The denoising loop: from a canvas and an encoded prefix to a stream of Steps. Knows no text and no lengths.

The loop is a generator, and computes a step only when it is asked for one, so closing it cancels.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.canvas import Canvas
from dg_lsp.model.networks.base import CanvasReader
from dg_lsp.model.networks.replay import Pass, passes
from dg_lsp.model.sampler import AnchoredSampler, Noise, entropies
from dg_lsp.model.step import Schedule, Step
from dg_lsp.model.tiles import batch_rows, part_rows, tile_rows, tiled_logits


@torch.inference_mode()
def denoise(
    network: CanvasReader,
    cache: PrefixCache,
    sampler: AnchoredSampler,
    schedule: Schedule,
    watch: Tensor | None = None,
) -> Iterator[Step]:
    """Denoise `sampler.canvas` after the prefix in `cache`; yield a Step after each denoising step.

    cache: the prefix that all rows share; it must not change while the loop runs. watch: slot numbers [W] of the
    anchors whose likelihood is wanted. Without anchors and with the same noise the tokens equal those of
    `DiffusionGemmaForBlockDiffusion.generate` (transformers, generation_diffusion_gemma.py; law 2).

    1. Put noise into every free slot, or the token that the sampler starts from.  2. In each step:
       a. run the decoder on the unfinished rows: canvas, prefix and self-conditioning signal;
       b. for their free slots compute the logits, divide them by the temperature, draw a token, and take the best
          token, the entropy and the next self-conditioning signal (an anchor's is its own token's embedding);
       c. accept the drawn tokens that the entropy bound allows, and put new noise into the other free slots;
       d. keep finished rows as they are, and finish the rows that are stable and confident.
    """
    canvas, free = sampler.canvas, sampler.free
    state, read = _State(network, canvas, schedule.stability), passes(network, cache)
    most = batch_rows(network, cache, canvas.length)
    watched = free.new_empty(0) if watch is None else watch
    likelihoods = torch.zeros(len(watched), device=free.device)
    # The host keeps its own list of the slots, so that a step need not ask the device which slots are left.
    left, free_slots, watched_slots = list(range(canvas.rows)), free.tolist(), watched.tolist()
    # 1. The anchors are in place from the start.
    current = sampler.first_canvas()
    for number in range(1, schedule.steps + 1):
        # a. Finished rows have left the batch.
        rows = torch.tensor(left).to(free.device, non_blocking=True)
        soft = None if state.soft is None else state.soft[rows]
        hidden = _read_in_parts(read, current[rows], soft, most).flatten(0, 1)
        # b. Logits are computed for free slots only, and for the watched anchors.
        indices, places = _slots_in_rows(free_slots, left, canvas)
        state.read(network, hidden[places], indices, schedule.temperature(number), sampler.noise)
        if watched_slots:
            indices, places = _slots_in_rows(watched_slots, left, canvas)
            tokens = canvas.tokens.view(-1)[watched[indices]]
            likelihoods = likelihoods.index_copy(0, indices, _surprise(network, hidden[places], tokens))
        # c. The sampler cannot touch an anchor.
        proposed = sampler.renoise_canvas(sampler.accept(current, state.drawn, state.entropy), number)
        # d. Only free slots decide whether a row is finished.
        current = torch.where(state.finished[:, None], current, proposed)
        state.finish_rows(schedule.confidence)
        yield replace(
            state.step(number),
            canvas=current,
            accepted=sampler.accepted_token_mask | canvas.anchored,
            neg_log_likelihood=likelihoods,
        )
        # Only here the host waits for the device; the maker of a Draft of the Step has waited already.
        left = [row for row, finished in enumerate(state.finished.tolist()) if not finished]
        if not left:
            return


class _State:
    """The state between two steps: best tokens, entropies, self-conditioning, and finished rows."""

    def __init__(self, network: CanvasReader, canvas: Canvas, stability: int) -> None:
        self.canvas, self.free = canvas, canvas.free_slots
        self.row_of = self.free // canvas.length
        self.per_row = (~canvas.anchored).sum(-1)
        self.finished = torch.zeros(canvas.rows, dtype=torch.bool, device=canvas.tokens.device)
        self.drawn = self.best = torch.full_like(self.free, -1)
        self.history = [self.best] * stability
        self.entropy = torch.zeros(len(self.free), device=canvas.tokens.device)
        self.anchors = network.embed(canvas.tokens)
        self.soft: Tensor | None = None

    def read(
        self, network: CanvasReader, hidden: Tensor, indices: Tensor, temperature: Tensor, noise: Noise
    ) -> None:
        """Update the free slots with the given `indices` [N] from their hidden states [N, hidden].

        A tile of them is read at a time, and the work between its two products is done part by part. Other free slots,
        those of finished rows, keep their values.
        """
        # An anchor is certain: the soft embedding of a one-hot distribution is the token's own embedding.
        soft = (self.anchors if self.soft is None else self.soft).flatten(0, 1).clone()
        drawn, best, entropy = self.drawn.clone(), self.best.clone(), self.entropy.clone()
        kind, tile, part = self.anchors.dtype, tile_rows(network), part_rows(network, hidden.device)
        for numbers, states in zip(indices.split(tile), hidden.split(tile), strict=True):
            chances = list[Tensor]()
            for some, raw in zip(numbers.split(part), network.head(states).split(part), strict=True):
                logits = network.cap(raw) / temperature.to(raw.device, non_blocking=True)
                drawn[some] = noise.pick(logits.softmax(-1, dtype=torch.float32), some)
                best[some], entropy[some] = logits.argmax(-1), entropies(logits)
                # Cast to the embedding's type before the softmax, as `generate` does: in bf16 the order changes the
                # result.
                chances.append(logits.to(kind).softmax(-1, dtype=torch.float32).to(kind))
            soft[self.free[numbers]] = network.mean_embedding(torch.cat(chances))
        self.drawn, self.best, self.entropy = drawn, best, entropy
        self.soft = soft.view_as(self.anchors)

    def finish_rows(self, confidence: float) -> None:
        """Mark the rows as finished that are stable and whose mean entropy is below `confidence` nats."""
        rows = torch.zeros(self.canvas.rows, device=self.best.device)
        moved = torch.zeros_like(rows)
        for old in self.history:
            moved = moved.index_add(0, self.row_of, (old != self.best).float())
        self.history = [*self.history[1:], self.best] if self.history else []
        # A row without a free slot is finished: its mean entropy is 0.
        mean = rows.index_add(0, self.row_of, self.entropy) / self.per_row.clamp(min=1)
        self.finished = self.finished | ((moved == 0) & (mean < confidence))

    def step(self, number: int) -> Step:
        """This state as a Step; the loop adds the canvas, the accepted slots and the likelihoods."""
        tokens, entropy = (
            self.canvas.tokens.clone(),
            torch.zeros(self.canvas.tokens.shape, device=self.best.device),
        )
        tokens.view(-1)[self.free] = self.best
        entropy.view(-1)[self.free] = self.entropy
        nothing = torch.empty(0)
        return Step(number, tokens, tokens, nothing, entropy, nothing, self.finished)


def _read_in_parts(read: Pass, canvas: Tensor, soft: Tensor | None, most: int) -> Tensor:
    """The hidden states of `canvas`, at most `most` rows of it read at once."""
    if len(canvas) <= most:
        return read(canvas, soft)
    softs = [None] * len(canvas) if soft is None else soft.split(most)
    # The result of a replay is overwritten by the next one.
    return torch.cat([read(*part).clone() for part in zip(canvas.split(most), softs, strict=False)])


def _slots_in_rows(slots: list[int], rows: list[int], canvas: Canvas) -> tuple[Tensor, Tensor]:
    """Return which of `slots` lie in one of `rows`, and their slot numbers in a batch that holds only these rows.

    Two int64 tensors [N]: indices into `slots`, and places in the batch. Example: with canvases of 4 slots, of the
    slots 1, 6, 9 those with indices 0 and 2 lie in the rows 0 and 2, at the places 1 and 5 of a batch of these rows.
    """
    index_of = {row: index for index, row in enumerate(rows)}
    pairs = [
        (number, index_of[slot // canvas.length] * canvas.length + slot % canvas.length)
        for number, slot in enumerate(slots)
        if slot // canvas.length in index_of
    ]
    both = torch.tensor(pairs, dtype=torch.int64).view(-1, 2)
    indices, places = both.to(canvas.tokens.device, non_blocking=True).unbind(1)
    return indices, places


def _surprise(network: CanvasReader, hidden: Tensor, tokens: Tensor) -> Tensor:
    """-log p in nats of each of `tokens` [N] under the raw logits of its hidden state [N, hidden], a tile at a time."""
    tiles = zip(tiled_logits(network, hidden), tokens.split(tile_rows(network)), strict=True)
    found = [logits.logsumexp(-1) - logits.gather(-1, own[:, None]).squeeze(1) for logits, own in tiles]
    return torch.cat(found)
