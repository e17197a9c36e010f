"""Syntax errors that a fill adds: errors of the text with the fill, less those with a neutral placeholder."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice

from tree_sitter import Tree

from dg_lsp.budget import bounded, tried
from dg_lsp.guard.site import Site
from dg_lsp.messages import PARTS, STRINGS
from dg_lsp.reasons import Unreadable
from dg_lsp.source.brackets import closers, state_at, template_at, unpaired
from dg_lsp.source.document import BOM
from dg_lsp.source.items import member_around, top_level_item
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import LogicalLine, indentation, line_end, line_start
from dg_lsp.source.lines import function_over, needs_body
from dg_lsp.source.python import CHECKED
from dg_lsp.source.recovery import count_tokens
from dg_lsp.source.repair import Closing, cost_of, insertions, missing_tokens_at, out_of_reach
from dg_lsp.source.words import NEVER

_PLACE = re.compile(r"process version:\d+, .*\brow:(\d+), col:(\d+)")
# A line with text and its first character; those that go on with what is above; the end of a header or a statement.
_LINE = re.compile(rb"(?<=[\r\n])[ \t\f]*([^\s])")
_JOINED = b")]}>.?:|&,="
_BLANK = re.compile(rb"[ \t\f]*[\r\n]")
_ENDED = re.compile(rb"[{}:;][ \t]*(?:[\r\n]|//|/\*|#)")
# What a message says of lines, which count from the beginning of a part: `expected ':' (detected at line 3)`.
_LINE_NUMBER = re.compile(r" \((?:<checked>|detected at).*\)$| on line \d+")
# It is refused, but only once all of the text is parsed: so nothing is compiled, and no object is made of each node as
# by `ast.parse`, which takes a third more memory and twice the time, in which it keeps Python's lock.
_UNKNOWN = b"from __future__ import _\n"
# Texts that may have been before a text whose beginning was cut off: a block, a string, a bracket, several.
LEADS = {
    "indent": (b"", b"if 1:\n", b'"""\n', b"'''\n", b"(\n", b"[\n", b"{\n", b"if 1:\n ((\n", b"if 1:\n {(\n"),
    "brace": (b"", b"{\n", b"{{\n", b"/*\n", b"(\n", b"[\n"),
}
# A longer text that is broken elsewhere is searched only around its gap.
SEARCHED = 50_000
# How many bytes are parsed at most to find a filler.
EFFORT = 1_000_000
# Of a text longer than this only the top-level item around the gap is parsed.
WHOLE = 400_000
# Python's own parser lets no other thread run, and cannot be stopped: it is asked about texts of so many tokens at
# most, which take it a tenth of a second.
_MOST_TOKENS = 60_000


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a site with a fill in its gap, and its tree. tail: text that ends its line, and where in the site."""

    site: Site
    fill: bytes
    tree: Tree
    tail: tuple[int, bytes] = (0, b"")

    @property
    def language(self) -> Language:
        """The language of the site."""
        return self.site.language

    @property
    def start(self) -> int:
        """The offset where the fill begins."""
        return len(self.site.before)

    @property
    def end(self) -> int:
        """The offset where the fill ends."""
        return len(self.site.before) + len(self.fill)

    @property
    def data(self) -> bytes:
        """The whole text."""
        return self.site.before + self.fill + self.site.after

    @property
    def clean(self) -> bool:
        """Return whether the tree has no error."""
        return not self.tree.root_node.has_error

    def filled(self, fill: bytes, tail: tuple[int, bytes] = (0, b"")) -> "Text":
        """The same text with another fill, and with a `tail` put into what follows it; parsed incrementally."""
        at, end = tail if tail[1] else (0, b"")
        site, between = self.site, self.site.after[:at]
        tree = self.language.reparse(self.tree, self.data, (self.start, self.end + at), fill + between + end)
        site = site.between(site.before, between + end + site.after[at:]) if end else site
        return Text(site, fill, tree, tail if end else self.tail)


def parsed(site: Site, fill: bytes) -> Text:
    """The text of `site` with `fill` in its gap, parsed from its beginning."""
    return Text(site, fill, site.language.parse(site.before + fill + site.after))


def filler(site: Site) -> bytes:
    """The placeholder of the gap of `site`; in a string it completes a backslash that is begun."""
    slashes = len(site.before) - len(site.before.rstrip(b"\\")) if site.kind in STRINGS else 0
    return b"\\" * (slashes % 2) + site.language.placeholders[site.kind].encode()


@lru_cache(maxsize=2)
def neutral_text(site: Site) -> Text:
    """The text of `site` with a filler, or the part of it around the gap that parses cleanly, or the best there is.

    1. The whole with the kind's placeholder, and a span always.  2. The top-level item around the gap with any filler.
    3. The whole with any filler.  4. The whole with the text that cuts at its ends may have taken.

    If the parser cannot read those in time, the member around the gap. The last two answers are kept: the candidates of
    one request ask for the same, and a tree takes some forty times as many bytes as its text.
    """
    # 1. Nearly every body ends here.
    size = len(site.before + site.language.placeholders[site.kind].encode() + site.after)
    whole = tried(partial(_placed, site)) if size <= WHOLE else None
    if whole is not None and (whole.clean or site.kind == "span"):
        # No filler is neutral where the fill may begin and end in the middle of anything.
        return whole
    short = size <= SEARCHED and whole is not None
    # What is open at the end of a cut text is closed after it, and not by a filler.
    if short and (complete := ended(site)):
        closed = tried(partial(searched, complete))
        if closed and closed.clean:
            return closed
    # 2. Damage elsewhere in the file must not drown the comparison.
    part = _part(site) or whole or _focused(site)
    if whole is not None and part.clean:
        # The item alone would not show what a fill does to the next one.
        again = tried(partial(whole.filled, part.fill, part.tail))
        if again and again.clean:
            return again
    # 3. The item may have been found wrongly, for a string can look like a def.
    if short and not part.clean:
        part = tried(partial(searched, site)) or part
    # 4. What an engine sees of a file is cut at both ends.
    return part if part.clean or whole is None else _completed(part)


def _part(site: Site) -> Text | None:
    """The best filler in the top-level item around the gap; None if that cannot be read in time."""
    data, at = site.before + site.language.placeholders[site.kind].encode() + site.after, len(site.before)
    start, stop = top_level_item(site.language, data, at)
    following = len(data) - stop
    if start > at or following > len(site.after):
        return None
    item = site.between(site.before[start:], site.after[: len(site.after) - following])
    return tried(partial(searched, item))


def _focused(site: Site) -> Text:
    """The best filler in the member around the gap of its top-level item."""
    start, stop = top_level_item(site.language, site.before + site.after, len(site.before))
    at = len(site.before) - start
    near = member_around(site.language, (site.before + site.after)[start:stop], at)
    return searched(site.between(near[:at], near[at:]))


@lru_cache(maxsize=2)
def alone(site: Site, header: bytes) -> Text:
    """A neutral filler in a body of nothing else: after its `header` and the beginning of the line of `site`."""
    return _completed(_placed(site.between(header.rstrip() + b"\n" + site.before[site.line :], b"\n")))


def filled_in(neutral: Text, fill: bytes) -> Text:
    """`neutral` with `fill` in its gap; a header that the fill leaves without an end or a body gets them after it.

    The filler of `def f() -> |` is `_g_: pass`; so `int` and `int:` begin a header, which is no error.
    """
    plain, language, kind = neutral.filled(fill), neutral.language, neutral.site.kind
    if kind not in PARTS or not neutral.clean or is_sound(plain):
        return plain
    end = language.words.headers[-1]
    begun = fill.rstrip()[-1:] == end.strip()[:1] and language.style == "indent"
    # The rest of a line of Python has its header's end from `endings`.
    header = neutral.fill.endswith(end) or begins_body(neutral.site, fill)
    if not header or (kind == "rest_of_line" and language.style == "indent" and not begun):
        return plain
    # A text that has begun to end it needs the rest; a brace that the fill opens is its own to close.
    whole = plain.filled(fill + (end.strip()[1:] if begun else end))
    return whole if whole.clean else plain


def begins_body(site: Site, fill: bytes) -> bool:
    """Return whether `fill` ends in the header of a function that has to have a body, which it does not begin."""
    if site.language.words.bodied is NEVER:
        return False
    text = site.before + fill
    return needs_body(site.language, text, site.state.start, len(text))


def is_sound(text: Text) -> bool:
    """Return whether `text` has no error; tree-sitter also takes Python whose indentation or headers are wrong."""
    return text.clean and (text.language.name != "python" or complaint(text.data) is None)


def given_up(text: Text, following: bytes) -> Iterator[int]:
    """Yield the places, counted from the fill, where each reading of `text` filled with `following` had failed."""
    log: list[str] = []
    text.language.reparse(text.tree, text.data, (text.start, len(text.data)), following, log.append)
    # Rows are counted as tree-sitter does in the text that Language gives it to read.
    rows = re.finditer(rb"\r\n|\n|\r", text.site.before + following)
    starts = [0, *(found.end() for found in rows)]
    at, failed = 0, [0]
    for words in log:
        if place := _PLACE.match(words):
            at = starts[int(place[1])] + int(place[2])
        elif words.startswith("detect_error"):
            failed.append(at)
        elif words.startswith("resume version"):
            yield max(failed) - text.start
            failed = [0]


def container_of(text: Text) -> tuple[int, int] | None:
    """Return the places of the innermost brackets around the fill, by the tree of `text`; None if it has none."""
    opened = text.site.state.opened[-1:]
    bracket = text.tree.root_node.descendant_for_byte_range(opened[0], opened[0] + 1) if opened else None
    holder = bracket.parent if bracket and bracket.child_count == 0 else None
    if bracket is None or holder is None or holder.is_error:
        return None
    following = [c for c in holder.children if c.start_byte > bracket.start_byte and not c.is_missing]
    last = next((c for c in reversed(following) if c.type in (")", "]", "}")), None)
    return (bracket.start_byte, last.start_byte) if last else None


def function_of_span(site: Site) -> LogicalLine | None:
    """The header of the outermost function around `site`, which its span may not leave; None where there is none."""
    if site.language.style != "indent":
        return None
    start, _ = top_level_item(site.language, site.before, len(site.before))
    return function_over(site.language, site.before, start, len(site.before))


@bounded
def is_last_of_span(site: Site) -> bool:
    """Return whether nothing of the function around `site` is below its span; without one, whether nothing is."""
    rest, *below = site.after.splitlines(keepends=True) or [b""]
    own = [site.before[site.line :] + rest] if rest.strip() else []
    following = next((line for line in (*own, *below) if line.strip()), None)
    header = function_of_span(site) if following else None
    return following is None or (header is not None and indentation(following, 0) <= header.width)


@lru_cache(maxsize=8)
def complaint(text: bytes) -> tuple[str, int, int] | None:
    """Return None if Python's parser takes `text`, or would take too long; else its message, and the line and the byte
    column, both from 0."""
    if _is_long(text):
        return None
    # An indented function needs something above it that it may be indented under.
    lead = _UNKNOWN + (b"if 1:\n" if text[:1] in (b" ", b"\t", b"\f") else b"")
    try:
        compile((lead + text.removeprefix(BOM)).decode("utf-8", "replace"), CHECKED, "exec", 0, True)
    except SyntaxError as error:
        if error.lineno == 1 and "future feature" in error.msg:
            return None
        message = _LINE_NUMBER.sub("", error.msg or "a syntax error")
        column = len((error.text or "")[: max((error.offset or 1) - 1, 0)].encode("utf-8", "replace"))
        return message, max((error.lineno or 1) - 1 - lead.count(b"\n"), 0), column
    except (ValueError, MemoryError, RecursionError):
        return "text that cannot be parsed", 0, 0
    return None


def _is_long(text: bytes) -> bool:
    """Return whether Python's parser would take too long for `text`."""
    return len(text) > _MOST_TOKENS and count_tokens(text) > _MOST_TOKENS


def not_compiled(text: bytes) -> str:
    """Return why Python's compiler refuses `text`, which its parser may take: `f(a=1, a=2)`; empty if it does not.

    A module may await, as in a notebook.
    """
    if _is_long(text):
        return ""
    source = text.removeprefix(BOM).decode("utf-8", "replace")
    try:
        compile(source, CHECKED, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    except SyntaxError as error:
        return _LINE_NUMBER.sub("", error.msg or "a syntax error")
    except (ValueError, MemoryError, RecursionError):
        return ""
    return ""


@lru_cache(maxsize=1)
def is_sound_but_for_its_gap(neutral: Text) -> bool:
    """Return whether the only error is the unfinished line of the gap (of a span: its item), which can still be
    continued.

    1. A text that only the right words complete, such as an import, has no neutral filler, and neither have the lines
    that belong to it.  2. The word that the cursor touches may be half of one; before it the parser must not have given
    up.
    """
    if neutral.clean:
        return False
    # 1.
    item = neutral.site.kind == "span"
    spans = [top_level_item(neutral.language, neutral.data, neutral.start)] if item else _spans(neutral)
    without = ((span[0], neutral.language.reparse(neutral.tree, neutral.data, span, b"")) for span in spans)
    start = next((at for at, tree in without if not tree.root_node.has_error), None)
    if start is None:
        return False
    # 2.
    typed = neutral.site.before[start:]
    last = re.search(rb"\s*(?:\w+|[^\w\s)\]},;])?\s*\Z", typed)
    assert last is not None, "it matches nothing, too"
    return not any(-len(typed) <= at < last.start() - len(typed) for at in given_up(neutral, b""))


def _spans(neutral: Text) -> Iterator[tuple[int, int]]:
    """Yield the spans of the gap's line, of it with the indented lines below, and of both with the line above."""
    data, line = neutral.data, neutral.site.line
    yield line, neutral.end
    yield line, _below(data, line, neutral.end)
    start, columns = line, indentation(data, line)
    if not neutral.site.before[line:].strip() and (next_line := _LINE.search(data, neutral.end)):
        # A line of white space may be less deep than the text that replaces it.
        columns = max(columns, indentation(data, next_line.start()))
    while start and (_BLANK.match(data, start) or indentation(data, start) >= columns):
        start = line_start(data, start - 1)
    if indentation(data, start) < columns and not _ENDED.search(data, start, line):
        yield start, _below(data, start, neutral.end)


def _below(data: bytes, start: int, end: int) -> int:
    """Return the end of the lines from `end` on that belong to the one at `start`: deeper ones, or closing ones."""
    columns = indentation(data, start)
    for line in _LINE.finditer(data, end):
        deeper = indentation(data, line.start()) - columns
        if deeper < 0 or (deeper == 0 and line[1] not in _JOINED):
            return line.start()
    return len(data)


def ended(site: Site, fill: bytes = b"") -> Site | None:
    """`site` without the statement that its end cuts, and with the brackets closed that are open there after `fill`.

    None if nothing is open there.
    """
    own = len(site.before) + len(fill)
    text = site.before + fill + site.after
    state = state_at(site.language, text, len(text))
    if not (state.brackets or state.string or state.comment):
        return None
    stop = state.begins if state.comment else state.line
    whole = stop <= line_end(text, own)
    stop = len(text) if whole else stop
    # What the gap's own line opens the fill may close.
    line = range(0 if fill else site.line, 0 if fill else own)
    shut = state.closing(at for at in state.opened if at < stop and at not in line)
    string = state.string if whole and (site.kind in STRINGS or state.begins not in line) else b""
    return site.between(site.before, text[own:stop] + string + shut)


def _placed(site: Site) -> Text:
    return parsed(site, filler(site))


def searched(site: Site) -> Text:
    """The text of `site` with the filler that parses best; a body has one filler, a line may want brackets closed."""
    first = best = _placed(site)
    if site.kind not in PARTS or best.clean:
        return best
    data, at = site.before + site.after, len(site.before)
    state, lowest = state_at(site.language, data, at), cost_of(best.tree)
    # Parsing costs by the byte, and no filler repairs an error above the line.
    tries = 1 if out_of_reach(best.tree, state.line) else max(EFFORT // (len(data) + 1), 1)
    ways = insertions(missing_tokens_at(site.language, data, at, state))
    for way in islice(chain((Closing(b"", at, b""),), ways), tries):
        try:
            own, outer = _up_to_outer(site, way.text)
            candidate = first.filled(own, (way.at - at, way.tail) if way.tail else (0, outer))
        except Unreadable:
            continue
        cost = cost_of(candidate.tree)
        if cost < lowest:
            best, lowest = candidate, cost
        if cost == 0:
            break
    return best


def _up_to_outer(site: Site, text: bytes) -> tuple[bytes, bytes]:
    """Split `text`, which completes the line of the gap, before it closes a bracket of lines above its statement.

    A fill closes only what its statement has opened and the rest of its line leaves open: where `g(|` is in a body,
    `)` of the two brackets that are missing.
    """
    state, line = site.state, min(site.line, site.state.line)
    # The text after the end of a string or a template is read as code.
    template = template_at(site.before, state.opened)
    quoted = state.string + state.closing(at for at in state.opened if at >= template)
    start = text.find(quoted) + len(quoted) if quoted in text else 0
    closers = unpaired(site.language, text[start:]).closers
    pairs = zip(state.brackets, state.opened, strict=True)
    opened = bytes(bracket for bracket, at in pairs if at >= line and not (start and at >= template))
    own = unpaired(site.language, site.rest, opened).outer
    if len(closers) <= own:
        return text, b""
    end = start + len(text[start : start + closers[own]].rstrip())
    return text[:end], text[end:]


def _completed(broken: Text) -> Text:
    """`broken` with an opening before it and what closes it after it, where that parses cleanly."""
    site, language = broken.site, broken.language
    if len(broken.data) > SEARCHED:
        return broken
    for lead in LEADS[language.style]:
        before = state_at(language, lead + site.before, len(lead + site.before), 0)
        if (before.string or before.comment) and not site.is_prose:
            # Within a string everything is clean.
            continue
        data = lead + broken.data
        state = state_at(language, data, len(data), 0)
        text = searched(site.between(lead + site.before, site.after + state.string + closers(state.brackets)))
        if text.clean:
            return text
    return broken
