"""Loose ends: comments, quotes and brackets that a fill leaves open, or closes though they are not open.

The tokens of the fill in its place show them, whatever a tree says: grammars accept more than their languages.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from dg_lsp.guard.site import Site
from dg_lsp.source.brackets import PAIRS, template_at
from dg_lsp.source.jsx import Mark
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import (
    Span,
    block_end,
    is_closed_comment,
    marks,
    quotes_at,
)

# Bytes of a text that are read for its brackets; and before a fill, from the start of its statement.
_REACH, _NEAR = 200_000, 4_000
_OPENERS = {closer: opener for opener, closer in PAIRS.items()}
# Characters of C0 and C1, and line ends beyond ASCII, in UTF-8; spaces beyond ASCII.
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf")
_SPACES = re.compile(rb"\xc2\xa0|\xe2\x80[\x80-\x8b\xaf]|\xe3\x80\x80|\xef\xbb\xbf")
# Text after which `<<` begins no heredoc.
_OPERAND = re.compile(rb"(?:[\w)\]}\"']|\bclass[ \t]+)\Z")
_LITERALS = ("string", "open_string", "open_text", "comment", "directive")


@dataclass(frozen=True, slots=True)
class Loose:
    """A loose end: a half-open span of the fill, and what it is, as words."""

    start: int
    end: int
    what: str


def loose_literal(site: Site, fill: bytes) -> Loose | None:
    """Return the first string or comment that `fill` leaves open in the gap of `site`, or ends; None if there is none.

    Nor may the fill hold a control character that the text around it does not hold, or in code a space of another kind.
    1. A string or comment that begins in the fill ends in it. A string may end in the text after it if that has a
    quote too many without the fill, and a heredoc if that has a line of its name.  2. The string of one line that the
    gap is in ends on its line.  3. No comment ends that has not begun.
    """
    place, code = _place_of(site, fill), site.language.is_plain or not site.is_prose
    found = _control(place) or (
        _open_literal(place)
        or _nested_comment(place)
        or _heredoc(place)
        or _comment_end(place)
        or _twin(place)
        or _section(place)
        or _strange(place)
        if code
        else None
    )
    return place.loose(*found) if found else None


def loose_bracket(site: Site, fill: bytes) -> Loose | None:
    """Return a bracket or tag of `fill` in the gap of `site` that has no mate; None if there is none.

    The fill closes its own, and those that the text around it leaves open; the text after it closes those that it
    leaves open. It ends no block that the rest of its line ends.
    """
    if site.is_prose and not site.language.is_plain:
        return None
    place = _place_of(site, fill)
    found = _bracket(place)
    return place.loose(*found) if found else None


@lru_cache(maxsize=2)
def _place_of(site: Site, fill: bytes) -> "_Place":
    """Return the `fill` in its line, and the marks there."""
    start = _start(site)
    newline = site.after[len(site.rest) :][:1]
    near = site.before[min(start, max(len(site.before) - _NEAR, 0)) :]
    first = start - (len(site.before) - len(near))
    text = near + fill + site.rest + newline
    own = site.state.begins - len(site.before) + len(near) if site.state.begins >= site.line else -1
    found = tuple(marks(site.language, text, first, len(text)))
    return _Place(site, text, (len(near), len(near) + len(fill)), own, found)


@dataclass(frozen=True, slots=True)
class _Place:
    """A fill in its line: the text, the span of the fill in it, and the marks there.

    own: where the string or comment begins that the gap's line has opened before the gap, else -1.
    """

    site: Site
    text: bytes
    fill: Span
    own: int
    marks: tuple[Mark, ...]

    @property
    def language(self) -> Language:
        """The language of the site."""
        return self.site.language

    def loose(self, at: int, what: str) -> Loose:
        """Return `what` from the offset `at` of the text on as a loose end of the fill."""
        start, end = self.fill
        return Loose(min(max(at, start), end) - start, end - start, what)


def _start(site: Site) -> int:
    """Return where reading begins: at the gap, or before it where its text depends on what is open there."""
    state, at = site.state, len(site.before)
    if state.string or state.comment or state.text:
        # What began lines above was misread where the gap is known to be in code.
        known = not site.language.is_plain and site.kind not in ("rest_of_line", "span")
        return at if known and state.begins < site.line else state.begins
    # Code within a template ends with it.
    line = min(state.line, template_at(site.before, state.opened))
    return line if 0 <= at - line < _NEAR else at


def _open_literal(place: _Place) -> tuple[int, str] | None:
    """Return the place and kind of a string or comment that is not closed where it must be."""
    text, (start, end), language = place.text, place.fill, place.language
    rest = text[end:].strip()
    for kind, first, stop in place.marks:
        if kind == "comment" and start <= first < end:
            block = block_end(language, text[first:stop])
            if block and not (is_closed_comment(language, text[first:stop]) and stop <= end):
                return first, "an unclosed comment"
            commented = rest.startswith((language.comment, *(a for a, _ in language.block_comments)))
            if not block and rest and stop > end and not commented:
                return first, "a comment that takes in what follows"
        if kind == "open_string" and (first >= start or _must_end(place, first)):
            if first < end and not _is_closed_below(place, first):
                return first, "an unclosed string"
            if first >= end and not _is_odd(place):
                return end, "a string that takes in what follows"
        if kind == "string" and start <= first < end < stop and not _is_odd(place):
            return first, "a string that takes in what follows"
    return None


def _nested_comment(place: _Place) -> tuple[int, str] | None:
    """Return the place where the fill begins the block comment again that it is in; some dialects nest them."""
    site, (start, end) = place.site, place.fill
    begun = site.before[site.state.begins :] if site.state.comment else b""
    opening = next((a for a, _ in place.language.block_comments if begun.startswith(a)), None)
    at = place.text.find(opening, start, end) if opening else -1
    return (at, "a comment within a comment") if at >= 0 else None


def _control(place: _Place) -> tuple[int, str] | None:
    """Return the place and kind of a control character that the text around the fill does not hold."""
    site, text, (start, end) = place.site, place.text, place.fill
    for found in _CONTROLS.finditer(text, start, end):
        if found[0] == b"\0" or not (found[0] in site.before or found[0] in site.after):
            return found.start(), "a null byte" if found[0] == b"\0" else "a control character"
    return None


def _heredoc(place: _Place) -> tuple[int, str] | None:
    """Return the place and kind of a heredoc that no line ends: it would take in all that follows."""
    site, text, (start, end) = place.site, place.text, place.fill
    for found in place.language.scanner.heredoc.finditer(text, start, end):
        name, above = found["name"] or found["quoted"], text[: found.start()]
        # `a<<b` appends, and `class <<self` is a class.
        if not name or _OPERAND.search(above) or _is_literal(place, found.start()):
            continue
        last = re.compile(rb"^[ \t]*+%b[ \t]*+\r?$" % re.escape(name), re.MULTILINE)
        if not (last.search(text, found.end(), end) or last.search(site.after)):
            return found.start(), "an unclosed heredoc"
    return None


def _twin(place: _Place) -> tuple[int, str] | None:
    """Return the place and kind of a quote around code that has no twin, such as `$$` in SQL."""
    site, text, (start, end) = place.site, place.text, place.fill
    found = {twin[0]: twin.start() for twin in place.language.plain.twins.finditer(text, start, end)}
    for twin, at in found.items():
        if text.count(twin, start, end) % 2 and not (site.before.count(twin) + site.after.count(twin)) % 2:
            return at, f"an unclosed `{twin.decode()}`"
    return None


def _section(place: _Place) -> tuple[int, str] | None:
    """Return the place and kind of what ends code or begins it, such as `?>` in PHP, if that changes what follows."""
    site, sections = place.site, place.language.plain.sections
    found = [m for m in sections.finditer(place.text, *place.fill) if not _is_literal(place, m.start())]
    last = next(reversed(found), None)
    if last is None:
        return None
    # Code continues up to its end, or to the end of the text; text up to where code begins.
    following = sections.search(site.after)
    if last["opens"]:
        wrong = following is not None and following["opens"] is not None
    else:
        wrong = not following["opens"] if following else bool(site.after.strip())
    return (last.start(), f"`{last[0].decode()}`, which changes how what follows is read") if wrong else None


def _strange(place: _Place) -> tuple[int, str] | None:
    """Return the place and kind of a space or sign in code that its language has not.

    Data and elements hold any space; and a template of data, the signs of templates.
    """
    site, text, (start, end) = place.site, place.text, place.fill
    data, never = place.language.plain.data, place.language.plain.never
    for found in () if data else _SPACES.finditer(text, start, end):
        if not _is_literal(place, found.start()):
            return found.start(), "a space that is none in code"
    if data and (never.search(site.before) or never.search(site.after)):
        return None
    for found in never.finditer(text):
        if found.start() < end and found.end() > start and not _is_literal(place, found.start()):
            return found.start(), f"`{found[0].decode('utf-8', 'replace')}`, which is no code"
    return None


def _is_literal(place: _Place, at: int) -> bool:
    """Return whether the offset `at` is in a string, a comment or a directive."""
    return any(kind in _LITERALS and first <= at < stop for kind, first, stop in place.marks)


def _must_end(place: _Place, first: int) -> bool:
    """Return whether the string that begins at `first`, before the fill, is the one of its line and must end on it."""
    return first == place.own and len(quotes_at(place.language, place.text, first).close) == 1


def _is_odd(place: _Place) -> bool:
    """Return whether the rest of the line without the fill has a quote too many."""
    rest = place.site.rest + place.text[-1:] * (len(place.text) > place.fill[1] + len(place.site.rest))
    return any(kind == "open_string" for kind, *_ in marks(place.language, rest, 0, len(rest)))


def _is_closed_below(place: _Place, first: int) -> bool:
    """Return whether the string that begins at `first` ends below, where a quote has no mate without the fill."""
    if not quotes_at(place.language, place.text, first).lines:
        return False
    (_, end), site = place.fill, place.site
    whole = place.text[:end] + site.after[:_REACH]
    _, old = _after(site, _REACH)
    new = marks(place.language, whole, first, len(whole))
    return any(kind == "open_string" for kind, *_ in old) and all(kind != "open_string" for kind, *_ in new)


def _comment_end(place: _Place) -> tuple[int, str] | None:
    """Return the place of the end of a block comment that has not begun; in HTML's text `-->` means nothing."""
    ends = tuple(end for _, end in place.language.block_comments if end != b"-->")
    text, (start, end) = place.text, place.fill
    for mark in ends:
        at = text.find(mark, start, end)
        while at >= 0:
            if not _is_literal(place, at):
                return at, "the end of a comment that never began"
            at = text.find(mark, at + 1, end)
    return None


def _bracket(place: _Place) -> tuple[int, str] | None:
    """Return the place and kind of a bracket or tag of the fill that has no mate, and is not missing around it."""
    site, (start, end) = place.site, place.fill
    fill = _pairs(place.language, place.text, (mark for mark in place.marks if start <= mark[1] < end))
    if place.language.plain.has_tags:
        # A tag may begin before the fill and end after it, so whole lines are compared.
        line, rest = site.before[site.line :], site.rest
        above = pairs_in(place.language, site.before[: site.line])
        below = pairs_in(place.language, site.after[len(rest) :])
        old, fill = (pairs_in(place.language, line + text + rest) for text in (b"", place.text[start:end]))
    elif not (fill.lacking or fill.opened):
        return None
    else:
        above, below, old = pairs_in(place.language, site.before[-_REACH:]), _pairs_after(site), Pairs()
    was, now = (above.joined(one).joined(below) for one in (old, fill))
    # A tree of code shows these itself, and its text may be cut anywhere.
    if place.language.is_plain and now.lacking - was.lacking:
        return start, "an unmatched closing bracket"
    if place.language.is_plain and (left := now.opened - was.opened):
        name = next(iter(left))
        return (
            end,
            f"a missing `{PAIRS[name].decode()}`" if name in PAIRS else f"a missing end of `{name.decode()}`",
        )
    if fill.lacking[b"{"] and fill.opened[b"{"] and _ends_block(site):
        return start, "the end of a block that its line ends already"
    return None


@dataclass(frozen=True, slots=True)
class Pairs:
    """The brackets or tags that a text closes and does not open, and those that it opens and does not close."""

    lacking: Counter[bytes] = field(default_factory=Counter)
    opened: Counter[bytes] = field(default_factory=Counter)

    def joined(self, following: "Pairs") -> "Pairs":
        """Return those of both texts."""
        met = self.opened & following.lacking
        return Pairs(self.lacking + (following.lacking - met), (self.opened - met) + following.opened)


def _paired(brackets: Iterable[tuple[bool, bytes]]) -> Pairs:
    """Return the pairs of `brackets`, each of which opens or not, and has a name."""
    lacking, opened = Counter[bytes](), Counter[bytes]()
    for opens, name in brackets:
        if opens:
            opened[name] += 1
        elif opened[name]:
            opened[name] -= 1
        else:
            lacking[name] += 1
    return Pairs(lacking, +opened)


def _pairs(language: Language, data: bytes, found: Iterable[Mark]) -> Pairs:
    """Return the brackets among the marks `found` of `data`; a plain language may not have all of them in pairs."""
    brackets = ((kind, data[first:stop]) for kind, first, stop in found if kind in ("open", "close"))
    return _paired(
        (kind == "open", _OPENERS.get(sign, sign))
        for kind, sign in brackets
        if sign in language.plain.brackets
    )


@lru_cache(maxsize=16)
def pairs_in(language: Language, data: bytes) -> Pairs:
    """Return the brackets of `data`, which begins in no string; the tags of elements where the language has those."""
    if not language.plain.has_tags:
        return _pairs(language, data, marks(language, data, 0, len(data)))
    tags = language.plain.tags.finditer(data)
    counted = (tag for tag in tags if not (tag["alone"] or tag["name"].lower() in language.plain.alone))
    return _paired((not tag["close"], tag["name"].lower()) for tag in counted)


@lru_cache(maxsize=2)
def _pairs_after(site: Site) -> Pairs:
    """Return the brackets after the gap."""
    data, marks_of = _after(site, _REACH)
    return _pairs(site.language, data, marks_of)


def _ends_block(site: Site) -> bool:
    """Return whether the rest of the gap's line closes a brace that it has not opened."""
    data, marks_of = _after(site, len(site.rest))
    return bool(_pairs(site.language, data, marks_of).lacking[b"{"])


def _after(site: Site, size: int) -> tuple[bytes, list[Mark]]:
    """Return text around the gap and its marks after the gap, over `size` bytes, as they are read without a fill."""
    state, start = site.state, _start(site)
    if state.begins >= site.line and len(state.string) == 1 and state.string not in site.rest:
        # What ends the string of this line is missing.
        start = len(site.before)
    data, at = site.before[start:] + site.after[:size], len(site.before) - start
    return data, [mark for mark in marks(site.language, data, 0, len(data)) if mark[1] >= at]
