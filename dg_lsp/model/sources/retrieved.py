"""Texts retrieved from the project: those that follow the same words elsewhere."""

from collections.abc import Generator

from dg_lsp.messages import Draft
from dg_lsp.model.candidates import Candidate
from dg_lsp.model.task import Task


def retrieved(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Return the texts that came with the request, the best first."""
    yield from ()
    found = enumerate(task.request.retrieved)
    return [Candidate(one.text, {"retrieved": rank}) for rank, one in found]
