"""Time and memory at the released checkpoint's true shape, with random weights in bf16 and in four bits.

    python -m benchmarks.released --json report.json             everything: a GPU of 80 GB in six minutes
    python -m benchmarks.released --bits 4 --layers 4            four layers in four bits, on a CPU with 6 GB free
    python -m benchmarks.released --smoke                        every part on two layers, in a minute or two
    python -m benchmarks.released --tiny                         every part on a tiny shape on the CPU, in seconds

Random weights change no kernel. They change which experts are read: tokens spread over nearly all of them, so the
floor, the time that reading the weights once takes at the bandwidth of a copy, counts the share of the experts that
evenly spread tokens reach. Every part runs within a budget of seconds, and an error ends its part only.
"""

import argparse
import gc
import json
import math
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import torch
import transformers
from transformers import DiffusionGemmaConfig, LogitsProcessorList
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    EntropyBoundSampler,
    EntropyBoundSamplerConfig,
    LinearTemperatureScheduleLogitsProcessor,
    StableAndConfidentStoppingCriteria,
)

from dg_lsp.model.cache import CHUNK, PrefixCache, extend_to
from dg_lsp.model.canvas import Canvas, Seam, lay_out, stack
from dg_lsp.model.denoise import denoise
from dg_lsp.model.length import Search, search_length
from dg_lsp.model.networks import replay
from dg_lsp.model.networks.norms import fuse_norms
from dg_lsp.model.networks.quantized import (
    Format,
    Packed,
    QuantizedExperts,
    QuantizedLinear,
    grouped_product,
    quantise,
)
from dg_lsp.model.networks.streaming import empty_network
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule
from dg_lsp.model.tree import Tree
from dg_lsp.training.shape import VISION

STEPS = 10  # of which the first two are not counted
EXPERTS = (Format(4, 128), Format(4, 64))  # gate and up, down: 704 inputs are no multiple of 128
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that are measured."""

    prefixes: tuple[int, ...]
    canvases: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """The network that is measured, tokens to run on, the sizes, and bytes a second that a copy moves.

    end: when the part that runs has used up its budget, on the clock of `time.perf_counter`.
    """

    network: Any
    device: torch.device
    text: tuple[int, ...]
    sizes: Sizes
    bandwidth: float
    end: float = math.inf


# ---- the network ---------------------------------------------------------------------------------------------------


def released_config(layers: int = 30) -> DiffusionGemmaConfig:
    """The values of the released checkpoint's config.json, but for its vision tower, which is dropped after loading.

    layers: the last ones, so that a full one is among them.
    """
    rope = {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    text: dict[str, Any] = {
        "vocab_size": 262144,
        "hidden_size": 2816,
        "intermediate_size": 2112,
        "moe_intermediate_size": 704,
        "num_experts": 128,
        "top_k_experts": 8,
        "num_hidden_layers": layers,
        "layer_types": ((["sliding_attention"] * 5 + ["full_attention"]) * 5)[-layers:],
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 256,
        "num_global_key_value_heads": 2,
        "global_head_dim": 512,
        "sliding_window": 1024,
        "max_position_embeddings": 262144,
        "rope_parameters": rope,
        "use_bidirectional_attention": "vision",
        "final_logit_softcapping": 30.0,
        "pad_token_id": 0,
        "eos_token_id": [1, 106],
        "bos_token_id": 2,
        "tie_word_embeddings": True,
    }
    return DiffusionGemmaConfig(text_config=text, vision_config=dict(VISION), canvas_length=256)


def tiny_config() -> DiffusionGemmaConfig:
    """The released one with small numbers that divide into groups."""
    config = released_config(2)
    small = {"vocab_size": 512, "hidden_size": 128, "intermediate_size": 64, "moe_intermediate_size": 64}
    small |= {"num_experts": 8, "top_k_experts": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    small |= {"head_dim": 32, "num_global_key_value_heads": 1, "global_head_dim": 64, "sliding_window": 64}
    text = config.text_config.to_dict() | small
    return DiffusionGemmaConfig(text_config=text, vision_config=dict(VISION), canvas_length=64)


def needed_bytes(config: Any, bits: int, dense: int) -> int:
    """Bytes of the weights of `config`: experts in `bits` bits, dense layers in `dense`, the rest in bf16."""
    total = 0.0
    for name, weight in empty_network(config).named_parameters():
        kept = bits if ".experts." in name else dense if _is_dense(name) else 16
        # A group of 64 has a scale and a zero of two bytes each.
        total += weight.numel() * (kept / 8 + (4 / 64 if kept < 16 else 0))
    return int(total)


def _is_dense(name: str) -> bool:
    return ("_attn." in name or ".mlp." in name) and "_proj" in name


def build(config: Any, device: torch.device, bits: int, dense: int = 16) -> Any:
    """A network of `config` with random weights on `device`, made there tensor by tensor.

    bits, dense: bits of the experts' and of the dense layers' weights: 16, 8 or 4. It never takes more memory than it
    will hold, since it is laid out on the meta device.
    """
    network = empty_network(config)
    fuse_norms(network)  # as the loader does
    ours, theirs = network.model.decoder.layers, network.model.encoder.language_model.layers
    for layer, twin in zip(ours, theirs, strict=True):
        if bits < 16:
            layer.experts = twin.experts = random_experts(layer.experts, bits, device)
        for name, module in [*layer.named_modules()]:
            if dense < 16 and isinstance(module, torch.nn.Linear) and _is_dense("." + name + ".weight"):
                shape = (1, module.out_features, module.in_features)
                linear = QuantizedLinear(Packed.random(shape, Format(dense, 64), device))
                parent, _, own = name.rpartition(".")
                setattr(layer.get_submodule(parent), own, linear)
                setattr(twin.get_submodule(parent), own, linear)
    made: dict[torch.nn.Parameter, torch.nn.Parameter] = {}
    for module in network.modules():
        for name, old in module._parameters.items():
            if old is not None:
                # What is tied is one weight, and stays one.
                if old not in made:
                    new = torch.ones(old.shape, dtype=old.dtype, device=device)
                    made[old] = torch.nn.Parameter(new.normal_(0, 0.02) if old.ndim > 1 else new, False)
                module._parameters[name] = made[old]
    return network.to(device).eval()


def random_experts(experts: Any, bits: int, device: torch.device) -> QuantizedExperts:
    """Experts in `bits` bits with the shapes of `experts`, of random numbers."""
    packed = [
        Packed.random(tuple(weight.shape), Format(bits, format_.group), device)
        for weight, format_ in zip((experts.gate_up_proj, experts.down_proj), EXPERTS, strict=True)
    ]
    return QuantizedExperts(packed[0], packed[1], experts.act_fn)


# ---- the machine ---------------------------------------------------------------------------------------------------


def copy_bandwidth(device: torch.device, size: int) -> float:
    """Bytes a second that a copy reads and writes, the best of ten."""
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * size / min(timed(device, lambda: target.copy_(source), 10))


def read_bandwidth(device: torch.device, size: int) -> float:
    """Bytes a second that a sum reads, the best of ten."""
    source = torch.ones(size // 8, dtype=torch.int64, device=device)
    return size / min(timed(device, source.sum, 10))


def bf16_flops(device: torch.device, rows: int) -> float:
    """Operations a second of a bf16 product with `rows` rows, the best of ten."""
    states, matrix = (torch.randn(n, 4096, device=device).bfloat16() for n in (rows, 8192))
    return 2 * states.numel() * 8192 / min(timed(device, lambda: states @ matrix.T, 10))


def measure_machine(device: torch.device) -> Iterator[Record]:
    """Names, versions, bandwidth and operations a second."""
    size, cuda = (1 << 32, True) if device.type == "cuda" else (1 << 28, False)
    yield {
        "device": torch.cuda.get_device_name(device) if cuda else f"CPU, {torch.get_num_threads()} threads",
        "memory GB": (torch.cuda.mem_get_info(device)[1] if cuda else psutil.virtual_memory().total) / 1e9,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "load": os.getloadavg()[0],
    }
    yield {"copy GB/s": copy_bandwidth(device, size) / 1e9, "read GB/s": read_bandwidth(device, size) / 1e9}
    for rows in (64, 256, 8192 if cuda else 1024):
        yield {"rows": rows, "bf16 GFLOP/s": bf16_flops(device, rows) / 1e9}


# ---- kernels -------------------------------------------------------------------------------------------------------


def measure_exactness(bench: Bench) -> Iterator[Record]:
    """Products in four and eight bits against the same values in fp32: largest difference over the largest value."""
    draw = torch.Generator().manual_seed(0)
    for bits, group, rows in product((4, 8), (32, 64, 128), (1, 40, 700)):
        weight = torch.randn(8, 192, 256, generator=draw).to(bench.device) / 16
        quanta = quantise(weight, Format(bits, group))
        states = torch.randn(rows, 256, generator=draw).bfloat16().to(bench.device)
        counts = torch.bincount(torch.randint(8, (rows,), generator=draw), minlength=8).to(bench.device)
        parts = zip(states.float().split(counts.tolist()), quanta.dequantised(), strict=True)
        wanted = torch.cat([part @ matrix.T for part, matrix in parts])
        record: Record = {"bits": bits, "group": group, "rows": rows}
        for way in ways(bench.device, bits):
            measure = partial(difference, quanta, way, states, counts, wanted)
            record[way] = guarded(measure)
        yield record


def difference(quanta: Any, way: str, states: Any, counts: Any, wanted: Any) -> float:
    found = Packed.of(quanta, way)(states, counts).float()
    return float((found - wanted).abs().max() / wanted.abs().max())


def ways(device: torch.device, bits: int) -> list[str]:
    """The ways of Packed on `device`."""
    if device.type == "cuda":
        return ["kernel", "whole"]
    return ["cpu", "whole"] if bits == 4 else ["whole"]


def measure_products(bench: Bench) -> Iterator[Record]:
    """The products of one layer's experts, in four bits by each way and in bf16; GB/s of the packed matrices."""
    text = bench.network.config.text_config
    hidden, inner, count = text.hidden_size, text.moe_intermediate_size, text.num_experts
    for name, shape, format_ in (
        ("gate and up", (count, 2 * inner, hidden), EXPERTS[0]),
        ("down", (count, hidden, inner), EXPERTS[1]),
    ):
        packed = {w: Packed.random(shape, format_, bench.device, w) for w in ways(bench.device, 4)}
        plain = torch.randn(shape[0], shape[2], shape[1], dtype=torch.bfloat16, device=bench.device)
        for slots in (*bench.sizes.canvases, 2048):
            rows = slots * text.top_k_experts
            states = torch.randn(rows, shape[2], dtype=torch.bfloat16, device=bench.device)
            chosen = torch.randint(count, (rows,), generator=torch.Generator().manual_seed(0))
            counts = torch.bincount(chosen, minlength=count).to(bench.device)
            record: Record = {"matrices": name, "slots": slots}
            for way, one in packed.items():
                record[f"{way} ms"] = guarded(partial(milliseconds, bench, partial(one, states, counts)))
                record[f"{way} GB/s"] = one.nbytes / record[f"{way} ms"] / 1e6
            bf16 = partial(grouped_product, states, plain, counts)
            record["bf16 ms"] = guarded(partial(milliseconds, bench, bf16))
            yield record


# ---- the network at work -------------------------------------------------------------------------------------------


def measure_step(bench: Bench) -> Iterator[Record]:
    """A denoising step by prefix, canvas and rows, a quarter of the slots free: plain, replayed, and the floor."""
    for prefix, rows, canvas in product(bench.sizes.prefixes, bench.sizes.rows, bench.sizes.canvases):
        cache, gaps = encoded(bench, prefix), [canvas // 4] * rows
        yield {
            "prefix": prefix,
            "canvas": canvas,
            "rows": rows,
            "floor ms": 1000 * floor_bytes(bench, cache, canvas * rows) / bench.bandwidth,
            "plain ms": guarded(partial(our_step, bench, cache, canvas, gaps)),
            "replayed ms": guarded(partial(replayed_step, bench, cache, canvas, gaps)),
        }


def measure_all_free(bench: Bench) -> Iterator[Record]:
    """A step of one row whose slots are all free."""
    cache = encoded(bench, bench.sizes.prefixes[0])
    for canvas in bench.sizes.canvases:
        yield {
            "canvas": canvas,
            "floor ms": 1000 * floor_bytes(bench, cache, canvas) / bench.bandwidth,
            "plain ms": guarded(partial(our_step, bench, cache, canvas, [canvas])),
            "replayed ms": guarded(partial(replayed_step, bench, cache, canvas, [canvas])),
        }


def measure_reading(bench: Bench) -> Iterator[Record]:
    """A chunk, and a token of one and of six drafts, behind each prefix."""
    for prefix in bench.sizes.prefixes:
        cache = encoded(bench, prefix)
        record: Record = {"prefix": prefix}
        base, wanted = bench.text[: max(prefix - CHUNK, 1)], bench.text[:prefix]

        def chunk(
            base: Sequence[int] = base, wanted: Sequence[int] = wanted, cache: PrefixCache = cache
        ) -> None:
            cache.cut(len(base))
            extend(bench, cache, wanted)

        record["chunk ms"] = guarded(partial(milliseconds, bench, chunk))
        record["chunk floor ms"] = 1000 * floor_bytes(bench, cache, CHUNK, readings=0) / bench.bandwidth
        for drafts in (1, 6):
            record[f"token of {drafts} ms"] = guarded(partial(read_token, bench, cache, drafts))
        record["token floor ms"] = 1000 * floor_bytes(bench, cache, 1, readings=0) / bench.bandwidth
        yield record


@torch.inference_mode()
def read_token(bench: Bench, cache: PrefixCache, drafts: int) -> float:
    """Milliseconds in which the encoder reads one more token of each of `drafts` texts."""
    tree = Tree(bench.network, cache, len(cache.tokens))
    tree.take([0] * drafts)
    tree.read([[5 + i, 7] for i in range(drafts)])
    return milliseconds(bench, lambda: tree.read([[11 + i] for i in range(drafts)]))


def measure_search(bench: Bench) -> Iterator[Record]:
    """A length search of a line: nine lengths, one step."""
    for prefix, canvas in product(bench.sizes.prefixes, bench.sizes.canvases[:1]):
        cache = encoded(bench, prefix)
        lengths = tuple(range(1, canvas // 2, max(canvas // 18, 1)))[:9]
        search = partial(searched, bench, cache, canvas, lengths)
        yield {"prefix": prefix, "canvas": canvas, "search ms": guarded(partial(milliseconds, bench, search))}


def searched(bench: Bench, cache: PrefixCache, canvas: int, lengths: tuple[int, ...]) -> None:
    seam = Seam((), bench.text[len(cache.tokens) : len(cache.tokens) + canvas], 0)
    search = Search(lengths, draws=1, steps=1, refined=0)
    for _ in search_length(bench.network, cache, (seam, canvas), search, 0):
        return


def measure_line(bench: Bench) -> Iterator[Record]:
    """The passes of a line by parts: 8 tokens typed, a search of 9 lengths, 12 steps of 8 slots, 12 read tokens."""
    canvas = bench.sizes.canvases[0]
    for prefix in bench.sizes.prefixes:
        cache = encoded(bench, prefix)
        lengths = tuple(range(1, canvas // 2, max(canvas // 18, 1)))[:9]

        def line(
            cache: PrefixCache = cache, lengths: tuple[int, ...] = lengths, prefix: int = prefix
        ) -> None:
            cache.cut(prefix - 8)
            extend(bench, cache, bench.text[:prefix])
            searched(bench, cache, canvas, lengths)
            steps = our_steps(bench, cache, canvas, [8])
            for _ in range(12):
                next(steps)
            with torch.inference_mode():
                tree = Tree(bench.network, cache, len(cache.tokens))
                for token in range(12):
                    tree.read([[token]])

        record: Record = {"prefix": prefix, "plain ms": guarded(partial(milliseconds, bench, line, 3))}
        if bench.device.type == "cuda":
            record["replayed ms"] = guarded(partial(replayed, bench, partial(milliseconds, bench, line, 3)))
        yield record


def measure_profile(bench: Bench) -> Iterator[Record]:
    """The kernels of three plain steps, printed as torch's own table, and their sums by name."""
    cache, canvas = encoded(bench, bench.sizes.prefixes[0]), bench.sizes.canvases[0]
    cuda = bench.device.type == "cuda"
    kinds = [torch.profiler.ProfilerActivity.CPU, *([torch.profiler.ProfilerActivity.CUDA] if cuda else [])]
    steps = our_steps(bench, cache, canvas, [canvas // 4])
    for _ in range(3):
        next(steps)
    with torch.profiler.profile(activities=kinds) as profile:
        for _ in range(3):
            next(steps)
        synchronise(bench.device)
    found = profile.key_averages()
    by = "self_device_time_total" if cuda else "self_cpu_time_total"
    print(found.table(sort_by=by, row_limit=18, max_name_column_width=60), flush=True)
    yield {
        "operators a step": sum(e.count for e in found) / 3,
        "GPU ms a step": sum(e.self_device_time_total for e in found) / 3000,
        "CPU ms a step": sum(e.self_cpu_time_total for e in found) / 3000,
    }
    for event in sorted(found, key=lambda e: -getattr(e, by))[:15]:
        yield {
            "kernel": event.key[:90],
            "calls a step": event.count / 3,
            "ms a step": getattr(event, by) / 3000,
        }


def measure_compiled(bench: Bench) -> Iterator[Record]:
    """One network, every way to run a step: ours plain and replayed, transformers' plain and compiled."""
    cache = encoded(bench, bench.sizes.prefixes[0])
    forward = bench.network.forward
    for canvas in bench.sizes.canvases:
        record: Record = {
            "prefix": len(cache.tokens),
            "canvas": canvas,
            "floor ms": 1000 * floor_bytes(bench, cache, canvas) / bench.bandwidth,
            "ours plain ms": guarded(partial(our_step, bench, cache, canvas, [canvas])),
            "ours replayed ms": guarded(partial(replayed_step, bench, cache, canvas, [canvas])),
            "theirs plain ms": guarded(partial(their_step, bench, forward, cache, (1, canvas))),
        }
        yield record
        if time.perf_counter() > bench.end:
            return
        torch._dynamo.reset()
        how: Record = {"mode": "reduce-overhead"} if bench.device.type == "cuda" else {"backend": "aot_eager"}
        compiled = torch.compile(forward, dynamic=False, **how)
        start = time.perf_counter()
        record["theirs compiled ms"] = guarded(partial(their_step, bench, compiled, cache, (1, canvas)))
        record["compiling and all s"] = time.perf_counter() - start
        yield record


def our_steps(bench: Bench, cache: PrefixCache, canvas: int, gaps: Sequence[int]) -> Iterator[Any]:
    """Our loop on as many rows as there are `gaps`, each a number of free slots at the canvas's beginning."""
    seam = Seam((), bench.text[len(cache.tokens) : len(cache.tokens) + canvas], 0)
    laid: Canvas = stack([lay_out(seam, gap, canvas) for gap in gaps]).to(bench.device)
    noise = SeededNoise(0, bench.network.config.text_config.vocab_size, bench.device)
    sampler = AnchoredSampler(laid, 0.1, noise)
    return iter(denoise(bench.network, cache, sampler, Schedule(confidence=-1.0)))


def our_step(bench: Bench, cache: PrefixCache, canvas: int, gaps: Sequence[int]) -> float:
    """Milliseconds of one of our steps, the median."""
    steps = our_steps(bench, cache, canvas, gaps)
    return milliseconds(bench, lambda: next(steps))


def replayed_step(bench: Bench, cache: PrefixCache, canvas: int, gaps: Sequence[int]) -> float:
    """The same with the decoder's passes replayed."""
    return replayed(bench, partial(our_step, bench, cache, canvas, gaps))


def replayed(bench: Bench, measure: Callable[[], float]) -> float:
    """`measure` with the decoder's passes replayed; on a CPU they are computed again in the same places."""
    usual = replay._TOLERANCE
    try:
        # Random weights route tokens by a hair: where rounding alone ends replaying, only its time is wanted.
        for tolerance in (usual, math.inf):
            replay._TOLERANCE = tolerance
            replays = replay.enable(bench.network, None if bench.device.type == "cuda" else again)
            found = measure()
            if not replays.broken:
                return found
            print(f"  tolerance {tolerance}: replaying ended: {replays.broken}", flush=True)
    finally:
        replay._TOLERANCE, bench.network.replays = usual, None
    return math.nan


def again(run: Callable[[], torch.Tensor]) -> tuple[Callable[[], object], torch.Tensor]:
    """Record as on a GPU, without one: each replay computes from the same places and into the same."""
    result = run().clone()
    return lambda: result.copy_(run()), result


@torch.no_grad()
def their_step(
    bench: Bench, forward: Callable[..., Any], cache: PrefixCache, shape: tuple[int, int]
) -> float:
    """Milliseconds of one step of `generate` on a canvas of `shape`, the median; `forward` is the network's."""
    network, like, most = bench.network, Schedule(), STEPS
    vocabulary = network.config.text_config.vocab_size
    sampler = EntropyBoundSampler(EntropyBoundSamplerConfig(like.entropy_bound), shape[1], vocabulary, most)
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
            [LinearTemperatureScheduleLogitsProcessor(like.t_min, like.t_max, most)]
        ),
        "diffusion_stopping_criteria": StableAndConfidentStoppingCriteria(most, like.confidence),
    }
    # What a step hands to the next: the canvas, the best tokens, the logits, which rows are done.
    state = [current, current, None, torch.zeros(shape[0], dtype=torch.bool, device=bench.device)]
    names = ("current_canvas", "argmax_canvas", "self_conditioning_logits", "finished_denoising")
    left = iter(range(most, 0, -1))

    def step() -> None:
        given = dict(zip(names, state, strict=True))
        state[:] = network._denoising_step(cur_step=next(left), **given, **same)

    # The first step has no logits to go on from, so it is a graph of its own; the second is the one that is compiled.
    return 1000 * statistics.median(timed(bench.device, step, most)[4:])


def floor_bytes(bench: Bench, cache: PrefixCache, tokens: int, readings: int = 1) -> float:
    """Bytes that a pass on `tokens` slots must read: weights, as they are stored, and the keys in sight.

    readings: how often the table of tokens is read: once as the head's weights, and in a step once more for the
    self-conditioning, which is `readings` = 1; a chunk reads it not at all.
    """
    text = bench.network.config.text_config
    table = bench.network.model.decoder.embed_tokens.weight
    total = float(table.nbytes * 2 * readings)
    reached = 1 - (1 - text.top_k_experts / text.num_experts) ** tokens
    for name, weight in (*bench.network.named_parameters(), *bench.network.named_buffers()):
        if weight is not table:
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


# ---- running -------------------------------------------------------------------------------------------------------


def timed(device: torch.device, work: Callable[[], Any], count: int, most: float = math.inf) -> list[float]:
    """Seconds of each of up to `count` calls, the device waited for; of three at least, then `most` seconds in all."""
    found: list[float] = []
    while len(found) < count and not (len(found) >= 3 and sum(found) > most):
        synchronise(device)
        start = time.perf_counter()
        work()
        synchronise(device)
        found.append(time.perf_counter() - start)
    return found


def milliseconds(bench: Bench, work: Callable[[], Any], count: int = STEPS) -> float:
    """The median of some calls, but for the first two."""
    return 1000 * statistics.median(timed(bench.device, work, count, 4.0)[2:])


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def guarded(measure: Callable[[], float]) -> float:
    """The result of `measure`; no number, and the reason on stderr, where it fails: the other rows are wanted, too."""
    try:
        return measure()
    except Exception:
        print(traceback.format_exc(limit=-4), file=sys.stderr, flush=True)
        return math.nan


PARTS: dict[str, Callable[[Bench], Iterator[Record]]] = {
    "exactness": measure_exactness,
    "step": measure_step,
    "reading": measure_reading,
    "all free": measure_all_free,
    "profile": measure_profile,
    "search": measure_search,
    "line": measure_line,
    "products": measure_products,
    "compiled": measure_compiled,
}
# The parts that say something about kernels, not about a network, run on the network in four bits only.
KERNELS = {"exactness", "products"}


class Report:
    """The records by network and part, written after each record, so that a run that is cut short leaves them."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._start = path, time.perf_counter()
        self.records: dict[str, Any] = {}

    def run(self, where: Sequence[str], records: Iterator[Record], end: float = math.inf) -> None:
        """Take `records` until their end, an error, or the time `end`; a record that comes again replaces itself."""
        kept: list[Record] = []
        place: dict[str, Any] = self.records
        for name in where[:-1]:
            place = place.setdefault(name, {})
        place[where[-1]] = kept
        print(f"\n[{time.perf_counter() - self._start:.0f} s] {', '.join(where)}", flush=True)
        try:
            for record in records:
                if not (kept and kept[-1] is record):
                    kept.append(record)
                print("  " + show(record), flush=True)
                self.write()
                if time.perf_counter() > end:
                    print("  the budget of this part is used up", flush=True)
                    break
        except Exception:
            print(traceback.format_exc(), file=sys.stderr, flush=True)
            kept.append({"error": traceback.format_exc(limit=-3)})
            self.write()

    def write(self) -> None:
        if self._path:
            self._path.write_text(json.dumps(self.records, indent=1) + "\n", encoding="utf-8")


def show(record: Record) -> str:
    cells = (f"{v:.4g}" if isinstance(v, float) else str(v) for v in record.values())
    return "  ".join(f"{name} {cell}" for name, cell in zip(record, cells, strict=True))


def run_network(
    report: Report, name: str, options: argparse.Namespace, plan: tuple[Any, int, int, Sequence[str]]
) -> None:
    """Build one network, run its parts, and free it. plan: config, bits of experts and of dense layers, parts."""
    config, bits, dense, parts = plan
    device = torch.device(options.device)
    records: list[Bench] = []

    def building() -> Iterator[Record]:
        start, needed = time.perf_counter(), needed_bytes(config, bits, dense)
        left = (
            torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available
        )
        if needed + (2 << 30) * (not options.tiny) > left:
            raise MemoryError(
                f"{name} takes {needed / 1e9:.1f} GB and 2 GB to work with; {left / 1e9:.1f} GB are left: "
                "take fewer layers (--layers) or bits (--bits 4)"
            )
        network = build(config, device, bits, dense)
        sizes = Sizes((96, 512), (16, 8), (1, 2)) if options.tiny else options.sizes
        draw = torch.Generator().manual_seed(0)
        count = max(sizes.prefixes) + 4 * CHUNK
        text = torch.randint(4, config.text_config.vocab_size, (count,), generator=draw)
        size = 1 << (32 if device.type == "cuda" else 20 if options.tiny else 28)
        bench = Bench(network, device, tuple(text.tolist()), sizes, copy_bandwidth(device, size))
        records.append(bench)
        synchronise(device)
        seconds, held = time.perf_counter() - start, sum(t.nbytes for t in tensors(network))
        yield {
            "weights GB": held / 1e9,
            "expected GB": needed / 1e9,
            "built in s": seconds,
            "copy GB/s": bench.bandwidth / 1e9,
        }

    report.run((name, "build"), building())
    for part in parts if records else ():
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        end = time.perf_counter() + options.budget
        report.run((name, part), PARTS[part](replace(records[0], end=end)), end)
        if device.type == "cuda":
            peak = torch.cuda.max_memory_allocated() / 1e9
            report.records[name].setdefault("peak GB", {})[part] = peak
            print(f"  peak {peak:.2f} GB", flush=True)
    records.clear()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def tensors(network: Any) -> list[torch.Tensor]:
    return [*network.parameters(), *network.buffers()]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--bits", nargs="+", type=int, choices=(4, 8, 16), default=[16, 4], help="of the experts"
    )
    parser.add_argument(
        "--dense", type=int, choices=(4, 8, 16), default=16, help="bits of attention and dense parts"
    )
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument(
        "--prefixes", nargs="+", type=int, default=[1024, 8192], help="tokens before the canvas"
    )
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 8], help="canvases in a batch")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--budget", type=float, default=45, help="seconds of each part")
    parser.add_argument("--smoke", action="store_true", help="two layers, small sizes, every part")
    parser.add_argument("--tiny", action="store_true", help="a tiny shape on the CPU")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(given)
    options.sizes = Sizes(
        tuple(options.prefixes[:1] if options.smoke else options.prefixes), (64, 256), tuple(options.rows)
    )
    if options.tiny:
        options.device = "cpu"
    layers = 2 if options.smoke else options.layers
    config = tiny_config() if options.tiny else released_config(layers)
    report = Report(options.json)
    report.run(("machine",), measure_machine(torch.device(options.device)))
    for bits in options.bits:
        parts = [part for part in options.only if part != "compiled" and (bits < 16 or part not in KERNELS)]
        if parts:
            run_network(
                report, f"{bits} bits, {layers} layers", options, (config, bits, options.dense, parts)
            )
    if "compiled" in options.only:
        # Compiling takes minutes at thirty layers, so what it is compared with has as few.
        few = config if options.tiny or layers < 6 else released_config(6)
        name = f"compiled, 16 bits, {few.text_config.num_hidden_layers} layers"
        run_network(report, name, options, (few, 16, 16, ["compiled"]))


if __name__ == "__main__":
    main()
