"""A connection to an engine: bytes both ways, time-outs and errors as httpcore2 names them, cancelled at any moment."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from dg_lsp.engine import http
from dg_lsp.engine.http import EngineForeign, SameUser
from dg_lsp.filling.engine import EngineError


def connected(tmp_path: Path, act: Any) -> Any:
    """What `act` returns for a connection and its other end, a plain socket; and what the event loop complained of."""
    complaints: list[dict[str, Any]] = []

    async def main() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, reported: complaints.append(reported))
        path = str(tmp_path / "s")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen()
            ours = await SameUser().connect_unix_socket(path, timeout=60)
            other, _ = listening.accept()
            with other:
                try:
                    return await act(ours, other)
                finally:
                    await ours.aclose()
                    await asyncio.sleep(0)

    return asyncio.run(main()), complaints


def test_bytes_go_both_ways_up_to_the_end(tmp_path: Path) -> None:
    async def act(ours: Any, other: socket.socket) -> Any:
        await ours.write(b"question", 60)
        other.sendall(b"answer")
        read = await ours.read(4, 60), await ours.read(100, 60)
        other.shutdown(socket.SHUT_WR)
        return other.recv(100), read, await ours.read(100, 60)

    found, complaints = connected(tmp_path, act)
    assert found == (b"question", (b"answ", b"er"), b"") and not complaints


def test_a_wait_that_is_cancelled_just_as_bytes_come_is_no_error(tmp_path: Path) -> None:
    async def act(ours: Any, other: socket.socket) -> Any:
        waiting = asyncio.ensure_future(ours.read(100, None))
        await asyncio.sleep(0.01)
        # The task is cancelled in the same turn of the loop in which the bytes are seen, and before that.
        asyncio.get_running_loop().call_soon(waiting.cancel)
        other.sendall(b"late")
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0.01)
        return True

    assert connected(tmp_path, act) == (True, [])


def test_silence_is_a_time_out_and_what_breaks_has_a_name(tmp_path: Path) -> None:
    async def act(ours: Any, other: socket.socket) -> Any:
        with pytest.raises(httpcore2.ReadTimeout):
            await ours.read(1, 0.05)
        other.close()
        with pytest.raises(httpcore2.WriteError):
            for _ in range(100):
                await ours.write(b"x" * 100_000, 60)
        return True

    assert connected(tmp_path, act)[0]
    with pytest.raises(httpcore2.ConnectError):
        asyncio.run(SameUser().connect_unix_socket(str(tmp_path / "nobody"), timeout=60))


def test_a_stranger_gets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "is_own", lambda _: False)
    with pytest.raises(EngineForeign):
        connected(tmp_path, None)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o604, 0o660, 0o610])
def test_a_token_is_read_only_if_nobody_else_may(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc\n")
    file.chmod(mode)
    if mode & 0o077:
        with pytest.raises(EngineError, match="chmod 600"):
            http.token_in(file)
    else:
        assert http.token_in(file) == "abc"
