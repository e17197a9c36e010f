"""The published training loss of DiffusionGemma, on canvases that may hold anchors.

L = L_diff + L_ar: the denoiser's cross-entropy on the free slots of the corrupted canvas, and the encoder's
next-token cross-entropy on the prefix. Knows the network; no data and no optimiser.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.cache_utils import DynamicCache

from dg_lsp.engine.decoder import View, capped_logits, decode
from dg_lsp.training.layouts import Batch
from dg_lsp.training.shape import PAD


@dataclass(frozen=True, slots=True)
class _Layer:
    """Keys and values [rows, heads, length, size] that a decoder layer reads."""

    keys: Tensor
    values: Tensor


class _Prefixes:
    """An encoded prefix for each canvas: what its document's is."""

    is_compileable = False

    def __init__(self, layers: Sequence[_Layer]) -> None:
        self.layers = layers

    @classmethod
    def of(cls, cache: DynamicCache, canvases: int) -> "_Prefixes":
        """Each document's of `cache` for each of its canvases."""
        return cls(
            [_Layer(*(x.repeat_interleave(canvases, 0) for x in (y.keys, y.values))) for y in cache.layers]
        )

    def first(self, rows: int) -> "_Prefixes":
        """The prefixes of the first `rows` canvases, cut off from the gradient."""
        return _Prefixes([_Layer(x.keys[:rows].detach(), x.values[:rows].detach()) for x in self.layers])


def draw_times(batch: Batch, generator: torch.Generator) -> Tensor:
    """A time in (0, 1) for each canvas: float [B, K]. Uniform; where there are anchors, the larger of two draws.

    A gap begins as noise through and through, and is mostly noise for most of its steps.
    """
    first, second = torch.rand(2, *batch.starts.shape, generator=generator) * (1 - 2e-4) + 1e-4
    return torch.where(batch.free.all(-1), first, torch.maximum(first, second))


def corrupt(batch: Batch, times: Tensor, vocabulary: int, generator: torch.Generator) -> Tensor:
    """The canvases with each free token replaced, with the probability of its canvas's time, by any token.

    times: float [B, K]. Returns int64 [B, K, C]. The noise is uniform over the whole vocabulary and may hit the token
    that stood there (google-deepmind/gemma, `diffusion/hackable_diffusion_adapter`).
    """
    noise = torch.randint(vocabulary, batch.canvas.shape, generator=generator)
    hit = torch.rand(batch.canvas.shape, generator=generator) < times[..., None]
    return torch.where(hit & batch.free, noise, batch.canvas)


def losses(network: Any, batch: Batch, noisy: Tensor) -> tuple[Tensor, Tensor]:
    """(L_diff, L_ar), both scalars; the gradient reaches the encoder through the keys and values, too.

    1. Encode the clean documents; each canvas is a row of its own behind its document's keys and values.
    2. A first denoising pass for the first half of the rows, without gradient; the vocabulary is computed where it is
    asked for only.  3. The second pass, which those begin with what the first believed; an anchor is certain, so its
    soft embedding is its own.  4. A mean over each canvas's free slots, then over canvases: a short gap counts as
    much as a long one.
    """
    table = network.model.decoder.embed_tokens
    half = batch.starts.numel() // 2
    # 1. Every layer keeps all keys; the masks say what is seen.
    cache = DynamicCache()
    encoded = network.model.encoder.language_model(input_ids=batch.tokens, past_key_values=cache)
    prefixes = _Prefixes.of(cache, batch.canvas.shape[1])
    view = view_of(batch, int(network.config.text_config.sliding_window), table.weight.dtype)
    # 2.
    free, canvas = batch.free.flatten(0, 1), batch.canvas.flatten()
    first, second = asked_of(free[:half]), asked_of(free[half:]) + free[:half].numel()
    embedded = table(noisy.flatten(0, 1))
    with torch.no_grad():
        zeros = torch.zeros_like(embedded)
        seen = decode(network, prefixes.first(half), embedded[:half], zeros[:half], view.first(half))
        belief = capped_logits(network, seen.flatten(0, 1)[first]).softmax(-1).to(table.weight.dtype)
        belief = (belief @ table.weight) * table.embed_scale.to(table.weight.dtype)
        known = embedded.flatten(0, 1).index_copy(0, first, belief).view_as(embedded)
        known = torch.where(free[..., None], known, embedded)[:half]
    # 3.
    hidden = decode(network, prefixes, embedded, torch.cat([known, zeros[half:]]), view)
    # 4.
    asked = torch.cat([first, second])
    weight = (free / free.sum(-1, keepdim=True)).flatten()[asked]
    diffusion = (wrong(network, hidden.flatten(0, 1)[asked], canvas[asked]) * weight).sum() / weight.sum()
    following = batch.tokens[:, 1:]
    ahead = wrong(network, encoded.last_hidden_state[:, :-1], following)
    return diffusion, (ahead * (following != PAD)).sum() / (following != PAD).sum()


def asked_of(free: Tensor) -> Tensor:
    """The places in free [rows, length], flattened, whose loss is computed: half of them, the free ones first.

    Always as many, so that a compiled graph fits; the few batches with more free slots lose those of their last rows.
    """
    return torch.sort(free.flatten(), descending=True, stable=True).indices[: max(free.numel() // 2, 1)]


def view_of(batch: Batch, window: int, dtype: torch.dtype) -> View:
    """The view of the canvases of all documents, a row each.

    A canvas sees the tokens before it (in a sliding layer the last window - 1 of them) and all of itself. The masks
    are to be added to the scores: transformers' eager attention adds whatever it is given, truth values too.
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


def wrong(network: Any, hidden: Tensor, tokens: Tensor) -> Tensor:
    """Cross-entropy in nats [B, L] of `tokens` under the logits of `hidden`."""
    guessed = capped_logits(network, hidden).flatten(0, -2)
    return F.cross_entropy(guessed, tokens.flatten(), reduction="none").view(tokens.shape)
