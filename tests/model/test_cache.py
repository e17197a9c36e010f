"""The prefix cache: cut and extended anywhere, it gives the logits that a fresh one gives (law 3)."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers.cache_utils import DynamicCache

from dg_lsp.model.cache import CHUNK, PrefixCache, PrefixCaches, extend_to
from dg_lsp.model.clock import Clock
from dg_lsp.model.task import read_in_time
from dg_lsp.reasons import OutOfTime
from tests.model.reference import step_logits
from tests.model.tiny import CANVAS, VOCABULARY, WINDOW, encoded, extend, tiny_network


@torch.inference_mode()
def decoder_logits(network: Any, cache: Any) -> torch.Tensor:
    canvas = (torch.arange(CANVAS)[None] * 5) % VOCABULARY
    return step_logits(network, cache, canvas, torch.arange(CANVAS), None)


@torch.inference_mode()
def fresh_logits(network: Any, tokens: list[int]) -> torch.Tensor:
    """The oracle: transformers' own cache, filled in one go, read by its own forward."""
    cache = DynamicCache(config=network.config.text_config)
    network.model.encoder(input_ids=torch.tensor([tokens]), past_key_values=cache)
    canvas = (torch.arange(CANVAS)[None] * 5) % VOCABULARY
    return network(decoder_input_ids=canvas, past_key_values=cache).logits[0]


def test_cuts_and_extensions_past_the_window_change_nothing() -> None:
    network, rng = tiny_network(1, torch.float64), random.Random(5)
    cache = encoded(network, [3])
    tokens = [3]
    for _ in range(25):
        keep = rng.choice([1, len(tokens), max(len(tokens) - 1, 1), rng.randrange(1, len(tokens) + 1)])
        cache.cut(keep)
        more = [rng.randrange(VOCABULARY) for _ in range(rng.choice([1, 2, 7, WINDOW - 1, WINDOW, 40]))]
        tokens = tokens[:keep] + more
        extend(network, cache, more)
        gap = (decoder_logits(network, cache) - fresh_logits(network, tokens)).abs().max()
        assert float(gap) < 1e-10
    assert len(tokens) > WINDOW


def test_a_batch_of_canvases_reads_one_prefix() -> None:
    network = tiny_network(2, torch.float64)
    cache = encoded(network, list(range(30)))
    alone = decoder_logits(network, cache)
    canvas = ((torch.arange(CANVAS)[None] * 5) % VOCABULARY).expand(3, -1)
    with torch.inference_mode():
        rows = step_logits(network, cache.seen_by(3), canvas, torch.arange(3 * CANVAS), None)
    assert float((rows.view(3, CANVAS, -1) - alone).abs().max()) < 1e-10


def test_reading_ends_long_after_the_deadline_with_the_reason_and_goes_on_when_asked_again() -> None:
    model: Any = SimpleNamespace(network=tiny_network(0))
    cache, tokens = PrefixCache(model.network.text_config), [n % VOCABULARY for n in range(2 * CHUNK + 9)]
    for read in (CHUNK, 2 * CHUNK):
        with pytest.raises(OutOfTime, match=f"{read} of {len(tokens)} tokens .* ask again"):
            list(read_in_time(model, cache, tokens, Clock(1e-9)))
        assert len(cache.tokens) == read
    # The last chunk is never in vain, nor is any where there is no deadline, or one that has hardly passed.
    assert len(list(read_in_time(model, cache, tokens, Clock(1e-9)))) == 1
    for clock in (Clock(None), Clock(60)):
        cache.cut(0)
        assert len(list(read_in_time(model, cache, tokens, clock))) == 3


def test_a_cut_beyond_the_end_is_refused() -> None:
    cache = encoded(tiny_network(0), [1, 2, 3])
    with pytest.raises(ValueError, match="cannot be cut"):
        cache.cut(4)


def test_only_what_is_new_is_encoded_from_a_chunk_border_on() -> None:
    network = tiny_network(0)
    tokens = [i % VOCABULARY for i in range(2 * CHUNK + 50)]
    cache = PrefixCache(network.config.text_config)
    assert list(extend_to(network, cache, tokens)) == [CHUNK, 2 * CHUNK, 2 * CHUNK + 50]
    assert list(extend_to(network, cache, tokens)) == []
    edited = [*tokens[: CHUNK + 9], 1, *tokens[CHUNK + 9 :]]
    assert list(extend_to(network, cache, edited)) == [2 * CHUNK, 2 * CHUNK + 51]
    assert cache.tokens == tuple(edited)
    fresh = PrefixCache(network.config.text_config)
    list(extend_to(network, fresh, edited))
    assert torch.equal(decoder_logits(network, cache), decoder_logits(network, fresh))


def test_without_exactness_a_typed_token_costs_one_token() -> None:
    network = tiny_network(0, torch.float64)
    tokens = [i % VOCABULARY for i in range(2 * CHUNK + 50)]
    cache = PrefixCache(network.config.text_config)
    list(extend_to(network, cache, tokens))
    shown: list[int] = []
    layer = network.model.encoder.language_model.layers[0]
    hook = layer.register_forward_hook(lambda _, inputs, __: shown.append(inputs[0].shape[1]))
    edited = [*tokens[:-1], 9]
    list(extend_to(network, cache, edited, exact=False))
    assert shown == [1]
    gap = (decoder_logits(network, cache) - fresh_logits(network, edited)).abs().max()
    assert float(gap) < 1e-10
    # What was encoded so is not taken for exact.
    shown.clear()
    list(extend_to(network, cache, edited))
    hook.remove()
    assert shown == [50]
    assert list(extend_to(network, cache, edited)) == []


def test_exactness_reaches_back_to_the_first_uneven_chunk() -> None:
    network = tiny_network(3, torch.bfloat16)
    tokens = [(7 * i) % VOCABULARY for i in range(2 * CHUNK + 30)]
    cache, fresh = (PrefixCache(network.config.text_config) for _ in range(2))
    list(extend_to(network, cache, tokens[:100]))
    list(extend_to(network, cache, tokens[: CHUNK + 9], exact=False))
    # The same chunks: on some processors other ones give the same logits, too.
    assert list(extend_to(network, cache, tokens)) == list(extend_to(network, fresh, tokens))
    assert torch.equal(decoder_logits(network, cache), decoder_logits(network, fresh))


def test_an_encode_that_dies_leaves_the_old_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    network = tiny_network(0)
    cache = PrefixCache(network.config.text_config)
    list(extend_to(network, cache, [1] * CHUNK))
    before = decoder_logits(network, cache)
    dies = network.model.encoder.language_model.layers[3]
    monkeypatch.setattr(dies, "forward", lambda *_, **__: (_ for _ in ()).throw(MemoryError("no memory")))
    with pytest.raises(MemoryError):
        list(extend_to(network, cache, [1] * CHUNK + [2] * 5))
    assert cache.tokens == (1,) * CHUNK
    assert torch.equal(decoder_logits(network, cache), before)


def test_closing_between_chunks_encodes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    network, calls = tiny_network(0), 0
    real = network.model.encoder.language_model.forward

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return real(*args, **kwargs)

    monkeypatch.setattr(network.model.encoder.language_model, "forward", counted)
    cache = PrefixCache(network.config.text_config)
    chunks = extend_to(network, cache, [1] * (5 * CHUNK))
    next(chunks)
    next(chunks)
    chunks.close()
    assert calls == 2
    assert len(cache.tokens) == 2 * CHUNK


def test_a_hit_counts_only_after_comparing_tokens() -> None:
    network = tiny_network(0)
    cache = PrefixCache(network.config.text_config)
    list(extend_to(network, cache, [1, 2, 3]))
    assert list(extend_to(network, cache, [1, 2, 4])) == [3]
    fresh = PrefixCache(network.config.text_config)
    list(extend_to(network, fresh, [1, 2, 4]))
    assert torch.equal(decoder_logits(network, cache), decoder_logits(network, fresh))


def test_each_document_keeps_its_prefix_while_another_is_worked_on() -> None:
    network = tiny_network(0)
    caches = PrefixCaches(network.config.text_config, 1 << 30)
    texts = {name: [number] * (CHUNK + 10) for number, name in enumerate(("a", "b"), start=1)}
    for name, tokens in texts.items():
        with caches.lend(name) as cache:
            assert list(extend_to(network, cache, tokens)) == [CHUNK, CHUNK + 10]
    for name, tokens in texts.items():
        with caches.lend(name) as cache:
            assert list(extend_to(network, cache, tokens)) == []
    fresh = PrefixCache(network.config.text_config)
    list(extend_to(network, fresh, texts["a"]))
    with caches.lend("a") as cache:
        assert torch.equal(decoder_logits(network, cache), decoder_logits(network, fresh))


def test_two_infills_of_one_document_that_take_turns_share_no_cache() -> None:
    network = tiny_network(0)
    caches = PrefixCaches(network.config.text_config, 1 << 30)
    with caches.lend("a") as one, caches.lend("a") as two:
        assert one is not two
        list(extend_to(network, one, [1] * 5))
        list(extend_to(network, two, [2] * 7))
        assert (one.tokens, two.tokens) == ((1,) * 5, (2,) * 7)
    with caches.lend("b") as other:
        assert other is not one and other is not two
    assert len(caches) == 3


def test_room_is_reserved_once_for_a_prefix_and_another_chunk() -> None:
    network = tiny_network(0)
    cache = PrefixCache(network.config.text_config)
    sizes = {cache.bytes for _ in extend_to(network, cache, [1] * (5 * CHUNK + 1))}
    (size,) = sizes
    # Another chunk fits, and nothing more has been reserved.
    assert {cache.bytes for _ in extend_to(network, cache, [1] * (6 * CHUNK))} == {size}
    one = PrefixCache(network.config.text_config)
    list(extend_to(network, one, [1]))
    assert size == 6 * one.bytes


def test_the_documents_used_least_recently_go_first_and_the_last_one_stays() -> None:
    network = tiny_network(0)
    one = PrefixCache(network.config.text_config)
    list(extend_to(network, one, [1] * CHUNK))
    left = list[int]()
    caches = PrefixCaches(network.config.text_config, 2 * one.bytes, lambda: left.append(caches.bytes))
    for name in ("a", "b", "c", "a", "d"):
        with caches.lend(name) as cache:
            list(extend_to(network, cache, [1] * CHUNK))
    assert one.bytes > 0
    assert left == [2 * one.bytes] * 3, "it is told when some have gone"
    assert (len(caches), caches.bytes) == (2, 2 * one.bytes)
    # a was used after b and c.
    for name in ("a", "d"):
        with caches.lend(name) as cache:
            assert list(extend_to(network, cache, [1] * CHUNK)) == []
    small = PrefixCaches(network.config.text_config, 1)
    with small.lend("large") as cache:
        list(extend_to(network, cache, [1] * CHUNK))
    assert len(small) == 1


def test_caches_without_bytes_are_bounded_by_their_number() -> None:
    network = tiny_network()
    left = list[int]()
    caches = PrefixCaches(network.config.text_config, 1 << 30, lambda: left.append(len(caches)), most=8)
    for number in range(40):
        with caches.lend(f"document {number}") as cache:
            cache.tokens = (number,)  # as before a server, which has the keys and values
    assert len(caches) == 8 and set(left) == {8}
    for number in (39, 32):
        with caches.lend(f"document {number}") as cache:
            assert cache.tokens == (number,)
    with caches.lend("document 0") as cache:
        assert not cache.tokens
