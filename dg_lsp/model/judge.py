"""The judge: how likely each candidate for a gap is to be exactly right, whichever source it comes from.

Its few weights are fitted on gaps of real files (benchmarks/judging.py) and stored with the checkpoint. Knows texts and
likelihoods; knows no tokens and no loop.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from dg_lsp.messages import Infill, Source
from dg_lsp.model.candidates import Candidate
from dg_lsp.source.document import LINE_END
from dg_lsp.source.language import WORD, load_language

Situation = Literal["line", "rest", "inside"]
SITUATIONS: tuple[Situation, ...] = get_args(Situation)
Weights = Mapping[str, Mapping[str, float]]
# Nats by which a candidate is less likely than the best one, at most; beyond it none is chosen anyway.
_FAR = 20.0
# Lines above the gap that a candidate had better not repeat.
_ABOVE = 12


# The weights for checkpoints without fitted ones: they rank by likelihood, and the chances mean nothing.
PLAIN: Weights = {name: {"share": 4.0} for name in SITUATIONS}


def words_in_sight(request: Infill) -> frozenset[str]:
    """The words of the prefix and the suffix, the language's own, and those that the rest of the file uses."""
    own = load_language(request.language, request.macros).own_words
    return own.union(WORD.findall(request.prefix), WORD.findall(request.suffix), request.unimported)


def situation(request: Infill) -> Situation:
    """Return the part of its line that the gap is: the whole line, its rest, or a part inside it."""
    _, begun, ends = _lines_around(request)
    if not begun.strip():
        return "line"
    return "inside" if ends.strip() else "rest"


def chances(weights: Weights, request: Infill, candidates: Sequence[Candidate]) -> list[float]:
    """The probability of each of `candidates` that it is exactly right; the rest to 1 is that none of them is."""
    return chances_of(weights[situation(request)], features(request, candidates))


def chances_of(weights: Mapping[str, float], rows: Sequence[Mapping[str, float]]) -> list[float]:
    """The probability of each candidate, from its features.

    A conditional logit model (McFadden 1974): each candidate's share is exp(w x), that of "none" is 1.
    """
    worth = [sum(weights.get(name, 0.0) * value for name, value in row.items()) for row in rows]
    highest = max([0.0, *worth])
    shares = [math.exp(w - highest) for w in worth]
    total = math.exp(-highest) + sum(shares)
    return [share / total for share in shares]


def sure_length(text: str, rated: Sequence[tuple[float, str]], confidence: float) -> int:
    """Return how many characters of `text` are right with a probability of at least `confidence`.

    rated: the probability and the text of each candidate. A beginning is as likely as all candidates that share it:
    with 0.2 for `first.total(x)` and 0.1 for `first.total(y)`, the 12 characters `first.total(` have 0.3.
    """
    lengths = range(len(text), 0, -1)
    shares = (sum(chance for chance, other in rated if other.startswith(text[:n])) for n in lengths)
    return next((n for n, share in zip(lengths, shares, strict=True) if share >= confidence), 0)


def features(request: Infill, candidates: Sequence[Candidate]) -> list[dict[str, float]]:
    """The features of each of `candidates`, by name; all of them are of about the same size.

    Such as "repeats": with it the gap's line is one of the lines above, as a network that drafts likes to write.
    """
    total = [p.gap + p.suffix for p in candidates]
    best, least = min(total, default=0.0), min((p.suffix for p in candidates), default=0.0)
    sure = -math.log(sum(math.exp(best - t) for t in total)) if total else 0.0
    denoised = any("denoised" in p.sources for p in candidates)
    above, begun, ends = _lines_around(request)
    rows = []
    for p, nats in zip(candidates, total, strict=True):
        where = p.sources
        rows.append(
            {
                "one": 1.0,
                "early": float(not denoised),
                "likelihood": -min(nats - best, _FAR) / 4,
                "share": max(best - nats + sure, -_FAR) / 4,
                "whole": -min(nats, _FAR) / 4,
                "gap": -p.gap / 10,
                "surprise": -p.gap / p.tokens,
                "suffix": -min(p.suffix - least, _FAR) / 4,
                "length": math.log(p.tokens),
                "unseen": min(p.unseen, 3),
                **{source: float(source in where) for source in get_args(Source)},
                **{
                    f"{source} rank": 1 / (1 + where[source]) if source in where else 0.0
                    for source in get_args(Source)
                },
                "agree": len(where) - 1.0,
                "before": math.log1p(p.retrieved.before),
                "behind": math.log1p(p.retrieved.behind),
                "count": math.log1p(p.retrieved.count),
                "near": p.retrieved.near,
                "repeats": float((begun + p.text + ends).strip() in above),
            }
        )
    return rows


def _lines_around(request: Infill) -> tuple[set[str], str, str]:
    """The lines above the gap, and the text on its own line before and after it."""
    *above, begun = LINE_END.split(request.prefix)
    return {line.strip() for line in above[-_ABOVE:]}, begun, LINE_END.split(request.suffix, 1)[0]
