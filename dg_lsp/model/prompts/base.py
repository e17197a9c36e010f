"""A prompt style: the tokens around a file's own. Knows tokens and an Infill; knows no network."""

from collections.abc import Callable
from dataclasses import dataclass

from tokenizers import Tokenizer

from dg_lsp.text.messages import Infill


@dataclass(frozen=True, slots=True)
class Frame:
    """The tokens before a file's first token and after its last one."""

    before: tuple[int, ...]
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Style:
    """A way to speak to a network.

    special: the tokens that a tokenizer must have for it. frame: makes the frame of a request from a tokenizer and the
    first token of a text; it may change only with what rarely changes while one types, so that the cache survives.
    """

    name: str
    special: tuple[str, ...]
    frame: Callable[[Tokenizer, int, Infill], Frame]

    def fits(self, tokenizer: Tokenizer) -> bool:
        """Return whether `tokenizer` has the tokens of this style."""
        return all(tokenizer.token_to_id(token) is not None for token in self.special)
