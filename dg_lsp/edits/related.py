"""Related lines: what was edited, as hunks of a diff, and the lines that share the most telling words with it.

A word tells the more the fewer lines have it (inverse document frequency: Spärck Jones 1972). So do its parts:
`getUser` and `user_id` share one.
"""

import math
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from dg_lsp.budget import check
from dg_lsp.files.excluded import split_uri
from dg_lsp.gaps import Edit
from dg_lsp.messages import Hunk
from dg_lsp.source.bursts import Bursts
from dg_lsp.source.document import LINE_END, Document
from dg_lsp.source.history import Change, trimmed

# Bursts that are looked at, changed lines of a hunk, and characters of all hunks but those of the newest burst.
_BURSTS, _LINES, _OTHERS = 4, 12, 1500
# Lines around a hunk and above a line that may change, and characters of a header of a function or class.
_AROUND, _ABOVE, _HEADER = 2, 3, 80
# Lines that are returned, and characters of the longest of them.
_MOST, _LONGEST = 6, 300
# What a word tells that was put in or removed, beside one of the same line; and what the part of a word tells.
_EDITED, _PART = 2.0, 0.5
_WORD = re.compile(r"[^\W\d]\w*")
_PARTS = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}(?![a-z])|[A-Z]{2,}(?=[A-Z][a-z])|\d{2,}")
# What takes the place of a word that no open document has any more.
_GONE = "…"
_KNOWN = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Related:
    """Lines of `document` that may have to follow an edit, mostly one, and their `hunk`, in which they are removed.

    start, end: their bytes, without the last line end.
    """

    document: Document
    start: int
    end: int
    hunk: Hunk


def hunks_of(document: Document, bursts: Bursts, others: Sequence[Document] = ()) -> tuple[Hunk, ...]:
    """Return what the recent `bursts` have changed in `document`, the newest one last.

    () if that has changed too much, or has put in lines only, as new code does. A word that was removed and that no
    longer is in the document or in one of the `others` is in no hunk.
    """
    if bursts.last is None:
        return ()
    oldest, newest = bursts.recent[-_BURSTS:][0], bursts.last.spans(document.data)
    changes = trimmed(oldest.own.followed_by(oldest.later), oldest.before, document.data).spans
    before, lines = Document("", document.language, 0, oldest.before), lines_of(document)
    old, known = lines_of(before), {word for one in (document, *others) for word in _KNOWN.findall(one.text)}
    own, older = list[Hunk](), list[Hunk]()
    for start, end, now, stop in _changed_lines(changes, before, document):
        removed = [
            _KNOWN.sub(lambda word: word[0] if word[0] in known else _GONE, line) for line in old[start:end]
        ]
        hunk = _hunk(document, lines, (now, stop), removed)
        is_own = any(document.line_at(one.now) < stop and now <= document.line_at(one.stop) for one in newest)
        if end - start + stop - now <= _LINES:
            (own if is_own else older).append(hunk)
        elif is_own:
            return ()
    while sum(len(hunk.above + hunk.removed + hunk.added + hunk.below) for hunk in older) > _OTHERS:
        del older[0]
    return (*older, *own) if any(hunk.removed for hunk in own) else ()


def related_lines(documents: Sequence[Document], hunks: Sequence[Hunk]) -> list[Related]:
    """Return the lines of `documents` that share the most telling words with the `hunks` of the first document.

    Raises:
        OutOfTime: looking for them takes too long.
    """
    telling, count = _telling(hunks), Counter[str]()
    changed = {number for hunk in hunks for number in _added(hunk)}
    found = list[tuple[int, int, set[str]]]()
    texts = [lines_of(document) for document in documents]
    for place, lines in enumerate(texts):
        for number, line in enumerate(lines):
            check()
            shared = telling.keys() & _words_of(line) if len(line) <= _LONGEST else set[str]()
            count.update(shared)
            if shared and (place or number not in changed):
                found.append((place, number, shared))
    total = sum(map(len, texts))

    def order(one: tuple[int, int, set[str]]) -> float:
        place, number, shared = one
        weight = sum(telling[word] * math.log(1 + total / (1 + count[word])) for word in shared)
        return -weight / math.sqrt(3 + len(_words_of(texts[place][number])))

    most = sorted(found, key=order)[:_MOST]
    return [_related(documents[place], texts[place], number) for place, number, _ in most]


def lines_from(document: Document, edits: Sequence[Edit]) -> Related:
    """Return the lines of `document` from the first of `edits` to the last one, with a hunk that makes all of them."""
    first, last = min(edit.start for edit in edits), max(edit.end for edit in edits)
    number, stop = document.line_at(first), document.line_at(last) + 1
    lines, start, end = lines_of(document), document.line_starts[number], document.line_end(stop - 1)
    new, at = b"", start
    for edit in sorted(edits, key=lambda edit: edit.start):
        new, at = new + document.data[at : edit.start] + edit.text.encode(), edit.end
    made = LINE_END.split((new + document.data[at:end]).decode("utf-8", "replace"))
    hunk = _hunk(document, lines, (number, stop), lines[number:stop], _ABOVE)
    return Related(document, start, end, replace(hunk, added="".join(f"{line}\n" for line in made)))


def lines_of(document: Document) -> list[str]:
    """Return the lines of `document`, without their ends."""
    lines = LINE_END.split(document.text)
    return lines if lines[-1] else lines[:-1]


def _telling(hunks: Sequence[Hunk]) -> dict[str, float]:
    """Return what each word of `hunks` tells, and each part of one.

    Lines that were only added, or only removed, tell by the words of the lines around them, too: those of the element
    before a new one.
    """
    telling = dict[str, float]()
    for hunk in hunks:
        removed, added = _words_of(hunk.removed), _words_of(hunk.added)
        around = set[str]()
        if not removed or not added:
            around = _words_of(
                hunk.above.rstrip("\n").rpartition("\n")[2] + " " + hunk.below.partition("\n")[0]
            )
        for words, weight in ((around, 1.0), (removed & added, 1.0), (removed ^ added, _EDITED)):
            for word in words:
                own = weight * (_PART if word[0] == "~" else 1.0)
                telling[word] = max(telling.get(word, 0.0), own)
    return telling


def _words_of(text: str) -> set[str]:
    """Return the words of `text`, and the parts of each, with a `~` before them."""
    words = {*_WORD.findall(text)}
    return words.union(*map(_parts_of, words))


@lru_cache(maxsize=10_000)
def _parts_of(word: str) -> frozenset[str]:
    return frozenset(f"~{part.lower()}" for part in _PARTS.findall(word))


def _added(hunk: Hunk) -> range:
    """Return the numbers of the lines that `hunk` has added, from 0."""
    first = hunk.line - 1 + hunk.above.count("\n")
    return range(first, first + hunk.added.count("\n"))


def _related(document: Document, lines: Sequence[str], number: int) -> Related:
    hunk = _hunk(document, lines, (number, number + 1), lines[number : number + 1], _ABOVE)
    start = document.line_starts[number]
    return Related(document, start, document.line_end(number), replace(hunk, added=""))


def _hunk(
    document: Document,
    lines: Sequence[str],
    at: tuple[int, int],
    removed: Sequence[str],
    above: int = _AROUND,
) -> Hunk:
    """Return the hunk in which the lines [start, stop) are those added in place of those `removed`."""
    start, stop = at
    first = max(start - above, 0)
    parts = lines[first:start], removed, lines[start:stop], lines[stop : stop + _AROUND]
    path = posixpath.basename(split_uri(document.uri)[1])
    return Hunk(
        path, first + 1, _scope(lines, first), *("".join(f"{line}\n" for line in part) for part in parts)
    )


def _scope(lines: Sequence[str], at: int) -> str:
    """Return the headers of the outermost and the innermost block around the line `at`, as their indentation says."""
    body = next((line for line in lines[at:] if line.strip()), "")
    indent, headers = len(body) - len(body.lstrip()), list[str]()
    for line in reversed(lines[:at]):
        own = len(line) - len(line.lstrip())
        if not indent:
            break
        if line.strip() and own < indent and line.strip()[0] not in ")]}":
            headers.append(line.strip()[:_HEADER])
            indent = own
    return " ".join(dict.fromkeys((*headers[:-2:-1], *headers[:1])))


def _changed_lines(
    changes: Sequence[Change], before: Document, now: Document
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the lines [start, end) of the text `before` that became the lines [now, stop) of the present one."""
    groups, old, new = list[list[int]](), lines_of(before), lines_of(now)
    for change in changes:
        lines = [before.line_at(change.start), before.line_at(change.end) + 1]
        lines += [now.line_at(change.now), now.line_at(change.stop) + 1]
        if groups and (lines[0] <= groups[-1][1] or lines[2] <= groups[-1][3]):
            groups[-1][1::2] = lines[1::2]
        else:
            groups.append(lines)
    for start, end, first, stop in groups:
        same = _same(old[start:end], new[first:stop])
        below = _same(old[start + same : end][::-1], new[first + same : stop][::-1])
        if start + same < end - below or first + same < stop - below:
            yield start + same, end - below, first + same, stop - below


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines `one` and `other` have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
