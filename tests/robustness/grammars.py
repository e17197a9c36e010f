"""All grammars on random and mutated texts, in child processes: no reading hangs, crashes or takes long."""

import json
import select
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from dg_lsp.source.language import known_languages, load_language
from tests.robustness.readers import kept, text_of
from tests.robustness.row import Row, missed

BOUND = 0.3  # seconds of CPU for one reading: the gap, the request, the guard
HANG = 60.0  # seconds of silence after which a child is killed: it starts, or reads, on a busy machine
ROOT = Path(__file__).resolve().parents[2]
_LATE = 3.0  # a bound of time that holds on a busy machine, too


@dataclass(slots=True)
class Found:
    """The readings of one or more languages. failed: texts that hung or crashed a child; slow: those over the bound."""

    ended: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    slowest: float = 0.0
    texts: int = 0


def grammars(times: int, seed: int = 0) -> Row:
    """Read `times` random texts of each language, after those that once failed."""
    found = Found()
    names = [name for name in known_languages() if "wheel" not in name]
    for name in names:
        _read_all(name, seed, times, found)
    readings = sum(found.ended.values())
    edits = found.ended["edit"] + found.ended["refused"]
    return Row(
        "all grammars: random, mutated, long and once-failing texts, each through the gap, the request and the guard",
        f"0 hangs, 0 crashes; a reading within {BOUND} s",
        f"{found.texts:,} texts of {len(names)} languages, {readings:,} readings, {edits:,} with a gap: "
        f"{len(found.failed)} hangs or crashes; at most {found.slowest:.2f} s",
        missed(
            (bool(found.failed), f"hung or crashed: {found.failed[:5]}"),
            (edits < readings / 10, "hardly any text had a gap"),
            (found.slowest > BOUND * _LATE, f"far too slow: {found.slow[:5]}"),
        ),
        missed((bool(found.slow), f"slow: {found.slow[:5]}")),
    )


def _read_all(language: str, seed: int, times: int, found: Found) -> None:
    """Read all texts of a language, in a new child after each that hangs or crashes."""
    number, stop = 0, len(kept(language)) + times
    while number < stop:
        number = _read_some(language, seed, range(number, stop), found)


def _read_some(language: str, seed: int, numbers: range, found: Found) -> int:
    """Read texts in one child until all are read or one fails; the number of the next text."""
    arguments = [language, str(seed), str(numbers.start), str(len(numbers))]
    command = [sys.executable, "-m", "tests.robustness.readers", *arguments]
    current, at = numbers.start, 0.0
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while True:
            at = time.monotonic()
            ready, _, _ = select.select([child.stdout], [], [], HANG)
            line = child.stdout.readline() if ready else ""
            if not line:
                break
            record = json.loads(line)
            current = record["number"]
            if "seconds" in record:
                found.texts += 1
                found.ended.update(record["ended"])
                found.slowest = max(found.slowest, record["seconds"])
                if record["seconds"] > BOUND:
                    found.slow.append(
                        f"{language} {current} at {record['cursor']}: {record['seconds']:.2f} s"
                    )
                current += 1
        if current < numbers.stop:
            child.kill()
            how = "hung" if time.monotonic() - at >= HANG else f"ended ({child.wait()})"
            known = kept(language)
            own = (
                known[current]
                if current < len(known)
                else text_of(load_language(language), seed, current - len(known))
            )
            found.failed.append(f"{language} {current} {how}: {own[:80]!r}")
            return current + 1
    return current
