"""Endings: what closes a text in its gap, decided once the text is known."""

from collections.abc import Iterator

from dg_lsp.text.documents.document import LINE_END
from dg_lsp.text.fills.check import faults_of
from dg_lsp.text.fills.site import site_of, to_bytes
from dg_lsp.text.messages import LISTS, Infill
from dg_lsp.text.syntax.bodies import NO_CODE
from dg_lsp.text.syntax.brackets import PAIRS, state_at
from dg_lsp.text.syntax.lexer import leading, tokens


def ended(request: Infill, text: str) -> str:
    """Return `text` with the first ending that leaves it without faults, and with what parts it from the line below.

    Nothing is added where no ending helps, nor to a body, a span, or a statement, which may go on below its line.
    """
    site = site_of(request)
    if site.kind == "span" or not text:
        return text
    in_line = bool(site.rest.strip()) and site.kind in (*LISTS, "expression")
    if (in_line or site.kind == "rest_of_line") and faults_of(request, text):
        tried = (text + ending for ending in endings(request, text))
        text = next((one for one in tried if not faults_of(request, one)), text)
    return text if site.rest.strip() else _separated(request, text)


def endings(request: Infill, text: str) -> Iterator[str]:
    """Yield endings of `text`, a part of a line, the shortest first: `)` for `f(a`; in Python `:` for `if a`.

    Where the line continues after the gap, they close what `text` itself has opened: `]` for `a[0` in `f(|)`.

    1. Closers of the quotes and brackets that the line has opened, and the ends of a statement.  2. In Python the end
    of a header, then a body below it.  3. Closers of the brackets that lines above it have opened in its statement, on
    the line below.  4. Words that close a block of a plain language.
    """
    site, data = site_of(request), to_bytes(request.prefix + text)
    language, state = site.language, state_at(site.language, data, len(data))
    goes_on = bool(site.rest.strip())
    first = len(site.before) if goes_on else site.line
    if state.comment or (state.string and state.begins < first):
        return
    below, body = newline_of(request) + request.indent, language.placeholders["block"]
    shut = (state.string + state.closing(at for at in state.opened if at >= first)).decode()
    if shut and text.endswith("{"):
        shut = below + shut
    ends = tuple(end.decode() for end in dict.fromkeys((b"", *language.words.ends)))
    # 1.
    if shut:
        yield from (shut + end for end in ends)
    if goes_on:
        return
    # 2.
    if body:
        end = "" if text.endswith(":") else shut + ":"
        yield from (one for one in (end, end + below + language.indent + body) if one)
    # 3.
    if above := [at for at in state.opened if state.line <= at < site.line]:
        outer = newline_of(request) + leading(data, above[-1]).decode() + state.closing(above).decode()
        yield from (shut + outer + end for end in ends)
    # 4.
    yield from (below + word for word in language.plain.closings)


def newline_of(request: Infill) -> str:
    """Return the line end of the gap's own line; on the last line that of the line above; in a file of one line LF."""
    if own := LINE_END.search(request.suffix):
        return own[0]
    lines = request.prefix.splitlines(keepends=True)
    above = next((end for line in reversed(lines) if (end := LINE_END.search(line))), None)
    return above[0] if above else "\n"


def _separated(request: Infill, text: str) -> str:
    """Return `text` with what must part it from the line below: a comma in a list of Go, a semicolon in CSS."""
    site, data = site_of(request), to_bytes(text)
    words, below, opened = site.language.words, site.after.lstrip(), site.state.brackets[-1:]
    last = words.last_comma and opened in PAIRS and below.startswith(PAIRS[opened])
    followed = opened == b"{" and b":" in site.before[site.line :] + data and words.follows.match(below)
    if site.is_prose or not (last or followed):
        return text
    code = [token for token in tokens(site.language, data, 0, len(data)) if token.kind not in NO_CODE]
    end = code[-1].end if code else 0
    ended = (data[:end] + (b"," if last else words.ends[0]) + data[end:]).decode("utf-8")
    return text if data[:end].endswith((b",", b";", b"{", b"}", b":")) or faults_of(request, ended) else ended
