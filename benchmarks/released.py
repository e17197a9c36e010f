"""Time and memory at the released checkpoint's true shape, with random weights in bf16 and in four bits.

    python -m benchmarks.released --json report.json             everything: a GPU of 80 GB in six minutes
    python -m benchmarks.released --bits 4 --threads 2 --memory 22 --prefixes 2048 --rows 1 --budget 90
                                                                 the true shape on a CPU with 20 GB free
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
import resource
import statistics
import string
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import torch
import transformers
from transformers import DiffusionGemmaConfig

from dg_lsp.checkpoints import EMBEDDED
from dg_lsp.engine.local import ENVIRONMENT
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import CHUNK, PrefixCache, extend_to
from dg_lsp.model.canvas import Canvas, Seam, lay_out, stack
from dg_lsp.model.checkpoint import Checkpoint, load_tokenizer, texts_of
from dg_lsp.model.costs import measure
from dg_lsp.model.denoise import denoise
from dg_lsp.model.fill import fill
from dg_lsp.model.length import Search, search_length
from dg_lsp.model.networks import replay
from dg_lsp.model.networks.norms import fuse_norms
from dg_lsp.model.networks.quanta import Format
from dg_lsp.model.networks.quantized import QuantizedExperts, QuantizedLinear
from dg_lsp.model.networks.stacks import Packed, best_way
from dg_lsp.model.networks.streaming import empty_network
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule
from dg_lsp.model.tokens import tokenise
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


def tiny_config(vocabulary: int = 512) -> DiffusionGemmaConfig:
    """The released one with small numbers that divide into groups."""
    config = released_config(2)
    small = {
        "vocab_size": vocabulary,
        "hidden_size": 128,
        "intermediate_size": 64,
        "moe_intermediate_size": 64,
    }
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
                linear = QuantizedLinear(random_stack(shape, Format(dense, 64), device))
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
        random_stack(tuple(weight.shape), Format(bits, format_.group), device)
        for weight, format_ in zip((experts.gate_up_proj, experts.down_proj), EXPERTS, strict=True)
    ]
    return QuantizedExperts(packed[0], packed[1], experts.act_fn)


def random_stack(shape: tuple[int, ...], format_: Format, device: torch.device) -> Packed:
    """Matrices of random numbers [matrices, outputs, inputs] with a deviation of 1 / sqrt(inputs)."""
    count, outputs, inputs = shape
    format_.check(inputs)
    way, width = best_way(device, format_), inputs * format_.bits // 8
    rows = (outputs, width) if way == "cpu" else (width, outputs)
    quanta = torch.empty(count, *rows, dtype=torch.uint8, device=device)
    # Every byte is two valid numbers; eight of them are drawn at once.
    quanta.view(-1).view(torch.int64).random_()
    deviation = 4.61 if format_.bits == 4 else 73.9
    size = count, inputs // format_.group, outputs
    scale = torch.full(size, 1 / (deviation * inputs**0.5), device=device).bfloat16()
    pair = (scale, scale / 2)
    return Packed((quanta, torch.stack(pair, -1)) if way == "cpu" else (quanta, *pair), format_, way)


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


# ---- the network at work -------------------------------------------------------------------------------------------


def measure_step(bench: Bench) -> Iterator[Record]:
    """A denoising step by prefix, rows and canvas, with a quarter of the slots free, and of one row with all free."""
    for prefix, rows, canvas in product(bench.sizes.prefixes, bench.sizes.rows, bench.sizes.canvases):
        cache = encoded(bench, prefix)
        for free in (canvas // 4, canvas)[: 2 if rows == 1 else 1]:
            gaps = [free] * rows
            steps = our_steps(bench, cache, canvas, gaps)
            yield {
                "prefix": prefix,
                "canvas": canvas,
                "free": free,
                "rows": rows,
                "floor ms": 1000 * floor_bytes(bench, cache, canvas * rows) / bench.bandwidth,
                "plain ms": guarded(partial(our_step, bench, cache, canvas, gaps)),
                "over its products": guarded(partial(over_products, bench, partial(next, steps))),
                "replayed ms": guarded(partial(replayed_step, bench, cache, canvas, gaps)),
            }


def measure_reading(bench: Bench) -> Iterator[Record]:
    """A chunk, and a token of one and of six drafts, after each prefix."""
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
        record["chunk over its products"] = guarded(partial(over_products, bench, chunk))
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


def over_products(bench: Bench, work: Callable[[], Any]) -> float:
    """Seconds of `work` over those that its products with weights take within it, the least of three; on a CPU only.

    Attention's own products count as the rest.
    """
    if bench.device.type != "cpu":
        return math.nan
    found = list[float]()
    for _ in range(3):
        with products_timed(bench.network) as spent:
            start = time.perf_counter()
            work()
            found.append((time.perf_counter() - start) / sum(spent))
    return min(found)


@contextmanager
def products_timed(network: Any) -> Iterator[list[float]]:
    """Yield a list that gets the seconds of each product with weights of the layers, the head and the table."""
    spent, starts = list[float](), list[float]()
    products = [m for m in network.modules() if isinstance(m, torch.nn.Linear | Packed)]
    hooks = [m.register_forward_pre_hook(lambda *_: starts.append(time.perf_counter())) for m in products]
    hooks += [
        m.register_forward_hook(lambda *_: spent.append(time.perf_counter() - starts.pop())) for m in products
    ]
    usual = network.mean_embedding

    def mean_embedding(chances: torch.Tensor) -> Any:
        start = time.perf_counter()
        mean = usual(chances)
        spent.append(time.perf_counter() - start)
        return mean

    network.mean_embedding = mean_embedding
    try:
        yield spent
    finally:
        del network.mean_embedding
        for hook in hooks:
            hook.remove()


def measure_fill(bench: Bench) -> Iterator[Record]:
    """A line and a body asked for after a warm prefix, through the model's door, with a deadline; time only.

    The tokens are those of the embedded checkpoint: texts of random weights mean nothing.
    """
    known = load_tokenizer(EMBEDDED)
    lengths = (bench.network.config.canvas_length,)
    model = replace(
        known,
        network=bench.network,
        texts=texts_of(known.tokenizer),
        canvas_lengths=lengths,
        style="raw",
        max_prefix=8192,
        judge={},
        denoises=True,
    )
    model = replace(model, costs=measure(bench.network))
    yield (
        {"token s": model.costs.token, "row s": model.costs.row, "rows s": model.costs.rows}
        if model.costs
        else {}
    )
    source = "\n".join(Path(module.__file__ or "").read_text("utf-8") for module in (textwrap, string))
    before = known.tokenizer.decode(list(known.encode(source)[: bench.sizes.prefixes[0]]))
    before = before[: before.rfind("\n") + 1]
    cache = PrefixCache(bench.network.text_config)
    for kind, ends, indent, deadline in (
        ("rest_of_line", "    return ", "", 10.0),
        ("function_body", "def first(a, b):\n", "    ", 120.0),
    ):
        asked = Infill(before + ends, "\n\n\nx = 1\n", "python", kind, indent, deadline=deadline)  # type: ignore[arg-type]
        extend(bench, cache, tokenise(model, asked)[0])
        yield {"gap": kind, "deadline s": deadline, **filled(model, cache, asked)}


def filled(model: Checkpoint, cache: PrefixCache, asked: Infill) -> Record:
    """The seconds of a fill, and of the first Draft with a text."""
    start, first, last = time.perf_counter(), math.nan, Fill("")
    for event in fill(model, cache, asked):
        if isinstance(event, Fill):
            last = event
        elif math.isnan(first) and any(not run.anchored and run.text for run in event.runs):
            first = time.perf_counter() - start
    return {
        "s": time.perf_counter() - start,
        "first text s": first,
        "source": last.source,
        "steps": last.steps,
        "searched": last.searched,
        "text": len(last.text),
        "why": last.refusal,
    }


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
    "step": measure_step,
    "reading": measure_reading,
    "search": measure_search,
    "fill": measure_fill,
}


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
        reset_peak(device)
        end = time.perf_counter() + options.budget
        report.run((name, part), PARTS[part](replace(records[0], end=end)), end)
        report.records[name].setdefault("peak GB", {})[part] = peak(device) / 1e9
        print(f"  peak {peak(device) / 1e9:.2f} GB", flush=True)
        report.write()
    records.clear()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def reset_peak(device: torch.device) -> None:
    """Count the most memory from now on; on a CPU Linux alone is able to."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    elif Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def peak(device: torch.device) -> int:
    """The most bytes in use since `reset_peak`."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = (int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    return next(found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


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
    parser.add_argument("--memory", type=int, help="GiB that this process may take; beyond it a part fails")
    parser.add_argument("--threads", type=int, default=0, help="threads of the CPU; torch's own number if 0")
    options = parser.parse_args(given)
    if options.memory:
        resource.setrlimit(resource.RLIMIT_AS, (options.memory << 30,) * 2)
    torch.set_flush_denormal(True)  # as an engine does
    if options.threads:
        torch.set_num_threads(options.threads)
    options.sizes = Sizes(
        tuple(options.prefixes[:1] if options.smoke else options.prefixes), (64, 256), tuple(options.rows)
    )
    if options.tiny:
        options.device = "cpu"
    layers = 2 if options.smoke else options.layers
    config = tiny_config(8192) if options.tiny else released_config(layers)
    report = Report(options.json)
    report.run(("machine",), measure_machine(torch.device(options.device)))
    for bits in options.bits:
        plan = config, bits, options.dense, options.only
        run_network(report, f"{bits} bits, {layers} layers", options, plan)


if __name__ == "__main__":
    if missing := {name: value for name, value in ENVIRONMENT.items() if name not in os.environ}:
        # torch reads the variables of an engine when it is imported, so the program begins again with them.
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **missing})
    main()
