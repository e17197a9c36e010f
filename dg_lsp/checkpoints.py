"""Checkpoints by name: the folder, digest, description (dg_lsp.json), languages and prompt style of each.

Reads small files; loads no network.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import platformdirs

from dg_lsp.settings import AUTO, Settings, is_team, path_of

# The checkpoints that have a name of their own; AUTO is SMALL where it has been fetched and is fast enough.
EMBEDDED, SMALL = "embedded", "small"
# Seconds that ghost text with SMALL may take while one types in a file where AUTO takes it.
FAST_ENOUGH = 2.0
FETCHED = "fetched.json"  # in the folder of SMALL: how fast it is on this machine
ABOUT, MANIFEST = "dg_lsp.json", "manifest.json"
FETCH_AGAIN = "fetch the checkpoint again, or name another with --checkpoint"
# A folder of this shape is written ./OWNER/NAME, so that none of a workspace is ever taken for a checkpoint of the hub.
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


class CheckpointError(Exception):
    """The checkpoint cannot be used; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Pin:
    """An entry of the lock file. commit: 40 hex digits. files: the `bytes` and `sha256` of each file by its name."""

    commit: str
    folder: str
    files: Mapping[str, Any]


def resolve(settings: Settings) -> Settings:
    """Return `settings` with the checkpoint that AUTO means on this machine."""
    return replace(settings, checkpoint=named(settings.checkpoint))


def named(checkpoint: str) -> str:
    """Return `checkpoint`, or the name that AUTO means on this machine."""
    if checkpoint != AUTO:
        return checkpoint
    try:
        measured = json.loads((_data() / SMALL / FETCHED).read_text(encoding="utf-8"))["seconds"]
        return SMALL if float(measured) <= FAST_ENOUGH else EMBEDDED
    except (OSError, ValueError, LookupError, TypeError):
        return EMBEDDED


def folder_of(checkpoint: str) -> Path:
    """Return the folder of `checkpoint`, an absolute path; it need not exist."""
    name = named(checkpoint)
    if name == EMBEDDED:
        return Path(__file__).parent / "model" / "embedded"
    if name == SMALL:
        return _data() / SMALL
    if is_hub_name(name):
        pin = pinned(name)
        return Path(pin.folder) if pin else _data() / "not fetched" / name
    return path_of(name)


def is_hub_name(checkpoint: str) -> bool:
    """Tell whether `checkpoint` names a repository of the hub, OWNER/NAME."""
    return _HUB_NAME.fullmatch(checkpoint) is not None


def lock_file() -> Path:
    """Return the path of the lock file, which pins the commit and the files of each checkpoint fetched from the hub."""
    return _data() / "hub.lock.json"


def pinned(checkpoint: str) -> Pin | None:
    """Return the lock file's entry for the hub name `checkpoint`; None if it was not fetched, or for any other name."""
    if not is_hub_name(checkpoint):
        return None
    try:
        entry = json.loads(lock_file().read_text(encoding="utf-8"))[checkpoint]
        return Pin(str(entry["commit"]), str(entry["folder"]), dict(entry["files"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def digest_of(checkpoint: str) -> str:
    """Return a sha256, hex, that identifies a checkpoint without reading its weights.

    It is the hash of manifest.json if there is one, so that copies of a checkpoint count as the same; else of
    config.json with the sizes and times of the weights; else, for a hub name, of the name.
    """
    path = folder_of(checkpoint)
    try:
        if (path / MANIFEST).is_file():
            identity = (path / MANIFEST).read_bytes()
        elif (path / "config.json").is_file():
            weights = ((f.name, f.stat()) for f in sorted(path.glob("*.safetensors")))
            sizes = [(name, s.st_size, s.st_mtime_ns) for name, s in weights]
            identity = (path / "config.json").read_bytes() + repr(sizes).encode()
        else:
            identity = checkpoint.encode("utf-8", "surrogateescape")
    except OSError:
        identity = checkpoint.encode("utf-8", "surrogateescape")
    return hashlib.sha256(identity).hexdigest()


def languages_of(checkpoint: str) -> tuple[str, ...]:
    """Return the languages that a checkpoint was trained on; () if its dg_lsp.json names none: all of them."""
    languages = _about(checkpoint).get("languages")
    return tuple(str(name) for name in languages) if isinstance(languages, list) else ()


def answers_in_chat(checkpoint: str) -> bool:
    """Tell whether a checkpoint is prompted as a chat; the released one, which has no dg_lsp.json, is."""
    return bool(_about(checkpoint).get("prompt", "chat") == "chat")


def definitions_for(settings: Settings) -> int:
    """Return how many bytes of definitions go with a request: none to a model that would not read them.

    The model of a team's server is not known here, so it is sent them; one that does not read them drops them.
    """
    wanted = is_team(settings.engine_url) or answers_in_chat(settings.checkpoint)
    return settings.definition_bytes if wanted else 0


def better_than(checkpoint: str) -> str:
    """Say in a sentence how to get better fills than those of `checkpoint`; empty where it is not embedded."""
    if checkpoint != EMBEDDED:
        return ""
    if (folder_of(SMALL) / FETCHED).exists():
        return f"{SMALL} writes better and is here, but slow on this machine: --checkpoint {SMALL} uses it"
    return f"dg-lsp fetch {SMALL} gets a checkpoint that writes better, and not Python only (93 MB)"


def read_about(folder: Path) -> dict[str, Any]:
    """Read the description in the dg_lsp.json of `folder`; {} if there is none.

    Raises:
        CheckpointError: the file is not a JSON object.
    """
    about = folder / ABOUT
    return read_json(about) if about.exists() else {}


def read_json(path: Path) -> dict[str, Any]:
    """Read the object in the JSON file `path` of a checkpoint.

    Raises:
        CheckpointError: the file cannot be read, or holds something else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is no JSON file ({error}); {FETCH_AGAIN}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds no JSON object; {FETCH_AGAIN}")
    return value


def _about(checkpoint: str) -> dict[str, Any]:
    """Read the description of `checkpoint`; {} where it cannot be read, as loading it will say so."""
    try:
        return read_about(folder_of(checkpoint))
    except (CheckpointError, OSError):
        return {}


def _data() -> Path:
    return platformdirs.user_data_path("dg-lsp", appauthor=False)
