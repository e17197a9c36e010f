"""The int8 copy of a network that writes token by token: what it gives, what it shares, and where there is none."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import Linear

from dg_lsp.engine.decoder import capped_logits
from dg_lsp.engine.load import int8
from dg_lsp.engine.load.checkpoint import load_checkpoint
from dg_lsp.engine.load.int8 import writer_for
from dg_lsp.host import room
from dg_lsp.host.base import EngineError
from dg_lsp.text.messages import Infill
from tests.engine.test_drafted import written
from tests.engine.tiny import VOCABULARY, save_checkpoint, tiny_config, tiny_network


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dg_lsp.engine.load.int8._LEAST", 0)


def logits(network: Any, tokens: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        encoder = network.model.encoder.language_model
        return capped_logits(network, encoder(input_ids=tokens).last_hidden_state[0])


def test_a_copy_gives_nearly_the_same_logits_and_leaves_the_network_alone() -> None:
    network = tiny_network(1, torch.bfloat16)
    tokens = torch.randint(VOCABULARY, (1, 20))
    before = logits(network, tokens)
    copy = writer_for(network)
    assert torch.equal(logits(network, tokens), before), "the network is as it was"
    off = (logits(copy, tokens) - before).std() / before.std()
    assert 0 < off < 0.1
    assert not any(isinstance(m, Linear) for m in copy.model.encoder.language_model.modules())
    shared = {id(t) for t in network.parameters()}
    own = [t for t in copy.parameters() if id(t) not in shared]
    assert own == [], "no tensor is there twice"


def test_a_bias_is_added() -> None:
    network = tiny_network(1, torch.bfloat16)
    network.lm_head.bias = torch.nn.Parameter(torch.full([VOCABULARY], 3.0, dtype=torch.bfloat16))
    states = torch.randn(2, network.lm_head.in_features, dtype=torch.bfloat16)
    with torch.inference_mode():
        off = writer_for(network).lm_head(states).float() - network.lm_head(states).float()
    assert float(off.abs().max()) < 0.5


@pytest.mark.parametrize(
    ("bound", "value"), [("_LEAST", 1 << 40), ("MOST", 1)], ids=["fits the cache", "takes too much memory"]
)
def test_there_is_no_copy_where_it_gains_nothing(
    monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    wide, network = tiny_network(1), tiny_network(1, torch.bfloat16)
    assert writer_for(wide) is wide, "torch's kernel for float32 is slow"
    assert writer_for(network) is not network
    monkeypatch.setattr(f"dg_lsp.engine.load.int8.{bound}", value)
    assert writer_for(network) is network


def test_what_the_copy_takes_is_counted_before_a_network_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = tiny_network(1, torch.bfloat16)
    copy = writer_for(network)
    own = {id(t): t.nbytes for m in copy.modules() for t in vars(m).values() if isinstance(t, torch.Tensor)}
    assert sum(own.values()) < int8.SHARE * 1.2 * sum(t.nbytes for t in network.parameters())
    (tmp_path / "model.safetensors").write_bytes(bytes(1000))
    least = int(1000 * (room.MARGIN + int8.SHARE))
    for free, most, device in ((least, 1000, "cpu"), (least - 1, 999, "cpu"), (least - 1, 1000, "cuda:0")):
        monkeypatch.setattr("dg_lsp.host.room._free", lambda _, free=free: (free, "this machine"))
        monkeypatch.setattr(int8, "MOST", most)
        room.check(tmp_path, device)
    monkeypatch.setattr(int8, "MOST", 1000)
    with pytest.raises(EngineError, match="needs"):
        room.check(tmp_path, "cpu")


def test_texts_are_written_by_the_copy_behind_a_prefix_that_the_network_has_read(
    tmp_path: Path,
) -> None:
    save_checkpoint(tmp_path)
    model = load_checkpoint(str(tmp_path), "cpu")
    request = Infill("def area(r):\n    return ", "\n", "python", "rest_of_line")

    other = tiny_network(7, config=tiny_config(model.vocabulary))
    assert (
        written(replace(model, writer=other), request)
        != written(model, request)
        == written(replace(model, writer=model.network), request)
    )
