"""A denoising step beside its own matrix products: how much of it is something else.

    python -m benchmarks.step --checkpoint small --slots 64 --prefix 512

1. Encode a prefix.  2. Denoise a canvas without anchors for some steps, as the engine does: on a thread of its own.
3. Record the products (linear layers, matmul) of one step, their shapes and types.  4. Time those alone, on the same
thread, in turns with whole steps. Medians, and their ratio.
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.canvas import open_canvas
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.denoise import denoise
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise

_PRODUCTS = (
    "aten.linear.default",
    "aten.matmul.default",
    "aten.mm.default",
    "aten.addmm.default",
    "aten.bmm.default",
    "mkldnn._linear_pointwise.default",  # model/networks/packed.py
)


class _Recorder(TorchDispatchMode):
    """Keeps what is to be done again for each matrix product of the block."""

    def __init__(self) -> None:
        super().__init__()
        self.products: list[Callable[[], Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func) in _PRODUCTS:
            # The same memory, as weights are read from there; what was computed may be overwritten meanwhile.
            self.products.append(lambda: func(*args))
        return func(*args, **(kwargs or {}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", default="small")
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--prefix", type=int, default=512, help="tokens")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--times", type=int, default=15)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_measure, given).result()


@torch.inference_mode()
def _measure(given: argparse.Namespace) -> None:
    model = load_checkpoint(given.checkpoint, "cpu", lambda _: None)
    cache = PrefixCache(model.network.config.text_config)
    for _ in extend_to(model.network, cache, tuple(range(100, 100 + given.prefix)), exact=True):
        pass
    steps = _steps(model, cache, given.slots)
    # The first steps are slow, and the very first one has no self-conditioning.
    for _ in range(3):
        next(steps)
    with _Recorder() as recorder:
        next(steps)
    whole, alone = list[float](), list[float]()
    for _ in range(given.times):
        whole.append(_timed(lambda: next(steps)))
        alone.append(_timed(lambda: [product() for product in recorder.products]))
    step, products = 1000 * median(whole), 1000 * median(alone)
    print(
        f"{given.checkpoint}, {given.slots} slots behind {given.prefix} tokens, {given.threads} thread(s): a step "
        f"{step:.1f} ms, its {len(recorder.products)} products alone {products:.1f} ms, {step / products:.2f} times"
    )


def _steps(model: Checkpoint, cache: PrefixCache, slots: int) -> Any:
    """Steps without end of one canvas that never finishes."""
    canvas = open_canvas(slots)
    schedule = replace(model.schedule, steps=1000, confidence=-1.0)
    noise = SeededNoise(1, model.vocabulary, model.device)
    steps: Any = denoise(
        model.network, cache, AnchoredSampler(canvas, schedule.entropy_bound, noise), schedule
    )
    return steps


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
