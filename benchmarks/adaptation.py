"""How many tokens an imported network needs to learn to denoise, beside a network that learns all from scratch.

    python -m benchmarks.adaptation OUT --left 800 --steps 600

1. A Llama of 2 million weights learns to write from left to right on the recipe's corpus.  2. It is imported.  3. It is
adapted by the recipe, and a fresh network of the same width and depth is trained by it for twice as many steps; both
see the same batches. OUT/curve.jsonl has both losses on held-out canvases, OUT/left is the Llama. A run that was ended
begins again at the part that is not there.
"""

import argparse
import json
import random
import sysconfig
from pathlib import Path
from typing import IO

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from dg_lsp.training import corpus as corpora
from dg_lsp.training.corpus import Corpus
from dg_lsp.training.importing import import_checkpoint
from dg_lsp.training.layouts import Bucket, Cutter, draw
from dg_lsp.training.loop import measure
from dg_lsp.training.optimise import Optimiser
from dg_lsp.training.shape import BOS, EOS, PAD
from dg_lsp.training.trainer import RATES, Recipe, Trainer

WIDTH, LAYERS = 160, 4
DOCUMENTS = Bucket(16, 512, 1, 64, 1.0)  # 16 documents of 512 tokens; the canvas is not looked at
EACH = 100  # steps between two measurements


def write_left(out: Path, steps: int) -> None:
    """Train the Llama for `steps` steps of 8,192 tokens, and write it to OUT/left."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    network = LlamaForCausalLM(config).to(torch.bfloat16)
    optimiser, chance = Optimiser(network.named_parameters(), RATES), random.Random(0)
    cutter = Cutter.of(Corpus.load(out / "corpus.npz"), tokenizer, BOS, EOS)
    recent = 9.0
    for step in range(1, steps + 1):
        tokens = draw(cutter, DOCUMENTS, chance).tokens
        logits = network(input_ids=tokens[:, :-1]).logits
        loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD)
        loss.backward()
        optimiser.step(min(1.0, step / 100) * min(1.0, (steps - step) / (steps / 4)))
        recent += 0.05 * (float(loss.detach()) - recent)
        if step % 20 == 0:
            print(f"left to right: step {step}, {step * tokens.numel():,} tokens, {recent:.3f}", flush=True)
    network.save_pretrained(out / "left")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(out / "left")


def learn(out: Path, name: str, base: Path | None, steps: int) -> None:
    """Train by the recipe, and add a line to OUT/curve.jsonl each EACH steps."""
    recipe = Recipe(steps=steps, width=WIDTH, layers=LAYERS, warm=100)
    trainer = Trainer(out, recipe, base)
    with (out / "curve.jsonl").open("a", encoding="utf-8") as stream:
        while trainer.done() < 1:
            if trainer.count.step % EACH == 0:
                _note(stream, name, trainer)
            trainer.advance()
        _note(stream, name, trainer)
    trainer.export(out / name)


def _note(stream: IO[str], name: str, trainer: Trainer) -> None:
    found = {"run": name, "step": trainer.count.step, "tokens": trainer.count.tokens, **measure(trainer, 8)}
    print(json.dumps(found), file=stream, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--left", type=int, default=800, help="steps from left to right")
    parser.add_argument("--steps", type=int, default=600, help="steps of the adaptation")
    given = parser.parse_args()
    folder: Path = given.out
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    if not (folder / "tokenizer.json").exists():
        corpora.prepare(folder, [Path(sysconfig.get_path("purelib"))], None)
    if not (folder / "left").exists():
        write_left(folder, given.left)
    if not (folder / "imported").exists():
        import_checkpoint(str(folder / "left"), folder / "imported")
    for run, start, count in (
        ("adapted", folder / "imported", given.steps),
        ("scratch", None, 2 * given.steps),
    ):
        if not (folder / run).exists():
            learn(folder, run, start, count)
