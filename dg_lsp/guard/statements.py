"""Statements of a plain language that a semicolon ends, such as SQL: what a fill makes of its own one, read alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from dg_lsp.guard.site import Site
from dg_lsp.source.brackets import unpaired
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import marks
from dg_lsp.source.words import NEVER

# Bytes of a statement on either side of a gap, beyond which it is not read alone.
_REACH = 20_000


@dataclass(frozen=True, slots=True)
class Statement:
    """The text of a statement around a gap. first: the gap is where it begins."""

    before: bytes
    after: bytes
    first: bool


@lru_cache(maxsize=2)
def statement_of(site: Site) -> Statement | None:
    """Return the statement around the gap of `site`; None where a quote around code is open, or nothing ends one."""
    language = site.language
    if language.plain.begins is NEVER or len(language.plain.twins.findall(site.before)) % 2:
        return None
    data, at = site.before + site.after, len(site.before)
    ends = ends_of(language, data)
    start = max((stop for stop in ends if stop <= at), default=0)
    stop = min((stop for stop in ends if stop > at), default=len(data))
    if max(at - start, stop - at) > _REACH:
        return None
    before, after = (_without_bodies(language, part) for part in (data[start:at], data[at:stop]))
    return Statement(before, after, not _code(language, before))


def _without_bodies(language: Language, data: bytes) -> bytes:
    """Return `data` with a body that any grammar knows in place of those in quotes, which are other languages."""
    quotes = list(language.plain.twins.finditer(data))
    parts, at = list[bytes](), 0
    for begin, end in zip(quotes[::2], quotes[1::2], strict=False):
        parts += [data[at : begin.end()], b" SELECT 1; "]
        at = end.start()
    return b"".join((*parts, data[at:]))


def parts_of(site: Site, own: Statement) -> Iterator[Statement]:
    """Yield the statements in brackets around the gap in `own`, the innermost first: `SELECT 1` of `f((SELECT 1))`."""
    language, opened = site.language, list[int]()
    for kind, _, stop in marks(language, own.before, 0, len(own.before)):
        if kind == "open":
            opened.append(stop)
        elif kind == "close" and opened:
            opened.pop()
    closers = unpaired(language, own.after).closers
    for start, stop in zip(reversed(opened), closers, strict=False):
        before, after = own.before[start:], own.after[:stop]
        if language.plain.begins.match(_code(language, before)):
            yield Statement(before, after, first=False)


def begins_otherwise(site: Site, fill: bytes) -> bool:
    """Return whether `fill` makes a statement that begins with what begins none, such as `THEN`, in it or after it."""
    own = statement_of(site)
    if own is None:
        return False
    language, text = site.language, own.before + fill + own.after
    ends = [stop for stop in ends_of(language, text) if stop > len(own.before)]
    begun = [0] if own.first else []
    made = [_code(language, text[at:]) for at in (*begun, *ends) if at <= len(own.before + fill)]
    # The text after the gap may have begun so without the fill.
    left = _code(language, own.after) if own.first else b""
    return any(code and code != left and not language.plain.begins.match(code) for code in made)


def takes_in(site: Site, fill: bytes) -> bool:
    """Return whether `fill` begins a statement that takes in the one below it."""
    own = statement_of(site)
    if own is None or not own.first or site.rest.strip() or is_ended(site, own, fill):
        return False
    return site.language.plain.begins.match(_code(site.language, own.after)) is not None


def ends_in_brackets(site: Site, fill: bytes) -> bool:
    """Return whether `fill` ends a statement within brackets that are open around the gap."""
    language, brackets = site.language, site.state.brackets
    if language.plain.begins is NEVER or not brackets:
        return False
    return any(len(unpaired(language, fill[:end]).closers) < len(brackets) for end in ends_of(language, fill))


def is_cut_short(site: Site, fill: bytes) -> bool:
    """Return whether a statement that begins and ends in `fill` wants more before its end, such as `ALTER TABLE;`."""
    own, language = statement_of(site), site.language
    if own is None or not own.first or site.rest.strip():
        return False
    ends = ends_of(language, own.before + fill)
    return any(
        _fails_at_its_end(language, _code(language, (own.before + fill)[start:stop]))
        for start, stop in pairwise((0, *ends))
    )


def _fails_at_its_end(language: Language, statement: bytes) -> bool:
    """Return whether a parser gives `statement` up only once it reads the semicolon that ends it."""
    log: list[str] = []
    language.reparse(language.parse(b""), b"", (0, 0), statement, log.append)
    failed = next((words for words in log if words.startswith("detect_error")), "")
    return failed == "detect_error lookahead:;"


def is_ended(site: Site, own: Statement, fill: bytes) -> bool:
    """Return whether `fill` leaves no statement begun in the gap of `own`: it ends with one, or is a comment."""
    if site.rest.strip():
        return False
    text = own.before + fill
    ends = ends_of(site.language, text)
    return (own.first or bool(ends)) and not _code(site.language, text[max(ends, default=0) :])


def ends_of(language: Language, data: bytes) -> list[int]:
    """Return where the statements of `data` end, after their semicolons; none in quotes around code."""
    quotes, found, count = [m.start() for m in language.plain.twins.finditer(data)], list[int](), 0
    for kind, _, stop in marks(language, data, 0, len(data)):
        while count < len(quotes) and quotes[count] < stop:
            count += 1
        if kind == "end" and not count % 2:
            found.append(stop)
    return found


def first_code(language: Language, data: bytes) -> int:
    """Return where the first code of `data` is; its length if it has none."""
    at = 0
    for kind, start, stop in marks(language, data, 0, len(data)):
        if kind not in ("comment", "newline") or data[at:start].strip():
            break
        at = stop
    return len(data) - len(data[at:].lstrip())


def _code(language: Language, data: bytes) -> bytes:
    """Return `data` from its first byte that is code on."""
    return data[first_code(language, data) :].strip()
