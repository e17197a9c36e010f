"""Checkpoints by name: the folder, digest, description (dg_lsp.json), languages and prompt style of each.

Reads small files; loads no network.
"""

import hashlib
import json
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import platformdirs

from dg_lsp.settings import AUTO, Settings, UsageError, is_team, path_of

EMBEDDED, SMALL, CODER, CODER_LITTLE = "embedded", "small", "coder", "coder-0.5b"
# Seconds that a line may take while one types in a file where AUTO takes the checkpoint.
FAST_ENOUGH = 2.0
_CROWDED = 1.5  # times the cores that want to run on a machine where an engine is not alone
FETCHED = "fetched.json"  # in the folder of a fetched checkpoint: what was measured with it on this machine
PICKED = "picked.txt"  # in the data folder: the checkpoint that was picked in the model menu, which AUTO then means
ABOUT, MANIFEST = "dg_lsp.json", "manifest.json"
_SMALL = 1 << 26  # bytes of a file that is read whole
FETCH_AGAIN = "fetch the checkpoint again, or name another with --checkpoint"
# A folder of this shape is written ./OWNER/NAME, so that none of a workspace is ever taken for a checkpoint of the hub.
_ADDRESS = re.compile(r"https?://[^/]+/([\w.-]+/[\w.-]+)", re.ASCII)  # of a repository's page
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


class CheckpointError(UsageError):
    """The checkpoint cannot be used; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Pin:
    """An entry of the lock file. commit: 40 hex digits. files: the `bytes` and `sha256` of each file by its name."""

    commit: str
    folder: str
    files: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Offered:
    """A checkpoint that `dg-lsp fetch` gets by a name of its own.

    download: bytes. memory: bytes that an engine with it needs. seconds: what a line takes on the two cores of
    `REFERENCE`, for an estimate. words: a few, about the network.
    """

    download: int
    memory: int
    seconds: float
    words: str


AFTER = "the text after the gap"  # what some models read, too, in words for the model menu
REFERENCE = "two server cores"  # with AVX-512
# The best first; EMBEDDED, which is in the package, follows them. The seconds of CODER are scaled, not measured.
OFFERED = {
    CODER: Offered(1_117_000_000, 1_900_000_000, 1.8, "1.5 billion parameters"),
    CODER_LITTLE: Offered(491_000_000, 1_200_000_000, 0.8, "0.5 billion parameters"),
    SMALL: Offered(93_000_000, 1_100_000_000, 0.7, "135 million parameters"),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement of a checkpoint on this machine: seconds of a line, bytes of memory that loading it needs."""

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The checkpoint that AUTO means, and the reasons in words."""

    name: str
    why: str


def choose(free: Callable[[str], int] = lambda _: sys.maxsize) -> Choice:
    """Choose what AUTO means: the best checkpoint that was fetched, is fast enough here and fits the free memory.

    If none of those that fit is fast enough, it is the quickest of them: EMBEDDED is a demonstration, and comes only if
    there is no other. The one that was picked in the model menu comes first, however slow it is. free: returns the
    bytes of memory that are free for the checkpoint of a name.
    """
    passed, slow, pick = list[str](), list[tuple[float, str]](), picked()
    if pick and pick not in OFFERED and folder_of(pick).exists():
        return Choice(pick, "it was picked in the model menu")
    for name in sorted(OFFERED, key=lambda name: name != pick):
        offered, found = OFFERED[name], measured(name)
        if found is None:
            continue
        memory = found.memory or offered.memory
        if too_large := too_large_for(memory, free(name)):
            passed.append(f"{name} {too_large}")
        elif found.seconds > FAST_ENOUGH and name != pick:
            slow.append((found.seconds, name))
            passed.append(f"{name} takes {found.seconds:.1f} s for a line here")
        else:
            return Choice(name, "; ".join([f"it takes {found.seconds:.1f} s for a line here", *passed]))
    if slow:
        return Choice(
            min(slow, key=lambda one: one[0])[1], f"the quickest of those that fit; {'; '.join(passed)}"
        )
    return Choice(EMBEDDED, "; ".join(passed) or "no other checkpoint has been fetched")


def too_large_for(memory: int, free: int) -> str:
    """Say how much of the `memory` that a checkpoint needs is free, in bytes, as a clause; empty if all of it is."""
    short = memory > free
    return f"needs {memory / 1e9:.1f} GB of memory, of which {free / 1e9:.1f} GB are free" if short else ""


def cores_are_held() -> bool:
    """Return whether so much has run in the last minute that an engine, which may use all cores, was not alone."""
    try:
        return os.getloadavg()[0] >= _CROWDED * (os.cpu_count() or 1)
    except OSError:
        return False


def advice_if_slow(checkpoint: str, seconds: float) -> str:
    """Return what to do if `checkpoint`, "" if it is unknown, usually takes `seconds` for ghost text, as a clause.

    Other programs are named if it was measured to be quicker here and the cores are held.
    """
    alone = measured(checkpoint) if checkpoint in OFFERED else None
    begin = ""
    if alone and alone.seconds < seconds and cores_are_held():
        begin = f"{checkpoint} alone takes {alone.seconds:.1f} s, so other programs keep this machine busy; "
    names = [*OFFERED]
    smaller = names[names.index(checkpoint) + 1 :] if checkpoint in names else []
    here = [(name, found.seconds) for name in smaller if (found := measured(name))]
    if quicker := [(name, taken) for name, taken in here if alone is None or taken < alone.seconds]:
        name, taken = quicker[0]
        return f"{begin}take {name}, which is here and takes {taken:.1f} s, in the model menu or as the checkpoint"
    if smaller and not here:
        return f"{begin}fetch a smaller checkpoint (dg-lsp fetch {smaller[0]})"
    return f"{begin}set the effort or prefixBytes lower, or run the model on a GPU"


def picked() -> str:
    """Return the checkpoint that was picked in the model menu; empty if none was."""
    try:
        return (data_folder() / PICKED).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def pick(name: str) -> None:
    """Let AUTO mean the checkpoint `name` from now on; where it means that anyway, better ones may replace it later."""
    file = data_folder() / PICKED
    file.unlink(missing_ok=True)
    if choose().name != name:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name + "\n", encoding="utf-8")


def measured(name: str) -> Measured | None:
    """Return what was measured with the fetched checkpoint `name`; None if it was not fetched or not measured."""
    try:
        found = read_json(data_folder() / name / FETCHED)
        seconds, memory = float(found["seconds"]), int(found.get("memory", 0))
    except (ValueError, LookupError, TypeError, OverflowError):
        return None
    return Measured(seconds, memory) if math.isfinite(seconds) and min(seconds, memory) >= 0 else None


def note_measured(name: str, found: Measured) -> None:
    """Write down what was measured with the fetched checkpoint `name`, for `choose`."""
    text = json.dumps({"seconds": round(found.seconds, 2), "memory": found.memory})
    (data_folder() / name / FETCHED).write_text(text + "\n", encoding="utf-8")


def named(checkpoint: str) -> str:
    """Return `checkpoint`, or the name that AUTO means on this machine, however much memory is free."""
    return choose().name if checkpoint == AUTO else checkpoint


def folder_of(checkpoint: str) -> Path:
    """Return the folder of `checkpoint`, an absolute path; it need not exist."""
    name = named(checkpoint)
    if name == EMBEDDED:
        return Path(__file__).parent / "model" / "embedded"
    if name in OFFERED:
        return data_folder() / name
    if is_hub_name(name):
        pin = pinned(name)
        return Path(pin.folder) if pin else data_folder() / "not fetched" / name
    return path_of(name)


def located(checkpoint: str) -> str:
    """Return `checkpoint` for a process in another folder: a path from the root, `/home/ann/net.gguf` for `./net.gguf`.

    Our own names and the hub's stay as they are: they are no folders of here.
    """
    name = named(checkpoint)
    if name in (EMBEDDED, *OFFERED) or is_hub_name(name):
        return name
    path = folder_of(name)
    try:
        return str(path) if path.exists() or "/" in name else name
    except OSError:
        return name


def find_directory(name: str) -> Path:
    """Return the folder or GGUF file of the checkpoint `name`, which is on this machine already: nothing is fetched.

    Raises:
        CheckpointError: there is no such checkpoint; the message says how to get it.
    """
    path, name = folder_of(name), named(name)
    try:
        if (path / "config.json").exists() or (
            network_in(path).suffix == ".gguf" and network_in(path).is_file()
        ):
            return path
    except OSError as error:  # such as a name that is too long
        raise CheckpointError(f"{path} cannot be read ({error.strerror}); name another checkpoint") from error
    if name == EMBEDDED:
        raise CheckpointError("this installation has no embedded checkpoint; reinstall dg-lsp")
    if name in OFFERED or is_hub_name(name):
        here = f"; for the folder of that name write ./{name}" if Path(name).is_dir() else ""
        raise CheckpointError(f"the checkpoint {name} is not here; run dg-lsp fetch {name}{here}")
    if path.is_dir():
        raise CheckpointError(f"{path} has no config.json, so it is no checkpoint; name its directory")
    raise CheckpointError(
        f"no checkpoint {name!r}: it is neither a folder, nor a GGUF file, nor a hub name (OWNER/NAME), nor one of "
        f"{', '.join(OFFERED)} and {EMBEDDED}{similar_to(name)}"
    )


def similar_to(name: str) -> str:
    """Return "; did you mean NAME?" for a checkpoint's name spelled like `name`, or in the address `name`; else ""."""
    if address := _ADDRESS.match(name):
        return f"; did you mean {address[1]}?"
    near = get_close_matches(name.lower(), [*OFFERED, EMBEDDED], 1)
    return f"; did you mean {near[0]}?" if near else ""


def network_in(path: Path) -> Path:
    """Return the file of the network in a checkpoint's folder `path` if it is one GGUF file; else `path` itself."""
    files = [] if (path / "config.json").exists() else sorted(path.glob("*.gguf"))
    return files[0] if len(files) == 1 else path


def is_hub_name(checkpoint: str) -> bool:
    """Return whether `checkpoint` names a repository of the hub, OWNER/NAME."""
    return _HUB_NAME.fullmatch(checkpoint) is not None


def data_folder() -> Path:
    """Return the folder of this user's checkpoints; it need not exist."""
    return platformdirs.user_data_path("dg-lsp", appauthor=False)


def cache_folder() -> Path:
    """Return the folder of what this user's checkpoints need and can be made again; it need not exist."""
    return platformdirs.user_cache_path("dg-lsp", appauthor=False)


def lock_file() -> Path:
    """Return the path of the lock file, which pins the commit and the files of each checkpoint fetched from the hub."""
    return data_folder() / "hub.lock.json"


def pinned(checkpoint: str) -> Pin | None:
    """Return the lock file's entry for the hub name `checkpoint`; None if it was not fetched, or for any other name."""
    if not is_hub_name(checkpoint):
        return None
    try:
        entry = _locked()[checkpoint]
        return Pin(str(entry["commit"]), str(entry["folder"]), dict(entry["files"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def fetched_from_hub() -> tuple[str, ...]:
    """Return the names in the lock file."""
    try:
        return tuple(filter(is_hub_name, _locked()))
    except (OSError, ValueError, TypeError):
        return ()


def digest_of(checkpoint: str) -> str:
    """Return a sha256, hex, that identifies a checkpoint without reading its weights.

    It is the hash of manifest.json if there is one, so that copies of a checkpoint count as the same; else of
    config.json with the sizes and times of the weights, or of a GGUF file's name, size and time; else, for a hub name,
    of the name.
    """
    path = folder_of(checkpoint)
    try:
        network = network_in(path)
        if (path / MANIFEST).is_file():
            identity = read_file(path / MANIFEST)
        elif (path / "config.json").is_file():
            weights = ((f.name, f.stat()) for f in sorted(path.glob("*.safetensors")))
            sizes = [(name, s.st_size, s.st_mtime_ns) for name, s in weights]
            identity = read_file(path / "config.json") + repr(sizes).encode()
        elif network.is_file():
            found = network.stat()
            identity = repr((network.name, found.st_size, found.st_mtime_ns)).encode(
                "utf-8", "surrogateescape"
            )
        else:
            identity = checkpoint.encode("utf-8", "surrogateescape")
    except (OSError, CheckpointError):
        identity = checkpoint.encode("utf-8", "surrogateescape")
    return hashlib.sha256(identity).hexdigest()


def languages_of(checkpoint: str) -> tuple[str, ...]:
    """Return the languages that a checkpoint was trained on; () if its dg_lsp.json names none: all of them."""
    languages = _about(checkpoint).get("languages")
    return tuple(str(name) for name in languages) if isinstance(languages, list) else ()


def abilities_of(checkpoint: str) -> tuple[str, ...]:
    """Return what a checkpoint can do, in words for the model menu; of one that is not here, if it is in OFFERED."""
    found = ["lines", "bodies", "holes"]
    found += ["rewriting a selection"] if checkpoint not in OFFERED and denoises(checkpoint) else []
    found += [AFTER] if prompt_of(checkpoint) != "raw" else []
    known = languages_of(checkpoint)
    return (*found, *([f"{' and '.join(map(str.capitalize, known))} only"] if known else []))


def denoises(checkpoint: str) -> bool:
    """Return whether a checkpoint can denoise, and so rewrite text; True if its files do not say, as for a team's."""
    try:
        folder = folder_of(checkpoint)
        config = read_json(folder / "config.json") if (folder / "config.json").exists() else {}
        return bool(
            read_about(folder).get("denoises", "diffusion" in str(config.get("model_type", "diffusion")))
        )
    except (CheckpointError, OSError):
        return True


def prompt_of(checkpoint: str) -> str:
    """Return the prompt style of a checkpoint: `raw`, `fim` or `chat`, that of the released one without a dg_lsp.json.

    A checkpoint that names no languages was trained on all of them, but a `raw` one on a few only.
    """
    known = "chat" if checkpoint not in OFFERED else "raw" if checkpoint == SMALL else "fim"
    return str(_about(checkpoint).get("prompt", known))


def definitions_for(settings: Settings) -> int:
    """Return how many bytes of definitions go with a request: none to a model that would not read them.

    The model of a team's server is not known here, so it is sent them; one that does not read them drops them.
    """
    wanted = is_team(settings.engine_url) or prompt_of(settings.checkpoint) == "chat"
    return settings.definition_bytes if wanted else 0


def sees_both_sides(settings: Settings) -> bool:
    """Return whether texts are written by a local checkpoint that reads the text after the gap, too."""
    return not settings.engine_url and prompt_of(settings.checkpoint) == "fim"


def better_than(
    checkpoint: str, free: Callable[[str], int] = lambda _: sys.maxsize, speed: float = 1.0
) -> str:
    """Say in a sentence how to get better fills than those of `checkpoint`; empty if nothing better fits this machine.

    free: see `choose`. speed: of this machine, as a multiple of the speed of REFERENCE.
    """
    names = [*OFFERED, EMBEDDED]
    better = names[: names.index(checkpoint)] if checkpoint in names else []
    known = {name: measured(name) for name in better}
    fitting = {
        name: found
        for name, found in known.items()
        if free(name) >= ((found and found.memory) or OFFERED[name].memory)
    }
    # The best comes first; one that is here, before one that is to be downloaded.
    here = [name for name in fitting if folder_of(name).is_dir()]
    for name in here:
        found = fitting[name]
        if found is None:
            return f"{name} writes better and is here: dg-lsp doctor measures whether it is fast enough"
        if found.seconds <= FAST_ENOUGH:
            return f"{name} writes better and is here: --checkpoint {name} uses it"
    for name in fitting:
        offered = OFFERED[name]
        if name not in here and offered.seconds / speed <= FAST_ENOUGH:
            size = f"{offered.download / 1e6:.0f} MB to download, {offered.memory / 1e9:.1f} GB of memory"
            about = f"{offered.words}; {size}; about {offered.seconds / speed:.1f} s for a line"
            return f"dg-lsp fetch {name} gets a checkpoint that writes better ({about})"
    return f"{here[0]} writes better and is here, but slow: --checkpoint {here[0]} uses it" if here else ""


def read_about(folder: Path) -> dict[str, Any]:
    """Read the description in the dg_lsp.json of `folder`, as `read_json` does; {} if there is none."""
    about = folder / ABOUT
    return read_json(about) if about.exists() else {}


def read_json(path: Path) -> dict[str, Any]:
    """Read the object in the JSON file `path` of a checkpoint; raise CheckpointError if it holds none."""
    try:
        value = json.loads(read_file(path).decode("utf-8"))
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else error
        raise CheckpointError(f"{path} is no JSON file ({why}); {FETCH_AGAIN}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds no JSON object; {FETCH_AGAIN}")
    return value


def read_file(path: Path) -> bytes:
    """Read the small file `path` of a checkpoint; raise CheckpointError for what is no regular file, or a large one."""
    try:
        # A pipe would not be opened until somebody writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise CheckpointError(f"{path} is no regular file; {FETCH_AGAIN}")
            data = file.read(_SMALL + 1)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}); {FETCH_AGAIN}") from error
    if len(data) > _SMALL:
        raise CheckpointError(
            f"{path} has more than {_SMALL >> 20} MiB, which no such file has; {FETCH_AGAIN}"
        )
    return data


def _about(checkpoint: str) -> dict[str, Any]:
    """Read the description of `checkpoint`; {} where it cannot be read, as loading it will say so."""
    try:
        return read_about(folder_of(checkpoint))
    except (CheckpointError, OSError):
        return {}


def _locked() -> Any:
    """Read the lock file."""
    return read_json(lock_file())
