"""A prompt style: the tokens around a file's own. Knows tokens and an Infill; knows no network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tokenizers import Tokenizer

from dg_lsp.messages import Infill

Weights = Mapping[str, Mapping[str, float]]  # of the judge, as in model/judge.py


@dataclass(frozen=True, slots=True)
class Frame:
    """The tokens around a file's own.

    before, after: those before its first token and after its last one. between: those after the first `cut` characters
    of the prefix; the rest of the prefix follows them.
    """

    before: tuple[int, ...]
    after: tuple[int, ...] = ()
    cut: int = 0
    between: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Style:
    """A way to speak to a network.

    names: returns the special tokens of a tokenizer that the style uses; None if a needed one is missing. frame:
    makes the frame of a request from a tokenizer and the first token of a text; it may depend only on text that rarely
    changes while one types, so that the cache survives. ends: returns the tokens that a network writes at the end of a
    gap; () if it sees no text after one. reads: the most tokens of a file's prefix, if the checkpoint names no
    number. judge: returns the weights of the judge for checkpoints without weights of their own.
    """

    name: str
    names: Callable[[Tokenizer], tuple[str, ...] | None]
    frame: Callable[[Tokenizer, int, Infill], Frame]
    ends: Callable[[Tokenizer], tuple[int, ...]] = lambda _: ()
    reads: int = 8192
    judge: Callable[[], Weights] = dict

    def fits(self, tokenizer: Tokenizer) -> bool:
        """Return whether `tokenizer` has the tokens of this style."""
        return self.names(tokenizer) is not None


def special(tokenizer: Tokenizer, name: str) -> int:
    """The special token called `name`."""
    number = tokenizer.token_to_id(name)
    assert number is not None, f"the tokenizer has no {name}"
    return int(number)


def plain(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """The tokens of `text`, in which the name of a special token is plain text."""
    return tuple(tokenizer.encode(text, add_special_tokens=False).ids)
