"""From a model's text to the text that can stand in its gap: line ends, indentation, where it ends, what it repeats."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dg_lsp.text.budget import bounded
from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills import check
from dg_lsp.text.fills.balance import doubled
from dg_lsp.text.fills.baseline import container_of, function_of_span, neutral_text
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.messages import BODIES, LISTS, PARTS, STRINGS, Infill, Kind
from dg_lsp.text.syntax.brackets import state_at
from dg_lsp.text.syntax.lexer import line_start, logical_lines, tokens, width

# Kinds that may go on over line ends while a bracket is open, or while what stands there is not whole.
_LOGICAL: tuple[Kind, ...] = ("expression", "statement")
# Of so many at most, such as a header without braces has.
_LINES = 12
LINE_END = re.compile(r"\r\n|\n|\r")
_LAST_END = re.compile(r"[ \t\f]*[\r\n]\s*\Z")


@bounded
def fit(request: Infill, text: str) -> str:
    """Return `text` as it can stand between the prefix and the suffix of `request`.

    For the gap in `f(|)`, the text `a, b)\nc()` becomes `a, b`. A span keeps its white space, and what it repeats.

    1. Replace what cannot be text; take the file's line ends and indentation; begin a body with its first word.
    2. Cut it where the gap's container ends. Cut a part of a line at the line's end, but not in a string or a comment
    of several lines. Cut an expression or a statement where it is complete.
    3. Remove what repeats the suffix. Cut a part of a line before a bracket that stands behind the gap already.
    4. Remove white space at the end, unless the line goes on behind the gap.
    5. Close what the line opens and nothing below it closes, if that makes it parse.
    """
    language = load_language(request.language)
    # 1. In the middle of a line the fill's own line ends nothing.
    text = within(language, request, plain(request, text))
    if request.kind == "span":
        return text
    # 2.
    if request.kind in PARTS:
        text = _first_whole(request, text) if request.kind in _LOGICAL else text
        text = LINE_END.split(text, maxsplit=1)[0] if _is_of_one_line(language, request) else text
    else:
        text = _without_repeated_lines(text, request.suffix)
    # 3.
    rest = LINE_END.split(request.suffix, maxsplit=1)[0]
    if rest.strip():
        # One line needs no end in front of what follows it; of several the last one may.
        text = text if LINE_END.search(text.rstrip()) else _LAST_END.sub("", text)
        return _without_doubled(language, request, _without_repeated_rest(request, text, rest))
    # 4.
    text = text.rstrip()
    # 5.
    return _ended(request, text) if request.kind == "rest_of_line" and text else text


@bounded
def make_edit(document: Document, gap: Gap, text: str) -> Edit:
    """Return the edit that replaces `gap` by its insert_before, the fitted `text` and its insert_after."""
    request = Infill(
        prefix=document.data[: gap.start].decode("utf-8") + gap.insert_before,
        suffix=gap.insert_after + document.data[gap.end :].decode("utf-8"),
        language=document.language,
        kind=gap.kind,
        indent=gap.indent,
    )
    return Edit(gap.start, gap.end, gap.insert_before + fit(request, text) + gap.insert_after)


def endings(request: Infill, text: str) -> Iterator[str]:
    """Yield what may be put behind `text`, the rest of the line of `request`, to close what is open; likeliest first.

    `f(a` gets `)`, and `if a` in Python gets `:` and an indented `pass`.
    """
    language = load_language(request.language)
    before = request.prefix.encode("utf-8", "replace")
    data = before + text.encode("utf-8", "replace")
    state = state_at(language, data, len(data))
    if state.string or state.comment:
        return
    below, body = "\n" + request.indent, language.placeholder("block")
    here = line_start(before, len(before))
    shut = state.closing(at for at in state.opened if at >= here).decode()
    if shut and text.endswith("{"):
        shut = below + shut
    if body and not shut:
        shut = ("" if text.endswith(":") else ":") + below + language.indent + body
    if shut:
        yield from (shut + end.decode() for end in dict.fromkeys((b"", *language.words.ends)))


def within(language: Language, request: Infill, text: str) -> str:
    """Return `text` up to where it leaves the container of its gap: for the gap in `f(|)`, `a) + b` becomes `a`.

    A body of Python ends with its indentation. Other containers end where the tree of the text with the fill says; if
    the tree has no such bracket, at the first bracket that the fill closes and has not opened.
    """
    data = text.encode("utf-8", "replace")
    if request.kind == "span":
        return data[: _end_of_span(language, request, data)].decode("utf-8")
    if request.kind in (*STRINGS, "comment"):
        return data[: _end_of_literal(literal_at(language, request.prefix), data)].decode("utf-8", "ignore")
    if request.kind in BODIES and language.style == "indent":
        return deep(language, text, request.indent)
    if request.kind not in (*BODIES, *LISTS) or (counted := surplus(language, data)) is None:
        return text
    before, after = (part.encode("utf-8", "replace") for part in (request.prefix, request.suffix))
    filled = neutral_text(language, request.kind, before, after).filled(language, data)
    span = container_of(language, filled)
    closes = span[1] - len(filled.before) if span else -1
    return data[: closes if 0 <= closes < len(data) else counted].decode("utf-8", "ignore")


def surplus(language: Language, fill: bytes) -> int | None:
    """Return where `fill` closes a bracket that it has not opened; None if it does not."""
    depth = 0
    for token in tokens(language, fill, 0, len(fill)):
        depth += (token.kind == "open") - (token.kind == "close")
        if depth < 0:
            return token.start
    return None


def deep(language: Language, text: str, indent: str) -> str:
    """Return `text` up to its first line that is indented less than `indent`, lines inside strings apart."""
    data = text.encode("utf-8")
    wanted = width(indent.encode("utf-8"))
    end = 0
    for line in logical_lines(language, data, 0, len(data)):
        if line.start > 0 and line.width < wanted:
            # A comment closes no block; it belongs to the body only if a line of the body follows.
            if line.comment:
                continue
            break
        end = line.end
    return data[:end].decode("utf-8")


def plain(request: Infill, text: str) -> str:
    """Return `text` with the file's line ends and indentation, and a body without blank lines before it."""
    # A lone surrogate has no bytes.
    text = text.encode("utf-8", "replace").decode("utf-8")
    if request.kind not in (*PARTS, "span"):
        text = re.sub(r"^(?:[ \t\f]*(?:\r\n|\n|\r))*[ \t\f]*", "", text)
    return LINE_END.sub(newline_of(request), _indented(request, text))


def newline_of(request: Infill) -> str:
    """Return the file's line end: that of its first line, or LF."""
    first = LINE_END.search(request.prefix) or LINE_END.search(request.suffix)
    return first[0] if first else "\n"


def _is_of_one_line(language: Language, request: Infill) -> bool:
    """Whether a fill of the gap ends with its line; one in a block comment or a triple-quoted string does not."""
    if request.kind in ("string", "comment"):
        literal = literal_at(language, request.prefix)
        return literal is None or not literal.lines
    return request.kind not in (*LISTS, *_LOGICAL)


def _ended(request: Infill, text: str) -> str:
    """Return `text`; if it has errors, with the first ending that removes them."""
    ended = [text + plain(request, ending) for ending in endings(request, text)]
    if not ended or not _faulty(request, text):
        return text
    return next((t for t in ended if not _faulty(request, t)), text)


def _first_whole(request: Infill, text: str) -> str:
    """Return the shortest beginning of `text` in whole lines that adds no error; without one, its first line.

    Where all add one, a bracket that `text` closes without opening it ends it: for `if (|)`, `a) b();` becomes `a`.
    """
    language = load_language(request.language)
    starts = [text[:end] for end in islice(_line_ends(language, text), _LINES)]
    data = text.encode("utf-8")
    if (end_of_brackets := surplus(language, data)) is not None:
        starts.append(data[:end_of_brackets].decode("utf-8"))
    return next((t for t in starts if not _faulty(request, t)), starts[0]) if len(starts) > 1 else starts[0]


def _line_ends(language: Language, text: str) -> Iterator[int]:
    """Yield the ends of those lines of `text` that leave no bracket and no string open, then its own end."""
    data, depth = text.encode("utf-8"), 0
    for token in tokens(language, data, 0, len(data)):
        depth += (token.kind == "open") - (token.kind == "close")
        if token.kind == "newline" and depth <= 0:
            yield len(data[: token.start].decode("utf-8"))
    yield len(text)


def _indented(request: Infill, text: str) -> str:
    """Return `text` indented by tabs where the file has only tabs, and by spaces where it has only spaces."""
    file = request.prefix + request.suffix
    tabs, spaces = (file.startswith(unit) or f"\n{unit}" in file for unit in ("\t", "  "))
    step = load_language(request.language).indent
    width = len(step.expandtabs(4))
    if tabs and not spaces:
        pattern = re.compile(f"(?<=[\r\n])((?:\t)*)((?: {{{width}}})+)")
        return pattern.sub(lambda m: m[1] + "\t" * (len(m[2]) // width), text)
    if spaces and not tabs:
        return re.sub(r"(?<=[\r\n])\t+", lambda m: " " * (width * len(m[0])), text)
    return text


def _without_repeated_lines(text: str, suffix: str) -> str:
    """Return `text` without its last lines if the suffix begins with the same ones."""
    lines = text.splitlines(keepends=True)
    following = [line.rstrip() for line in suffix.split("\n")[1:41]]
    while following and not following[0]:
        del following[0]
    for count in range(min(len(lines) - 1, len(following)), 0, -1):
        tail = [line.rstrip() for line in lines[-count:]]
        if tail == following[:count] and any(len(line.strip()) > 1 for line in tail):
            return "".join(lines[:-count]).rstrip()
    return text


def _without_repeated_rest(request: Infill, text: str, rest: str) -> str:
    """Return `text` without the rest of the line at its end: `b)` becomes `b` if `)` stands behind the gap.

    A bracket or two may stand there twice by right; then the grammar decides.
    """
    bare, wanted = text.rstrip(), rest.strip()
    if not bare.endswith(wanted):
        return text
    short = bare[: len(bare) - len(wanted)]
    if _faulty(request, short):
        return text
    long = (len(wanted) >= 4 and any(c.isalnum() for c in wanted)) or wanted in (";", ",")
    return short if long or _faulty(request, text) else text


def _without_doubled(language: Language, request: Infill, text: str) -> str:
    """Return `text` up to a bracket that stands behind the gap already: for `if f(|)`, `a) and b:` becomes `a`."""
    if request.kind not in PARTS or request.kind in (*STRINGS, "comment"):
        return text
    before, fill, after = (p.encode("utf-8", "replace") for p in (request.prefix, text, request.suffix))
    return fill[: doubled(language, before, fill, after)].decode("utf-8")


def _faulty(request: Infill, text: str) -> bool:
    return bool(check.faults(request.language, request.kind, request.prefix, text, request.suffix))


@dataclass(frozen=True, slots=True)
class Literal:
    """A string or a comment. close: what ends it. lines: it may go on over line ends."""

    close: bytes
    lines: bool


def _end_of_span(language: Language, request: Infill, fill: bytes) -> int:
    """Where `fill` leaves the function that its span is in; its length where it does not.

    The span `a()\n    b()\n\nc()` at the end of a function with four spaces ends behind `b()`; so it does where a
    comment at the left margin stands in the place of `c()`, unless more of the function follows.
    """
    before, after = (part.encode("utf-8", "replace") for part in (request.prefix, request.suffix))
    header = function_of_span(language, before)
    if header is None:
        return len(fill)
    data, start, stop = before + fill + after, len(before), len(before) + len(fill)
    kept = start
    for line in logical_lines(language, data, header.start, len(data)):
        if line.width > header.width or line.start == header.start:
            kept = max(kept, min(line.end, stop))
        elif not line.comment:
            break
        if kept == stop:
            break
    return kept - start if data[kept:stop].strip() else len(fill)


def literal_at(language: Language, prefix: str) -> Literal | None:
    """Return the string or block comment that is open at the end of `prefix`; None if none is."""
    data = prefix.encode("utf-8", "replace")
    state = state_at(language, data, len(data))
    if state.string:
        # Quotes that no table lists are those of a raw string, whose close holds what its beginning says.
        kinds = [quotes for quotes in language.strings if quotes.close == state.string]
        return Literal(state.string, lines=any(quotes.lines for quotes in kinds) or not kinds)
    for opening, closing in language.block_comments if state.comment else ():
        if data.startswith(opening.encode(), state.begins):
            return Literal(closing.encode(), lines=True)
    return None


def _end_of_literal(literal: Literal | None, fill: bytes) -> int:
    """Return where `fill` closes the string or comment that its gap is in; its length if it does not."""
    at = fill.find(literal.close) if literal else -1
    while literal and at >= 0:
        slashes = at - len(fill[:at].rstrip(b"\\"))
        if slashes % 2 == 0:
            return at
        at = fill.find(literal.close, at + 1)
    return len(fill)
