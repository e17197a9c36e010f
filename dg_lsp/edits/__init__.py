"""Edits: the other places of a change that was made at one place."""

from dg_lsp.edits.functions import adds_parameter
from dg_lsp.edits.guesses import Example, guesses
from dg_lsp.edits.next_edit import example_of, is_sound, nearest, next_edits
from dg_lsp.edits.places import Place, source_of

__all__ = [
    "Example",
    "Place",
    "adds_parameter",
    "example_of",
    "guesses",
    "is_sound",
    "nearest",
    "next_edits",
    "source_of",
]
