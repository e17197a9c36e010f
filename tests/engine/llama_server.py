"""A server that takes and answers what the record says of llama.cpp's, with a model that knows some texts."""

import asyncio
import copy
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from dg_lsp.settings import Settings, override
from tests.engine.served import served

CONTRACT: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "llama_contract.json").read_text(encoding="utf-8")
)
_TOKEN = re.compile(r"\n| ?\w+| ?[^\w\s]+| ")


class FakeLlama:
    """A server whose model writes the next of `texts` each time, and the last one from then on.

    bodies: the requests that it took. nats: of each token. pause: seconds of a token. status: what it answers instead.
    """

    def __init__(self, *texts: str, nats: float = 0.01) -> None:
        self.texts, self.nats, self.pause = list(texts), nats, 0.0
        self.status, self.token, self.knows = 200, "", True
        self.bodies: list[dict[str, Any]] = []
        self.heard: list[bytes] = []
        self.cancelled, self.url = 0, ""
        self.app = Starlette(
            routes=[Route("/props", self._props), Route("/infill", self._infill, methods=["POST"])]
        )

    async def _props(self, request: Request) -> Response:
        if self.token and request.headers.get("authorization", "") != f"Bearer {self.token}":
            return JSONResponse(CONTRACT["stranger"], 401)
        if self.status != 200:
            return JSONResponse(CONTRACT["loading"], self.status)
        return JSONResponse(CONTRACT["props"])

    async def _infill(self, request: Request) -> Response:
        self.heard.append(str(request.headers.raw).encode() + await request.body())
        body = await request.json()
        if self.status != 200:
            return JSONResponse(CONTRACT["loading"], self.status)
        if not self.knows:
            return JSONResponse(CONTRACT["unable"], 501)
        assert body.keys() <= {*CONTRACT["keys"]}, body.keys()
        assert isinstance(body["input_prefix"], str) and isinstance(body["input_suffix"], str)
        if body["n_predict"] == 0:
            return JSONResponse(CONTRACT["last"])
        self.bodies.append(body)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return StreamingResponse(self._events(text, body), media_type="text/event-stream")

    async def _events(self, text: str, body: dict[str, Any]) -> AsyncIterator[str]:
        tokens, ends = _TOKEN.findall(text)[: body["n_predict"]], "eos"
        if any(stop in tokens for stop in body["stop"]):
            tokens, ends = tokens[: tokens.index("\n")], "word"
        try:
            yield _line(CONTRACT["progress"])
            for token in tokens:
                await asyncio.sleep(self.pause)
                yield _line(self._event(token))
            if len(tokens) < body["n_predict"]:
                yield _line(self._event(""))
            else:
                ends = "limit"
            yield ": ping\n\n"
            yield _line({**CONTRACT["last"], "stop_type": ends})
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def _event(self, text: str) -> dict[str, Any]:
        event = copy.deepcopy(CONTRACT["token"])
        event["content"] = event["completion_probabilities"][0]["token"] = text
        event["completion_probabilities"][0]["logprob"] = -self.nats
        return dict(event)

    @contextmanager
    def serving(self) -> Iterator["FakeLlama"]:
        """Serve at `url` in a thread."""
        with served(self.app) as self.url:
            yield self

    def settings(self, **more: Any) -> Settings:
        """Settings for this server."""
        return override(Settings(), {"engine_url": f"llama+{self.url}", **more})


def _line(event: dict[str, Any]) -> str:
    return f"data: {json.dumps(event)}\n\n"


def texts_of(bodies: Sequence[dict[str, Any]]) -> list[str]:
    """The text of the file before each gap that was asked for, the typed text that is written again left out."""
    return [body["input_prefix"] + body["prompt"] for body in bodies]
