"""The corpus of the embedded checkpoint: Python files of the standard library and of installed packages.

Of packages with permissive licences, without held-out files, near copies and files that nobody wrote by hand.
"""

import re
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from benchmarks.embedded.heldout import HeldOut, held_out_files, is_held_out, long_lines, read_held_out, share
from benchmarks.embedded.tokenizer import train_tokenizer
from dg_lsp.training.corpus import (
    REFUSED,
    SKIPPED,
    File,
    Source,
    gather_folder,
    hash_line,
    is_code,
    read_text,
    tokenise,
    write_corpus,
)

_PERMISSIVE = re.compile(
    r"MIT|BSD|APACHE|ASL 2|ISC|PSF|PYTHON SOFTWARE|ZLIB|CC0|CNRI|UNLICENSE|PUBLIC DOMAIN|BSL-1|LLVM",
    re.IGNORECASE,
)
_OVERLAP_SEEN = 0.5  # share of a file's long lines that earlier files may hold
_SHARE = 1_500_000  # bytes of a source that count in a pass


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


def prepare(
    out: Path,
    roots: Sequence[Path],
    known: Tokenizer | None = None,
    folders: Sequence[tuple[str, Path]] = (),
) -> None:
    """Write the corpus, its sources, the tokenizer and, if held-out files are installed, heldout.npz to `out`.

    known: the tokenizer to use; without it one is trained. folders: languages, and folders with files in them.
    """
    files, sources = gather(roots, read_held_out(roots))
    for more, source in (gather_folder(*folder) for folder in folders):
        files, sources = files + more, [*sources, *([source] if more else [])]
    tokenizer = known or train_tokenizer(file.text for file in files)
    if kept := held_out_files(roots):
        size = sum(len(file.text) for file in kept)
        tokenise(kept, [Source("held out", "", "", len(kept), size, size)], tokenizer).save(
            out / "heldout.npz"
        )
    write_corpus(out, files, sources, tokenizer)


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
    return text if _PERMISSIVE.search(text) and not REFUSED.search(text) else ""


def _wanted(paths: Iterable[str]) -> list[str]:
    """The Python files among `paths` that are in none of the SKIPPED folders, sorted."""
    return sorted(
        p for p in paths if p.endswith(".py") and SKIPPED.isdisjoint(p.split("/")) and ".." not in p
    )


def _shuffled(paths: list[str]) -> list[str]:
    """`paths` in an order that is the same on every machine but mixes the folders, so that a limit takes from all."""
    return sorted(paths, key=hash_line)
