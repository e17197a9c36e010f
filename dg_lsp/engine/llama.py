"""A server of llama.cpp as an engine: its /infill drafts the text of a gap, which is then judged and checked here.

Runs in the engine's own process, without a network or a tokenizer. Requests and answers follow tools/server/README.md
of llama.cpp, as llama_contract.json among the tests records them of a real server.
"""

import json
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import httpx2
from tokenizers import Tokenizer
from tokenizers.models import BPE

from dg_lsp.engine.http import (
    Backoff,
    EngineStrange,
    attempting,
    client_options,
    reaching,
    refusal_of,
    trusted,
)
from dg_lsp.engine.local import ForeignEngine
from dg_lsp.engine.served import served_in
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import BODIES, PARTS, Draft, Fill, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.candidates import Candidate, candidates_of, none_of
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock, draft_of
from dg_lsp.model.fill import Way, follow, unable
from dg_lsp.model.prompts.fim import FIM, near_suffix
from dg_lsp.model.sources.bodies import body_of
from dg_lsp.model.sources.several import one_by_one
from dg_lsp.model.step import Schedule
from dg_lsp.model.task import Source, Task
from dg_lsp.settings import Settings, address_in
from dg_lsp.source.document import last_line

NAME = "llama.cpp"
_SILENT = 60.0  # seconds; while it reads a prompt the server tells of its progress
# Tokens that a part of a line, a docstring and a body have at most.
_PART, _DOCSTRING, _BODY = 32, 96, 256
_CUTS = 4  # beginnings of a text that are tried
_BEFORE = 16_000  # characters of the file that are sent from above the gap's line
_WARM = 0.8  # the temperature of texts after the first
# The typed text that is written again: half a word before the gap, or the last blank.
_AGAIN = re.compile(r" ?\w+\Z| \Z")


@dataclass(slots=True)
class Written:
    """A text that the server has written, and the length up to which each token goes, with its -log p in nats."""

    text: str = ""
    tokens: list[tuple[int, float]] = field(default_factory=list)


class LlamaServer:
    """The server at `settings.engine_url`, which is asked from the model's thread.

    device: which llama.cpp it is and what it serves, once it has been checked. backoff: when it may be asked again.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._url = settings, address_in(settings.engine_url)
        self._client = httpx2.Client(**client_options(settings, trusted(settings.engine_ca), _SILENT))
        self.device, self.backoff = NAME, Backoff(first=1.0)
        self._is_checked = False

    def connect(self) -> None:
        """Check that the server can fill gaps, unless that was done since it last failed; no text of a user is sent."""
        if self._is_checked:
            return
        with reaching(self._settings, NAME):
            found = self._client.get("/props")
            if found.status_code != 200:
                raise refusal_of(found, self._settings, NAME)
            tried = self._client.post(
                "/infill", json={"input_prefix": "", "input_suffix": "", "n_predict": 0}
            )
        try:
            served = served_in(found.json())
        except (LookupError, TypeError, ValueError) as error:
            raise EngineStrange(f"the program at {self._url} is no server of llama.cpp") from error
        if tried.status_code != 200:
            raise EngineError(
                f"{served.model} at {self._url} knows no fill-in-the-middle; serve a model that does, such "
                "as Qwen2.5-Coder"
            )
        self.device, self._is_checked = f"{NAME} {served.build}, {served.model}", True

    def write(self, body: dict[str, Any]) -> Generator[Written, None, None]:
        """Yield the text so far at each sign of life. Closing the generator closes the connection and ends the work."""
        try:
            with attempting(self.backoff):
                self.connect()
                with (
                    reaching(self._settings, NAME),
                    self._client.stream("POST", "/infill", json=body) as answer,
                ):
                    if answer.status_code != 200:
                        answer.read()
                        raise refusal_of(answer, self._settings, NAME)
                    yield from _written(answer.iter_lines())
        except EngineError:
            # It may serve another model by the next request, or be another program.
            self._is_checked = False
            raise

    def close(self) -> None:
        """Close the connections; the server runs on."""
        self._client.close()


def _written(lines: Iterator[str]) -> Iterator[Written]:
    """Yield the text so far after each event in the `lines` of a stream."""
    written = Written()
    for line in lines:
        if line.startswith("error"):
            raise EngineStrange(f"the llama.cpp server failed: {line[:200]}")
        if not line.startswith("data:"):
            continue
        try:
            event = json.loads(line.removeprefix("data:"))
            written.text += event["content"]
            nats = [-float(token["logprob"]) for token in event.get("completion_probabilities", ())]
            written.tokens += [(len(written.text), one) for one in nats]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise EngineStrange("the server's answer is none of llama.cpp's") from error
        yield written


def body_for(request: Infill, number: int = 0) -> tuple[dict[str, Any], str]:
    """Return the body of the request for text `number` of a gap, and the typed text that the answer repeats.

    That text is a blank or half a word before the gap: both are part of the next token, so the model writes them again.
    """
    prefix = request.prefix
    line = last_line(prefix)
    found = _AGAIN.search(prefix, line)
    head, again = (prefix[line : found.start()], found[0]) if found else (prefix[line:], "")
    body: dict[str, Any] = {
        "input_prefix": prefix[max(line - _BEFORE, 0) : line],
        "input_suffix": near_suffix(request.suffix),
        "input_extra": [{"filename": one.path, "text": one.text} for one in request.context],
        "prompt": head,
        "n_predict": _PART if request.kind in PARTS else _BODY if request.kind in BODIES else _DOCSTRING,
        "stop": ["\n"] if request.kind in PARTS else [],
        "temperature": _WARM if number else 0.0,
        "seed": request.seed + number,
        "n_probs": 1,
        "stream": True,
        "return_progress": True,
    }
    if again:
        body["grammar"] = f"root ::= {json.dumps(again)} [^\\x00]*"
    return body, again


def drafted(server: LlamaServer) -> Source:
    """Return the source that asks `server` for as many texts as requested: first the likeliest one, then others."""

    def ask(task: Task) -> Generator[Draft, None, list[Candidate]]:
        request, found = task.request, dict[str, Candidate]()
        for number in range(request.alternatives):
            body, again = body_for(request, number)
            written = Written()
            with closing(server.write(body)) as steps:
                for so_far in steps:
                    written = so_far
                    yield draft_of(0, "", task.clock)
                    if task.clock.is_over():
                        break
            if written.text.startswith(again):
                for one in _candidates(request, written, len(again), number):
                    found.setdefault(one.text.strip(), one)
            if task.clock.is_over():
                break
        shown = [one for one in found.values() if one.fill is None or not one.fill.refusal]
        why = task.clock.why_nothing()
        return shown or [*found.values()] or candidates_of("drafted", [none_of([], why)])

    return ask


def _candidates(request: Infill, written: Written, begin: int, number: int) -> list[Candidate]:
    """Return the texts for the gap in a written one, whose first `begin` characters repeat typed text.

    For a part of a line these include its beginnings up to the text after the gap: for `4))]` before `)` also `4`
    and `4)`, of which the guard leaves the right ones. Each has its likelihood, and that of the token where it ends.
    """
    text = written.text
    if request.kind not in PARTS:
        return [Candidate(text[begin:], {"drafted": number}, body_of(request, text[begin:]))]
    sign = request.suffix[:1].strip()
    ends = [at for at in range(begin + 1, len(text)) if text[at] == sign][:_CUTS]
    found, starts = list[Candidate](), [0, *(length for length, _ in written.tokens)]
    for end in (len(text), *ends):
        places = zip(starts, written.tokens, strict=False)
        count = sum(start < end and length <= end for start, (length, _) in places)
        nats = [nats for _, nats in written.tokens[: count + 1]]
        if len(nats) > count:  # else the text has not ended
            kept = text[begin:end]
            found.append(
                Candidate(
                    kept, {"drafted": number}, gap=sum(nats[:-1]), suffix=nats[-1], tokens=max(count, 1)
                )
            )
    return found


class LlamaEngine(ForeignEngine):
    """The engine whose drafts come from the server at `settings.engine_url`."""

    def __init__(self, settings: Settings) -> None:
        server = LlamaServer(settings)
        model, source = _model(), drafted(server)

        def run(request: Infill) -> Iterator[Draft | Fill]:
            task = Task(model, PrefixCache(model.network.text_config), request, Clock(request.deadline), run)
            if request.between:
                way = Way((one_by_one,))
            elif request.edits or request.like is not None:
                way = Way((unable,))
            else:
                way = Way((source,), judged=request.kind in PARTS)
            return follow(task, way)

        super().__init__(server, run)


def _model() -> Checkpoint:
    """Return a Checkpoint without a network and a tokenizer, with the judge of the style `fim`."""
    config = SimpleNamespace(num_hidden_layers=0, sliding_window=None)
    return Checkpoint(
        NAME,
        SimpleNamespace(text_config=config, device="cpu"),
        Tokenizer(BPE()),
        Schedule(),
        FIM.name,
        canvas_lengths=(256,),
        bos=0,
        eos=0,
        max_prefix=0,
        special=frozenset(),
        digest="",
        judge=FIM.judge(),
        denoises=False,
        ends=(0,),
    )
