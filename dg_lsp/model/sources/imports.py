"""Imports: a text for one becomes likelier where it has a name that the file uses and nothing defines or imports."""

import re
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from dg_lsp.model.checkpoint import Checkpoint

# Nats that a text with such a name gains (docs/research/candidates-and-judge.md): the network itself gives so little to
# a name of which it sees no use.
_WORTH = 8.0
# The likeliest tokens after a text that may go on to such a name; those that begin one are looked at, too.
_TOKENS = 16
_WORD = re.compile(r"[\w$]+")
_LAST = re.compile(r"[\w$]*\Z")
# Signs in front of a name that may be of one token with it.
_SIGNS = ("", " ", ".", "{", "(", "::")


@dataclass(frozen=True)
class Wanted:
    """The names of which a text probably has one; empty for a gap that is in no import."""

    model: Checkpoint
    names: tuple[str, ...] = ()

    def worth(self, text: str) -> float:
        """Return the nats that `text`, which has ended, gains."""
        return _WORTH if self.names and not self._known.isdisjoint(_WORD.findall(text)) else 0.0

    def hope(self, text: str) -> float:
        """Return the nats that `text` gains so far: also where its last word may become one of the names."""
        return _WORTH if self.names and _last(text) in self._beginnings else self.worth(text)

    def prefer(self, totals: Tensor, written: str, before: float) -> None:
        """Add to `totals`, the scores [vocabulary] of tokens after `written`, what the longer texts gain.

        before: what `written` has gained itself.
        """
        if not self.names:
            return
        last = _last(written)
        rests = [name.removeprefix(last) for name in self.names if name.startswith(last) and name != last]
        likely = (token for token in totals.topk(_TOKENS).indices.tolist() if token < len(self.model.texts))
        tokens = [*{*self._first, *(self.model.encode(rest)[0] for rest in rests), *likely}]
        gained = totals.new_tensor([self.hope(written + self.model.texts[token]) for token in tokens])
        totals -= before
        totals[tokens] += gained

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        """The beginnings of the names, each of them itself included."""
        return frozenset(name[:end] for name in self.names for end in range(1, len(name) + 1))

    @cached_property
    def _first(self) -> frozenset[int]:
        """The tokens that begin a name, or a sign with one after it."""
        return frozenset(self.model.encode(sign + name)[0] for name in self.names for sign in _SIGNS)


def _last(text: str) -> str:
    """Return the word that `text` ends with."""
    found = _LAST.search(text)
    return found[0] if found else ""
