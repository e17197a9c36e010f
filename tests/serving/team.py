"""A team's server in this event loop, its certificate, and its tokens, for tests."""

import asyncio
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dg_lsp.serving import team as serving
from dg_lsp.serving.tokens import make_token
from dg_lsp.settings import Settings, override
from tests.waiting import until


@dataclass(frozen=True, slots=True)
class Team:
    """A server that runs. token: that of alice. certificate: empty where it speaks plain HTTP."""

    url: str
    token: str
    tokens: Path
    certificate: Path | None

    @property
    def own(self) -> dict[str, str]:
        """What alice sets in her editor."""
        file = self.tokens.with_name("token-of-alice")
        if not file.exists():
            file.write_text(self.token + "\n")
            file.chmod(0o600)
        return {
            "engine_url": self.url,
            "engine_token_file": str(file),
            "engine_ca": str(self.certificate or ""),
        }

    def settings(self, **more: Any) -> Settings:
        """The settings of alice's editor."""
        return override(Settings(checkpoint="scripted"), {**self.own, **more})

    def client(self, token: str | None = None) -> httpx2.AsyncClient:
        """A client with `token`, else with alice's; "" sends none."""
        given = self.token if token is None else token
        headers = {"authorization": f"Bearer {given}"} if given else {}
        verify = ssl.create_default_context(cafile=self.certificate) if self.certificate else False
        return httpx2.AsyncClient(
            base_url=self.url, trust_env=False, headers=headers, verify=verify, timeout=60
        )


def certificate_in(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1, signed by itself, and its key."""
    if not shutil.which("openssl"):
        pytest.skip("openssl, which makes the certificate, is not here")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    made += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    return certificate, key


@asynccontextmanager
async def team_of(folder: Path, checkpoint: str = "scripted", *, tls: bool = False) -> AsyncIterator[Team]:
    """A server with its files in `folder`."""
    tokens = folder / "tokens"
    token = make_token(tokens, "alice", ["alice"])
    certificate, key = certificate_in(folder) if tls else (None, None)
    # Bound and not listening, it keeps others from the port until the server has it.
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port = held.getsockname()[1]
    listening = serving.Listening(tokens, "127.0.0.1", port, certificate, key)
    team = Team(f"http{'s' if tls else ''}://127.0.0.1:{port}", token, tokens, certificate)
    task = asyncio.create_task(serving.serve(Settings(checkpoint=checkpoint), listening))
    try:
        with held:
            async with team.client() as client:
                await until(lambda: is_ready(client), 120)
        yield team
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextmanager
def server_process(
    folder: Path, checkpoint: str = "scripted", port: int = 0, descriptors: int = 0
) -> Iterator[tuple[Team, subprocess.Popen[str]]]:
    """A server with its files in `folder`, as a process of its own, over TLS, with so many `descriptors`."""
    # A server that is started again has the token that its clients know.
    kept = folder / "token"
    if not kept.exists():
        kept.write_text(make_token(folder / "tokens", "alice"))
    token = kept.read_text()
    certificate, key = folder / "cert.pem", folder / "key.pem"
    if not certificate.exists():
        certificate_in(folder)
    command = [sys.executable, "-P", "-m", "dg_lsp", "serve-engine", "--tokens", str(folder / "tokens")]
    command += ["--certificate", str(certificate), "--key", str(key)]
    command += ["--port", str(port), "--checkpoint", checkpoint]
    if descriptors:
        command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
    # To a file, as a pipe that nobody reads would stop the server once it is full.
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(command, stderr=file, text=True)
    try:
        while not (found := re.search(r"listening at (https://\S+)", log.read_text())):
            assert process.poll() is None
            time.sleep(0.02)
        yield Team(found[1], token, folder / "tokens", certificate), process
    finally:
        process.kill()
        process.wait()


async def is_ready(client: httpx2.AsyncClient) -> bool:
    """Return whether the server has loaded its engine."""
    try:
        return (await client.get("/readyz")).status_code == 200
    except httpx2.TransportError:
        return False
