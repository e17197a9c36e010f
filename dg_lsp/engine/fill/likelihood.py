"""The likelihood of finished fills: the encoder reads them from left to right, and on into the suffix.

The denoiser is confident of a fill as soon as its tokens agree with each other. The encoder has the same weights and
predicts text far better. Knows tokens and the prefix cache; knows no canvas.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.decoder import capped_logits


def neg_log_likelihoods(
    network: Any, cache: PrefixCache, texts: Sequence[Sequence[int]], starts: Sequence[int]
) -> list[float]:
    """-log p in nats of each token sequence in `texts` behind the prefix in `cache`, summed from token `start` on."""
    rows = neg_log_likelihoods_of_tokens(network, cache, texts, starts)
    return [sum(row) for row in rows]


@torch.inference_mode()
def neg_log_likelihoods_of_tokens(
    network: Any, cache: PrefixCache, texts: Sequence[Sequence[int]], starts: Sequence[int]
) -> list[list[float]]:
    """-log p in nats of each token of `texts` behind the prefix in `cache`, from token `start` of each text on.

    One encoder pass over all of them, padded to the longest; the cache stays as it is. The last token of the prefix is
    read again, because its hidden state predicts the first token of each text.
    """
    longest, device = max(map(len, texts)), network.model.decoder.embed_tokens.weight.device
    rows = [[cache.tokens[-1], *text, *[0] * (longest - len(text))] for text in texts]
    tokens = torch.tensor(rows, device=device)
    read = cache.branch(len(texts), len(cache.tokens) - 1)
    states = network.model.encoder.language_model(input_ids=tokens, past_key_values=read).last_hidden_state
    first = min(starts)
    logits = capped_logits(network, states[:, first:-1])
    per_token = F.cross_entropy(logits.transpose(1, 2), tokens[:, first + 1 :], reduction="none")
    spans = [(start - first, len(text) - first) for text, start in zip(texts, starts, strict=True)]
    return [row[start:end].tolist() for row, (start, end) in zip(per_token, spans, strict=True)]
