"""Windows that type for long beside a bot, on the embedded checkpoint, while the engine is harmed again and again."""

import os
import random
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tests.processes import own_runtime, resident
from tests.robustness.faults import FAULTS, Harm, lift
from tests.robustness.row import Row, complaint, missed
from tests.robustness.traces import Key, changes, frequent, keys, large, marked
from tests.robustness.window import Window, position
from tests.server.wire import NoMessage

BAR = (
    "0 unanswered, 0 wrong text, 0 words of another window; less than 1 MB per 10 minutes; every fault healed; "
    "beside it the share of invoked requests with a real fill"
)
# A word for each window, the last one the bot's, which no model writes by itself.
MARKS = ("_zebra", "_quark", "_igloo", "_mango", "_nylon")
WINDOWS = len(MARKS) - 1
_DOCUMENTS = 5  # that are open in a window
_PATIENCE = 90.0  # seconds for one answer; beyond it the request counts as unanswered
_HEALED = 120.0  # seconds from a fault to the next real fill of anybody
_DEADLINE = 30.0  # seconds for ghost text
_SAMPLE = 5.0  # seconds between two looks at the memory
_WARM, _FEWER = (
    6_000,
    5,
)  # keys after which the server's caches are full; in short runs as many for each second


@dataclass(slots=True)
class Seen:
    """What one window has seen. fills: when a real fill came."""

    keys: int = 0
    invoked: int = 0
    real: int = 0
    why: Counter[str] = field(default_factory=Counter)
    shown: int = 0
    wrong: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    fills: list[float] = field(default_factory=list)


class Person:
    """Somebody who types in a window of their own. mark: stands in most words of their files, and in nobody else's."""

    def __init__(self, mark: str, silence: float | None) -> None:
        self.mark, self.seen = mark, Seen()
        self._seed = MARKS.index(mark)
        self._rng = random.Random(self._seed)
        self._others = re.compile("|".join(other for other in MARKS if other != mark))
        self._folder = f"file:///{mark[1:]}"
        # A busy machine is slow, which is not what this is about.
        options = {"ghostDeadline": _DEADLINE}
        self.window = Window(silence=silence, rootUri=self._folder, initializationOptions=options)

    def strokes(self) -> Iterator[tuple[str, Key]]:
        """Keys of other changes than those of `work`, without end, each in the document that is open for it."""
        for count, (old, new) in enumerate(changes(self._seed + len(MARKS))):
            words = frequent(old + new)
            uri = f"{self._folder}/{count % _DOCUMENTS}.py"
            self.window.open(uri, marked(old, words, self.mark))
            for key in keys(self.window.texts[uri], marked(new, words, self.mark)):
                yield uri, key

    def open_large(self) -> None:
        """Ask for fills in as many documents of the largest size as are open later.

        A server's memory is that of the largest documents that it has had, so what it needs for them is no growth.
        """
        for number, text in enumerate(islice(large(self._seed), _DOCUMENTS)):
            uri = f"{self._folder}/{number}.py"
            self.window.open(uri, marked(text, frequent(text), self.mark))
            for name in re.findall(r"^def (\w+)", text, re.MULTILINE)[:3]:
                self.fill(uri, name)
            end = len(self.window.texts[uri])
            for at in (end, end // 2):
                self.answer(self.typed(uri, Key(at, at, "\nx = (")))

    def warm(self, count: int) -> None:
        """Fill large documents; then press `count` keys without a pause, and cancel what each asks for."""
        self.open_large()
        for uri, key in islice(self.strokes(), count):
            number = self.typed(uri, key)
            self.window.tell("$/cancelRequest", {"id": number})
            self.answer(number)
        self.seen = Seen()

    def work(self, end: float) -> None:
        """Play changes until `end`."""
        for count, (old, new) in enumerate(changes(self._seed)):
            words = frequent(old + new)
            uri = f"{self._folder}/{count % _DOCUMENTS}.py"
            wanted = marked(new, words, self.mark)
            self.window.open(uri, marked(old, words, self.mark))
            for key in keys(self.window.texts[uri], wanted):
                if time.monotonic() > end:
                    return
                self._press(uri, key)
            self._check(uri, wanted)

    def fill_bodies(self, end: float) -> None:
        """As a bot: fill one function after the other by the command, until `end`."""
        for old, _ in changes(99):
            uri, text = f"{self._folder}/bot.py", marked(old, frequent(old), self.mark)
            self.window.open(uri, text)
            for name in re.findall(r"^def (\w+)", text, re.MULTILINE)[:4]:
                if time.monotonic() > end:
                    return
                answer = self.fill(uri, name, seed=self._rng.randrange(99))
                if "error" in answer:
                    time.sleep(1)  # a bot tries again, but not a thousand times a second
                edit = (answer.get("result") or {}).get("edit")
                self._count(str(edit) if edit else "", answer.get("result") or answer.get("error"))

    def _press(self, uri: str, key: Key) -> None:
        """One key, the request that an editor sends with it, and now and then a wish."""
        window, rng, at = self.window, self._rng, key.start + len(key.text)
        automatic = self.typed(uri, key)
        pause = rng.uniform(0.03, 0.15) if rng.random() < 0.9 else rng.uniform(0.3, 2)
        time.sleep(pause)
        if rng.random() < 0.5:
            window.tell("$/cancelRequest", {"id": automatic})
        elif pause > 0.3:
            self._look(uri, at, self.answer(automatic))
        if rng.random() < 0.03:
            self._invoke(uri, at)
        if rng.random() < 0.01:
            self._check(uri, window.texts[uri])

    def typed(self, uri: str, key: Key) -> int:
        """One key and the request that an editor sends with it; the id of the request."""
        change, at = self.window.edit(uri, key.start, key.end, key.text), key.start + len(key.text)
        self.seen.keys += 1
        params = self.window.inline(uri, at)
        return self.window.ask("textDocument/inlineCompletion", params, (change,))

    def _invoke(self, uri: str, at: int) -> None:
        """Ask for ghost text, and half of the time accept it and take it back."""
        window = self.window
        answer = self.answer(window.ask("textDocument/inlineCompletion", window.inline(uri, at, 1)))
        texts = self._look(uri, at, answer)
        self._count(texts[0] if texts else "", window.status(_PATIENCE)["last"])
        if texts and self._rng.random() < 0.5:
            for notify in (
                lambda: window.edit(uri, at, at, texts[0]),
                lambda: window.edit(uri, at, at + len(texts[0]), ""),
            ):
                change = notify()
                window.tell(change["method"], change["params"])

    def fill(self, uri: str, name: str, **options: Any) -> dict[str, Any]:
        """The answer to the command that fills the body of the function `name`."""
        target = {"uri": uri, "name": name, "apply": False, **options}
        params = {"command": "dg-lsp.fill", "arguments": [target]}
        return self.answer(self.window.ask("workspace/executeCommand", params))

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request; an empty one if none comes."""
        with suppress(NoMessage):
            return self.window.wait(number, _PATIENCE)
        return {}

    def _look(self, uri: str, at: int, answer: dict[str, Any]) -> list[str]:
        """The texts of an answer with ghost text, which stand at the cursor."""
        items = (answer.get("result") or {"items": []})["items"]
        here = position(self.window.texts[uri], at)
        self.seen.shown += bool(items)
        for item in items:
            if item["range"] != {"start": here, "end": here}:
                self.seen.wrong.append(f"ghost text at {item['range']}, the cursor is at {here}")
            self._origin(item["insertText"])
        return [item["insertText"] for item in items]

    def _count(self, text: str, told: Any) -> None:
        """Count a request that somebody has asked for, and whether it got a real fill; `told` has the reason if not."""
        self.seen.invoked += 1
        self._origin(text)
        if text.strip() not in ("", "pass", "..."):
            self.seen.real += 1
            self.seen.fills.append(time.monotonic())
        else:
            why = str((told or {}).get("why") or (told or {}).get("message"))
            self.seen.why[re.sub(r"\d+", "N", why)[:60]] += 1

    def _origin(self, text: str) -> None:
        self.seen.foreign += [found[0] for found in self._others.finditer(text)]

    def _check(self, uri: str, wanted: str) -> None:
        """The editor has what was typed, and the server has what the editor has."""
        with suppress(NoMessage):
            if self.window.texts[uri] != wanted or not self.window.same_text(uri):
                self.seen.wrong.append(f"the text of {uri}")


def soak(seconds: float, every: float, checkpoint: str = "embedded", silence: float | None = None) -> Row:
    """`seconds` of four people and a bot, with a fault `every` so many seconds.

    silence: how long windows wait for a silent engine; None for as long as a user's.
    """
    os.environ["DG_LSP_CHECKPOINT"] = checkpoint
    with own_runtime() as runtime:
        people = [Person(mark, silence) for mark in MARKS]
        with ThreadPoolExecutor(len(people)) as pool:
            list(pool.map(Person.warm, people, [min(_WARM, int(seconds * _FEWER))] * len(people)))
        end = time.monotonic() + seconds
        works = [p.work for p in people[:-1]] + [people[-1].fill_bodies]
        threads = [threading.Thread(target=work, args=[end], daemon=True) for work in works]
        for thread in threads:
            thread.start()
        harm = Harm(runtime)
        harmed, slopes = _watched(people, harm, end, every)
        for thread in threads:
            thread.join(2 * _PATIENCE)
        asked = sum(len(person.window.sent) for person in people)
        odd = _waited(people)
        noise = "".join(complaint(person.window.wire.stderr) for person in people)
        codes = [p.window.close() if p.window.wire.process.poll() is None else "died" for p in people]
    noise += f" exit codes {codes}" if any(codes) else ""
    return _row(seconds, people, harm, _Found(harmed, asked, odd, slopes, noise))


def _waited(people: list[Person]) -> list[str]:
    """The requests that are not answered exactly once when there has been time for all."""
    end = time.monotonic() + _PATIENCE
    while (odd := [one for person in people for one in person.window.odd()]) and time.monotonic() < end:
        time.sleep(0.1)
    return odd


def _watched(people: list[Person], harm: Harm, end: float, every: float) -> tuple[list[float], list[float]]:
    """Harm the engine until the time is over: when that was, and how fast each server grows."""
    harmed, rng, due = list[float](), random.Random(1), time.monotonic() + every
    # The last fault has time to heal, too.
    last = end - min(_HEALED, end - time.monotonic()) / 2
    memory: dict[int, list[tuple[float, float]]] = {p.window.wire.process.pid: [] for p in people}
    while time.monotonic() < end:
        time.sleep(min(_SAMPLE, every, max(end - time.monotonic(), 0)))
        for process, samples in memory.items():
            samples.append((time.monotonic(), resident(process) / 2**20))
        now = time.monotonic()
        # The next fault waits until the one before is healed, or will never be.
        healed = any(at > harmed[-1] for p in people for at in p.seen.fills) if harmed else True
        if not healed and now < harmed[-1] + _HEALED:
            due = now + every
        elif due < now < last:
            if process := harm.do(rng.choice(FAULTS)):
                harmed.append(now)
                threading.Timer(rng.uniform(3, 8), lift, [process]).start()
            due = now + every
    return harmed, [_slope(samples) for samples in memory.values()]


def _row(seconds: float, people: list[Person], engine: Harm, found: "_Found") -> Row:
    seen = [person.seen for person in people]
    wrong = [what for one in seen for what in one.wrong]
    foreign = [what for one in seen for what in one.foreign]
    fills = sorted(at for one in seen for at in one.fills)
    healing = [next((at for at in fills if at > moment), moment + 999) - moment for moment in found.harmed]
    unhealed = sum(took > _HEALED for took in healing)
    invoked, real = sum(one.invoked for one in seen), sum(one.real for one in seen)
    why = ", ".join(f"{w} ({n})" for w, n in sum((one.why for one in seen), Counter()).most_common(3))
    grown = ", ".join(f"{slope:+.1f}" for slope in found.slopes)
    kinds = ", ".join(f"{name.replace('_', ' ')} {times}" for name, times in engine.done.items() if times)
    return Row(
        f"soak, {seconds / 60:.0f} minutes, {WINDOWS} windows and a bot",
        BAR,
        f"{sum(one.keys for one in seen):,} keys, {found.asked:,} requests: {len(found.odd)} not answered once, "
        f"{len(wrong)} wrong texts, {len(foreign)} words of another window; {grown} MB per 10 minutes; "
        f"{len(healing)} faults ({kinds}), {unhealed} not healed, {max(healing, default=0):.0f} s at most; "
        f"{real} of {invoked} invoked requests got a real fill, the others because: {why}",
        missed(
            (bool(found.odd), f"not answered once: {found.odd[:3]}"),
            (bool(wrong), f"{len(wrong)} wrong texts, such as {wrong[:1]}"),
            (bool(foreign), f"words of another window: {foreign[:3]}"),
            (unhealed > 0, f"{unhealed} faults not healed"),
            (not real, "nothing was filled"),
            (bool(found.noise), found.noise),
        ),
        missed((max(found.slopes) > 1, f"{max(found.slopes):+.1f} MB per 10 minutes")),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known at the end of a soak. harmed: when each fault was done. noise: what a server complained of."""

    harmed: list[float]
    asked: int
    odd: list[str]
    slopes: list[float]
    noise: str


def _slope(samples: list[tuple[float, float]]) -> float:
    """The megabytes per 10 minutes by which a process grows after its first quarter."""
    late = samples[len(samples) // 4 :]
    if len(late) < 3:
        return 0.0
    return statistics.linear_regression(*zip(*late, strict=True)).slope * 600
