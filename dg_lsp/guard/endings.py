"""Endings: where a text of several lines ends, and what closes a text in its gap, decided once the text is known."""

import re
from collections.abc import Iterator

from dg_lsp.budget import bounded
from dg_lsp.guard.baseline import begins_body
from dg_lsp.guard.site import Site, newline_of, site_of, to_bytes
from dg_lsp.messages import LISTS, Infill
from dg_lsp.source.bodies import NO_CODE
from dg_lsp.source.brackets import PAIRS, is_left_open, is_of_header, state_at, unpaired
from dg_lsp.source.directives import directive_start
from dg_lsp.source.document import LINE_END
from dg_lsp.source.lexer import leading, line_start, logical_lines, tokens, unreached, width

# A line that begins so belongs to the item that begins above it at the same indentation.
_WORDS = ("else", "elif", "except", "finally", "catch", "then", "do", "end", "fi", "done")
_CONTINUES = re.compile(rf"[)\]}}.?]|(?:{'|'.join(_WORDS)})\b".encode())
# The text before a brace that opens a value, such as an object, and no block.
_VALUE = re.compile(rb"(?:[(\[{,:?]|[^=!<>]=|\breturn)\Z")
# Brackets of its line that an ending leaves open at most.
_MOST_LEFT = 32
# Lists of types that the end of a line leaves open: `Map<String, List<`.
_TYPES = re.compile(rb"(?:[\w$] ?<[^<>;(){}]*)+\Z")


def endings(request: Infill, text: str) -> Iterator[str]:
    """Yield endings of `text`, the likeliest first: `)` for `f(a`; in Python `:` for `if a`; `;` for `return` in Java.

    1. Of several lines, the closers of blocks on lines of their own.  2. The quotes of its line and the closers of
    fewer and fewer of the brackets that `text` and its line have opened, and the ends of a statement if no code follows
    on the line, which is no directive.  3. The end of a header, in Python with a body below it, too.  4. Closers of the
    brackets that lines above it have opened in its statement, on the line below.  5. Words that close a block of a
    plain language.
    """
    site, data = site_of(request), to_bytes(request.prefix + text)
    language, state = site.language, state_at(site.language, data, len(data))
    # A string that the text itself begins and does not end, or half an escape, is not what its writer meant.
    if state.comment or (
        state.string and (data.endswith(b"\\") or not site.line <= state.begins < len(site.before))
    ):
        return
    # 1.
    if LINE_END.search(text) and opens_below(site, text):
        yield (closed_below(request, text) or "").removeprefix(text.rstrip())
    below, body = newline_of(request) + request.indent, language.placeholders["block"]
    opened = [at for at in reversed(state.opened) if at >= site.line]
    least = max(sum(at >= len(site.before) for at in opened), len(opened) - _MOST_LEFT)
    shuts = [(state.string + state.closing(opened[:n])).decode() for n in range(len(opened), least - 1, -1)]
    shut = shuts[0]
    if types := _TYPES.search(data, site.line):
        angles = ">" * (types[0].count(b"<") - types[0].count(b">"))
        shuts = [angles + shut for shut in shuts] + shuts
    if shut and text.endswith("{"):
        shuts = [below + shut for shut in shuts]
    # 2.
    if is_followed(site):
        yield from shuts
        return
    # The grammar takes a header that is ended.
    header = begins_body(site, to_bytes(text + shut))
    is_ended = header or directive_start(language, data, len(data)) >= 0
    ends = tuple(end.decode() for end in dict.fromkeys((b"", *language.words.ends)))[
        : 1 if is_ended else None
    ]
    yield from (one + end for one in shuts for end in ends)
    # 3.
    words, begun = language.words, data[state.line :].partition(b"(")[0].split()
    end = "" if text.endswith(":") else shut + words.headers[0].decode()
    if body and not (words.functions | words.classes | words.blocks).isdisjoint(begun[:2]):
        yield from (one for one in (end, end + below + language.indent + body) if one)
    elif not body and (header or not words.functions.isdisjoint(begun)):
        yield end
    # 4.
    if above := [at for at in state.opened if state.line <= at < site.line]:
        closers = state.closing(above).decode()
        outer = newline_of(request) + leading(data, above[-1]).decode() + closers
        if is_of_header(language, data, above[0]):
            yield shut + closers
        yield from (shut + outer + end for end in ends)
    # 5.
    yield from (below + word for word in language.plain.closings)


@bounded
def hint(request: Infill) -> str:
    """Return what closes the line of the gap, if nothing after it does.

    A network that sees it after the gap writes what belongs before it.
    """
    site = site_of(request)
    is_open = not site.language.is_plain and (site.state.string or leaves_open(site, ""))
    return site.closers.decode() if is_open else ""


@bounded
def leaves_open(site: Site, text: str) -> bool:
    """Return whether `text` leaves a bracket of its line open that no line below closes."""
    if site.rest.strip():
        return False
    above = site.before + to_bytes(text)
    state = state_at(site.language, above, len(above))
    return is_left_open(site.language, above + site.after, len(above), state, site.line)


def is_followed(site: Site) -> bool:
    """Return whether code follows the gap on its line; a comment is none."""
    found = tokens(site.language, site.rest, 0, len(site.rest))
    return any(token.kind not in NO_CODE for token in found)


@bounded
def opens_below(site: Site, text: str) -> bool:
    """Return whether the first line of `text`, with which its line ends, opens what lines below it close.

    `if a {` does, and in Python `if a:`; `f(a,` does, and so does `b,` in `f(a, |`. An element of a list that has a
    line of its own may be followed by another one.
    """
    if not site.is_part or site.kind not in ("statement", "rest_of_line", *LISTS) or site.rest.strip():
        return False
    if site.language.is_plain or site.state.string or site.state.comment:
        return False
    if _is_element(site, text):
        return True
    line = _line(site, text)
    headed = site.language.style == "indent" and line.rstrip().endswith(b":")
    return site.kind not in LISTS and (headed or bool(unpaired(site.language, line).openers))


@bounded
def end_of_item(site: Site, text: str) -> int | None:
    """Return where the item that begins in the line of the gap ends in `text`, in characters; None if it may continue.

    It ends before the first line that is not deeper than its own and that does not continue it, as `else:` does, and
    before a statement that is never reached, as below a `return`; a list ends before its bracket.
    """
    data, base, end = to_bytes(text), width(leading(site.before, site.line)), 0
    data, ended = _reached(site, data, 0)
    if _is_element(site, text):
        return next((len(data[:at].decode("utf-8")) for at in unpaired(site.language, data).closers), None)
    for number, line in enumerate(logical_lines(site.language, data, 0, len(data))):
        if number and line.width <= base and not _CONTINUES.match(data, line.start):
            return len(data[:end].decode("utf-8"))
        end = line.end
    return len(data.decode("utf-8")) if ended else None


@bounded
def end_of_next(site: Site, text: str, shown: int) -> int | None:
    """Return where the item ends that begins below the first `shown` characters of `text`; None if it may continue.

    It is `shown` if nothing below belongs to the block of the gap's line, or is reached.
    """
    above, data = to_bytes(text[:shown]), to_bytes(text)
    data, ended = _reached(site, data, len(above))
    if data[len(above) :].strip(b" \t")[:1] not in (b"", b"\n", b"\r"):
        return shown
    first, end = None, len(above)
    for line in logical_lines(site.language, data, len(above), len(data)):
        if first is None:
            if line.width < width(leading(site.before, site.line)):
                return shown
            first = line
        elif line.width <= first.width and not _CONTINUES.match(data, line.start):
            return len(data[:end].decode("utf-8"))
        end = line.end
    return len(data.decode("utf-8")) if ended else None


def _reached(site: Site, data: bytes, start: int) -> tuple[bytes, bool]:
    """Return the text `data` up to its first statement after `start` that is never reached, and whether it has one."""
    begun = site.before[site.line :]
    at = unreached(site.language, begun + data, len(begun) + start)
    return (data, False) if at is None else (data[: at - len(begun)].rstrip(), True)


def may_continue(line: str) -> bool:
    """Return whether more letters could make `line` one that continues the item above it: `el` could be `else`."""
    bare = line.strip()
    return any(word.startswith(bare) for word in _WORDS)


@bounded
def closed_below(request: Infill, text: str) -> str | None:
    """Return whole lines `text` with closers of the blocks that they and the line of the gap leave open.

    Each is on a line of its own, indented like the line of its opener: `}` below `if a {`. None if the lines end within
    a call, a list, an object, a string or a comment, which is half a statement.
    """
    site = site_of(request)
    data = to_bytes(request.prefix + text)
    state, newline = state_at(site.language, data, len(data)), newline_of(request)
    own = sorted((at for at in state.opened if at >= site.line), reverse=True)
    is_value = bool(own) and (site.language.style != "brace" or _opens_value(data, own[0]))
    if state.string or state.comment or is_value or (own and text.rstrip().endswith(",")):
        return None
    found, last = text.rstrip(), -1
    for at in own:
        closer, line = PAIRS[data[at : at + 1]].decode(), line_start(data, at)
        found += closer if line == last else newline + leading(data, at).decode() + closer
        last = line
    return found


def _opens_value(data: bytes, at: int) -> bool:
    """Return whether the bracket at `at` opens a call, a list or an object, and no block."""
    return data[at : at + 1] != b"{" or _VALUE.search(data[:at].rstrip()[-7:]) is not None


def _line(site: Site, text: str) -> bytes:
    """Return the line of the gap with the first line of `text`."""
    return site.before[site.line :] + to_bytes(LINE_END.split(text, maxsplit=1)[0])


def _is_element(site: Site, text: str) -> bool:
    """Return whether the first line of `text` is an element of a list whose elements have lines of their own."""
    if site.kind in LISTS:
        return not site.before[site.line :].strip()
    line = _line(site, text).rstrip()
    return line.endswith(b",") and bool(site.state.brackets) and not unpaired(site.language, line).openers
