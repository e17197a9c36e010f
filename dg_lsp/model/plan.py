"""The plan for a gap: canvas length, steps, lengths to try, by its kind, the effort, and what the deadline allows here.

Numbers only; no text.
"""

from dataclasses import dataclass, replace
from typing import get_args

from dg_lsp.messages import OFF, PARTS, Effort, Infill
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.costs import Costs
from dg_lsp.model.length import Search

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
    in a batch; the likelihood decides among them. drafts: how the encoder drafts texts. width: the slots of a canvas
    where the deadline decides, 0 where the checkpoint does. drafted: what is denoised starts from a draft. least: the
    estimated seconds of the shortest denoising.
    """

    slots: int
    steps: int
    batch: int
    finalists: int
    search: Search
    limit: int = 0
    draws: int = 1
    drafts: Writing = Writing(6, 16)
    width: int = 0
    drafted: bool = False
    least: float = 0.0


# By effort: rounds of repair of a broken fill. A repaired span is short, so a round takes `REPAIR_STEPS` steps.
ROUNDS: dict[Effort, int] = {"low": 1, "normal": 2, "high": 4}
REPAIR_STEPS = 6
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
# Texts for a part of a line where both sides of the gap are in sight, by whether one is wanted: two rows find as many
# right ones as four with a quarter fewer passes (docs/research/candidates-and-judge.md).
_LINE_IN_SIGHT = {True: Writing(2, 32), False: Writing(4, 32)}
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


# Denoising steps from a draft, of which a share is noise, where the time does not allow a search and steps from noise.
FEW, NOISED = 4, 0.5
# Shares of a deadline in which texts are drafted: the rest is for reading them, or for denoising.
_DRAFTING: dict[bool, float] = {True: 0.5, False: 0.8}
_USUAL = 8  # tokens that a drafted part of a line has, at most usually
# Tokens that are typed between two requests, and those of the shortest text beside its suffix.
_TYPED, _READ = 8, 16


def plan_for(request: Infill, model: Checkpoint | None = None) -> Plan:
    """The plan for the request's kind and effort, and for its deadline if `model` has measured costs.

    Without a deadline nobody waits, and the plan depends on the effort only, so that fills can be repeated (law 4).
    """
    plan = _plan_of(request, request.effort)
    if model is not None and model.ends:
        plan = replace(plan, drafts=_in_sight(plan.drafts, request))
    if model is None or model.costs is None or request.deadline is None:
        return plan
    return _in_time(plan, request, model, request.deadline)


def why_off(request: Infill, model: Checkpoint) -> str:
    """Return why ghost text that nobody has asked for could not come in time, as a sentence; empty if it could."""
    if model.costs is None or request.deadline is None or not request.confidence:
        return ""
    least = model.costs.seconds(_TYPED) + 3 * model.costs.token + model.costs.seconds(_READ)
    if least <= request.deadline:
        return ""
    return (
        f"{OFF} here the shortest takes {least:.1f} s, and ghostDeadline leaves {request.deadline:.1f} s; ask for it "
        "by its command, raise ghostDeadline, or take a smaller checkpoint"
    )


def may_denoise(left: float | None, plan: Plan) -> bool:
    """Return whether the `left` seconds, None if there is no deadline, allow the shortest denoising."""
    return left is None or left >= plan.least


def widths(plan: Plan, model: Checkpoint) -> tuple[int, ...]:
    """The lengths that a canvas of `plan` may have, ascending."""
    return tuple(sorted({*model.canvas_lengths, *([plan.width] if plan.width else [])}))


def _plan_of(request: Infill, effort: Effort) -> Plan:
    plan = _PLANS["rest_of_line" if request.kind in PARTS else "function_body", effort]
    if request.kind not in PARTS:
        drafts = _DOCSTRING_DRAFTS if request.kind == "docstring" else _BODY_DRAFTS
        plan = replace(plan, drafts=drafts[effort])
    return replace(plan, search=replace(plan.search, prior=_PRIORS.get(request.kind)))


def _in_sight(drafts: Writing, request: Infill) -> Writing:
    """`drafts` for a network that sees both sides of the gap: fewer, since the first one is good, and longer ones."""
    if request.kind in PARTS:
        return _LINE_IN_SIGHT[request.alternatives == 1]
    return Writing(max(drafts.rows // 2, 2), 2 * drafts.tokens)


def _in_time(plan: Plan, request: Infill, model: Checkpoint, seconds: float) -> Plan:
    """`plan` with as much as can be done in `seconds` by the measured costs.

    1. The highest effort, up to that of the request, whose search and steps fit; on canvases as the checkpoint has
    them, or else as short as the plan's.  2. If none fits, a few steps from a draft, on a short canvas.  3. As many
    drafts as can be written, of as many tokens.
    """
    costs, efforts = model.costs, get_args(Effort)
    assert costs is not None
    stated = next((n for n in model.canvas_lengths if n >= plan.slots), model.canvas_lengths[-1])
    least = FEW * costs.seconds(plan.slots)
    if model.ends:  # nothing follows the drafts, and the clock ends them
        rows = _drafts_in_time(plan.drafts, costs, seconds).rows
        drafts = replace(plan.drafts, rows=rows)
    else:
        drafts = _drafts_in_time(plan.drafts, costs, seconds * _DRAFTING[request.kind in PARTS])
    # 1.
    for effort in reversed(efforts[: efforts.index(request.effort) + 1]):
        tried = _plan_of(request, effort)
        for width in sorted({stated, tried.slots}, reverse=True):
            if _denoising(tried, costs, width) <= seconds:
                return replace(tried, width=width, drafts=drafts, least=least)
    # 2.
    few = replace(tried, steps=FEW, batch=1, finalists=1, width=plan.slots, drafted=True)
    return replace(few, drafts=drafts, least=least)


def _denoising(plan: Plan, costs: Costs, width: int) -> float:
    """The estimated seconds of a length search and of the first batch, on canvases of `width` slots."""
    search, rows = plan.search, plan.batch * plan.draws
    tried = search.draws * search.steps
    searched = costs.seconds(len(search.lengths) * search.draws * width) * search.steps
    again = costs.seconds(search.refined * tried * width)
    return searched + again + plan.steps * costs.seconds(rows * width)


def _drafts_in_time(drafts: Writing, costs: Costs, seconds: float) -> Writing:
    """As many of `drafts` as can be written in `seconds`, and as long."""
    usual = min(drafts.tokens, max(_USUAL, drafts.tokens // 2))
    fit = (n for n in range(drafts.rows, 1, -1) if usual * costs.seconds(n) <= seconds)
    rows = next(fit, 1)
    return Writing(rows, min(drafts.tokens, max(int(seconds / costs.seconds(rows)), 1)))
