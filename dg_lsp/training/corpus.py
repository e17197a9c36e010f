"""The corpus: which Python files the embedded checkpoint learns from, and where they come from.

Gathers files of installed packages with permissive licences, leaves out what is held out, what is doubled and
what is no hand-written code, and tokenises the rest. Knows no networks; `layouts.py` cuts canvases out of it.
"""

import ast
import json
import re
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from dg_lsp.training.heldout import (
    File,
    HeldOut,
    hash_line,
    held_out_files,
    is_held_out,
    long_lines,
    read_held_out,
    read_text,
    share,
)
from dg_lsp.training.tokenizer import train_tokenizer

_PERMISSIVE = re.compile(
    r"MIT|BSD|APACHE|ASL 2|ISC|PSF|PYTHON SOFTWARE|ZLIB|CC0|CNRI|UNLICENSE|PUBLIC DOMAIN|BSL-1|LLVM",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:[AL]?GPL|MPL|EPL|CDDL)\b|\b[AL]?GPLv|GENERAL PUBLIC|MOZILLA PUBLIC|PROPRIETARY", re.IGNORECASE
)
_GENERATED = re.compile(r"generated (by|from|file|code)|auto-?generated|do not edit", re.IGNORECASE)
_SKIPPED = {
    "test",
    "tests",
    "testing",
    "pydoc_data",
    "encodings",
    "site-packages",
    "idle_test",
    "__pycache__",
}
_OVERLAP_SEEN = 0.5
_LARGEST, _SHARE = 200_000, 1_500_000


@dataclass(frozen=True, slots=True)
class Source:
    """Where files come from. files, bytes: what is left of it; mass: how often it is drawn, in bytes a pass."""

    name: str
    version: str
    licence: str
    files: int
    bytes: int
    mass: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """Tokens of all files one after another.

    tokens: unsigned [T], as wide as the vocabulary asks. lines: int64 [L + 1], where each line begins, and T.
    first: int64 [L], number of the first line of each line's file; last: that of the line after its file. prose:
    bool [L], line of a docstring or comment, or blank. sources: (first line, line after, mass) of each source.
    """

    tokens: np.ndarray
    lines: np.ndarray
    first: np.ndarray
    last: np.ndarray
    prose: np.ndarray
    sources: np.ndarray

    def save(self, path: Path) -> None:
        """Write it to `path`, an .npz file."""
        np.savez(path, **{name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def load(cls, path: Path) -> "Corpus":
        """Read what `save` wrote."""
        with np.load(path) as stored:
            return cls(**{name: stored[name] for name in cls.__slots__})


def gather(roots: Sequence[Path], held_out: HeldOut) -> tuple[list[File], list[Source]]:
    """The files of the standard library and of the packages below `roots` (site-packages folders).

    1. Candidates with a permissive licence, small sources first.  2. Drop what is held out, by name, hash or shared
    lines.  3. Drop what is no hand-written code.  4. Drop what mostly repeats earlier files.
    5. A source counts at most 1.5 MB a pass, the standard library double its size, so that the largest do not rule.
    """
    # 1. A package found under several roots is taken once.
    kept: list[File] = []
    sources: list[Source] = []
    seen: set[int] = set()
    for name, version, licence, root, paths in _candidates(roots):
        total = count = 0
        for path in _shuffled(paths):
            text = read_text(root / path)
            # 2. to 4. A source larger than four times its share adds nothing but memory.
            if text is None or (total > 4 * _SHARE and name != "python"):
                continue
            lines = long_lines(text)
            if (
                is_held_out(held_out, path, text, lines)
                or not is_code(text)
                or share(lines, seen) > _OVERLAP_SEEN
            ):
                continue
            seen |= lines
            kept.append(File(name, path, text))
            total, count = total + len(text.encode()), count + 1
        if count:
            # 5.
            mass = 2 * total if name == "python" else min(total, _SHARE)
            sources.append(Source(name, version, licence, count, total, mass))
    return kept, sources


def tokenise(files: Sequence[File], sources: Sequence[Source], tokenizer: Tokenizer) -> Corpus:
    """Tokenise `files`, which are sorted by source."""
    newline = tokenizer.encode("\n", add_special_tokens=False).ids[0]
    kind = np.min_scalar_type(tokenizer.get_vocab_size() - 1)
    tokens, lines, first, last, prose, spans = [], [], [], [], [], []
    at = number = 0
    for source in sources:
        begin = number
        for file in (f for f in files if f.source == source.name):
            ids = np.array(tokenizer.encode(file.text, add_special_tokens=False).ids, dtype=kind)
            ends = np.flatnonzero(ids == newline) + 1
            starts = np.concatenate([[0], ends[ends < len(ids)]])
            tokens.append(ids)
            lines.append(starts + at)
            first.append(np.full(len(starts), number))
            last.append(np.full(len(starts), number + len(starts)))
            prose.append(_prose(file.text, len(starts)))
            at, number = at + len(ids), number + len(starts)
        spans.append((begin, number, source.mass))
    return Corpus(
        tokens=np.concatenate(tokens),
        lines=np.concatenate([*lines, np.array([at])]),
        first=np.concatenate(first),
        last=np.concatenate(last),
        prose=np.concatenate(prose),
        sources=np.array(spans),
    )


def prepare(out: Path, roots: Sequence[Path], known: Tokenizer | None = None) -> None:
    """Write corpus.npz, heldout.npz (where held-out files are installed), sources.json and tokenizer.json to `out`.

    Without a `known` tokenizer a new one is trained. It is written last: where it is, all is.
    """
    files, sources = gather(roots, read_held_out(roots))
    tokenizer = known or train_tokenizer(file.text for file in files)
    tokenise(files, sources, tokenizer).save(out / "corpus.npz")
    if kept := held_out_files(roots):
        size = sum(len(file.text) for file in kept)
        tokenise(kept, [Source("held out", "", "", len(kept), size, size)], tokenizer).save(
            out / "heldout.npz"
        )
    write_sources(sources, out / "sources.json")
    tokenizer.save(str(out / "tokenizer.json"))


def write_sources(sources: Iterable[Source], path: Path) -> None:
    """Record name, version, licence and size of each source as JSON."""
    path.write_text(json.dumps([asdict(source) for source in sources], indent=1) + "\n")


def _candidates(roots: Sequence[Path]) -> Iterator[tuple[str, str, str, Path, list[str]]]:
    library = Path(sysconfig.get_path("stdlib"))
    found = [p.relative_to(library).as_posix() for p in library.rglob("*.py")]
    yield "python", sysconfig.get_python_version(), "PSF-2.0", library, _wanted(found)
    named: dict[str, tuple[str, str, str, Path, list[str]]] = {}
    for root in roots:
        for package in metadata.distributions(path=[str(root)]):
            licence = _licence(package.metadata)
            paths = _wanted(str(f) for f in package.files or [])
            if licence and paths and package.name.lower() not in named:
                named[package.name.lower()] = (package.name.lower(), package.version, licence, root, paths)
    # Among near copies the one in the smaller, tidier project stays.
    yield from sorted(named.values(), key=lambda found: len(found[4]))


def _licence(about: Any) -> str:
    """The licence a package states, or nothing when that is unclear or not permissive."""
    groups = [
        c.split("::")[-1].strip() for c in about.get_all("Classifier") or [] if c.startswith("License ::")
    ]
    text: str = (
        about.get("License-Expression")
        or ", ".join(groups)
        or (about.get("License") or "").split("\n")[0][:60]
    )
    return text if _PERMISSIVE.search(text) and not _REFUSED.search(text) else ""


def _wanted(paths: Iterable[str]) -> list[str]:
    return sorted(
        p for p in paths if p.endswith(".py") and _SKIPPED.isdisjoint(p.split("/")) and ".." not in p
    )


def _shuffled(paths: list[str]) -> list[str]:
    """The same order on every machine, but not the alphabet's, so that a cap takes from all folders."""
    return sorted(paths, key=hash_line)


def is_code(text: str) -> bool:
    """Whether a person wrote it as a program: it parses, and is no table, no generated and no minified file."""
    if not 200 < len(text) < _LARGEST or _REFUSED.search(text[:3000]) or _GENERATED.search(text[:400]):
        return False
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    table = sum(line[0] in "\"'0123456789(-+{" for line in lines)
    if max(map(len, lines)) > 400 or table > 0.4 * len(lines):
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _prose(text: str, count: int) -> np.ndarray:
    """Per line: blank, a comment, or inside triple quotes. Counting the quotes is near enough for weighting."""
    inside, flags = False, []
    for line in text.split("\n")[:count]:
        odd = (line.count('"""') + line.count("'''")) % 2 == 1
        flags.append(inside or odd or not line.strip() or line.lstrip().startswith(("#", '"""')))
        inside ^= odd
    return np.array(flags, dtype=bool)
