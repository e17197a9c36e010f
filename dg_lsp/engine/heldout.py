"""What training never sees: files named in `embedded/heldout.json`, their copies, and what resembles them.

Knows files and lines of text; no tokens and no networks.
"""

import hashlib
import json
import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

_OVERLAP = 0.15


@dataclass(frozen=True, slots=True)
class File:
    """One Python file; `path` is relative to its source's root."""

    source: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What training never sees: path ends, names of packages, hashes and long lines."""

    modules: frozenset[str]
    packages: frozenset[str]
    hashes: frozenset[str]
    lines: frozenset[int]


def read_held_out(roots: Sequence[Path]) -> HeldOut:
    """What `embedded/heldout.json` names; its files are read where they are installed, for their lines."""
    modules, packages, hashes, lines = set[str](), set[str](), set[str](), set[int]()
    for kind, path, digest, texts in _entries(roots):
        if kind == "stdlib":
            modules.add(path)
        else:
            packages.add(path.split("/")[0])
        hashes.add(digest)
        lines = lines.union(*map(long_lines, texts))
    return HeldOut(frozenset(modules), frozenset(packages), frozenset(hashes), frozenset(lines))


def held_out_files(roots: Sequence[Path]) -> list[File]:
    """The held-out files as they are installed here, in whatever version, to measure on."""
    return [File("held out", path, texts[0]) for _, path, _, texts in _entries(roots) if texts]


def is_held_out(held_out: HeldOut, path: str, text: str, lines: set[int]) -> bool:
    """Whether a file is held out, a copy of such a file, or part of a vendored copy of such a package."""
    folders = re.split(r"[/\\]", path.removesuffix(".py"))
    return (
        path in held_out.modules
        or not held_out.packages.isdisjoint(folders)
        or hashlib.sha256(text.encode()).hexdigest() in held_out.hashes
        or share(lines, held_out.lines) > _OVERLAP
    )


def long_lines(text: str) -> set[int]:
    """Hashes of the stripped lines of 20 characters or more."""
    stripped = (line.strip() for line in text.splitlines())
    return {hash_line(line) for line in stripped if len(line) >= 20}


def hash_line(line: str) -> int:
    """64 bits that are the same in every process."""
    return int.from_bytes(hashlib.blake2b(line.encode(), digest_size=8).digest())


def read_text(path: Path) -> str | None:
    """The text of a file, or None when there is none in UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def share(lines: set[int], known: set[int] | frozenset[int]) -> float:
    """How much of `lines` is known, 0 to 1."""
    return len(lines & known) / len(lines) if lines else 0.0


def _entries(roots: Sequence[Path]) -> Iterator[tuple[str, str, str, list[str]]]:
    """(stdlib or package, path, sha256, the texts found at that path) of each file that is named."""
    listed = (resources.files("dg_lsp.engine") / "embedded" / "heldout.json").read_text()
    for entry in json.loads(listed)["files"]:
        kind, _, path = entry["path"].partition(":")
        places = [Path(sysconfig.get_path("stdlib"))] if kind == "stdlib" else roots
        texts = [text for root in places if (text := read_text(root / path)) is not None]
        yield kind, path, entry["sha256"], texts
