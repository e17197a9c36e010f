"""Windows whose fills come from a team's server: a real one, over TLS; while it is there, and once it is away."""

import asyncio
import random
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.engine.team import TeamEngine
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Fill, Infill
from dg_lsp.serving.tokens import make_token
from tests.server.wire import Wire, notification
from tests.serving.team import Team, server_process

pytestmark = pytest.mark.slow
EDITORS, FILLS = 32, 12


def ghost(wire: Wire, msg_id: Any, uri: str) -> list[Any]:
    params = {
        "textDocument": {"uri": uri},
        "position": {"line": 0, "character": 4},
        "context": {"triggerKind": 1},
    }
    reply: dict[str, Any] = wire.ask(msg_id, "textDocument/inlineCompletion", params)
    return reply["result"]["items"]  # type: ignore[no-any-return]


def test_a_window_is_served_and_told_why_it_is_not(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    with server_process(tmp_path) as (team, process):
        for name, value in team.own.items():
            monkeypatch.setenv(f"DG_LSP_{name.upper()}", value)
        with Wire([sys.executable, "-m", "dg_lsp", "--stdio"]) as wire:
            wire.initialize()
            for name in ("a.py", ".env"):
                document = {
                    "uri": f"file:///w/{name}",
                    "languageId": "python",
                    "version": 1,
                    "text": "x = \n",
                }
                wire.send(notification("textDocument/didOpen", {"textDocument": document}))
            item = ghost(wire, 1, "file:///w/a.py")[0]
            assert item["insertText"].strip() == "None"
            assert ghost(wire, 2, "file:///w/.env") == []
            status = wire.ask("s", "dg-lsp/status")["result"]
            assert status["fills"] == 1 and status["process"] == process.pid
            process.kill()
            process.wait()
            change = {
                "textDocument": {"uri": "file:///w/a.py", "version": 2},
                "contentChanges": [{"text": "y = \n"}],
            }
            wire.send(notification("textDocument/didChange", change))
            for number in (3, 4):
                assert ghost(wire, number, "file:///w/a.py") == []
                told = wire.ask(f"t{number}", "dg-lsp/status")["result"]
                assert told["state"] == "failed" and "no engine answers at https://127" in told["why"]
                assert "no engine answers" in told["last"]["why"]
    # Nothing of it was filled here.
    assert not list(runtime.glob("*.sock"))


def test_no_answer_of_many_editors_is_lost_or_crossed_also_over_a_restart(tmp_path: Path) -> None:
    """Each asks for a word of its own, and cancels a third of its requests; the server is killed in the middle."""
    tokens = [tmp_path / f"token{number}" for number in range(EDITORS)]
    for number, path in enumerate(tokens):
        path.write_text(make_token(tmp_path / "tokens", f"editor{number}"))
        path.chmod(0o600)

    async def editor(team: Team, number: int, go_on: asyncio.Event) -> tuple[int, int]:
        """How many fills came, and how many requests failed aloud."""
        dice, filled, failed = random.Random(number), 0, 0
        engine = TeamEngine(replace(team.settings(), engine_token_file=str(tokens[number])))
        for turn in range(FILLS):
            word = f"word_{number}_{turn}"
            request = Infill(
                "x = w", "\n", "python", "rest_of_line", endings=(word,), session=f"file:///{number}"
            )
            while True:
                try:
                    if dice.random() < 0.3:
                        async with aclosing(engine.infill(request)) as events:
                            await anext(events)
                        continue
                    found = [event async for event in engine.infill(request)]
                except EngineError:
                    failed += 1
                    await asyncio.sleep(0.1)
                    continue
                assert isinstance(found[-1], Fill) and found[-1].text == word
                assert not any(isinstance(event, Fill) for event in found[:-1])
                filled += 1
                break
            if turn == FILLS // 2:
                go_on.set()
        await engine.close()
        return filled, failed

    async def all_of(team: Team, server: Any) -> list[tuple[int, int]]:
        half = asyncio.Event()
        editors = [asyncio.create_task(editor(team, number, half)) for number in range(EDITORS)]
        await half.wait()
        server.kill()
        server.wait()
        port = int(team.url.rpartition(":")[2])
        again = server_process(tmp_path, "scripted:3:10", port)
        # In a thread, so that the editors go on asking while no server is there.
        await asyncio.to_thread(again.__enter__)
        try:
            return await asyncio.wait_for(asyncio.gather(*editors), 400)
        finally:
            again.__exit__(None, None, None)

    with server_process(tmp_path, "scripted:3:10") as (team, server):
        found = asyncio.run(all_of(team, server))
    assert [filled for filled, _ in found] == [FILLS] * EDITORS
    # The restart was noticed, and nobody stormed the server meanwhile.
    assert sum(failed for _, failed in found) > 0
