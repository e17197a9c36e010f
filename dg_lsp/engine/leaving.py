"""Which files may be sent to another machine. Knows names only; reads nothing."""

from functools import lru_cache
from pathlib import PurePosixPath

from dg_lsp.filling.engine import EngineError
from dg_lsp.text.documents.excluded import excluding, split_uri
from dg_lsp.text.messages import Infill


def check_leaving(request: Infill, globs: tuple[str, ...]) -> None:
    """Refuse a request with text of a file that must not leave this machine.

    Raises:
        EngineError: one of `globs` names it.
    """
    for name in (request.session, *(piece.path for piece in request.context)):
        if reason := _kept_here(name, globs):
            raise EngineError(reason)


@lru_cache(1024)
def _kept_here(name: str, globs: tuple[str, ...]) -> str:
    """Why the file `name`, a uri or a path, must not leave this machine, as a sentence; empty if it may.

    The workspace folder is not known here, so each end of the path is compared.
    """
    parts = PurePosixPath(split_uri(name)[1]).parts
    for start in range(len(parts)):
        if glob := excluding(PurePosixPath(*parts[start:]), globs):
            return (
                f"{parts[-1]} is excluded by {glob} in the setting exclude, so it is not sent to the server"
            )
    return ""
