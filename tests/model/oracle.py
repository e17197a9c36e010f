"""A denoiser that knows the truth: it shows what layouts and seams do to a text, whatever a network may know.

Also the long bodies that it is asked for, and a model to which one talks.
"""

import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

from dg_lsp.budget import within
from dg_lsp.gaps.find import Gap, find_gaps
from dg_lsp.messages import Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.fill import fill
from dg_lsp.model.networks.gemma import DiffusionGemma
from dg_lsp.model.prompts.chat import SPECIAL
from dg_lsp.model.sampler import AnchoredSampler
from dg_lsp.model.step import Schedule, Step
from dg_lsp.model.task import Task
from dg_lsp.source.document import Document, DocumentError, read_document
from dg_lsp.training.shape import embedded_config, fresh_network


class Oracle:
    """Stands in for `denoise`: each free slot gets the token of `document` that belongs there.

    It reads where it is off the cached prefix and the head on the canvas, as a network does. layouts: for each canvas
    whether it was open.
    """

    def __init__(self, model: Checkpoint, document: Document, gap: Gap) -> None:
        self.model, self.text = model, document.text
        self.start = len(document.data[: gap.start].decode("utf-8"))
        self.layouts: list[bool] = []

    def __call__(
        self, network: Any, cache: PrefixCache, sampler: AnchoredSampler, schedule: Schedule
    ) -> Iterator[Step]:
        canvas = sampler.canvas
        self.layouts.append(not bool(canvas.anchored[0, -1]))
        best = canvas.tokens.clone()
        for row in range(canvas.rows):
            free = (~canvas.anchored[row]).nonzero().flatten()
            head = canvas.tokens[row, : int(free[0])].tolist()
            best[row, free] = torch.tensor(self._following([*cache.tokens[1:], *head], len(free)))
        zeros = torch.zeros(canvas.tokens.shape)
        finished = torch.ones(canvas.rows, dtype=torch.bool)
        yield Step(1, best, best, torch.ones_like(canvas.anchored), zeros, Tensor(), finished)

    def _following(self, tokens: list[int], count: int) -> list[int]:
        # What one says to a model that talks ends in a fence; the file begins behind it.
        before = self.model.tokenizer.decode(tokens).rsplit("```python\n", 1)[-1][-300:]
        at = self.text.find(before, max(self.start - 300, 0)) + len(before)
        assert at >= len(before), "what stands written is not the file's text"
        ids = self.model.encode(self.text[at : at + 8 * count])[:count]
        return [*ids, *[self.model.eos] * (count - len(ids))]


def write_with(monkeypatch: pytest.MonkeyPatch, writer: Callable[..., Iterator[Step]]) -> None:
    """Let `writer` denoise; the search for a length, which watches anchors, goes on as it is."""
    real = DiffusionGemma.denoise

    def denoise(network: Any, cache: Any, sampler: Any, schedule: Any, watch: Any = None) -> Iterator[Step]:
        if watch is None:
            return writer(network, cache, sampler, schedule)
        return real(network, cache, sampler, schedule, watch)

    monkeypatch.setattr(DiffusionGemma, "denoise", denoise)


def task_of(
    model: Checkpoint, request: Infill, cache: PrefixCache | None = None, seconds: float | None = None
) -> Task:
    """The Task of `request`; its cache holds nothing unless one is given."""
    cache = cache or PrefixCache(model.network.text_config)
    return Task(model, cache, request, Clock(seconds), partial(fill, model, cache))


def talking(model: Checkpoint) -> Checkpoint:
    """`model` as one to which one talks, so that the far suffix stands in its prompt; its network knows nothing."""
    tokenizer = Tokenizer.from_str(model.tokenizer.to_str())
    tokenizer.add_special_tokens([token for token in SPECIAL if tokenizer.token_to_id(token) is None])
    tokenizer.encode_special_tokens = model.tokenizer.encode_special_tokens
    network = fresh_network(embedded_config(tokenizer.get_vocab_size()), 0).eval()
    special = frozenset(n for n, token in tokenizer.get_added_tokens_decoder().items() if token.special)
    return replace(model, network=network, tokenizer=tokenizer, style="chat", special=special)


def long_bodies(model: Checkpoint, least: int, most: int, count: int) -> Iterator[tuple[Document, Gap, str]]:
    """Up to `count` bodies of the standard library, `least` to `most` tokens long, a few of each file."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        try:
            document = read_document(path)
        except DocumentError:
            continue
        taken = 0
        # Not one key's time: the same bodies on a slow machine.
        with within(60):
            gaps = find_gaps(document, 0, len(document.data))
        for gap in gaps:
            body = document.data[gap.start : gap.end].decode("utf-8")
            if count and taken < 4 and least <= len(model.encode(body)) <= most and not gap.stub:
                yield document, gap, body
                taken, count = taken + 1, count - 1
