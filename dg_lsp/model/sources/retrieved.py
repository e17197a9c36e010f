"""Texts retrieved from the project: those that follow the same words elsewhere."""

from collections.abc import Generator

from dg_lsp.model.candidates import Candidate
from dg_lsp.model.task import Task
from dg_lsp.text.messages import Draft


def retrieved(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Return the texts that came with the request, the best first."""
    yield from ()
    found = enumerate(task.request.retrieved)
    return [Candidate(one.text, {"retrieved": rank}) for rank, one in found]
