"""Costs: the seconds that a pass of a network takes here, measured now or at an earlier start.

Knows a network and its passes; knows no plan.
"""

import math
import os
import platform
import time
from collections.abc import Callable, Generator
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path

import torch

from dg_lsp import __version__
from dg_lsp.files.records import note_in_record, read_record
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.canvas import Canvas
from dg_lsp.model.manifest import record_file
from dg_lsp.model.networks.base import Denoiser, Network, Reader
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule
from dg_lsp.model.tree import Tree

SLOTS = 64  # of the canvases that are measured
ROWS = 8
# Seconds that measuring may take; what would take longer is estimated. An estimate may be three times too high: SLOTS
# tokens take as long as three to twelve single ones.
_MOST = 3.0
# Seconds of measuring below which costs are measured at each start, and the number of those that are kept.
_LEAST, _KEPT = 0.3, 32


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of a read token, and of a denoising step of one canvas of SLOTS slots and of ROWS of them."""

    token: float
    row: float
    rows: float

    def seconds(self, tokens: float) -> float:
        """The estimated seconds of a pass of `tokens` tokens or slots, by a line through the two next measured ones."""
        known = [(1, self.token), (SLOTS, self.row), (ROWS * SLOTS, self.rows)]
        lines = [(b, a) for a, b in pairwise(known)]
        (far, most), (near, least) = next((line for line in lines if tokens <= line[0][0]), lines[-1])
        return least + (most - least) * (max(tokens, 1) - near) / (far - near)


def place_of(about: str, network: Network) -> str:
    """Return what the costs of `network` depend on, as a text: `about` its weights, and this machine."""
    device, cpu = torch.device(network.device), torch.backends.cpu.get_cpu_capability()
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    machine = f"{platform.node()} {cpu} {card} {os.cpu_count()} {torch.get_num_threads()}"
    return f"{about} {machine} {torch.__version__} {__version__}"


def kept_costs(place: str) -> Costs | None:
    """Return the costs that `keep_costs` has kept for `place`; None without any."""
    try:
        found = Costs(*map(float, read_record(_file())[place]))
    except (LookupError, TypeError, ValueError):
        return None
    return found if all(0 < seconds < math.inf for seconds in astuple(found)) else None


def keep_costs(place: str, costs: Costs) -> None:
    """Keep `costs` for later starts at `place`, a text that says what they depend on, unless they are soon measured."""
    if 2 * (costs.token + costs.row) < _LEAST:
        return
    note_in_record(_file(), place, astuple(costs), _KEPT)


def _file() -> Path:
    return record_file().with_name("costs.json")


def measure(network: Network) -> Costs | None:
    """Return what `measuring` finds, without a pause."""
    steps = measuring(network)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Costs | None = end.value
            return found


@torch.inference_mode()
def measuring(network: Network) -> Generator[None, None, Costs | None]:
    """Measure `network` in _MOST seconds at most, and yield after each pass; None for one that reads nothing.

    A read token first, then a step of one row, then one of ROWS, each as long as there is time for it. The rest is
    estimated: a step by as many tokens, rows by one row. The better of two times counts, as the first one compiles.
    """
    if not isinstance(network, Reader):
        return None
    end = time.perf_counter() + _MOST
    cache = PrefixCache(network.text_config)
    for _ in extend_to(network, cache, range(2, 10)):
        yield
    token = yield from _best(network, lambda: Tree(network, cache, len(cache.tokens)).read([[2]]), end)
    row = rows = 0.0
    if isinstance(network, Denoiser) and time.perf_counter() + 10 * token < end:
        row = yield from _best(network, lambda: _step(network, cache, 1), end)
        if time.perf_counter() + ROWS * row < end:
            rows = yield from _best(network, lambda: _step(network, cache, ROWS), end)
    elif time.perf_counter() + 10 * token < end:
        many = [[2] * SLOTS]
        row = yield from _best(network, lambda: Tree(network, cache, len(cache.tokens)).read(many), end)
    row = max(row or 10 * token, token)
    return Costs(token, row, max(rows or 0.7 * ROWS * row, row))


def _best(network: Network, work: Callable[[], object], end: float) -> Generator[None, None, float]:
    """Return the seconds of `work`, the shorter of two times unless the first one ends after `end`; yield after each.

    On a CPU those of the process, where they are fewer: what other programs do just now says little of later.
    """
    found = list[float]()
    while len(found) < 2 and (not found or time.perf_counter() + found[0] < end):
        start, own = time.perf_counter(), time.process_time()
        work()
        if network.device.type == "cuda":
            torch.cuda.synchronize(network.device)
        seconds = time.perf_counter() - start
        found.append(seconds if network.device.type != "cpu" else min(seconds, time.process_time() - own))
        yield
    return min(found)


def _step(network: Denoiser, cache: PrefixCache, rows: int) -> None:
    """Denoise `rows` canvases for a step; all of their slots are free."""
    shape = rows, SLOTS
    canvas = Canvas(torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.bool)).to(
        network.device
    )
    noise = SeededNoise(0, network.text_config.vocab_size, network.device)
    next(network.denoise(cache, AnchoredSampler(canvas, 0.1, noise), Schedule(steps=1)))
