"""An autoregressive model of the same shape and data, to measure the diffusion model against.

    python -m benchmarks.autoregressive train OUT --minutes 60      (OUT as `dg-lsp train` has prepared it)
    python -m benchmarks.autoregressive train OUT --minutes 30 --from OUT/snapshots/006000
    python -m benchmarks.autoregressive score OUT --cases 300

It is the encoder half alone, trained on the canvases of the same recipe as suffix, prefix, middle (Bavarian et al.
2022): bos, a mark, what stands after the gap, a mark, what stands before it, the gap, eos. So the gap goes on where the
text before it ends, which even a network does that has seen little; the other order (prefix, suffix, middle) has to be
learned first. It writes the gap greedily, one token after another, and finds the length by itself. With --from it
begins with the encoder of a checkpoint, which has learned to foresee text but not to look at what stands behind, and
its rate falls from the first step on.
"""

import argparse
import json
import random
import statistics
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor
from transformers.cache_utils import DynamicCache

from dg_lsp.bench import lists as evaluation
from dg_lsp.model.networks.decoder import capped_logits
from dg_lsp.model.networks.loading import load_network
from dg_lsp.text.fills.fit import make_edit
from dg_lsp.training.corpus import Corpus
from dg_lsp.training.layouts import Batch, Bucket, Cutter, draw
from dg_lsp.training.optimise import Optimiser
from dg_lsp.training.shape import BOS, EOS, PAD, embedded_config, fresh_network
from dg_lsp.training.trainer import RATES

MARK = 3  # a token that no text has
BEFORE, AFTER = 192, 52
LENGTH = BEFORE + 64 + 4
BUCKET = Bucket(6, 512, 4, 64, 1.0)  # half of the recipe's canvases, as each carries its prefix along
KINDS = ("rest_of_line", "expression", "statement")


def sequence(before: list[int], after: list[int], gap: list[int] | None = None) -> list[int]:
    """The tokens that the model reads; with the `gap`, those that it is taught."""
    asked = [BOS, MARK, *after[:AFTER], MARK, *before[-BEFORE:]]
    return asked if gap is None else [*asked, *gap, EOS]


def sequences(batch: Batch) -> Tensor:
    """Each canvas as prefix, suffix, middle: int64 [canvases, LENGTH], padded."""
    rows = []
    for document, canvases, frees, starts in zip(
        batch.tokens, batch.canvas, batch.free, batch.starts, strict=True
    ):
        for canvas, free, start in zip(canvases, frees, starts, strict=True):
            places = free.nonzero().flatten()
            first, last = int(places[0]), int(places[-1]) + 1
            before = [*document[1:start].tolist(), *canvas[:first].tolist()]
            ids = sequence(before, canvas[last:].tolist(), canvas[first:last].tolist())[:LENGTH]
            rows.append(ids + [PAD] * (LENGTH - len(ids)))
    return torch.tensor(rows)


def loss_of(network: Any, tokens: Tensor) -> Tensor:
    """The mean next-token cross-entropy over all that is not padding."""
    states = network.model.encoder.language_model(input_ids=tokens, past_key_values=DynamicCache())
    logits = capped_logits(network, states.last_hidden_state[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD)


def train(out: Path, minutes: float, start: Path | None) -> None:
    """The recipe's optimiser and schedule; the clock counts steps only."""
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    cutter = Cutter.of(Corpus.load(out / "corpus.npz"), tokenizer, BOS, EOS)
    network = fresh_network(embedded_config(tokenizer.get_vocab_size()), 0, attention="eager")
    if start is not None:
        network.load_state_dict(load_network(start, "cpu").state_dict(), strict=False)
    network.train()
    used = [
        (n, w) for n, w in network.named_parameters() if "vision" not in n and "self_conditioning" not in n
    ]
    optimiser, chance = Optimiser(used, RATES), random.Random(0)
    loss = torch.compile(loss_of, dynamic=False)
    seconds, step, recent = 0.0, 0, 0.0
    while seconds < 60 * minutes:
        tokens = sequences(draw(cutter, BUCKET, chance))
        begin = time.monotonic()
        value = loss(network, tokens)
        value.backward()
        left, falls = 1 - seconds / (60 * minutes), 0.25 if start is None else 1.0
        optimiser.step(min(1.0, (step + 1) / 100) * min(1.0, left / falls))
        seconds += min(time.monotonic() - begin, 10.0)
        step, recent = step + 1, 0.95 * recent + 0.05 * float(value)
        if step % 20 == 0:
            print(json.dumps({"step": step, "seconds": round(seconds), "loss": round(recent, 3)}), flush=True)
    save_file({n: w.detach() for n, w in used}, out / "autoregressive.safetensors")


@torch.inference_mode()
def write(network: Any, asked: list[int], most: int = 64) -> list[int]:
    """The gap, greedily, until eos."""
    cache, tokens, found = DynamicCache(), asked, list[int]()
    while len(found) < most:
        states = network.model.encoder.language_model(input_ids=torch.tensor([tokens]), past_key_values=cache)
        best = int(capped_logits(network, states.last_hidden_state[:, -1]).argmax())
        if best in (EOS, PAD, BOS, MARK):
            break
        found.append(best)
        tokens = [best]
    return found


def score(out: Path, cases: int) -> None:
    """Exact matches and seconds a fill on the shipped holes."""
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    network = fresh_network(embedded_config(tokenizer.get_vocab_size()), 0).eval()
    network.load_state_dict(load_file(out / "autoregressive.safetensors"), strict=False)
    for kind in KINDS:
        exact, seconds = [], []
        for case in evaluation.read(evaluation.shipped(), [kind], cases)[0]:
            data, gap = case.document.data, case.gap
            before, after = (
                tokenizer.encode(part.decode("utf-8"), add_special_tokens=False).ids
                for part in (data[max(gap.start - 4000, 0) : gap.start], data[gap.end : gap.end + 2000])
            )
            begin = time.perf_counter()
            found = tokenizer.decode(write(network, sequence(before, after)))
            seconds.append(time.perf_counter() - begin)
            # Its text is fitted to the file as the engine's is.
            edit = make_edit(case.document, case.gap, found)
            exact.append(edit.text.strip() == case.truth.strip())
        shown = (
            f"exact {statistics.fmean(exact):.3f}, p50 {statistics.median(seconds):.3f} s, n = {len(exact)}"
        )
        print(f"{kind}: {shown}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["train", "score"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--from", dest="start", type=Path)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.what == "train":
        train(given.out, given.minutes, given.start)
    else:
        score(given.out, given.cases)
