"""The memory and the cores that a model may use, in a container too. Runs in the engine's process.

Threads wait for each other at the end of each product of matrices, so they are quick only if all of them run at once:
beside one busy program on two cores, two threads take three times as long as one (docs/research/speed-and-memory.md).
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from dg_lsp.checkpoints import CheckpointError, network_in
from dg_lsp.engine.client import running
from dg_lsp.engine.runtime import LOADING, runtime_directory
from dg_lsp.filling.engine import EngineError

_LONGEST = 600.0  # seconds that a network may take to be loaded
_SHARE = 0.125  # of the machine's memory that a network in eight bits may take in place of four
MARGIN = 1.15  # memory that a network needs, as a multiple of the size of its weights
# Where control groups are mounted, and the file that names our own.
ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Seconds from one look to the next: the system counts a core's use in hundredths of a second.
_EVERY = 0.2
# Of a core: it counts as free if others use less of it. Two threads on two cores are still quicker than one then.
_LITTLE = 0.4


@contextmanager
def loading(progress: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Hold the lock of those who load, for the block: of two at once, each would count the free memory as its own.

    progress: called with a few words if somebody else loads just now. After _LONGEST seconds, or where no lock can be
    held, it loads without.
    """
    with ExitStack() as held:
        with suppress(EngineError, OSError):
            lock = FileLock(runtime_directory() / LOADING, thread_local=False)
            try:
                held.enter_context(lock.acquire(blocking=False))
            except Timeout:
                progress("waiting for another engine that loads")
                held.enter_context(lock.acquire(timeout=_LONGEST))
        yield


def check(path: Path, device: str, cache: int = 0, bits: int = 16) -> None:
    """Raise EngineError if `device` has too little free memory for the checkpoint in `path` and `cache` bytes."""
    # With a network split over devices the user has chosen how much goes where.
    if "+" in device:
        return
    required = needed(path, device, cache, bits)
    left, where = free(device)
    if required <= left:
        return
    held = [f"{s.checkpoint} (process {s.process}) holds {_gib(s.memory)}" for s in running()]
    other = f"; {', '.join(held)}: end one with dg-lsp engine stop --all" if held else ""
    raise EngineError(
        f"{path} needs {_gib(required)} and {where} has {_gib(left)} free{other}; "
        "name a smaller one with --checkpoint, or split it, such as with --device cuda+cpu:20 or cpu+disk:8"
    )


def bits_for(path: Path, device: str, bits: int) -> int:
    """Return the bits in which the checkpoint in `path` is loaded: `bits`, but 8 instead of 16 where that is faster.

    That is for a causal network of a GGUF file on a CPU that multiplies bytes, if it takes at most _SHARE of the memory
    of the machine, free or not, so that the same machine always gives the same texts.
    """
    from dg_lsp.model.networks import eight  # noqa: PLC0415  (it imports torch)

    path = network_in(path)
    if bits != 16 or _has_gpu(device) or not _is_causal_file(path) or not eight.multiplies_bytes():
        return bits
    return 8 if _size_of_file(path, 8) <= _SHARE * total() else bits


def needed(path: Path, device: str, cache: int = 0, bits: int = 16) -> int:
    """Return the bytes that the checkpoint in `path` takes on `device`, with `cache` bytes beside it."""
    from dg_lsp.model.networks import packed  # noqa: PLC0415  (it imports torch)

    path, bits = network_in(path), bits_for(path, device, bits)
    size = _size_of_file(path, bits) if path.is_file() else _size_of_folder(path, bits)
    copied = not _has_gpu(device) and size <= packed.MOST
    return int(size * (MARGIN + packed.SHARE * copied)) + cache


def _has_gpu(device: str) -> bool:
    """Return whether `device` is a GPU, or takes the one that is there."""
    import torch  # noqa: PLC0415  (only an engine that is about to load comes here)

    return device != "cpu" and (device != "auto" or torch.cuda.is_available())


def _size_of_file(path: Path, bits: int) -> int:
    """Return the bytes that the network in the GGUF file `path` takes once it is loaded."""
    from dg_lsp.model.networks import gguf_file, gguf_gemma  # noqa: PLC0415

    if not _is_causal_file(path):
        with suppress(CheckpointError):  # a damaged file is refused where it is loaded
            return gguf_gemma.loaded_size(gguf_file.read_gguf(path), bits)
    # Some blocks need more bits once they are loaded; the table of tokens stays in the file.
    return path.stat().st_size * (13 if bits == 8 else 9) // 8


def _is_causal_file(path: Path) -> bool:
    """Return whether `path` is a GGUF file of another network than DiffusionGemma."""
    from dg_lsp.model.networks import gguf_file, gguf_gemma  # noqa: PLC0415

    return path.is_file() and gguf_file.architecture_of(path) != gguf_gemma.KIND


def _size_of_folder(path: Path, bits: int) -> int:
    """Return the bytes that the network in the safetensors files of `path` takes once it is loaded."""
    from safetensors import SafetensorError  # noqa: PLC0415

    from dg_lsp.model.networks import compressed, packing, streaming  # noqa: PLC0415

    with suppress(CheckpointError, SafetensorError):  # a damaged file is refused where it is loaded
        if compressed.is_compressed(path):
            return compressed.loaded_size(path, bits)
        if bits < 16 and not packing.is_packed(path):
            return streaming.quantised_size(path, bits)
    return sum(file.stat().st_size for file in path.glob("*.safetensors"))


def free(device: str) -> tuple[int, str]:
    """Return the free bytes of `device`, where it spreads those of all cards and the machine, and their place."""
    if device != "cpu":
        import torch  # noqa: PLC0415  (only an engine that is about to load comes here)

        from dg_lsp.model.networks.loading import SPREAD  # noqa: PLC0415

        if torch.cuda.is_available():
            if device in SPREAD:
                cards = sum(torch.cuda.mem_get_info(card)[0] for card in range(torch.cuda.device_count()))
                return cards + free("cpu")[0], "this machine with its GPUs"
            chosen = device if device.startswith("cuda:") else None
            return int(torch.cuda.mem_get_info(chosen)[0]), f"the GPU {chosen or ''}".strip()
    machine, container = psutil.virtual_memory().available, of_cgroup()
    if container is not None and container < machine:
        return container, "this container"
    return machine, "this machine"


def total(root: Path = ROOT, own: Path = OWN) -> int:
    """Return the bytes of main memory that this process may use, free or not."""
    limits = [int(psutil.virtual_memory().total)]
    for folder in groups(root, own):
        with suppress(OSError, ValueError):
            limits.append(int((folder / "memory.max").read_text()))  # "max" is no limit
    return min(limits)


def of_cgroup(root: Path = ROOT, own: Path = OWN) -> int | None:
    """Return the bytes that this process's control group, or one around it, leaves free; None without a limit.

    The page in `groups`, "Memory Interface Files".
    """
    free = []
    for folder in groups(root, own):
        with suppress(OSError, ValueError, KeyError):
            most = int((folder / "memory.max").read_text())  # "max" is no limit
            used = int((folder / "memory.current").read_text())
            fields = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            # The kernel gives back what it keeps of files.
            free.append(most - used + int(fields["inactive_file"]))
    return max(min(free), 0) if free else None


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


class Cores:
    """The threads to be used now. Make it and ask it on the model thread.

    most: how many threads at most; 0 is half of the cores, but two where there are two.
    """

    def __init__(self, most: int = 0) -> None:
        cores = allowed()
        self._most = most or max(cores // 2, min(cores, 2))
        self._online = psutil.cpu_count() or cores
        self._looked, self._own = time.perf_counter(), time.process_time()
        psutil.cpu_percent()  # from here on it measures the time since the last call
        self._threads = min(self._most, max(cores // 2, 1))

    def threads(self) -> int:
        """Return how many threads to use now, from 1 to `most`; it looks again after _EVERY seconds."""
        now = time.perf_counter()
        seconds = now - self._looked
        if seconds >= _EVERY:
            own = time.process_time()
            others = psutil.cpu_percent() / 100 * self._online - (own - self._own) / seconds
            self._threads = min(max(int(self._online - others + _LITTLE), 1), self._most)
            self._looked, self._own = now, own
        return self._threads


def allowed(root: Path = ROOT, own: Path = OWN) -> int:
    """Return the number of cores that this process may use: the machine's, or fewer in a container or by affinity.

    The page in `groups`, "CPU Interface Files".
    """
    cores = float(os.cpu_count() or 1)
    if sys.platform == "linux":
        with suppress(OSError):
            cores = len(os.sched_getaffinity(0))
    for group in groups(root, own):
        with suppress(OSError, ValueError):
            quota, period = (group / "cpu.max").read_text().split()
            cores = min(cores, int(quota) / int(period))  # "max" is no limit
    return max(int(cores), 1)


def groups(root: Path = ROOT, own: Path = OWN) -> Iterator[Path]:
    """Yield the folders of this process's control group and of all around it, the innermost first.

    A container is limited by them: https://docs.kernel.org/admin-guide/cgroup-v2.html.
    """
    try:
        name = next(line[3:] for line in own.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return
    group = root / name.strip("/")
    for folder in (group, *group.parents):
        yield folder
        if folder == root:
            return
