"""Tree: texts after one prefix, read by the encoder in one pass, their common beginnings once.

All tokens of all texts are one row for the network, in which a mask lets each token see the prefix and the tokens
before it in its own text (tree attention: Miao et al. 2024, SpecInfer, arXiv:2305.09781). With a row for each text the
keys of the prefix would be copied for every text at every token. Knows transformers' cache protocol and PrefixCache.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from dg_lsp.model.cache import PrefixCache, PrefixLayer, with_room
from dg_lsp.model.networks.base import Reader

_ROOM = 128  # columns that are reserved at a time
_UNUSED = 64  # columns that no text continues, before they are dropped: all other keys are copied then


class _Layer(PrefixLayer):
    """The keys and values of a prefix, as far as its layer sees it, and those of all tokens read after it."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens; return all."""
        start, end = self.keys.shape[2], self.keys.shape[2] + key_states.shape[2]
        if not self._store or end > self._store[0].shape[2]:
            # With room for more, so that the keys read so far are not copied at each token.
            self._store = [with_room(held, end + _ROOM) for held in (self.keys, self.values)]
        for store, new in zip(self._store, (key_states, value_states), strict=True):
            store[:, :, start:end] = new
        self.keys, self.values = (store[:, :, :end] for store in self._store)
        return self.keys, self.values

    def keep(self, columns: Sequence[int]) -> None:
        """Keep these of the tokens read after the prefix, and drop the others."""
        kept = torch.tensor([*range(self.length), *(self.length + column for column in columns)])
        kept = kept.to(self.keys.device)
        self.keys, self.values = self.keys.index_select(2, kept), self.values.index_select(2, kept)
        self._store = []


class Tree(Cache):
    """The texts after the first `kept` tokens of the prefix in `cache`, which stays as it is; at first one empty text.

    The text with number i has read the tokens in the columns `_paths[i]` after the prefix. A token is read once after
    the same text: its column is in `_columns`, by the column before it (-1 for none) and the token.
    """

    layers: list[_Layer]

    def __init__(self, network: Reader, cache: PrefixCache, kept: int) -> None:
        super().__init__(layers=[_view(layer, kept) for layer in cache.layers])
        self._network, self._kept = network, kept
        self._paths: list[list[int]] = [[]]
        self._parents: list[int] = []
        self._positions: list[int] = []
        self._columns: dict[tuple[int, int], int] = {}
        self._states: Tensor | None = None

    def read(self, texts: Sequence[Sequence[int]], ahead: Sequence[Sequence[int]] = ()) -> list[Tensor]:
        """Read `texts` on, each after the text with its number; their hidden states, each [tokens, hidden].

        ahead: tokens that may follow the first texts. They are read in the same pass, if there is one, and are known
        should they come.
        """
        assert len(texts) == len(self._paths)
        first, added = len(self._positions), list[int]()
        for path, text in zip(self._paths, texts, strict=True):
            for token in text:
                path.append(self._column(path[-1] if path else -1, token, added))
        if added:
            for path, text in zip(self._paths, ahead, strict=False):
                column = path[-1]
                for token in text:
                    column = self._column(column, token, added)
            device = self._network.device
            positions = torch.tensor(self._positions[first:], device=device)
            tokens = torch.tensor(added, device=device)
            states = self._network.read(self, tokens, positions, self._masks(first))
            self._states = states if self._states is None else torch.cat([self._states, states])
        assert self._states is not None
        paths = zip(self._paths, texts, strict=True)
        own = (torch.tensor(path[len(path) - len(text) :], dtype=torch.int64) for path, text in paths)
        return [self._states[columns.to(self._states.device)] for columns in own]

    def take(self, numbers: Sequence[int]) -> None:
        """Go on with the texts with these numbers; one may be taken several times."""
        self._paths = [list(self._paths[number]) for number in numbers]
        used = sorted({column for path in self._paths for column in path})
        if len(self._positions) - len(used) <= _UNUSED or self._states is None:
            return
        places = {column: place for place, column in enumerate(used)} | {-1: -1}
        self._paths = [[places[column] for column in path] for path in self._paths]
        self._parents = [places[self._parents[column]] for column in used]
        self._positions = [self._positions[column] for column in used]
        known = self._columns.items()
        self._columns = {
            (places[before], token): places[own] for (before, token), own in known if own in places
        }
        self._states = self._states[torch.tensor(used, device=self._states.device)]
        for layer in self.layers:
            layer.keep(used)

    def shorten(self, by: Sequence[int]) -> None:
        """Go on with the only text as many texts, each without its last `by` tokens."""
        (path,) = self._paths
        self._paths = [path[: len(path) - count] for count in by]

    def _column(self, before: int, token: int, added: list[int]) -> int:
        """The column of `token` after the one in column `before`; one that is new is among those `added`."""
        place = before, token
        if place not in self._columns:
            self._columns[place] = len(self._positions)
            self._parents.append(before)
            self._positions.append(self._kept if before < 0 else self._positions[before] + 1)
            added.append(token)
        return self._columns[place]

    def _masks(self, first: int) -> dict[int | None, Tensor]:
        """Return, by the window of a layer, which keys the tokens from column `first` on see: bool [new tokens, keys].

        The keys are those of the prefix that the layer holds and those of all tokens after it.
        """
        count = len(self._positions)
        seen = torch.zeros(count - first, self._kept + count, dtype=torch.bool)
        seen[:, : self._kept] = True
        for row, column in enumerate(range(first, count)):
            before, path = self._parents[column], [self._kept + column]
            if before >= first:
                seen[row] = seen[before - first]
            while 0 <= before < first:
                path.append(self._kept + before)
                before = self._parents[before]
            seen[row, path] = True
        keys = torch.tensor([*range(self._kept), *self._positions])
        masks: dict[int | None, Tensor] = {}
        for layer in self.layers:
            if layer.window not in masks:
                held = seen
                if layer.window is not None:
                    held = seen & (keys[None, :] > keys[self._kept + first :, None] - layer.window)
                masks[layer.window] = held[:, self._kept - layer.length :].to(self._network.device)
        return masks


def _view(layer: PrefixLayer, kept: int) -> _Layer:
    """The part of `layer` that a token after the first `kept` tokens sees; nothing is copied."""
    view = _Layer(layer.window)
    view.is_initialized = True
    view.keys, view.values = layer.first(kept)
    view.length = view.keys.shape[2]
    return view
