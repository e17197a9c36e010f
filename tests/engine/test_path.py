"""The generators that a draft passes between the model and the screen: each adds one concern, and there are few."""

import asyncio
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dg_lsp.engine.local import LocalEngine
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.filling.fill import FillOptions, fill_gap
from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import Draft, Infill
from dg_lsp.serving.service import Service
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

DOCUMENT = Document("file:///area.py", "python", 1, b"def area(radius):\n    return \n")
SCRIPTED = Settings(checkpoint="scripted:5:1")


@contextmanager
def passing() -> Iterator[dict[str, int]]:
    """Collect the names of our generators that yield in the block, in this thread and in new ones.

    Each has the number of our generators that the Draft passes up to its thread's end, itself included.
    """
    seen = dict[str, int]()

    def depth(frame: FrameType | None) -> int:
        if frame is None:
            return 0
        ours = (
            "dg_lsp" in Path(frame.f_code.co_filename).parts and frame.f_code.co_flags & inspect.CO_GENERATOR
        )
        return bool(ours) + depth(frame.f_back)

    def note(frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if event != "return" or "dg_lsp" not in Path(code.co_filename).parts:
            return
        # A context manager made of a generator passes nothing on.
        if frame.f_back is not None and frame.f_back.f_code.co_filename.endswith("/contextlib.py"):
            return
        wrapped = type(value).__name__ == "async_generator_wrapped_value"
        if code.co_flags & inspect.CO_ASYNC_GENERATOR and wrapped:
            seen[code.co_qualname] = 1
        if code.co_flags & inspect.CO_GENERATOR and isinstance(value, Draft):
            seen[code.co_qualname] = max(seen.get(code.co_qualname, 0), depth(frame))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def test_in_the_server_a_draft_passes_two_generators(runtime: Path) -> None:
    async def work() -> dict[str, int]:
        engine, drafts = ResidentEngine(SCRIPTED), list[Draft]()
        await engine.start()
        gap = find_gap(DOCUMENT, len(DOCUMENT.data) - 1)
        with passing() as seen:
            await fill_gap(engine, DOCUMENT, gap, SCRIPTED, FillOptions(show=drafts.append))
        await engine.stop()
        await engine.close()
        assert drafts
        return seen

    found = asyncio.run(asyncio.wait_for(work(), 60))
    assert found.keys() == {"RemoteEngine.infill", "ResidentEngine.infill"}


@pytest.mark.slow
def test_in_the_engine_a_draft_passes_few_generators() -> None:
    async def work() -> dict[str, int]:
        service = Service("embedded", "digest")

        async def opened(_: Any) -> LocalEngine:
            return await asyncio.to_thread(LocalEngine.open, Settings(checkpoint="embedded", threads=1))

        async def keep(line: bytes) -> None:
            lines.append(line)

        lines = list[bytes]()
        request = Infill("def area(radius):\n    return ", "\n", "python", "rest_of_line", effort="low")
        with passing() as seen:
            await service.load(opened)
            await service.answer(request, keep)
        await service.close()
        assert lines
        return seen

    found = asyncio.run(work())
    ours = {name for name in found if name.startswith(("Service", "LocalEngine"))}
    assert ours == {"LocalEngine.infill"}
    # On the model thread, where one of these calls the next; with the two in the server they are eight at most.
    assert {"_fill_judged", "denoised"} <= found.keys() and max(found.values()) <= 8 - 2 - len(ours)
