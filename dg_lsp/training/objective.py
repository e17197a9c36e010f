"""The published training loss of DiffusionGemma, on canvases that may hold anchors: L = L_diff + L_ar.

L_diff is the denoiser's cross-entropy on the free slots of the corrupted canvas, L_ar the encoder's next-token
cross-entropy on the prefix. Knows the network; knows no data and no optimiser.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers.cache_utils import DynamicCache

from dg_lsp.model.networks.decoder import View, capped_logits, decode
from dg_lsp.training.layouts import Batch
from dg_lsp.training.shape import PAD

_PART = 256  # tokens whose logits are computed at once


@dataclass(frozen=True, slots=True)
class _Layer:
    """The keys and values [rows, heads, length, head size] that a decoder layer reads."""

    keys: Tensor
    values: Tensor


class _Prefixes:
    """The encoded prefixes of a batch, one for each canvas."""

    is_compileable = False

    def __init__(self, layers: Sequence[_Layer]) -> None:
        self.layers = layers

    @classmethod
    def of(cls, cache: DynamicCache, canvases: int) -> "_Prefixes":
        """Repeat the prefix of each document in `cache` for each of its `canvases`."""
        return cls(
            [_Layer(*(x.repeat_interleave(canvases, 0) for x in (y.keys, y.values))) for y in cache.layers]
        )

    def first(self, rows: int) -> "_Prefixes":
        """The prefixes of the first `rows` canvases, detached from the gradient."""
        return _Prefixes([_Layer(x.keys[:rows].detach(), x.values[:rows].detach()) for x in self.layers])


def draw_times(batch: Batch, generator: torch.Generator) -> Tensor:
    """A time in (0, 1) for each canvas, float [B, K]: uniform, or the larger of two draws for a canvas with anchors.

    Larger times mean more noise. When a gap is filled, its free slots start as pure noise and stay mostly noise for
    most of the steps, so canvases with anchors are trained with more noise.
    """
    first, second = torch.rand(2, *batch.starts.shape, generator=generator) * (1 - 2e-4) + 1e-4
    return torch.where(batch.free.all(-1), first, torch.maximum(first, second))


def corrupt(batch: Batch, times: Tensor, vocabulary: int, generator: torch.Generator) -> Tensor:
    """The canvases with noise, int64 [B, K, C]: each free token is replaced with the probability of its canvas's time.

    times: float [B, K]. The noise is uniform over the whole vocabulary, and may draw the token that it replaces
    (google-deepmind/gemma, `diffusion/hackable_diffusion_adapter`).
    """
    noise = torch.randint(vocabulary, batch.canvas.shape, generator=generator)
    hit = torch.rand(batch.canvas.shape, generator=generator) < times[..., None]
    return torch.where(hit & batch.free, noise, batch.canvas)


def losses(network: Any, batch: Batch, noisy: Tensor) -> tuple[Tensor, Tensor]:
    """(L_diff, L_ar) in nats a token, both scalars. L_diff reaches the encoder, too, through its keys and values.

    Without canvases L_diff is 0, and only the encoder is run.

    1. Encode the clean documents; each canvas is a row of its own after the keys and values of its document.
    2. For the first half of the rows run a first denoising pass without gradient, for the self-conditioning signal.
    3. Run the second pass on all rows: the first half with that signal (an anchor's is its own token's embedding), the
    others with zeros.
    4. L_diff is the mean over each canvas's free slots, then over the canvases, so that a short gap counts as much as a
    long one.
    """
    if not batch.starts.numel():
        states = network.model.encoder.language_model(input_ids=batch.tokens).last_hidden_state
        return states.new_zeros(()), _ahead(network, states, batch.tokens)
    table = network.model.decoder.embed_tokens
    half = batch.starts.numel() // 2
    # 1. Every layer keeps all keys; the masks hide those outside a sliding window.
    cache = DynamicCache()
    encoded = network.model.encoder.language_model(input_ids=batch.tokens, past_key_values=cache)
    prefixes = _Prefixes.of(cache, batch.canvas.shape[1])
    view = canvas_view(batch, int(network.config.text_config.sliding_window), table.weight.dtype)
    # 2.
    free, canvas = batch.free.flatten(0, 1), batch.canvas.flatten()
    first, second = loss_slots(free[:half]), loss_slots(free[half:]) + free[:half].numel()
    embedded = table(noisy.flatten(0, 1))
    with torch.no_grad():
        zeros = torch.zeros_like(embedded)
        seen = decode(network, prefixes.first(half), embedded[:half], zeros[:half], view.first(half))
        guess = capped_logits(network, seen.flatten(0, 1)[first]).softmax(-1).to(table.weight.dtype)
        guess = (guess @ table.weight) * table.embed_scale.to(table.weight.dtype)
        known = embedded.flatten(0, 1).index_copy(0, first, guess).view_as(embedded)
        known = torch.where(free[..., None], known, embedded)[:half]
    # 3.
    hidden = decode(network, prefixes, embedded, torch.cat([known, zeros[half:]]), view)
    # 4.
    chosen = torch.cat([first, second])
    weight = (free / free.sum(-1, keepdim=True)).flatten()[chosen]
    diffusion = (
        cross_entropy(network, hidden.flatten(0, 1)[chosen], canvas[chosen]) * weight
    ).sum() / weight.sum()
    return diffusion, _ahead(network, encoded.last_hidden_state, batch.tokens)


def _ahead(network: Any, states: Tensor, tokens: Tensor) -> Tensor:
    """L_ar, a scalar, of documents `tokens` [B, P] with the encoder's `states` [B, P, hidden]."""
    following = tokens[:, 1:]
    ahead = cross_entropy(network, states[:, :-1], following)
    return (ahead * (following != PAD)).sum() / (following != PAD).sum()


def loss_slots(free: Tensor) -> Tensor:
    """The slot numbers in `free` [rows, length] whose loss is computed: half of all slots, free ones first.

    Their number is always the same, so that a compiled graph fits. In the few batches with more free slots than that,
    those of the last rows are left out.
    """
    return torch.sort(free.flatten(), descending=True, stable=True).indices[: max(free.numel() // 2, 1)]


def canvas_view(batch: Batch, window: int, dtype: torch.dtype) -> View:
    """Positions and masks of all canvases of `batch`, one a row.

    A canvas sees the tokens before it (in a sliding layer the last window - 1 of them) and all of itself. The masks
    hold numbers to add to the attention scores, since transformers' eager attention would add booleans too.
    """
    slots, length, device = batch.canvas.shape[2], batch.tokens.shape[1], batch.tokens.device
    starts = batch.starts.flatten()[:, None]
    positions = starts + torch.arange(slots, device=device)
    tokens = torch.arange(length, device=device)
    own = torch.ones(len(starts), slots, dtype=torch.bool, device=device)
    before = tokens < starts
    seen = {"full_attention": before, "sliding_attention": before & (tokens > starts - window)}
    masks = {}
    for kind, mask in seen.items():
        hidden = torch.zeros(len(starts), length + slots, dtype=dtype, device=device)
        hidden = hidden.masked_fill(~torch.cat([mask, own], 1), torch.finfo(dtype).min)
        masks[kind] = hidden[:, None, None].expand(-1, 1, slots, -1)
    return View(positions, masks)


def cross_entropy(network: Any, hidden: Tensor, tokens: Tensor) -> Tensor:
    """The cross-entropy in nats of each of `tokens` [...] under the logits of `hidden` [..., hidden]: [...]."""
    if network.lm_head.weight.requires_grad:
        return _nats(network, hidden.flatten(0, -2), tokens.flatten()).view(tokens.shape)
    nats: Tensor = _in_parts(network, hidden.flatten(0, -2), tokens.flatten())
    return nats.view(tokens.shape)


def _nats(network: Any, hidden: Tensor, tokens: Tensor) -> Tensor:
    return F.cross_entropy(capped_logits(network, hidden), tokens, reduction="none")


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _in_parts(network: Any, hidden: Tensor, tokens: Tensor) -> Tensor:
    """Compute `_nats` of _PART tokens at a time, under a head that is frozen, as it is while an adapter is trained.

    The logits of 2,000 tokens with a vocabulary of 49,152 take 400 MB, so they are thrown away, and computed again for
    the gradient.
    """
    parts = zip(torch.split(hidden, _PART), torch.split(tokens, _PART), strict=True)
    return torch.cat([checkpoint(_nats, network, *part, use_reentrant=False) for part in parts])
