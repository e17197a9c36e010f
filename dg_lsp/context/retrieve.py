"""Retrieved candidates for a gap: texts that follow the same words elsewhere, cut where they reach the suffix."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from dg_lsp.budget import bounded
from dg_lsp.context.index import Index, Other
from dg_lsp.context.match import Match, Place, matches, place_of, texts
from dg_lsp.context.rows import LINE_ENDS, NAME, Rows
from dg_lsp.context.secrets import has_secret
from dg_lsp.gaps import Gap
from dg_lsp.messages import PARTS, STRINGS, Retrieved
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language, load_language
from dg_lsp.source.lexer import indentation, leading, line_end, line_start

MOST = 4
# The longest text that is looked at, in characters: of 1,800 gaps within a line in files of 2026 the longest has 158,
# and a model that reads a line of 800 tokens takes seconds.
_LONGEST = 200
# Lines above a match that are read for the block that it is in.
_LINES_ABOVE = 200
_WORDS = re.compile(rb"\w+")
# A name is near if it is so many words and signs before the gap, or so many after it.
_ABOVE, _BELOW = 150, 50
# Searches of one gap at most, each without the files that the one before has found to have changed.
_TRIES = 3
# The weights of the evidence for a text whose line has begun, and for one on a new line, fitted on holes in eight
# packages by the share of the right text. Of words that agree: each on the gap's line, all of that line, each further
# one before it, each after the gap. A place directly at the gap. Names: one that the document has not, each that is
# not in sight. Each doubling of how often the text was found; all texts that were found are this one.
_BEGUN = (0.49, 1.63, 0.43, 0.52, 2.35, -1.44, -0.64, 0.58, -2.5)
_NEW_LINE = (0.0, 0.0, 0.54, 0.79, 3.9, -2.4, -0.2, 0.46, -3.0)


@dataclass(slots=True)
class _Found:
    """A text: its best match, the entry where it ends there, how many words agree there, how often it was found."""

    match: Match
    stop: int
    after: int
    count: int = 0

    @property
    def worth(self) -> tuple[float, ...]:
        """Return the key by which the best of several matches is chosen."""
        return self.match.before + self.after / 2 + self.match.near, self.match.near


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search: candidates, best first, and the uris of their files."""

    texts: tuple[Retrieved, ...] = ()
    uris: tuple[str, ...] = ()


@bounded
def search(document: Document, gap: Gap, index: Index) -> Search:
    """At most MOST texts that may belong in `gap`, the best first, from this document and the files of `index`.

    1. Read the text around the gap.  2. Look for the last words before it, in this document and in the others.
    3. Cut what follows them where it fits the text after the gap.  4. Count like texts, and rank them.  5. Leave
    out what looks like a key of another file.  6. If a file that was used has changed, begin again without it.
    """
    if gap.kind not in PARTS or gap.kind in (*STRINGS, "comment") or gap.further:
        return Search()
    # 1.
    place = place_of(document, gap)
    for _ in range(_TRIES):
        others = {id(other.rows): other for other in index.beside(document.uri, document.language)}
        found = _collect(document, gap, place, [other.rows for other in others.values()])
        # 4. and 5.
        order = list(islice(_without_secrets(document, _ranked(place, found), others), MOST))
        used = {other.uri: other for _, one in order if (other := others.get(id(one.match.rows)))}
        # 6.
        if all(map(index.still_has, used.values())):
            sources = (others.get(id(one.match.rows)) for _, one in order)
            uris = (source.uri if source else document.uri for source in sources)
            return Search(tuple(map(_retrieved, order)), tuple(dict.fromkeys(uris)))
        # Where one file has changed others have, as after `git switch`.
        for rows in {id(one.match.rows) for one in found.values()} & others.keys():
            index.still_has(others[rows])
    return Search()


def _collect(document: Document, gap: Gap, place: Place, others: list[Rows]) -> dict[str, _Found]:
    """Steps 2 and 3 of `search`: the texts, each with its best match."""
    found, language = dict[str, _Found](), load_language(document.language, document.macros)
    # 2.
    for match in matches(place, others):
        # 3.
        for text, stop, after in texts(place, match):
            if len(text) > _LONGEST or (gap.stub and not _is_like(language, gap, match)):
                continue
            new = _Found(match, stop, after)
            best = max(found.get(text, new), new, key=lambda one: one.worth)
            best.count = found[text].count + 1 if text in found else 1
            found[text] = best
    return found


def _retrieved(found: tuple[str, _Found]) -> Retrieved:
    text, one = found
    return Retrieved(text, one.match.before, one.after, one.count, round(one.match.near, 3))


def _without_secrets(
    document: Document, ranked: list[tuple[str, _Found]], others: Mapping[int, Other]
) -> Iterator[tuple[str, _Found]]:
    """Step 5 of `search`: what is in the document itself may be a secret, and goes to the model anyway."""
    for text, one in ranked:
        rows, first = one.match.rows, one.match.at
        if id(rows) in others and text.strip().encode() not in document.data:
            start = rows.starts[first]
            if has_secret(rows.data, start, start + len(rows.text(first, one.stop))):
                continue
        yield text, one


def _is_like(language: Language, gap: Gap, match: Match) -> bool:
    """Return whether `match` is in code as `gap` is: no line of a file or class fills a function's placeholder."""
    data, at = match.rows.data, match.at
    start = match.rows.starts[at] if at < len(match.rows) else len(data)
    if not gap.indent:
        return not leading(data, start)
    deep = indentation(data, start)
    for _ in range(_LINES_ABOVE):
        if not deep:
            return False
        start = line_start(data, start - 1)
        line = data[start : line_end(data, start)]
        if not line.strip() or indentation(data, start) >= deep:
            continue
        deep = indentation(data, start)
        words = {*_WORDS.findall(line.partition(b"(")[0])}
        if b"(" in line or words & (language.words.functions | language.words.classes):
            return not words & language.words.classes
    return True


def _ranked(place: Place, found: dict[str, _Found]) -> list[tuple[str, _Found]]:
    """The texts, the best first."""
    kinds, words = place.before.kinds, place.before.words
    head = len(kinds) - 1 - max(map(kinds.rfind, LINE_ENDS))
    known = {*words, *place.after.words}
    in_sight = {*words[-_ABOVE:], *place.after.words[:_BELOW]}
    weights = _BEGUN if head else _NEW_LINE
    total = sum(one.count for one in found.values())

    def score(one: _Found) -> float:
        rows, at, before = one.match.rows, one.match.at, one.match.before
        names = [
            w for w, k in zip(rows.words[at : one.stop], rows.kinds[at : one.stop], strict=True) if k == NAME
        ]
        evidence = (
            *(min(before, head), before >= head, max(before - head, 0), one.after, one.match.near),
            *(not known.issuperset(names), sum(name not in in_sight for name in names)),
            *(math.log2(one.count), one.count / total),
        )
        return float(sum(weight * value for weight, value in zip(weights, evidence, strict=True)))

    return sorted(found.items(), key=lambda item: (-score(item[1]), item[0]))
