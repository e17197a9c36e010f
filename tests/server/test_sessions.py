"""The trigger in typing sessions: how many unasked requests it saves, and how many texts that are of use it costs.

DG_LSP_SESSIONS says how many sessions are played, each with the trigger and without it, DG_LSP_SEED from which seed on.
The clock is the event loop's, which jumps to the next moment at which something happens.
"""

import asyncio
import importlib.util
import os
import random
import selectors
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.server.ahead import Ahead
from dg_lsp.server.app import make_context
from dg_lsp.server.handlers import documents
from dg_lsp.server.handlers.inline_completion import inline_completion
from dg_lsp.server.rpc.protocol import Server
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.server.trigger import Trigger, opens
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from tests.server.sessions import Session, Step

SESSIONS = int(os.environ.get("DG_LSP_SESSIONS", "4"))
FIRST = int(os.environ.get("DG_LSP_SEED", "0"))
MODULES = (
    *("cmd", "code", "contextlib", "copy", "csv", "fileinput", "fnmatch", "glob", "heapq", "json.decoder"),
    *(
        "json.encoder",
        "pprint",
        "queue",
        "reprlib",
        "sched",
        "shelve",
        "string",
        "textwrap",
        "timeit",
        "zipapp",
    ),
)
FILL = 0.3  # seconds that the engine takes
DEBOUNCE = 0.05  # seconds that the plug-ins wait for the next key
SEEN = 0.25  # seconds on the screen from which a text may be taken
SHORT = 3  # characters below which nobody takes one


class Jumping(selectors.DefaultSelector):
    """Waits for nothing: the time until the next timer is over at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class Oracle(ScriptedEngine):
    """Knows the line that is being written, and answers with it once enough of it is there.

    The share that must be there differs from line to line; before that, the answer is another text.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(Fill("None"))
        self.seed, self.step, self.written = seed, Step(0.0, "", 0, 0, ""), 0

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        self.requests.append(request)
        head, line = request.prefix.rpartition("\n")[2], self.step.intended
        share = random.Random(f"{self.seed} {self.step.line}").random() ** 2
        knows = line.startswith(head) and self.written >= share * len(line)
        await asyncio.sleep(FILL)
        yield Fill(line[len(head) :] if knows else "None", chance=0.9, steps=1)


class Always(Trigger):
    """A trigger that never keeps silent and never waits."""

    def silence(self, snapshot: Snapshot, cursor: int) -> str:
        return ""

    def pause(self, snapshot: Snapshot, cursor: int) -> float:
        return 0.0


class Anew(Ahead):
    """Begins a new fill after each key."""

    def is_for(self, document: Document) -> bool:
        return False


@dataclass(slots=True)
class Played:
    """Requests that reached the engine, and the most seconds that a right text for a line was on the screen."""

    requests: int = 0
    seen: dict[tuple[int, int], float] = field(default_factory=dict)


class Player:
    """A client that plays one session."""

    def __init__(self, seed: int, session: Session, trigger: type[Trigger], played: Played) -> None:
        self.seed, self.session, self.played = seed, session, played
        self.engine, loop = Oracle(seed), asyncio.get_running_loop()
        settings = Settings(related=False, prefetch=False)
        server = Server("dg-lsp", "1")
        self.context = make_context(server, settings, lambda *_: self.engine)
        list(server.protocol.lsp_initialize(types.InitializeParams(types.ClientCapabilities())))
        self.context.session.trigger = trigger(loop.time)
        if trigger is Always:
            self.context.session.ahead = Anew(lambda _: None)
        self.documents = self.context.workspace.documents
        self.texts = {session.uri: session.text, session.other: session.other_text}
        for uri, text in self.texts.items():
            self.documents.open(uri, "python", 1, text)
            self.documents.snapshot(uri)
        # The ghost text on the screen, what is written of its line, and since when it is there.
        self.ghost, self.since = "", 0.0
        self.version, self.asked = 1, 0

    async def play(self) -> None:
        asking: asyncio.Task[None] | None = None
        steps = [*self.session.steps()]
        for step, following in pairwise([*steps, Step(0.0, "", 0, 0, "")]):
            await asyncio.sleep(step.after)
            self.look(step)
            # After a change the server knows by itself what nobody waits for.
            if asking and not step.text:
                asking.cancel()
            self.asked += 1
            self.engine.step = step
            await self.change(step)
            # While a menu is open there is no ghost text.
            asking = None if following.menu else asyncio.ensure_future(self.ask(step))
        await asyncio.sleep(2)
        self.played.requests += len(self.engine.requests)

    def look(self, step: Step) -> None:
        """Note the text on the screen, if it was there for long, and shorten or drop it by the coming step."""
        before = self.engine.step
        right = before.intended and before.intended.endswith(self.ghost) and len(self.ghost) >= SHORT
        if self.ghost and right:
            line, seconds = (self.seed, before.line), asyncio.get_running_loop().time() - self.since
            self.played.seen[line] = max(seconds, self.played.seen.get(line, 0.0))
        through = step.start == step.end and step.text and self.ghost.startswith(step.text)
        self.ghost = self.ghost[len(step.text) :] if through else ""

    async def change(self, step: Step) -> None:
        """Make the change of a step, as a client reports it."""
        if step.start == step.end and not step.text:
            return
        text = self.texts[step.uri]
        span = types.Range(self.position(step.uri, step.start), self.position(step.uri, step.end))
        self.texts[step.uri] = text[: step.start] + step.text + text[step.end :]
        self.version += 1
        change = types.TextDocumentContentChangePartial(range=span, text=step.text)
        named = types.VersionedTextDocumentIdentifier(version=self.version, uri=step.uri)
        spans = [(((span.start.line, span.start.character), (span.end.line, span.end.character)), step.text)]
        self.documents.change(step.uri, self.version, spans)
        await documents.did_change(self.context, types.DidChangeTextDocumentParams(named, [change]))

    async def ask(self, step: Step) -> None:
        """Ask for ghost text, as the plug-ins do: at once where something must follow, and not while some is shown."""
        at, mine = step.start + len(step.text), self.asked
        if self.ghost:
            return
        text = self.texts[step.uri]
        self.engine.written = len(text[:at].rpartition("\n")[2])
        if not opens(text.encode(), len(text[:at].encode())):
            await asyncio.sleep(DEBOUNCE)
            if self.asked != mine:
                return
        automatic = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
        named = types.TextDocumentIdentifier(step.uri)
        params = types.InlineCompletionParams(automatic, named, self.position(step.uri, at))
        found = await inline_completion(self.context, params)
        if self.asked == mine:
            self.ghost = str(found.items[0].insert_text) if found.items else ""
            self.since = asyncio.get_running_loop().time()

    def position(self, uri: str, at: int) -> types.Position:
        before = self.texts[uri][:at]
        return types.Position(before.count("\n"), len(before.rpartition("\n")[2].encode("utf-16-le")) // 2)


async def inline(work: Callable[..., Any], *given: Any, **named: Any) -> Any:
    return work(*given, **named)


def played(sessions: int, trigger: type[Trigger]) -> Played:
    """Play so many sessions with a trigger."""
    found = Played()

    async def play(seed: int) -> None:
        names = [*MODULES, MODULES[0]][seed % len(MODULES) :][:2]
        paths = [
            Path(spec.origin) for name in names if (spec := importlib.util.find_spec(name)) and spec.origin
        ]
        await Player(seed, Session(seed, *paths), trigger, found).play()

    def run(work: Awaitable[None]) -> None:
        clock = Jumping()
        loop = asyncio.SelectorEventLoop(clock)
        loop.time = lambda: clock.now  # type: ignore[method-assign]
        try:
            loop.run_until_complete(work)
        finally:
            loop.close()

    for seed in range(FIRST, FIRST + sessions):
        run(play(seed))
    return found


@pytest.mark.slow
def test_the_trigger_saves_requests_and_loses_few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio, "to_thread", inline)
    without, having = played(SESSIONS, Always), played(SESSIONS, Trigger)
    saved = 1 - having.requests / without.requests
    useful = {line for line, seconds in without.seen.items() if seconds >= SEEN}
    lost = {line for line in useful if having.seen.get(line, 0.0) < SEEN}
    print(
        f"{SESSIONS} sessions: {without.requests} requests without the trigger, {having.requests} with it,"
        f" {saved:.0%} saved; of {len(useful)} lines with a right text in time {len(lost)} lost"
    )
    assert saved >= 0.35 and len(useful) >= SESSIONS
    assert len(lost) <= max(1, 0.03 * len(useful))
