"""The seams of the model: a network, a prompt style and a source are a file of their own and an entry in a table."""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers.cache_utils import Cache

import dg_lsp
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.cache import CHUNK, PrefixCache
from dg_lsp.model.candidates import Candidate
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import WAYS, Way, fill
from dg_lsp.model.networks.base import Denoiser, Reader
from dg_lsp.model.prompts.base import Frame, Style
from dg_lsp.model.prompts.styles import STYLES
from dg_lsp.model.task import Task
from tests.model.tiny import byte_tokenizer, save_checkpoint, write_manifest

ROOT = Path(dg_lsp.__file__).parent
INSIDE = re.compile(r"\.model\.(encoder|decoder)\b|final_logit_softcapping|language_model\b|\blm_head\b")
REQUEST = Infill("def area(r):\n    return ", "\n", "python", "rest_of_line")


def test_only_the_networks_and_the_training_know_what_is_inside_a_network() -> None:
    apart = (ROOT / "model" / "networks", ROOT / "training")
    files = [path for path in ROOT.rglob("*.py") if not any(path.is_relative_to(folder) for folder in apart)]
    assert len(files) > 100
    assert [str(path) for path in files if INSIDE.search(path.read_text(encoding="utf-8"))] == []
    assert INSIDE.search((ROOT / "model" / "networks" / "gemma.py").read_text(encoding="utf-8"))


class Alphabet:
    """A toy network: the token after each one is the next one of `order`, however long the text is."""

    device = torch.device("cpu")

    chunk = CHUNK

    def __init__(self, order: Sequence[int], vocabulary: int) -> None:
        self.text_config: Any = SimpleNamespace(layer_types=["full_attention"], sliding_window=None)
        self.text_config.vocab_size = vocabulary
        self._table = torch.zeros(vocabulary, vocabulary)
        self._table[list(order), [*order[1:], order[0]]] = 20.0

    def encode(self, cache: Cache, tokens: Sequence[int]) -> Iterator[None]:
        nothing = torch.zeros(1, 1, len(tokens), 1)
        cache.update(nothing, nothing, 0)
        return iter(())

    def read(
        self, cache: Cache, tokens: Tensor, positions: Tensor, masks: Mapping[int | None, Tensor]
    ) -> Tensor:
        assert len(positions) == len(tokens) and masks[None].shape[0] == len(tokens)
        nothing = torch.zeros(1, 1, len(tokens), 1)
        cache.update(nothing, nothing, 0)
        return torch.nn.functional.one_hot(tokens, self.text_config.vocab_size).float()

    def logits(self, states: Tensor) -> Tensor:
        return states @ self._table


def answer(model: Checkpoint, request: Infill) -> Fill:
    *_, last = fill(model, PrefixCache(model.network.text_config), request)
    assert isinstance(last, Fill)
    return last


@pytest.fixture
def spelling(tmp_path: Path) -> Checkpoint:
    """A checkpoint whose network spells `a+b` and ends the line."""
    save_checkpoint(tmp_path)
    model, tokenizer = load_checkpoint(str(tmp_path), "cpu"), byte_tokenizer()
    order = tokenizer.encode(" a+b\n", add_special_tokens=False).ids
    network = Alphabet(order, tokenizer.get_vocab_size())
    assert isinstance(network, Reader) and not isinstance(network, Denoiser)
    return replace(model, network=network, denoises=False)


def test_a_toy_network_fills_lines_and_bodies(spelling: Checkpoint) -> None:
    assert answer(spelling, REQUEST).text == "a+b"
    body = Infill("def area(r):\n    ", "\n\n\nx = 1\n", "python", "function_body", indent="    ")
    assert answer(spelling, body).source == "drafted"
    assert "cannot rewrite a selection" in answer(spelling, replace(REQUEST, like="a+b")).refusal


def test_a_toy_style_speaks_to_a_checkpoint_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shout(tokenizer: Tokenizer, bos: int, request: Infill) -> Frame:
        said = tokenizer.encode(request.language.upper(), add_special_tokens=False).ids
        return Frame((bos, *said), (bos,))

    monkeypatch.setitem(STYLES, "shout", Style("shout", lambda _: (), shout))
    save_checkpoint(tmp_path)
    (tmp_path / "dg_lsp.json").write_text('{"prompt": "shout", "canvas_lengths": [64]}')
    write_manifest(tmp_path)
    model = load_checkpoint(str(tmp_path), "cpu")
    cache = PrefixCache(model.network.text_config)
    *_, last = fill(model, cache, replace(REQUEST, effort="low"))
    assert isinstance(last, Fill)
    assert model.tokenizer.decode(list(cache.tokens)).startswith("PYTHON" + REQUEST.prefix.split("\n")[0])


def test_a_toy_source_is_judged_beside_the_others(
    spelling: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def oracle(task: Task) -> Generator[Draft, None, list[Candidate]]:
        yield Draft(0, (), task.clock.milliseconds())
        return [Candidate("b", {"retrieved": 0}), Candidate(")", {"retrieved": 1})]

    way = WAYS["part", "reads"]
    monkeypatch.setitem(WAYS, ("part", "reads"), replace(way, sources=(*way.sources, oracle)))
    found = answer(spelling, replace(REQUEST, alternatives=3))
    assert (found.text, found.others) == ("a+b", ("b",))
    monkeypatch.setitem(WAYS, ("part", "reads"), Way((oracle,)))
    assert answer(spelling, REQUEST).text == "b"
