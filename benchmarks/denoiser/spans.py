"""Texts from a canvas: of holes between known tokens, both sides in view, and of a gap whose length is not known.

Beside each is what the frozen network writes from left to right. Of holes both know how many tokens the truth has,
which is more than an editor knows. Knows tokens and tensors, no files.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.denoiser.drafts import write
from benchmarks.denoiser.network import MASK, CanvasLora, Read
from benchmarks.denoiser.views import Gap

_LONGEST, _BETWEEN = 4, 2  # tokens of a hole at most, and known ones between two at least
FIRST = ("causal", "canvas", "both")


@dataclass(frozen=True, slots=True)
class Marks:
    """The tokens of a prompt for filling in the middle, and the one that ends a text."""

    prefix: int
    suffix: int
    middle: int
    end: int

    def prompt(self, above: Sequence[int], below: Sequence[int]) -> tuple[int, ...]:
        """Return the prompt of a gap between `above` and `below`."""
        return self.prefix, *above, self.suffix, *below, self.middle

    def sides(self, prompt: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Return the tokens above and below the gap of `prompt`."""
        at = prompt.index(self.suffix)
        return prompt[1:at], prompt[at + 1 : -1]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The tokens of a prompt, as the frozen network has read them."""

    tokens: tuple[int, ...]
    read: Read


def read_prompt(network: CanvasLora, tokens: Sequence[int]) -> Prompt:
    """Return the prompt of `tokens`, read."""
    return Prompt(tuple(tokens), network.read(torch.tensor([tokens])))


def text_of(gap: Gap) -> tuple[int, ...]:
    """Return the text of `gap` without the token that ends it."""
    return gap.text[: len(gap.text) - gap.whole]


def spans_of(gap: Gap, count: int, chance: random.Random) -> list[range] | None:
    """Return `count` places in the text of `gap` for holes, none at its beginning or end; None if it is too short."""
    length = len(text_of(gap))
    sizes = [chance.randint(1, _LONGEST) for _ in range(count)]
    spare = length - sum(sizes) - _BETWEEN * (count - 1) - 2
    if spare < 0:
        return None
    cuts = sorted(chance.randint(0, spare) for _ in range(count))
    spans, at = list[range](), 1
    for number, size in enumerate(sizes):
        start = at + cuts[number] - (cuts[number - 1] if number else 0)
        spans.append(range(start, start + size))
        at = start + size + _BETWEEN
    return spans


@torch.no_grad()
def denoise(
    network: CanvasLora, prompt: Prompt, canvas: Sequence[int], first: str, end: int | None = None
) -> list[int]:
    """Return `canvas`, tokens or MASK after `prompt`, with a token for each mask: the surest one a look.

    first: who gives the token after the known ones: the frozen network, which does not see the rest of the canvas, the
    adapted rows, or both, by the sum of their log chances. end: the token that ends a text of unknown length; the text
    ends before the first row that gives it, once no row before that is masked.
    """
    text, known, read = list(canvas), 0, prompt.read
    while MASK in text:
        at = text.index(MASK)
        if at > known:
            read, known = network.read(torch.tensor([text[known:at]]), read), at
        places = [place for place in range(at, len(text)) if text[place] == MASK]
        last = text[at - 1] if at else prompt.tokens[-1]
        chances = _chances(network, read, (len(prompt.tokens) + at, last), text[at:], first=first, end=end)
        best, tokens = chances[[place - at for place in places]].max(1)
        given = tokens.tolist()
        stop = given.index(end) if end in given else len(places)
        if stop == 0:
            return text[:at]
        surest = int(best[:stop].argmax())
        text[places[surest]] = given[surest]
    return text


def _chances(
    network: CanvasLora, read: Read, before: tuple[int, int], rest: list[int], *, first: str, end: int | None
) -> Tensor:
    """Return the log chances [rows, tokens] of each row of `rest`, which is masked at its beginning.

    before: how many tokens are before it, and the last of them.
    """
    own = network.scores(read.states[0, -1:])[:, :-1].log_softmax(1)
    # Row i gives token i + 1: the last known token is on the canvas if the adapted rows are to give the one after it.
    known, last = before
    canvas, start = ([last, *rest], known - 1) if first != "causal" else (rest, known)
    states = network.look(read, [start], torch.tensor([canvas]), [0])[0, :-1]
    scores = network.scores(states)
    if end is None:
        scores = scores[:, :-1]
    found = scores.log_softmax(1)
    if end is not None:
        found[:, end] = torch.logaddexp(found[:, end], found[:, -1])
        found = found[:, :-1]
    if first == "causal":
        return torch.cat([own, found])
    if first == "both":
        found[0] = (found[0] + own[0]).log_softmax(0)
    return found


def on_canvas(network: CanvasLora, gap: Gap, spans: Sequence[range], first: str) -> list[list[int]]:
    """Return the tokens of each of `spans` of the text of `gap`, filled on one canvas."""
    text = text_of(gap)
    masked = [MASK if any(place in span for span in spans) else token for place, token in enumerate(text)]
    filled = denoise(network, read_prompt(network, gap.prompt), masked, first)
    return [filled[span.start : span.stop] for span in spans]


@torch.no_grad()
def one_by_one(
    network: CanvasLora, gap: Gap, spans: Sequence[range], marks: Marks, *, between: bool
) -> list[list[int]]:
    """Return the tokens of each of `spans`, each written from left to right after what is known and written.

    between: each is a gap of its own, with what is known after it in its prompt, the later ones left out; else the
    network writes in the prompt of the gap, and sees of what is after a span only the text below the gap.
    """
    above, below = marks.sides(gap.prompt)
    text, found = text_of(gap), list[list[int]]()
    before, at = list[int](), 0
    for span in spans:
        before += text[at : span.start]
        hidden = {place for other in spans for place in other if place >= span.start}
        after = [text[place] for place in range(span.stop, len(text)) if place not in hidden]
        prompt = marks.prompt([*above, *before], [*after, *below]) if between else (*gap.prompt, *before)
        _, (written, *_) = write(network, torch.tensor([prompt]), marks.end, len(span))
        found.append([token for token in written if token != marks.end])
        before, at = before + found[-1], span.stop
    return found


def put_back(text: Sequence[int], spans: Sequence[range], filled: Sequence[Sequence[int]]) -> list[int]:
    """Return `text` with the tokens `filled` in place of `spans`."""
    found, at = list[int](), 0
    for span, tokens in zip(spans, filled, strict=True):
        found += [*text[at : span.start], *tokens]
        at = span.stop
    return [*found, *text[at:]]


def from_left_to_right(network: CanvasLora, prompt: Sequence[int], end: int, most: int) -> list[int]:
    """Return the text that the frozen network writes after `prompt`, of at most `most` tokens."""
    with torch.no_grad():
        _, (written,) = write(network, torch.tensor([prompt]), end, most)
    return [token for token in written if token != end]
