"""Shortening: what of a broken fill can still be shown. Knows lines and `syntax`; knows no tokens and no model."""

import re
from collections.abc import Iterator

from dg_lsp.text.fills import check
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.messages import BODIES, Infill

_LINE_END = re.compile(r"\r\n|\n|\r")
# A line that begins so goes on with the one before it.
_GOES_ON = re.compile(r"[.?:,)\]}+*/%&|^=<>-]|(?:else|elif|except|finally|catch)\b")


def shorten(request: Infill, fill: str) -> str:
    """The longest beginning of `fill` that is whole statements and adds no fault; empty where there is none.

    A statement ends with its line. One that the next line goes on with is not whole, though it may parse.
    """
    if request.kind not in BODIES:
        # Of the other kinds a part is no use.
        return ""
    for text in _beginnings(load_language(request.language), fill):
        if not check.faults(request.language, request.kind, request.prefix, text, request.suffix):
            return text
    return ""


def _beginnings(language: Language, fill: str) -> Iterator[str]:
    """The beginnings of `fill` that end with a line of code, the longest first; not all of it."""
    ends = [found.start() for found in _LINE_END.finditer(fill.rstrip())]
    for end in reversed(ends):
        text = fill[:end].rstrip()
        last = _LINE_END.split(text)[-1].strip()
        whole = last.endswith(";") or not _GOES_ON.match(fill[end:].lstrip())
        if last and whole and not last.startswith(language.comment):
            yield text
