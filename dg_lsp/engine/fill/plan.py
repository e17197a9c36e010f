"""What a kind of gap and an effort come to: canvas, steps, lengths. Numbers only; knows no network and no text."""

from dataclasses import dataclass, replace

from dg_lsp.engine.fill.length import Search
from dg_lsp.text.messages import PARTS, Effort, Infill

ANCHORS = 12  # slots that a canvas keeps for the suffix, so that the fill knows where it must arrive


@dataclass(frozen=True, slots=True)
class Plan:
    """How one Infill is worked on.

    slots: canvas length wanted. steps: denoising steps at most. finalists: lengths that are denoised to the
    end, in batches of `batch`, until one gives a fill that parses. search: how the lengths are ranked. limit: tokens
    of a fill from which on no further canvas is begun; 0 is one canvas. draws: rows of each length in a batch; the
    encoder chooses among them.
    """

    slots: int
    steps: int
    batch: int
    finalists: int
    search: Search
    limit: int = 0
    draws: int = 1


# Rounds of mending a broken fill, by effort, and the denoising steps of each: a span is short, so it needs few.
ROUNDS: dict[Effort, int] = {"low": 1, "normal": 2, "high": 4}
MENDING = 6
# The search's prior: token counts at about equal steps of their share among gaps of the kind, as the embedded
# tokenizer counts them in real files. Its calibration is still to come.
_LINE = (1, 2, 3, 4, 6, 8, 11, 15, 20)
_BODY = (4, 8, 13, 18, 24, 30, 38, 48, 60, 75, 95)
# Mean and standard deviation of the logarithm of their token counts, 600 of each in the standard library.
_USUAL = {"rest_of_line": (1.58, 0.73), "expression": (1.49, 0.83), "statement": (2.28, 0.64)}
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
    return replace(plan, search=replace(plan.search, usual=_USUAL.get(request.kind)))
