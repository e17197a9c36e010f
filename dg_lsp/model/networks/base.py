"""The seam for networks: all that the fill asks of one. Only this folder knows what is inside.

A network implements `Network` and, beside it, what it can do: read from left to right, denoise a canvas, or both.
DiffusionGemma is a Reader and a Denoiser, a causal network a Reader, a server that only denoises a Denoiser.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor

if TYPE_CHECKING:
    from dg_lsp.model.cache import PrefixCache
    from dg_lsp.model.denoise import Schedule, Step
    from dg_lsp.model.sampler import AnchoredSampler


class Network(Protocol):
    """What every network can do: hold the prefix of a file."""

    @property
    def device(self) -> torch.device:
        """The device that tokens are put on."""
        ...

    @property
    def text_config(self) -> Any:
        """The configuration of its text layers, as transformers names it; `PrefixCache` is made from it."""
        ...

    def encode(self, cache: "PrefixCache", tokens: Sequence[int]) -> None:
        """Append the keys and values of `tokens` to the layers of `cache`; `cache.tokens` is left to the caller."""
        ...


@runtime_checkable
class Reader(Network, Protocol):
    """A network that reads texts behind a prefix from left to right."""

    def read(
        self, behind: Any, tokens: Tensor, positions: Tensor, masks: Mapping[int | None, Tensor]
    ) -> Tensor:
        """Return the hidden states [tokens, hidden] of `tokens`, and append their keys and values to `behind`.

        behind: a cache of transformers. tokens, positions: int64 [tokens]. masks: by the window of a layer (None for a
        layer that sees everything), the numbers [1, 1, tokens, keys] that are added to the attention scores.
        """
        ...

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits in fp32 of the token behind each of `states`: [..., hidden] -> [..., vocabulary]."""
        ...


@runtime_checkable
class Denoiser(Network, Protocol):
    """A network that denoises canvases behind a prefix."""

    def denoise(
        self,
        cache: "PrefixCache",
        sampler: "AnchoredSampler",
        schedule: "Schedule",
        watch: Tensor | None = None,
    ) -> "Iterator[Step]":
        """Denoise `sampler.canvas` behind `cache.tokens`; yield a Step after each denoising step, or only the last one.

        A Denoiser that runs elsewhere draws its own noise: it pins `sampler.canvas.anchored`, starts from
        `sampler.first_canvas()`, and takes at most `schedule.steps`. watch: slot numbers [W] of the anchors whose
        likelihood is wanted in `Step.neg_log_likelihood`.
        """
        ...
