"""Drafts of a canvas at places of held-out gaps, beside the network's own text and beside copies from the file.

The text is the one that the frozen network writes by itself, its greedy text. At a place its last known token is read
causally, which gives the next one, the frontier, and the rows of the canvas, all masked, give those after it. What a
pass of the network would accept is the run of rows that agree with its text.
"""

import json
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from benchmarks.denoiser.network import MASK, CanvasLora, Read
from benchmarks.denoiser.views import Gap

MOST = 24  # tokens of a text
_TOGETHER = 8  # gaps, or canvases, in a pass
_EACH = 2  # places of a gap
_COPIED = 8  # tokens of a copy at most
Found = dict[str, list[list[float]]]  # by gap, a number for each of its places


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the network's own text: the number of its gap, and of the tokens that are known."""

    gap: int
    known: int


def write(network: CanvasLora, prompts: Tensor, end: int, most: int = MOST) -> tuple[Read, list[list[int]]]:
    """Return the greedy texts of the frozen network after `prompts` [texts, tokens], up to `end`, and all as read."""
    read = network.read(prompts)
    found = [network.scores(read.states[:, -1])[:, :-1].argmax(1)]
    while len(found) < most and not bool((torch.stack(found) == end).any(0).all()):
        read = network.read(found[-1][:, None], read)
        found.append(network.scores(read.states[:, -1])[:, :-1].argmax(1))
    texts = torch.stack(found, 1).tolist()
    return read, [text[: text.index(end) + 1] if end in text else text for text in texts]


def prepare(network: CanvasLora, gaps: Sequence[Gap], end: int, path: Path) -> None:
    """Write the own texts for `gaps`, and what was read for them, to `path`."""
    tensors, texts = dict[str, Tensor](), list[list[int]]()
    for at in range(0, len(gaps), _TOGETHER):
        read, some = write(network, torch.tensor([gap.prompt for gap in gaps[at : at + _TOGETHER]]), end)
        for layer, (key, value) in enumerate(read.pairs):
            tensors |= {f"{at}.{layer}.key": key.contiguous(), f"{at}.{layer}.value": value.contiguous()}
        texts += some
        print(f"{len(texts)} texts", flush=True)
    save_file(tensors, path, {"texts": json.dumps(texts)})


def places_of(texts: Sequence[Sequence[int]], seed: int = 0) -> list[Place]:
    """Return at most _EACH places of each of `texts` after which there are two tokens at least."""
    chance = random.Random(seed)
    found = []
    for number, text in enumerate(texts):
        room = range(len(text) - 1)
        found += [Place(number, known) for known in sorted(chance.sample(room, min(_EACH, len(room))))]
    return found


@torch.no_grad()
def draft(
    network: CanvasLora, stored: dict[str, Tensor], start: int, places: Sequence[Place], width: int
) -> list[list[int]]:
    """Return the tokens of the rows of a masked canvas at each of `places`; `start` tokens are in a prompt."""
    found, layers = list[list[int]](), len(network.network.model.layers)
    for at in range(0, 1 + max(place.gap for place in places), _TOGETHER):
        here = [place for place in places if at <= place.gap < at + _TOGETHER]
        pairs = [(stored[f"{at}.{n}.key"], stored[f"{at}.{n}.value"]) for n in range(layers)]
        read = Read(pairs, pairs[0][0])
        if here:
            states = network.look(
                read,
                [start + place.known for place in here],
                torch.full((len(here), width), MASK),
                [place.gap - at for place in here],
            )
            near = states[:, :_COPIED].flatten(0, 1)
            found += network.scores(near).argmax(1).view(len(here), -1).tolist()
    return found


def copied(before: Sequence[int], after: Sequence[int], longest: int = 4) -> list[int]:
    """Return the tokens after another place of the file with the same last tokens, as many of them as possible."""
    for size in range(longest, 0, -1):
        wanted = list(before[-size:])
        for text in (before, after):
            for at in range(len(text) - size - 1, -1, -1):
                if list(text[at : at + size]) == wanted:
                    return list(text[at + size :][:_COPIED])
    return []


def accepted(drafted: Sequence[int], truth: Sequence[int]) -> int:
    """Return how many tokens at the beginning of `drafted` are those of `truth`."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(drafted, truth, strict=False)))


def interval(values: Sequence[Sequence[float]], seed: int = 0) -> tuple[float, float, float]:
    """Return the mean of `values`, which are grouped by gap, and its 95 % bootstrap interval over gaps."""
    chance, kept = random.Random(seed), [group for group in values if group]
    sums = [(sum(group), len(group)) for group in kept]
    means = []
    for _ in range(1000):
        some = chance.choices(sums, k=len(sums))
        means.append(sum(total for total, _ in some) / sum(count for _, count in some))
    means.sort()
    whole = sum(total for total, _ in sums) / sum(count for _, count in sums)
    return whole, means[24], means[974]


def until_as_many_lines(text: Sequence[int], truth: Sequence[int], breaks: Collection[int]) -> list[int]:
    """Return `text` up to the end of as many lines as `truth` has; `breaks` are the tokens that end lines."""
    left, found = sum(token in breaks for token in truth), list[int]()
    for token in text:
        found.append(token)
        left -= token in breaks
        if left < 0:
            break
    return found


def report(
    network: CanvasLora, gaps: Sequence[Gap], prepared: Path, texts: Sequence[Sequence[int]], width: int
) -> Found:
    """Return by gap, for each place, whether rows 1, 2 and 3 after the frontier agree, and the tokens of a draft.

    Its tokens are the frontier, the rows that agree, and the one that the pass of verification gives after them.
    """
    places = places_of(texts)
    drafts = draft(network, load_file(prepared), len(gaps[0].prompt), places, width)
    found: Found = {name: [[] for _ in gaps] for name in ("row 1", "row 2", "row 3", "tokens")}
    for place, drafted in zip(places, drafts, strict=True):
        truth = texts[place.gap][place.known + 1 :]
        found["tokens"][place.gap].append(2.0 + accepted(drafted, truth))
        for number in range(min(3, len(truth))):
            found[f"row {number + 1}"][place.gap].append(float(drafted[number] == truth[number]))
    return found


def report_copies(
    gaps: Sequence[Gap], texts: Sequence[Sequence[int]], files: Sequence[tuple[list[int], list[int]]]
) -> Found:
    """Return by gap, for each place of `report`, the tokens of a copy from the file with its pass."""
    found: Found = {name: [[] for _ in gaps] for name in ("tokens of one pass", "has a copy")}
    for place in places_of(texts):
        before, after = files[place.gap]
        text = texts[place.gap]
        drafted = copied([*before, *text[: place.known]], after)
        found["tokens of one pass"][place.gap].append(1.0 + accepted(drafted, text[place.known :]))
        found["has a copy"][place.gap].append(float(bool(drafted)))
    return found
