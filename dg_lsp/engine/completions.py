"""Requests to a vLLM server and its answers. Knows HTTP and token ids; knows no text and no network.

The requests follow the wheel of vLLM 0.33.0, as vllm_contract.json among the tests records it;
no real server was ever asked (docs/team.md). A canvas is `vllm_xargs` of /v1/completions, as vllm/utils/diffusion.py
checks it: a seed of exactly `diffusion_canvas_length` ids, the positions of it that stay, the steps at most, and a read
without the pass that would commit the canvas. The sampler (vllm/model_executor/models/diffusion_gemma.py) answers with
the best token of each slot, also of pinned ones. Log probabilities are those of the last step at temperature 1.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from operator import index
from typing import Any, TypeVar

import httpx2

from dg_lsp.engine.http import (
    Backoff,
    EngineAbsent,
    EngineSilent,
    EngineStrange,
    attempting,
    client_options,
    reaching,
    refusal_of,
    said_in,
    trusted,
)
from dg_lsp.filling.engine import EngineError
from dg_lsp.settings import Settings, address_in

_NAME = "vLLM"
SINCE = (0, 32)  # the first version that was seen to pin slots
# Requests under way, of all windows: the number that a server of DiffusionGemma runs at once by default.
AT_ONCE = 8
_ANSWER = 60.0  # seconds for an answer
_KEPT = 4.0  # seconds that a connection is kept; the server closes its end after 5
Result = TypeVar("Result")
_PROBE = "def area(radius):\n    return 3.14159 * radius**2  # m\u00b2\n"


@dataclass(frozen=True, slots=True)
class Served:
    """A server's description of itself. longest: tokens of a prompt and a canvas together."""

    version: str
    model: str
    longest: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A canvas to denoise after the tokens of `prompt`.

    row: the tokens that its slots start from. pinned: the slots that keep theirs. steps: denoising steps at most.
    watched: tokens whose log probabilities are wanted.
    """

    prompt: tuple[int, ...]
    row: tuple[int, ...]
    pinned: tuple[int, ...]
    steps: int
    watched: tuple[int, ...]

    def body(self, model: str) -> dict[str, Any]:
        """Return the body of the request to /v1/completions."""
        return {
            "model": model,
            "prompt": list(self.prompt),
            "max_tokens": len(self.row),
            # What a server's own defaults may say otherwise: DiffusionGemma takes no other temperature, and no min_p.
            "temperature": 1.0,
            "min_p": 0.0,
            "top_p": 1.0,
            "top_k": 0,
            "ignore_eos": True,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
            "logprobs": 1,
            "logprob_token_ids": list(self.watched),
            "vllm_xargs": {
                "diffusion_canvas_length": len(self.row),
                "diffusion_seed_canvas": list(self.row),
                "diffusion_pinned": list(self.pinned),
                "diffusion_max_steps": self.steps,
                "diffusion_read_only": 1,
            },
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """A denoised canvas. tokens: the best token of each slot, and its log probability in `best`, nats.

    watched: for each slot, the log probabilities of the tokens that were asked for, by `token_id:N`.
    """

    tokens: tuple[int, ...]
    best: tuple[float, ...]
    watched: tuple[dict[str, float], ...]


def answer_of(data: Any, slots: int) -> Answer:
    """Return the answer in `data` to a request for a canvas of `slots`."""
    try:
        choice = data["choices"][0]
        logs = choice["logprobs"]
        tokens, best = map(index, choice["token_ids"]), map(float, logs["token_logprobs"])
        answer = Answer(tuple(tokens), tuple(best), tuple(map(dict, logs["top_logprobs"])))
    except (LookupError, TypeError, ValueError) as error:
        raise EngineStrange("the server's answer is none of vLLM's completions") from error
    if {len(answer.tokens), len(answer.best), len(answer.watched)} != {slots}:
        raise EngineStrange(
            f"the vLLM server wrote {len(answer.tokens)} of {slots} tokens; it must not bound max_new_tokens"
        )
    return answer


class VllmServer:
    """The server at `settings.engine_url`, asked from threads; its requests run on an event loop of their own.

    encode: our tokenizer. slots: the length of the longest canvas. served: its own description, once it was checked.
    backoff: when it may be asked again.
    """

    def __init__(self, settings: Settings, encode: Callable[[str], tuple[int, ...]], slots: int) -> None:
        self._settings, self._url = settings, address_in(settings.engine_url)
        self._encode, self._slots = encode, slots
        limits = httpx2.Limits(max_keepalive_connections=AT_ONCE, keepalive_expiry=_KEPT)
        self._client = httpx2.AsyncClient(
            **client_options(settings, trusted(settings.engine_ca), _ANSWER), limits=limits
        )
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.served: Served | None = None
        self.backoff = Backoff(first=1.0)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="dg-lsp-vllm", daemon=True).start()

    @property
    def device(self) -> str:
        """The name of the server, with its version once it was checked."""
        return f"{_NAME} {self.served.version}" if self.served else _NAME

    def connect(self) -> Served:
        """Check the server, unless that was done since it was last away."""
        self.served = self.served or self._begin(self._checked()).result()
        return self.served

    @contextmanager
    def denoising(self, rows: Callable[[Served], Sequence[Asked]]) -> Iterator[list["Future[Answer]"]]:
        """Ask for the canvases that `rows` makes for the server; at the end of the block those left are cancelled."""
        futures = list[Future[Answer]]()
        try:
            with attempting(self.backoff):
                served = self.connect()
                futures += [self._begin(self._denoised(row, served.model)) for row in rows(served)]
                yield futures
        except (EngineAbsent, EngineSilent):
            # It may be another one by then.
            self.served = None
            raise
        finally:
            # That closes their connections, and vLLM ends their work. Those that wait for a turn go first: they would
            # take the turns of the others.
            for future in reversed(futures):
                future.cancel()

    def close(self) -> None:
        """Close the connections; the server runs on."""
        self._begin(self._client.aclose()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _begin(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _checked(self) -> Served:
        """Check that the server can do what will be asked of it; no text of a user is sent.

        1. Its version.  2. Its model.  3. Its tokenizer, by a line of code.  4. Its parameters: a request with a pin
        beyond the canvas must be refused for that; a server that does not know pins would answer it.
        """
        try:
            # 1.
            version = str((await self._ask("/version"))["version"])
            if tuple(map(int, re.findall(r"\d+", version)[:2])) < SINCE:
                raise EngineError(
                    f"the server at {self._url} is vLLM {version}, and slots are pinned since {SINCE[0]}.{SINCE[1]}; "
                    "ask its administrator for a newer one"
                )
            # 2.
            card = (await self._ask("/v1/models"))["data"][0]
            served = Served(version, str(card["id"]), int(card["max_model_len"]))
            # 3.
            line = {"model": served.model, "prompt": _PROBE, "add_special_tokens": False}
            tokens = tuple((await self._ask("/tokenize", line))["tokens"])
        except (LookupError, TypeError, ValueError) as error:
            raise EngineStrange(f"the program at {self._url} is no vLLM server") from error
        if tokens != self._encode(_PROBE):
            raise EngineError(
                f"the server at {self._url} serves {served.model}, which has another tokenizer than the checkpoint "
                "here; set the setting checkpoint to a folder with its config.json and tokenizer.json"
            )
        # 4.
        wrong = Asked(tokens[:1], tokens[:1] * self._slots, (self._slots,), 1, tokens[:1])
        answer = await self._sent("/v1/completions", wrong.body(served.model))
        if answer.status_code != 400 or "diffusion_pinned" not in answer.text:
            said = f" ({said_in(answer)})" if answer.status_code != 200 else ""
            raise EngineError(
                f"the server at {self._url} does not pin slots of a canvas of {self._slots} for {served.model}{said}; "
                "it must serve DiffusionGemma, with canvases of that length"
            )
        return served

    async def _denoised(self, asked: Asked, model: str) -> Answer:
        """Denoise the canvas `asked`; a request that is cancelled closes its connection, and vLLM ends its work."""
        async with self._turns:
            return answer_of(await self._ask("/v1/completions", asked.body(model)), len(asked.row))

    async def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the JSON of the server's answer."""
        answer = await self._sent(path, body)
        code = answer.status_code
        if code == 200:
            return answer.json()
        if code == 404:
            gone = f"the server at {self._url} has no {path}; a proxy before vLLM must pass it on"
            raise EngineError(
                gone if path == "/version" else f"{gone} (or the model changed: {said_in(answer)})"
            )
        raise refusal_of(answer, self._settings, _NAME)

    async def _sent(self, path: str, body: dict[str, Any] | None) -> httpx2.Response:
        with reaching(self._settings, _NAME):
            return await (self._client.get(path) if body is None else self._client.post(path, json=body))
