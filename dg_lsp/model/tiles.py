"""Tiles: what would take gigabytes for a whole batch, made for a part of it at a time.

That is each tensor as wide as the vocabulary: everything that fills a gap takes its logits from here. And it is the
keys that all canvases of a batch see, which attention copies for each row and each head.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.networks.base import CanvasReader, Reader

TILE = 1 << 24  # logits that are in memory at once: 64 MB in fp32
SEEN = {"cpu": 1 << 27}  # bytes of the keys and values that a layer reads at once, by device
_SEEN_ELSEWHERE = 1 << 31
CACHED = 1 << 19  # logits that a CPU works on at once: 2 MB, which its cache holds


def tile_rows(network: CanvasReader | Reader) -> int:
    """The number of states whose logits are in memory at once."""
    return max(TILE // network.text_config.vocab_size, 1)


def part_rows(network: CanvasReader | Reader, device: torch.device) -> int:
    """The number of states of a tile that `device` works on at once, where several operations follow each other."""
    return max(CACHED // network.text_config.vocab_size, 1) if device.type == "cpu" else tile_rows(network)


def tiled_logits(network: CanvasReader | Reader, states: Tensor, most: int = TILE) -> Iterator[Tensor]:
    """Yield the logits in fp32 of `states` [N, hidden], a tile of at most `most` states after the other."""
    for some in states.split(min(tile_rows(network), most)):
        yield network.logits(some)


def few_logits(network: Reader, states: Tensor) -> Tensor:
    """The logits in fp32 [N, vocabulary] of the `states` [N, hidden] after the rows of a search, which are few."""
    assert len(states) <= tile_rows(network), f"{len(states)} states are more than a tile holds"
    return network.logits(states)


def batch_rows(network: CanvasReader, cache: PrefixCache, slots: int) -> int:
    """The number of canvases of `slots` slots after `cache` that the decoder reads at once."""
    layers = [layer.keys for layer in cache.layers]
    widest = max(keys.shape[3] * (keys.shape[2] + slots) * keys.element_size() for keys in layers)
    row = 2 * widest * network.text_config.num_attention_heads
    return max(SEEN.get(layers[0].device.type, _SEEN_ELSEWHERE) // row, 1)
