"""Judge: is the gap at a frozen place what its user should get? Span, kind, and what it inserts round its fill.

Without a kind asked for: the gap is at the cursor and takes away nothing but white space (or the stub that it fills),
its kind is acceptable, and some part of what is missing makes the file parse between what it inserts. For a
function's body: the gap is the body, and so does the body's text. Knows what is right from the place alone.
"""

import ast
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from tree_sitter import Tree

from benchmarks.gaps.case import Change, behind_comments, moved
from benchmarks.gaps.place import Span
from benchmarks.gaps.places import Spot
from dg_lsp.gaps.find import Gap, NoGap, find_gap
from dg_lsp.gaps.gap import Edit, apply_edit
from dg_lsp.messages import BODIES, Kind
from dg_lsp.reasons import OutOfTime
from dg_lsp.source.document import Document
from dg_lsp.source.history import common
from dg_lsp.source.language import Language, load_language

# So many parses tell whether anything fits.
_TRIED = 60
ASKED: tuple[Kind | None, ...] = (None, "function_body")


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one place under one condition: "typing", "disk" (damaged, from a disk), "editor" (in a buffer).

    asked: the kind that was asked for, empty without one. how: in a few words why it is not right. ms: CPU time.
    """

    id: str
    language: str
    scenario: str
    condition: str
    asked: str
    right: bool
    ms: float
    how: str


def judged(spot: Spot, text: str, conditions: Iterable[str]) -> list[Record]:
    """The records of a place in the valid file `text` under those of the `conditions` that it has."""
    data = text.encode()
    damaged = len(spot.changes) > spot.own
    found = []
    for condition in conditions:
        if (condition != "typing") != damaged:
            continue
        for asked in ASKED:
            if asked is None or spot.body is not None:
                document = _document(spot, data, condition)
                begun = time.thread_time()
                gap = _find(document, _cursor(spot), asked)
                ms = (time.thread_time() - begun) * 1000
                how = gap if isinstance(gap, str) else _wrong(spot, data, document, gap, asked)
                found.append(
                    Record(
                        id=spot.id,
                        language=spot.language,
                        scenario=spot.scenario,
                        condition=condition,
                        asked=asked or "",
                        right=not how,
                        ms=round(ms, 3),
                        how=how,
                    )
                )
    return found


def _find(document: Document, cursor: int, kind: Kind | None) -> Gap | str:
    try:
        return find_gap(document, cursor, kind)
    except OutOfTime:
        return "out of time"
    except NoGap:
        return "no gap"
    except Exception as error:
        return type(error).__name__


def _wrong(spot: Spot, data: bytes, document: Document, gap: Gap, asked: Kind | None) -> str:
    """The fault of a gap; empty where it is right."""
    if asked is not None:
        assert spot.body is not None
        return _wrong_text(spot, data, document, gap, spot.body)
    if gap.kind not in spot.kinds:
        return f"kind {gap.kind}"
    if spot.span is not None and gap.kind == _own_kind(spot):
        return _wrong_text(spot, data, document, gap, spot.span)
    cursor = _cursor(spot)
    if document.data[gap.start : gap.end].strip():
        return "typed text in the gap" if gap.start < cursor else "text behind in the gap"
    if document.data[min(gap.start, cursor) : max(gap.start, cursor)].strip():
        return "not at the cursor"
    start = moved(_own(spot), spot.at) - spot.back + gap.start - cursor
    return _misfit(
        spot, data, (start, start + gap.end - gap.start), gap, _missing(spot, data, gap.insert_after.encode())
    )


def _missing(spot: Spot, data: bytes, tail: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The parts of the cut text that may be filled in before the gap's `tail`, and that may be written after it later.

    `f(a|` lost `, b) + g(c);`: with the tail `)` it may get `, b`, and ` + g(c);` later. With the tail `);` nothing.
    """
    cut = max(change.end for change in _own(spot))
    for end in spot.ends:
        yield data[spot.at : end], b""
        behind = data[end:cut]
        blank = len(behind) - len(behind.lstrip())
        if behind.startswith(tail, blank):
            yield data[spot.at : end], behind[blank + len(tail) :]
    for end in spot.ends:
        yield from ((data[spot.at : end], data[later:cut]) for later in spot.ends if end < later < cut)


def _wrong_text(spot: Spot, data: bytes, document: Document, gap: Gap, place: Span) -> str:
    """The same for a gap that is to be exactly the text of `place`, a span of the valid file."""
    true = [moved(_all(spot), at) for at in place]
    ends = true[0], true[1]
    if gap.kind in BODIES:
        ends = behind_comments(load_language(spot.language), document.data, ends), true[1]
    for name, got, right in zip(("start", "end"), (gap.start, gap.end), ends, strict=True):
        if document.data[min(got, right) : max(got, right)].strip():
            return f"{name} {'early' if got < right else 'late'}"
    cut = _applied(data, _own(spot))
    wanted = zip(
        (moved(_own(spot), at) for at in place), (gap.start - true[0], gap.end - true[1]), strict=True
    )
    start, end = (_shifted(cut, at, by) for at, by in wanted)
    return _misfit(spot, data, (start, end), gap, [(data[slice(*place)], b"")])


def _shifted(data: bytes, at: int, by: int) -> int:
    """`at` moved `by` bytes over white space; `at` itself where there is none because a line there was not blanked."""
    return at + by if not data[min(at, at + by) : max(at, at + by)].strip() else at


def _misfit(spot: Spot, data: bytes, span: Span, gap: Gap, texts: Iterable[tuple[bytes, bytes]]) -> str:
    """Return why none of `texts` makes the file with the cut valid; empty if one does.

    A text that takes too long to parse is not valid. span: where the gap is in that file. The first of a pair is
    between what the gap inserts, the second after.
    """
    language, cut = load_language(spot.language), _applied(data, _own(spot))
    before, after = cut[: span[0]], cut[span[1] :]
    stopped = False
    for text, behind in islice(dict.fromkeys(_closed(texts)), _TRIED):
        whole = before + gap.insert_before.encode() + text + gap.insert_after.encode() + behind + after
        try:
            if not _parsed(language, data, whole).root_node.has_error and _is_sense(spot.language, whole):
                return ""
        except OutOfTime:
            stopped = True
    return "out of time" if stopped else "does not fit"


def _closed(texts: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Each of `texts`; again with a line end where a comment at its end would take in the text after."""
    for text, behind in texts:
        yield text, behind
        if b"//" in text.rsplit(b"\n", 1)[-1]:
            yield text + b"\n", behind


def _parsed(language: Language, data: bytes, whole: bytes) -> Tree:
    """Return the tree of `whole`, parsed from the tree of the valid file, with which it shares both ends.

    Raises:
        OutOfTime: parsing takes too long.
    """
    first = common(data, whole)
    behind = common(data[first:][::-1], whole[first:][::-1])
    span = first, len(data) - behind
    return language.reparse(_tree(language, data), data, span, whole[first : len(whole) - behind])


@lru_cache(maxsize=64)
def _tree(language: Language, data: bytes) -> Tree:
    return language.parse(data)


def _is_sense(language: str, data: bytes) -> bool:
    """Return whether the interpreter takes it, too, where there is one: the grammar lets wrong indentation pass."""
    if language != "python":
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _own_kind(spot: Spot) -> str:
    return "class_body" if "class_body" in spot.id else "function_body"


def _all(spot: Spot) -> tuple[Change, ...]:
    return tuple(Change(start, end, text.encode()) for start, end, text in spot.changes)


def _own(spot: Spot) -> tuple[Change, ...]:
    return _all(spot)[-spot.own :]


def _cursor(spot: Spot) -> int:
    return moved(_all(spot), spot.at) - spot.back


def _applied(data: bytes, changes: Iterable[Change]) -> bytes:
    for change in sorted(changes, key=lambda c: c.start, reverse=True):
        data = data[: change.start] + change.text + data[change.end :]
    return data


def _document(spot: Spot, data: bytes, condition: str) -> Document:
    """The damaged file from a disk, or as a buffer that was valid and got the changes one by one."""
    uri = f"file:///place.{spot.language}"
    if condition != "editor":
        return Document(uri, spot.language, 0, _applied(data, _all(spot)))
    document = Document(uri, spot.language, 0, data)
    done: tuple[Change, ...] = ()
    for change in _all(spot):
        start = moved(done, change.start)
        document = apply_edit(document, Edit(start, start + change.end - change.start, change.text.decode()))
        done = (*done, change)
    return document
