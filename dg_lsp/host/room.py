"""The check that a checkpoint fits the free memory. Runs in the engine's process."""

from pathlib import Path

from dg_lsp.host.base import EngineError
from dg_lsp.host.client import running

_MARGIN = 1.15  # memory that a network needs, as a multiple of the size of its weights


def check(path: Path, device: str) -> None:
    """Refuse the checkpoint in `path` if `device` has not enough free memory for it.

    Raises:
        EngineError: there is too little; the message names the engines that hold memory.
    """
    # Whoever splits a network over devices has chosen how much goes where.
    if "+" in device:
        return
    needed = int(sum(file.stat().st_size for file in path.glob("*.safetensors")) * _MARGIN)
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
            return int(torch.cuda.mem_get_info()[0]), "the GPU"
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None, ""
    fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) << 10, "this machine"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
