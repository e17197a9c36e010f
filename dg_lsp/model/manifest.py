"""The manifest of a checkpoint: the sizes and hashes of its files, which are compared before anything is loaded.

A large file that matched is hashed again only after its size, time or inode changed. Knows files; knows no tensors.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dg_lsp.checkpoints import FETCH_AGAIN, MANIFEST, CheckpointError, cache_folder, read_file, read_json
from dg_lsp.files.records import read_record, write_record
from dg_lsp.files.writing import write_whole

JUDGE = "judge.json"
# The kinds of files that a checkpoint consists of: data, and no pickle.
LOADED = frozenset({".safetensors", ".json", ".txt", ".model", ".jinja"})
LARGE = 64 << 20  # bytes; smaller files are hashed each time


def verify(
    path: Path, large: int = LARGE, pins: Mapping[str, Any] | None = None, but: Collection[str] = ()
) -> str:
    """Compare the files of the checkpoint in `path` with its manifest.json; return the checkpoint's digest, hex.

    The digest is the sha256 of manifest.json, of config.json if there is no manifest, or of a checkpoint that is one
    file. Files of at least `large` bytes that matched are recorded in the user's cache folder. pins: the files of a
    lock file's entry; then there may be no other ones of the kinds that are loaded. but: names of files to leave out.

    Raises:
        CheckpointError: a file is missing, differs in size or sha256, or is none of `pins`.
    """
    if pins is not None and path.is_file():
        if path.name not in pins:
            raise CheckpointError(f"{path} is not in the lock file; {FETCH_AGAIN}")
        compare(path.parent, pins, large)
        return str(pins[path.name]["sha256"])
    if pins is not None:
        loaded = {file.name for file in path.iterdir() if file.suffix in LOADED}
        if foreign := sorted(loaded - {*pins}):
            raise CheckpointError(
                f"{path / foreign[0]} is not in the lock file, so it came from elsewhere; {FETCH_AGAIN}"
            )
        compare(path, {name: wanted for name, wanted in pins.items() if name not in but}, large)
    if path.is_file():
        return _sha256(path)
    manifest = path / MANIFEST
    if not manifest.exists():
        return hashlib.sha256(read_file(path / "config.json")).hexdigest()
    files = listed(path)
    compare(path, {name: wanted for name, wanted in files.items() if name not in but}, large)
    return hashlib.sha256(read_file(manifest)).hexdigest()


def listed(path: Path) -> dict[str, Any]:
    """The sizes and hashes of the files in `path` by their names, as its manifest has them; {} without one.

    Raises:
        CheckpointError: the manifest lists nothing.
    """
    manifest = path / MANIFEST
    if not manifest.exists():
        return {}
    files = read_json(manifest).get("files")
    if not isinstance(files, dict) or not files:
        raise CheckpointError(f"{manifest} lists no files; {FETCH_AGAIN}")
    return files


def write_manifest(path: Path, known: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Write the manifest of all files in `path`. known: those of files that need not be read."""
    files = dict(known)
    for file in sorted(path.iterdir()):
        if file.name not in known and file.name != MANIFEST:
            files[file.name] = entry_of(file)
    write_whole(path / MANIFEST, (json.dumps({"files": files}, indent=1) + "\n").encode("utf-8"))


def entry_of(file: Path) -> dict[str, Any]:
    """The size and the hash of `file`, as a manifest has them."""
    return {"sha256": _sha256(file), "bytes": file.stat().st_size}


def compare(path: Path, files: Mapping[str, Any], large: int = LARGE) -> None:
    """Raise CheckpointError for the first of `files` that differs from the one of that name in `path`."""
    # The files that matched before, with their marks.
    known = read_record(record_file())
    found: dict[str, list[Any]] = {}
    for name, wanted in files.items():
        if (
            Path(name).name != name
            or not isinstance(wanted, Mapping)
            or not {"bytes", "sha256"} <= wanted.keys()
        ):
            raise CheckpointError(
                f"the manifest of {path} has no size and hash of a file in it; {FETCH_AGAIN}"
            )
        file = path / name
        if not file.is_file():
            raise CheckpointError(f"{file} is missing; {FETCH_AGAIN}")
        stat = file.stat()
        if stat.st_size != wanted["bytes"]:
            sizes = f"{stat.st_size} bytes instead of {wanted['bytes']}"
            raise CheckpointError(f"{file} has {sizes}: it is cut short or foreign; {FETCH_AGAIN}")
        mark = [stat.st_size, stat.st_mtime_ns, stat.st_ino, wanted["sha256"]]
        if stat.st_size >= large:
            found[str(file.resolve())] = mark
            if known.get(str(file.resolve())) == mark:
                continue
        if _sha256(file) != wanted["sha256"]:
            raise CheckpointError(
                f"{file} does not match its sha256 in the manifest: it is damaged; {FETCH_AGAIN}"
            )
    if found and not found.items() <= known.items():
        write_record(record_file(), known | found)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def matrices_file(source: Path, made: str) -> Path:
    """Return the file that keeps the matrices of the file `source` as they are `made`; it need not exist."""
    return cache_folder() / "matrices" / f"{_digest(str(source.resolve()))}-{_digest(made)}.safetensors"


def kept_matrices_of(source: Path) -> list[Path]:
    """Return the files that keep matrices of the file `source`, however they were made."""
    file = matrices_file(source, "")
    return sorted(file.parent.glob(f"{file.name.partition('-')[0]}-*.safetensors"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def record_file() -> Path:
    """Return the path of the hashes that were found on this machine; it need not exist."""
    return cache_folder() / "verified.json"
