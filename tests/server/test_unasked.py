"""Who writes unasked text: the smaller model while the other comes too late, and nothing is lost by a change."""

import asyncio
import math
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.checkpoints import CODER, CODER_LITTLE, SMALL, Measured, cores_are_held, note_measured, pick
from dg_lsp.engine import memory
from dg_lsp.engine.choice import Smaller, smaller_than
from dg_lsp.engine.client import Pace
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.engine import EngineError
from dg_lsp.filling.fill import FillOptions
from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import OFF, Draft, Fill, Infill, Status
from dg_lsp.server import unasked
from dg_lsp.server.session import Session
from dg_lsp.server.settings import Sources
from dg_lsp.server.unasked import is_to_change
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import AUTO, Settings
from tests.server.editor import Editor
from tests.waiting import until

URI = "file:///w/shop.py"
LITTLE = Smaller(CODER_LITTLE, 0.7, 1.5, "")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with both models, and memory for both."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(memory, "free", lambda _: (4_000_000_000, "this machine"))
    monkeypatch.setattr(unasked, "cores_are_held", lambda: False)
    fetched(tmp_path, CODER, 1.5)
    fetched(tmp_path, CODER_LITTLE, 0.7)
    return tmp_path


def fetched(data: Path, name: str, seconds: float, needs: int = 1_300_000_000) -> None:
    (data / "dg-lsp" / name).mkdir(parents=True, exist_ok=True)
    note_measured(name, Measured(seconds, needs))


@pytest.mark.parametrize(
    ("usual", "smaller", "change"),
    [
        (0.0, None, False),
        (1.9, None, False),
        (2.1, None, True),
        (math.inf, None, True),
        # Nothing is known yet, or it is too late all the same: the larger one would be later.
        (0.0, LITTLE, False),
        (math.inf, LITTLE, False),
        (2.1, LITTLE, False),
        # The larger one is expected to take 2.1 s; 1.8, which is hardly more than alone; 1.1.
        (1.0, LITTLE, False),
        (0.85, LITTLE, True),
        (0.5, LITTLE, True),
        # On a quick machine it is clear from 1.2 s on.
        (0.5, Smaller(CODER_LITTLE, 0.1, 0.3, ""), False),
        (0.39, Smaller(CODER_LITTLE, 0.1, 0.3, ""), True),
    ],
)
def test_a_change_is_due_when_text_is_too_late_and_when_it_would_clearly_not_be(
    usual: float, smaller: Smaller | None, change: bool
) -> None:
    assert is_to_change(usual, smaller) is change


def test_the_smaller_model_is_quicker_and_reads_the_same_requests(here: Path) -> None:
    settings = Settings(checkpoint=CODER)
    assert smaller_than(settings) == LITTLE
    # Hardly quicker; of another kind; itself the smallest; none of ours.
    fetched(here, CODER_LITTLE, 1.3)
    fetched(here, SMALL, 0.2)
    assert smaller_than(settings) is None
    assert smaller_than(Settings(checkpoint=SMALL)) is None
    assert smaller_than(Settings(checkpoint="/some/folder")) is None
    fetched(here, CODER_LITTLE, 0.7, needs=5_000_000_000)
    found = smaller_than(settings)
    assert found is not None and found.too_large == "needs 5.0 GB of memory, of which 4.0 GB are free"
    fetched(here, CODER_LITTLE, 0.7)
    # Somebody wants the one that was picked.
    fetched(here, CODER, 9.0)
    pick(CODER)
    assert smaller_than(settings) is None


@pytest.mark.parametrize(
    ("sources", "auto"),
    [
        (Sources(Settings(), auto=True), True),
        (Sources(Settings()), False),
        (Sources(Settings(), {"checkpoint": CODER}, auto=True), False),
        (Sources(Settings(), {"checkpoint": None}, auto=True), True),
        (Sources(Settings(), {"checkpoint": AUTO}), True),
        (Sources(Settings(), auto=True, picked=CODER), False),
    ],
)
def test_a_named_or_picked_checkpoint_is_the_users_choice(sources: Sources, auto: bool) -> None:
    assert sources.is_auto is auto


class Fake(ScriptedEngine, ResidentEngine):
    """An engine in a process of its own. seconds: what its pace notes of a fill. fails: it answers no request."""

    def __init__(self, settings: Settings, tell: Any) -> None:
        ScriptedEngine.__init__(self, Fill("1"))
        self.name, self.told = settings.checkpoint, tell
        self.pace, self.state, self.alive = Pace(self.name), "ready", True
        self.seconds, self.fails, self.gate = 0.1, False, asyncio.Event()
        self.gate.set()

    @property
    def lives(self) -> bool:
        return self.alive

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        self.requests.append(request)
        yield Draft(1, (), 0.0)
        if self.fails:
            raise EngineError("it died")
        fill = Fill("1", milliseconds=self.seconds * 1000)
        self.pace.note(fill, request.priority)
        yield fill

    async def start(self) -> Status:
        await self.gate.wait()
        if self.state == "failed":
            raise EngineError("no memory")
        return await self.status()

    async def status(self) -> Status:
        return Status("ready", 1.0, checkpoint=self.name)


class Window:
    """A session under AUTO with two fake engines, by checkpoint, and a clock. told: the statuses for the client."""

    def __init__(self, *, auto: bool = True) -> None:
        self.opened, self.told, self.now = dict[str, Fake](), list[Status](), 0.0
        self.hold = asyncio.Event()
        self.hold.set()
        self.failing = False
        workspace = Workspace(Settings(checkpoint=CODER))
        workspace.documents.open(URI, "python", 1, "x = \n")
        self.session = Session(workspace, self.open, self.told.append, auto=auto)
        self.session.unasked._clock = lambda: self.now
        self.workspace = workspace

    def open(self, settings: Settings, tell: Any) -> Fake:
        engine = self.opened[settings.checkpoint] = Fake(settings, tell)
        if settings.checkpoint == CODER_LITTLE:
            engine.gate, engine.state = self.hold, "failed" if self.failing else "ready"
        return engine

    async def fill(self, priority: Any = "ghost", times: int = 1, *, asked: bool = False) -> None:
        document = self.workspace.document(URI)
        for _ in range(times):
            wanted = FillOptions(priority=priority, unasked=not asked)
            outcome = await self.session.fill(document, find_gap(document, 4), Settings(), wanted)
            assert outcome.edit is not None

    async def settled(self) -> None:
        await until(lambda: self.session.unasked._changing is None)

    @property
    def counts(self) -> tuple[int, int]:
        return tuple(len(self.opened[n].requests) if n in self.opened else 0 for n in (CODER, CODER_LITTLE))  # type: ignore[return-value]


async def slow(window: Window, seconds: float = 3.0) -> None:
    """Let ghost text take long, until the smaller model is asked for."""
    await window.fill(asked=True)
    window.opened[CODER].seconds = seconds
    window.opened[CODER].pace.forget()
    await window.fill(times=3)
    await asyncio.sleep(0)


def test_a_quick_model_writes_all_and_no_second_engine_is_opened() -> None:
    async def work() -> None:
        window = Window()
        await window.fill(times=9)
        await window.settled()
        assert [*window.opened] == [CODER] and window.session.choice == ""

    asyncio.run(work())


def test_the_old_model_answers_until_the_new_one_is_loaded_and_then_only_what_is_asked_for() -> None:
    async def work() -> None:
        window = Window()
        window.hold.clear()
        await slow(window)
        await until(lambda: CODER_LITTLE in window.opened)
        # The other one is being loaded, and nothing waits for it.
        await window.fill(times=2)
        assert window.counts == (6, 0)
        assert window.session.choice.startswith("coder-0.5b is being loaded for ghost text")
        window.hold.set()
        await window.settled()
        assert window.told[-1].checkpoint == CODER_LITTLE
        await window.fill(times=2)
        await window.fill("ahead")
        await window.fill("fill", asked=True)
        await window.fill(asked=True)
        assert window.counts == (8, 3)
        assert window.session.choice == (
            "coder-0.5b writes ghost text now: with coder it usually takes 3.0 s (1.5 s alone); coder fills what "
            "you ask for"
        )
        offer = window.session.offers.shown(URI)
        assert offer is not None and (await window.session.status()) == Status(
            "ready", 1.0, checkpoint=CODER_LITTLE
        )
        notes = {model.name: model.note for model in await window.session.models()}
        assert all("coder-0.5b writes ghost text now" in notes[name] for name in (CODER, CODER_LITTLE))
        # What is asked for may take long, and that is not the state of ghost text.
        window.opened[CODER].told(Status("slow", 1.0, "take another", checkpoint=CODER))
        assert (window.told[-1].state, window.told[-1].why) == ("ready", "")
        await window.session.close()
        assert window.opened[CODER_LITTLE].closed

    asyncio.run(work())


def test_text_of_the_smaller_model_counts_as_its_own_and_stays_valid() -> None:
    async def work() -> None:
        window = Window()
        await slow(window)
        kept = window.session.offers.shown(URI)
        await window.settled()
        assert window.session.offers.shown(URI) is kept and kept is not None and kept.model == ""
        await window.fill()
        newer = window.session.offers.shown(URI)
        assert newer is not None and newer.model == CODER_LITTLE

    asyncio.run(work())


def test_text_that_the_user_does_not_wait_for_is_too_late_too() -> None:
    async def work() -> None:
        window = Window()
        await window.fill(asked=True)
        pace = window.opened[CODER].pace
        pace.forget()
        for _ in range(3):
            pace.gave_up(1.5, "ghost")
        await window.fill()
        await window.settled()
        await window.fill()
        assert window.counts[1] == 1
        assert "with coder it usually takes longer than you wait (1.5 s alone);" in window.session.choice

    asyncio.run(work())


def test_ghost_text_that_is_off_is_too_late_at_once_and_its_own_reason_is_said() -> None:
    async def work() -> None:
        window = Window()
        await window.fill(asked=True)
        why = f"{OFF} here the shortest takes 3.1 s, and ghostDeadline leaves 2.0 s; take another model"
        window.opened[CODER].pace.note(Fill("", refusal=why), "ghost")
        assert window.opened[CODER].pace.usual == math.inf
        window.session.unasked.noted(window.opened[CODER], Settings(checkpoint=CODER))
        await window.settled()
        assert window.session.unasked.writes
        assert window.session.choice == (
            "coder-0.5b writes ghost text now: with coder here the shortest takes 3.1 s, and ghostDeadline leaves "
            "2.0 s; coder fills what you ask for"
        )

    asyncio.run(work())


@pytest.mark.parametrize(("load", "held"), [(2.0, False), (3.0, True)])
def test_other_programs_are_named_where_more_wants_to_run_than_an_engine_could_use(
    load: float, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(unasked, "cores_are_held", cores_are_held)

    async def work() -> None:
        window = Window()
        await slow(window, 2.1)
        await window.settled()
        assert ("because other programs hold the cores" in window.session.choice) is held

    asyncio.run(work())


def test_the_better_model_returns_when_the_machine_is_free_again_and_changes_get_rarer() -> None:
    async def work() -> None:
        window, waits = Window(), list[float]()
        await window.fill(asked=True)
        for _ in range(5):
            window.opened[CODER].seconds, began = 3.0, window.now
            while not window.session.unasked.writes:
                await window.fill()
                await window.settled()
                window.now += 30.0
            waits.append(window.now - began)
            # While the machine is busy it stays, however long.
            window.opened[CODER_LITTLE].seconds = 1.4
            window.now += 10_000.0
            await window.fill(times=9)
            await window.settled()
            assert window.session.unasked.writes
            window.opened[CODER].seconds, window.opened[CODER_LITTLE].seconds = 0.1, 0.5
            await window.fill(times=9)
            await window.settled()
            # What was slow then is forgotten.
            assert window.opened[CODER].pace.usual < 1.0
            assert not window.session.unasked.writes and window.session.choice == ""
        assert waits == sorted(waits) and waits[1] >= 60.0 and 3600.0 <= waits[-1] < 3700.0

    asyncio.run(work())


@pytest.mark.parametrize("alive", [False, True])
def test_a_smaller_engine_that_dies_loses_no_request(alive: bool) -> None:
    async def work() -> None:
        window = Window()
        await slow(window)
        await window.settled()
        little = window.opened[CODER_LITTLE]
        little.fails, little.alive = True, alive
        before = window.counts
        window.opened[CODER].seconds = 0.1
        await window.fill(times=2)
        assert window.counts == (before[0] + 2, before[1] + alive)
        assert not window.session.unasked.writes
        # The window of another one continues with it.
        await window.session.close()

    asyncio.run(work())


def test_one_that_cannot_be_loaded_or_does_not_fit_is_said_and_the_other_goes_on(here: Path) -> None:
    async def work() -> None:
        window = Window()
        window.failing = True
        await slow(window)
        await window.settled()
        await window.fill()
        assert "coder-0.5b would be quicker, but it failed: no memory" in window.session.choice
        # Quick again, there is nothing to say.
        window.opened[CODER].seconds = 0.1
        await window.fill(times=9)
        assert window.session.choice == ""
        fetched(here, CODER_LITTLE, 0.7, needs=5_000_000_000)
        tight = Window()
        await slow(tight)
        await tight.settled()
        await tight.fill(times=3)
        assert [*tight.opened] == [CODER]
        assert tight.session.choice == (
            "coder writes ghost text: with coder it usually takes 3.0 s (1.5 s alone); coder-0.5b would be "
            "quicker, but needs 5.0 GB of memory, of which 4.0 GB are free"
        )

    asyncio.run(work())


def test_the_users_choice_is_left_alone() -> None:
    async def work() -> None:
        window = Window(auto=False)
        await slow(window)
        await window.settled()
        await window.fill(times=3)
        assert [*window.opened] == [CODER] and window.session.choice == ""
        # So is one that is picked later.
        other = Window()
        await slow(other)
        await other.settled()
        await other.session.use(CODER_LITTLE)
        assert other.workspace.settings.checkpoint == CODER_LITTLE and not other.session.unasked.writes
        await slow_again(other)

    async def slow_again(window: Window) -> None:
        await window.fill(asked=True)
        window.opened[CODER_LITTLE].seconds = 9.0
        await window.fill(times=9)
        await window.settled()
        assert not window.session.unasked.writes

    asyncio.run(work())


@pytest.mark.slow
def test_in_a_server_ghost_text_goes_to_the_smaller_engine_and_a_body_to_the_other(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unasked, "FAST_ENOUGH", 0.2)
    names = {CODER: "scripted:4:100", CODER_LITTLE: "scripted:1:1"}
    opened = dict[str, ResidentEngine]()

    def open_engine(settings: Settings, tell: Any) -> ResidentEngine:
        scripted = replace(settings, checkpoint=names[settings.checkpoint])
        return opened.setdefault(settings.checkpoint, ResidentEngine(scripted, tell))

    async def work() -> None:
        editor = Editor(Settings(checkpoint=AUTO), open_engine)
        await editor.start(experimental={"dgLsp": {"status": True}})
        lines = 0

        async def pause() -> list[Any]:
            nonlocal lines
            lines += 1
            typed = [(at(lines), "\n"), (at(lines), "y=")]
            changes = [{"range": {"start": place, "end": place}, "text": text} for place, text in typed]
            about = {"textDocument": {"uri": URI, "version": lines + 1}, "contentChanges": changes}
            await editor.tell("textDocument/didChange", about)
            asked = {"textDocument": {"uri": URI}, "position": at(lines, 2), "context": {"triggerKind": 2}}
            return list((await editor.ask("textDocument/inlineCompletion", asked))["items"])

        document = {"uri": URI, "languageId": "python", "version": 1, "text": "x = 1\n"}
        await editor.tell("textDocument/didOpen", {"textDocument": document})
        assert all([await pause() for _ in range(3)])
        await until(lambda: editor.status.get("choice", "").startswith("coder-0.5b writes ghost text now"))
        before = (await opened[CODER].status() or Status("failed")).fills
        assert all([await pause() for _ in range(3)])
        told = await editor.ask("dg-lsp/status", {"uri": URI})
        assert told["checkpoint"] == names[CODER_LITTLE] and told["state"] == "ready"
        # A body is asked for.
        place = {"uri": URI, "position": at(lines, 2), "kind": "rest_of_line", "apply": False}
        filled = await editor.ask(
            "workspace/executeCommand", {"command": "dg-lsp.fill", "arguments": [place]}
        )
        assert filled["edit"] and (await opened[CODER].status() or Status("failed")).fills == before + 1
        # The engine ends while one types: the next text comes from the other.
        assert await opened[CODER_LITTLE].stop()
        assert len(await pause()) == 1
        assert (await opened[CODER].status() or Status("failed")).fills == before + 2
        await editor.close()

    asyncio.run(work())


def at(line: int, column: int = 0) -> dict[str, int]:
    return {"line": line, "character": column}
