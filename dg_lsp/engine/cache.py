"""The prefix in the KV cache: every layer whole, cut and extended at any token.

Knows transformers' cache protocol; knows no text and no canvas. Why not transformers' own caches: a sliding
layer of theirs forgets all but the window, so it cannot be cut once the file is longer than that.
"""

from collections import OrderedDict
from collections.abc import Generator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

CHUNK = 256  # tokens that are encoded between two looks at the cancel flag


class PrefixLayer(CacheLayerMixin):
    """One layer: all keys and values are kept, `keys` and `values` show what the decoder may see.

    The decoder attends without a mask to all that it is shown, so a sliding layer shows exactly the last
    window - 1 tokens (transformers: `DynamicSlidingWindowLayer`). Shapes: [rows, heads, tokens, head size].
    """

    is_compileable = False

    def __init__(self, window: int | None) -> None:
        super().__init__()
        self.window, self.is_sliding = window, window is not None
        self.length = 0
        self._store: list[Tensor] = []

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make empty stores of the kind of the first keys and values."""
        self._store = [t.new_empty(*t.shape[:2], 0, t.shape[3]) for t in (key_states, value_states)]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append; return what the new tokens attend to: the visible old ones and themselves."""
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
        """Move the end of the layer to `length` tokens."""
        self.length = length
        if self.is_initialized:
            first = self._first_visible(length)
            self.keys, self.values = (store[:, :, first:length] for store in self._store)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Number of keys that a query of this length sees, and the position of the first."""
        first = self._first_visible(self.length)
        return self.length - first + query_length, first

    def get_seq_length(self) -> int:
        """Tokens held."""
        return self.length

    def get_max_length(self) -> int:
        """No limit, in transformers' spelling."""
        return -1

    get_max_cache_shape = get_max_length  # what transformers called it before 5.17

    @property
    def bytes(self) -> int:
        """Memory that the stores take."""
        return sum(store.nbytes for store in self._store)

    def seen_by(self, rows: int) -> "PrefixLayer":
        """A read-only layer over the same storage that `rows` canvases read at once."""
        view = PrefixLayer(self.window)
        view.length, view.is_initialized = self.length, True
        view.keys, view.values = (t.expand(rows, -1, -1, -1) for t in (self.keys, self.values))
        return view

    def read_on(self, rows: int, length: int) -> "PrefixLayer":
        """A layer of the first `length` tokens that `rows` texts may go on from: what is appended is kept nowhere."""
        view = _ReadOn(self.window)
        view.length, view.is_initialized = length, True
        first = self._first_visible(length)
        view.keys, view.values = (store[:, :, first:length].expand(rows, -1, -1, -1) for store in self._store)
        return view

    def _first_visible(self, length: int) -> int:
        return 0 if self.window is None else max(length - self.window + 1, 0)

    def _reserve(self, length: int) -> None:
        # Doubling keeps the cost of appending token by token linear in the length.
        if length > self._store[0].shape[2]:
            room = max(2 * self._store[0].shape[2], length, CHUNK)
            for i, old in enumerate(self._store):
                self._store[i] = old.new_empty(*old.shape[:2], room, old.shape[3])
                self._store[i][:, :, : self.length] = old[:, :, : self.length]


class _ReadOn(PrefixLayer):
    """A layer that attends to its tokens and to the new ones, which go nowhere."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        return torch.cat([self.keys, key_states], 2), torch.cat([self.values, value_states], 2)


class PrefixCache(Cache):
    """Keys and values of exactly one token sequence, and that sequence.

    even: how many of its first tokens were encoded in chunks that begin at multiples of CHUNK.
    """

    def __init__(self, text_config: Any) -> None:
        windows = {"sliding_attention": text_config.sliding_window, "full_attention": None}
        super().__init__(layers=[PrefixLayer(windows[kind]) for kind in text_config.layer_types])
        self.tokens: tuple[int, ...] = ()
        self.even = 0

    @property
    def bytes(self) -> int:
        """Memory that the keys and values take, the room kept for more included."""
        return sum(layer.bytes for layer in self.layers)

    def cut(self, length: int) -> None:
        """Forget all tokens from `length` on.

        Raises:
            ValueError: the cache is shorter than that; unguarded it would grow garbage.
        """
        if not 0 <= length <= len(self.tokens):
            raise ValueError(f"a cache of {len(self.tokens)} tokens cannot be cut to {length}")
        for layer in self.layers:
            layer.cut(length)
        self.tokens = self.tokens[:length]
        self.even = min(self.even, length)

    def seen_by(self, rows: int) -> Cache:
        """The handle that a batch of `rows` canvases reads: the storage is shared, not copied."""
        return Cache(layers=[layer.seen_by(rows) for layer in self.layers])

    def read_on(self, rows: int, length: int) -> Cache:
        """A handle with which the encoder reads `rows` texts behind the first `length` tokens, and forgets them."""
        return Cache(layers=[layer.read_on(rows, length) for layer in self.layers])


class PrefixCaches:
    """A PrefixCache for each document, by its session; those used least recently go when `limit` bytes are passed."""

    def __init__(self, text_config: Any, limit: int) -> None:
        self._text_config, self._limit = text_config, limit
        self._caches: OrderedDict[str, PrefixCache] = OrderedDict()

    def of(self, session: str) -> PrefixCache:
        """The cache of `session`, from now on the one used last; an empty one for a session not met lately."""
        cache = self._caches.pop(session, None) or PrefixCache(self._text_config)
        self._caches[session] = cache
        return cache

    def trim(self) -> None:
        """Drop caches until the rest keep to the limit; the one used last stays whatever it takes."""
        held = self.bytes
        while held > self._limit and len(self._caches) > 1:
            held -= self._caches.popitem(last=False)[1].bytes

    @property
    def bytes(self) -> int:
        """Memory that all of them take."""
        return sum(cache.bytes for cache in self._caches.values())

    def __len__(self) -> int:
        return len(self._caches)


def extend_to(
    network: Any, cache: PrefixCache, tokens: Sequence[int], *, exact: bool = True
) -> Generator[int, None, None]:
    """Make `cache` hold exactly `tokens`; yield the number encoded so far after each chunk.

    exact: all chunks begin at multiples of 256 whatever was there before, so that reuse gives bit for bit what a fresh
    encode gives (law 4). Without it only what is new is encoded: equal up to rounding, and cheaper by half a chunk on
    average. Closing the iterator leaves a valid, shorter cache.

    1. Cut to the common part, in exact mode to the last chunk border within it.  2. Encode the rest chunk by chunk.
    """
    assert tokens, "the decoder needs at least one token before the canvas"
    wanted = tuple(tokens)
    # 1. A hit counts only after comparing tokens; the same sequence needs no work at all.
    if cache.tokens == wanted and not (exact and cache.even < len(wanted)):
        return
    common = next((i for i, (a, b) in enumerate(zip(cache.tokens, wanted, strict=False)) if a != b), None)
    if common is None:
        common = min(len(cache.tokens), len(wanted))
    if exact:
        common = min(common, cache.even)
        common -= common % CHUNK
    cache.cut(common)
    # 2. `tokens` grows only when every layer holds the chunk: an encode that dies half-way leaves the old state.
    device = network.model.decoder.embed_tokens.weight.device
    while (start := len(cache.tokens)) < len(wanted):
        chunk = wanted[start : start - start % CHUNK + CHUNK]
        try:
            with torch.inference_mode():
                network.model.encoder.language_model(
                    input_ids=torch.tensor([chunk], device=device), past_key_values=cache
                )
        except BaseException:
            cache.cut(start)
            raise
        cache.tokens += chunk
        if cache.even == start and start % CHUNK == 0:
            cache.even = len(cache.tokens)
        yield len(cache.tokens)
