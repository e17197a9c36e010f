"""Ending: what closes a line that a fill leaves open: brackets, or an empty body behind a header."""

from collections.abc import Iterator

from dg_lsp.text.documents.lines import line_start
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import Infill
from dg_lsp.text.syntax.brackets import closers, state_at


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
    shut = closers(bytes(data[at] for at in state.opened if at >= here)).decode()
    if shut and text.endswith("{"):
        shut = below + shut
    if body and not shut:
        shut = ("" if text.endswith(":") else ":") + below + language.indent + body
    if shut:
        yield from (shut + end.decode() for end in dict.fromkeys((b"", *language.words.ends)))
