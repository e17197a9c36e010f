"""A text in which every gap has one right content, and a small network that is taught it in about a minute.

The text is the numbers from 1 to 99 spelled out, over and over; its characters are the tokens. The network has the
embedded one's layout and the published losses, with plain uniform corruption only: like the released checkpoint it
never sees clean anchors beside pure noise. Knows how to train; asserts nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.cache_utils import DynamicCache

from dg_lsp.model.canvas import Seam
from dg_lsp.model.networks.decoder import capped_logits, decode, view_after
from dg_lsp.training.optimise import Optimiser
from dg_lsp.training.shape import PAD, embedded_config, fresh_network

PREFIX, CANVAS = 24, 40
STEPS, ROWS, HIDDEN, LAYERS = 300, 32, 64, 4
RATES = (0.05, 0.008)  # of Muon and of AdamW, at their peak
ONES = """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen
"""
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


@dataclass(frozen=True, slots=True)
class Spelled:
    """The text as token ids [length], whose beginning follows its end, and the number of tokens there are."""

    tokens: Tensor
    vocabulary: int

    def piece(self, start: int, length: int) -> list[int]:
        """`length` tokens from `start` on."""
        return self.tokens[(start + torch.arange(length)) % len(self.tokens)].tolist()


@dataclass(frozen=True, slots=True)
class Hole:
    """A gap in the text: the tokens before it, those in it, those after it."""

    prefix: list[int]
    truth: list[int]
    seam: Seam


def spelled_text() -> Spelled:
    """The numbers from 1 to 99. A token is a letter's place in the alphabet of the text; PAD is none of them."""
    text = "".join(f"{spell(number)} " for number in range(1, 100))
    letters = sorted(set(text))
    return Spelled(torch.tensor([letters.index(letter) + PAD + 1 for letter in text]), len(letters) + 1)


def spell(number: int) -> str:
    """A number from 1 to 99 in words: 42 is `forty two`."""
    ones, tens = ONES.split(), TENS.split()
    if number < 20:
        return ones[number - 1]
    ten, one = tens[number // 10 - 2], number % 10
    return f"{ten} {ones[one - 1]}" if one else ten


def holes(text: Spelled, count: int, lengths: range) -> Iterator[Hole]:
    """`count` holes at random places, of all `lengths` in turn."""
    draw = torch.Generator().manual_seed(5)
    for number in range(count):
        gap = lengths[number % len(lengths)]
        tokens = text.piece(int(torch.randint(len(text.tokens), (), generator=draw)), PREFIX + gap + CANVAS)
        yield Hole(
            tokens[:PREFIX], tokens[PREFIX : PREFIX + gap], Seam((), tuple(tokens[PREFIX + gap :]), PAD)
        )


def train(text: Spelled, seed: int) -> tuple[Any, float]:
    """A network that knows `text`, in fp32, and the mean loss of its last 20 steps in nats a token."""
    network = fresh_network(embedded_config(text.vocabulary, HIDDEN, LAYERS), seed, torch.float32).train()
    optimiser = Optimiser([(n, w) for n, w in network.named_parameters() if "vision" not in n], RATES)
    draw = torch.Generator().manual_seed(seed)
    recent: list[float] = []
    for number in range(STEPS):
        clean = _pieces(text, draw)
        noise = torch.randint(text.vocabulary, clean[:, PREFIX:].shape, generator=draw)
        hit = torch.rand(noise.shape, generator=draw) < torch.rand(ROWS, 1, generator=draw)
        diffusion, ahead = _losses(network, clean, torch.where(hit, noise, clean[:, PREFIX:]))
        (diffusion + ahead).backward()
        optimiser.step(min(1.0, (number + 1) / 20) * min(1.0, (STEPS - number) / (0.3 * STEPS)))
        recent = [*recent[-19:], float(diffusion.detach())]
    return network.eval(), sum(recent) / len(recent)


def _pieces(text: Spelled, draw: torch.Generator) -> Tensor:
    start = torch.randint(len(text.tokens), (ROWS, 1), generator=draw)
    return text.tokens[(start + torch.arange(PREFIX + CANVAS)) % len(text.tokens)]


def _losses(network: Any, clean: Tensor, noisy: Tensor) -> tuple[Tensor, Tensor]:
    """(L_diff, L_ar) of clean [rows, PREFIX + CANVAS], whose canvases are corrupted to `noisy` [rows, CANVAS].

    The first half of the rows is conditioned on what the network believed without.
    """
    table, half = network.model.decoder.embed_tokens, ROWS // 2
    cache = DynamicCache()
    encoded = network.model.encoder.language_model(input_ids=clean[:, :PREFIX], past_key_values=cache)
    embedded = table(noisy)
    view = view_after(PREFIX, CANVAS, embedded.device)
    soft = torch.zeros_like(embedded)
    with torch.no_grad():
        seen = decode(network, _prefixes(cache, half), embedded[:half], soft[:half], view)
        soft[:half] = capped_logits(network, seen).softmax(-1) @ table.weight * table.embed_scale
    hidden = decode(network, _prefixes(cache, ROWS), embedded, soft, view)
    return (
        _wrong(network, hidden, clean[:, PREFIX:]),
        _wrong(network, encoded.last_hidden_state[:, :-1], clean[:, 1:PREFIX]),
    )


def _prefixes(cache: DynamicCache, rows: int) -> Any:
    """What the decoder reads of a cache: the keys and values of its first `rows` rows."""
    layers = [SimpleNamespace(keys=y.keys[:rows], values=y.values[:rows]) for y in cache.layers]
    return SimpleNamespace(layers=layers, is_compileable=False)


def _wrong(network: Any, hidden: Tensor, tokens: Tensor) -> Tensor:
    return F.cross_entropy(capped_logits(network, hidden).flatten(0, 1), tokens.flatten())
