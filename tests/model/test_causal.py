"""Causal networks as they are: what they read after a cache is what transformers' own pass reads."""

import gc
import json
import random
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from dg_lsp.budget import Budget, spending
from dg_lsp.checkpoints import CheckpointError
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache, PrefixCaches, extend_to
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.fill import fill
from dg_lsp.model.likelihood import neg_log_likelihoods
from dg_lsp.model.networks.base import Denoiser, Reader
from dg_lsp.model.networks.causal import Causal
from dg_lsp.model.networks.loading import NETWORKS, load_network
from dg_lsp.model.task import read_in_time
from dg_lsp.model.tree import Tree
from dg_lsp.reasons import OutOfTime
from tests.model.tiny import byte_tokenizer
from tests.training.test_importing import SHAPE, SOURCES, drawn


def tokens(count: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(3, 199) for _ in range(count)]


@pytest.fixture(params=SOURCES)
def network(request: pytest.FixtureRequest) -> Causal:
    """One of each kind, in fp64, with the attention that the engine loads it with."""
    source = drawn(SOURCES[request.param]).double()
    source.set_attn_implementation("grouped")
    return Causal(source)


@torch.inference_mode()
def test_a_prefix_in_a_cache_gives_the_logits_of_a_whole_pass(network: Causal) -> None:
    """Also past the window of 16, after a change in the middle, and where it was read in pieces (law 3)."""
    cache = PrefixCache(network.text_config)
    for prefix in (tokens(5), tokens(40), [*tokens(20), *tokens(30, 1)]):
        list(extend_to(network, cache, prefix))
        tree = Tree(network, cache, len(prefix) - 1)
        (states,) = tree.read([[prefix[-1]]])
        wanted = network.network(torch.tensor([prefix])).logits[0, -1].float()
        torch.testing.assert_close(network.logits(states)[0], wanted)


def test_a_pass_that_nobody_asked_for_ends_between_two_layers(network: Causal) -> None:
    cache = PrefixCache(network.text_config)
    list(extend_to(network, cache, tokens(9)))
    with spending(Budget(5.0, spare=True, cancelled=True)), pytest.raises(OutOfTime):
        Tree(network, cache, 9).read([[1]])
    with spending(Budget(5.0, cancelled=True)):  # what somebody asked for is of use to the next key
        Tree(network, cache, 9).read([[1]])


@pytest.mark.parametrize(("exact", "more"), [(True, 0), (False, 0), (False, 40)])
def test_a_chunk_that_is_left_between_two_layers_goes_on_there(
    network: Causal, exact: bool, more: int
) -> None:
    whole = tokens(network.chunk + 300)
    shown, layers = list[int](), network.network.model.layers
    hooks = [
        layer.register_forward_hook(lambda _, inputs, __: shown.append(inputs[0].shape[1]))
        for layer in layers
    ]
    cache, fresh = (PrefixCache(network.text_config) for _ in range(2))
    for held in (
        0,
        0,
        network.chunk,
        network.chunk,
    ):  # each reading is left where it can be for the first time
        reading = extend_to(network, cache, whole, exact=exact)
        next(reading)
        reading.close()
        assert len(cache.tokens) == held == cache.get_seq_length()
    wanted = [*whole, *tokens(more, 1)]
    list(extend_to(network, cache, wanted, exact=exact))
    for hook in hooks:
        hook.remove()
    sizes = [network.chunk, 300, *([more] if more else [])]
    assert shown == [size for size in sizes for _ in layers], "no layer reads a token twice"
    list(extend_to(network, fresh, wanted))
    for own, other in zip(cache.layers, fresh.layers, strict=True):
        assert torch.allclose(own.keys, other.keys) if more else torch.equal(own.keys, other.keys)


def test_a_prefix_with_a_chunk_that_was_left_is_dropped_at_once(network: Causal) -> None:
    caches = PrefixCaches(network.text_config, 1 << 30)
    with caches.lend("a") as cache:
        reading = extend_to(network, cache, tokens(300))
        next(reading)
        reading.close()
    gone = weakref.ref(cache)
    gc.disable()
    try:
        del cache, reading
        caches.clear()
        assert gone() is None
    finally:
        gc.enable()


def test_what_is_read_long_after_the_deadline_ends_with_its_chunk(network: Causal) -> None:
    model: Any = SimpleNamespace(network=network)
    cache, whole = PrefixCache(network.text_config), tokens(2 * network.chunk)
    with pytest.raises(OutOfTime, match=f"when {network.chunk} of"):
        list(read_in_time(model, cache, whole, Clock(1e-9)))
    list(read_in_time(model, cache, whole, Clock(1e-9)))  # the last one is never in vain
    assert len(cache.tokens) == len(whole)


@pytest.mark.parametrize("exact", [True, False])
def test_a_chunk_that_was_left_is_read_again_where_its_text_has_changed(network: Causal, exact: bool) -> None:
    whole = tokens(300)
    cache, fresh = (PrefixCache(network.text_config) for _ in range(2))
    reading = extend_to(network, cache, whole, exact=exact)
    next(reading)
    reading.close()
    # In exact mode a chunk that would not end there now is read again, too.
    wanted = [*whole, 5] if exact else [*whole[:-1], 5]
    list(extend_to(network, cache, wanted, exact=exact))
    list(extend_to(network, fresh, wanted))
    for own, other in zip(cache.layers, fresh.layers, strict=True):
        assert torch.equal(own.keys, other.keys) and torch.equal(own.values, other.values)


@torch.inference_mode()
def test_texts_that_are_read_together_have_the_logits_of_whole_texts(network: Causal) -> None:
    prefix, tails = tokens(30), [tokens(20, 1), tokens(18, 2), tokens(20, 1)[:7]]
    cache = PrefixCache(network.text_config)
    list(extend_to(network, cache, prefix))
    tree = Tree(network, cache, len(prefix))
    tree.take([0, 0, 0])
    tree.read([tail[:5] for tail in tails])
    read = tree.read([tail[5:] for tail in tails])
    for tail, states in zip(tails, read, strict=True):
        whole = network.network(torch.tensor([[*prefix, *tail]])).logits[0].float()
        torch.testing.assert_close(network.logits(states), whole[len(prefix) + 5 :])
    (nats,) = neg_log_likelihoods(network, cache, [tails[0]], [0])
    whole = network.network(torch.tensor([[*prefix, *tails[0]]])).logits[0].float().log_softmax(-1)
    wanted = -sum(float(whole[len(prefix) - 1 + n, token]) for n, token in enumerate(tails[0]))
    assert nats == pytest.approx(wanted, rel=1e-5)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A network as other programs keep it: no file of ours beside it."""
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    shape = SHAPE | {"vocab_size": tokenizer.get_vocab_size()}
    torch.manual_seed(1)
    LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=True)).save_pretrained(tmp_path)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path)
    return tmp_path


def test_a_folder_of_a_causal_network_is_a_checkpoint(directory: Path) -> None:
    model = load_checkpoint(str(directory), "cpu")
    assert isinstance(model.network, Reader) and not isinstance(model.network, Denoiser)
    assert not model.denoises and model.style == "raw"
    assert model.bos == model.eos == model.tokenizer.token_to_id("<|endoftext|>")
    for kind, prefix in (("rest_of_line", "def f(x):\n    return "), ("function_body", "def f(x):\n    ")):
        request = Infill(prefix, "\n\n\ny = 1\n", "python", kind, indent="    ")  # type: ignore[arg-type]
        *_, last = fill(model, PrefixCache(model.network.text_config), request)
        assert isinstance(last, Fill)
        # Random weights may write nothing that can be shown, which is said.
        assert last.source == "drafted" if last.text else last.refusal


def test_a_causal_network_with_a_damaged_file_is_refused(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 4}))
    with pytest.raises(CheckpointError, match="do not fit its config"):
        load_network(directory, "cpu")
    (directory / "config.json").write_text(json.dumps(config | {"model_type": "toy"}))
    with pytest.raises(CheckpointError, match="only diffusion_gemma, llama"):
        load_network(directory, "cpu")


def test_a_toy_network_is_loaded_by_its_entry(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"model_type": "toy"}))
    toy: Any = torch.nn.Linear(1, 1)
    monkeypatch.setitem(
        NETWORKS, "toy", lambda path, device, _: toy if (path, device) == (directory, "cpu") else 0
    )
    assert load_network(directory, "cpu") is toy


def test_a_file_that_is_no_gguf_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "network.gguf").write_bytes(b"GGUF and nothing more")
    with pytest.raises(CheckpointError, match="no GGUF file"):
        load_network(tmp_path / "network.gguf", "cpu")
