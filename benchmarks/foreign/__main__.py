"""Put the truth and harmful texts into places of real files, and have foreign parsers judge what would be shown.

    python -m benchmarks.foreign --tools DIR --sources DIR --cases cases.jsonl

Below DIR of `--sources` each language has a folder of its own name with files of packages.
"""

import argparse
import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path

from benchmarks.foreign.judges import Judge, Sample, judges, more
from benchmarks.foreign.places import places
from benchmarks.foreign.texts import harmful
from benchmarks.guarantee.answers import is_same, true_text
from benchmarks.guarantee.places import Place
from dg_lsp.bench.score import table
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.fill import fill_gap
from dg_lsp.gaps.find import Gap, NoGap, find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.candidates import fitted
from dg_lsp.reasons import OutOfTime
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language

TRUTH = "truth"
# Files of such sizes; at most so many of a language, and places of a file.
_SIZES, _FILES, _AT_ONCE = range(400, 40_000), 16, 24
_OPEN = re.compile(r"unterminated|unclosed|untermin|never closed|EOF|end of (?:file|input)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shown:
    """One text at a place, and the file with it; None with the reason where it is not shown."""

    place: Place
    path: Path
    name: str
    text: str
    data: bytes | None
    why: str
    gap: str


@dataclass(slots=True)
class Report:
    """The counts of a language and the cases that failed."""

    counts: Counter[str] = field(default_factory=Counter)
    cases: list[dict[str, object]] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table; 0 where no sound file was broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.foreign", description=__doc__)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument(
        "--languages", default="", help="with commas; all that have sources and a judge by default"
    )
    parser.add_argument("--places", type=int, default=32, help="of a language")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=Path, help="write the cases that failed, a line of JSON each")
    options = parser.parse_args(argv)
    known = judges(options.tools)
    wanted = (
        options.languages.split(",")
        if options.languages
        else [n for n in known if (options.sources / n).is_dir()]
    )
    reports = {}
    for name in wanted:
        begun = time.perf_counter()
        try:
            reports[name] = measure(name, known[name], options.sources / name, options.places, options.seed)
        except (OSError, RuntimeError, ImportError) as error:
            print(f"{name} is left out: {error}", flush=True)
            continue
        print(f"{name}: {dict(reports[name].counts)}, {time.perf_counter() - begun:.0f} s", flush=True)
        if options.cases:
            lines = [json.dumps(case) + "\n" for report in reports.values() for case in report.cases]
            options.cases.write_text("".join(lines), encoding="utf-8")
    print(table(_rows({name: report.counts for name, report in reports.items()})))
    return int(any(report.counts["broken"] for report in reports.values()))


def measure(name: str, judge: Judge, folder: Path, count: int, seed: int) -> Report:
    """Return what happens at `count` places of files in `folder` that `judge` accepts.

    1. Choose files and places.  2. Fill each by the product's own way.  3. Judge the files without the text, and those
    that would be shown; what the judge says only of the latter is harm.

    A place is counted as unread if its text takes too long to read, or begins or ends within a character.
    """
    rng = random.Random(f"{name} {seed}")
    # 1.
    chosen = list(_chosen(name, judge, folder, rng, count))
    # 2.
    report, shown = Report(), list[Shown]()
    for number, (place, path) in enumerate(chosen):
        try:
            shown += list(_filled(place, path, number, rng))
        except (OutOfTime, UnicodeDecodeError):
            report.counts["unread"] += 1
    # 3.
    cut = judge([Sample(path, place.cut) for place, path in chosen])
    errors = {place: found for (place, _), found in zip(chosen, cut, strict=True)}
    edits = [one for one in shown if one.data is not None]
    said = judge([Sample(one.path, one.data or b"") for one in edits])
    report.counts["places"] = len(chosen)
    for one, found in zip(edits, said, strict=True):
        _count(report, name, one, errors[one.place], found)
    for one in shown:
        if one.data is None and one.name == TRUTH:
            report.counts["truth refused"] += 1
            report.cases.append(_case(name, "truth refused", one, [one.why]))
    report.counts["harmful"] = sum(one.name != TRUTH for one in shown)
    return report


def _count(report: Report, name: str, one: Shown, before: Sequence[str], after: Sequence[str]) -> None:
    new = more(before, after)
    if one.name == TRUTH:
        exact = is_same(one.place, one.data or b"")
        report.counts["exact" if exact else "in part"] += 1
        if exact:
            return
    else:
        report.counts["shown"] += 1
    fault = ""
    if new and not before:
        fault = "broken"
    elif after and before:
        fault = "left, open" if any(_OPEN.search(error) for error in new) else "left"
    report.counts[fault] += bool(fault)
    if fault in ("broken", "left, open") or one.name == TRUTH:
        report.cases.append(_case(name, fault or "in part", one, new))


def _case(language: str, fault: str, one: Shown, said: Sequence[str]) -> dict[str, object]:
    place = one.place
    cut, at = place.cut, place.cursor
    lines = [
        cut[max(at - 300, 0) : at].decode("utf-8", "replace"),
        cut[at : at + 300].decode("utf-8", "replace"),
    ]
    new = one.data
    behind = len(cut) - at - min(300, len(cut) - at)
    return {
        "language": language,
        "fault": fault,
        "where": place.where,
        "asked": place.kind,
        "harm": one.name,
        "text": one.text,
        "gap": one.gap,
        "around": "|".join(lines),
        "shown": None
        if new is None
        else new[max(at - 120, 0) : len(new) - behind].decode("utf-8", "replace")[:900],
        "truth": place.data[place.at : place.stop].decode("utf-8", "replace"),
        "judge": list(said[:3]),
        "file": str(one.path),
        "at": at,
        "stop": place.stop,
    }


def _chosen(
    name: str, judge: Judge, folder: Path, rng: random.Random, count: int
) -> Iterator[tuple[Place, Path]]:
    """Yield `count` places, in turns from the files that are accepted, and from all packages alike."""
    language = load_language(name)
    packages = [
        [p for p in sorted(root.rglob("*")) if _is_source(p, language.suffixes)]
        for root in sorted(folder.iterdir())
    ]
    for files in packages:
        rng.shuffle(files)
    turns = [
        files[n] for n in range(max(map(len, packages), default=0)) for files in packages if n < len(files)
    ]
    accepted: list[Sample] = []
    for first in range(0, min(len(turns), 20 * _AT_ONCE), _AT_ONCE):
        samples = [Sample(path, path.read_bytes()) for path in turns[first : first + _AT_ONCE]]
        samples = [one for one in samples if _is_text(one.data)]
        accepted += [one for one, errors in zip(samples, judge(samples), strict=True) if not errors]
        if len(accepted) >= _FILES:
            break
    if not accepted:
        raise RuntimeError(f"no file in {folder} is accepted by its judge")
    streams = [
        (places(language, one.data, random.Random(rng.random())), one.path) for one in accepted[:_FILES]
    ]
    rounds = zip_longest(*(zip(stream, repeat(path)) for stream, path in streams))
    yield from islice(filter(None, chain.from_iterable(rounds)), count)


def _is_source(path: Path, suffixes: Sequence[str]) -> bool:
    strange = (".d.ts", ".min.js", ".min.css", "package-lock.json", ".d.mts")
    return (
        path.suffix in suffixes
        and not path.name.endswith(strange)
        and path.is_file()
        and path.stat().st_size in _SIZES
    )


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not any(odd in text for odd in "\r\f\0\ufeff") and max(map(len, text.split("\n"))) < 400


def _filled(place: Place, path: Path, number: int, rng: random.Random) -> Iterator[Shown]:
    """Yield what becomes of the truth and of each harmful text; the settings of the two checkpoints take turns."""
    document = Document(path.as_uri(), place.language.name, 1, place.cut)
    settings = Settings(checkpoint=("embedded", "coder")[number % 2], related=False)
    gap = _gap(document, place)
    # A blank is written where the gap itself inserts all of it.
    truth = (true_text(place, gap) if gap else "") or " "
    cut = place.data[place.at : place.stop].decode("utf-8")
    for name, text in ((TRUTH, truth), *harmful(place, cut, rng)):
        if gap is None:
            yield Shown(place, path, name, text, None, "no gap", "")
            continue
        engine = ScriptedEngine(partial(_answer, text))
        outcome = asyncio.run(fill_gap(engine, document, gap, settings))
        data = None if outcome.edit is None else apply_edit(document, outcome.edit).data
        yield Shown(place, path, name, text, data, outcome.why, gap.kind)


def _answer(text: str, request: Infill) -> Fill:
    """Return `text` as an engine gives it that writes from left to right: fitted, and none where it has a fault."""
    fill = fitted(request, text)
    return Fill("", parses=False, refusal=fill.refusal) if fill.refusal else fill


def _gap(document: Document, place: Place) -> Gap | None:
    for kind in dict.fromkeys((place.kind, None)):
        try:
            return find_gap(document, place.cursor, kind)
        except NoGap:
            continue
    return None


def _rows(counts: dict[str, Counter[str]]) -> Iterator[tuple[str, ...]]:
    columns = (
        "places",
        "unread",
        "exact",
        "in part",
        "truth refused",
        "harmful",
        "shown",
        "broken",
        "left",
        "left, open",
    )
    yield ("", "", *columns)
    for name, own in counts.items():
        yield (name, "", *(str(own[column]) for column in columns))
    total: Counter[str] = sum(counts.values(), Counter())
    yield ("all", "", *(str(total[column]) for column in columns))


if __name__ == "__main__":
    raise SystemExit(main())
