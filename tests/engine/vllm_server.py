"""A server that takes and answers what the recorded contract says of vLLM's, with a model that knows one text."""

import asyncio
import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tokenizers import Tokenizer

from dg_lsp.checkpoints import EMBEDDED, folder_of
from dg_lsp.settings import Settings, override
from tests.engine.served import served
from tests.engine.vllm_contract import CANVAS, VOCABULARY, contract, why_wrong


class FakeVllm:
    """A server whose model writes `right` where the gap has its length, and noise elsewhere; it breaks every pin.

    bodies: the requests for canvases that it answered or began. refused: why it took one not. cancelled: how many
    clients left before their answer. pause: seconds that a canvas takes. status: what it answers instead of a canvas.
    """

    def __init__(self, right: str, version: str = "0.33.0") -> None:
        self.right, self.version = right, version
        self.tokenizer = Tokenizer.from_file(str(folder_of(EMBEDDED) / "tokenizer.json"))
        self.pause, self.status, self.retry, self.token, self.pins = 0.0, 200, "", "", True
        self.bodies: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.heard: list[bytes] = []
        self.cancelled = self.live = self.most = 0
        self.longest, self.url = 4096, ""
        self.app = Starlette(
            routes=[
                Route("/version", lambda _: JSONResponse({"version": self.version})),
                Route("/v1/models", self._models),
                Route("/tokenize", self._tokenize, methods=["POST"]),
                Route("/v1/completions", self._complete, methods=["POST"]),
            ]
        )

    async def _models(self, request: Request) -> Response:
        if refusal := self._stranger(request):
            return refusal
        found = copy.deepcopy(contract()["models"])
        found["data"][0]["max_model_len"] = self.longest
        return JSONResponse(found)

    async def _tokenize(self, request: Request) -> Response:
        body = await request.json()
        assert body.keys() == contract()["tokenize"]["request"].keys()
        ids = self.tokenizer.encode(body["prompt"], add_special_tokens=False).ids
        return JSONResponse({**contract()["tokenize"]["answer"], "tokens": ids, "count": len(ids)})

    async def _complete(self, request: Request) -> Response:
        if refusal := self._stranger(request):
            return refusal
        self.heard.append(str(request.headers.raw).encode() + await request.body())
        body = json.loads(await request.body())
        if not self.pins:
            # A server that does not know the parameters leaves them alone.
            body = {**body, "vllm_xargs": {}}
        if why := why_wrong(body):
            self.refused.append(why)
            return _error(400, why)
        if self.status != 200:
            return _error(self.status, "no", {"retry-after": self.retry} if self.retry else None)
        self.bodies.append(body)
        self.live += 1
        self.most = max(self.most, self.live)
        try:
            for _ in range(int(self.pause / 0.005)):
                await asyncio.sleep(0.005)
                if await request.is_disconnected():
                    self.cancelled += 1
                    return Response()
        finally:
            self.live -= 1
        return JSONResponse(self._answer(body))

    def _stranger(self, request: Request) -> Response | None:
        given = request.headers.get("authorization", "")
        if self.token and given != f"Bearer {self.token}":
            return JSONResponse({"error": "Unauthorized"}, 401)
        return None

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        more = body["vllm_xargs"]
        row, pinned = list(more.get("diffusion_seed_canvas", [0] * 4)), set(more.get("diffusion_pinned", ()))
        free = [slot for slot in range(len(row)) if slot not in pinned]
        right = self.tokenizer.encode(self.right, add_special_tokens=False).ids
        fits = len(free) == len(right)
        for slot, token in zip(free, right, strict=False):
            row[slot] = token if fits else row[slot]
        for slot in pinned:
            row[slot] = (row[slot] + 1) % VOCABULARY
        nats = -0.01 if fits else -6.0
        found = copy.deepcopy(contract()["answer"])
        choice = found["choices"][0]
        asked = {f"token_id:{token}": nats for token in body["logprob_token_ids"]}
        choice["token_ids"] = row
        choice["logprobs"] = {
            "text_offset": [0] * len(row),
            "token_logprobs": [nats] * len(row),
            "tokens": [f"token_id:{token}" for token in row],
            "top_logprobs": [{f"token_id:{token}": nats, **asked} for token in row],
        }
        assert found["choices"][0].keys() == contract()["answer"]["choices"][0].keys()
        return found

    @contextmanager
    def serving(self, certificate: tuple[Path, Path] | None = None) -> Iterator["FakeVllm"]:
        """Serve at `url` in a thread, over TLS with a certificate and its key."""
        with served(self.app, certificate) as self.url:
            yield self

    def settings(self, folder: Path, **more: Any) -> Settings:
        """Settings for this server; `folder` is made the checkpoint's: its tokenizer and config, and no weights."""
        for name in ("config.json", "tokenizer.json", "dg_lsp.json"):
            (folder / name).write_bytes((folder_of(EMBEDDED) / name).read_bytes())
        given = {"engine_url": f"vllm+{self.url}", "checkpoint": str(folder), **more}
        return override(Settings(), given)


def _error(code: int, message: str, headers: dict[str, str] | None = None) -> Response:
    error = {"message": message, "type": "BadRequestError", "param": "extra_args", "code": code}
    return JSONResponse({"error": error}, code, headers)


assert CANVAS == 256
