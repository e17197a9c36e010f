"""Gaps: where a fill begins and ends."""

from dg_lsp.gaps.body import step_near
from dg_lsp.gaps.find import (
    Gap,
    NoGap,
    code_with,
    find_function,
    find_gap,
    find_gaps,
    find_named,
    find_selected,
    find_span,
    reach,
)
from dg_lsp.gaps.gap import Edit, apply_edit, unified_diff
from dg_lsp.gaps.open import finished
from dg_lsp.gaps.plain import REACH, open_at
from dg_lsp.gaps.words import endings, half_word, is_part, typed_half

__all__ = [
    "REACH",
    "Edit",
    "Gap",
    "NoGap",
    "apply_edit",
    "code_with",
    "endings",
    "find_function",
    "find_gap",
    "find_gaps",
    "find_named",
    "find_selected",
    "find_span",
    "finished",
    "half_word",
    "is_part",
    "open_at",
    "reach",
    "step_near",
    "typed_half",
    "unified_diff",
]
