"""An engine that a server of llama.cpp is: what is asked of it, how its answers are read, and where it is refused.

No llama.cpp runs here. The server of these tests answers in the words of a real one, which were recorded.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.engine.http import EngineRefused, EngineStrange
from dg_lsp.engine.llama import LlamaEngine, _written, body_for
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.team import open_engine
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.messages import Fill, Infill, Piece
from dg_lsp.serving.process import open_engine as hosted
from dg_lsp.serving.service import Service
from dg_lsp.settings import Settings, SettingsError, override
from tests.engine.llama_server import CONTRACT, FakeLlama, texts_of
from tests.engine.served import answer_of, with_engine
from tests.waiting import until

ASKED = Infill(
    "def total(values):\n    result = ",
    "\n    return result\n",
    "python",
    "rest_of_line",
    session="file:///home/me/work/secret_name.py",
)


def with_server(server: FakeLlama, work: Callable[[LlamaEngine], Awaitable[None]], **settings: Any) -> None:
    with server.serving():
        with_engine(lambda: LlamaEngine(server.settings(**settings)), work)


async def fill_of(engine: Any, request: Infill = ASKED) -> Fill:
    return await answer_of(engine, request)


@pytest.mark.parametrize(
    ("prefix", "head", "again"),
    [
        ("a = 1\nx = ", "x =", " "),
        ("a = 1\nx = su", "x =", " su"),
        ("a = 1\nprint(su", "print(", "su"),
        ("a = 1\nprint(", "print(", ""),
        ("a = 1\r\n    ", "   ", " "),
        ("a = 1\n\t", "\t", ""),
        ("a = 1\n", "", ""),
    ],
)
def test_what_is_a_part_of_the_next_token_is_written_again(prefix: str, head: str, again: str) -> None:
    body, found = body_for(replace(ASKED, prefix=prefix))
    assert (body["prompt"], found) == (head, again)
    assert body["input_prefix"] + head + again == prefix
    assert bool(again) == ("grammar" in body) and body.keys() <= {*CONTRACT["keys"]}


def test_a_text_with_quotes_is_quoted_in_the_grammar() -> None:
    request = replace(ASKED, prefix='x = "é', kind="string")
    assert body_for(request)[0]["grammar"] == 'root ::= "\\u00e9" [^\\x00]*'


def test_a_fill_is_judged_by_the_servers_log_probabilities() -> None:
    chances = list[float]()

    async def work(engine: LlamaEngine) -> None:
        await engine.connect()
        assert engine.device == "llama.cpp b0-unknown, qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
        fill = await fill_of(engine)
        assert fill.text == "sum(values)" and not fill.refusal and fill.source == "drafted"
        assert fill.chance is not None
        chances.append(fill.chance)

    for nats in (0.01, 1.5):
        server = FakeLlama(" sum(values)\n    x = 1", nats=nats)
        with_server(server, work)
        assert texts_of(server.bodies) == [ASKED.prefix[:-1]]
        assert not any(word in heard for heard in server.heard for word in (b"secret_name", b"/home"))
    assert chances[0] > 0.5 > chances[1]


def test_a_text_that_ends_within_a_line_and_other_files_are_told_of() -> None:
    inside = replace(
        ASKED, prefix="print(total(", suffix="))\n", kind="expression", context=(Piece("a/b.py", "x = 1\n"),)
    )
    server = FakeLlama("values")

    async def work(engine: LlamaEngine) -> None:
        assert (await fill_of(engine, inside)).text == "values"

    with_server(server, work)
    assert server.bodies[0]["input_extra"] == [{"filename": "a/b.py", "text": "x = 1\n"}]


def test_a_text_that_goes_on_after_the_gap_ends_where_the_text_after_it_begins() -> None:
    inside = replace(ASKED, prefix="print(area(3, ", suffix=")\n", kind="expression")

    async def work(engine: LlamaEngine) -> None:
        assert (await fill_of(engine, inside)).text.strip() == "4 )"

    with_server(FakeLlama(" 4 ) ) ]"), work)


def test_half_a_word_is_completed_and_no_other_word_is_taken() -> None:
    half = replace(ASKED, prefix=ASKED.prefix + "su", endings=("m", "mmary"))

    async def right(engine: LlamaEngine) -> None:
        assert (await fill_of(engine, half)).text == "m(values)"

    async def other(engine: LlamaEngine) -> None:
        fill = await fill_of(engine, half)
        assert fill.text == "" and fill.refusal

    with_server(FakeLlama(" sum(values)"), right)
    with_server(FakeLlama(" total(values)"), other)


def test_a_body_ends_where_its_function_does() -> None:
    body = Infill(
        "def largest(values):\n    ", "\n\nprint(largest([1]))\n", "python", "function_body", indent="    "
    )

    async def work(engine: LlamaEngine) -> None:
        fill = await fill_of(engine, body)
        assert fill.text.strip() == "return max(values)" and not fill.refusal

    with_server(FakeLlama("    return max(values)\n\n\ndef other():\n    pass\n"), work)


def test_several_texts_are_told_and_each_once() -> None:
    server = FakeLlama(" sum(values)", " sum(values)", " len(values)")

    async def work(engine: LlamaEngine) -> None:
        fill = await fill_of(engine, replace(ASKED, alternatives=3))
        assert {fill.text, *fill.others} == {"sum(values)", "len(values)"}

    with_server(server, work)
    assert [bool(body["temperature"]) for body in server.bodies] == [False, True, True]


def test_several_holes_are_filled_one_after_the_other() -> None:
    server = FakeLlama(" 1", " 2")
    holes = replace(ASKED, between=("\n    other = ",))

    async def work(engine: LlamaEngine) -> None:
        fill = await fill_of(engine, holes)
        assert (fill.text, *fill.further) == ("1", "2")

    with_server(server, work)
    assert texts_of(server.bodies)[1].endswith("result = 1\n    other =")


def test_a_selection_is_not_rewritten_and_the_reason_is_told() -> None:
    async def work(engine: LlamaEngine) -> None:
        assert "cannot rewrite a selection" in (await fill_of(engine, replace(ASKED, like="x"))).refusal

    with_server(FakeLlama("x"), work)


def test_a_cancel_closes_the_connection() -> None:
    server = FakeLlama(" sum" + " + 1" * 400)
    server.pause = 0.1

    async def work(engine: LlamaEngine) -> None:
        async with aclosing(engine.infill(ASKED)) as events:
            await anext(events)
        await until(lambda: server.cancelled)
        assert engine.numbers()["queue"] == 0

    with_server(server, work)


def test_a_deadline_ends_the_work_and_takes_what_has_come() -> None:
    server = FakeLlama(" sum" + " + 1" * 400)
    server.pause = 0.02

    async def work(engine: LlamaEngine) -> None:
        assert (await fill_of(engine, replace(ASKED, deadline=0.2))).reason == "deadline"

    with_server(server, work)


def test_a_server_that_is_away_or_loads_is_named_and_left_alone() -> None:
    server = FakeLlama(" x")
    server.status = 503

    async def loading(engine: LlamaEngine) -> None:
        with pytest.raises(EngineBusy, match=r"llama.cpp server at http://127\S+ is busy \(503\)"):
            await fill_of(engine)
        heard = len(server.heard)
        with pytest.raises(EngineBusy, match="asked again in 1 s"):
            await fill_of(engine)
        assert len(server.heard) == heard

    with_server(server, loading)
    settings = server.settings()

    async def away() -> None:
        engine = LlamaEngine(settings)
        with pytest.raises(EngineError, match=r"no llama.cpp server answers at http://127"):
            await fill_of(engine)
        await engine.close()

    asyncio.run(away())


def test_a_model_without_fill_in_the_middle_and_another_program_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = FakeLlama(" x")
    server.knows = False

    async def unable(engine: LlamaEngine) -> None:
        with pytest.raises(
            EngineError, match=r"instruct-q4_k_m.gguf at .* knows no fill-in-the-middle; serve"
        ):
            await engine.connect()

    with_server(server, unable)
    monkeypatch.setitem(CONTRACT, "props", {"name": "other"})

    async def strange(engine: LlamaEngine) -> None:
        with pytest.raises(EngineStrange, match=r"is no server of llama.cpp"):
            await engine.connect()

    with_server(FakeLlama(" x"), strange)


def test_a_server_that_is_changed_is_asked_again_and_each_reason_is_the_present_one() -> None:
    """An engine that found no server of llama.cpp said so for 18 s after there was one, and not what was wrong then."""
    server = FakeLlama(" sum")
    server.status = 404

    async def work(engine: LlamaEngine) -> None:
        service = Service("llama", "")

        async def open_it(_: object) -> LlamaEngine:
            with suppress(EngineError):
                await engine.connect()
            return engine

        await service.load(open_it)
        assert (service.status().state, service.failed) == ("failed", False)
        for change, why in (
            ({}, r"refused /props \(404\)"),
            ({"status": 200, "knows": False}, "knows no fill-in-the-middle"),
            ({"status": 503}, "is busy"),
        ):
            vars(server).update(change)
            with pytest.raises(EngineError, match=why):
                await fill_of(engine)
            status = service.status()
            assert status.state == "failed" and re.search(why, status.why)
        vars(server).update(status=200, knows=True)
        await asyncio.sleep(1.1)  # the pause that a busy server gets
        assert (await fill_of(engine)).text == "sum"
        assert service.status().state == "ready" and "instruct" in service.status().device

    with_server(server, work)


def test_a_process_for_a_server_that_is_away_stays_and_answers_as_soon_as_it_is_there() -> None:
    server = FakeLlama(" sum")
    server.status = 404

    async def run() -> None:
        engine = await hosted(server.settings(), lambda _: None)
        assert isinstance(engine, LlamaEngine) and "404" in engine.why
        server.status = 200
        assert (await fill_of(engine)).text == "sum" and not engine.why
        await engine.close()

    with server.serving():
        asyncio.run(run())


def test_the_token_is_sent_and_a_wrong_one_is_told_of(tmp_path: Path) -> None:
    server, file = FakeLlama(" x"), tmp_path / "token"
    server.token = "right"
    file.write_text("wrong\n")
    file.chmod(0o600)

    async def work(engine: LlamaEngine) -> None:
        with pytest.raises(EngineRefused, match="does not accept your token"):
            await engine.connect()
        file.write_text("right\n")
        await engine.connect()

    with_server(server, work, engine_token_file=str(file))


@pytest.mark.parametrize("line", ["data: [1]", "data: {}", "data: x", 'error: {"code": 500}'])
def test_an_event_that_is_none_of_llama_cpps_is_refused(line: str) -> None:
    with pytest.raises(EngineStrange):
        list(_written(iter([line])))


def test_its_address_makes_a_process_of_this_machine_and_has_no_fallback() -> None:
    settings = override(Settings(), {"engineUrl": "llama+http://127.0.0.1:8012"})
    assert isinstance(open_engine(settings), ResidentEngine)
    with pytest.raises(SettingsError, match="goes with a server of dg-lsp only"):
        override(Settings(), {"engineUrl": "llama+http://127.0.0.1:8012", "engineFallback": True})
    with pytest.raises(SettingsError, match="must begin with https"):
        override(Settings(), {"engineUrl": "llama+http://gpu.example:8012"})
