"""Fitting the judge of candidates: examples from gaps whose truth is known, and the weights that explain them best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.fill import add, fill_of, propose, rate
from dg_lsp.model.judge import SITUATIONS, Proposal, features, situation
from dg_lsp.model.sources.denoised import denoised
from dg_lsp.model.steps import Clock, run_to_end
from dg_lsp.model.tokens import join_of, tokenise
from dg_lsp.text.messages import Infill


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


def examples(model: Checkpoint, request: Infill, truth: str) -> Iterator[Example]:
    """The Examples of a gap: the candidates before anything is denoised, then those of all sources."""
    cache, clock = PrefixCache(model.network.config.text_config), Clock(None)
    prefix, seam = tokenise(model, request)
    join = join_of(model, request, prefix, seam)
    _, proposals = run_to_end(propose(model, cache, request, (prefix, join), clock))
    yield example(request, proposals, truth)
    if not model.denoises:
        return
    _, fills = run_to_end(denoised(model, cache, request, clock))
    if not fills[0].refusal:
        proposals = rate(model, cache, request, join, add(proposals, "denoised", [f.text for f in fills]))
    yield example(request, proposals, truth)


def example(request: Infill, proposals: Sequence[Proposal], truth: str) -> Example:
    """The Example of those `proposals` for the gap of `request` that can be shown."""
    shown = [p for p in proposals if "denoised" in p.sources or not fill_of(request, p).refusal]
    texts = tuple(p.text.strip() for p in shown)
    right = texts.index(truth.strip()) if truth.strip() in texts else -1
    return Example(situation(request), texts, tuple(features(request, shown)), right)


def fit(found: Sequence[Example], decay: float = 0.02) -> dict[str, dict[str, float]]:
    """The weights of the judge, by situation, under which the truths of `found` are likeliest.

    Maximum likelihood of a conditional logit model with "none" as a further choice, by L-BFGS; `decay` times the sum of
    the squared weights is added to the mean loss.
    """
    return {name: _fit([e for e in found if e.situation == name and e.rows], decay) for name in SITUATIONS}


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
