"""The corpus: the Python files that the embedded checkpoint learns from, tokenised, with their sources.

The files are those of installed packages with permissive licences, without held-out files, near copies and files that
nobody wrote by hand. `layouts.py` cuts canvases out of it. Knows no networks.
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

from dg_lsp.text.languages.language import load_language
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
_OVERLAP_SEEN = 0.5  # share of a file's long lines that earlier files may hold
_LARGEST, _SHARE = 200_000, 1_500_000  # characters of a file, and bytes of a source that count in a pass


@dataclass(frozen=True, slots=True)
class Source:
    """A source of files.

    files, bytes: those that the corpus keeps. mass: how often the source is drawn, in bytes a pass.
    """

    name: str
    version: str
    licence: str
    files: int
    bytes: int
    mass: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """The tokens of all files in one sequence of T tokens and L lines.

    tokens: [T], the smallest unsigned type that holds the vocabulary. lines: int64 [L + 1], the token at which each
    line begins, and T. first, last: int64 [L], for each line the first line of its file, and the line after its file.
    prose: bool [L], blank lines and lines of docstrings and comments. sources: int64 [S, 3], for each source its first
    line, the line after it, and its mass.
    """

    tokens: np.ndarray
    lines: np.ndarray
    first: np.ndarray
    last: np.ndarray
    prose: np.ndarray
    sources: np.ndarray

    def save(self, path: Path) -> None:
        """Write the arrays to `path`, an .npz file."""
        np.savez(path, **{name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def load(cls, path: Path) -> "Corpus":
        """The corpus that `save` wrote to `path`."""
        with np.load(path) as stored:
            return cls(**{name: stored[name] for name in cls.__slots__})


def gather(roots: Sequence[Path], held_out: HeldOut) -> tuple[list[File], list[Source]]:
    """The files of the standard library and of the packages in `roots` (site-packages folders), and their sources.

    1. Take the sources with a permissive licence, small ones first.  2. Drop held-out files and those that resemble
    them.
    3. Drop files that nobody wrote by hand.  4. Drop files that mostly repeat earlier ones.  5. Limit the mass of a
    source to 1.5 MB, and that of the standard library to twice its size, so that large sources do not dominate.
    """
    # 1. A package found in several roots is taken once.
    kept: list[File] = []
    sources: list[Source] = []
    seen: set[int] = set()
    for name, version, licence, root, paths in _candidates(roots):
        total = count = 0
        for path in _shuffled(paths):
            text = read_text(root / path)
            # 2. to 4. A source of more than four times its mass would only add memory.
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
    """The corpus of `files`; `sources` gives the order of the sources and their masses."""
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


def gather_folder(language: str, folder: Path) -> tuple[list[File], Source]:
    """The files of `language` below `folder` that somebody wrote by hand, and their source.

    Its licence is not looked at.
    """
    files, name, suffixes = [], f"{language}={folder.name}", load_language(language).suffixes
    for path in sorted(p for p in folder.rglob("*") if p.suffix in suffixes):
        inside = path.relative_to(folder).as_posix()
        text = read_text(path) if _SKIPPED.isdisjoint(inside.split("/")) and path.is_file() else None
        if text is not None and is_code(text, language):
            files.append(File(name, inside, text))
    size = sum(len(file.text.encode()) for file in files)
    return files, Source(name, "", "", len(files), size, min(size, 4 * _SHARE))


def prepare(
    out: Path,
    roots: Sequence[Path],
    known: Tokenizer | None = None,
    folders: Sequence[tuple[str, Path]] = (),
) -> None:
    """Write corpus.npz, sources.json, tokenizer.json and, if held-out files are installed, heldout.npz to `out`.

    known: the tokenizer to use; without it one is trained. folders: languages, and folders with files in them.
    tokenizer.json is written last, so where it is, all is.
    """
    files, sources = gather(roots, read_held_out(roots))
    for more, source in (gather_folder(*folder) for folder in folders):
        files, sources = files + more, [*sources, *([source] if more else [])]
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
    """Write name, version, licence and sizes of each source to `path` as JSON."""
    path.write_text(json.dumps([asdict(source) for source in sources], indent=1) + "\n")


def _candidates(roots: Sequence[Path]) -> Iterator[tuple[str, str, str, Path, list[str]]]:
    """(name, version, licence, root, paths) of the standard library and of each package with a permissive licence."""
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
    # Small packages first, so that of near copies the one in the smaller package stays.
    yield from sorted(named.values(), key=lambda found: len(found[4]))


def _licence(about: Any) -> str:
    """The licence that a package's metadata states; empty if it is unclear or not permissive."""
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
    """The Python files among `paths` that are in none of the _SKIPPED folders, sorted."""
    return sorted(
        p for p in paths if p.endswith(".py") and _SKIPPED.isdisjoint(p.split("/")) and ".." not in p
    )


def _shuffled(paths: list[str]) -> list[str]:
    """`paths` in an order that is the same on every machine but mixes the folders, so that a limit takes from all."""
    return sorted(paths, key=hash_line)


def is_code(text: str, language: str = "python") -> bool:
    """Return whether somebody wrote `text` by hand: it is no table of data, no generated and no minified file.

    Python has to parse, too.
    """
    if not 200 < len(text) < _LARGEST or _REFUSED.search(text[:3000]) or _GENERATED.search(text[:400]):
        return False
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    table = sum(line[0] in "\"'0123456789(-+{" for line in lines)
    if max(map(len, lines)) > 400 or table > 0.4 * len(lines):
        return False
    if language != "python":
        return True
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _prose(text: str, count: int) -> np.ndarray:
    """A mask of the lines, of `count`, that are blank, a comment or inside triple quotes: bool [count].

    Triple quotes are only counted, which is exact enough for weights.
    """
    inside, flags = False, []
    for line in text.split("\n")[:count]:
        odd = (line.count('"""') + line.count("'''")) % 2 == 1
        flags.append(inside or odd or not line.strip() or line.lstrip().startswith(("#", '"""')))
        inside ^= odd
    return np.array(flags, dtype=bool)
