"""Views of a gap, and what a step of the training learns of them. Knows tokens and tensors, no files.

A view hides tokens of the gap's text. What is known before the first of them is read causally by the frozen network.
The canvas begins at that one, which the network gives by itself, so that the first thing to learn is the token after.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.denoiser.network import DELETE, MASK, Among, CanvasLora

_DELETED = 2  # rows after the end that count in a view, as one token together
_LIKELY = 32  # tokens of the network's own chances that are learned


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap: the tokens of its prompt, and of its text; a text that is `whole` ends with the network's end token."""

    prompt: tuple[int, ...]
    text: tuple[int, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class View:
    """A view of a gap's text after its first `known` tokens.

    canvas: a token or MASK a row. goals: for each row the token that it is to give, DELETE after the text's end, or
    None where nothing is hidden, or nothing known. places: the place of each goal in the text.
    """

    known: int
    canvas: list[int]
    goals: list[int | None]


def views_of(gap: Gap, width: int, chance: random.Random) -> list[View]:
    """Return four views: two of which all after a known beginning is hidden, and two that hide what the other shows."""
    count = len(gap.text)
    beginnings = [set(range(chance.randrange(count), count)) for _ in range(2)]
    share = chance.random()
    some = {place for place in range(count) if chance.random() < share}
    some = some if 0 < len(some) < count or count < 2 else {chance.randrange(count)}
    hidden = [*beginnings, some or {0}, set(range(count)) - some or {0}]
    return [_view(gap, one, width) for one in hidden]


def _view(gap: Gap, hidden: set[int], width: int) -> View:
    """Return the view in which the places `hidden` of the text are masked."""
    known, count = min(hidden), len(gap.text)
    canvas = [
        gap.text[place] if place < count and place not in hidden else MASK
        for place in range(known, known + width)
    ]
    goals: list[int | None] = []
    for place in range(known + 1, known + width + 1):
        if place < count:
            goals.append(gap.text[place] if place in hidden else None)
        else:
            goals.append(DELETE if gap.whole else None)
    return View(known, canvas, goals)


def loss_of(
    network: CanvasLora,
    gaps: Sequence[Gap],
    width: int,
    chance: random.Random,
    own: float = 0.5,
    *,
    among: Among | None = None,
) -> Tensor:
    """Return the mean loss of the four views of each of `gaps`, whose prompts have as many tokens.

    own: the share of the loss that the network's own chances are, where it has read the true text up to there.
    among: the tokens that count, those of all goals at least; the whole vocabulary if None.
    """
    longest = max(len(gap.text) for gap in gaps)
    texts = [[*gap.prompt, *gap.text, *gap.text[-1:] * (longest - len(gap.text))] for gap in gaps]
    read = network.read(torch.tensor(texts))
    start = len(gaps[0].prompt)
    found = [(number, view) for number, gap in enumerate(gaps) for view in views_of(gap, width, chance)]
    states = network.look(
        read,
        [start + view.known for _, view in found],
        torch.tensor([view.canvas for _, view in found]),
        [number for number, _ in found],
    )
    rows, goals, weights, teachers = [], list[int](), list[float](), []
    for canvas, (number, view) in enumerate(found):
        after = [row for row, goal in enumerate(view.goals) if goal == DELETE]
        after = chance.sample(after, min(_DELETED, len(after)))
        for row, goal in enumerate(view.goals):
            if goal is not None and (goal != DELETE or row in after):
                rows.append(canvas * width + row)
                goals.append(goal)
                weights.append(1 / len(after) if goal == DELETE else 1.0)
                # The token before the goal gives the network's own chances of it.
                teachers.append(number * len(texts[0]) + start + view.known + row if goal != DELETE else -1)
    scores = network.scores(states.flatten(0, 1)[rows], among).log_softmax(1)
    wanted = torch.tensor(goals)
    if among is not None:
        wanted = torch.searchsorted(among.tokens, wanted)
    wanted[torch.tensor(goals) == DELETE] = scores.shape[1] - 1
    losses, weight = -scores.gather(1, wanted[:, None])[:, 0], torch.tensor(weights)
    if own:
        taught = [row for row, teacher in enumerate(teachers) if teacher >= 0]
        with torch.no_grad():
            theirs = read.states.flatten(0, 1)[[teachers[row] for row in taught]]
            chances, likely = (
                network.scores(theirs, among)[:, :-1].softmax(1).topk(min(_LIKELY, scores.shape[1] - 1))
            )
        learned = -(chances / chances.sum(1, keepdim=True) * scores[taught].gather(1, likely)).sum(1)
        losses = losses.index_put((torch.tensor(taught),), (1 - own) * losses[taught] + own * learned)
    return (losses * weight).sum() / weight.sum()
