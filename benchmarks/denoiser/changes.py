"""Known texts that become others: a broken text is repaired, and old text is rewritten after another edit.

Beside the canvas is what the frozen network writes from left to right, and for repairs in Python the `embedded` model.
Texts are broken by a token that is left out, doubled or another one; the places of rewriting are those that scenarios
of next edits want, so that no way has to find them.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer

from benchmarks import run_to_end
from benchmarks.denoiser.cuts import ABOVE, BELOW, Cut
from benchmarks.denoiser.drafts import write
from benchmarks.denoiser.network import MASK, CanvasLora
from benchmarks.denoiser.spans import Marks, Prompt, denoise, from_left_to_right, read_prompt, text_of
from benchmarks.next_edit import Player, Scenario
from dg_lsp.guard import find_break
from dg_lsp.messages import Fill, Infill, Kind
from dg_lsp.model.batch import CheckedRow
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.plan import ROUNDS
from dg_lsp.model.repair import CHANGES, Origin, free, repair
from dg_lsp.model.tokens import tokenise

MOST = 32  # tokens of a text
UNSURE = 0.1  # the chance below which a token of old text is noise
_TRIES = 30  # ways to break a text
_SLOTS = 256  # of a canvas of `embedded`
_LONGER = (0, 1, 2, 3, -1)  # changes of the length of noised text


@dataclass(frozen=True, slots=True)
class Broken:
    """A gap with a text that has one broken place. prompt: its tokens for the causal network."""

    request: Infill
    prompt: tuple[int, ...]
    truth: str
    text: str


@dataclass(frozen=True, slots=True)
class Old:
    """Lines of a file that is edited elsewhere: the texts above and below, and the lines as they are and are wanted."""

    above: str
    below: str
    old: str
    new: str


def broken_texts(cuts: Sequence[Cut], tokenizer: Tokenizer, chance: random.Random) -> Iterator[Broken]:
    """Yield each of `cuts` whose text can be broken, with a text broken at random."""
    for cut in cuts:
        tokens = text_of(cut.gap)
        truth, before, after = (tokenizer.decode(list(some)) for some in (tokens, cut.before, cut.after))
        kind: Kind = "function_body" if "\n" in truth else "rest_of_line"
        request = Infill(before, after, cut.language, kind, effort="normal")
        if len(tokens) < 4 or find_break(request, truth) is not None:
            continue
        for _ in range(_TRIES):
            text = tokenizer.decode(_harmed(tokens, chance))
            if text != truth and find_break(request, text) is not None:
                yield Broken(request, cut.gap.prompt, truth, text)
                break


def _harmed(tokens: Sequence[int], chance: random.Random) -> list[int]:
    """Return `tokens` with one left out, doubled, or in the place of another."""
    at, found = chance.randrange(1, len(tokens)), list(tokens)
    found[at : at + 1] = chance.choice(([], [tokens[at]] * 2, [chance.choice(tokens)]))
    return found


def repaired(case: Broken, tokenizer: Tokenizer, fill: Callable[..., list[list[int]]]) -> str | None:
    """Return the first sound text that `fill` gives for a freed span of the text of `case`, the narrowest span first.

    fill: gets the tokens before the span, its length and the tokens after it, and returns texts.
    """
    damage = find_break(case.request, case.text)
    assert damage is not None, "the text is broken"
    for width in range(ROUNDS[case.request.effort]):
        freed = free(_WithTokenizer(tokenizer), case.text, damage, width)  # type: ignore[arg-type]
        for tokens in fill(freed.head, freed.length, freed.tail):
            found = tokenizer.decode(tokens)
            if find_break(case.request, found) is None:
                return found
    return None


@dataclass(frozen=True, slots=True)
class _WithTokenizer:
    """The part of a checkpoint that `free` needs."""

    tokenizer: Any


def by_canvas(network: CanvasLora, prompt: Prompt, first: str) -> Callable[..., list[list[int]]]:
    """Return a `fill` that denoises the span in each of its lengths, the surest text first."""

    def fill(head: Sequence[int], length: int, tail: Sequence[int]) -> list[list[int]]:
        canvases = ([*head, *[MASK] * (length + change), *tail] for change in CHANGES if length + change > 0)
        texts = [denoise(network, prompt, canvas, first) for canvas in canvases]
        return _likeliest_first(network, prompt, texts)

    return fill


def in_place(network: CanvasLora, prompt: Prompt, marks: Marks) -> Callable[..., list[list[int]]]:
    """Return a `fill` that writes the span from left to right in each of its lengths, the likeliest text first."""

    def fill(head: Sequence[int], length: int, tail: Sequence[int]) -> list[list[int]]:
        _, (written,) = write(
            network, torch.tensor([[*prompt.tokens, *head]]), marks.end, length + max(CHANGES)
        )
        written = [token for token in written if token != marks.end]
        texts = [[*head, *written[: max(length + change, 0)], *tail] for change in CHANGES]
        return _likeliest_first(network, prompt, texts)

    return fill


def onwards(network: CanvasLora, prompt: Prompt, marks: Marks) -> Callable[..., list[list[int]]]:
    """Return a `fill` that writes the text again from the span to its end."""

    def fill(head: Sequence[int], length: int, tail: Sequence[int]) -> list[list[int]]:
        most = length + len(tail) + 8
        return [[*head, *from_left_to_right(network, [*prompt.tokens, *head], marks.end, most)]]

    return fill


@torch.no_grad()
def likelihood(network: CanvasLora, prompt: Prompt, text: Sequence[int]) -> float:
    """Return the mean log chance of the tokens of `text` by the frozen network."""
    read = network.read(torch.tensor([text]), prompt.read)
    states = torch.cat([prompt.read.states[0, -1:], read.states[0, :-1]])
    chances = network.scores(states)[:, :-1].log_softmax(1)
    return float(chances.gather(1, torch.tensor(text)[:, None]).mean())


def _likeliest_first(network: CanvasLora, prompt: Prompt, texts: Sequence[list[int]]) -> list[list[int]]:
    """Return `texts` by their likelihood."""
    return sorted(texts, key=lambda text: likelihood(network, prompt, text), reverse=True)


def by_embedded(model: Checkpoint, case: Broken) -> str | None:
    """Return the text of `case` as `model` repairs it in the product, or None."""
    prefix, seam = tokenise(model, case.request)
    cache = PrefixCache(model.network.config.text_config)
    list(extend_to(model.network, cache, prefix))
    row = CheckedRow(0, Fill(case.text, parses=False, refusal="it is broken"), whole=True)
    origin = Origin(case.request, (seam, _SLOTS), "", 0)
    _, found = run_to_end(repair(model, cache, origin, [row], Clock(None)))
    return found.text if found is not None else None


def old_texts(scenarios: Sequence[Scenario]) -> Iterator[Old]:
    """Yield the lines that `scenarios` want rewritten, in files with all edits made; those of added lines left out."""
    for scenario in scenarios:
        player = Player(scenario, way="whole")
        for hunk in scenario.edits:
            player.type(hunk)
        for hunk in scenario.wanted:
            text = player.now(hunk.name).text
            old, new = ("\n".join(lines) for lines in (hunk.old, hunk.new))
            at = f"\n{text}".find(f"\n{old}\n")
            if old.strip() and new.strip() and at >= 0:
                yield Old(text[:at], text[at + len(old) :], old, new)


def prompt_of(case: Old, tokenizer: Tokenizer, marks: Marks) -> tuple[int, ...]:
    """Return the prompt of the lines of `case`, with twice the tokens that gaps have around them."""
    above, below = (tokenizer.encode(text, add_special_tokens=False).ids for text in (case.above, case.below))
    return marks.prompt(above[-2 * ABOVE :], below[: 2 * BELOW])


@torch.no_grad()
def doubts(network: CanvasLora, prompt: Prompt, text: Sequence[int]) -> list[float]:
    """Return the chance of each token of `text` with all others known on the canvas."""
    own = network.scores(prompt.read.states[0, -1:])[:, :-1].softmax(1)
    places = range(1, len(text))
    hidden = torch.tensor([[*text[:at], MASK, *text[at + 1 :]] for at in places])
    states = network.look(prompt.read, [len(prompt.tokens)] * len(places), hidden, [0] * len(places))
    scores = network.scores(states[[at - 1 for at in places], [at - 1 for at in places]])[:, :-1].softmax(1)
    return [float(own[0, text[0]]), *scores[range(len(places)), list(text[1:])].tolist()]


def rewritten(network: CanvasLora, prompt: Prompt, old: Sequence[int], first: str) -> list[int]:
    """Return `old` with its unlikely tokens denoised, in the length of _LONGER whose text is likeliest."""
    noised = [
        MASK if chance < UNSURE else token
        for token, chance in zip(old, doubts(network, prompt, old), strict=True)
    ]
    if MASK not in noised:
        return list(old)
    at = noised.index(MASK)
    canvases = ([*noised[:at], *[MASK] * change, *noised[at + (change < 0) :]] for change in _LONGER)
    texts = [denoise(network, prompt, canvas, first) for canvas in canvases if MASK in canvas]
    return _likeliest_first(network, prompt, texts)[0]


@torch.no_grad()
def followed(network: CanvasLora, prompt: Prompt, old: Sequence[int], end: int) -> list[int]:
    """Return `old` as the frozen network follows it from left to right.

    A token is kept unless its chance is below UNSURE; from there on the network writes until two tokens are again
    those of `old` further on.
    """
    text, at = list[int](), 0
    read = prompt.read
    while at < len(old) and len(text) < 2 * MOST:
        chances = network.scores(read.states[0, -1:])[0, :-1].softmax(0)
        token = old[at]
        if float(chances[token]) < UNSURE:
            token = int(chances.argmax())
            if token == end:
                break
            at = _met(old, at, [*text[-1:], token])
        else:
            at += 1
        text.append(token)
        read = network.read(torch.tensor([[token]]), read)
    return text


def _met(old: Sequence[int], at: int, last: Sequence[int]) -> int:
    """Return the place of `old` from `at` on after the tokens `last`; `at` if they are not there."""
    for place in range(at, len(old) - len(last) + 1):
        if list(old[place : place + len(last)]) == list(last):
            return place + len(last)
    return at


def ways_to_rewrite(network: CanvasLora, case: Old, tokenizer: Tokenizer, marks: Marks) -> dict[str, str]:
    """Return the lines of `case` as each way writes them."""
    prompt = read_prompt(network, prompt_of(case, tokenizer, marks))
    old = tokenizer.encode(case.old, add_special_tokens=False).ids
    lines = case.old.count("\n") + 1
    written = from_left_to_right(network, prompt.tokens, marks.end, 2 * MOST)
    return {
        "canvas, the first token by both": tokenizer.decode(rewritten(network, prompt, old, "both")),
        "canvas, the first token by the frozen network": tokenizer.decode(
            rewritten(network, prompt, old, "causal")
        ),
        "old text followed from left to right": tokenizer.decode(followed(network, prompt, old, marks.end)),
        "written afresh": "\n".join(tokenizer.decode(written).split("\n")[:lines]),
    }


def ways_to_repair(
    network: CanvasLora, case: Broken, tokenizer: Tokenizer, marks: Marks, model: Checkpoint
) -> dict[str, str | None]:
    """Return the text of `case` as each way repairs it; None where it does not."""
    prompt = read_prompt(network, case.prompt)
    return {
        "canvas, the first token by both": repaired(case, tokenizer, by_canvas(network, prompt, "both")),
        "canvas, the first token by the frozen network": repaired(
            case, tokenizer, by_canvas(network, prompt, "causal")
        ),
        "span written from left to right": repaired(case, tokenizer, in_place(network, prompt, marks)),
        "written again to the end": repaired(case, tokenizer, onwards(network, prompt, marks)),
        "embedded": by_embedded(model, case),
    }
