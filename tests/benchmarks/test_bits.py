"""Bits of the true text of a hole: nothing for a network that knows it, the vocabulary for one that guesses."""

import math
from typing import Any

import pytest
import torch

from benchmarks.embedded import bits
from dg_lsp.model.canvas import LayoutError
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.text.messages import Infill

REQUEST = Infill("def f(a):\n    return ", "\n", "python", "rest_of_line", like="a + 1")


@pytest.fixture(scope="module")
def model() -> Any:
    return load_checkpoint("embedded", "cpu")


def forced(monkeypatch: pytest.MonkeyPatch, model: Any, odds: float) -> None:
    """Let the denoiser give each slot's true token this much above all others."""
    truth = torch.tensor(model.encode(REQUEST.like))

    def logits(network: Any, cache: Any, canvas: Any, slots: Any, soft: Any) -> torch.Tensor:
        found = torch.zeros(len(slots), model.vocabulary)
        found[torch.arange(len(slots)), truth.repeat(len(slots) // len(truth))] = odds
        return found

    monkeypatch.setattr(bits, "step_logits", logits)


def test_who_knows_costs_nothing_and_who_guesses_costs_the_vocabulary(
    monkeypatch: pytest.MonkeyPatch, model: Any
) -> None:
    forced(monkeypatch, model, 100.0)
    assert bits.bits_of_gap(model, REQUEST)["1.0"] == pytest.approx(0.0, abs=1e-6)
    forced(monkeypatch, model, 0.0)
    tokens = len(model.encode(REQUEST.like))
    found = bits.bits_per_byte(model, [REQUEST])
    assert found["0.25"] == pytest.approx(tokens * math.log2(model.vocabulary) / len("a + 1"))


def test_more_noise_costs_more_and_the_same_noise_the_same(model: Any) -> None:
    found = bits.bits_of_gap(model, REQUEST)
    assert found == bits.bits_of_gap(model, REQUEST)
    assert found["0.25"] < found["1.0"]
    assert 0 < found["ahead"] < 30


def test_what_fits_no_canvas_is_left_out(model: Any) -> None:
    long = Infill("x = ", "\n", "python", "rest_of_line", like="1 + " * 400 + "1")
    with pytest.raises(LayoutError, match="do not fit"):
        bits.bits_of_gap(model, long)
    assert bits.bits_per_byte(model, [long]) == {}


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    bits.main(["--cases", "1"])
    assert "statement (1)" in capsys.readouterr().out
