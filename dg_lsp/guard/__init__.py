"""Guard: what closes a text, whether it fits its place, and what harm it would do."""

from dg_lsp.guard import check, fit
from dg_lsp.guard.baseline import complaint, is_last_of_span
from dg_lsp.guard.confirm import doubt, note_of, unsure, useless, why_confirm, written_lines
from dg_lsp.guard.endings import closed_below, end_of_item, end_of_next, hint, may_continue, opens_below
from dg_lsp.guard.flaws import flaws_of, missing_name
from dg_lsp.guard.harm import harm_of, unchecked
from dg_lsp.guard.room import is_in_header, left_open
from dg_lsp.guard.site import Site, newline_of, site_of, to_bytes
from dg_lsp.guard.stitch import (
    Break,
    Written,
    ended,
    find_break,
    first_sentence,
    go_on,
    goes_round,
    shorten,
    sure_beginning,
    without_round,
)

__all__ = [
    "Break",
    "Site",
    "Written",
    "check",
    "closed_below",
    "complaint",
    "doubt",
    "end_of_item",
    "end_of_next",
    "ended",
    "find_break",
    "first_sentence",
    "fit",
    "flaws_of",
    "go_on",
    "goes_round",
    "harm_of",
    "hint",
    "is_in_header",
    "is_last_of_span",
    "left_open",
    "may_continue",
    "missing_name",
    "newline_of",
    "note_of",
    "opens_below",
    "shorten",
    "site_of",
    "sure_beginning",
    "to_bytes",
    "unchecked",
    "unsure",
    "useless",
    "why_confirm",
    "without_round",
    "written_lines",
]
