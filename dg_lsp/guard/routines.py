"""Routines: a body in quotes around code, such as a PL/pgSQL function's, whose statements are read one by one."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from dg_lsp.budget import check
from dg_lsp.guard.site import Site
from dg_lsp.guard.statements import Statement, ends_of, first_code
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import Span, indentation, line_start

# Bytes of a body beyond which it is not read.
_REACH = 40_000
# What is a query itself, and not read as the value of one.
_QUERY = re.compile(rb"\s*(?:(?:select|with|values)\b|(?:delete|insert|update)\b(?!\s*\())", re.IGNORECASE)
# What is before more values of a step.
_USING = re.compile(rb"\busing\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Routine:
    """The text of a routine's body around a gap. is_whole: its end is in the text, which may be cut."""

    language: Language
    before: bytes
    after: bytes
    is_whole: bool

    def reads(self, fill: bytes) -> bool:
        """Return whether each statement that `fill` has a part in is one, and none takes in the line below it."""
        text, first = self.before + fill + self.after, len(self.before)
        last, units = first + len(fill.rstrip()), list(_units(self.language, text))
        own = [unit for unit in units if unit.start <= last and unit.stop > first]
        if self.is_whole and sum(unit.level for unit in units) != 0:
            return False
        return all(_is_read(self.language, unit) for unit in own) and not self._takes_in(text, last, own)

    def begins_otherwise(self, fill: bytes) -> bool:
        """Return whether `fill` makes a statement that begins with what begins none, in it or of what is below it.

        Where the text without it has one already, its words are those of another dialect.
        """
        text, first = self.before + fill + self.after, len(self.before)
        last, units = first + len(fill.rstrip()), list(_units(self.language, text))
        below = next((unit.start for unit in units if unit.start >= last), last)
        made = [unit for unit in units if first <= unit.start <= below]
        return not all(unit.begins for unit in made) and _is_known(self)

    def statement(self) -> Statement:
        """Return the statement around the gap."""
        text, at = self.before + self.after, len(self.before)
        unit = next((u for u in _units(self.language, text) if u.stop >= at), _Unit(at, at, b""))
        start = min(unit.start, at)
        return Statement(text[start:at], text[at : max(unit.stop, at)], first=start == at)

    def _takes_in(self, text: bytes, last: int, own: list["_Unit"]) -> bool:
        """Return whether a unit of `own` that continues after `last` holds another statement's beginning there."""
        below = last + first_code(self.language, text[last:])
        plain, line = self.language.plain, text[last:below]
        begin, first = line_start(text, len(self.before)), len(self.before)
        held = [unit for unit in own if begin <= unit.start < last and below < unit.stop]
        # A clause of what the line began before the gap is no other statement, such as `VALUES`.
        if (
            all(unit.start < first and _is_clause(self.language, unit, below) for unit in held)
            or b"\n" not in line
        ):
            return False
        if indentation(text, below) > indentation(text, begin):
            return False
        return any(words.match(text, below) for words in (plain.blocks, plain.steps, plain.begins))


@dataclass(frozen=True, slots=True)
class _Unit:
    """A header of a block or a statement, from `start` to `stop`.

    code: what is read in its place, if anything. level: 1 if it opens a block, -1 if it closes one. begins: it may be
    where it is, by its first words.
    """

    start: int
    stop: int
    code: bytes
    level: int = 0
    begins: bool = True


def routine_of(site: Site) -> Routine | None:
    """Return the body around the gap of `site`; None if it is in none, or in one that is too long to be read."""
    plain = site.language.plain
    quotes = list(plain.twins.finditer(site.before))
    if len(quotes) % 2 == 0:
        return None
    before, stop = site.before[quotes[-1].end() :], site.after.find(quotes[-1][0])
    after = site.after[:stop] if stop >= 0 else site.after
    return Routine(site.language, before, after, stop >= 0) if len(before + after) <= _REACH else None


def _units(language: Language, text: bytes) -> Iterator[_Unit]:
    """Yield the headers of blocks and the statements of a body."""
    plain, ends = language.plain, ends_of(language, text)
    at, is_declared = first_code(language, text), False
    while at < len(text):
        check()
        following = bisect_right(ends, at)
        stop = ends[following] if following < len(ends) else len(text)
        block = plain.blocks.match(text, at, stop)
        if block:
            begins = not is_declared or block["body"] is not None
            is_declared = block["declares"] is not None
            level = int(block["opens"] is not None) - int(block["closes"] is not None)
            yield _Unit(at, block.end(), _selected(block["value"]) if block["value"] else b"", level, begins)
        else:
            code = _read_as(language, text, (at, stop), is_declared=is_declared)
            yield _Unit(at, stop, code, begins=_begins(language, text, (at, stop), is_declared=is_declared))
        at = block.end() if block else stop
        at += first_code(language, text[at:])


def _begins(language: Language, text: bytes, span: Span, *, is_declared: bool) -> bool:
    """Return whether the statement at `span` begins as one may, or is a declaration where those are."""
    plain, (start, stop) = language.plain, span
    if is_declared:
        return plain.declares.fullmatch(text, start, stop) is not None
    return any(words.match(text, start, stop) for words in (plain.steps, plain.begins))


@lru_cache(maxsize=2)
def _is_known(routine: Routine) -> bool:
    """Return whether with nothing in the gap of `routine` all statements but a cut one begin as they may."""
    text, at = routine.before + routine.after, len(routine.before)
    cut = at + first_code(routine.language, text[at:])
    return all(unit.begins or unit.start == cut for unit in _units(routine.language, text))


def _read_as(language: Language, text: bytes, span: Span, *, is_declared: bool) -> bytes:
    """Return what is read in place of the statement at `span`: the value that it declares, or that a step takes."""
    start, stop = span
    if is_declared and (found := language.plain.declares.fullmatch(text, start, stop)):
        return _selected(found["value"]) if found["value"] else b""
    step = None if is_declared else language.plain.steps.match(text, start, stop)
    if step is None:
        return text[start:stop]
    value = text[step.end() : stop]
    return _selected(_USING.sub(b",", value) if step["using"] else value)


def _selected(value: bytes) -> bytes:
    return value if _QUERY.match(value) else b"SELECT " + value


def _is_clause(language: Language, unit: _Unit, at: int) -> bool:
    """Return whether a word of the language, and no name, is at the offset `at` in `unit`."""
    start = len(unit.code) - (unit.stop - at)
    leaf = (
        language.parse(unit.code).root_node.descendant_for_byte_range(start, start + 1)
        if start >= 0
        else None
    )
    return leaf is not None and leaf.start_byte == start and leaf.type != "identifier"


def _is_read(language: Language, unit: _Unit) -> bool:
    root = language.parse(unit.code).root_node
    return not root.has_error and not language.captures(root).get("refuse")
