"""The encoder's verdict on fills: that of reading the whole text, and nothing of it stays in the cache."""

import random

import pytest
import torch
import torch.nn.functional as F

from dg_lsp.engine.cache import CHUNK
from dg_lsp.engine.decoder import capped_logits
from dg_lsp.engine.judge import judge
from tests.engine.tiny import VOCABULARY, WINDOW, encoded, tiny_network


@pytest.mark.parametrize("length", [1, 5, WINDOW - 1, WINDOW, CHUNK + 3])
@pytest.mark.parametrize("head", [0, 4])
def test_the_verdict_is_that_of_reading_the_whole_text(length: int, head: int) -> None:
    network, rng = tiny_network(3, torch.float64), random.Random(length)

    def drawn(count: int) -> list[int]:
        return [rng.randrange(VOCABULARY) for _ in range(count)]

    prefix, heads, suffix = drawn(length), drawn(head), drawn(6)
    fills = [drawn(count) for count in (1, 9, 3, 20)]
    cache = encoded(network, prefix)
    found = judge(network, cache, heads, fills, suffix)
    assert cache.tokens == tuple(prefix) and cache.get_seq_length() == length
    for fill, verdict in zip(fills, found, strict=True):
        whole = torch.tensor([[*prefix, *heads, *fill, *suffix]])
        with torch.inference_mode():
            states = network.model.encoder.language_model(whole).last_hidden_state
            logits = capped_logits(network, states)[0, :-1]
        surprise = F.cross_entropy(logits, whole[0, 1:], reduction="none")[length + head - 1 :]
        assert verdict.fill == pytest.approx(float(surprise[: len(fill)].sum()), rel=1e-5)
        assert verdict.suffix == pytest.approx(float(surprise[len(fill) :].sum()), rel=1e-5)
        assert (verdict.tokens, verdict.whole) == (len(fill), verdict.fill + verdict.suffix)
