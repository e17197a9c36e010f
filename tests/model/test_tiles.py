"""The largest tensor that is as wide as the vocabulary, over whole fills of every kind and effort: a tile."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import fill
from tests.model.tiny import byte_tokenizer, save_checkpoint

ROWS = 6  # of a tile here, as many as the drafts of a line
WIDTH = 1031  # of the vocabulary, and of nothing else
PREFIX = "import os\n\n\ndef first(a):\n    return a\n\n\ndef second(b, c):\n"
REQUESTS = {
    "line": Infill(PREFIX + "    return ", "\n\n\nx = 1\n", "python", "rest_of_line"),
    "body": Infill(PREFIX, "\n\n\nx = 1\n", "python", "function_body", indent="    "),
    "word": Infill(
        PREFIX + "    return fi", "\n\n\nx = 1\n", "python", "rest_of_line", endings=("rst" * 9, "nd", "le")
    ),
    "gaps": Infill(PREFIX + "    d = ", "\n", "python", "rest_of_line", between=("\n    e = ", "\n    f = ")),
}


class Widest(TorchDispatchMode):
    """Notes the most rows of a tensor as wide as the vocabulary that an operator makes."""

    def __init__(self, weights: Iterator[Tensor]) -> None:
        super().__init__()
        self.rows, self.weights = 0, {weight.untyped_storage().data_ptr() for weight in weights}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            is_wide = isinstance(one, Tensor) and WIDTH in one.shape and not one.is_mkldnn
            if is_wide and one.untyped_storage().data_ptr() not in self.weights:
                self.rows = max(self.rows, one.numel() // WIDTH)
        return made


@pytest.fixture(scope="module", params=["reads", "denoises"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A checkpoint with a vocabulary much larger than its layers."""
    path, tokenizer = tmp_path_factory.mktemp("wide"), byte_tokenizer()
    tokenizer.add_tokens([f"@{number}" for number in range(WIDTH - tokenizer.get_vocab_size())])
    save_checkpoint(path, tokenizer=tokenizer)
    loaded = load_checkpoint(str(path), "cpu")
    assert loaded.vocabulary == WIDTH
    return replace(loaded, judge={}, denoises=request.param != "reads")


@pytest.mark.parametrize("asked", REQUESTS)
def test_no_tensor_as_wide_as_the_vocabulary_is_larger_than_a_tile(
    model: Checkpoint, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dg_lsp.model.tiles.TILE", ROWS * WIDTH)
    request = replace(REQUESTS[asked], effort="low")
    cache = PrefixCache(model.network.text_config)
    with Widest(model.network.parameters()) as widest:
        *_, last = fill(model, cache, request)
    assert isinstance(last, Fill)
    assert 0 < widest.rows <= ROWS
