"""The client of an engine at a socket where something else listens: a clear error, and never one of another kind."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.engine.client import RemoteEngine
from dg_lsp.engine.http import EngineAbsent, EngineStrange
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Infill, Status

REQUEST = Infill("x = ", "\n", "python", "rest_of_line")


def http(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


ANSWERS = {
    "another protocol": b"220 ready\r\n",
    "a page": http(b"<html>\n</html>\n"),
    "no text": http(b"\xff\xfe\x00\n"),
    "a list": http(b"[1]\n"),
    "an empty object": http(b"{}\n"),
    "two names": http(b'{"fill": 1, "draft": 2}\n'),
    "a fill that is none": http(b'{"fill": 3}\n'),
    "a fill without its text": http(b'{"fill": {}}\n'),
    "a draft that is none": http(b'{"draft": null}\n'),
    "an error without a message": http(b'{"error": "no"}\n'),
    "an error whose message is none": http(b'{"error": {"message": [1]}}\n'),
    "a state without a share": http(b'{"state": {}}\n'),
    "a state whose share is none": http(b'{"state": {"state": "loading", "done": "x"}}\n'),
    "brackets": http(b"[" * 100_000 + b"\n"),
    "a refusal that is none": http(b"<html></html>", "500 No"),
    "a refusal without a message": http(b'{"error": 1}', "400 No"),
    "what is not packed": http(b"plain", more="Content-Encoding: gzip\r\n"),
}


def against(answer: bytes, path: Path, ask: Any) -> Any:
    """What `ask` returns for the client of a process that gives `answer` to everybody."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        writer.close()

    async def work() -> Any:
        async with await asyncio.start_unix_server(serve, path):
            remote = RemoteEngine(path)
            try:
                return await asyncio.wait_for(ask(remote), 60)
            finally:
                await remote.close()

    return asyncio.run(work())


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_answers_unlike_an_engine_is_named(answer: str, tmp_path: Path) -> None:
    async def fill(remote: RemoteEngine) -> Any:
        return [event async for event in remote.infill(REQUEST)]

    async def status(remote: RemoteEngine) -> Any:
        return await remote.status()

    for ask in (fill, status):
        # A request cannot tell what is no HTTP from an engine that ends; the client then asks for the status.
        kind = EngineAbsent if answer == "another protocol" and ask is fill else EngineStrange
        named = r"no engine is running|not an engine of this dg-lsp.*end it with dg-lsp engine stop"
        with pytest.raises(kind, match=named):
            against(ANSWERS[answer], tmp_path / ask.__name__, ask)


def test_what_a_later_engine_may_add_is_left_out(tmp_path: Path) -> None:
    lines = (
        b'{"hint": {"any": 1}}\n'
        b'{"state": {"state": "loading", "done": 1, "left": 2}}\n'
        b'{"fill": {"text": "1", "x": []}}\n'
    )

    async def fill(remote: RemoteEngine) -> Any:
        return [event async for event in remote.infill(REQUEST)]

    (found,) = against(http(lines), tmp_path / "s", fill)
    assert found.text == "1"


def test_an_engine_that_answers_with_an_error_is_no_longer_busy(tmp_path: Path) -> None:
    statuses = list[Status]()
    lines = (
        b'{"state": {"state": "loading", "done": 0.8}}\n'
        b'{"error": {"message": "the engine hung for 41 s and ends"}}\n'
    )

    async def fill(remote: RemoteEngine) -> None:
        remote._tell = statuses.append
        async for _ in remote.infill(REQUEST):
            pass

    with pytest.raises(EngineError, match="hung"):
        against(http(lines), tmp_path / "s", fill)
    assert [status.state for status in statuses] == ["loading", "ready"]
