"""By hand: ghost text while a line is typed, by dg-lsp and by llama.cpp as llama.vim drives it, side by side.

    python -m benchmarks.race NAME FOLDER --checkpoint CHECKPOINT --llama http://127.0.0.1:8012 [--gaps 6] [--keys 20]

NAME and FOLDER: a list of holes and its files (benchmarks/unseen). Both serve the same GGUF file with two threads:
`llama-server -m FILE -t 2 --port 8012`. Of each gap, a rest of a line, the line is typed a key at a time, and both are
asked after each key, in turn. The first key of a gap finds nothing of its file read before.

llama.vim's requests (2026): 256 lines before and 64 after, `prompt` is the current line up to the cursor, at most half
a second for reading and one for writing, and the cache is kept. Its first line is compared, ours is the text shown.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from benchmarks.unseen.fetch import list_path
from dg_lsp.bench import lists
from dg_lsp.bench.holes import Case
from dg_lsp.context import prompt
from dg_lsp.engine.local import LocalEngine
from dg_lsp.messages import Fill, Infill
from dg_lsp.settings import Settings

BEFORE, BEHIND = 256, 64  # lines
_LEAST = 3  # characters left of the line: shorter texts are typed sooner than read


@dataclass(slots=True)
class Runner:
    """The answers of one of the two. cold, warm: seconds of the first key of a gap, and of the others."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    shown: list[bool] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)

    def note(self, seconds: float, text: str, wanted: str, *, first: bool) -> None:
        """Add an answer to a key after which `wanted` follows; an empty `text` shows nothing."""
        (self.cold if first else self.warm).append(seconds)
        self.shown.append(bool(text))
        self.right.append(bool(text) and text.strip() == wanted.strip())

    def report(self, name: str) -> str:
        """One line of a table."""
        right = [good for good, shown in zip(self.right, self.shown, strict=True) if shown]
        drawn = np.random.default_rng(0).choice(self.right, (2000, len(self.right))).mean(1)
        low, high = np.percentile(drawn, (2.5, 97.5))
        late = sorted(self.warm)[int(0.95 * (len(self.warm) - 1))]
        return (
            f"| {name} | {statistics.median(self.cold):.2f} | {statistics.median(self.warm):.2f} / {late:.2f} | "
            f"{statistics.mean(self.right):.0%} ({low:.0%} to {high:.0%}) of {len(self.right)} | "
            f"{statistics.mean(self.shown):.0%} | {statistics.mean(right or [False]):.0%} |"
        )


def keys_of(case: Case, most: int) -> list[tuple[Infill, str]]:
    """The request after each of the first `most` keys of the gap's line, and the rest of the line."""
    data = case.document.data
    begin = max(data.rfind(b"\n", 0, case.gap.start), -1) + 1
    end = next((n for n in range(case.gap.start, len(data)) if data[n : n + 1] == b"\n"), len(data))
    whole = prompt.build(case.document, case.gap, Settings())
    line = (data[begin : case.gap.start] + case.truth.encode()).decode().partition("\n")[0]
    assert case.gap.end == end, "the gap is the rest of its line"
    above = whole.prefix[: len(whole.prefix) - len(data[begin : case.gap.start].decode())]
    indent = len(line) - len(line.lstrip())
    typed = range(indent, min(indent + most, len(line) - _LEAST + 1))
    return [(replace(whole, prefix=above + line[:count]), line[count:]) for count in typed]


async def ours(engine: LocalEngine, request: Infill) -> tuple[float, str]:
    """The seconds of an answer, and the text that is shown."""
    began, settings = time.perf_counter(), Settings()
    asked = replace(
        request, deadline=settings.ghost_deadline, confidence=settings.confidence, priority="ghost"
    )
    fill = Fill("")
    async for event in engine.infill(asked):
        if isinstance(event, Fill):
            fill = event
    sure = fill.chance is None or fill.chance >= settings.confidence
    return time.perf_counter() - began, fill.text if sure and not fill.refusal else ""


def theirs(client: httpx2.Client, request: Infill) -> tuple[float, str]:
    """The same of llama.cpp, as llama.vim asks it."""
    *above, head = request.prefix.split("\n")
    body: dict[str, Any] = {
        "id_slot": 0,
        "input_prefix": "".join(f"{line}\n" for line in above[-BEFORE:]),
        "input_suffix": "\n".join(request.suffix.split("\n")[:BEHIND]),
        "input_extra": [],
        "prompt": head,
        "n_predict": 128,
        "stop": [],
        "n_indent": len(head) - len(head.lstrip()),
        "top_k": 40,
        "top_p": 0.90,
        "samplers": ["top_k", "top_p", "infill"],
        "cache_prompt": True,
        "t_max_prompt_ms": 500,
        "t_max_predict_ms": 1000,
    }
    began = time.perf_counter()
    answer = client.post("/infill", json=body).raise_for_status().json()
    return time.perf_counter() - began, str(answer["content"]).partition("\n")[0]


async def race(cases: Sequence[Case], settings: Settings, url: str, most: int) -> dict[str, Runner]:
    """Type the line of each gap, and ask both after each key."""
    engine = await asyncio.to_thread(LocalEngine.open, settings)
    runners = {"dg-lsp": Runner(), "llama.cpp": Runner()}
    with httpx2.Client(base_url=url, timeout=120) as client:
        for number, case in enumerate(cases):
            for place, (request, wanted) in enumerate(keys_of(case, most)):
                mine = await ours(engine, request)
                other = await asyncio.to_thread(theirs, client, request)
                for runner, (seconds, text) in zip(runners.values(), (mine, other), strict=True):
                    runner.note(seconds, text, wanted, first=place == 0)
                print(f"{number} {place:2} {wanted!r:60.60} {mine} {other}", flush=True)
    await engine.close()
    return runners


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--llama", required=True)
    parser.add_argument("--gaps", type=int, default=6)
    parser.add_argument("--keys", type=int, default=20)
    given = parser.parse_args()
    os.chdir(given.folder)
    found, _ = lists.read(list_path(given.name), ["rest_of_line"], 40 * given.gaps)
    # One of each file, and of lines that are long enough.
    cases = {case.document.uri: case for case in found if len(keys_of(case, given.keys)) >= given.keys}
    chosen = [*cases.values()][: given.gaps]
    settings = Settings(checkpoint=given.checkpoint, device="cpu", threads=2)
    runners = asyncio.run(race(chosen, settings, given.llama, given.keys))
    print("| | first key, s, p50 | further keys, s, p50 / p95 | exact | shown | exact of those |")
    print("|---|---|---|---|---|---|")
    for name, runner in runners.items():
        print(runner.report(name))


if __name__ == "__main__":
    main()
