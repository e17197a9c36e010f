"""The files that training never sees: those that embedded/heldout.json names, their copies, and files like them.

Knows files and lines of text; knows no tokens and no networks.
"""

import hashlib
import json
import re
import sysconfig
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from dg_lsp.training.corpus import File, hash_line, read_text

_OVERLAP = 0.15  # share of a file's long lines that held-out files may hold
_WINDOW = 50  # lexical tokens
_LEXEME = re.compile(r"\w+|[^\w\s]")
_COMMENT_LINE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The marks of held-out files and files like them.

    modules: paths in the standard library. packages: top-level folders. hashes: sha256 of files, hex. lines: hashes of
    long lines. windows: uint64, sorted, the hashes of 50 lexical tokens in a row.
    """

    modules: frozenset[str]
    packages: frozenset[str]
    hashes: frozenset[str]
    lines: frozenset[int]
    windows: np.ndarray


def read_held_out(roots: Sequence[Path]) -> HeldOut:
    """The held-out files that embedded/heldout.json names; those installed in `roots` are read for their lines."""
    modules, packages, hashes, lines = set[str](), set[str](), set[str](), set[int]()
    windows = [np.array([], dtype=np.uint64)]
    for kind, path, digest, texts in _entries(roots):
        if kind == "stdlib":
            modules.add(path)
        else:
            packages.add(path.split("/")[0])
        hashes.add(digest)
        lines = lines.union(*map(long_lines, texts))
        windows += map(windows_of, texts)
    known = np.unique(np.concatenate(windows))
    return HeldOut(frozenset(modules), frozenset(packages), frozenset(hashes), frozenset(lines), known)


def held_out_files(roots: Sequence[Path]) -> list[File]:
    """The held-out files that are installed here, in any version, to measure on."""
    return [File("held out", path, texts[0]) for _, path, _, texts in _entries(roots) if texts]


def is_held_out(held_out: HeldOut, path: str, text: str, lines: set[int]) -> bool:
    """Return whether a file is held out, a copy of a held-out file or in one of a held-out package, or resembles one.

    It resembles one if it shares 50 lexical tokens in a row or more than 15 % of its long `lines` with held-out files.
    """
    folders = re.split(r"[/\\]", path.removesuffix(".py"))
    return (
        path in held_out.modules
        or not held_out.packages.isdisjoint(folders)
        or hashlib.sha256(text.encode()).hexdigest() in held_out.hashes
        or share(lines, held_out.lines) > _OVERLAP
        or overlaps(windows_of(text), held_out.windows)
    )


def windows_of(text: str) -> np.ndarray:
    """The hashes of every 50 lexical tokens in a row of `text`, uint64; lines of comments are left out.

    Without that, all files with the same licence header would resemble each other.
    """
    lexemes = _LEXEME.findall(_COMMENT_LINE.sub("", text))
    # crc32 is the same in every process, and the polynomial of 50 of them in 64 bits makes collisions unlikely.
    codes = np.array([zlib.crc32(lexeme.encode()) for lexeme in lexemes], dtype=np.uint64)
    count = len(codes) - _WINDOW + 1
    if count <= 0:
        return np.array([], dtype=np.uint64)
    found = np.zeros(count, dtype=np.uint64)
    for offset in range(_WINDOW):
        found = found * np.uint64(0x9E3779B97F4A7C15) + codes[offset : offset + count]
    return found


def overlaps(windows: np.ndarray, known: np.ndarray) -> bool:
    """Return whether any of `windows` is among `known`, which is sorted."""
    if not len(known):
        return False
    places = np.minimum(np.searchsorted(known, windows), len(known) - 1)
    return bool((known[places] == windows).any())


def long_lines(text: str) -> set[int]:
    """The hashes of the lines of `text` that have 20 characters or more when stripped."""
    stripped = (line.strip() for line in text.splitlines())
    return {hash_line(line) for line in stripped if len(line) >= 20}


def share(lines: set[int], known: set[int] | frozenset[int]) -> float:
    """The share of `lines` that is in `known`, 0 to 1; 0 without lines."""
    return len(lines & known) / len(lines) if lines else 0.0


def _entries(roots: Sequence[Path]) -> Iterator[tuple[str, str, str, list[str]]]:
    """("stdlib" or "package", path, sha256, texts installed at that path) of each file in embedded/heldout.json."""
    listed = (resources.files("dg_lsp.model") / "embedded" / "heldout.json").read_text()
    for entry in json.loads(listed)["files"]:
        kind, _, path = entry["path"].partition(":")
        folders = [Path(sysconfig.get_path("stdlib"))] if kind == "stdlib" else roots
        texts = [text for root in folders if (text := read_text(root / path)) is not None]
        yield kind, path, entry["sha256"], texts
