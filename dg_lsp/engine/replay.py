"""Replay: the decoder's pass as a CUDA graph, recorded once for each shape and replayed at every step of that shape.

A pass of the released checkpoint launches thousands of kernels, which takes longer than what they compute. A graph is
launched at once, but its shapes and its places in memory are fixed. So the prefix is copied into buffers as long as its
bucket, a mask hides what is not there, and rows are filled up to a power of two. Knows the decoder and the prefix
cache; knows no sampler.
"""

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from dg_lsp.engine.cache import PrefixCache, PrefixLayer
from dg_lsp.engine.decoder import View, decode, hidden_states

BUCKETS = (1024, 4096, 16384, 65536)  # tokens of prefix
_WARM = 3  # passes before the recording: libraries choose their kernels and make their workspaces in these
_ALIKE = 0.05  # of the mean size of a hidden state, by which a replay may be off in the mean

# Hidden states [rows, length, hidden] of a canvas [rows, length] and its self-conditioning signal (None at first).
Pass = Callable[[Tensor, Tensor | None], Tensor]
# From something that is computed in fixed places to what computes it there again, and where its result lies.
Record = Callable[[Callable[[], Tensor]], tuple[Callable[[], object], Tensor]]


def passes(network: Any, cache: PrefixCache) -> Pass:
    """The decoder's pass over canvases behind the prefix in `cache`, which must not change meanwhile."""
    replays: Replays | None = getattr(network, "replays", None)
    return _plain(network, cache) if replays is None else replays.behind(cache)


def enable(network: Any, record: Record | None = None, buckets: tuple[int, ...] = BUCKETS) -> "Replays":
    """Let the passes of `network` be replayed from now on."""
    network.replays = Replays(network, record or _on_cuda, buckets)
    return network.replays


class Replays:
    """The recordings of a network, by rows, canvas length and bucket.

    broken: why nothing is replayed any more; else empty.
    """

    def __init__(self, network: Any, record: Record, buckets: tuple[int, ...]) -> None:
        self.broken = ""
        self._network, self._record, self._buckets = network, record, buckets
        self._frozen: dict[int, _Frozen] = {}
        self._recordings: dict[tuple[int, int, int], _Recording] = {}

    @property
    def recorded(self) -> int:
        """How many there are; it stands still once all shapes in use were met."""
        return len(self._recordings)

    def behind(self, cache: PrefixCache) -> Pass:
        """The pass behind the prefix in `cache`; not replayed where that is longer than every bucket."""
        plain = _plain(self._network, cache)
        bucket = next((b for b in self._buckets if b >= len(cache.tokens)), None)
        if bucket is None:
            return plain
        frozen = self._frozen.get(bucket) or _Frozen(cache, bucket)
        self._frozen[bucket] = frozen
        # A new one for each caller, as two may take turns.
        owner = object()

        def replayed(canvas: Tensor, soft: Tensor | None) -> Tensor:
            if self.broken:
                return plain(canvas, soft)
            frozen.take(cache, owner)
            return self._replayed(canvas, soft, (bucket, plain))

        return replayed

    def _replayed(self, canvas: Tensor, soft: Tensor | None, behind: tuple[int, Pass]) -> Tensor:
        """1. Find or make the recording.  2. A new one must give what the plain pass gives, or none is used again."""
        bucket, plain = behind
        rows, length = canvas.shape
        shape = (1 << (rows - 1).bit_length(), length, bucket)
        if known := self._recordings.get(shape):
            return known(canvas, soft)
        wanted = plain(canvas, soft)
        try:
            made = _Recording(self._network, self._frozen[bucket], shape[:2], self._record)
            found = made(canvas, soft)
        except RuntimeError as error:
            self._give_up(str(error).strip().split("\n")[0])
            return wanted
        # Rounding differs, and with it which experts a token goes to now and then.
        if float((found - wanted).abs().mean()) > _ALIKE * float(wanted.abs().mean()):
            self._give_up("a replay gave something else than a plain pass")
            return wanted
        self._recordings[shape] = made
        return found

    def _give_up(self, why: str) -> None:
        self.broken = why
        self._recordings.clear()
        logging.getLogger(__name__).warning("CUDA graphs are off from now on: %s", why)


class _Frozen:
    """A prefix in buffers of a bucket's length: keys and values of each layer, [1, heads, seen, head size].

    A sliding layer shows window - 1 tokens at most. How many tokens there are lies on the device, too.
    """

    def __init__(self, cache: PrefixCache, bucket: int) -> None:
        self.layers: list[tuple[Tensor, Tensor]] = []
        for layer in cache.layers:
            seen = bucket if layer.window is None else min(bucket, layer.window - 1)
            keys, values = (t.new_zeros(*t.shape[:2], seen, t.shape[3]) for t in (layer.keys, layer.values))
            self.layers.append((keys, values))
        self.start = torch.zeros((), dtype=torch.int64, device=cache.layers[0].keys.device)
        self._owner: object = None

    def take(self, cache: PrefixCache, owner: object) -> None:
        """Copy the prefix of `cache`, unless `owner` was the last to have it copied."""
        if self._owner is owner:
            return
        for buffers, layer in zip(self.layers, cache.layers, strict=True):
            for buffer, now in zip(buffers, (layer.keys, layer.values), strict=True):
                buffer[:, :, : now.shape[2]] = now
        self.start.fill_(len(cache.tokens))
        self._owner = owner

    def seen_by(self, rows: int) -> Cache:
        """The handle that `rows` canvases read."""
        layers = []
        for keys, values in self.layers:
            layer = PrefixLayer(None)
            layer.is_initialized = True
            layer.keys, layer.values = (t.expand(rows, -1, -1, -1) for t in (keys, values))
            layers.append(layer)
        return Cache(layers=layers)

    def view(self, length: int, kinds: list[str], dtype: torch.dtype) -> View:
        """What a canvas of `length` slots behind the prefix sees; computed on the device, so it may be recorded."""
        device, masks = self.start.device, {}
        for kind, (keys, _) in zip(kinds, self.layers, strict=True):
            if kind not in masks:
                seen = keys.shape[2]
                hidden = torch.arange(seen + length, device=device) >= self.start
                hidden &= torch.arange(seen + length, device=device) < seen
                masks[kind] = hidden[None, None, None].to(dtype) * torch.finfo(dtype).min
        return View((self.start + torch.arange(length, device=device))[None], masks)


class _Recording:
    """A pass of fixed shape: where its input lies, what replays it, where its output lies."""

    def __init__(self, network: Any, frozen: _Frozen, shape: tuple[int, int], record: Record) -> None:
        table, kinds = network.model.decoder.embed_tokens, network.config.text_config.layer_types
        self._canvas = torch.zeros(shape, dtype=torch.int64, device=table.weight.device)
        self._soft = torch.zeros_like(table(self._canvas))
        cache, dtype = frozen.seen_by(shape[0]), table.weight.dtype

        def run() -> Tensor:
            view = frozen.view(shape[1], kinds, dtype)
            return decode(network, cache, table(self._canvas), self._soft, view)

        self._replay, self._hidden = record(run)

    def __call__(self, canvas: Tensor, soft: Tensor | None) -> Tensor:
        """The output of the rows given; it stays until the next replay."""
        self._canvas[: len(canvas)] = canvas
        self._soft[: len(canvas)] = 0 if soft is None else soft
        self._replay()
        return self._hidden[: len(canvas)]


def _plain(network: Any, cache: PrefixCache) -> Pass:
    return lambda canvas, soft: hidden_states(network, cache.seen_by(len(canvas)), canvas, soft)


def _on_cuda(run: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
    """Record `run` as a CUDA graph, as torch.cuda.graph's documentation says: warmed up on a stream of its own."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(_WARM):
            run()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        hidden = run()
    return graph.replay, hidden
