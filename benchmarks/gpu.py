"""What the released checkpoint's shape costs on a GPU: a step, an encode, a first draft, a search, memory, kernels.

    python -m benchmarks.gpu                          every part, on a CUDA device of 80 GB or more
    python -m benchmarks.gpu --only step encode       some of them
    python -m benchmarks.gpu --small                  a tiny shape on the CPU in a minute, to see that it runs

The weights are random, which changes no kernel. It changes which experts are read: tokens spread over nearly all of
them, so the floor, the time that reading the weights once takes at the bandwidth of a copy, counts the share of the
experts that evenly spread tokens would reach.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import init_empty_weights
from transformers import LogitsProcessorList
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    EntropyBoundSampler,
    EntropyBoundSamplerConfig,
    LinearTemperatureScheduleLogitsProcessor,
    StableAndConfidentStoppingCriteria,
)

from benchmarks.race.laps import Course, Lap, Rival, run_course
from benchmarks.race.rivals import find_rivals
from dg_lsp.model.cache import CHUNK, PrefixCache, extend_to
from dg_lsp.model.canvas import Canvas, Seam, lay_out, stack
from dg_lsp.model.denoise import Schedule, denoise
from dg_lsp.model.length import Search, search_length
from dg_lsp.model.networks.loading import check_logits
from dg_lsp.model.networks.replay import enable
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.training.shape import fresh_network
from tests.model.test_released import released_config
from tests.model.test_replay import again
from tests.model.tiny import tiny_config

STEPS = 12  # of which the first two are not counted
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """What is measured on: the network, tokens to run on, and the sizes of all parts."""

    network: Any
    device: torch.device
    text: tuple[int, ...]
    prefixes: tuple[int, ...]
    canvases: tuple[int, ...]
    rows: tuple[int, ...]
    repeats: int
    bandwidth: float

    @property
    def middle(self) -> int:
        """The prefix for parts that take one only."""
        return self.prefixes[1]


def open_bench(arguments: argparse.Namespace) -> Bench:
    """The network with random weights on its device, and the sizes."""
    device = torch.device("cpu" if arguments.small else "cuda:0")
    config = tiny_config() if arguments.small else released_config()
    network = random_network(config, device)
    prefixes = (256, 512, 1024) if arguments.small else (1024, 8192, 32768)
    draw = torch.Generator().manual_seed(0)
    text = torch.randint(4, config.text_config.vocab_size, (prefixes[-1] + 4 * CHUNK,), generator=draw)
    return Bench(
        network,
        device,
        tuple(text.tolist()),
        prefixes,
        (16, 8) if arguments.small else (256, 64),
        (1, 2) if arguments.small else (1, 4, 8),
        1 if arguments.small else 3,
        copy_bandwidth(device, 1 << 24 if arguments.small else 1 << 32),
    )


def random_network(config: Any, device: torch.device) -> Any:
    """A network of `config` on `device`, made there weight by weight: it never takes more than it will hold."""
    with init_empty_weights(include_buffers=False):
        network = fresh_network(config, 0)
    network.tie_weights()  # the encoder's are the decoder's, which the context has undone
    network.model.encoder.vision_tower = network.model.encoder.embed_vision = None
    made: dict[torch.nn.Parameter, torch.nn.Parameter] = {}
    for module in network.modules():
        for name, old in module._parameters.items():
            if old is not None:
                # What is tied is one weight, and stays one.
                if old not in made:
                    new = torch.ones(old.shape, dtype=old.dtype, device=device)
                    made[old] = torch.nn.Parameter(new.normal_(0, 0.02) if old.ndim > 1 else new, False)
                module._parameters[name] = made[old]
    network = network.to(device).eval()
    check_logits(network, Path("random weights"))
    return network


def copy_bandwidth(device: torch.device, size: int) -> float:
    """Bytes a second that a copy reads and writes, the best of ten."""
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * size / min(timed(device, lambda: target.copy_(source), 10))


def measure_step(bench: Bench) -> Iterator[Record]:
    """One denoising step at every prefix, canvas and number of rows: ours and transformers' own.

    A quarter of our slots is free. Theirs is the very step of `generate`, which has no other kind.
    """
    forward = bench.network.forward
    for prefix in bench.prefixes:
        cache = encoded(bench, prefix)
        for canvas, rows in product(bench.canvases, bench.rows):
            gaps, shape = [canvas // 4] * rows, (rows, canvas)
            yield {
                "prefix": prefix,
                "canvas": canvas,
                "rows": rows,
                "floor ms": 1000 * floor_bytes(bench, cache, canvas * rows) / bench.bandwidth,
                "ours ms": guarded(partial(our_step, bench, cache, canvas, gaps)),
                "replayed ms": guarded(partial(replayed_step, bench, cache, canvas, gaps)),
                "eager ms": guarded(partial(their_step, bench, forward, cache, shape)),
            }


def measure_compiled(bench: Bench) -> Iterator[Record]:
    """transformers' step with its forward compiled, one row at one prefix: compiling takes minutes."""
    cache = encoded(bench, bench.middle)
    # Where there is but one repeat, one canvas will do, too.
    for canvas in bench.canvases[: bench.repeats]:
        torch._dynamo.reset()
        if bench.device.type == "cuda":
            forward = torch.compile(bench.network.forward, mode="reduce-overhead", dynamic=False)
        else:
            forward = torch.compile(bench.network.forward, backend="aot_eager", dynamic=False)
        start = time.perf_counter()
        step = guarded(partial(their_step, bench, forward, cache, (1, canvas)))
        yield {
            "prefix": bench.middle,
            "canvas": canvas,
            "floor ms": 1000 * floor_bytes(bench, cache, canvas) / bench.bandwidth,
            "compiled ms": step,
            "compiling and all s": time.perf_counter() - start,
        }


def measure_encode(bench: Bench) -> Iterator[Record]:
    """Encoding what was typed behind a cached prefix that ends at a border of our chunks, or half-way between two."""
    for prefix, lead in product(bench.prefixes, (0, CHUNK // 2)):
        record: Record = {"prefix": prefix, "behind the border": lead}
        base = bench.text[: prefix - prefix % CHUNK + lead]
        for typed in (1, 8, 64):
            cache, wanted = PrefixCache(bench.network.config.text_config), bench.text[: len(base) + typed]
            times = []
            for _ in range(6):
                extend(bench, cache, base)
                times += timed(bench.device, partial(extend, bench, cache, wanted), 1)
            record[f"{typed} typed ms"] = 1000 * statistics.median(times[1:])
        yield record


def measure_draft(bench: Bench) -> Iterator[Record]:
    """Seconds to the first draft and of a whole fill of 16 steps, and the most memory, beside the other engines."""
    for prefix in bench.prefixes:
        course = Course(prefix, bench.canvases[0], bench.canvases[0] // 4, 16)
        rivals = {name: spared(rival) for name, rival in find_rivals(bench.network).items()}
        for name, laps in run_course(bench.network, bench.text, course, bench.repeats, rivals).items():
            yield {
                "prefix": prefix,
                "engine": name,
                "first s": statistics.median(lap.first for lap in laps),
                "whole s": statistics.median(lap.whole for lap in laps),
                "peak GB": max(lap.memory for lap in laps) / 1e9,
            }


def measure_lengths(bench: Bench) -> Iterator[Record]:
    """A step of eight candidate lengths against a step of one, and a whole search of eight lengths."""
    for prefix in bench.prefixes:
        cache = encoded(bench, prefix)
        for canvas in bench.canvases:
            lengths = tuple(range(1, canvas // 2, max(canvas // 16, 1)))[:8]
            one = our_step(bench, cache, canvas, lengths[-1:])
            eight = our_step(bench, cache, canvas, [lengths[i % len(lengths)] for i in range(8)])
            search = partial(searched, bench, cache, canvas, lengths)
            yield {
                "prefix": prefix,
                "canvas": canvas,
                "one ms": one,
                "eight ms": eight,
                "times": eight / one,
                "search ms": 1000 * statistics.median(timed(bench.device, search, 4)[1:]),
            }


def searched(bench: Bench, cache: PrefixCache, canvas: int, lengths: tuple[int, ...]) -> None:
    """One round of the length search: every length once, one step each."""
    seam = Seam((), bench.text[len(cache.tokens) : len(cache.tokens) + canvas], 0)
    search = Search(lengths, draws=1, steps=1, refined=0)
    for _ in search_length(bench.network, cache, (seam, canvas), search, 0):
        return


def measure_profile(bench: Bench) -> Iterator[Record]:
    """The kernels of three steps, printed as torch's own table."""
    cache, canvas = encoded(bench, bench.middle), bench.canvases[0]
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if bench.device.type == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    steps = our_steps(bench, cache, canvas, [canvas // 4])
    for _ in range(3):
        next(steps)
    with torch.profiler.profile(activities=kinds) as profile:
        for _ in range(3):
            next(steps)
        synchronise(bench.device)
    found = profile.key_averages()
    by = "self_device_time_total" if bench.device.type == "cuda" else "self_cpu_time_total"
    print(found.table(sort_by=by, row_limit=20, max_name_column_width=60))
    yield {
        "operators a step": sum(e.count for e in found) / 3,
        "GPU ms a step": sum(e.self_device_time_total for e in found) / 3000,
        "CPU ms a step": sum(e.self_cpu_time_total for e in found) / 3000,
    }


def our_steps(bench: Bench, cache: PrefixCache, canvas: int, gaps: Sequence[int]) -> Iterator[Any]:
    """Our loop on as many rows as there are `gaps`, each a number of free slots at the canvas's beginning."""
    seam = Seam((), bench.text[len(cache.tokens) : len(cache.tokens) + canvas], 0)
    laid: Canvas = stack([lay_out(seam, gap, canvas) for gap in gaps]).to(bench.device)
    noise = SeededNoise(0, bench.network.config.text_config.vocab_size, bench.device)
    sampler = AnchoredSampler(laid, 0.1, noise)
    return iter(denoise(bench.network, cache, sampler, Schedule(steps=STEPS, confidence=-1.0)))


def our_step(bench: Bench, cache: PrefixCache, canvas: int, gaps: Sequence[int]) -> float:
    """Milliseconds of one of our steps, the median."""
    steps = our_steps(bench, cache, canvas, gaps)
    return 1000 * statistics.median(timed(bench.device, lambda: next(steps), STEPS)[2:])


def replayed_step(bench: Bench, cache: PrefixCache, canvas: int, gaps: Sequence[int]) -> float:
    """The same with the decoder's passes replayed; on the CPU they are only computed again in the same places."""
    replays = enable(bench.network, None if bench.device.type == "cuda" else again)
    try:
        found = our_step(bench, cache, canvas, gaps)
    finally:
        bench.network.replays = None
    if replays.broken:
        raise RuntimeError(replays.broken)
    return found


@torch.no_grad()
def their_step(
    bench: Bench, forward: Callable[..., Any], cache: PrefixCache, shape: tuple[int, int]
) -> float:
    """Milliseconds of one step of `generate` on a canvas of `shape`, the median; `forward` is the network's."""
    network, like = bench.network, Schedule(steps=STEPS)
    vocabulary = network.config.text_config.vocab_size
    sampler = EntropyBoundSampler(EntropyBoundSamplerConfig(like.entropy_bound), shape[1], vocabulary, STEPS)
    current = sampler.initialize_canvas(batch_size=shape[0], device=bench.device)
    start, handle = len(cache.tokens), cache.seen_by(shape[0])
    seen = torch.ones(shape[0], start + shape[1], dtype=torch.bool, device=bench.device)
    masks = network.model.decoder.create_diffusion_decoder_attention_mask(
        config=network.config,
        inputs_embeds=current.unsqueeze(-1),
        past_key_values=handle,
        decoder_attention_mask=seen,
    )
    same = {
        "decoder_forward": forward,
        "input_ids": current[:, :1],
        "decoder_position_ids": torch.arange(start, start + shape[1], device=bench.device)[None],
        "mask_mapping": masks,
        "past_key_values": handle,
        "sampler": sampler,
        "logits_processor": LogitsProcessorList(
            [LinearTemperatureScheduleLogitsProcessor(like.t_min, like.t_max, STEPS)]
        ),
        "diffusion_stopping_criteria": StableAndConfidentStoppingCriteria(STEPS, like.confidence),
    }
    # What a step hands to the next: the canvas, the best tokens, the logits, which rows are done.
    state = [current, current, None, torch.zeros(shape[0], dtype=torch.bool, device=bench.device)]
    names = ("current_canvas", "argmax_canvas", "self_conditioning_logits", "finished_denoising")
    left = iter(range(STEPS, 0, -1))

    def step() -> None:
        given = dict(zip(names, state, strict=True))
        state[:] = network._denoising_step(cur_step=next(left), **given, **same)

    # The first step has no logits to go on from, so it is a graph of its own; the second is the one that is compiled.
    return 1000 * statistics.median(timed(bench.device, step, STEPS)[3:])


def floor_bytes(bench: Bench, cache: PrefixCache, tokens: int) -> float:
    """Bytes that a step on `tokens` slots must read: weights, the embedding once more, and the keys in sight."""
    text = bench.network.config.text_config
    # The embedding is read as the output's weights and, right after, to make the self-conditioning.
    total = float(bench.network.model.decoder.embed_tokens.weight.nbytes)
    reached = 1 - (1 - text.top_k_experts / text.num_experts) ** tokens
    for name, weight in bench.network.named_parameters():
        total += weight.nbytes * (reached if ".experts." in name else 1)
    return total + sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)


def encoded(bench: Bench, prefix: int) -> PrefixCache:
    """A cache of the first `prefix` tokens."""
    cache = PrefixCache(bench.network.config.text_config)
    extend(bench, cache, bench.text[:prefix])
    return cache


def extend(bench: Bench, cache: PrefixCache, tokens: Sequence[int]) -> None:
    for _ in extend_to(bench.network, cache, tokens):
        pass


def timed(device: torch.device, work: Callable[[], Any], count: int) -> list[float]:
    """Seconds of each of `count` calls, the device waited for."""
    found = []
    for _ in range(count):
        synchronise(device)
        start = time.perf_counter()
        work()
        synchronise(device)
        found.append(time.perf_counter() - start)
    return found


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def guarded(measure: Callable[[], float]) -> float:
    """What `measure` gives; no number, and why on stderr, where it fails: the other rows are wanted all the same."""
    try:
        return measure()
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}", file=sys.stderr, flush=True)
        return math.nan


def spared(rival: Rival) -> Rival:
    """`rival` with a lap of no numbers where it runs out of memory."""

    def run(tokens: Sequence[int], course: Course) -> Lap:
        try:
            return rival(tokens, course)
        except torch.OutOfMemoryError:
            return Lap(math.nan, math.nan, 0)

    return run


PARTS: dict[str, Callable[[Bench], Iterator[Record]]] = {
    "step": measure_step,
    "encode": measure_encode,
    "draft": measure_draft,
    "lengths": measure_lengths,
    "profile": measure_profile,
    "compiled": measure_compiled,
}


def show(record: Record) -> str:
    cells = (f"{v:.3f}" if isinstance(v, float) else str(v) for v in record.values())
    return "  ".join(f"{name} {cell}" for name, cell in zip(record, cells, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="a tiny shape on the CPU")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not arguments.small and not torch.cuda.is_available():
        parser.error("there is no CUDA device; --small runs a tiny shape on the CPU")
    start = time.perf_counter()
    bench = open_bench(arguments)
    weights = sum(w.nbytes for w in bench.network.parameters())
    name = "the CPU" if arguments.small else torch.cuda.get_device_name()
    print(f"{name}, torch {torch.__version__}, transformers {transformers.__version__}")
    print(f"weights {weights / 1e9:.3f} GB, made in {time.perf_counter() - start:.1f} s; a copy moves "
          f"{bench.bandwidth / 1e12:.3f} TB/s", flush=True)  # fmt: skip
    report: dict[str, list[Record]] = {}
    for part in arguments.only:
        begun = time.perf_counter()
        print(f"\n{part}: {(PARTS[part].__doc__ or '').splitlines()[0]}", flush=True)
        if not arguments.small:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        report[part] = []
        for record in PARTS[part](bench):
            print("  " + show(record), flush=True)
            report[part].append(record)
            # After every record, so that a run which is cut short leaves what it has.
            if arguments.json:
                arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        peak = "" if arguments.small else f", peak {torch.cuda.max_memory_allocated() / 1e9:.1f} GB"
        print(f"  {time.perf_counter() - begun:.1f} s{peak}", flush=True)


if __name__ == "__main__":
    main()
