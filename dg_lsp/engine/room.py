"""The check that a checkpoint fits the free memory. Runs in the engine's process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from dg_lsp.engine.cgroup import OWN, ROOT, groups
from dg_lsp.engine.client import running
from dg_lsp.engine.runtime import runtime_directory
from dg_lsp.filling.engine import EngineError

_LONGEST = 600.0  # seconds that a network may take to be loaded
MARGIN = 1.15  # memory that a network needs, as a multiple of the size of its weights


@contextmanager
def loading(progress: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Hold the lock of those who load, for the block: of two at once, each would count the free memory as its own.

    progress: called with a few words if somebody else loads just now. After _LONGEST seconds, or where no lock can be
    held, it goes on without.
    """
    with ExitStack() as held:
        with suppress(EngineError, OSError):
            lock = FileLock(runtime_directory() / "loading.lock", thread_local=False)
            try:
                held.enter_context(lock.acquire(blocking=False))
            except Timeout:
                progress("waiting for another engine that loads")
                held.enter_context(lock.acquire(timeout=_LONGEST))
        yield


def check(path: Path, device: str, cache: int = 0) -> None:
    """Refuse the checkpoint in `path` if `device` has not enough free memory for it and `cache` bytes beside it.

    Raises:
        EngineError: there is too little; the message names the engines that hold memory.
    """
    # Whoever splits a network over devices has chosen how much goes where.
    if "+" in device:
        return
    from dg_lsp.model.networks import packed  # noqa: PLC0415  (only an engine that is about to load comes here)

    size = sum(file.stat().st_size for file in path.glob("*.safetensors"))
    copied = device == "cpu" and size <= packed.MOST
    needed = int(size * (MARGIN + packed.SHARE * copied)) + cache
    free, where = _free(device)
    if free is None or needed <= free:
        return
    held = [f"{s.checkpoint} (process {s.process}) holds {_gib(s.memory)}" for s in running()]
    other = f"; {', '.join(held)}: end one with dg-lsp engine stop --all" if held else ""
    raise EngineError(
        f"{path} needs {_gib(needed)} and {where} has {_gib(free)} free{other}; "
        "name a smaller one with --checkpoint, or split it, such as with --device cuda+cpu:20 or cpu+disk:8"
    )


def _free(device: str) -> tuple[int | None, str]:
    """The free bytes and the name of their place; None where the system does not tell."""
    if device != "cpu":
        import torch  # noqa: PLC0415  (only an engine that is about to load comes here)

        if torch.cuda.is_available():
            chosen = device if device.startswith("cuda:") else None
            return int(torch.cuda.mem_get_info(chosen)[0]), "the GPU"
    places = [
        (free, name)
        for free, name in ((_of_machine(), "this machine"), (of_cgroup(), "this container"))
        if free
    ]
    return min(places) if places else (None, "")


def _of_machine() -> int | None:
    """The free bytes of the machine; None where it does not tell."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) << 10


def of_cgroup(root: Path = ROOT, own: Path = OWN) -> int | None:
    """The bytes that this process's control group, or one that holds it, leaves free; None without a limit.

    The same page as in `cgroup`, "Memory Interface Files".
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
