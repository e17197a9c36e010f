"""Gaps as typed and as an editor closes them: `python -m benchmarks.gaps.closed PLACES`.

Editors put a closing bracket or quote after the cursor for each one that is typed. Every frozen place of typing (see
`places`) where a line has opened brackets is tried in both forms, and the true text is put into both gaps.
`python -m benchmarks.gaps.table choose --bracketed PLACES` freezes such places alone.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from tree_sitter import Node

from benchmarks.gaps.place import Span, line_of
from benchmarks.gaps.places import Spot, loaded, sampled
from benchmarks.gaps.truth import unquoted
from dg_lsp.bench.score import quantile, table
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import Gap, NoGap, find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.messages import Fill
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language, load_language
from dg_lsp.source.lexer import tokens

_CLOSING = {"(": ")", "[": "]", "{": "}", "${": "}"}
# The names of the forms of a place.
FORMS = ("typed", "closed")
_OTHERS = 8
# Places of one language that a process tries at a time.
_BATCH = 200


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a place: the text up to the cursor, what the editor has put after it, and the rest.

    truths: what may be filled in: the text up to the first bracket that is closed, and that up to the line's end; where
    both are refused, one of `others`, which end with something that the cursor is in.
    quoted: the text before the cursor from where the string or regular expression begins that it is in, code in a
    string included. missing: what is open before that and not closed after it, the innermost last, as what closes it.
    """

    before: bytes
    closers: bytes
    after: bytes
    truths: tuple[bytes, ...]
    others: tuple[bytes, ...]
    missing: tuple[bytes, ...]
    quoted: bytes


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one form: the gap's kind (or why there is none), whether a text is offered, and closes twice.

    ms: CPU time to find the gap. shown: the line of the last edit that was offered.
    """

    id: str
    language: str
    form: str
    start: int
    kind: str
    offered: bool
    twice: bool
    ms: float
    why: str
    shown: str


def main(argv: Sequence[str] | None = None) -> int:
    """Do what `argv` says; 0 when there was something to do."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaps.closed", description=__doc__)
    parser.add_argument("places", type=Path, help="frozen by python -m benchmarks.gaps.table choose")
    parser.add_argument("--sample", type=int, help="only so many places a language")
    parser.add_argument("--languages", default="", help="with commas (default: all)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="places to print of each way to go wrong")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records to FILE")
    arguments = parser.parse_args(argv)
    files, spots = loaded(arguments.places)
    spots = [s for s in spots if s.own == len(s.changes)]
    if arguments.languages:
        spots = [s for s in spots if s.language in arguments.languages.split(",")]
    spots = sampled(spots, arguments.sample) if arguments.sample else spots
    batches = [spots[at : at + _BATCH] for at in range(0, len(spots), _BATCH)]
    texts = [{s.file: files[s.file] for s in batch} for batch in batches]
    records: list[Record] = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for found in pool.map(_records, batches, texts):
            records += found
    print(closed_table(records))
    if arguments.show:
        print("\n".join(_examples(records, arguments.show)))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(r) for r in records]), encoding="utf-8")
    return 0 if records else 1


def forms(spot: Spot, data: bytes) -> tuple[Form, Form] | None:
    """A place of the valid file `data` as typed and as closed; None where its line has opened nothing."""
    if spot.back or any(text for *_, text in spot.changes):
        return None
    at, cut = spot.at, max(end for _, end, _ in spot.changes)
    line = line_of(data, at)[0]
    opened = [p for p in _pairs(spot.language, data) if p.inside <= at <= p.close[0]]
    opened.sort(key=lambda p: p.inside)
    shut = sorted(p.close for p in opened if p.start >= line and p.close[1] <= cut)
    # The missing text is between the cursor and the first bracket.
    if not shut or not data[at : shut[0][0]].strip():
        return None
    texts = data[at : shut[0][0]], data[at : min(cut, line_of(data, at)[1])]
    begins = min((p.start for p in opened if p.quotes), default=_pattern_start(spot.language, data, at))
    form = Form(
        before=data[:at],
        closers=b"",
        after=data[cut:],
        truths=tuple(text for text in texts if text.strip()),
        others=tuple(data[at:end] for end in spot.ends[:_OTHERS] if at < end <= cut),
        missing=tuple(data[slice(*p.close)] for p in opened if p.close[1] <= cut and p.start < begins),
        quoted=data[begins:at],
    )
    lost = tuple(
        data[slice(*p.close)]
        for p in opened
        if p.close[1] <= cut and p.close not in shut and p.start < begins
    )
    return form, replace(form, closers=b"".join(data[slice(*span)] for span in shut), missing=lost)


def is_bracketed(spot: Spot, data: bytes) -> bool:
    """Return whether a place of the valid file `data` has a line that has opened brackets or quotes."""
    return forms(spot, data) is not None


def tried(spot: Spot, text: str) -> list[Record]:
    """The records of a place in the valid file `text`, one a form; none where its line has opened nothing."""
    both = forms(spot, text.encode())
    return [_record(spot, name, form) for name, form in zip(FORMS, both, strict=True)] if both else []


def closed_table(records: Sequence[Record]) -> str:
    """Shares by language: offered in each form, the same gap in both, closed twice, and the time for a gap."""
    rows: list[tuple[str, ...]] = [
        (
            "language",
            "",
            "n",
            "typed %",
            "closed %",
            "diff",
            "same gap %",
            "twice",
            "closed",
            "p95 ms",
            "closed",
        )
    ]
    for language in (*dict.fromkeys(r.language for r in records), "all"):
        own = [r for r in records if language in ("all", r.language)]
        typed, closed = ([r for r in own if r.form == form] for form in FORMS)
        percent = 100 / max(len(typed), 1)
        shares = [percent * sum(r.offered for r in found) for found in (typed, closed)]
        same = percent * sum(
            (a.start, a.kind) == (b.start, b.kind) for a, b in zip(typed, closed, strict=True)
        )
        numbers = [f"{share:.1f}" for share in shares] + [f"{shares[1] - shares[0]:+.1f}", f"{same:.1f}"]
        twice = [str(sum(r.twice for r in found)) for found in (typed, closed)]
        times = [f"{quantile(sorted(r.ms for r in found) or [0.0], 0.95):.1f}" for found in (typed, closed)]
        rows.append((language, "", str(len(typed)), *numbers, *twice, *times))
    return table(rows)


def _record(spot: Spot, name: str, form: Form) -> Record:
    document = Document(
        f"file:///place.{spot.language}", spot.language, 0, form.before + form.closers + form.after
    )
    begun = time.thread_time()
    try:
        gap: Gap | str = find_gap(document, len(form.before))
    except NoGap as error:
        gap = str(error)
    ms = round((time.thread_time() - begun) * 1000, 3)
    record = Record(spot.id, spot.language, name, -1, "", offered=False, twice=False, ms=ms, why="", shown="")
    if isinstance(gap, str):
        return replace(record, why=gap)
    record = replace(record, start=gap.start, kind=gap.kind)
    for number, truth in enumerate((*form.truths, *form.others)):
        if number >= len(form.truths) and record.offered:
            break
        outcome = finish(document, gap, Fill(truth.decode()))
        if outcome.edit is None:
            record = replace(record, why=record.why or outcome.why)
            continue
        data = apply_edit(document, outcome.edit).data
        behind = len(data) - len(form.closers + form.after)
        line = data[line_of(data, len(form.before))[0] : behind + len(form.closers)]
        twice = closes_twice(spot.language, form, data[len(form.before) : behind])
        shown = record.shown if record.twice else line.decode("utf-8", "replace")
        record = replace(record, offered=True, twice=record.twice or twice, shown=shown)
    return record


def closes_twice(language: str, form: Form, fill: bytes) -> bool:
    """Return whether `fill` closes what it has not opened, other than what is missing after it, in that order.

    A bracket that the editor has closed may be closed by the fill if another one of the fill is closed by the editor's:
    `ng>) names(` is between `(List<Stri` and `)`.
    """
    missing, opened, early = list(form.missing), list[bytes](), list[bytes]()
    known, text = load_language(language), form.quoted + fill
    for token in tokens(known, text, 0, len(text)):
        bracket = text[token.start : token.end]
        if token.kind == "open":
            opened.append(_CLOSING.get(bracket.decode(), "").encode())
        elif token.kind == "close" and opened:
            opened.pop()
        elif token.kind == "close" and (not missing or missing.pop() != bracket):
            early.append(bracket)
    return bool(early) and early != opened


@dataclass(frozen=True, slots=True)
class _Pair:
    """A pair of brackets or quotes: where it begins, where its inside does, and the span of what closes it."""

    start: int
    inside: int
    close: Span
    quotes: bool


def _pattern_start(language: str, data: bytes, at: int) -> int:
    """Return where the regular expression around `at` begins, `at` itself in other text."""
    node = load_language(language).parse(data).root_node.descendant_for_byte_range(at, at)
    while node is not None and node.type != "regex":
        node = node.parent
    return node.start_byte if node is not None and node.start_byte < at else at


@lru_cache(maxsize=32)
def _pairs(language: str, data: bytes) -> tuple[_Pair, ...]:
    """The brackets and quotes of a valid file."""
    known = load_language(language)
    root = known.parse(data).root_node
    return (*_brackets(root), *_quotes(known, data, root))


def _brackets(root: Node) -> Iterator[_Pair]:
    stack = [root]
    while stack:
        node = stack.pop()
        stack.extend(node.children)
        opened: list[Node] = []
        for child in node.children:
            kind = _bracket(child)
            if kind in _CLOSING:
                opened.append(child)
            elif opened and kind == _CLOSING[_bracket(opened[-1])]:
                first = opened.pop()
                yield _Pair(
                    first.start_byte, first.end_byte, (child.start_byte, child.end_byte), quotes=False
                )


def _bracket(node: Node) -> str:
    """Return the text of a bracket, also of one that has a name, as in C#'s interpolated strings."""
    named = node.type == "interpolation_brace" and node.text
    return named.decode() if named else node.type


def _quotes(language: Language, data: bytes, root: Node) -> Iterator[_Pair]:
    for node in language.captures(root).get("string", ()):
        inside = unquoted(data[node.start_byte : node.end_byte])
        if inside is not None:
            start, end = node.start_byte + inside[0], node.start_byte + inside[1]
            yield _Pair(node.start_byte, start, (end, node.end_byte), quotes=True)


def _records(spots: Sequence[Spot], texts: dict[str, str]) -> list[Record]:
    # The places of one file share its tree.
    return [record for s in sorted(spots, key=lambda s: s.file) for record in tried(s, texts[s.file])]


def _examples(records: Sequence[Record], count: int) -> Iterator[str]:
    """The first `count` places of each language and way to go wrong."""
    both = list(zip(records[::2], records[1::2], strict=True))
    for language in dict.fromkeys(r.language for r in records):
        own = [pair for pair in both if pair[0].language == language]
        ways = {
            "only as typed": [c for t, c in own if t.offered and not c.offered],
            "only as closed": [t for t, c in own if c.offered and not t.offered],
            "neither": [c for t, c in own if not t.offered and not c.offered],
            "twice": [r for pair in own for r in pair if r.twice],
            "another gap": [c for t, c in own if (t.start, t.kind) != (c.start, c.kind)],
        }
        for way, found in ways.items():
            for r in islice(found, count):
                yield f"{way}: {r.id} {r.form} {r.kind}: {r.why} {r.shown!r}"


if __name__ == "__main__":
    raise SystemExit(main())
