"""Train adapters for the rows of a canvas after a frozen causal network, and report on their drafts.

    python -m benchmarks.denoiser cut GGUF gaps.safetensors --from DIR --from DIR --count 8000
    python -m benchmarks.denoiser cut GGUF held.safetensors --from OTHER --count 240 --files
    python -m benchmarks.denoiser train GGUF gaps.safetensors OUT --minutes 90
    python -m benchmarks.denoiser train GGUF gaps.safetensors OUT --planned 10000 --begin ADAPTERS
    python -m benchmarks.denoiser prepare GGUF held.safetensors texts.safetensors
    python -m benchmarks.denoiser report GGUF held.safetensors texts.safetensors OUT/adapter-400.safetensors
    python -m benchmarks.denoiser spans GGUF held.safetensors OUT/adapter-400.safetensors --holes 2
    python -m benchmarks.denoiser lines GGUF single.jsonl OUT/adapter-400.safetensors
    python -m benchmarks.denoiser repair GGUF held.safetensors OUT/adapter-400.safetensors
    python -m benchmarks.denoiser rewrite GGUF tests/edits/next_edit_model OUT/adapter-400.safetensors

ADAPTERS are those of an earlier training, such as adapter-3000.safetensors in this folder. GGUF is a Qwen2 with
tokens for filling in the middle, such as that of coder-0.5b. `train` continues what is in OUT,
and can be ended at any time: it loses four minutes. `report` without adapters is that of the untrained ones.
single.jsonl has tasks of HumanEval-Infilling, as benchmarks.humaneval writes them; their texts are run.
"""

import argparse
import json
import random
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tokenizers import Tokenizer

from benchmarks import parser_of
from benchmarks.denoiser import changes, cuts, drafts, spans
from benchmarks.denoiser.network import MASK, CanvasLora
from benchmarks.denoiser.training import Plan, Training, put, train
from benchmarks.next_edit import read_scenarios
from dg_lsp.bench.humaneval import Limits, execute, read_tasks
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.networks.causal import read_tokenizer
from dg_lsp.model.networks.gguf_causal import read_in_full
from dg_lsp.model.networks.gguf_file import read_gguf
from dg_lsp.model.networks.stacks import many_rows

_MARKS = (100, 200, 400, 700, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 8000, 10_000, 15_000, 20_000)
_FILE = 60_000  # characters
_LINE_END = "Ċ"  # in a vocabulary of bytes


def _network(given: argparse.Namespace) -> CanvasLora:
    """Return the network, in bf16 or the type that this CPU multiplies faster, with adapters that change nothing."""
    opened = read_gguf(given.network)
    tokenizer = read_tokenizer(opened)
    mask, end = (cuts.number_of(tokenizer, token) for token in (cuts.PAD, cuts.END))
    return CanvasLora(read_in_full(opened).to(many_rows().dtype).eval(), mask, end)


def cut(given: argparse.Namespace) -> None:
    """Cut gaps and write them."""
    near = {"near": _FILE} if given.files else {}
    found = list(cuts.cut(given.folders, read_tokenizer(given.network), given.count, given.seed, **near))
    cuts.save(given.gaps, found, files=given.files)
    print(f"{len(found)} gaps, {sum(len(one.gap.text) for one in found) / len(found):.1f} tokens each")


def run_training(given: argparse.Namespace) -> None:
    """Train for some minutes."""
    plan = Plan(given.planned, given.rate, given.own)
    until = time.time() + 60 * given.minutes
    train(Training(_network(given), cuts.load(given.gaps), plan), given.out, _MARKS, until, given.begin)


def prepare(given: argparse.Namespace) -> None:
    """Write the network's own texts for held-out gaps."""
    end = cuts.number_of(read_tokenizer(given.network), cuts.END)
    drafts.prepare(_network(given), cuts.load(given.gaps), end, given.texts)


def report(given: argparse.Namespace) -> None:
    """Print a line of JSON for each of the adapters, for untrained ones if none are named, or for copies."""
    gaps, stored = cuts.load(given.gaps), load_file(given.gaps)
    with safe_open(given.texts, "pt") as opened:
        texts = json.loads(opened.metadata()["texts"])
    vocabulary = read_tokenizer(given.network).get_vocab()
    breaks = {number for token, number in vocabulary.items() if _LINE_END in token}
    texts = [
        drafts.until_as_many_lines(text, gap.text, breaks) for text, gap in zip(texts, gaps, strict=True)
    ]
    lines = [not breaks & {*gap.text} for gap in gaps]
    if given.copies:
        files = [(stored[f"before.{n}"].tolist(), stored[f"after.{n}"].tolist()) for n in range(len(gaps))]
        _say("copies", drafts.report_copies(gaps, texts, files), lines)
        return
    network = _network(given)
    for path in given.adapters or [None]:
        if path is not None:
            put(network, load_file(path))
        found = drafts.report(network, gaps, given.texts, texts, given.width)
        _say(path.stem if path else "untrained", found, lines)


def _adapted(given: argparse.Namespace) -> tuple[Tokenizer, CanvasLora, spans.Marks]:
    """Return the tokenizer, the network with its adapters, and the tokens of its prompts."""
    tokenizer, network = read_tokenizer(given.network), _network(given)
    put(network, load_file(given.adapter))
    marks = (cuts.number_of(tokenizer, mark) for mark in (*cuts.MARKS, cuts.END))
    return tokenizer, network, spans.Marks(*marks)


def report_spans(given: argparse.Namespace) -> None:
    """Print how many gaps have their holes right, filled on a canvas and one by one: a line of JSON for each way."""
    tokenizer, network, marks = _adapted(given)
    chance = random.Random(given.seed)
    ways = [*spans.FIRST, "gaps of their own", "in the prompt of the gap"] if not given.only else given.only
    right: dict[str, list[list[float]]] = {way: [] for way in ways}
    sound: dict[str, list[list[float]]] = {way: [] for way in ways}
    for one in cuts.load_files(given.gaps):
        places = spans.spans_of(one.gap, given.holes, chance)
        if places is None:
            continue
        text = spans.text_of(one.gap)
        truth = [list(text[place.start : place.stop]) for place in places]
        true = tokenizer.decode([*one.before, *text, *one.after])
        known = cuts.errors(true, one.language)
        for way in ways:
            if way in spans.FIRST:
                filled = spans.on_canvas(network, one.gap, places, way)
            else:
                filled = spans.one_by_one(network, one.gap, places, marks, between=way == "gaps of their own")
            right[way].append([float(filled == truth)])
            whole = tokenizer.decode([*one.before, *spans.put_back(text, places, filled), *one.after])
            sound[way].append([float(cuts.errors(whole, one.language) <= known)])
        if len(right[ways[0]]) == given.count:
            break
    for way in ways:
        _say_shares(way, right=right[way], sound=sound[way])


def report_lines(given: argparse.Namespace) -> None:
    """Print how many tasks of a line pass their tests, denoised from masks, written from left to right, or either."""
    tokenizer, network, marks = _adapted(given)
    passed: dict[str, list[list[float]]] = {"canvas": [], "left to right": [], "either": []}
    for task in read_tasks(given.gaps)[: given.count]:
        case = task.case
        at = case.gap.start
        above, below = case.document.data[:at].decode(), case.document.data[at:].decode()
        prompt = marks.prompt(
            *(tokenizer.encode(text, add_special_tokens=False).ids for text in (above, below))
        )
        read = spans.read_prompt(network, prompt)
        texts = {
            "canvas": spans.denoise(network, read, [MASK] * given.width, "causal", marks.end),
            "left to right": spans.from_left_to_right(network, prompt, marks.end, given.width),
        }
        for way, tokens in texts.items():
            line = tokenizer.decode(tokens).split("\n", 1)[0]
            outcome = execute(task.program(above + line + below), Limits())
            passed[way].append([float(outcome == "passed")])
        passed["either"].append(max(passed[way][-1] for way in texts))
    for way, found in passed.items():
        _say_shares(way, passed=found)


def report_repairs(given: argparse.Namespace) -> None:
    """Print how many texts with one broken place become sound, and how many their truth: a line for each way."""
    tokenizer, network, marks = _adapted(given)
    model = load_checkpoint("embedded", "cpu")
    python = [one for one in cuts.load_files(given.gaps) if one.language == "python"]
    found = dict[str, list[tuple[str | None, str]]]()
    for case in islice(changes.broken_texts(python, tokenizer, random.Random(given.seed)), given.count):
        for way, text in changes.ways_to_repair(network, case, tokenizer, marks, model).items():
            found.setdefault(way, []).append((text, case.truth))
    for way, texts in found.items():
        sound, right = (
            [[float(one)] for one in some]
            for some in ([text is not None for text, _ in texts], [text == truth for text, truth in texts])
        )
        _say_shares(way, sound=sound, right=right)


def report_rewriting(given: argparse.Namespace) -> None:
    """Print how many old lines become the wanted ones: a line of JSON for each way."""
    tokenizer, network, marks = _adapted(given)
    right, kept = dict[str, list[list[float]]](), dict[str, list[list[float]]]()
    for case in islice(changes.old_texts(read_scenarios(given.gaps)), given.count):
        if not 2 <= len(tokenizer.encode(case.old, add_special_tokens=False).ids) <= changes.MOST:
            continue
        for way, text in changes.ways_to_rewrite(network, case, tokenizer, marks).items():
            right.setdefault(way, []).append([float(text == case.new)])
            kept.setdefault(way, []).append([float(text == case.old)])
    for way in right:
        _say_shares(way, right=right[way], unchanged=kept[way])


def _say_shares(way: str, **shares: list[list[float]]) -> None:
    """Print the shares of `way` with their intervals."""
    rounded = {
        name: [round(number, 3) for number in drafts.interval(found)] for name, found in shares.items()
    }
    print(json.dumps({"of": way, "places": len(next(iter(shares.values()))), **rounded}), flush=True)


def _say(name: str, found: drafts.Found, lines: Sequence[bool]) -> None:
    """Print means with their intervals, of all gaps, of those in a line, and of those with several."""
    for kind, wanted in (("all", (True, False)), ("line", (True,)), ("lines", (False,))):
        row: dict[str, Any] = {"of": name, "gaps": kind}
        for key, values in found.items():
            some = [value for value, line in zip(values, lines, strict=True) if line in wanted]
            row[key] = [round(number, 3) for number in drafts.interval(some)]
            row["places"] = max(row.get("places", 0), sum(map(len, some)))
        print(json.dumps(row), flush=True)


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    commands = parser.add_subparsers(required=True)
    made = {}
    for name, run in (
        ("cut", cut),
        ("train", run_training),
        ("prepare", prepare),
        ("report", report),
        ("spans", report_spans),
        ("lines", report_lines),
        ("repair", report_repairs),
        ("rewrite", report_rewriting),
    ):
        made[name] = commands.add_parser(name, help=run.__doc__)
        made[name].set_defaults(run=run)
        made[name].add_argument("network", type=Path, help="a GGUF file")
        made[name].add_argument("gaps", type=Path, help="gaps, as `cut` writes them, tasks, or scenarios")
    made["cut"].add_argument(
        "--from", dest="folders", type=Path, action="append", metavar="DIR", required=True
    )
    made["cut"].add_argument("--count", type=int, default=8000)
    made["cut"].add_argument("--seed", type=int, default=0)
    made["cut"].add_argument("--files", action="store_true", help="with the files around them, for copies")
    made["train"].add_argument("out", type=Path)
    made["train"].add_argument("--minutes", type=float, default=60)
    made["train"].add_argument("--planned", type=int, default=4000, help="gaps in all")
    made["train"].add_argument("--begin", type=Path, metavar="ADAPTERS", help="if OUT is empty")
    made["train"].add_argument("--rate", type=float, default=8e-4)
    made["train"].add_argument("--own", type=float, default=0.5, help="share of the network's own chances")
    for name in ("prepare", "report"):
        made[name].add_argument("texts", type=Path)
    made["report"].add_argument("adapters", type=Path, nargs="*")
    made["report"].add_argument("--width", type=int, default=32, help="rows of a canvas")
    made["report"].add_argument("--copies", action="store_true", help="of copies from the file alone")
    made["spans"].add_argument("adapter", type=Path)
    made["spans"].add_argument("--holes", type=int, default=2)
    made["spans"].add_argument(
        "--only", action="append", metavar="WAY", help="one of the ways; all without it"
    )
    made["spans"].add_argument("--count", type=int, default=60, help="places")
    made["spans"].add_argument("--seed", type=int, default=0)
    for name in ("repair", "rewrite"):
        made[name].add_argument("adapter", type=Path)
        made[name].add_argument("--count", type=int, default=60, help="places")
        made[name].add_argument("--seed", type=int, default=0)
    made["lines"].add_argument("adapter", type=Path)
    made["lines"].add_argument("--count", type=int, default=100, help="tasks")
    made["lines"].add_argument("--width", type=int, default=32, help="rows of a canvas")
    return parser


if __name__ == "__main__":
    given = _parser().parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    given.run(given)
