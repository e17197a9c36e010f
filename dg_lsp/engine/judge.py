"""What the encoder thinks of a finished fill: how likely the text is, read from left to right.

The denoiser is sure of a fill of the wrong length as soon as it reads well by itself; the encoder reads on into the
suffix, and a missing or a surplus token makes that unlikely. Knows tokens and the prefix cache; knows no canvas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.decoder import capped_logits


@dataclass(frozen=True, slots=True)
class Verdict:
    """Surprise in nats, -log p: of the tokens of a fill, and of those of the suffix behind it."""

    fill: float
    suffix: float
    tokens: int

    @property
    def whole(self) -> float:
        """Surprise of the fill and of what follows: -log p of the file's text with this fill in it."""
        return self.fill + self.suffix


@torch.inference_mode()
def judge(
    network: Any,
    cache: PrefixCache,
    head: Sequence[int],
    fills: Sequence[Sequence[int]],
    suffix: Sequence[int],
) -> list[Verdict]:
    """The verdict on each of `fills`, token ids between `head` and `suffix`, behind the prefix in `cache`.

    One pass of the encoder over all of them, padded to the longest; the cache stays as it is. Its last token is read
    again, as it is the one that foresees the first token here.
    """
    texts = [[cache.tokens[-1], *head, *fill, *suffix] for fill in fills]
    longest = max(map(len, texts))
    device = network.model.decoder.embed_tokens.weight.device
    tokens = torch.tensor([text + [0] * (longest - len(text)) for text in texts], device=device)
    states = network.model.encoder.language_model(
        input_ids=tokens, past_key_values=cache.read_on(len(texts), len(cache.tokens) - 1)
    ).last_hidden_state
    logits = capped_logits(network, states[:, len(head) : -1])
    surprise = F.cross_entropy(logits.transpose(1, 2), tokens[:, len(head) + 1 :], reduction="none")
    found = []
    for row, fill in zip(surprise, fills, strict=True):
        middle, end = len(fill), len(fill) + len(suffix)
        found.append(Verdict(float(row[:middle].sum()), float(row[middle:end].sum()), middle))
    return found
