"""The decoder's pass as a CUDA graph: recorded once for each shape, then replayed at every step of that shape.

A pass of the released checkpoint launches thousands of kernels, and launching them takes longer than running them. A
graph is launched at once, but its shapes and its addresses in memory are fixed. So the prefix is copied into buffers
whose length is one of BUCKETS, a mask hides the unused end of the buffers, and the batch is padded to a power of two of
rows. Knows the decoder and the prefix cache; knows no sampler.
"""

import itertools
import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from dg_lsp.model.cache import PrefixCache, PrefixLayer
from dg_lsp.model.networks.decoder import View, decode, hidden_states

BUCKETS = (1024, 4096, 16384, 65536)  # lengths of the prefix buffers in tokens
# Rows times tokens of a bucket. Beyond it a replay's mask and padding cost more than its launches save: on an H100, 8
# canvases of 64 slots after 8,192 tokens take 111 ms replayed and 91 ms plain (docs/research/graphs.md).
_MOST = 1 << 16
_WARM_UP = (
    3  # passes before the recording, in which libraries choose their kernels and allocate their workspaces
)
_TOLERANCE = (
    0.05  # mean difference of a replay from a plain pass, as a share of the mean absolute hidden state
)

# Takes a canvas [rows, length] and its self-conditioning signal (None at the first step); returns the hidden states
# [rows, length, hidden].
Pass = Callable[[Tensor, Tensor | None], Tensor]
# Takes a computation on fixed memory; returns a function that runs it again, and the tensor that receives its result.
Record = Callable[[Callable[[], Tensor]], tuple[Callable[[], object], Tensor]]


def passes(network: Any, cache: PrefixCache) -> Pass:
    """The decoder's pass for canvases after the prefix in `cache`, which must not change while the pass is in use.

    Replayed if `enable` was called for `network`, else plain.
    """
    replays: Replays | None = getattr(network, "replays", None)
    return _plain(network, cache) if replays is None else replays.after(cache)


def enable(network: Any, record: Record | None = None, buckets: tuple[int, ...] = BUCKETS) -> "Replays":
    """Let `passes` replay the passes of `network` from now on; return its recordings.

    record: how a computation is recorded, as a CUDA graph unless given.
    """
    network.replays = Replays(network, record or _on_cuda, buckets)
    return network.replays


class Replays:
    """The recorded passes of a network, by rows, canvas length and bucket.

    broken: the reason why nothing is replayed any more; empty while replaying works.
    """

    def __init__(self, network: Any, record: Record, buckets: tuple[int, ...]) -> None:
        self.broken = ""
        self._network, self._record, self._buckets = network, record, buckets
        self._prefixes: dict[int, _PrefixBuffers] = {}
        self._recordings: dict[tuple[int, int, int], _Recording] = {}
        self._tickets = itertools.count(1)

    @property
    def recorded(self) -> int:
        """The number of recordings; it no longer grows once every shape in use has been met."""
        return len(self._recordings)

    def after(self, cache: PrefixCache) -> Pass:
        """The pass after the prefix in `cache`; a plain one if the prefix is longer than every bucket."""
        plain = _plain(self._network, cache)
        bucket = next((b for b in self._buckets if b >= len(cache.tokens)), None)
        if bucket is None:
            return plain
        prefix = self._prefixes.get(bucket) or _PrefixBuffers(cache, bucket)
        self._prefixes[bucket] = prefix
        # Two fills that take turns share the buffers; the ticket tells whose prefix they hold.
        ticket = next(self._tickets)

        def replayed(canvas: Tensor, soft: Tensor | None) -> Tensor:
            if self.broken or len(canvas) * bucket > _MOST:
                return plain(canvas, soft)
            prefix.load(cache, ticket)
            return self._replayed(canvas, soft, (bucket, plain))

        return replayed

    def _replayed(self, canvas: Tensor, soft: Tensor | None, after: tuple[int, Pass]) -> Tensor:
        """The hidden states from the recording of this shape, which is made if there is none.

        A new recording is compared with the plain pass; if it fails or differs, replaying ends for good.
        """
        bucket, plain = after
        rows, length = canvas.shape
        shape = (1 << (rows - 1).bit_length(), length, bucket)
        if known := self._recordings.get(shape):
            return known(canvas, soft)
        wanted = plain(canvas, soft)
        try:
            made = _Recording(self._network, self._prefixes[bucket], shape[:2], self._record)
            found = made(canvas, soft)
        except RuntimeError as error:
            self._give_up(str(error).strip().split("\n")[0])
            return wanted
        # Not exactly equal: rounding differs, and so, for a few tokens, does the choice of experts.
        if float((found - wanted).abs().mean()) > _TOLERANCE * float(wanted.abs().mean()):
            self._give_up("a replay gave something else than a plain pass")
            return wanted
        self._recordings[shape] = made
        return found

    def _give_up(self, why: str) -> None:
        self.broken = why
        self._recordings.clear()
        logging.getLogger(__name__).warning("CUDA graphs are off from now on: %s", why)


class _PrefixBuffers:
    """A prefix in buffers of fixed length: keys and values of each layer, [1, heads, tokens, head size].

    The buffers of a sliding layer hold window - 1 tokens at most. start: the prefix's length, on the device. ticket: of
    the pass whose prefix the buffers hold, 0 at first.
    """

    def __init__(self, cache: PrefixCache, bucket: int) -> None:
        self.layers: list[tuple[Tensor, Tensor]] = []
        for layer in cache.layers:
            seen = bucket if layer.window is None else min(bucket, layer.window - 1)
            keys, values = (t.new_zeros(*t.shape[:2], seen, t.shape[3]) for t in (layer.keys, layer.values))
            self.layers.append((keys, values))
        self.start = torch.zeros((), dtype=torch.int64, device=cache.layers[0].keys.device)
        self.ticket = 0

    def load(self, cache: PrefixCache, ticket: int) -> None:
        """Copy the prefix of `cache` into the buffers, unless they hold the prefix of the pass with this `ticket`."""
        if self.ticket == ticket:
            return
        for buffers, layer in zip(self.layers, cache.layers, strict=True):
            for buffer, now in zip(buffers, (layer.keys, layer.values), strict=True):
                buffer[:, :, : now.shape[2]] = now
        self.start.fill_(len(cache.tokens))
        self.ticket = ticket

    def seen_by(self, rows: int) -> Cache:
        """A view of the buffers for a batch of `rows` canvases; nothing is copied."""
        layers = []
        for keys, values in self.layers:
            layer = PrefixLayer(None)
            layer.is_initialized = True
            layer.keys, layer.values = (t.expand(rows, -1, -1, -1) for t in (keys, values))
            layers.append(layer)
        return Cache(layers=layers)

    def view(self, length: int, kinds: list[str], dtype: torch.dtype) -> View:
        """The positions and masks of a canvas of `length` slots after the prefix.

        Computed on the device from `start`, so that a recording stays right for a prefix of another length.
        """
        device, masks = self.start.device, {}
        for kind, (keys, _) in zip(kinds, self.layers, strict=True):
            if kind not in masks:
                seen = keys.shape[2]
                hidden = torch.arange(seen + length, device=device) >= self.start
                hidden &= torch.arange(seen + length, device=device) < seen
                masks[kind] = hidden[None, None, None].to(dtype) * torch.finfo(dtype).min
        return View((self.start + torch.arange(length, device=device))[None], masks)


class _Recording:
    """A recorded pass of fixed shape, with its input and output buffers."""

    def __init__(self, network: Any, prefix: _PrefixBuffers, shape: tuple[int, int], record: Record) -> None:
        table, kinds = network.model.decoder.embed_tokens, network.config.text_config.layer_types
        self._canvas = torch.zeros(shape, dtype=torch.int64, device=table.weight.device)
        self._soft = torch.zeros_like(table(self._canvas))
        cache, dtype = prefix.seen_by(shape[0]), table.weight.dtype

        def run() -> Tensor:
            view = prefix.view(shape[1], kinds, dtype)
            return decode(network, cache, table(self._canvas), self._soft, view)

        self._replay, self._hidden = record(run)

    def __call__(self, canvas: Tensor, soft: Tensor | None) -> Tensor:
        """The hidden states of the rows given, valid until the next replay."""
        self._canvas[: len(canvas)] = canvas
        self._soft[: len(canvas)] = 0 if soft is None else soft
        self._replay()
        return self._hidden[: len(canvas)]


def _plain(network: Any, cache: PrefixCache) -> Pass:
    return lambda canvas, soft: hidden_states(network, cache.seen_by(len(canvas)), canvas, soft)


def _on_cuda(run: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
    """Record `run` as a CUDA graph after a warm-up on a side stream, as the documentation of torch.cuda.graph asks."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        hidden = run()
    return graph.replay, hidden
