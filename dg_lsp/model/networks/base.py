"""The seam for networks: all that the fill asks of one. Only this folder knows what is inside a network.

A network implements `Network` and, beside it, what it can do: read from left to right, denoise a canvas, or both.
DiffusionGemma is a Reader and a Denoiser, a causal network a Reader, a server that only denoises a Denoiser.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from dg_lsp.model.sampler import AnchoredSampler
from dg_lsp.model.step import Schedule, Step


class Network(Protocol):
    """A network that can hold the prefix of a file."""

    @property
    def device(self) -> torch.device:
        """The device that tokens are put on."""
        ...

    @property
    def text_config(self) -> Any:
        """The configuration of its text layers, as transformers names it; a PrefixCache is made from it."""
        ...

    @property
    def chunk(self) -> int:
        """The number of tokens that it encodes at once, at most."""
        ...

    def encode(self, cache: Cache, tokens: Sequence[int]) -> Iterator[None]:
        """Append the keys and values of `tokens` to the layers of `cache`, a PrefixCache, whose `tokens` stay.

        Yields where it can be left and continued later, if the layers hold then what they hold now.
        """
        ...


@runtime_checkable
class Reader(Network, Protocol):
    """A network that reads texts after a prefix from left to right."""

    def read(
        self, cache: Cache, tokens: Tensor, positions: Tensor, masks: Mapping[int | None, Tensor]
    ) -> Tensor:
        """Return the hidden states [tokens, hidden] of `tokens`, and append their keys and values to `cache`.

        tokens, positions: int64 [tokens]. masks: by the window of a layer (None for a layer that sees everything), bool
        [tokens, keys], True where a token sees a key of `cache` or of a new token.
        """
        ...

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits in fp32 of the token after each state: [..., hidden] -> [..., vocabulary]."""
        ...


@runtime_checkable
class Denoiser(Network, Protocol):
    """A network that denoises canvases after a prefix."""

    def denoise(
        self, cache: Cache, sampler: AnchoredSampler, schedule: Schedule, watch: Tensor | None = None
    ) -> Iterator[Step]:
        """Denoise `sampler.canvas` after the tokens of `cache`, a PrefixCache; yield each Step, or the last one only.

        A Denoiser that runs elsewhere draws its own noise: it pins the anchors of `sampler.canvas`, starts from
        `sampler.first_canvas()`, and makes at most `schedule.steps` steps. watch: slot numbers [W] of the anchors whose
        likelihood is wanted in `Step.neg_log_likelihood`.
        """
        ...


class CanvasReader(Network, Protocol):
    """A Denoiser in this process: what the loop of model/denoise.py computes a step with."""

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the embeddings of `tokens`: int64 [...] -> [..., hidden]."""
        ...

    def mean_embedding(self, chances: Tensor) -> Tensor:
        """Return the mean of all embeddings, weighted by `chances`: [slots, vocabulary] -> [slots, hidden]."""
        ...

    def head(self, states: Tensor) -> Tensor:
        """Return the scores of hidden states before the cap, in the network's own type."""
        ...

    def cap(self, raw: Tensor) -> Tensor:
        """Return the capped logits in fp32 of what `head` gave."""
        ...

    def logits(self, states: Tensor) -> Tensor:
        """Return `cap(head(states))`."""
        ...


def added(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the mask `seen`, bool [tokens, keys], as numbers that are added to attention scores: [1, 1, tokens, keys].

    Zero where a token sees a key, elsewhere the least number that `dtype` has.
    """
    zeros = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
    return zeros.masked_fill(~seen, torch.finfo(dtype).min)[None, None]
