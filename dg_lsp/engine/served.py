"""The description that a server of llama.cpp gives of itself, and the servers of this user at the usual ports.

Sends no text of a user; loads no model.
"""

import posixpath
from dataclasses import dataclass
from typing import Any

import httpx2
import psutil

from dg_lsp.settings import LLAMA

# That of llama-server, and the one that editors' plug-ins for it take.
PORTS = (8080, 8012)
_PATIENCE = 0.5  # seconds for the answer of a server on this machine


@dataclass(frozen=True, slots=True)
class Served:
    """A server's description of itself: its build of llama.cpp, and the file name of its model."""

    build: str
    model: str


def served_in(props: Any) -> Served:
    """Return the description in `props`, the JSON of a server's /props.

    Raises:
        LookupError, TypeError: it is not llama.cpp's.
    """
    return Served(str(props["build_info"]), posixpath.basename(str(props["model_path"])))


def servers() -> dict[str, Served]:
    """Return the servers of llama.cpp that this user runs at PORTS, by their addresses as the setting engine_url."""
    found = dict[str, Served]()
    for port in sorted(_listening() & {*PORTS}, key=PORTS.index):
        try:
            # Without `trust_env=False` a proxy from the environment would be asked.
            answer = httpx2.get(f"http://127.0.0.1:{port}/props", timeout=_PATIENCE, trust_env=False)
            found[f"{LLAMA}http://127.0.0.1:{port}"] = served_in(answer.json())
        except (httpx2.HTTPError, ValueError, LookupError, TypeError):
            continue  # another program
    return found


def _listening() -> set[int]:
    """Return the ports at which processes of this user listen: only those name their processes."""
    try:
        connections = psutil.net_connections("tcp4")
    except (psutil.Error, OSError):
        return set()  # as on macOS
    return {
        one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN and one.laddr and one.pid
    }
