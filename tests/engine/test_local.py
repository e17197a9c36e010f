"""The engine in this process: one thread, closing cancels, errors are the host's own."""

import asyncio
import gc
import itertools
import json
import os
import platform
import re
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from dg_lsp.budget import within
from dg_lsp.checkpoints import find_directory
from dg_lsp.engine import local, memory
from dg_lsp.engine.local import LocalEngine, with_second_try
from dg_lsp.engine.memory import loading, of_cgroup
from dg_lsp.filling.engine import EngineBroken, EngineError
from dg_lsp.messages import OFF, Draft, Fill, Infill
from dg_lsp.model import costs
from dg_lsp.model.costs import Costs
from dg_lsp.model.networks import decoder
from dg_lsp.settings import Settings
from dg_lsp.source.language import load_language
from tests.model.gguf_files import source, tensors_of, write
from tests.model.tiny import save_checkpoint
from tests.waiting import until

REQUEST = Infill("x = ", "\n", "python", "rest_of_line", effort="low")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    path = tmp_path_factory.mktemp("bytes")
    save_checkpoint(path)
    return Settings(checkpoint=str(path), device="cpu", threads=1)


def test_a_checkpoint_that_cannot_be_used_is_an_engine_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="has no config"):
        LocalEngine.open(Settings(checkpoint=str(tmp_path)))


def test_no_garbage_is_collected_while_a_model_is_loaded(settings: Settings, tmp_path: Path) -> None:
    states = list[bool]()
    assert gc.isenabled()
    engine = LocalEngine.open(settings, lambda _: states.append(gc.isenabled()))
    assert states and not any(states) and gc.isenabled()
    asyncio.run(engine.close())
    with pytest.raises(EngineError):
        LocalEngine.open(Settings(checkpoint=str(tmp_path)))
    assert gc.isenabled()


@pytest.mark.parametrize(("again", "off"), [(0.0, False), (60.0, True)])
def test_a_model_that_was_measured_on_a_busy_machine_is_measured_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, again: float, off: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ghost = replace(REQUEST, deadline=2.0, confidence=0.25, priority="ghost")
    with monkeypatch.context() as busy:
        busy.setattr("dg_lsp.model.costs.measure", lambda _: Costs(1.0, 9.0, 60.0))
        engine = LocalEngine.open(settings)
    monkeypatch.setattr(local, "_AGAIN", again)

    async def refusal() -> str:
        events = [event async for event in engine.infill(ghost)]
        await engine.close()
        assert isinstance(events[-1], Fill)
        return events[-1].refusal

    assert asyncio.run(refusal()).startswith(OFF) == off


def test_the_costs_of_an_earlier_start_are_taken_until_a_pause_measures_them(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("dg_lsp.model.costs._LEAST", 0.0)
    monkeypatch.setattr(local, "_PAUSE", 0.0)
    measured, real = list[object](), costs.measuring

    def counted(network: Any) -> Generator[None, None, object]:
        found = yield from real(network)
        measured.append(found)
        return found

    monkeypatch.setattr(costs, "measuring", counted)

    async def asked(engine: LocalEngine) -> None:
        for _ in range(2):
            assert [event async for event in engine.infill(REQUEST)]
            assert engine._reading is not None
            await engine._reading
        await engine.close()

    (place,) = opened_with(settings, measured, asked, (1, 1), tmp_path)
    assert opened_with(settings, measured, asked, (1, 2), tmp_path) == {place}
    assert costs.kept_costs(place) == measured[-1]
    # Costs that say that nothing can come in time are measured at once.
    costs.keep_costs(place, Costs(1.0, 9.0, 60.0))
    engine = LocalEngine.open(settings)
    ghost = replace(REQUEST, deadline=2.0, confidence=0.25, priority="ghost")

    async def refusal() -> str:
        *_, fill = [event async for event in engine.infill(ghost)]
        await engine.close()
        assert isinstance(fill, Fill)
        return fill.refusal

    assert not asyncio.run(refusal()).startswith(OFF) and len(measured) == 3


def opened_with(
    settings: Settings,
    measured: list[object],
    work: Callable[[LocalEngine], Coroutine[Any, Any, None]],
    wanted: tuple[int, int],
    cache: Path,
) -> set[str]:
    """Open an engine and do `work` with it; the costs are measured as often as `wanted` before and after that.

    Returns the places whose costs are kept then.
    """
    engine = LocalEngine.open(settings)
    assert len(measured) == wanted[0]
    asyncio.run(work(engine))
    assert len(measured) == wanted[1]
    return {*json.loads((cache / "dg-lsp" / "costs.json").read_text())}


def test_a_checkpoint_that_does_not_fit_is_refused_before_it_is_loaded(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the encoded prefixes may take counts, too.
    for free, cache in ((1000, 1), (300 << 20, 300)):
        monkeypatch.setattr("dg_lsp.engine.memory.free", lambda _, free=free: (free, "this machine"))
        needed = r"needs 0\.\d GiB and this machine has .* free.*--checkpoint.*cpu\+disk:8"
        with pytest.raises(EngineError, match=needed):
            LocalEngine.open(replace(settings, cache_megabytes=cache))
    # Split as the message says it loads.
    asyncio.run(LocalEngine.open(replace(settings, device="cpu+disk:2")).close())


def test_two_load_one_after_the_other(settings: Settings, runtime: Path) -> None:
    words = list[str]()
    with ThreadPoolExecutor(1) as pool:
        with loading():
            opening = pool.submit(LocalEngine.open, settings, words.append)
            while "waiting for another engine that loads" not in words and not opening.done():
                time.sleep(0.01)
            time.sleep(0.2)
            assert not opening.done() and not any(word.startswith("checking") for word in words)
        asyncio.run(opening.result(120).close())


def test_where_no_lock_can_be_held_it_is_loaded_without(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path / "file"))
    asyncio.run(LocalEngine.open(settings).close())


def test_drafts_come_and_then_one_fill(settings: Settings) -> None:
    async def work() -> list[Draft | Fill]:
        engine = LocalEngine.open(settings)
        try:
            return [event async for event in engine.infill(REQUEST)]
        finally:
            await engine.close()

    events = asyncio.run(work())
    assert [type(e) for e in events[:-1]] == [Draft] * (len(events) - 1)
    assert isinstance(events[-1], Fill)


def test_the_event_loop_goes_on_while_the_model_works(settings: Settings) -> None:
    async def work() -> int:
        engine, turns = LocalEngine.open(settings), 0

        async def beat() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.001)
                turns += 1

        heart = asyncio.create_task(beat())
        async for _ in engine.infill(REQUEST):
            pass
        heart.cancel()
        await engine.close()
        return turns

    assert asyncio.run(work()) > 5


def test_a_request_after_a_cancelled_one_is_answered(settings: Settings) -> None:
    async def work() -> Fill:
        engine = LocalEngine.open(settings)
        for _ in range(5):
            async with aclosing(engine.infill(REQUEST)) as events:
                await anext(events)
        task = asyncio.create_task(anext(engine.infill(REQUEST)))
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        last = [event async for event in engine.infill(REQUEST)][-1]
        await engine.close()
        assert isinstance(last, Fill)
        return last

    assert asyncio.run(asyncio.wait_for(work(), 120))


BODY = Infill("def f(a):\n", "\n", "python", "function_body", "    ", effort="high", session="d")


async def _read(engine: LocalEngine, request: Infill, seen: list[str], name: str) -> Fill:
    """The Fill for `request`; `name` is written into `seen` at each event."""
    async for event in engine.infill(request):
        seen.append(name)
        if isinstance(event, Fill):
            return event
    raise AssertionError("no fill")


def test_ghost_text_waits_for_at_most_two_steps_of_a_bot(settings: Settings) -> None:
    async def work() -> list[str]:
        engine, seen = LocalEngine.open(settings), list[str]()
        bot = asyncio.create_task(_read(engine, BODY, seen, "bot"))
        while len(seen) < 3:
            await asyncio.sleep(0)
        seen.clear()
        ghost = replace(REQUEST, priority="ghost", session="d")
        await _read(engine, ghost, seen, "ghost")
        assert not bot.done(), "the bot must still be at work, or the test shows nothing"
        await bot
        await engine.close()
        return seen

    seen = asyncio.run(asyncio.wait_for(work(), 120))
    first, last = seen.index("ghost"), len(seen) - 1 - seen[::-1].index("ghost")
    assert first <= 2 and "bot" not in seen[first:last] and seen[last + 1 :]


@pytest.mark.parametrize(
    ("deadline", "others", "filled"), [(0.05, True, False), (60.0, True, True), (0.0, False, True)]
)
def test_what_was_too_late_before_its_first_turn_is_answered_with_that_reason(
    deadline: float, others: bool, filled: bool
) -> None:
    def run(request: Infill) -> Iterator[Draft | Fill]:
        for number in range(4):
            time.sleep(0.05)
            yield Draft(number, (), 0.0)
        yield Fill("1")

    async def work() -> Fill:
        engine = LocalEngine(ThreadPoolExecutor(1), run, "cpu", weights=52 * 10**9)
        # That of the released model may take long, and that of a small one does not.
        assert engine.first_step > 500 and LocalEngine(ThreadPoolExecutor(1), run, "cpu").first_step < 30
        ghost = replace(REQUEST, priority="ghost", deadline=deadline)
        # The newest begins; the last one still waits when the turn of the late one comes.
        newer, last = replace(REQUEST, priority="ghost", session="newer"), replace(REQUEST, session="last")
        asked = [ghost, newer, last] if others else [ghost]
        fills = await asyncio.gather(*(_read(engine, one, [], "") for one in asked))
        await engine.close()
        return fills[0]

    fill = asyncio.run(work())
    assert (fill.text == "1") is filled
    if not filled:
        assert "busy with other fills until the deadline" in fill.refusal and fill.milliseconds > 50


def test_fills_that_take_turns_in_one_document_are_what_each_is_alone(settings: Settings) -> None:
    body = replace(BODY, effort="low", window="one")
    other = replace(body, prefix="import os\n\n" * 30 + body.prefix, window="two")
    requests = [body, other, replace(REQUEST, window="three")]

    async def work() -> tuple[list[Fill], list[Fill], list[str]]:
        engine, seen = LocalEngine.open(settings), list[str]()
        alone = [await _read(engine, request, [], "") for request in requests]
        tasks = [_read(engine, request, seen, str(n)) for n, request in enumerate(requests)]
        together = await asyncio.gather(*tasks)
        await engine.close()
        return alone, list(together), seen

    alone, together, seen = asyncio.run(asyncio.wait_for(work(), 240))
    assert [replace(f, milliseconds=0) for f in together] == [replace(f, milliseconds=0) for f in alone]
    changes = sum(one != two for one, two in itertools.pairwise(seen))
    assert changes > 5, "they must have taken turns, or the test shows nothing"


def test_a_place_between_two_layers_at_which_a_pass_can_be_left_is_no_pass() -> None:
    def run(_: Infill) -> Iterator[Draft | Fill]:
        for pause in (True, True, False, True, False):
            yield Draft(0, (), 0.0, pause)
        yield Fill("x")

    async def passes() -> int:
        engine = LocalEngine(ThreadPoolExecutor(1), run, "cpu")
        events = [event async for event in engine.infill(Infill("", "", "python", "statement"))]
        assert len(events) == 6, "a client can close the stream at each"
        await engine.close()
        return engine.numbers()["passes"]

    assert asyncio.run(passes()) == 2


def test_the_rest_of_a_prompt_is_read_in_a_pause_and_a_request_ends_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = list[str]()

    def run(request: Infill) -> Iterator[Draft | Fill]:
        assert request.prefix != "c" or read[-1] == "closed", "the cache is free again"
        yield Fill(request.prefix)

    def rest(request: Infill) -> Iterator[Draft | Fill]:
        try:
            for _ in range(50_000):
                time.sleep(0.002)
                read.append(request.prefix)
                yield Draft(1, (), 0.0)
        finally:
            read.append("closed")

    monkeypatch.setattr(local, "_PAUSE", 3600.0)
    engine = LocalEngine(ThreadPoolExecutor(1), run, "cpu")
    engine._read = rest

    async def asked(name: str) -> None:
        events = [event async for event in engine.infill(Infill(name, "", "python", "statement"))]
        assert events == [Fill(name)]

    async def whole() -> None:
        await asked("a")
        # The pause after `a` has begun, and the next request comes before it is over, however slow the machine is.
        reading = engine._reading
        assert reading is not None
        await asyncio.sleep(0)
        monkeypatch.setattr(local, "_PAUSE", 0.05)
        await asked("b")
        assert reading.cancelled()
        await until(lambda: read.count("b") > 3)
        assert "a" not in read, "somebody asked before the pause was over"
        await asked("c")
        await until(lambda: "closed" in read)
        assert read.count("b") < 50_000
        await engine.close()

    asyncio.run(whole())


def test_closing_the_engine_ends_its_thread(settings: Settings) -> None:
    before = set(threading.enumerate())
    engine = LocalEngine.open(settings)
    (own,) = set(threading.enumerate()) - before
    asyncio.run(engine.close())
    assert not own.is_alive()


def test_the_code_kept_for_shapes_is_bounded_unless_the_environment_says_otherwise(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    asyncio.run(LocalEngine.open(settings).close())
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "32"


def test_numbers_near_zero_count_as_zero_in_all_threads_that_compute_for_the_model(
    settings: Settings,
) -> None:
    engine = LocalEngine.open(settings)

    def left() -> int:
        return int((torch.full((1 << 20,), 1e-40) * 1.5).count_nonzero())

    able = torch.set_flush_denormal(True)  # not on every processor
    torch.set_flush_denormal(False)
    assert engine._thread.submit(left).result() == (0 if able else 1 << 20)
    asyncio.run(engine.close())


def test_memory_that_loading_freed_is_given_back(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, given = [False], list[bool]()

    @contextmanager
    def noted(progress: Callable[[str], None]) -> Iterator[None]:
        with loading(progress):
            yield
        loaded[0] = True

    monkeypatch.setattr(memory, "loading", noted)
    monkeypatch.setattr(local, "_give_back", lambda: given.append(loaded[0]))
    engine = LocalEngine.open(settings)
    asyncio.run(engine.close())
    assert given == [True]


def test_memory_that_was_freed_is_given_back_and_a_library_without_a_way_to_do_so_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resident() -> int:
        return psutil.Process().memory_info().rss

    # Blocks too small to be given back one by one, and some between them that stay.
    blocks = [bytes(60_000) for _ in range(3000)]
    kept, before = blocks[::50], resident()
    blocks.clear()
    local._give_back()
    if platform.libc_ver()[0] == "glibc":
        assert resident() < before - 100_000_000
    assert len(kept) == 60
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    local._give_back()


def beginning(
    run: Callable[[Infill], Iterator[Draft | Fill]],
) -> Callable[[Infill], AbstractContextManager[Iterator[Draft | Fill]]]:
    """The steps of `run` as a context."""

    @contextmanager
    def begin(request: Infill) -> Iterator[Iterator[Draft | Fill]]:
        yield run(request)

    return begin


def test_where_memory_ends_a_smaller_request_is_tried_once() -> None:
    asked, freed = list[Infill](), list[int]()

    def run(request: Infill) -> Iterator[Draft | Fill]:
        asked.append(request)
        yield Draft(0, (), 0.0)
        if len(request.prefix) > 60:
            raise RuntimeError(
                "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory"
            )
        yield Fill("x")

    tried = with_second_try(beginning(run), lambda: freed.append(1))
    long = replace(REQUEST, prefix="a = 1\n" * 15 + "x = ", effort="high", alternatives=3)
    *_, fill = tried(long)
    assert fill == Fill("x") and len(freed) == 1
    assert long.prefix.endswith(asked[1].prefix) and asked[1].prefix.endswith("\nx = ")
    assert (asked[1].effort, asked[1].alternatives) == ("low", 1)
    with pytest.raises(EngineError, match="out of memory, also with less text; set prefixBytes"):
        list(tried(replace(long, prefix="a = 1\n" * 60 + "x = ")))
    assert len(asked) == 4
    with pytest.raises(RuntimeError, match="shape"):
        list(with_second_try(beginning(_broken), lambda: None)(REQUEST))


@pytest.mark.parametrize("most", [8, 0])
def test_an_engine_that_runs_out_of_memory_tries_less_once_and_says_so(
    settings: Settings, most: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault in the decoder, for batches of more than `most` canvases."""
    rows, real = list[int](), decoder.decode

    def short(network: Any, cache: Any, embedded: Any, soft: Any, view: Any) -> Any:
        rows.append(len(embedded))
        if len(embedded) > most:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes")
        return real(network, cache, embedded, soft, view)

    async def work() -> Fill:
        engine = LocalEngine.open(settings)
        monkeypatch.setattr(decoder, "decode", short)
        body = replace(BODY, prefix="a = 1\n\n" * 20 + BODY.prefix)
        try:
            *_, last = [event async for event in engine.infill(body)]
            assert isinstance(last, Fill)
            return last
        finally:
            await engine.close()

    if not most:
        with pytest.raises(EngineError, match="out of memory, also with less text"):
            asyncio.run(work())
        return
    fill = asyncio.run(work())
    assert rows[0] > most and max(rows[1:]) <= most
    assert fill.text or "memory ran out, so it was tried at effort low" in fill.refusal
    assert re.search(r"out of memory; trying once more at effort low with \d+ of 150 characters", caplog.text)


def _broken(_: Infill) -> Iterator[Draft | Fill]:
    raise RuntimeError("a wrong shape")


class AcceleratorError(RuntimeError):
    """As torch's, whose name is all that is looked at."""


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("could not create a primitive"),
        UserWarning("mkldnn_matmul failed, switching to baddbmm:could not create a primitive"),
        AcceleratorError("CUDA error: illegal access"),
    ],
)
def test_where_the_libraries_do_not_recover_the_engine_is_broken(error: Exception) -> None:
    def run(_: Infill) -> Iterator[Draft | Fill]:
        raise error

    with pytest.raises(EngineBroken, match="the next request starts it"):
        list(with_second_try(beginning(run), lambda: None)(REQUEST))


def test_a_container_s_limit_counts_as_well_as_the_machine(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/a/b\n")
    inner = tmp_path / "fs" / "a" / "b"
    inner.mkdir(parents=True)
    assert of_cgroup(tmp_path / "fs", tmp_path / "own") is None
    for folder, most, used in ((inner, "max", 10), (inner.parent, "1000", 700)):
        (folder / "memory.max").write_text(most)
        (folder / "memory.current").write_text(str(used))
        (folder / "memory.stat").write_text("anon 1\ninactive_file 50\n")
    assert of_cgroup(tmp_path / "fs", tmp_path / "own") == 350
    assert memory.total(tmp_path / "fs", tmp_path / "own") == 1000
    assert memory.total(tmp_path / "fs", tmp_path / "none") > 1000
    assert of_cgroup(tmp_path / "fs", tmp_path / "none") is None


def test_a_text_that_takes_too_long_to_check_is_refused_with_the_reason() -> None:
    request = Infill("const a = 1;\n" * 5_000, "", "typescript", "rest_of_line")

    def run(asked: Infill) -> Iterator[Draft | Fill]:
        yield Draft(1, (), 0.0)
        with within(1e-4):
            load_language(asked.language).parse(asked.prefix.encode())

    async def ask() -> list[Draft | Fill]:
        engine = LocalEngine(ThreadPoolExecutor(1), run, "cpu")
        try:
            async with aclosing(engine.infill(request)) as events:
                return [event async for event in events]
        finally:
            await engine.close()

    *_, fill = asyncio.run(ask())
    assert isinstance(fill, Fill) and "takes too long" in fill.refusal


def test_free_cores_are_counted_during_the_imports_so_that_all_of_them_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said, before, real = list[str](), list[list[str]](), memory.Cores

    def begin(most: int) -> Any:
        before.append([*said])
        return real(most)

    monkeypatch.setattr(local, "Cores", begin)
    engine = LocalEngine.open(Settings(checkpoint="embedded", device="cpu"), said.append)
    asyncio.run(engine.close())
    assert before == [[]] and "importing torch" in said


@pytest.mark.parametrize(
    ("device", "megabytes"),
    [("auto", 4096), ("cuda:1", 4096), ("cuda+cpu:3", 4096), ("cpu", 192), ("cpu+disk:8", 192)],
)
def test_prefixes_get_the_memory_of_the_place_of_the_first_layers(
    device: str, megabytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert local.cache_budget(Settings(device=device)) == megabytes << 20


def test_the_free_memory_is_that_of_the_device_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device=None: ({None: 7, "cuda:1": 5}[device], 9))
    assert memory.free("cuda:1") == (5, "the GPU cuda:1")
    assert memory.free("cuda") == memory.free("auto") == (7, "the GPU")


def test_what_is_spread_over_all_cards_may_take_the_memory_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda card: ((7, 5)[card], 9))
    for limit in (100, 30):
        monkeypatch.setattr(memory, "of_cgroup", lambda limit=limit: limit)
        assert memory.free("balanced") == (12 + limit, "this machine with its GPUs")


def test_a_gguf_file_is_read_in_eight_bits_where_that_is_faster_and_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "net.gguf", tensors_of(source("qwen2"), "qwen2"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for in_bytes, total, wanted in ((True, 1 << 40, 8), (True, 1 << 10, 16), (False, 1 << 40, 16)):
        monkeypatch.setattr("dg_lsp.model.networks.eight.multiplies_bytes", lambda found=in_bytes: found)
        monkeypatch.setattr(memory, "total", lambda found=total: found)
        for device in ("cpu", "auto"):
            assert memory.bits_for(path, device, 16) == wanted
            assert memory.needed(path, device) == memory.needed(path, device, bits=wanted)
        assert memory.bits_for(path, "cpu", 4) == 4
        assert memory.bits_for(find_directory("embedded"), "cpu", 16) == 16
    assert memory.needed(path, "cpu", bits=8) > memory.needed(path, "cpu", bits=4)


def test_a_network_needs_as_much_on_a_cpu_that_is_chosen_as_on_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = find_directory("embedded")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    alone = memory.needed(path, "cpu")
    assert memory.needed(path, "auto") == alone
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert memory.needed(path, "auto") < alone == memory.needed(path, "cpu")


def test_the_memory_on_a_cpu_is_that_of_this_process() -> None:
    assert 10 << 20 < local._memory("cpu") < 100 << 30
