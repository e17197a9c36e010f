"""The counts of how ghost text was used: exact, without text and paths, in one file of several servers."""

import asyncio
import json
import random
import socket
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from dg_lsp.checkpoints import EMBEDDED
from dg_lsp.cli.main import main
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.offers import Offer
from dg_lsp.messages import Fill
from dg_lsp.server import counts, uses
from dg_lsp.server.app import make_context
from dg_lsp.server.counts import Key
from dg_lsp.server.handlers import documents
from dg_lsp.server.handlers.context import Context
from dg_lsp.server.handlers.feedback import used
from dg_lsp.server.handlers.status import status
from dg_lsp.server.rpc.protocol import Server
from dg_lsp.settings import Settings
from tests.server.wire import Wire, notification
from tests.waiting import until

SECRET = "sesame_and_poppy"
URI = f"file:///home/ann/{SECRET}/shop.py"
TEXT = f"{SECRET} = 1\nx = \n"
AT = len(TEXT) - 1
Work = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the file of counts."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("DG_LSP_STATISTICS", "on")
    return tmp_path / "dg-lsp"


@pytest.fixture
def fast(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let half a second be long enough to count a text as kept."""
    monkeypatch.setattr(uses, "KEPT", 0.2)
    monkeypatch.setattr(uses, "_EVERY", 0.05)


def window(**settings: Any) -> Context:
    server = Server("dg-lsp", "1")
    given = Settings(checkpoint=EMBEDDED, **settings)
    context = make_context(server, given, lambda *_: ScriptedEngine(Fill("1")))
    list(server.protocol.lsp_initialize(types.InitializeParams(types.ClientCapabilities())))
    context.workspace.documents.open(URI, "python", 1, TEXT)
    return context


def show(context: Context, text: str, chance: float | None = None) -> None:
    """Let a text be shown at the end of the document."""
    document = context.workspace.document(URI)
    offer = Offer(URI, document.data, AT, AT, (text,), Fill(text, chance=chance))
    context.session.offers.show(offer)


def holds(context: Context, after: str, version: int = 2) -> None:
    """Let `behind` be the text after `x = `."""
    context.workspace.documents.change(URI, version, [(None, TEXT[:AT] + after + "\n")])


def use(kind: str, characters: int = 1, uri: str = URI) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "kind": kind, "characters": characters}


def counted(kinds: Counter[str] | None = None) -> Counter[str]:
    found = Counter[str]()
    for key, n in counts.read()[0].items():
        assert (key.language, key.model) == ("python", EMBEDDED)
        found[key.kind] += n
    return found


def test_counts_of_two_servers_equal_what_500_keys_did(state: Path, runtime: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    chooses, expected = random.Random(7), Counter[Key]()
    languages = {f"file:///home/ann/{SECRET}/{name}": name for name in ("python", "rust", "go")}
    with (
        Wire([sys.executable, "-m", "dg_lsp", "--stdio"]) as one,
        Wire([sys.executable, "-m", "dg_lsp", "--stdio"]) as two,
    ):
        for wire in (one, two):
            wire.initialize()
            for uri, language in languages.items():
                document = {"uri": uri, "languageId": language, "version": 1, "text": TEXT}
                wire.send(notification("textDocument/didOpen", {"textDocument": document}))
        for _ in range(500):
            wire, uri = chooses.choice([one, two]), chooses.choice([*languages])
            kind, characters = chooses.choice(counts.REPORTED), chooses.randrange(1, 40)
            wire.send(notification("dg-lsp/used", use(kind, characters, uri)))
            expected[Key(languages[uri], "of a folder", kind)] += 1
            if kind in ("tab", "word", "line"):
                expected[Key(languages[uri], "of a folder", "taken")] += 1
                expected[Key(languages[uri], "of a folder", "characters")] += characters
        for wire in (one, two):
            wire.ask("end", "shutdown")
    assert counts.read()[0] == expected
    assert [path.name for path in sorted(state.iterdir())] == ["use.json", "use.lock"]
    content = (state / "use.json").read_text()
    assert SECRET not in content and "/" not in content and "x = " not in content


def test_counting_and_showing_open_no_socket(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a socket was opened")

    async def work() -> None:
        monkeypatch.setattr(socket.socket, "__init__", refuse)
        context = window()
        for kind in counts.REPORTED:
            await used(context, use(kind))
        await context.uses.write()

    try:
        asyncio.run(work())
        assert main(["stats", "--fit"]) == 0
    finally:
        monkeypatch.undo()
    assert "python" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kinds", "after", "later", "expected"),
    [
        (["tab"], "load(1)", "load(1)", {"tab": 1, "kept": 1, "saved": 1}),
        (["tab"], "load(1)", "load(1) + 2", {"tab": 1, "kept": 1, "saved": 1}),
        (["tab"], "load(1)", "load(2)", {"tab": 1, "changed": 1, "changed before saving": 1}),
        (["tab"], "load(1)", "", {"tab": 1, "changed": 1, "changed before saving": 1}),
        # Of a text that was taken by words, the part that was taken counts.
        (["word", "word"], "load(", "load(9)", {"word": 2, "kept": 1, "saved": 1}),
        (["line"], "load(1)", "", {"line": 1, "changed": 1, "changed before saving": 1}),
    ],
)
def test_a_taken_text_counts_as_kept_if_it_is_still_there_later_and_when_saved(
    fast: None, kinds: list[str], after: str, later: str, expected: dict[str, int]
) -> None:
    async def work() -> None:
        context = window()
        show(context, "load(1)")
        holds(context, after)
        for kind in kinds:
            await used(context, use(kind, 7 // len(kinds)))
        holds(context, later, 3)
        saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(URI))
        await documents.did_save(context, saved)
        # Only the first save after it counts.
        await documents.did_save(context, saved)
        await asyncio.sleep(0.4)
        await context.uses.write()

    asyncio.run(work())
    assert counted() == {"taken": 1, "characters": 7 // len(kinds) * len(kinds), **expected}


def test_the_change_may_come_after_its_report(fast: None) -> None:
    async def work() -> None:
        context = window()
        show(context, "load(1)")
        await used(context, use("tab", 7))
        holds(context, "load(1)")
        await asyncio.sleep(0.4)
        await context.uses.write()

    asyncio.run(work())
    assert counted()["kept"] == 1


def test_a_closed_document_is_watched_no_more(fast: None) -> None:
    async def work() -> None:
        context = window()
        show(context, "load(1)")
        holds(context, "load(1)")
        await used(context, use("tab", 7))
        context.uses.closed(URI)
        await asyncio.sleep(0.4)
        await context.uses.write()

    asyncio.run(work())
    assert counted() == {"tab": 1, "taken": 1, "characters": 7}


def test_of_many_taken_texts_only_the_last_ones_are_watched(
    fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uses, "_MOST", 1)

    async def work() -> None:
        context = window()
        for version, text in enumerate(("load(1)", "load(2)"), 2):
            show(context, text)
            holds(context, text, version)
            await used(context, use("tab", 7))
        await until(lambda: not context.uses._watched)
        await context.uses.write()

    asyncio.run(work())
    assert counted() == {"tab": 2, "taken": 2, "characters": 14, "kept": 1}


def test_chances_are_counted_in_bins(state: Path) -> None:
    async def work() -> None:
        context = window()
        for chance in (0.26, 0.29, 1.0, None):
            show(context, "load(1)", chance)
            await used(context, use("shown"))
        await used(context, use("typed"))
        show(context, "load(1)", 0.26)
        for _ in range(2):
            await used(context, use("word"))
        await context.uses.write()

    asyncio.run(work())
    assert counted() == {
        **{"shown": 4, "shown 5": 2, "shown 19": 1, "typed": 1},
        **{"word": 2, "taken": 1, "characters": 2, "taken 5": 1},
    }


def test_a_burst_of_uses_is_one_write(fast: None, monkeypatch: pytest.MonkeyPatch) -> None:
    writes, add = list[int](), counts.add

    def counting(more: counts.Counts) -> counts.Counts:
        writes.append(more.total())
        return add(more)

    monkeypatch.setattr(counts, "add", counting)
    monkeypatch.setattr(uses, "_EVERY", 2.0)

    async def work() -> None:
        context = window()
        for _ in range(300):
            await used(context, use("shown"))
        assert not writes
        await until(lambda: writes)

    asyncio.run(work())
    assert writes == [300] and counted() == {"shown": 300}


def test_what_cannot_be_written_is_kept_for_the_next_time(state: Path, tmp_path: Path) -> None:
    state.write_text("a file in the place of the folder")

    async def work() -> None:
        context = window()
        await used(context, use("shown"))
        await context.uses.write()
        state.unlink()
        await context.uses.write()

    asyncio.run(work())
    assert counted() == {"shown": 1}


def test_nothing_is_counted_where_that_is_switched_off(state: Path) -> None:
    async def work() -> None:
        context = window(statistics=False)
        await used(context, use("shown"))
        await context.uses.write()
        assert (await status(context))["use"] == ""

    asyncio.run(work())
    assert not state.exists()


def test_no_workspace_switches_the_counting_on() -> None:
    (wrong,) = window(statistics=False).session.configure({}, {"statistics": True})
    assert "the workspace cannot set 'statistics'" in wrong


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"textDocument": {"uri": URI}},
        use("stolen"),
        {**use("tab"), "characters": "many"},
        use("tab", uri="file:///other.py"),
    ],
)
def test_what_is_no_use_is_ignored(state: Path, params: Any) -> None:
    async def work() -> None:
        context = window()
        await used(context, params)
        await context.uses.write()

    asyncio.run(work())
    assert not state.exists()


def test_the_status_has_a_line(state: Path) -> None:
    async def work() -> None:
        context = window()
        assert (await status(context))["use"] == ""
        for kind in ("shown", "shown", "shown", "tab", "dismissed"):
            await used(context, use(kind))
        assert (await status(context))["use"] == "3 shown, 1 taken (33 %), 1 dismissed"

    asyncio.run(work())


@pytest.mark.parametrize(
    "content", ["", "[]", '{"counts": 3}', '{"since": "x", "counts": {"python": {"m": {"shown": "a"}}}}']
)
def test_a_damaged_file_counts_for_nothing(state: Path, content: str) -> None:
    state.mkdir()
    (state / "use.json").write_text(content)
    assert counts.read()[0] == {}
    assert counts.add(Counter({Key("go", "m", "shown"): 2})) == {Key("go", "m", "shown"): 2}


def binned(**taken: tuple[int, int]) -> counts.Counts:
    found = counts.Counts()
    for name, (shown, of) in taken.items():
        found[Key("go", "m", f"shown {name[1:]}")], found[Key("go", "m", f"taken {name[1:]}")] = shown, of
    return found


@pytest.mark.parametrize(
    ("taken", "value"),
    [
        ({"b5": (50, 20)}, None),
        # Already the lowest is taken often enough: show less likely ones, too.
        ({"b5": (50, 20), "b10": (60, 50)}, 0.2),
        # Texts with a chance below 0.5 are taken too rarely.
        ({"b5": (80, 8), "b8": (40, 6), "b10": (60, 50)}, 0.5),
        # A bin that is better by luck does not pull those below it in.
        ({"b5": (80, 8), "b6": (4, 3), "b7": (80, 9), "b12": (60, 50)}, 0.6),
        ({"b5": (80, 1), "b19": (80, 2)}, 0.95),
    ],
)
def test_a_fit_is_the_lowest_chance_that_is_taken_often_enough(
    taken: dict[str, tuple[int, int]], value: float | None
) -> None:
    found = counts.fit(binned(**taken), 0.25)
    assert (found and found[0]) == value


def test_the_table_has_a_row_for_each_language_and_model(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stats"]) == 1 and "Nothing was counted yet" in capsys.readouterr().out
    kinds = {
        "shown": 10,
        "tab": 3,
        "word": 2,
        "taken": 4,
        "typed": 1,
        "dismissed": 2,
        "characters": 90,
        "kept": 3,
    }
    counts.add(Counter({Key("go", "coder", kind): n for kind, n in kinds.items()}))
    counts.add(Counter({Key("python", "small", "shown"): 30}))
    assert main(["stats"]) == 0
    head, titles, first, second, total, off = capsys.readouterr().out.splitlines()
    assert str(state) in head and titles.split()[:3] == ["language", "model", "shown"]
    assert first.split() == ["python", "small", "30", "0", "(0", "%)", "-", "0", "0", "0", "-", "-"]
    assert (
        second.split("  ")[0] == "go"
        and "5 (50 %)" in second
        and "3 tab, 2 word" in second
        and "100 %" in second
    )
    assert total.startswith("all") and "40" in total and "statistics" in off
    assert main(["stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["go"]["coder"] == kinds
