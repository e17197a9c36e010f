"""The plan for a kind of gap and an effort: canvas length, steps, lengths to try. Numbers only; no network, no text."""

from dataclasses import dataclass, replace

from dg_lsp.model.length import Search
from dg_lsp.text.messages import PARTS, Effort, Infill

ANCHORS = 12  # slots of a canvas that are kept for the suffix, so that the fill can join it


@dataclass(frozen=True, slots=True)
class Writing:
    """The plan for drafts: `rows` texts at a time, of at most `tokens` tokens each."""

    rows: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for one Infill.

    slots: the canvas length wanted. steps: denoising steps at most. finalists: how many of the best lengths are
    denoised to the end, in batches of `batch` lengths, until a fill can be shown. search: how lengths are ranked.
    limit: no further canvas is begun once a fill has this many tokens; 0 allows one canvas. draws: rows of each length
    in a batch; the likelihood decides among them. drafts: how the encoder drafts texts.
    """

    slots: int
    steps: int
    batch: int
    finalists: int
    search: Search
    limit: int = 0
    draws: int = 1
    drafts: Writing = Writing(6, 16)


# By effort: rounds of repair of a broken fill. A repaired span is short, so each round takes `MENDING` denoising steps.
ROUNDS: dict[Effort, int] = {"low": 1, "normal": 2, "high": 4}
MENDING = 6
# The lengths of the first search round: quantiles of the token counts of such gaps in real files, by the embedded
# tokenizer. They are not calibrated for other tokenizers.
_LINE = (1, 2, 3, 4, 6, 8, 11, 15, 20)
_BODY = (4, 8, 13, 18, 24, 30, 38, 48, 60, 75, 95)
# The prior of a length: mean and standard deviation of the logarithm of the token counts of 600 gaps of each kind in
# Python's standard library.
_PRIORS = {"rest_of_line": (1.58, 0.73), "expression": (1.49, 0.83), "statement": (2.28, 0.64)}
# Eight rows find better first bodies than four, and six no sooner (docs/research/bodies.md).
_BODY_DRAFTS: dict[Effort, Writing] = {
    "low": Writing(2, 96),
    "normal": Writing(8, 160),
    "high": Writing(12, 320),
}
# A docstring that does not close by then is cut to its first sentence.
_DOCSTRING_DRAFTS: dict[Effort, Writing] = {
    "low": Writing(2, 96),
    "normal": Writing(4, 96),
    "high": Writing(8, 96),
}
_PLANS = {
    ("rest_of_line", "low"): Plan(64, 8, 1, 2, Search(_LINE[1::2], draws=1, steps=1, refined=2)),
    ("rest_of_line", "normal"): Plan(64, 12, 3, 6, Search(_LINE, draws=1, steps=1, refined=3), draws=2),
    ("rest_of_line", "high"): Plan(64, 24, 4, 12, Search(_LINE, draws=4, steps=2, refined=12), draws=2),
    ("function_body", "low"): Plan(128, 16, 1, 2, Search(_BODY[::2], draws=1, steps=1, refined=2), 256),
    ("function_body", "normal"): Plan(128, 32, 2, 4, Search(_BODY, draws=1, steps=1, refined=6), 1024),
    ("function_body", "high"): Plan(128, 48, 4, 16, Search(_BODY, draws=4, steps=2, refined=16), 2048),
}


def plan_for(request: Infill) -> Plan:
    """The plan for the request's kind and effort."""
    plan = _PLANS["rest_of_line" if request.kind in PARTS else "function_body", request.effort]
    if request.kind not in PARTS:
        drafts = _DOCSTRING_DRAFTS if request.kind == "docstring" else _BODY_DRAFTS
        plan = replace(plan, drafts=drafts[request.effort])
    return replace(plan, search=replace(plan.search, prior=_PRIORS.get(request.kind)))
