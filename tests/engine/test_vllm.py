"""An engine that a vLLM server is: what is asked of it and how its answers are read, and where it is refused.

No vLLM runs here. The server of these tests holds its clients to a contract that was recorded from vLLM's own classes,
and where vLLM can be imported the record is compared with them.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.checkpoints import EMBEDDED
from dg_lsp.cli.doctor import check_fill
from dg_lsp.engine.completions import AT_ONCE, Served, answer_of
from dg_lsp.engine.http import EngineRefused, EngineStrange
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.runtime import address_of
from dg_lsp.engine.team import open_engine
from dg_lsp.engine.vllm import VllmEngine, _rows, _step
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.messages import Fill, Infill, Piece
from dg_lsp.model.canvas import anchors_from, lay_out, stack
from dg_lsp.model.checkpoint import Checkpoint, load_tokenizer
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule
from dg_lsp.model.tokens import tokenise
from dg_lsp.settings import Settings, SettingsError, override
from tests.engine import served
from tests.engine.served import with_engine
from tests.engine.vllm_contract import CANVAS, CHANGES, REQUEST, changed, contract, record, why_wrong
from tests.engine.vllm_server import FakeVllm
from tests.server.wire import Wire, notification
from tests.serving.team import certificate_in
from tests.waiting import until

ASKED = Infill(
    "def total(values):\n    result = ",
    "\n    return result\n",
    "python",
    "expression",
    session="file:///home/me/work/secret_name.py",
)
RIGHT = "sum(values)"


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    return load_tokenizer(EMBEDDED)


def test_a_gguf_file_has_no_tokenizer_of_a_vllm_server(tmp_path: Path) -> None:
    (tmp_path / "net.gguf").write_bytes(b"GGUF")
    for name in (str(tmp_path), str(tmp_path / "net.gguf")):
        settings = Settings(checkpoint=name, engine_url="vllm+http://127.0.0.1:1")
        with pytest.raises(
            EngineError, match=r"a GGUF file.*; name the checkpoint that the server runs"
        ) as told:
            VllmEngine(settings)
        assert "fetch the checkpoint again" not in str(told.value)


def with_server(
    server: FakeVllm, folder: Path, work: Callable[[VllmEngine], Awaitable[None]], **settings: Any
) -> None:
    with server.serving():
        with_engine(lambda: VllmEngine(server.settings(folder, **settings)), work)


async def fill_of(engine: Any, request: Infill = ASKED) -> Fill:
    return await served.answer_of(engine, request)


def test_the_record_is_what_vllm_says() -> None:
    pytest.importorskip("vllm", reason="vLLM is not here; its recorded contract stands for it")
    try:
        found = record()
    except ImportError as error:
        pytest.skip(f"vLLM is here, but not what it needs: {error}")
    assert found == contract()


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_the_server_of_these_tests_takes_what_vllm_takes(number: int) -> None:
    change, refusal = contract()["refused"][number]
    assert change == CHANGES[number]
    body = changed(change)
    # A seed for the noise is no field that is sent, so the server here refuses it as unknown.
    assert bool(why_wrong(body)) == bool(refusal), (why_wrong(body), refusal)


def asked_for(
    model: Checkpoint, lengths: tuple[int, ...], seed: int = 0, request: Infill = ASKED
) -> tuple[Any, Any, Any]:
    """The canvases of gaps of `lengths` slots: the sampler, the watched anchors, and their requests."""
    prefix, seam = tokenise(model, request)
    canvas = stack([lay_out(seam, length, CANVAS) for length in lengths])
    watch = anchors_from(canvas, [len(seam.head) + length for length in lengths], 12)
    sampler = AnchoredSampler(canvas, 0.1, SeededNoise(seed, model.vocabulary, canvas.tokens.device))
    return sampler, watch, _rows(prefix, sampler, Schedule(steps=12), watch, Served("0.33.0", "dg", 4096))


def test_a_request_is_vllms_own_but_for_the_numbers(model: Checkpoint) -> None:
    lengths = (1, 4, 20)
    _, _, rows = asked_for(model, lengths)
    _, _, others = asked_for(model, lengths, seed=1)
    for length, asked, again in zip(lengths, rows, others, strict=True):
        body = asked.body("dg")
        assert why_wrong(body) == ""
        assert body.keys() == REQUEST.keys() and body["vllm_xargs"].keys() == REQUEST["vllm_xargs"].keys()
        more = body["vllm_xargs"]
        row, pinned = more["diffusion_seed_canvas"], more["diffusion_pinned"]
        assert len(row) == more["diffusion_canvas_length"] == body["max_tokens"]
        kept = model.tokenizer.decode([row[slot] for slot in pinned], skip_special_tokens=True)
        assert kept == "    result = " + ASKED.suffix
        assert len(row) - len(pinned) == length
        # An answer tells the likelihood of each of them in every slot.
        assert 0 < len(body["logprob_token_ids"]) <= 4
        assert set(body["logprob_token_ids"]) <= {row[slot] for slot in pinned}
        # Another seed draws other noise into the free slots, and into no other.
        other = again.body("dg")["vllm_xargs"]["diffusion_seed_canvas"]
        assert {slot for slot in range(len(row)) if row[slot] != other[slot]}.isdisjoint(pinned)
        assert row != other


def test_what_vllm_makes_of_a_request_is_what_was_meant() -> None:
    """Whatever the server's own generation_config.json says: no temperature, no cut, no end before the canvas's."""
    made = contract()["sampling"]
    assert made["max_tokens"] == len(REQUEST["vllm_xargs"]["diffusion_seed_canvas"])
    assert (made["temperature"], made["top_p"], made["top_k"], made["min_p"]) == (1.0, 1.0, 0, 0.0)
    assert made["ignore_eos"] and made["eos"] is None and made["stop"] == []
    assert made["extra_args"] == REQUEST["vllm_xargs"] and made["asked"] == [9, 11]


def test_an_answer_of_vllm_is_read() -> None:
    answer = answer_of(contract()["answer"], 4)
    assert answer.tokens == (5, 8, 12, 11) and answer.best == (-0.5, -0.25, -1.0, -0.125)
    assert answer.watched[2]["token_id:9"] == -3.0
    strange: list[Any] = [{}, [], {"choices": []}, {"choices": [{"token_ids": None, "logprobs": {}}]}]
    for data in strange:
        with pytest.raises(EngineStrange, match="none of vLLM's completions"):
            answer_of(data, 4)
    with pytest.raises(EngineStrange, match="4 of 5 tokens"):
        answer_of(contract()["answer"], 5)


def test_pins_that_vllm_breaks_are_in_the_result_all_the_same(model: Checkpoint) -> None:
    right = model.encode(RIGHT)
    sampler, watch, _ = asked_for(model, (len(right), len(right)))
    row = sampler.canvas.tokens[0].tolist()
    free = [slot for slot, anchored in enumerate(sampler.canvas.anchored[0].tolist()) if not anchored]
    for slot, token in zip(free, right, strict=True):
        row[slot] = token
    broken = [token if slot in free else 77 for slot, token in enumerate(row)]
    data = json.loads(json.dumps(contract()["answer"]))
    logs = data["choices"][0]["logprobs"]
    logs["token_logprobs"] = [-0.1] * len(row)
    logs["top_logprobs"] = [{f"token_id:{t}": -0.3 for t in row}] * len(row)
    for tokens in (row, broken):
        data["choices"][0]["token_ids"] = tokens
        step = _step(1, sampler, [answer_of(data, len(tokens)), None], watch, model.eos)
        assert step.best[0].tolist() == row and step.finished.tolist() == [False, False]
        # The row that has not come holds no text, and the anchors.
        assert {int(step.best[1, slot]) for slot in free} == {model.eos}
        assert bool((step.best == sampler.canvas.tokens)[sampler.canvas.anchored].all())
        assert [round(float(step.entropy[0, slot]), 3) for slot in (0, free[0])] == [0.0, 0.1]
        first = [
            nats
            for nats, slot in zip(step.neg_log_likelihood.tolist(), watch.tolist(), strict=True)
            if slot < CANVAS
        ]
        assert len(step.neg_log_likelihood) == len(watch) and first == pytest.approx([0.3] * len(first))


def test_a_fill_is_the_text_of_the_length_that_fits(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)

    async def work(engine: VllmEngine) -> None:
        await engine.connect()
        assert engine.device == "vLLM 0.33.0"
        fill = await fill_of(engine)
        assert fill.text == RIGHT and not fill.refusal and fill.searched > 0
        steps = [body["vllm_xargs"]["diffusion_max_steps"] for body in server.bodies]
        assert steps == sorted(steps) and steps[0] < steps[-1]

    with_server(server, tmp_path, work)
    # Only the question whether it knows pins was refused.
    assert len(server.refused) == 1 and server.refused[0].startswith("diffusion_pinned")


def test_no_path_leaves_and_no_more_requests_than_vllm_works_on_are_under_way(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)
    server.pause = 0.02

    async def work(engine: VllmEngine) -> None:
        fills = await asyncio.gather(*(fill_of(engine, replace(ASKED, seed=n)) for n in range(3)))
        assert [fill.text for fill in fills] == [RIGHT] * 3
        assert 1 < server.most <= AT_ONCE

    with_server(server, tmp_path, work)
    assert not any(word in heard for heard in server.heard for word in (b"secret_name", b"/home", b"file:"))


@pytest.mark.parametrize(
    ("version", "words"),
    [("0.31.4", "is vLLM 0.31.4, and slots are pinned since 0.32"), ("dev", "is vLLM dev")],
)
def test_an_old_version_is_refused_before_anything_is_sent(version: str, words: str, tmp_path: Path) -> None:
    server = FakeVllm(RIGHT, version)

    async def work(engine: VllmEngine) -> None:
        for _ in range(2):
            with pytest.raises(EngineError, match=words):
                await fill_of(engine)

    with_server(server, tmp_path, work)
    assert not server.heard


def test_a_server_that_knows_no_pins_is_refused(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT, "0.40.0")
    server.pins = False

    async def work(engine: VllmEngine) -> None:
        with pytest.raises(EngineError, match="does not pin slots of a canvas of 256 for dg"):
            await fill_of(engine)

    with_server(server, tmp_path, work)
    assert not any(b"total" in heard for heard in server.heard)


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)
    server.tokenizer.add_tokens(["radius"])

    async def work(engine: VllmEngine) -> None:
        with pytest.raises(EngineError, match=r"serves dg, which has another tokenizer .*setting checkpoint"):
            await engine.connect()

    with_server(server, tmp_path, work)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_left_alone_for_as_long_as_it_says(status: int, tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)
    server.status, server.retry = status, "57"

    async def work(engine: VllmEngine) -> None:
        server.status = 200
        await engine.connect()
        server.status = status
        with pytest.raises(EngineBusy, match=f"is busy \\({status}\\); try again later"):
            await fill_of(engine)
        # Requests of the same canvas may have been on their way.
        heard = -1
        while heard < len(server.heard):
            heard = len(server.heard)
            await asyncio.sleep(0.5)
        with pytest.raises(EngineBusy, match=r"asked again in [3-5]\d s") as reported:
            await fill_of(engine)
        assert len(server.heard) == heard and 30 < reported.value.wait <= 57
        engine.server.backoff._not_before = time.monotonic()
        server.status = 200
        assert (await fill_of(engine)).text == RIGHT

    with_server(server, tmp_path, work)


def test_a_server_that_is_away_is_named_and_asked_ever_more_seldom(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)

    async def work(engine: VllmEngine) -> None:
        pauses = []
        for _ in range(8):
            engine.server.backoff._not_before = time.monotonic()
            with pytest.raises(EngineError, match="no vLLM server answers at http://127"):
                await fill_of(engine)
            pauses.append(round(engine.server.backoff.left))
        assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]

    with server.serving():
        settings = server.settings(tmp_path)

    async def whole() -> None:
        engine = await asyncio.to_thread(VllmEngine, settings)
        await work(engine)
        await engine.close()

    asyncio.run(asyncio.wait_for(whole(), 120))


def test_the_token_is_sent_and_a_wrong_one_is_reported(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)
    server.token = "right"
    file = tmp_path / "token"
    file.write_text("wrong\n")
    file.chmod(0o600)

    async def work(engine: VllmEngine) -> None:
        with pytest.raises(
            EngineRefused, match="does not accept your token; see the setting engineTokenFile"
        ):
            await fill_of(engine)
        assert not server.heard
        file.write_text("right\n")
        assert (await fill_of(engine)).text == RIGHT
        file.chmod(0o644)
        with pytest.raises(EngineRefused, match="chmod 600"):
            await fill_of(engine)

    with_server(server, tmp_path, work, engine_token_file=str(file))


def test_the_servers_certificate_is_checked(tmp_path: Path) -> None:
    server, files = FakeVllm(RIGHT), certificate_in(tmp_path)

    async def whole(**settings: Any) -> str:
        engine = await asyncio.to_thread(VllmEngine, server.settings(tmp_path, **settings))
        try:
            async with asyncio.timeout(60):
                return (await fill_of(engine)).text
        finally:
            await engine.close()

    with server.serving(files):
        assert server.url.startswith("https://")
        with pytest.raises(EngineRefused, match=r"not trusted here.*engineCa"):
            asyncio.run(whole())
        assert not server.heard
        assert asyncio.run(whole(engine_ca=str(files[0]))) == RIGHT


def test_several_texts_are_reported_the_best_first_and_each_once(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)

    async def work(engine: VllmEngine) -> None:
        fill = await fill_of(engine, replace(ASKED, alternatives=3))
        texts = (fill.text, *fill.others)
        assert texts[0] == RIGHT and len({*texts}) == len(texts) <= 3

    with_server(server, tmp_path, work)


def test_a_proxy_that_hides_a_part_of_the_server_is_reported(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)
    server.app.router.routes.pop(0)

    async def work(engine: VllmEngine) -> None:
        with pytest.raises(EngineError, match="has no /version; a proxy before vLLM must pass it on"):
            await fill_of(engine)

    with_server(server, tmp_path, work)


def test_a_cancel_closes_the_connections(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)
    server.pause = 30.0

    async def work(engine: VllmEngine) -> None:
        await engine.connect()

        async def first() -> None:
            async with aclosing(engine.infill(ASKED)) as events:
                await anext(events)
                while True:
                    await anext(events)

        task = asyncio.create_task(first())
        while server.live < AT_ONCE:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        # An answer would come after half a minute, and is none that was cancelled.
        await until(lambda: not server.live)
        assert server.cancelled == AT_ONCE
        assert engine.numbers()["queue"] == 0

    with_server(server, tmp_path, work)


def test_a_deadline_takes_what_has_come(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)
    server.pause = 30.0

    async def work(engine: VllmEngine) -> None:
        await engine.connect()
        fill = await fill_of(engine, replace(ASKED, deadline=0.3))
        assert fill.text == "" and fill.refusal == "the deadline passed before a candidate was ready"

    with_server(server, tmp_path, work)


def test_a_prefix_that_the_server_cannot_hold_is_refused_with_the_reason(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)
    server.longest = 300

    async def work(engine: VllmEngine) -> None:
        with pytest.raises(
            EngineError, match=r"the server takes 300 with a canvas of \d+; set prefixBytes lower"
        ):
            await fill_of(engine, replace(ASKED, prefix="x = 1\n" * 200 + ASKED.prefix))

    with_server(server, tmp_path, work)


def test_several_holes_are_filled_on_one_canvas(tmp_path: Path) -> None:
    server = FakeVllm(RIGHT)
    holes = replace(ASKED, between=("\n    other = ",), suffix="\n    return result\n")

    async def work(engine: VllmEngine) -> None:
        fill = await fill_of(engine, holes)
        assert len(fill.further) == 1

    with_server(server, tmp_path, work)


def test_half_a_word_becomes_one_of_the_words_in_sight(tmp_path: Path) -> None:
    server = FakeVllm("um(values)")
    half = replace(ASKED, prefix=ASKED.prefix + "s", endings=("um", "orted"))

    async def work(engine: VllmEngine) -> None:
        assert (await fill_of(engine, half)).text == "um(values)"
        server.right = "ummed(values)"
        fill = await fill_of(engine, half)
        assert fill.text == "" and "another word" in fill.refusal

    with_server(server, tmp_path, work)


def test_a_selection_starts_from_its_own_text(tmp_path: Path, model: Checkpoint) -> None:
    server = FakeVllm(RIGHT)

    async def work(engine: VllmEngine) -> None:
        assert (await fill_of(engine, replace(ASKED, kind="span", start=RIGHT, noised=0.0))).text == RIGHT
        row = server.bodies[0]["vllm_xargs"]
        free = [t for n, t in enumerate(row["diffusion_seed_canvas"]) if n not in row["diffusion_pinned"]]
        assert model.tokenizer.decode(free) == RIGHT

    with_server(server, tmp_path, work)


@pytest.mark.parametrize(
    "url", ["vllm+http://team.example", "vllm+https://me:pass@team.example", "vllm+ftp://x"]
)
def test_an_address_over_which_text_could_be_read_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="engine_url") as refused:
        override(Settings(), {"engineUrl": url})
    assert "pass@" not in str(refused.value)


def test_a_server_of_vllm_has_no_fallback() -> None:
    with pytest.raises(SettingsError, match="goes with a server of dg-lsp only"):
        override(Settings(), {"engineUrl": "vllm+https://team.example", "engineFallback": True})


def test_what_is_excluded_does_not_get_as_far_as_the_process(tmp_path: Path, runtime: Path) -> None:
    settings = override(Settings(), {"engineUrl": "vllm+http://127.0.0.1:1"})
    engine = open_engine(settings)
    assert isinstance(engine, ResidentEngine)

    async def work() -> None:
        for request in (
            replace(ASKED, session="file:///w/.env"),
            replace(ASKED, context=(Piece(".ssh/x", "k"),)),
        ):
            with pytest.raises(EngineError, match="excluded by"):
                await fill_of(engine, request)
        await engine.close()

    asyncio.run(asyncio.wait_for(work(), 120))
    assert not list(runtime.glob("*.log"))


def test_each_server_has_a_process_of_its_own(runtime: Path) -> None:
    here = Settings(checkpoint="scripted", device="cpu")
    one, other = (replace(here, engine_url=f"vllm+https://{name}.example") for name in ("a", "b"))
    assert len({address_of(settings).socket for settings in (here, one, other)}) == 3
    assert address_of(replace(here, engine_url="https://a.example")) == address_of(here)


def test_a_checkpoint_that_is_not_here_is_reported(tmp_path: Path) -> None:
    with pytest.raises(
        EngineError, match=r"no config\.json.*needs its config\.json and tokenizer\.json only"
    ):
        VllmEngine(replace(Settings(), checkpoint=str(tmp_path), engine_url="vllm+http://127.0.0.1:1"))


@pytest.mark.slow
def test_ghost_text_comes_from_the_server_that_engine_url_names(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real window and a real engine process, whose checkpoint has no weights; then the server goes away."""
    server, text = FakeVllm("sum(values)"), "def total(values):\n    return \n"
    with server.serving():
        settings = server.settings(tmp_path)
        monkeypatch.setenv("DG_LSP_ENGINE_URL", settings.engine_url)
        monkeypatch.setenv("DG_LSP_CHECKPOINT", settings.checkpoint)
        monkeypatch.setenv("DG_LSP_GHOST_DEADLINE", "0")
        with Wire([sys.executable, "-m", "dg_lsp", "--stdio"]) as wire:
            wire.initialize()
            for name in ("a.py", ".env"):
                document = {"uri": f"file:///w/{name}", "languageId": "python", "version": 1, "text": text}
                wire.send(notification("textDocument/didOpen", {"textDocument": document}))
            items = ghost(wire, 1, "file:///w/a.py")
            assert items, wire.ask("w", "dg-lsp/status")["result"]
            assert items[0]["insertText"] == "sum(values)"
            heard = len(server.heard)
            assert ghost(wire, 2, "file:///w/.env") == []
            assert len(server.heard) == heard
            status = wire.ask("s", "dg-lsp/status")["result"]
            assert status["device"] == "vLLM 0.33.0" and status["state"] == "ready"
            server.status = 503
            assert ghost(wire, 3, "file:///w/a.py", line="    return None if values else \n") == []
            assert "is busy (503); try again later" in wire.ask("t", "dg-lsp/status")["result"]["last"]["why"]


def ghost(wire: Wire, number: int, uri: str, line: str = "") -> list[Any]:
    """The ghost text at the end of the second line, which becomes `line` before."""
    if line:
        change = {
            "textDocument": {"uri": uri, "version": number},
            "contentChanges": [{"text": f"def total(values):\n{line}"}],
        }
        wire.send(notification("textDocument/didChange", change))
    place = {"line": 1, "character": len(line.strip("\n")) or 11}
    params = {"textDocument": {"uri": uri}, "position": place, "context": {"triggerKind": 1}}
    reply: dict[str, Any] = wire.ask(number, "textDocument/inlineCompletion", params)
    return reply["result"]["items"] if reply["result"] else []


def test_the_doctor_looks_for_no_weights(tmp_path: Path) -> None:
    found = check_fill(FakeVllm(RIGHT).settings(tmp_path, engine_url="vllm+http://127.0.0.1:1"))
    assert found.state == "ok" and "a server has the weights" in found.found
