"""Fit a model's text into its gap: line ends, indentation, the end of the text, no repeated suffix."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise

from dg_lsp.budget import bounded
from dg_lsp.gaps import Edit, Gap
from dg_lsp.guard.baseline import begins_body, container_of, function_of_span, neutral_text
from dg_lsp.guard.check import faults_of, takes_in_next
from dg_lsp.guard.endings import end_of_item, endings, leaves_open, opens_below
from dg_lsp.guard.room import doubled
from dg_lsp.guard.site import Site, newline_of, site_of, to_bytes
from dg_lsp.messages import BODIES, LISTS, PARTS, Infill, Kind
from dg_lsp.source.bodies import NO_CODE
from dg_lsp.source.brackets import PAIRS, unpaired
from dg_lsp.source.document import LINE_END, Document
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import block_end, element_end, first_token, logical_lines, tokens, width

# Kinds that may go on over line ends while a bracket is open, or while the text there is not complete.
_LOGICAL: tuple[Kind, ...] = ("expression", "statement")
# Of so many at most, such as a header without braces has.
_LINES = 12
# Characters on either side of a gap in which lines show how the text is indented.
_NEAR = 4_000
_Line = tuple[str, int]
# How many lines after a gap a fill is compared with.
_COMPARED = 41
# A line that may rightly occur twice in a row.
_TWICE = re.compile(
    r"\W*"
    r"|.*(?:[-+*/%|&^]=|<<=|>>=|\+\+|--).*"
    r"|(?!\s*[\w\"'$.\[\]-]+\??\s*[:=]).*,"
    r"|\s*[\"'`].*\+"
    r"|\s*#\s*(?:endif|else)\b.*"
)
# A call that is a statement, which may be made twice.
_CALL = re.compile(r"\s*(?:(?:await|go|defer|yield)\s+)?[\w$.:>-]+\(.*\)[\w.?]*;?")
# The tokens of a line, and one that gives a value to a name, which the next line must not do over again.
_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`|[\w$]+|\S")
_GIVES = re.compile(r"\s*(?:[\w.<>\[\]]+\s+){0,3}[A-Za-z_$][\w$.\[\]\"']*\s*:?=(?![=>])\s*\S.*")
_WORD = re.compile(r"[\w$]+")
_ENDS_WORD = re.compile(r"[\w$]\Z")
# The rest of a line that begins with a separator or an operator, but with none of a member; a letter in it.
_SEPARATED = re.compile(rb"\s*(?!\.|->|::|\?\.)[^\w\s\"'`()\[\]{}]")
_LETTER = re.compile(rb"[\w\x80-\xff]")
_LAST_END = re.compile(r"[ \t\f]*[\r\n]\s*\Z")


@bounded
def fit(request: Infill, text: str) -> str:
    """Return `text` as it fits between the prefix and the suffix of `request`, with the ending that it needs there.

    For the gap in `f(|)`, the text `a, b)\nc()` becomes `a, b`; for the one in `if (|` of Java, `a) {` gets a line
    with `}`. A span keeps its white space, and what it repeats.
    """
    return ended(request, beginning(request, text))


@bounded
def beginning(request: Infill, text: str) -> str:
    """Return `text` up to where it fits between the prefix and the suffix of `request`, with nothing added.

    1. Replace what cannot be text; take the file's line ends and indentation; begin a body with its first word.
    2. Cut it where the gap's container ends. Cut a part of a line at the line's end, but not in a string or a comment
    of several lines. Cut an expression or a statement where it is complete.
    3. Remove what repeats the suffix, and a `;` in place of a body. Cut a part of a line before a bracket that is
    after the gap already.
    4. Remove white space at the end, unless the line continues after the gap.
    """
    # 1. In the middle of a line the fill's own line ends nothing.
    text = within(request, plain(request, text))
    if request.kind == "span":
        return text
    # 2.
    if request.kind in PARTS and LINE_END.search(text) and opens_below(site_of(request), text):
        text = text[: end_of_item(site_of(request), text)]
    elif request.kind in PARTS:
        if request.kind == "expression" and not site_of(request).rest.strip():
            text = _in_brackets(site_of(request).language, text)
        text = _first_whole(request, text) if request.kind in _LOGICAL else text
        text = LINE_END.split(text, maxsplit=1)[0] if _is_of_one_line(site_of(request)) else text
    # 3.
    text = _without_repeated_lines(request, _without_repeated_word(request, text))
    if site_of(request).is_part and text.endswith(";") and begins_body(site_of(request), to_bytes(text[:-1])):
        # The grammar takes a header that is ended.
        text = text[:-1]
    rest = LINE_END.split(request.suffix, maxsplit=1)[0]
    if rest.strip():
        # One line needs no end in front of what follows it; of several the last one may.
        text = text if LINE_END.search(text.rstrip()) else _LAST_END.sub("", text)
        fill = to_bytes(_without_repeated_rest(request, text, rest))
        # A bracket that is after the gap already: for `if f(|)`, `a) and b:` becomes `a`.
        return fill[: doubled(site_of(request), fill) if site_of(request).is_part else None].decode("utf-8")
    # 4.
    return text.rstrip()


@bounded
def ended(request: Infill, text: str) -> str:
    """Return `text` with the first ending that leaves it without faults, and with what parts it from the line below.

    Nothing is added if no ending helps, nor to a body, a span, or a statement, which may continue below its line.
    """
    site = site_of(request)
    if site.kind == "span" or not text:
        return text
    is_part = site.kind in PARTS and site.kind != "statement"
    # In a text that is broken anyway, a bracket that is left open may be no fault.
    if is_part and (faults_of(request, text) or (site.closers and leaves_open(site, text))):
        # A comma or semicolon before the line below may be all that is missing.
        parted = _separated(request, text)
        ends = (text + ending for ending in endings(request, text))
        # An element of its own line may be the last one, whose comma the language does not take.
        is_last = text.endswith(",") and site.state.brackets and not site.rest.strip()
        bare = [text.removesuffix(",")] if is_last else []
        tried = chain([parted] if parted != text else [], ends, bare)
        text = next((one for one in tried if not faults_of(request, one)), text)
    return _separated(request, text)


@bounded
def make_edit(document: Document, gap: Gap, text: str) -> Edit:
    """Return the edit that replaces `gap` by its insert_before, the fitted `text` and its insert_after."""
    fitted = fit(_request(document, gap), text)
    return Edit(gap.start, gap.end, gap.insert_before + fitted + gap.insert_after)


def repetition_of_edit(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why `edit`, made for `gap`, only repeats the text around it, as a sentence; empty if it does not."""
    text = edit.text.removeprefix(gap.insert_before).removesuffix(gap.insert_after)
    return repetition(_request(document, gap), text)


def within(request: Infill, text: str) -> str:
    """Return `text` up to where it leaves the container of its gap: for the gap in `f(|)`, `a) + b` becomes `a`.

    A body of Python ends with its indentation, and a line where it closes a bracket of lines above its statement. Other
    containers end where the tree of the text with the fill says; if the tree has no such bracket, at the first bracket
    that the fill closes and has not opened.
    """
    site, data = site_of(request), to_bytes(text)
    if site.kind == "span":
        return data[: _end_of_span(site, data)].decode("utf-8")
    if site.is_prose:
        return data[: _end_of_literal(site, data)].decode("utf-8", "ignore")
    if site.kind in BODIES and site.language.style != "brace":
        return deep(site.language, text, request.indent)
    closers = unpaired(site.language, data).closers
    if site.kind not in (*BODIES, *LISTS):
        # A text that begins with the closer is meant to end the block.
        kept = data[: _end_of_line(site, closers)].decode("utf-8")
        return kept if kept.strip() else text
    if not closers:
        return text
    filled = neutral_text(site).filled(data)
    span = container_of(filled)
    closes = span[1] - filled.start if span else -1
    return data[: closes if 0 <= closes < len(data) else closers[0]].decode("utf-8", "ignore")


def surplus(language: Language, fill: bytes) -> int | None:
    """Return where `fill` closes a bracket that it has not opened; None if it does not."""
    return next(iter(unpaired(language, fill).closers), None)


def _in_brackets(language: Language, text: str) -> str:
    """Return `text` up to the first bracket that it closes without opening it."""
    data = to_bytes(text)
    return data[: surplus(language, data)].decode("utf-8")


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
    text = to_bytes(text).decode("utf-8")
    if request.kind not in (*PARTS, "span"):
        text = re.sub(r"^(?:[ \t\f]*(?:\r\n|\n|\r))*[ \t\f]*", "", text)
    return LINE_END.sub(newline_of(request), _indented(request, text))


def _request(document: Document, gap: Gap) -> Infill:
    """Return the request that fills `gap` of `document`, with the whole file around it."""
    return Infill(
        prefix=document.data[: gap.start].decode("utf-8") + gap.insert_before,
        suffix=gap.insert_after + document.data[gap.end :].decode("utf-8"),
        language=document.language,
        kind=gap.kind,
        indent=gap.indent,
    )


def _is_of_one_line(site: Site) -> bool:
    """Return whether a fill of the gap ends with its line; not in a block comment or a triple-quoted string."""
    state = site.state
    if site.kind not in ("string", "comment"):
        return site.kind not in (*LISTS, *_LOGICAL)
    if not state.string:
        return not (state.comment and block_end(site.language, site.before[state.begins :]))
    # Quotes that no table lists are those of a raw string, whose close holds what its beginning says.
    kinds = [quotes for quotes in site.language.strings if quotes.close == state.string]
    return bool(kinds) and not any(quotes.lines for quotes in kinds)


def _separated(request: Infill, text: str) -> str:
    """Return `text` with what must part it from the line below: a comma in a list of Go, a semicolon in CSS."""
    site, data = site_of(request), to_bytes(text)
    if site.rest.strip():
        return text
    words, below, opened = site.language.words, site.after.lstrip(), site.state.brackets[-1:]
    last = words.last_comma and opened in PAIRS and below.startswith(PAIRS[opened])
    followed = opened == b"{" and b":" in site.before[site.line :] + data and words.follows.match(below)
    if site.is_prose or not (last or followed):
        return text
    code = [token for token in tokens(site.language, data, 0, len(data)) if token.kind not in NO_CODE]
    end = code[-1].end if code else 0
    parted = (data[:end] + (b"," if last else words.ends[0]) + data[end:]).decode("utf-8")
    return (
        text if data[:end].endswith((b",", b";", b"{", b"}", b":")) or faults_of(request, parted) else parted
    )


def _first_whole(request: Infill, text: str) -> str:
    """Return the shortest beginning of `text` in whole lines that adds no error; without one, its first line.

    One that takes in the next line of the file, as `@property` does, gives way to a longer one. If all add an error, a
    bracket that `text` closes without opening it ends it: for `if (|)`, `a) b();` becomes `a`.
    """
    language = site_of(request).language
    starts = [text[:end] for end in islice(_line_ends(language, text), _LINES)]
    if (inside := _in_brackets(language, text)) != text:
        starts.append(inside)
    if request.kind == "expression" and (header := starts[0].rstrip()).endswith("{"):
        # Of a header the part up to its body is an expression, too.
        starts.append(header.removesuffix("{").rstrip())
    if len(starts) == 1:
        return starts[0]
    whole = (start for start in starts if not faults_of(request, start))
    first = next(whole, starts[0])
    return next((start for start in chain([first], whole) if not takes_in_next(request, start)), first)


def _line_ends(language: Language, text: str) -> Iterator[int]:
    """Yield the ends of those lines of `text` that leave no bracket and no string open, then its own end."""
    data, depth = text.encode("utf-8"), 0
    for token in tokens(language, data, 0, len(data)):
        depth += (token.kind == "open") - (token.kind == "close")
        if token.kind == "newline" and depth <= 0:
            yield len(data[: token.start].decode("utf-8"))
    yield len(text)


def _indented(request: Infill, text: str) -> str:
    """Return `text` with lines indented by tabs or by spaces, as around the gap; as it is where those have both."""
    columns = len(site_of(request).language.indent.expandtabs(4))
    style = _style_of(request, columns)
    if style == "tabs":
        spaces = re.compile(f"(?<=[\r\n])(\t*)((?: {{{columns}}})+)")
        return spaces.sub(lambda m: m[1] + "\t" * (len(m[2]) // columns), text)
    if style == "spaces":
        return re.sub(r"(?<=[\r\n])\t+", lambda m: " " * (columns * len(m[0])), text)
    return text


def _style_of(request: Infill, columns: int) -> str:
    """Return the indentation around the gap: tabs, spaces, both, or nothing; `columns` make one step."""
    above, below = request.prefix[-_NEAR:], request.suffix[:_NEAR]
    spaces = [_space(line) for line in LINE_END.split(above)[:-1] if line.strip()]
    first = len(spaces)
    spaces += [_space(line) for line in LINE_END.split(below)[1:] if line.strip()]
    own = request.indent or _space(LINE_END.split(above)[-1])
    # Lines that have spaces after tabs, or lines of tabs directly below lines of spaces in one block, show that both
    # belong together.
    kinds = [_style(space) for space in (own, *spaces)]
    pairs = set(pairwise(kinds[1:]))
    deep = any("\t" in space and " " * columns in space for space in (own, *spaces))
    if deep or pairs & {("tabs", "spaces"), ("spaces", "tabs")}:
        return "both"
    # Where all near lines agree, they tell; else the gap's own line, or the nearest one above it.
    found = set(kinds) - {""}
    if len(found) <= 1:
        return found.pop() if found else ""
    return kinds[0] or next(kind for kind in (*reversed(kinds[1 : first + 1]), *kinds[first + 1 :]) if kind)


def _style(space: str) -> str:
    """Return what `space` indents by; a single space only aligns, as in a comment."""
    if space.startswith("\t"):
        return "tabs"
    return "spaces" if space.startswith("  ") else ""


def _space(line: str) -> str:
    """Return the white space that `line` begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def repetition(request: Infill, text: str) -> str:
    """Return why the fitted `text` only repeats the text around its gap, as a sentence; empty if it does not."""
    if request.kind == "span" or not text.strip():
        return ""
    above, head, rest, below = _around(request)
    lines = _written(head + text + rest)
    if _repeated(lines, below) >= len(lines):
        return "it repeats the next line"
    called = all(_CALL.fullmatch(line) for line, _ in lines)
    if not called and _repeated(lines, above[-len(lines) :]) >= len(lines):
        return "it repeats the line above"
    return "it repeats the rest of the word" if _meets_word(request, text) else ""


def _without_repeated_lines(request: Infill, text: str) -> str:
    """Return `text` without last lines that follow the gap: `x = 1` of `x = 1\n    return a` above `return a`."""
    _, head, rest, below = _around(request)
    if rest.strip():
        return text
    lines = _written(head + text)
    count = _repeated(lines, below)
    if not 0 < count < len(lines):
        return text
    return text[: lines[-count][1] - len(head)].rstrip()


def _written(text: str) -> list[_Line]:
    """Return the lines of `text` that are not blank, with tabs as spaces and no white space at the end, and starts."""
    starts = [0, *(found.end() for found in LINE_END.finditer(text))]
    ends = [*starts[1:], len(text)]
    spans = [(start, text[start:end]) for start, end in zip(starts, ends, strict=True)]
    return [(line.expandtabs(8).rstrip(), start) for start, line in spans if line.strip()]


def _around(request: Infill) -> tuple[list[_Line], str, str, list[_Line]]:
    """Return the lines above the gap's own, the text before and after it on that, the lines below; none blank."""
    *above, head = LINE_END.split(request.prefix[-_NEAR:])
    rest, *below = LINE_END.split(request.suffix, maxsplit=_COMPARED)
    return (
        _written("\n".join(above[1 - _COMPARED :])),
        head,
        rest,
        _written("\n".join(below[: _COMPARED - 1])),
    )


def _repeated(lines: list[_Line], following: list[_Line]) -> int:
    """Return how many of the last `lines` are the first of `following`, at most; 0 if all of _TWICE."""
    for count in range(min(len(lines), len(following)), 0, -1):
        tail, first = [line for line, _ in lines[-count:]], [line for line, _ in following[:count]]
        if all(map(_is_again, tail, first)) and not all(map(_TWICE.fullmatch, tail)):
            return count
    return 0


def _is_again(line: str, other: str) -> bool:
    """Return whether `line` is `other` again, with other spaces, or gives a name the beginning of a value.

    Above `x = w * h + 1`, `x = w*h` is. Of 950,000 lines of seven languages, none is the beginning of the next so.
    """
    if line == other:
        return True
    if _space(line) != _space(other):
        return False
    one, two = _TOKEN.findall(line), _TOKEN.findall(other)
    begins = one[:-1] if one[-1] in (";", ",") else one
    return one == two or (two[: len(begins)] == begins and _GIVES.fullmatch(line) is not None)


def _without_repeated_word(request: Infill, text: str) -> str:
    """Return `text` up to the rest of the word around the gap: `u` of `unt_due` in `amo|nt_due`; else all of it."""
    rest = _word_after(request)
    if not rest or not text:
        return text
    first = _WORD.match(text) if _ENDS_WORD.search(request.prefix) else None
    found = text[: first.end()] if first else ""
    for met in (text, found):
        if met.endswith(rest) and (kept := met[: -len(rest)]).strip():
            return kept
    return text


def _meets_word(request: Infill, text: str) -> bool:
    """Return whether `text` writes a part of the word after its gap again, such as `unt` in `amo|unt_due`."""
    rest, first = _word_after(request), _WORD.match(text)
    if not rest:
        return False
    if text == rest:
        return True
    if first is None or not _ENDS_WORD.search(request.prefix):
        return False
    count = min(2, len(rest), len(text))
    return first[0][:count] == rest[:count]


def _word_after(request: Infill) -> str:
    """Return the rest of the word after the gap."""
    found = _WORD.match(request.suffix)
    return found[0] if found else ""


def _without_repeated_rest(request: Infill, text: str, rest: str) -> str:
    """Return `text` without the rest of the line at its end, if the grammar agrees.

    Before `)`, `b)` becomes `b`. Before `, b, c)` in a list that ends there, `a, b, c` becomes `a`.
    """
    language, data = site_of(request).language, to_bytes(rest)
    end = surplus(language, data)
    for wanted in (data, data[:end]):
        found = _without_tail(language, to_bytes(text), wanted)
        if found is None:
            continue
        short = (found.rstrip() if rest[:1].isspace() else found).decode("utf-8")
        if not faults_of(request, short):
            long = len(wanted.strip()) >= 4 or _SEPARATED.match(wanted)
            known = (long and _LETTER.search(wanted)) or wanted.strip() in (b";", b",")
            return short if known or faults_of(request, text) else text
    return text


def _without_tail(language: Language, text: bytes, tail: bytes) -> bytes | None:
    """Return `text` without the tokens of `tail` at its end, whatever space is between them; None if it has others."""
    written, wanted = (
        [token for token in tokens(language, part, 0, len(part)) if token.kind not in ("space", "newline")]
        for part in (text, tail)
    )
    count = len(wanted)
    same = [text[one.start : one.end] for one in written[-count:]] == [
        tail[one.start : one.end] for one in wanted
    ]
    return text[: written[-count].start] if count and same else None


def _end_of_span(site: Site, fill: bytes) -> int:
    """Return where `fill` leaves the function that its span is in; its length where it does not.

    The span `a()\n    b()\n\nc()` at the end of a function with four spaces ends after `b()`; so it does where a
    comment at the left margin takes the place of `c()`, unless more of the function follows.
    """
    header, start = function_of_span(site), len(site.before)
    if header is None:
        return len(fill)
    data, stop = site.before + fill + site.after, start + len(fill)
    kept = start
    for line in logical_lines(site.language, data, header.start, len(data)):
        if line.width > header.width or line.start == header.start:
            kept = max(kept, min(line.end, stop))
        elif not line.comment:
            break
        if kept == stop:
            break
    return kept - start if data[kept:stop].strip() else len(fill)


def _end_of_line(site: Site, closers: Sequence[int]) -> int | None:
    """Return which of the `closers` in a fill is that of a bracket above its line and statement; None if none is."""
    if site.language.is_plain or site.state.string or site.state.text:
        return None
    own = sum(at >= min(site.line, site.state.line) for at in site.state.opened)
    is_open = own < len(site.state.opened)
    return closers[own] if is_open and own < len(closers) else None


def _end_of_literal(site: Site, fill: bytes) -> int:
    """Return where `fill` closes the string or comment that its gap is in, but in code in it; else its length."""
    state = site.state
    begun = site.before[state.begins :] if state.begins >= 0 else b""
    if state.string or (state.text and begun.startswith(b"/")):
        first = first_token(site.language, begun + fill, 0)
        return max(first.end - len(state.string) - len(begun), 0) if first.kind == "string" else len(fill)
    if state.text:
        return element_end(site.language, fill)
    close = block_end(site.language, begun)
    at = fill.find(close) if close else -1
    # The space before the end may be there already.
    return len(fill) if at < 0 else len(fill[:at].rstrip(b" ")) if site.after[:1] == b" " else at
