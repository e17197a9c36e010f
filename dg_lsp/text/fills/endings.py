"""Endings: what closes a text in its gap, decided once the text is known."""

from collections.abc import Iterator

from dg_lsp.text.documents.document import LINE_END
from dg_lsp.text.fills.baseline import begins_body
from dg_lsp.text.fills.below import closed_below, opens_below
from dg_lsp.text.fills.site import newline_of, site_of, to_bytes
from dg_lsp.text.messages import Infill
from dg_lsp.text.syntax.brackets import state_at
from dg_lsp.text.syntax.lexer import leading


def endings(request: Infill, text: str) -> Iterator[str]:
    """Yield endings of `text`, a part of a line, the shortest first: `)` for `f(a`; in Python `:` for `if a`.

    Where the line continues after the gap, they close what `text` itself has opened: `]` for `a[0` in `f(|)`.

    1. Of several lines, the closers of blocks on lines of their own.  2. Closers of the brackets that the line has
    opened, and of its quotes, and the ends of a statement.  3. In Python the end of a header, then a body below it.
    4. Closers of the brackets that lines above it have opened in its statement, on the line below.  5. Words that close
    a block of a plain language.
    """
    site, data = site_of(request), to_bytes(request.prefix + text)
    language, state = site.language, state_at(site.language, data, len(data))
    goes_on = bool(site.rest.strip())
    first = len(site.before) if goes_on else site.line
    # A string that the text itself begins and does not end is not what its writer meant.
    if state.comment or (state.string and (goes_on or not first <= state.begins < len(site.before))):
        return
    # 1.
    if LINE_END.search(text) and opens_below(site, text):
        yield closed_below(request, text).removeprefix(text.rstrip())
    below, body = newline_of(request) + request.indent, language.placeholders["block"]
    shut = (state.string + state.closing(at for at in state.opened if at >= first)).decode()
    if shut and text.endswith("{"):
        shut = below + shut
    ends = tuple(end.decode() for end in dict.fromkeys((b"", *language.words.ends)))
    ends = ends[:1] if shut and begins_body(site, to_bytes(text)) else ends
    # 2.
    if shut:
        yield from (shut + end for end in ends)
    if goes_on:
        return
    # 3.
    if body:
        end = "" if text.endswith(":") else shut + ":"
        yield from (one for one in (end, end + below + language.indent + body) if one)
    # 4.
    if above := [at for at in state.opened if state.line <= at < site.line]:
        outer = newline_of(request) + leading(data, above[-1]).decode() + state.closing(above).decode()
        yield from (shut + outer + end for end in ends)
    # 5.
    yield from (below + word for word in language.plain.closings)
