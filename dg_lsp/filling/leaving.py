"""Leaving: what a request may contain for its receiver: the model of this machine, or a server of `engine_url`.

All requests go through it, those for fills and those for ratings.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from dg_lsp.settings import Settings
from dg_lsp.text.languages.language import suffixes
from dg_lsp.text.messages import Infill, Piece
from dg_lsp.text.related.secrets import secrets_in


def leaving(request: Infill, settings: Settings, old: Sequence[Piece] = ()) -> Infill:
    """Return `request` with what its receiver may get: the engine that `settings` choose.

    A model of this machine gets `old`, texts that were replaced and are in no file any more, unless something in them
    looks like a key. A server gets none of these, and no name of a file: `../billing/rates.py` becomes `1.py`.
    """
    if settings.engine_url:
        pieces = enumerate(request.context, 1)
        return replace(
            request, context=tuple(Piece(_nameless(piece.path, n), piece.text) for n, piece in pieces)
        )
    kept = tuple(piece for piece in old if not secrets_in(piece.text))
    return replace(request, context=(*request.context, *kept)) if kept else request


def _nameless(path: str, number: int) -> str:
    """Return a name that says nothing of `path` but its language."""
    suffix = PurePosixPath(path).suffix
    return f"{number}{suffix if suffix in suffixes() else ''}"
