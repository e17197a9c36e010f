"""The llama.cpp servers of this user: found at the usual ports, and asked for nothing but their description."""

import socket
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from dg_lsp.engine import served as module
from dg_lsp.engine.served import servers
from tests.engine.llama_server import FakeLlama
from tests.engine.served import served


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


def test_a_server_of_this_user_is_found_with_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    # A proxy is never asked for an address of this machine.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with FakeLlama("x").serving() as server:
        monkeypatch.setattr(module, "PORTS", (port_of(server.url),))
        ((url, found),) = servers().items()
        assert url == f"llama+http://127.0.0.1:{port_of(server.url)}"
        assert found.model == "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf" and found.build
        assert not server.heard
        server.status = 503
        assert servers() == {}


def test_another_program_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Starlette(routes=[Route("/props", lambda _: PlainTextResponse("[]"))])
    with served(other) as url, socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(module, "PORTS", (port_of(url), silent.getsockname()[1]))
        assert servers() == {}


def test_a_port_of_somebody_else_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeLlama("x").serving() as server:
        monkeypatch.setattr(module, "PORTS", (port_of(server.url),))
        monkeypatch.setattr(module, "_listening", lambda: {8080})
        assert servers() == {}
