"""Train the embedded checkpoint on on a GPU machine that reaches nothing and keeps nothing.

    python -m benchmarks.train_gpu pack RUN PARTS          here: corpus and library of RUN as two archives below PARTS
    python -m benchmarks.train_gpu job OUT SECONDS PARTS... there: train, and leave what belongs home in OUT

RUN is a folder that `python -m benchmarks.embedded --from embedded` has prepared; RUN/library holds the packages that
are missing there (`pip install --target`). PARTS are folders, of which a call carries one. Only the training itself is
imported.
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks import parser_of

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


def job(work: Path, given: argparse.Namespace) -> None:
    """Train for `given.seconds`, and leave checkpoint, log and the weights from before the decay in `given.out`."""
    # Found only once the library is unpacked.
    from benchmarks.embedded.fusing import fuse  # noqa: PLC0415
    from dg_lsp.training import loop  # noqa: PLC0415
    from dg_lsp.training.layouts import BUCKETS  # noqa: PLC0415
    from dg_lsp.training.trainer import Recipe, Trainer  # noqa: PLC0415

    recipe = Recipe(
        seconds=given.seconds,
        buckets=[replace(bucket, rows=bucket.rows * given.batch) for bucket in BUCKETS],
        loaders=given.loaders,
        attention="sdpa",
        decay=given.decay,
        rates=tuple(given.rates),
    )
    made = Trainer(work, recipe, BASE)
    fuse(made.network)
    given.out.mkdir(parents=True, exist_ok=True)
    with loop.caught_signals() as received:
        loop.train(made, received)
    made.export(work / "export")
    for whole in (work / "export").glob("undecayed.weights"):
        whole.replace(given.out / whole.name)
    with tarfile.open(given.out / "export.tar", "w") as archive:
        archive.add(work / "export", "export")
    (given.out / "log.jsonl").write_bytes((work / "log.jsonl").read_bytes())


def main() -> None:
    parser = parser_of(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing, working = verbs.add_parser("pack"), verbs.add_parser("job")
    packing.add_argument("run", type=Path)
    packing.add_argument("parts", type=Path)
    working.add_argument("out", type=Path)
    working.add_argument("seconds", type=float)
    working.add_argument("parts", type=Path, nargs="+")
    working.add_argument("--batch", type=int, default=8, help="times the recipe's usual size")
    working.add_argument("--decay", type=float, default=0.5)
    working.add_argument("--rates", type=float, nargs=2, default=(3.5e-3, 2e-3))
    working.add_argument("--loaders", type=int, default=12)
    given = parser.parse_args()
    if given.verb == "pack":
        pack(given.run, given.parts)
        return
    with tempfile.TemporaryDirectory() as folder:
        unpack(given.parts, Path(folder))
        job(Path(folder), given)


if __name__ == "__main__":
    main()
