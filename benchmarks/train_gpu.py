"""Train the embedded checkpoint on on a GPU machine that reaches nothing and keeps nothing.

    python -m benchmarks.train_gpu pack RUN PARTS          here: corpus and library of RUN as two archives below PARTS
    python -m benchmarks.train_gpu smoke PARTS...          there: how many tokens a second, which batch fits
    python -m benchmarks.train_gpu job OUT SECONDS PARTS... there: train, and leave what belongs home in OUT

RUN is a folder that `python -m benchmarks.embedded --from embedded` has prepared; RUN/library holds the packages that
are missing there (`pip install --target`). PARTS are folders, of which a call carries one. Only the training itself is
imported.
"""

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

NEEDED = ("corpus.npz", "heldout.npz", "tokenizer.json", "library")
BASE = Path(__file__).parents[1] / "dg_lsp" / "model" / "embedded"


def pack(run: Path, parts: Path) -> None:
    """Write what training needs of `run` as parts/a/part and parts/b/part, halves of one archive."""
    with tempfile.NamedTemporaryFile(dir=parts.parent) as whole:
        names = [name for name in NEEDED if (run / name).exists()]
        packed = ["tar", "-C", str(run), "-cf", "-", *names]
        with subprocess.Popen(packed, stdout=subprocess.PIPE) as tar:
            subprocess.run(["xz", "-9", "-T2"], stdin=tar.stdout, stdout=whole, check=True)
        data = Path(whole.name).read_bytes()
    for name, half in (("a", data[: len(data) // 2]), ("b", data[len(data) // 2 :])):
        (parts / name).mkdir(parents=True, exist_ok=True)
        (parts / name / "part").write_bytes(half)
        print(f"{parts / name / 'part'}: {len(half) / 1e6:.1f} MB")


def unpack(parts: list[Path], to: Path) -> None:
    """Unpack the archive whose pieces are in `parts` to the folder `to`, and let Python find its library."""
    with subprocess.Popen(["tar", "-C", str(to), "-xJf", "-"], stdin=subprocess.PIPE) as tar:
        assert tar.stdin is not None
        for part in parts:
            tar.stdin.write((part / "part").read_bytes())
    assert tar.returncode == 0, "the archive is not whole"
    sys.path.insert(0, str(to / "library"))


def trainer_of(work: Path, batch: int, **options: Any) -> Any:
    """A Trainer of the embedded checkpoint on the corpus in `work` with batches of `batch` times the usual size."""
    from benchmarks.embedded.fusing import fuse  # noqa: PLC0415
    from dg_lsp.training.layouts import BUCKETS  # noqa: PLC0415  (found only once the library is unpacked)
    from dg_lsp.training.trainer import Recipe, Trainer  # noqa: PLC0415

    buckets, fused = options.pop("buckets", BUCKETS), options.pop("fused", True)
    recipe = Recipe(buckets=[replace(bucket, rows=bucket.rows * batch) for bucket in buckets], **options)
    trainer = Trainer(work, recipe, BASE)
    if fused:
        fuse(trainer.network)
    return trainer


def smoke(work: Path, given: argparse.Namespace) -> None:
    """Print for several ways to train how many tokens a second they show, and what they take."""
    for way in given.ways:
        line: dict[str, Any] = {"way": way}
        try:
            try_way(work, given, line)
        except Exception as error:  # the next way may do
            line["failed"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(line), flush=True)


def try_way(work: Path, given: argparse.Namespace, line: dict[str, Any]) -> None:
    """Take some steps in a way such as sdpa:8 or sdpa:8:plain or sdpa:8:profile, and note in `line` what is found."""
    import torch  # noqa: PLC0415

    from dg_lsp.training.layouts import BUCKETS  # noqa: PLC0415

    attention, batch, *more = line["way"].split(":")
    options = {"attention": attention, "compiled": "compile" in more, "fused": "plain" not in more}
    buckets = BUCKETS[:1] if "compile" in more else BUCKETS
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    made = trainer_of(work, int(batch), seconds=1e6, loaders=given.loaders, buckets=buckets, **options)
    begin = time.monotonic()
    line["first loss"] = round(float(made.advance()["diffusion"]), 3)
    line["first step"] = round(time.monotonic() - begin, 2)
    with warnings.catch_warnings(record=True) as waits:
        warnings.simplefilter("always")
        if gpu:
            torch.cuda.set_sync_debug_mode("warn")
        made.advance()
        if gpu:
            torch.cuda.set_sync_debug_mode("default")
    if waits:
        line["waits for the device"] = sorted({f"{Path(w.filename).name}:{w.lineno}" for w in waits})[:12]
    if "profile" in more:
        activities = [torch.profiler.ProfilerActivity.CPU, *[torch.profiler.ProfilerActivity.CUDA] * gpu]
        with torch.profiler.profile(activities=activities) as profile:
            made.advance()
            if gpu:
                torch.cuda.synchronize()
        order = "self_cuda_time_total" if gpu else "self_cpu_time_total"
        print(profile.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=60))
    if gpu:
        torch.cuda.synchronize()
    began, tokens, waiting, steps = time.monotonic(), made.count.tokens, 0.0, 0
    while steps < given.steps and time.monotonic() - began < given.each:
        shown = made.advance()
        waiting += shown["waiting"]
        steps += 1
    launched = time.monotonic() - began
    line["loss"] = round(float(shown["diffusion"]), 3)
    seconds = time.monotonic() - began
    line |= {"steps": steps, "tokens a second": round((made.count.tokens - tokens) / seconds)}
    for name, value in (("", seconds), (" waiting", waiting), (" launching", launched - waiting)):
        line[f"ms{name}"] = round(value / steps * 1000, 1)
    if gpu:
        line["GiB"] = round(torch.cuda.max_memory_allocated() / 2**30, 1)


def fused_gradients_agree(work: Path) -> bool:
    """Whether fused parts give the loss and the direction of the gradients of plain ones here, on one batch."""
    import torch  # noqa: PLC0415

    found = []
    for fused in (False, True):
        try:
            made = trainer_of(work, 1, fused=fused, attention="sdpa")
            whole, *_ = made.loss(made.network, *(part.to(made.place.device) for part in made.draws[0]))
            whole.backward()
            grads = [w.grad.flatten().float() for w in made.network.parameters() if w.grad is not None]
            found.append((float(whole.detach()), torch.cat(grads)))
        except Exception as error:  # then the plain ones have to do
            print(f"{type(error).__name__}: {error}", flush=True)
            return False
    (plain, slopes), (loss, others) = found
    likeness = float(torch.cosine_similarity(slopes, others, dim=0))
    print(f"loss {plain:.4f} and {loss:.4f} fused; cosine of the gradients {likeness:.4f}", flush=True)
    return abs(loss / plain - 1) < 0.01 and likeness > 0.98


def job(work: Path, given: argparse.Namespace) -> None:
    """Train for `given.seconds`, and leave checkpoint, log and the weights from before the decay in `given.out`."""
    from dg_lsp.training import loop  # noqa: PLC0415
    from dg_lsp.training.loop import caught_signals  # noqa: PLC0415

    made = trainer_of(
        work,
        given.batch,
        seconds=given.seconds,
        loaders=given.loaders,
        attention=given.attention,
        decay=given.decay,
        rates=tuple(given.rates),
        compiled=given.compile,
        fused=not given.plain and fused_gradients_agree(work),
    )
    given.out.mkdir(parents=True, exist_ok=True)
    with caught_signals() as received:
        loop.train(made, received)
    made.export(work / "export")
    for whole in (work / "export").glob("undecayed.weights"):
        whole.replace(given.out / whole.name)
    with tarfile.open(given.out / "export.tar", "w") as archive:
        archive.add(work / "export", "export")
    (given.out / "log.jsonl").write_bytes((work / "log.jsonl").read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing = verbs.add_parser("pack")
    packing.add_argument("run", type=Path)
    packing.add_argument("parts", type=Path)
    smoking, working = verbs.add_parser("smoke"), verbs.add_parser("job")
    smoking.add_argument("--ways", type=lambda text: text.split(","), default=["sdpa:8", "eager:8"])
    working.add_argument("--batch", type=int, default=8, help="times the recipe's usual size")
    smoking.add_argument("--steps", type=int, default=20)
    smoking.add_argument("--each", type=float, default=4.0, help="seconds of each way at most")
    working.add_argument("out", type=Path)
    working.add_argument("seconds", type=float)
    working.add_argument("--decay", type=float, default=0.5)
    working.add_argument("--rates", type=float, nargs=2, default=(3.5e-3, 2e-3))
    working.add_argument("--attention", default="sdpa")
    working.add_argument("--compile", action="store_true")
    working.add_argument("--plain", action="store_true", help="no fused parts")
    for verb in (smoking, working):
        verb.add_argument("parts", type=Path, nargs="+")
        verb.add_argument("--loaders", type=int, default=12)
    given = parser.parse_args()
    if given.verb == "pack":
        pack(given.run, given.parts)
        return
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        unpack(given.parts, Path(folder))
        print(f"unpacked in {time.monotonic() - begin:.1f} s", flush=True)
        (smoke if given.verb == "smoke" else job)(Path(folder), given)
        print(f"done after {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
