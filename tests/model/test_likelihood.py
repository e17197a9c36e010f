"""The encoder's verdict on texts: that of reading each whole, and nothing of them stays in the cache."""

import random

import pytest
import torch
import torch.nn.functional as F

from dg_lsp.model.cache import CHUNK
from dg_lsp.model.likelihood import neg_log_likelihoods
from dg_lsp.model.networks.decoder import capped_logits
from tests.model.tiny import VOCABULARY, WINDOW, encoded, tiny_network


@pytest.mark.parametrize("length", [1, 5, WINDOW - 1, WINDOW, CHUNK + 3])
def test_the_verdict_is_that_of_reading_the_whole_text(length: int) -> None:
    network, rng = tiny_network(3, torch.float64), random.Random(length)

    def drawn(count: int) -> list[int]:
        return [rng.randrange(VOCABULARY) for _ in range(count)]

    prefix, texts, starts = drawn(length), [drawn(count) for count in (7, 15, 9, 26)], (4, 0, 8, 4)
    cache = encoded(network, prefix)
    found = neg_log_likelihoods(network, cache, texts, starts)
    assert cache.tokens == tuple(prefix) and cache.get_seq_length() == length
    for text, start, verdict in zip(texts, starts, found, strict=True):
        whole = torch.tensor([[*prefix, *text]])
        with torch.inference_mode():
            states = network.model.encoder.language_model(whole).last_hidden_state
            logits = capped_logits(network, states)[0, :-1]
        surprise = F.cross_entropy(logits, whole[0, 1:], reduction="none")[length + start - 1 :]
        assert verdict == pytest.approx(float(surprise.sum()), rel=1e-5)
