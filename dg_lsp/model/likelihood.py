"""The likelihood of finished fills: the encoder reads them from left to right, and on into the suffix.

The denoiser is confident of a fill as soon as its tokens agree with each other. The encoder has the same weights and
predicts text far better. Knows tokens and the prefix cache; knows no canvas.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.networks.base import Reader
from dg_lsp.model.tiles import tile_rows, tiled_logits
from dg_lsp.model.tree import Tree

AT_ONCE = 32  # tokens that are predicted together at most


def neg_log_likelihoods(
    network: Reader, cache: PrefixCache, texts: Sequence[Sequence[int]], starts: Sequence[int]
) -> list[float]:
    """-log p in nats of each token sequence in `texts` after the prefix in `cache`, summed from token `start` on."""
    rows = neg_log_likelihoods_of_tokens(network, cache, texts, starts)
    return [sum(row) for row in rows]


@torch.inference_mode()
def neg_log_likelihoods_of_tokens(
    network: Reader,
    cache: PrefixCache,
    texts: Sequence[Sequence[int]],
    starts: Sequence[int],
    kept: int | None = None,
) -> list[list[float]]:
    """-log p in nats of each token of `texts` after the prefix in `cache`, from token `start` of each text on.

    kept: how many of the prefix's tokens are before the texts, default all. The cache stays as it is.
    """
    # Read all texts but their last tokens, after the last token of the prefix, whose hidden state predicts the first
    # one.
    kept = len(cache.tokens) if kept is None else kept
    tree = Tree(network, cache, kept - 1)
    tree.take([0] * len(texts))
    read = tree.read([[cache.tokens[kept - 1], *text[:-1]] for text in texts])
    # Predict some tokens at a time, since a large vocabulary times all tokens would take too much memory.
    states = torch.cat([own[start:] for own, start in zip(read, starts, strict=True)])
    counted = [text[start:] for text, start in zip(texts, starts, strict=True)]
    wanted = torch.tensor([token for text in counted for token in text], device=states.device)
    tiles = tiled_logits(network, states, AT_ONCE), wanted.split(min(AT_ONCE, tile_rows(network)))
    nats = [F.cross_entropy(logits, some, reduction="none") for logits, some in zip(*tiles, strict=True)]
    return [row.tolist() for row in torch.cat(nats).split([len(text) for text in counted])]
