"""The bounds of an Infill that comes from a client: its texts, lists and numbers. Knows the record; knows no wire.

An editor stays far below them: they keep one client from taking the memory and the time of all others.
"""

from collections.abc import Iterable, Iterator

from dg_lsp.settings import RANGES
from dg_lsp.text.languages.language import knows
from dg_lsp.text.messages import Infill

# Characters of the fields that are texts. A prefix and a suffix are at most as long as the settings allow, and hold
# what a gap inserts.
_TEXTS = {
    "prefix": 2 << 20,
    "suffix": 2 << 20,
    "language": 100,
    "indent": 10_000,
    "session": 10_000,
    "window": 1_000,
    "like": 256 << 10,
    "start": 256 << 10,
}
# Items of the fields that are lists, and characters of all texts of one: gaps of a function, half words, files,
# candidates.
_LISTS = {
    "between": (100, 2 << 20),
    "endings": (100, 100_000),
    "context": (100, 1 << 20),
    "retrieved": (100, 100_000),
    "macros": (100, 10_000),
}
_COUNT = 10**6  # words that agree, places where a candidate was found


def outside(request: Infill) -> str:
    """Return which field of `request` is out of bounds, as a sentence that holds none of its text; empty if none is."""
    return next(filter(None, _faults(request)), "")


def _faults(request: Infill) -> Iterator[str]:
    for name, most in _TEXTS.items():
        if len(getattr(request, name) or "") > most:
            yield f"the field {name!r} is a text of at most {most:,} characters"
    for name, (most, room) in _LISTS.items():
        texts = _texts_of(getattr(request, name))
        if len(getattr(request, name)) > most or sum(map(len, texts)) > room:
            yield f"the field {name!r} is a list of at most {most:,} items and {room:,} characters"
    for name, value, (least, greatest) in _numbers(request):
        # A number that is none compares as neither.
        if not least <= value <= greatest:
            yield f"the field {name!r} has a number that is not between {least:,.0f} and {greatest:,.0f}"
    if request.indent.strip(" \t\f\v"):
        yield "the field 'indent' is white space"
    if not knows(request.language):
        yield "the field 'language' names no language that this engine has a grammar for"


def _numbers(request: Infill) -> Iterator[tuple[str, float, tuple[float, float]]]:
    """Yield the numbers of `request`: the field that each is in, its value, and between which two it must be."""
    for name in ("seed", "alternatives", "confidence"):
        yield name, getattr(request, name), RANGES[name][:2]
    yield "deadline", request.deadline or 0, RANGES["deadline"][:2]
    yield "noised", request.noised, (0, 1)
    for one in request.retrieved:
        for value in (one.before, one.behind, one.count):
            yield "retrieved", value, (0, _COUNT)
        yield "retrieved", one.near, (0, 1)


def _texts_of(items: Iterable[object]) -> list[str]:
    """All texts in `items`, which are texts or records of texts."""
    found: list[str] = []
    for item in items:
        found += [item] if isinstance(item, str) else [getattr(item, n, "") for n in ("path", "text")]
    return found
