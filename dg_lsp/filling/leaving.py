"""Leaving: what a request may contain for its receiver: the model of this machine, or a server of `engine_url`.

All requests go through it, those for fills and those for next edits.
"""

from dataclasses import replace
from pathlib import PurePosixPath

from dg_lsp.messages import Infill, Piece
from dg_lsp.settings import Settings
from dg_lsp.source.language import suffixes


def leaving(request: Infill, settings: Settings) -> Infill:
    """Return `request` with what its receiver may get: the engine that `settings` choose.

    Neither gets a word that is in no file any more, since no request is made of one. A server gets no name of a file:
    `../billing/rates.py` becomes `1.py`.
    """
    if not settings.engine_url:
        return request
    pieces = enumerate(request.context, 1)
    paths = {path: n for n, path in enumerate(dict.fromkeys(hunk.path for hunk in request.edits), 1)}
    return replace(
        request,
        context=tuple(Piece(_nameless(piece.path, n), piece.text) for n, piece in pieces),
        edits=tuple(replace(hunk, path=_nameless(hunk.path, paths[hunk.path])) for hunk in request.edits),
    )


def _nameless(path: str, number: int) -> str:
    """Return a name that says nothing of `path` but its language."""
    suffix = PurePosixPath(path).suffix
    return f"{number}{suffix if suffix in suffixes() else ''}"
