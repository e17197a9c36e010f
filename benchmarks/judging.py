"""Fitting the judge of candidates: examples from gaps whose truth is known, and the weights that explain them best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from benchmarks import run_to_end
from dg_lsp.checkpoints import find_directory
from dg_lsp.engine import memory
from dg_lsp.messages import Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.candidates import Candidate, checked, merge_candidates
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.fill import fill, score_candidates, way_of
from dg_lsp.model.judge import SITUATIONS, features, situation
from dg_lsp.model.task import Task


@dataclass(frozen=True, slots=True)
class Example:
    """The candidates of one gap that can be shown.

    situation: of the gap. texts: the candidates. rows: their features. right: the number of the true one, -1 if there
    is none.
    """

    situation: str
    texts: tuple[str, ...]
    rows: tuple[dict[str, float], ...]
    right: int


def load_as_engine(name: str, device: str = "cpu") -> Checkpoint:
    """Load the checkpoint `name` in as many bits as an engine does on this machine."""
    return load_checkpoint(name, device, bits=memory.bits_for(find_directory(name), device, 16))


def examples(model: Checkpoint, request: Infill, truth: str) -> Iterator[Example]:
    """The Examples of a gap: the candidates before anything is denoised, then those of all sources."""
    cache = PrefixCache(model.network.text_config)
    task = Task(model, cache, request, Clock(None), partial(fill, model, cache))
    way = way_of(model, request)
    found = list[Candidate]()
    for source in way.sources:
        found = merge_candidates(found, run_to_end(source(task))[1])
    found = score_candidates(task, found)
    yield example(request, found, truth)
    if way.last is None:
        return
    _, further = run_to_end(way.last(task))
    if not checked(request, further[0]).refusal:
        found = score_candidates(task, merge_candidates(found, further))
    yield example(request, found, truth)


def example(request: Infill, found: Sequence[Candidate], truth: str) -> Example:
    """The Example of those candidates for the gap of `request` that can be shown."""
    shown = [one for one in found if not checked(request, one).refusal]
    texts = tuple(one.text.strip() for one in shown)
    right = texts.index(truth.strip()) if truth.strip() in texts else -1
    return Example(situation(request), texts, tuple(features(request, shown)), right)


def fit(found: Sequence[Example], decay: float = 0.02) -> dict[str, dict[str, float]]:
    """The weights of the judge, by situation, under which the truths of `found` are likeliest.

    Maximum likelihood of a conditional logit model with "none" as a further choice, by L-BFGS; `decay` times the sum of
    the squared weights is added to the mean loss.
    """
    return {name: _fit([e for e in found if e.situation == name and e.rows], decay) for name in SITUATIONS}


def fit_together(found: Sequence[Example], decay: float = 0.02) -> dict[str, dict[str, float]]:
    """The weights of `fit`, the same ones for all situations: for a list of few gaps."""
    weights = _fit([e for e in found if e.rows], decay)
    return dict.fromkeys(SITUATIONS, weights)


def _fit(found: Sequence[Example], decay: float) -> dict[str, float]:
    if not found:
        return {}
    names = sorted({name for e in found for row in e.rows for name in row})
    tables = [torch.tensor([[row.get(n, 0.0) for n in names] for row in e.rows]) for e in found]
    weights = torch.zeros(len(names), requires_grad=True)
    solver = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Any:
        solver.zero_grad()
        losses = []
        for one, table in zip(found, tables, strict=True):
            worth = torch.cat([table @ weights, weights.new_zeros(1)])
            losses.append(worth.logsumexp(0) - worth[one.right])
        total = torch.stack(losses).mean() + decay * (weights**2).sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    solver.step(loss)  # type: ignore[no-untyped-call]
    return {name: round(value, 4) for name, value in zip(names, weights.tolist(), strict=True)}
