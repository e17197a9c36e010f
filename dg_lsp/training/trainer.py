"""The Trainer of one run: steps, learning rate, state file, export. Knows data, loss and optimiser; knows no options.

The learning rate warms up, holds and decays within the run; the counts of steps and tokens continue from run to run.
"""

import itertools
import json
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from dg_lsp.checkpoints import read_about
from dg_lsp.files.writing import make_whole
from dg_lsp.training.corpus import Corpus
from dg_lsp.training.export import export_embedded, export_like
from dg_lsp.training.importing import freeze_scales
from dg_lsp.training.layouts import BUCKETS, INFILLS, Batch, Bucket, Cutter, draw
from dg_lsp.training.lora import ADAPTER, SCALE, add_adapter, merge_stored
from dg_lsp.training.objective import corrupt, draw_times, losses
from dg_lsp.training.optimise import Optimiser
from dg_lsp.training.shape import embedded_config, fresh_network, stored_network

# The weights just before the learning rate fell. A later run continues from them, because weights after the decay would
# jump in loss when the rate rises again. A safetensors file whose name keeps loaders from taking it for the checkpoint.
WEIGHTS_BEFORE_DECAY = "undecayed.weights"
RATES = (3.5e-3, 2e-3)  # peak learning rates of Muon and of AdamW
_WARM_STEPS, _REWARM_STEPS = 100, 200  # of a fresh network, and of a continued one
_AHEAD = 8  # batches that a process prepares before they are asked for
_LONGEST = 10.0  # seconds that a step counts at most; a longer one was compiling or paused


@dataclass(slots=True)
class Count:
    """The steps taken, the tokens shown, and the seconds spent in steps."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """The options of one run, which takes `steps` steps or, if that is None, lasts `seconds` of stepping.

    width, layers: of a fresh network. compiled: compile the loss where canvases are learned. rates: peak learning rates
    of Muon and of AdamW. warm: steps of warm-up. rank: of a LoRA adapter, which then is all that is trained; 0 trains
    all weights. infill: the share of canvases with a gap. decay: the last share of the run, in which the rate falls.
    onward: start from WEIGHTS_BEFORE_DECAY if the checkpoint has them. loaders: processes that draw the batches; with 0
    this one does. attention: transformers' name of the function that computes it.
    """

    steps: int | None = None
    seconds: float = 5400.0
    seed: int = 0
    width: int = 256
    layers: int = 4
    compiled: bool = False
    buckets: Sequence[Bucket] = BUCKETS
    rates: tuple[float, float] = RATES
    warm: int | None = None
    rank: int = 0
    infill: float = INFILLS
    decay: float = 0.25
    onward: bool = True
    loaders: int = 0
    attention: str = "eager"

    @property
    def denoises(self) -> bool:
        """Return whether canvases are learned, too, and not only texts written from left to right."""
        return any(bucket.canvases for bucket in self.buckets)


@dataclass(frozen=True, slots=True)
class Draws(Dataset[tuple[Tensor, ...]]):
    """The batches by their numbers, each the tensors of a Batch and then the noisy canvases.

    One depends on its number and the seed alone, however many processes draw them, and where a run continues.
    buckets: the shapes of batches. infill: the share of canvases with a gap. vocabulary: the tokens that noise draws
    from. seed: of everything random.
    """

    cutter: Cutter
    buckets: Sequence[Bucket]
    infill: float
    vocabulary: int
    seed: int

    def __getitem__(self, number: int) -> tuple[Tensor, ...]:
        chance = random.Random(f"{self.seed} {number}")
        bucket = chance.choices(self.buckets, [b.share for b in self.buckets])[0]
        batch = draw(self.cutter, bucket, chance, self.infill)
        noise = torch.Generator().manual_seed(chance.getrandbits(60))
        noisy = corrupt(batch, draw_times(batch, noise), self.vocabulary, noise)
        return batch.tokens, batch.canvas, batch.free, batch.starts, noisy


def batches(draws: Draws, first: int, processes: int) -> Iterator[tuple[Tensor, ...]]:
    """The batches from number `first` on, without end, drawn by as many `processes`, or with 0 by this one."""
    return iter(
        DataLoader(
            draws,
            batch_size=None,
            sampler=itertools.count(first),
            num_workers=processes,
            prefetch_factor=_AHEAD if processes else None,
            pin_memory=torch.cuda.is_available(),
        )
    )


class Trainer:
    """A network in training: optimiser, data, random state and counts, all of which the state file holds."""

    def __init__(self, out: Path, recipe: Recipe, base: Path | None = None) -> None:
        """out: the folder of tokenizer and corpus. base: the folder of the checkpoint to start from, if any."""
        self.out, self.recipe, self.base = out, recipe, base
        self.tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
        self.count, self.version = Count(), 0
        if base is None:
            config = embedded_config(self.tokenizer.get_vocab_size(), recipe.width, recipe.layers)
            network = fresh_network(config, recipe.seed, attention=recipe.attention)
        else:
            network = _network_of(base, recipe)
            about = read_about(base)
            self.count, self.version = Count(**about.get("trained", {})), int(about.get("version", 0)) + 1
            if "imported_from" in about:
                freeze_scales(network)
        if recipe.rank:
            add_adapter(network, recipe.rank, recipe.seed)
        self.warm = recipe.warm or (_WARM_STEPS if base is None else _REWARM_STEPS)
        self.device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
        self.network = network.to(self.device).train()
        self.optimiser = Optimiser(_trained(self.network), recipe.rates)
        text = network.config.text_config
        eos = text.eos_token_id[0] if isinstance(text.eos_token_id, list) else text.eos_token_id
        corpus = Corpus.load(out / "corpus.npz")
        self.cutter = Cutter.of(corpus, self.tokenizer, text.bos_token_id, eos)
        self.draws = Draws(self.cutter, recipe.buckets, recipe.infill, int(text.vocab_size), recipe.seed)
        self._batches: Iterator[tuple[Tensor, ...]] | None = None
        self.first = Count(**asdict(self.count))
        self.recent: dict[str, float] = {}
        self._mark = time.monotonic()
        # Compiled, a loss of the encoder alone comes without a gradient (torch 2.13).
        compiled = recipe.compiled and recipe.denoises
        self.loss = torch.compile(_loss, dynamic=False) if compiled else _loss

    def share(self) -> float:
        """The learning rate of the next step as a share of its peak: it rises, holds, and falls to 0 at the end."""
        warmed_up = (self.count.step - self.first.step + 1) / self.warm
        return min(1.0, warmed_up) * min(1.0, max(0.0, (1 - self.done()) / self.recipe.decay))

    def done(self) -> float:
        """The share of this run that is done, from 0; 1 or more means that it has ended."""
        if self.recipe.steps:
            return (self.count.step - self.first.step) / self.recipe.steps
        return (self.count.seconds - self.first.seconds) / self.recipe.seconds

    def advance(self) -> dict[str, Any]:
        """Take one step; return the losses, the gradient norm, the share of the rate, and the seconds of waiting.

        Losses and norm are scalars on the device: reading them waits for the device, so read them rarely. "waiting" are
        the seconds until the batch was drawn.
        """
        begin = time.monotonic()
        if self._batches is None:
            self._batches = batches(self.draws, self.count.step, self.recipe.loaders)
        drawn = next(self._batches)
        waiting = time.monotonic() - begin
        tokens, canvas, *others = (part.to(self.device, non_blocking=True) for part in drawn)
        total, diffusion, ahead = self.loss(self.network, tokens, canvas, *others)
        total.backward()  # type: ignore[no-untyped-call]
        seconds, rate = self._spent(), self.share()
        norm = self.optimiser.step(rate)
        self.count.step += 1
        self.count.seconds += seconds
        self.count.tokens += tokens.numel() + canvas.numel()
        return {"diffusion": diffusion, "ahead": ahead, "norm": norm, "rate": rate, "waiting": waiting}

    def _spent(self) -> float:
        """Seconds since the last call, at most _LONGEST, so that compiling or a pause does not shorten the schedule."""
        before, self._mark = self._mark, time.monotonic()
        return min(self._mark - before, _LONGEST)

    def save(self) -> None:
        """Write the state file; it is renamed into place, so that a crash leaves the one before."""
        at = {"count": asdict(self.count), "first": asdict(self.first), "recent": self.recent}
        state = self.optimiser.state()
        make_whole(
            self.out / "state.safetensors", lambda part: save_file(state, part, {"run": json.dumps(at)})
        )

    def restore(self) -> None:
        """Read the state that `save` wrote."""
        with safe_open(self.out / "state.safetensors", "pt") as stored:
            state = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (no mapping)
            at = json.loads(stored.metadata()["run"])
        self.optimiser.restore(state)
        self._batches = None
        self.count, self.first, self.recent = Count(**at["count"]), Count(**at["first"]), at["recent"]

    def save_before_decay(self) -> None:
        """Write WEIGHTS_BEFORE_DECAY with the current weights."""
        weights = {name: weight.detach() for name, weight in self.network.named_parameters()}
        make_whole(self.out / WEIGHTS_BEFORE_DECAY, lambda part: save_file(weights, part))

    def export(self, to: Path) -> None:
        """Write a checkpoint to the directory `to`; an adapter is merged into its weights."""
        network = self.network
        shown = ", ".join(f"{name} {value:.3f}" for name, value in self.recent.items())
        count = self.count
        note = f"step {count.step}, {count.tokens / 1e6:.1f} M tokens, {count.seconds / 60:.0f} min; {shown}"
        about = {"version": self.version, "note": note, "trained": asdict(count)}
        if self.recipe.denoises:
            about["denoises"] = True
        if self.recipe.rank:
            adapter = {name: weight.detach().to(torch.bfloat16) for name, weight in _trained(self.network)}
            make_whole(self.out / ADAPTER, lambda part: save_file(adapter, part, {"scale": str(SCALE)}))
            assert self.base is not None, "an adapter is learned with a checkpoint"
            network = _network_of(self.base, self.recipe)
            merge_stored(network, self.out / ADAPTER)
        if self.base is None:
            export_embedded(network, self.out / "tokenizer.json", to, about)
        else:
            export_like(network, self.base, to, about)
        if (self.out / WEIGHTS_BEFORE_DECAY).exists():
            before = self.out / WEIGHTS_BEFORE_DECAY
            make_whole(to / WEIGHTS_BEFORE_DECAY, lambda part: shutil.copyfile(before, part))


def _network_of(base: Path, recipe: Recipe) -> Any:
    """The network that a run of `recipe` from the checkpoint in `base` begins with."""
    onward = recipe.onward and (base / WEIGHTS_BEFORE_DECAY).exists()
    return stored_network(base, WEIGHTS_BEFORE_DECAY if onward else None, recipe.attention)


def _loss(network: Any, *parts: Tensor) -> tuple[Tensor, ...]:
    """The loss and its two terms; `parts` are the tensors of a Batch, then the noisy canvas (for torch.compile)."""
    *clean, noisy = parts
    diffusion, ahead = losses(network, Batch(*clean), noisy)
    return diffusion + ahead, diffusion.detach(), ahead.detach()


def _trained(network: Any) -> list[tuple[str, Any]]:
    """The weights that are trained, by name; those of the vision tower are not."""
    return [(n, w) for n, w in network.named_parameters() if w.requires_grad and "vision" not in n]
