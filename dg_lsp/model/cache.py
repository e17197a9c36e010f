"""The KV cache of a prefix: it can be cut and extended at any token.

Not transformers' own caches, because their sliding layers drop everything outside the window, and so cannot be cut once
the file is longer than the window. Knows transformers' cache protocol; knows no text and no canvas.
"""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from dg_lsp.model.networks.base import Network

MOST_CACHES = 256  # prefix caches at once
CHUNK = 256  # tokens that are encoded at once; a request can be cancelled between two chunks


class PrefixLayer(CacheLayerMixin):
    """One layer. It stores the keys and values of all tokens; `keys` and `values` are the part that the decoder sees.

    The decoder attends to `keys` without a mask, so in a sliding layer they are those of the last window - 1 tokens, as
    in `DynamicSlidingWindowLayer` (transformers, cache_utils.py). Shapes: [rows, heads, tokens, head size]. expected:
    the number of tokens that will be stored; room is reserved for them, in whole chunks.
    """

    is_compileable = False

    def __init__(self, window: int | None) -> None:
        super().__init__()
        self.window, self.is_sliding = window, window is not None
        self.length = self.expected = 0
        self._store: list[Tensor] = []

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make empty stores with the shapes and types of the first keys and values."""
        self._store = [t.new_empty(*t.shape[:2], 0, t.shape[3]) for t in (key_states, value_states)]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append keys and values; return those that the new tokens attend to: the visible old ones and the new ones."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, end = self.length, self.length + key_states.shape[2]
        first = self._first_visible(start)
        self._reserve(end)
        for store, new in zip(self._store, (key_states, value_states), strict=True):
            store[:, :, start:end] = new
        self.cut(end)
        return self._store[0][:, :, first:end], self._store[1][:, :, first:end]

    def cut(self, length: int) -> None:
        """Set the layer's length to `length` tokens, at most as many as it stores."""
        self.length = length
        if self.is_initialized:
            first = self._first_visible(length)
            self.keys, self.values = (store[:, :, first:length] for store in self._store)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The number of keys that a query of `query_length` tokens sees, and the position of the first of them."""
        first = self._first_visible(self.length)
        return self.length - first + query_length, first

    def get_seq_length(self) -> int:
        """The number of tokens held."""
        return self.length

    def get_max_length(self) -> int:
        """-1: the layer has no limit."""
        return -1

    @property
    def bytes(self) -> int:
        """Bytes that the stores take."""
        return sum(store.nbytes for store in self._store)

    def seen_by(self, rows: int) -> "PrefixLayer":
        """A read-only view of this layer for a batch of `rows` canvases; nothing is copied."""
        view = PrefixLayer(self.window)
        view.length, view.is_initialized = self.length, True
        view.keys, view.values = (t.expand(rows, -1, -1, -1) for t in (self.keys, self.values))
        return view

    def first(self, length: int) -> tuple[Tensor, Tensor]:
        """The keys and values that a token after the first `length` tokens sees; nothing is copied."""
        begin = self._first_visible(length)
        keys, values = (store[:, :, begin:length] for store in self._store)
        return keys, values

    def _first_visible(self, length: int) -> int:
        return 0 if self.window is None else max(length - self.window + 1, 0)

    def _reserve(self, length: int) -> None:
        if length > self._store[0].shape[2]:
            room = math.ceil(max(length, self.expected) / CHUNK) * CHUNK
            self._store = [with_room(old[:, :, : self.length], room) for old in self._store]


def with_room(held: Tensor, room: int) -> Tensor:
    """A copy of `held` [rows, heads, tokens, head size] with room for `room` tokens."""
    made = held.new_zeros(*held.shape[:2], room, held.shape[3])
    made[:, :, : held.shape[2]] = held
    return made


@dataclass(frozen=True, slots=True)
class Begun:
    """A chunk that was left between two layers. steps: those of the network. lengths: of the layers after the last one.

    The layers are cut to the tokens before the chunk; their stores hold what they have encoded of it.
    """

    chunk: tuple[int, ...]
    steps: Iterator[None]
    lengths: tuple[int, ...]


class PrefixCache(Cache):
    """The keys and values of exactly one token sequence, and that sequence.

    tokens: the sequence. aligned: how many of its first tokens were encoded in chunks that begin at multiples of the
    network's. begun: a chunk after `tokens` that some layers have encoded.
    """

    def __init__(self, text_config: Any) -> None:
        super().__init__(layers=[PrefixLayer(window) for window in windows_of(text_config)])
        self.tokens: tuple[int, ...] = ()
        self.aligned = 0
        self.begun: Begun | None = None

    @property
    def bytes(self) -> int:
        """Bytes that the keys and values take, including the room reserved for more."""
        return sum(layer.bytes for layer in self.layers)

    @property
    def is_paused(self) -> bool:
        """True while some layers have encoded a chunk after `tokens`, and others have not."""
        return self.get_seq_length() > len(self.tokens)

    def cut(self, length: int) -> None:
        """Keep the first `length` tokens and drop the others.

        Raises:
            ValueError: `length` is negative or more than the cache holds.
        """
        if not 0 <= length <= len(self.tokens):
            raise ValueError(f"a cache of {len(self.tokens)} tokens cannot be cut to {length}")
        for layer in self.layers:
            layer.cut(length)
        if length < len(self.tokens):
            self.begun = None
        self.tokens = self.tokens[:length]
        self.aligned = min(self.aligned, length)

    def shared(self, tokens: Sequence[int]) -> int:
        """Return how many of its first tokens are those that `tokens` begins with."""
        pairs = enumerate(zip(self.tokens, tokens, strict=False))
        return next((i for i, (own, other) in pairs if own != other), min(len(self.tokens), len(tokens)))

    def expect(self, length: int) -> None:
        """Reserve room for `length` tokens with the next one, so that what is stored is not copied at each chunk."""
        for layer in self.layers:
            layer.expected = length

    def seen_by(self, rows: int) -> Cache:
        """A read-only view for a batch of `rows` canvases; nothing is copied."""
        return Cache(layers=[layer.seen_by(rows) for layer in self.layers])


def windows_of(text_config: Any) -> list[int | None]:
    """The window of each layer, in tokens; None for a layer that sees everything.

    text_config: one of transformers; where it names no kinds of layers, all have the window that it names, if any.
    """
    window = getattr(text_config, "sliding_window", None)
    kinds = getattr(text_config, "layer_types", None)
    if kinds is None:
        return [window] * text_config.num_hidden_layers
    return [window if kind == "sliding_attention" else None for kind in kinds]


class PrefixCaches:
    """The PrefixCaches of sessions (documents in a workspace). Infills that take turns never share one.

    limit: bytes that all of them may take. most: their number; before a server, which has the keys and values, they
    have no bytes. The least recently used ones that are not lent are dropped beyond either. dropped: called when some
    were.
    """

    def __init__(
        self,
        text_config: Any,
        limit: int,
        dropped: Callable[[], object] = lambda: None,
        most: int = MOST_CACHES,
    ) -> None:
        self._text_config, self._limit, self._most, self._dropped = text_config, limit, most, dropped
        # Each with its bytes, which change only while it is lent.
        self._kept: list[tuple[str, PrefixCache, int]] = []
        self._lent: list[PrefixCache] = []

    @contextmanager
    def lend(self, session: str) -> Iterator[PrefixCache]:
        """The cache of `session`; another one if that is lent already, or if there is none."""
        mine = [place for place, (name, _, _) in enumerate(self._kept) if name == session]
        cache = self._kept.pop(mine[-1])[1] if mine else PrefixCache(self._text_config)
        self._lent.append(cache)
        try:
            yield cache
        finally:
            self._lent = [other for other in self._lent if other is not cache]
            self._kept.append((session, cache, cache.bytes))
            self._trim()

    def clear(self) -> None:
        """Drop all caches that are not lent."""
        while self._kept:
            self._drop_first()

    @property
    def bytes(self) -> int:
        """Bytes that all caches take, lent or not."""
        return sum(size for _, _, size in self._kept) + sum(cache.bytes for cache in self._lent)

    def __len__(self) -> int:
        return len(self._kept) + len(self._lent)

    def _trim(self) -> None:
        """Drop the least recently used caches until both limits hold; the most recently used one always stays."""
        before = len(self._kept)
        while (self.bytes > self._limit or len(self) > self._most) and len(self._kept) > 1:
            self._drop_first()
        if len(self._kept) < before:
            self._dropped()

    def _drop_first(self) -> None:
        _, cache, _ = self._kept.pop(0)
        cache.begun = None  # its steps hold the cache, which is to go now


def extend_to(
    network: Network, cache: PrefixCache, tokens: Sequence[int], *, exact: bool = True
) -> Generator[int, None, None]:
    """Make `cache` hold exactly `tokens`; after each encoded chunk, or part of one, yield the number of tokens held.

    exact: begin every chunk at a multiple of the network's, whatever the cache held before, so that the result equals a
    fresh cache's bit for bit (law 4). If False, encode new tokens only; the result is equal up to rounding, and half a
    chunk cheaper on average. Closing the iterator leaves a valid, shorter cache; what was read of a chunk is kept.

    1. Cut the cache to the tokens in common; in exact mode to the last multiple among those.
    2. Encode the rest chunk by chunk.
    """
    assert tokens, "the decoder needs at least one token before the canvas"
    wanted, most = tuple(tokens), network.chunk
    # 1. The tokens themselves are compared; for the same sequence there is nothing to do.
    if cache.tokens == wanted and not (exact and cache.aligned < len(wanted)):
        return
    common = cache.shared(wanted)
    if exact:
        common = min(common, cache.aligned)
        common -= common % most
    cache.cut(common)
    cache.expect(len(wanted))
    # 2. `tokens` grows only after every layer holds the chunk, so that a failed encode leaves the old state.
    while (start := len(cache.tokens)) < len(wanted):
        chunk = _next_chunk(cache, wanted[start:], most, exact=exact)
        yield from _encode(network, cache, chunk)
        cache.tokens += chunk
        if cache.aligned == start and start % most == 0:
            cache.aligned = len(cache.tokens)
        yield len(cache.tokens)


def _next_chunk(cache: PrefixCache, rest: tuple[int, ...], most: int, *, exact: bool) -> tuple[int, ...]:
    """The chunk that `cache` has begun, if `rest` begins with it, else the first `most` tokens of `rest`.

    exact: only a chunk that would begin now anyway. A begun chunk that is not returned is dropped.
    """
    chunk, begun = rest[:most], cache.begun
    if begun is not None and begun.chunk != chunk:
        if not exact and begun.chunk == rest[: len(begun.chunk)]:
            return begun.chunk
        cache.begun = None
    return chunk


def _encode(network: Network, cache: PrefixCache, chunk: tuple[int, ...]) -> Generator[int, None, None]:
    """Append the keys and values of `chunk`; go on with it if it was begun. Yield where the network can be left."""
    start, begun = len(cache.tokens), cache.begun
    cache.begun = None
    try:
        if begun is not None:
            for layer, length in zip(cache.layers, begun.lengths, strict=True):
                layer.cut(length)
        with torch.inference_mode():
            steps = begun.steps if begun else network.encode(cache, chunk)
        while _is_left(steps):
            yield start
    except GeneratorExit:
        lengths = tuple(layer.length for layer in cache.layers)
        cache.cut(start)
        cache.begun = Begun(chunk, steps, lengths)
        raise
    except BaseException:
        cache.cut(start)
        raise


@torch.inference_mode()
def _is_left(steps: Iterator[None]) -> bool:
    """Go on with `steps`; return whether there are more of them."""
    return next(steps, True) is None
