"""The beam search: texts written from left to right after a prefix, a token at a time, by one reader.

Texts end differently from gap to gap, so a policy decides: which texts a search begins with, which of the longer ones
continue, and when enough have ended (Graves 2012, arXiv:1211.3711).
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from dg_lsp.gaps import typed_half
from dg_lsp.messages import Draft
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import LATE, Clock
from dg_lsp.model.tiles import few_logits
from dg_lsp.model.tokens import Join, stable_tokens
from dg_lsp.model.tree import Tree

LINE_BREAKS = ("\n", "\r")
# Tokens up to which a pass is filled with guesses: a sixth of the passes for 360 truths is saved, and three tokens take
# one and a half times as long as one where matrices have four bits (docs/research/speed-and-memory.md).
_TOGETHER = 3


Result_co = TypeVar("Result_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Row:
    """A text of a search: the number of the row that it continues, its tokens, its log likelihood in nats."""

    parent: int
    tokens: tuple[int, ...]
    score: float = 0.0
    text: str = ""


class Policy(Protocol[Result_co]):
    """The rules of a search."""

    @property
    def limit(self) -> int:
        """The tokens that a text has at most."""
        ...

    def first(self, states: Tensor) -> list[Row]:
        """Return texts of one token, from the hidden state [1, hidden] before the gap."""
        ...

    def longer(self, rows: Sequence[Row], states: Tensor) -> list[Row]:
        """Return the texts that continue, a token longer than `rows`, from the states [rows, hidden] after them.

        Texts that end here are kept by the policy.
        """
        ...

    def is_enough(self, rows: Sequence[Row]) -> bool:
        """Return whether nothing more need be written."""
        ...

    def has_text(self, rows: Sequence[Row]) -> bool:
        """Return whether the result would have a text that can be shown."""
        ...

    def draft(self, count: int, rows: Sequence[Row]) -> Draft:
        """Return the Draft before the texts get their next token; they have `count` tokens."""
        ...

    def result(self, rows: Sequence[Row]) -> Result_co:
        """Return the texts that were found; `rows` are those that have not ended."""
        ...


class Lookup:
    """Guesses tokens by those that followed the same two before, the latest first (prompt lookup: Saxena 2023).

    prompt: the tokens before a gap. texts: those of texts that may be in it, the likeliest first.
    """

    def __init__(self, prompt: Sequence[int], texts: Sequence[Sequence[int]] = ()) -> None:
        self._last = tuple(prompt[-1:])
        self._known = [prompt, *((*self._last, *text) for text in reversed(texts))]
        self._places = {
            pair: (number, place)
            for number, known in enumerate(self._known)
            for place, pair in enumerate(pairwise(known[:-1]), 2)
        }

    def after(self, tokens: Sequence[int], count: int) -> tuple[int, ...]:
        """At most `count` tokens that may follow `tokens`, a text in the gap."""
        pair = (*self._last, *tokens)[-2:]
        if count <= 0 or pair not in self._places:
            return ()
        number, place = self._places[pair]
        return tuple(self._known[number][place : place + count])


@dataclass(frozen=True, slots=True)
class Start:
    """A tree that has read the text before a gap, and the text at its end that is written again.

    prompt: the tokens that were read. rows: the texts to begin with, beginnings of the text that is written again;
    states: the hidden state after each [rows, hidden]. late: deadlines for which a first text is waited for.
    """

    tree: Tree
    states: Tensor
    again: str
    prompt: tuple[int, ...]
    rows: tuple[Row, ...] = (Row(0, ()),)
    late: float = LATE


@torch.inference_mode()
def search(
    start: Start, policy: Policy[Result_co], clock: Clock, texts: Sequence[Sequence[int]] = ()
) -> Generator[Draft, None, Result_co]:
    """Write texts on from `start` by the rules of `policy`, up to the deadline; return its result.

    1. Begin with the texts of one token.  2. Stop when there are none, or enough have ended. Where the deadline passes
    before there is a text, the first one is waited for: a late text is better than none.  3. Read the last token of
    each text; where there is room in the pass, also tokens that may follow the likeliest one, guessed from the prompt
    and `texts`.  4. Continue the texts that the policy keeps.
    """
    # 1.
    tree, rows, lookup = start.tree, policy.first(start.states), Lookup(start.prompt, texts)
    for count in range(1, policy.limit + 1):
        # 2.
        if not rows or policy.is_enough(rows):
            break
        if clock.is_over() and (clock.is_hopeless(start.late) or policy.has_text(rows)):
            break
        yield policy.draft(count, rows)
        # 3.
        tree.take([row.parent for row in rows])
        ahead = [lookup.after(rows[0].tokens, _TOGETHER - len(rows))]
        states = torch.cat(tree.read([[row.tokens[-1]] for row in rows], ahead))
        # 4.
        rows = policy.longer(rows, states)
    return policy.result(rows)


def start_after(model: Checkpoint, cache: PrefixCache, join: Join) -> Start:
    """Read the text before the gap; its end is written again where it is a part of the gap's first token.

    That is the blank of `x = `, and the last token where another one that begins with its text is likelier, such as
    `()` instead of `(` (token healing). The last token of the prefix is read again, because its hidden state predicts
    the next one.
    """
    known, again = stable_tokens(model, join.before)
    tree = Tree(model.network, cache, join.kept - 1)
    (states,) = tree.read([[cache.tokens[join.kept - 1], *known]])
    prompt = (*cache.tokens[: join.kept], *known)
    if known and not again and "\ufffd" not in (last := model.texts[known[-1]]):
        likeliest = only(text_logits(model, states[-2:-1])[0], tokens_from(model, last)).argmax()
        if int(likeliest) != known[-1]:
            tree.shorten([1])
            return Start(tree, states[-2:-1], last, prompt[:-1])
    return Start(tree, states[-1:], again, prompt)


def start_in_word(model: Checkpoint, cache: PrefixCache, join: Join) -> Start:
    """Read the text before a gap that begins in a half-typed word, to be written on from any token of the word.

    `decry` is read as `dec` and `ry`, but `decrypted` as `dec` and `rypted`, and ` decrypt` is one token. So the texts
    to begin with are none of the tokens of ` decry`, the first one, the first two, and so on. Tokens that are a part of
    a character, and those before them, stay as they are.
    """
    word = typed_half(join.before)
    known, again = stable_tokens(model, join.before.removesuffix(word))
    tokens = model.encode(again + word)
    fixed = max((place for place, token in enumerate(tokens, 1) if "\ufffd" in model.texts[token]), default=0)
    known, typed = (*known, *tokens[:fixed]), tokens[fixed:]
    if not word or not typed:
        return start_after(model, cache, join)
    tree, count = Tree(model.network, cache, join.kept - 1), len(typed)
    (states,) = tree.read([[cache.tokens[join.kept - 1], *known, *typed]])
    tree.shorten(range(count, -1, -1))
    states = states[-count - 1 :]
    likely = text_logits(model, states[:-1]).log_softmax(-1)[range(count), typed]
    scores = [0.0, *likely.cumsum(0).tolist()]
    rows = tuple(Row(number, typed[:number], score) for number, score in enumerate(scores))
    again = "".join(model.texts[token] for token in typed)
    return Start(tree, states, again, (*cache.tokens[: join.kept], *known), rows)


def text_logits(model: Checkpoint, states: Tensor) -> Tensor:
    """The logits [rows, vocabulary] after `states`; no special token is possible but those that end a gap."""
    logits = few_logits(model.network, states)
    logits[:, sorted(model.special.difference(model.ends))] = -torch.inf
    logits[:, len(model.texts) :] = -torch.inf
    return logits


def tokens_from(model: Checkpoint, text: str) -> Tensor:
    """The tokens whose text begins with `text` and has no line end after it, int64 [tokens]."""
    found, _ = _tokens_from(model.texts, model.special, text)
    return torch.tensor(found, dtype=torch.int64, device=model.device)


def tokens_across(model: Checkpoint, text: str) -> Tensor:
    """Return the tokens whose text begins with `text`, those with a line end after it included, int64 [tokens]."""
    found, across = _tokens_from(model.texts, model.special, text)
    return torch.tensor((*found, *across), dtype=torch.int64, device=model.device)


# Examining each token of a large vocabulary takes tens of milliseconds.
@lru_cache(maxsize=64)
def _tokens_from(
    texts: tuple[str, ...], without: frozenset[int], text: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    size, own = len(text), _by_first(texts).get(text[:1], range(len(texts) if not text else 0))
    found = [token for token in own if token not in without and texts[token].startswith(text)]
    across = {token for token in found if any(b in texts[token][size:] for b in LINE_BREAKS)}
    return tuple(token for token in found if token not in across), tuple(sorted(across))


@lru_cache(maxsize=4)
def _by_first(texts: tuple[str, ...]) -> dict[str, list[int]]:
    """The tokens by the first character of their text."""
    found: dict[str, list[int]] = {}
    for token, text in enumerate(texts):
        found.setdefault(text[:1], []).append(token)
    return found


def only(scores: Tensor, tokens: Tensor) -> Tensor:
    """`scores` [vocabulary], minus infinity for all tokens but `tokens`."""
    return torch.full_like(scores, -math.inf).index_copy(0, tokens, scores[tokens])
