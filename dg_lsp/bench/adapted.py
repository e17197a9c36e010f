"""`dg-lsp train --from CHECKPOINT --repo PATH`: adapt a checkpoint to one repository, and measure the gain.

A fifth of the files is held out, and holes in them, with their lengths given, are filled before and after. Nothing
leaves this machine.
"""

import asyncio
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tokenizers import Tokenizer

from dg_lsp.bench import measure as bench
from dg_lsp.bench.holes import Case
from dg_lsp.bench.score import Score
from dg_lsp.files.ignored import TRACKED
from dg_lsp.files.writing import make_whole
from dg_lsp.filling.project import excluding_path, project_files
from dg_lsp.settings import Settings, UsageError, from_environment
from dg_lsp.source.document import Document
from dg_lsp.training.corpus import File, Source, hash_line, is_code, read_text, tokenise

KINDS = ("rest_of_line", "expression", "statement")
RATES = (1.5e-3, 1e-3)  # peak rates of Muon and AdamW; lower than at first, so that little is forgotten
INFILL = 0.9  # share of canvases with a gap; the checkpoint has learned continuations already
LORA_RATES = (3e-4, 3e-4)
_CHANCE = 0.05  # below which a difference counts
_LARGE, _RANK = 200_000_000, 16  # weights from which on an adapter is trained, and its rank


def gather(repo: Path) -> tuple[list[File], list[File]]:
    """The Python files of `repo` to learn from, and those held out: about a fifth, the same on every machine.

    In a git repository they are the files that git tracks; else all files outside of hidden folders and of folders such
    as build and node_modules.

    Raises:
        UsageError: there are fewer than two files of hand-written Python.
    """
    files = []
    for path in project_files(repo, TRACKED):
        if path.suffix != ".py" or excluding_path(path, from_environment().exclude):
            continue
        if (text := read_text(path)) is not None and is_code(text):
            files.append(File("repository", path.relative_to(repo).as_posix(), text))
    files.sort(key=lambda file: hash_line(file.path))
    held = max(len(files) // 5, 1)
    if len(files) < 2:
        raise UsageError(
            f"{repo} holds {len(files)} Python files that can be learned from; at least 2 are needed"
        )
    return files[held:], files[:held]


def prepare(repo: Path, base: Path, out: Path) -> list[Document]:
    """Write the corpora of `repo` and the tokenizer of `base` to `out`; return the held-out files.

    Raises:
        UsageError: there are fewer than two files of hand-written Python.
    """
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    learned, held = gather(repo)
    for files, name in ((learned, "corpus.npz"), (held, "heldout.npz")):
        size = sum(len(file.text) for file in files)
        tokenise(files, [Source("repository", "", "", len(files), size, size)], tokenizer).save(out / name)
    make_whole(out / "tokenizer.json", lambda part: shutil.copyfile(base / "tokenizer.json", part))
    return [Document(file.path, "python", 0, file.text.encode("utf-8")) for file in held]


def rank_for(base: Path, wanted: int | None) -> int:
    """The rank of the adapter to train for the checkpoint in `base`: the `wanted` one, else 0 for a small network."""
    weights = sum(file.stat().st_size for file in base.glob("*.safetensors")) // 2
    return wanted if wanted is not None else _RANK if weights > _LARGE else 0


def verdict(before: Sequence[Score], after: Sequence[Score]) -> str:
    """Return a sentence that says whether more holes are exactly right after the adaptation than before it.

    The scores are of the same holes, in the same order. The two-sided sign test says how likely so many changes in one
    direction are by chance.
    """
    pairs = [(old.exact, new.exact) for old, new in zip(before, after, strict=True)]
    better, worse = pairs.count((False, True)), pairs.count((True, False))
    changed, most = better + worse, max(better, worse)
    tail = sum(math.comb(changed, number) for number in range(most, changed + 1)) / 2**changed
    counts = (
        f"{better} of {len(pairs)} holes are exactly right that were not before, and {worse} no longer are"
    )
    if min(2 * tail, 1.0) >= _CHANCE:
        return f"{counts}: no more than chance. More --minutes or --cases may show a difference."
    return f"{counts}: the adaptation {'helps' if better > worse else 'harms'}."


def scores(checkpoint: str, cases: Sequence[Case], label: str) -> list[Score]:
    """The scores of `checkpoint` for `cases` with given lengths; `label` is added to their kinds."""
    settings = Settings(checkpoint=checkpoint, threads=1)
    found = asyncio.run(bench.measure(cases, ["given"], settings))
    return [replace(score, kind=f"{score.kind} {label}") for score in found]
