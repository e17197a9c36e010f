"""A whole fill, by the server and an engine with the embedded checkpoint, connects to nothing outside."""

import hashlib
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.checkpoints import folder_of, lock_file
from tests.server.wire import Wire, notification

TEXT = 'def add(a, b):\n    """Return the sum of a and b."""\n    raise NotImplementedError\n'


@pytest.fixture
def connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where processes that are started from now on write what they refused."""
    log = tmp_path / "connections"
    monkeypatch.setenv("CONNECTIONS", str(log))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "refusing"))
    return log


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('192.0.2.1', 80))",
        "import socket; socket.getaddrinfo('example.invalid', 80)",
        "import asyncio; asyncio.run(asyncio.open_connection('192.0.2.1', 443))",
    ],
)
def test_a_connection_to_the_outside_is_refused_and_noted(connections: Path, code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode and "outside of this machine" in done.stderr
    assert "refused" in connections.read_text()


def test_a_connection_within_the_machine_is_none_of_these(connections: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))"
        subprocess.run([sys.executable, "-c", code], check=True)
    assert "refused" not in connections.read_text()


@pytest.mark.slow
def test_a_fill_needs_nothing_from_outside(
    connections: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "embedded")
    result = filled()["result"]
    assert result["fill"]["milliseconds"] > 0 and (result["edit"] or result["why"])
    told = connections.read_text()
    assert "'--stdio'" in told and "'engine', 'run'" in told, "both processes must have been watched"
    assert "refused" not in told


@pytest.mark.slow
def test_a_checkpoint_of_the_hub_is_used_as_it_was_fetched_and_never_looked_for(
    connections: Path, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "owner/name")
    assert "is not here; run dg-lsp fetch owner/name" in filled()["error"]["message"]
    folder = folder_of("embedded")
    data = {f.name: f.read_bytes() for f in folder.iterdir() if f.suffix in (".json", ".safetensors", ".txt")}
    files = {name: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for name, d in data.items()}
    lock_file().parent.mkdir(parents=True)
    lock_file().write_text(
        json.dumps({"owner/name": {"commit": "c" * 40, "folder": str(folder), "files": files}})
    )
    assert filled()["result"]["fill"]["milliseconds"] > 0
    told = connections.read_text()
    assert told.count("'engine', 'run'") >= 2 and "refused" not in told


def filled() -> dict[str, Any]:
    """What `dg-lsp.fill` answers for the function of TEXT, by a server of its own."""
    with Wire([sys.executable, "-m", "dg_lsp", "--stdio"], patience=300) as wire:
        wire.initialize()
        document = {"uri": "file:///w/a.py", "languageId": "python", "version": 1, "text": TEXT}
        wire.send(notification("textDocument/didOpen", {"textDocument": document}))
        target = {"uri": "file:///w/a.py", "name": "add", "effort": "low"}
        params = {"command": "dg-lsp.fill", "arguments": [target]}
        return wire.ask("fill", "workspace/executeCommand", params)
