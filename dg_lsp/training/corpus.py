"""The corpus: the files that a training learns from, tokenised, with their sources.

`layouts.py` cuts canvases out of it. Knows no networks.
"""

import ast
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from dg_lsp.files.writing import make_whole, write_whole
from dg_lsp.source.language import load_language

REFUSED = re.compile(
    r"\b(?:[AL]?GPL|MPL|EPL|CDDL)\b|\b[AL]?GPLv|GENERAL PUBLIC|MOZILLA PUBLIC|PROPRIETARY", re.IGNORECASE
)
_GENERATED = re.compile(r"generated (by|from|file|code)|auto-?generated|do not edit", re.IGNORECASE)
# Folders whose files are not learned from.
SKIPPED = {"test", "tests", "testing", "pydoc_data", "encodings", "site-packages", "idle_test", "__pycache__"}
_LARGEST, _MASS = 200_000, 6_000_000  # characters of a file, and bytes of a folder that count in a pass


@dataclass(frozen=True, slots=True)
class File:
    """A source file; `path` is relative to the root of its source."""

    source: str
    path: str
    text: str


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
        make_whole(
            path, lambda part: np.savez(part, **{name: getattr(self, name) for name in self.__slots__})
        )

    @classmethod
    def load(cls, path: Path) -> "Corpus":
        """The corpus that `save` wrote to `path`."""
        with np.load(path) as stored:
            return cls(**{name: stored[name] for name in cls.__slots__})


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

    Their licence is not checked.
    """
    files, name, suffixes = [], f"{language}={folder.name}", load_language(language).suffixes
    for path in sorted(p for p in folder.rglob("*") if p.suffix in suffixes):
        inside = path.relative_to(folder).as_posix()
        text = read_text(path) if SKIPPED.isdisjoint(inside.split("/")) and path.is_file() else None
        if text is not None and is_code(text, language):
            files.append(File(name, inside, text))
    size = sum(len(file.text.encode()) for file in files)
    return files, Source(name, "", "", len(files), size, min(size, _MASS))


def gather_folders(folders: Sequence[tuple[str, Path]]) -> tuple[list[File], list[Source]]:
    """The files of `folders`, each with its language, and the sources of those that have any."""
    found = [gather_folder(*folder) for folder in folders]
    return [file for files, _ in found for file in files], [source for files, source in found if files]


def write_corpus(out: Path, files: Sequence[File], sources: Sequence[Source], tokenizer: Tokenizer) -> None:
    """Write corpus.npz, sources.json and tokenizer.json to `out`, the last one at the end: where it is, all is."""
    tokenise(files, sources, tokenizer).save(out / "corpus.npz")
    text = json.dumps([asdict(source) for source in sources], indent=1) + "\n"
    write_whole(out / "sources.json", text.encode("utf-8"))
    make_whole(out / "tokenizer.json", lambda part: tokenizer.save(str(part)))


def is_code(text: str, language: str = "python") -> bool:
    """Return whether somebody wrote `text` by hand: it is no table of data, no generated and no minified file.

    Python has to parse, too.
    """
    if not 200 < len(text) < _LARGEST or REFUSED.search(text[:3000]) or _GENERATED.search(text[:400]):
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


def hash_line(line: str) -> int:
    """A hash of 64 bits that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(line.encode(), digest_size=8).digest())


def read_text(path: Path) -> str | None:
    """The text of the file `path`; None if it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
