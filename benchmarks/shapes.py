"""What shapes of the embedded network cost: weights, megabytes, and the time of one step. Random weights will do.

    python -m benchmarks.shapes [WIDTHxLAYERS ...]

One torch thread, bf16, canvas of 64 slots of which 16 are free, prefix of 512 tokens: what a rest of a line takes.
"""

import statistics
import sys
import time

import torch

from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.denoise import step_logits
from dg_lsp.training.shape import embedded_config, fresh_network

SHAPES = ("192x4", "256x4", "192x8", "256x6", "320x4", "256x8", "320x6", "384x6")


def main() -> None:
    torch.set_num_threads(1)
    for shape in sys.argv[1:] or SHAPES:
        width, layers = map(int, shape.split("x"))
        network = fresh_network(embedded_config(4096, width, layers), 0).eval()
        weights = sum(w.numel() for name, w in network.named_parameters() if "vision" not in name)
        cache = PrefixCache(network.config.text_config)
        for _ in extend_to(network, cache, list(range(4, 516))):
            pass
        canvas, free = torch.arange(64)[None] + 100, torch.arange(16) + 10
        soft = torch.zeros(1, 64, width, dtype=torch.bfloat16)
        times = []
        with torch.inference_mode():
            for _ in range(25):
                begin = time.perf_counter()
                step_logits(network, cache.seen_by(1), canvas, free, soft).softmax(-1)
                times.append((time.perf_counter() - begin) * 1000)
        step = statistics.median(times[5:])
        print(
            f"{shape:>6}: {weights / 1e6:5.2f} M weights, {weights * 2 / 1e6:5.1f} MB, {step:5.1f} ms a step",
            flush=True,
        )


if __name__ == "__main__":
    main()
