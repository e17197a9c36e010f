"""Tree: texts behind one prefix, read by the encoder in one pass, their common beginnings once.

All tokens of all texts are one row for the network, in which a mask lets each token see the prefix and the tokens
before it in its own text (tree attention: Miao et al. 2024, SpecInfer, arXiv:2305.09781). With a row for each text the
keys of the prefix would be copied for every text at every token. Knows transformers' cache protocol and PrefixCache.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from dg_lsp.model.cache import PrefixCache, PrefixLayer
from dg_lsp.model.networks.base import Reader

_UNUSED = 64  # columns that no text continues, before they are dropped: all other keys are copied then


class _Layer(PrefixLayer):
    """The keys and values of a prefix, as far as its layer sees it, and those of all tokens read behind it."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens; return all."""
        self.keys = torch.cat([self.keys, key_states], 2)
        self.values = torch.cat([self.values, value_states], 2)
        return self.keys, self.values

    def keep(self, columns: Sequence[int]) -> None:
        """Keep these of the tokens read behind the prefix, and drop the others."""
        kept = torch.tensor([*range(self.length), *(self.length + column for column in columns)])
        kept = kept.to(self.keys.device)
        self.keys, self.values = self.keys.index_select(2, kept), self.values.index_select(2, kept)


class Tree(Cache):
    """The texts behind the first `kept` tokens of the prefix in `cache`, which stays as it is; at first one empty text.

    The text with number i has read the tokens in the columns `_paths[i]` behind the prefix.
    """

    layers: list[_Layer]

    def __init__(self, network: Reader, cache: PrefixCache, kept: int) -> None:
        super().__init__(layers=[_view(layer, kept) for layer in cache.layers])
        self._network, self._kept = network, kept
        self._paths: list[list[int]] = [[]]
        self._positions: list[int] = []

    def read(self, texts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Read `texts` on, each behind the text with its number; their hidden states, each [tokens, hidden]."""
        assert len(texts) == len(self._paths)
        first, tokens = len(self._positions), list[int]()
        columns: dict[tuple[int, int], int] = {}  # of the new tokens, by the column before and the token
        for path, text in zip(self._paths, texts, strict=True):
            for token in text:
                place = path[-1] if path else -1, token
                if place not in columns:
                    columns[place] = first + len(tokens)
                    tokens.append(token)
                    self._positions.append(self._kept + len(path))
                path.append(columns[place])
        device = self._network.device
        positions = torch.tensor(self._positions[first:], device=device)
        added = torch.tensor(tokens, device=device)
        states = self._network.read(self, added, positions, self._masks(first))
        paths = zip(self._paths, texts, strict=True)
        read = ([column - first for column in path[len(path) - len(text) :]] for path, text in paths)
        return [states[torch.tensor(own, dtype=torch.int64, device=device)] for own in read]

    def take(self, numbers: Sequence[int]) -> None:
        """Go on with the texts with these numbers; one may be taken several times."""
        self._paths = [list(self._paths[number]) for number in numbers]
        used = sorted({column for path in self._paths for column in path})
        if len(self._positions) - len(used) > _UNUSED:
            places = {column: place for place, column in enumerate(used)}
            self._paths = [[places[column] for column in path] for path in self._paths]
            self._positions = [self._positions[column] for column in used]
            for layer in self.layers:
                layer.keep(used)

    def drop_last(self) -> None:
        """Drop the last token of the only text."""
        (path,) = self._paths
        path.pop()

    def _masks(self, first: int) -> dict[int | None, Tensor]:
        """Return, by the window of a layer, which keys the tokens from column `first` on see: bool [new tokens, keys].

        The keys are those of the prefix that the layer holds, and those of all tokens behind it.
        """
        count = len(self._positions)
        seen = torch.zeros(count - first, self._kept + count, dtype=torch.bool)
        seen[:, : self._kept] = True
        for path in self._paths:
            columns = torch.tensor(path, dtype=torch.int64)
            new = columns[columns >= first]
            own = columns[None, :] <= new[:, None]
            rows = torch.zeros(len(new), count, dtype=torch.bool)
            rows[:, columns] = own
            seen[new - first, self._kept :] |= rows
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
    """The part of `layer` that a token behind the first `kept` tokens sees; nothing is copied."""
    view = _Layer(layer.window)
    view.is_initialized = True
    view.keys, view.values = layer.first(kept)
    view.length = view.keys.shape[2]
    return view
