"""The manifest of a checkpoint: sizes and hashes of its files, compared before anything is loaded.

A large file that was found right is not read again until its size or its time changes. Knows files; no tensors.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dg_lsp.engine.load.weights import AGAIN, CheckpointError

ABOUT, MANIFEST = "dg_lsp.json", "manifest.json"
_LARGE = 64 << 20  # bytes; what is smaller is read in the blink of an eye


def verify(path: Path, large: int = _LARGE) -> str:
    """Compare each file of the checkpoint in `path` with `manifest.json`, where there is one; return its digest, hex.

    Files from `large` bytes on are remembered in the user's cache folder once they were right.

    Raises:
        CheckpointError: a file is missing, or differs in size or sha256.
    """
    manifest = path / MANIFEST
    if not manifest.exists():
        return hashlib.sha256((path / "config.json").read_bytes()).hexdigest()
    files = read_json(manifest).get("files")
    if not isinstance(files, dict) or not files:
        raise CheckpointError(f"{manifest} lists no files; {AGAIN}")
    known = _remembered()
    found: dict[str, list[Any]] = {}
    for name, wanted in files.items():
        file = path / name
        if not file.is_file():
            raise CheckpointError(f"{file} is missing; {AGAIN}")
        told = file.stat()
        if told.st_size != wanted["bytes"]:
            sizes = f"{told.st_size} bytes instead of {wanted['bytes']}"
            raise CheckpointError(f"{file} has {sizes}: it is cut short or foreign; {AGAIN}")
        mark = [told.st_size, told.st_mtime_ns, told.st_ino, wanted["sha256"]]
        if told.st_size >= large:
            found[str(file.resolve())] = mark
            if known.get(str(file.resolve())) == mark:
                continue
        with file.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != wanted["sha256"]:
                raise CheckpointError(
                    f"{file} does not match its sha256 in the manifest: it is damaged; {AGAIN}"
                )
    if found and not found.items() <= known.items():
        _remember(known | found)
    return hashlib.sha256(manifest.read_bytes()).hexdigest()


def read_about(path: Path) -> dict[str, Any]:
    """What the checkpoint in `path` says in dg_lsp.json, the file of our own; {} where it has none.

    Raises:
        CheckpointError: the file is damaged.
    """
    about = path / ABOUT
    return read_json(about) if about.exists() else {}


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a checkpoint. Raises CheckpointError."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is no JSON file ({error}); {AGAIN}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds no JSON object; {AGAIN}")
    return value


def _memory(environment: Mapping[str, str] = os.environ) -> Path:
    root = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "dg-lsp" / "verified.json"


def _remembered() -> dict[str, Any]:
    """What was found right before; nothing where the memory is gone or is no JSON."""
    try:
        told = json.loads(_memory().read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    return told if isinstance(told, dict) else {}


def _remember(found: Mapping[str, Any]) -> None:
    # Without a cache folder the files are read again the next time, and that is all.
    with suppress(OSError, RuntimeError):
        memory = _memory()
        memory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=memory.parent, delete=False, encoding="utf-8") as part:
            json.dump(found, part)
        Path(part.name).replace(memory)
