"""Edits: the other places of a change that was made at one place."""

from dg_lsp.edits.next_edit import guessed, is_sound, may_be_followed, nearest, next_edits
from dg_lsp.edits.places import Place
from dg_lsp.edits.related import Related, hunks_of, lines_from, related_lines
from dg_lsp.edits.spans import line_edit

__all__ = [
    "Place",
    "Related",
    "guessed",
    "hunks_of",
    "is_sound",
    "line_edit",
    "lines_from",
    "may_be_followed",
    "nearest",
    "next_edits",
    "related_lines",
]
