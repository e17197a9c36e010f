"""What the encoder thinks of finished canvases: how unlikely their texts are, read from left to right.

The denoiser is sure of a fill as soon as its tokens agree with each other; the encoder, which has the same weights,
foresees text far better, and it reads on into the suffix. Knows tokens and the prefix cache; knows no canvas.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.decoder import capped_logits


@torch.inference_mode()
def surprises(
    network: Any, cache: PrefixCache, texts: Sequence[Sequence[int]], starts: Sequence[int]
) -> list[float]:
    """-log p in nats of each of `texts` from its token number `start` on, read behind the prefix in `cache`.

    One pass of the encoder over all of them, padded to the longest; the cache stays as it is. Its last token is read
    again, as it is the one that foresees the first token here.
    """
    longest, device = max(map(len, texts)), network.model.decoder.embed_tokens.weight.device
    rows = [[cache.tokens[-1], *text, *[0] * (longest - len(text))] for text in texts]
    tokens = torch.tensor(rows, device=device)
    read = cache.read_on(len(texts), len(cache.tokens) - 1)
    states = network.model.encoder.language_model(input_ids=tokens, past_key_values=read).last_hidden_state
    first = min(starts)
    logits = capped_logits(network, states[:, first:-1])
    surprise = F.cross_entropy(logits.transpose(1, 2), tokens[:, first + 1 :], reduction="none")
    spans = [(start - first, len(text) - first) for text, start in zip(texts, starts, strict=True)]
    return [float(row[start:end].sum()) for row, (start, end) in zip(surprise, spans, strict=True)]
