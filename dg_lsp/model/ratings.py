"""Ratings: the likelihood of given texts as the fill of a gap, in sight of both of its sides; nothing is written."""

from collections.abc import Generator

from dg_lsp.messages import Draft, Fill
from dg_lsp.model.likelihood import neg_log_likelihoods
from dg_lsp.model.networks.base import Reader
from dg_lsp.model.task import Task

_UNABLE = "this checkpoint rates no edits; a model that was trained on fill-in-the-middle does, such as coder"


def rate(task: Task) -> Generator[Draft | Fill, None, None]:
    """Rate the texts of the request; yield Drafts, then one Fill with the ratings, or with the reason for none.

    Only networks that see both sides of a gap do: what a rating says was measured with these.
    """
    model, request = task.model, task.request
    if not (model.ends and isinstance(model.network, Reader)):
        yield task.clock.stamp(Fill("", parses=False, refusal=_UNABLE))
        return
    prefix, seam = task.tokens
    yield from task.encode((*prefix, *seam.head))
    texts = [model.encode(text) + model.ends[:1] for text in request.rated]
    nats = neg_log_likelihoods(model.network, task.cache, texts, [0] * len(texts))
    yield task.clock.stamp(Fill("", ratings=tuple(nats)))
