"""Places: texts cut out of real files, by lines and brackets alone, so that no grammar has a say in what is tried."""

import random
import re
from collections.abc import Callable, Iterator

from benchmarks.gaps.place import line_of
from benchmarks.guarantee.places import Place
from dg_lsp.messages import Kind
from dg_lsp.source.language import Language

Span = tuple[int, int]
_PAIRS = {b"(": b")", b"[": b"]", b"{": b"}"}
_TOKEN = re.compile(rb"[\w$]+|[^\w\s]")
_VALUE = re.compile(rb"(?:(?<![=!<>:+*/|&-])=(?!=)|\breturn\b|=>|:(?=[ \t]))[ \t]*")
_FUNCTION = re.compile(rb"\b(?:def|func|function|fn|fun|sub)\b|\)[\w\s:&<>,*?.-]*\{?\s*\Z|=>\s*\{\Z")
_LINES = 8
# After so many in a row a file is taken to be all comments.
_ATTEMPTS = 1_000


def places(language: Language, data: bytes, rng: random.Random) -> Iterator[Place]:
    """Yield places for as long as some are found: what is cut out of `data` is no comment, and is not blank."""
    kinds: dict[str, Callable[[bytes, int, random.Random], Span | None]] = {
        "rest of line": _rest,
        "statement": _statement,
        "list": _list,
        "expression": _expression,
        "body": _body,
    }
    marks = tuple(m for m in (language.comment, *(b for b, _ in language.block_comments), b"*") if m)
    failed = 0
    while failed < _ATTEMPTS:
        failed += 1
        where = rng.choice([*kinds, "rest of line"])
        at = rng.randrange(len(data))
        start, stop = line_of(data, at)
        if not data[start:stop].strip() or data[start:stop].lstrip().startswith(marks):
            continue
        span = kinds[where](data, at, rng)
        if span is None or not data[slice(*span)].strip() or data[slice(*span)].lstrip().startswith(marks):
            continue
        header = data[
            line_of(data, max(data.rfind(b"\n", 0, span[0]) - 1, 0))[0] : data.rfind(b"\n", 0, span[0])
        ]
        asks = where == "body" and not language.is_plain and rng.random() < 0.5 and _FUNCTION.search(header)
        kind: Kind | None = "function_body" if asks else None
        failed = 0
        yield Place(language, data, *span, where, kind)


def _rest(data: bytes, at: int, rng: random.Random) -> Span | None:
    """From a token to the end of its line."""
    start, stop = line_of(data, at)
    tokens = [start + m.start() for m in _TOKEN.finditer(data[start:stop])]
    return (rng.choice(tokens), start + len(data[start:stop].rstrip())) if tokens else None


def _statement(data: bytes, at: int, _: random.Random) -> Span | None:
    """All of a line."""
    start, stop = line_of(data, at)
    text = data[start:stop]
    return start + len(text) - len(text.lstrip()), start + len(text.rstrip())


def _list(data: bytes, at: int, _: random.Random) -> Span | None:
    """The text between two brackets of one line."""
    start, stop = line_of(data, at)
    opening = next((m for m in re.finditer(rb"[(\[{]", data[start:stop]) if start + m.start() >= at), None)
    if opening is None:
        return None
    depth, close = 0, _PAIRS[opening[0]]
    for m in re.finditer(
        re.escape(opening[0]) + b"|" + re.escape(close), data[start + opening.start() : stop]
    ):
        depth += 1 if m[0] == opening[0] else -1
        if not depth:
            return start + opening.end(), start + opening.start() + m.start()
    return None


def _expression(data: bytes, at: int, _: random.Random) -> Span | None:
    """The text after a sign that wants a value, without the sign that ends it."""
    start, stop = line_of(data, at)
    sign = _VALUE.search(data[start:stop])
    if sign is None:
        return None
    value = data[start + sign.end() : stop].rstrip()
    return start + sign.end(), start + sign.end() + len(value[:-1] if value.endswith((b";", b",")) else value)


def _body(data: bytes, at: int, _rng: random.Random) -> Span | None:
    """The deeper lines below a line."""
    start, stop = line_of(data, at)
    depth, first, end = _depth(data[start:stop]), stop + 1, stop
    for _ in range(_LINES):
        line = line_of(data, end + 1)
        text = data[slice(*line)]
        if line[0] != end + 1 or line[1] >= len(data) or (text.strip() and _depth(text) <= depth):
            break
        end = line[1]
    else:
        return None
    body = data[first:end]
    if end == stop or not body.strip():
        return None
    return first + len(body) - len(body.lstrip()), first + len(body.rstrip())


def _depth(line: bytes) -> int:
    return len(line) - len(line.lstrip())
