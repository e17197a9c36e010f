"""Frozen places: damaged files, cursors and the gaps that are right there, as data that no later change of code moves.

`choose` makes them from valid files with a seed; `saved` and `loaded` write and read them as JSON. Each place holds
all that a judge needs, so that the same places can be judged with another version of the code.
"""

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.gaps.case import Case, Change
from benchmarks.gaps.place import Place, Span, line_of
from benchmarks.gaps.scenarios import Scenario, cases, scenarios_of
from benchmarks.gaps.sources import Corpus

# The share of places with no damage but that of typing.
TYPING = 2 / 3
# Of so many places one is wanted at least, or its scenario leaves its places to the others.
SEEN = 20


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a valid file, what was done to the file, and what is right there.

    file: the digest of the valid file's text. changes: offsets in it and texts, in the order of typing; the last `own`
    of them are the cut at the cursor, the others are damage elsewhere. at, back: where the cursor is, as in `Case`.
    kinds: those that may be chosen where none is asked for. span: the text of the place itself, where that may be
    replaced although nobody asked for it (a stub, an empty body); else None. ends: where the missing text may end, of
    which a gap at the cursor has to fill some. body: the text of the function's body; None where it is not clear.
    """

    id: str
    language: str
    scenario: str
    file: str
    changes: tuple[tuple[int, int, str], ...]
    own: int
    at: int
    back: int
    kinds: tuple[str, ...]
    span: Span | None
    ends: tuple[int, ...]
    body: Span | None


def choose(
    corpus: Corpus, count: int, seed: int, wanted: Callable[[Spot, bytes], bool] | None = None
) -> tuple[dict[str, str], list[Spot]]:
    """Return files by digest and about `count` places in them, as many of each scenario and kind as of the others.

    wanted: choose only places of typing for which it is true, given the valid file.
    """
    files: dict[str, str] = {}
    spots: list[Spot] = []
    cells = [(s, kind) for s in scenarios_of(corpus.language.style) for kind in s.kinds]
    typing = count if wanted else round(count * TYPING)
    for damaged, total in ((False, typing), (True, count - typing)):
        group = [cell for cell in cells if (cell[0].name[0] == "h") == damaged]
        found: list[Spot] = []
        # Cells that have too few places leave theirs to the others.
        for number, (scenario, kind) in enumerate(group):
            each = -(-(total - len(found)) // (len(group) - number))
            name = f"{corpus.language.name}-{scenario.name}-{kind}"
            made = cases(corpus, scenario, kind, each * (SEEN if wanted else 1), seed)
            pairs = ((case, _spot(case, f"{name}-{n}", scenario)) for n, case in enumerate(made))
            kept = list(islice((p for p in pairs if wanted is None or wanted(p[1], p[0].truth.data)), each))
            found += [spot for _, spot in kept]
            files |= {_digest(case): case.truth.data.decode() for case, _ in kept}
        spots += found
    return files, spots


def _digest(case: Case) -> str:
    return hashlib.sha256(case.truth.data).hexdigest()[:16]


def _spot(case: Case, name: str, scenario: Scenario) -> Spot:
    own = 1 if case.damaged else len(case.changes)
    changes = tuple((c.start, c.end, c.text.decode()) for c in case.changes)
    unwritten = scenario.name[0] in "bc"
    body = case.truth.inner("function_body", case.at)
    if body is not None and not (body.clear and body.start <= case.at <= body.end):
        body = None
    if unwritten:
        body = case.place if case.kind == "function_body" else None
    return Spot(
        id=name,
        language=case.language,
        scenario=scenario.name,
        file=_digest(case),
        changes=changes,
        own=own,
        at=case.at,
        back=case.back,
        kinds=tuple(sorted(case.acceptable)),
        span=(case.place.start, case.place.end) if unwritten else None,
        ends=_ends(case, case.changes[-own:]),
        body=(body.start, body.end) if body else None,
    )


def _ends(case: Case, own: Sequence[Change]) -> tuple[int, ...]:
    """The ends that the missing text may have: of anything that the cursor is in, of its line, of the whole cut."""
    truth, at = case.truth, case.at
    cut = max(change.end for change in own)
    around: list[Place] = [p for places in truth.places.values() for p in places if p.outer[0] <= at]
    ends = {end for p in around for end in (p.end, p.closes, p.outer[1])}
    ends |= {line_of(truth.data, at)[1], cut}
    return tuple(sorted(end for end in ends if at <= end <= cut))


def saved(path: Path, files: dict[str, str], spots: Sequence[Spot]) -> None:
    """Write files and places to `path`."""
    data: dict[str, Any] = {"files": files, "places": [asdict(spot) for spot in spots]}
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def loaded(path: Path) -> tuple[dict[str, str], list[Spot]]:
    """The files and places that `saved` has written to `path`."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return data["files"], [_read(record) for record in data["places"]]


def _read(record: dict[str, Any]) -> Spot:
    changes = tuple((start, end, text) for start, end, text in record["changes"])
    spans = {name: tuple(record[name]) if record[name] else None for name in ("span", "body")}
    lists = {name: tuple(record[name]) for name in ("kinds", "ends")}
    return Spot(**(record | {"changes": changes} | spans | lists))


def sampled(spots: Sequence[Spot], count: int) -> list[Spot]:
    """At most `count` places of each language, the same ones each time."""
    found: list[Spot] = []
    for language in dict.fromkeys(spot.language for spot in spots):
        own = sorted((s for s in spots if s.language == language), key=lambda s: s.id)
        random.Random(f"sample {language}").shuffle(own)
        found += own[:count]
    return found
