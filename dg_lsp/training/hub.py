"""Checkpoints of the hub: downloaded at one commit, verified by the hub's hashes, and pinned in the lock file.

The only module that connects to the hub, and only `dg-lsp fetch` calls it. It loads none of the files.
"""

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from dg_lsp.checkpoints import Pin, lock_file, pinned
from dg_lsp.files.writing import write_whole
from dg_lsp.model.manifest import LOADED
from dg_lsp.training.fetching import PIECE, FetchError, Progress, check_room

if TYPE_CHECKING:
    from huggingface_hub import RepoFile

_WAIT = 5.0  # seconds for the first answer of a hub that may be out of reach


def fetch_from_hub(name: str, revision: str | None, file: str | None, progress: Progress) -> Path:
    """Download the checkpoint `name` (OWNER/NAME) into the hub client's cache, and pin it; its folder or GGUF file.

    revision: a branch, a tag or a commit; None for the newest. file: the path of the only file with weights that is
    wanted; None for all safetensors files at the top.
    """
    lock_file().parent.mkdir(parents=True, exist_ok=True)
    try:
        # One fetch at a time.
        with FileLock(lock_file().with_suffix(".lock"), timeout=0):
            pin = _downloaded(name, revision, file, progress)
            # Write the commit and all hashes to the lock file; where anything fails it stays as it was.
            _pin(name, pin)
    except Timeout as error:
        raise FetchError(
            "another dg-lsp is fetching from the hub; wait until that one has finished"
        ) from error
    except FetchError:
        raise
    except Exception as error:  # also whatever the HTTP client of the hub's library raises
        at, kind = f" at {revision}" if revision else "", type(error).__name__
        advice = "check the connection" if _is_unreachable(error) else "check the name and your access"
        raise FetchError(f"the hub does not give {name}{at} ({kind}); {advice}") from error
    return Path(pin.folder)


def _downloaded(name: str, revision: str | None, file: str | None, progress: Progress) -> Pin:
    """The entry of the lock file for the checkpoint `name`, once its files are here and compared."""
    # Slow to import, and it reads its environment when it is imported.
    from huggingface_hub import HfApi, RepoFile, constants, snapshot_download  # noqa: PLC0415

    # Ask which commit that is, and for the files that are data.
    hub = HfApi()
    commit = hub.model_info(name, revision=revision).sha
    assert commit, "a repository of the hub has a commit"
    tree = hub.list_repo_tree(name, revision=commit, recursive=file is not None)
    wanted = _wanted(name, [f for f in tree if isinstance(f, RepoFile)], file)
    size = sum(file.size for file in wanted)
    progress(f"fetching {name} at {commit} ({len(wanted)} files, {size / 1e9:.2f} GB)")
    # Download them, or the rest of an earlier fetch.
    cache = Path(constants.HF_HUB_CACHE)
    cache.mkdir(parents=True, exist_ok=True)
    check_room(cache, size - _begun(cache, name))
    patterns = [file.path.replace("[", "[[]") for file in wanted]
    top = Path(snapshot_download(name, revision=commit, allow_patterns=patterns)).absolute()
    # Compare each with the hash that the hub has of it.
    progress("comparing the files with their hashes")
    files = {Path(listed.path).name: _compared(top / listed.path, listed) for listed in wanted}
    network = top if file is None else top / file
    folder = network.parent if network.suffix == ".safetensors" else network
    return Pin(commit, str(folder), files)


def download(repository: str, file: str, to: Path) -> None:
    """Download one file of a repository to `to`, continuing an earlier download; the caller checks its hash."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url  # noqa: PLC0415
    from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415 - the caller shows its own

    disable_progress_bars()
    begun = to.with_name("hub")
    try:
        get_hf_file_metadata(hf_hub_url(repository, file), timeout=_WAIT)
        Path(hf_hub_download(repository, file, local_dir=begun)).replace(to)
    except Exception as error:  # also whatever the HTTP client of the hub's library raises
        raise FetchError(f"the hub does not give {repository} ({type(error).__name__})") from error
    shutil.rmtree(begun)


def _is_unreachable(error: BaseException | None) -> bool:
    """Return whether `error`, or an error that caused it, means that the hub did not answer."""
    while error is not None:
        # An error of HTTP is an OSError, too; the hub's client has its own names for the others.
        if isinstance(error, ConnectionError | TimeoutError) or "Connect" in type(error).__name__:
            return True
        error = error.__cause__ or error.__context__
    return False


def _wanted(name: str, listed: "list[RepoFile]", file: str | None) -> "list[RepoFile]":
    """Choose of the files of a repository those that are data of a checkpoint, with the weights of `file` or all.

    No pickle is one.
    """
    weights = [f.path for f in listed if f.path.endswith((".safetensors", ".gguf"))]
    if file is not None and file not in weights:
        some = ", ".join(weights[:8]) or "none"
        raise FetchError(f"{name} has no file {file} with weights; it has {some}")
    if file is not None and file.endswith(".gguf"):
        return [f for f in listed if f.path == file]
    folder = Path(file or "").parent
    wanted = [f for f in listed if Path(f.path).parent == folder and Path(f.path).suffix in LOADED]
    if file is not None:
        # An index would ask for the other files.
        others = (".safetensors", ".index.json")
        wanted = [f for f in wanted if f.path == file or not f.path.endswith(others)]
    names = {Path(f.path).name for f in wanted}
    if "config.json" in names and any(name.endswith(".safetensors") for name in names):
        return wanted
    gguf = [path for path in weights if path.endswith(".gguf")]
    hint = f"name one of its files with --file, such as {gguf[0]}" if gguf else "nothing else is fetched"
    raise FetchError(f"{name} has no config.json with *.safetensors files beside it; {hint}")


def _begun(cache: Path, name: str) -> int:
    """Return the bytes of the repository `name` that the hub's client has in its `cache`."""
    blobs = cache / f"models--{name.replace('/', '--')}" / "blobs"
    return sum(path.stat().st_size for path in blobs.glob("*"))


def _compared(path: Path, listed: "RepoFile") -> dict[str, Any]:
    """The entry of the lock file for the file `path`, of which the hub has `listed` size and hash.

    The hub knows the sha256 of a large file, and of another one the hash that git has of it.
    """
    size = path.stat().st_size
    sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as stream:
        while piece := stream.read(PIECE):
            sha256.update(piece)
            if not listed.lfs:
                git.update(piece)
    wanted, found = (listed.lfs.sha256, sha256) if listed.lfs else (listed.blob_id, git)
    if size != listed.size or found.hexdigest() != wanted:
        # It is kept as a link to the file itself, and would be found there the next time.
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise FetchError(f"{path.name} is not what the hub says it is, and was removed; try again")
    return {"bytes": size, "sha256": sha256.hexdigest()}


def _pin(name: str, entry: Pin) -> None:
    """Put `entry` into the lock file."""
    file = lock_file()
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        entries = {}
    entries = entries if isinstance(entries, dict) else {}
    write_whole(file, json.dumps(entries | {name: asdict(entry)}, indent=1, sort_keys=True).encode("ascii"))
    assert pinned(name) == entry, "the lock file is read as it was written"
