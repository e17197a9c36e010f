"""Shortening: the beginning of a broken fill that can still be shown."""

import re
from collections.abc import Iterator

from dg_lsp.text.fills import check
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.messages import BODIES, Infill

_LINE_END = re.compile(r"\r\n|\n|\r")
# A line that begins so goes on with the one before it.
_GOES_ON = re.compile(r"[.?:,)\]}+*/%&|^=<>-]|(?:else|elif|except|finally|catch)\b")


def shorten(request: Infill, fill: str) -> str:
    """Return the longest beginning of `fill` in whole statements that adds no fault; empty if there is none.

    `a = 1\nb = (` becomes `a = 1`. A statement that the next line continues does not count, though it may parse.
    """
    if request.kind not in BODIES:
        # Of the other kinds a part is no use.
        return ""
    for text in _beginnings(load_language(request.language), fill):
        if not check.faults(request.language, request.kind, request.prefix, text, request.suffix):
            return text
    return ""


def _beginnings(language: Language, fill: str) -> Iterator[str]:
    """Yield the beginnings of `fill` that end with a line of code, longest first, without `fill` itself."""
    ends = [found.start() for found in _LINE_END.finditer(fill.rstrip())]
    for end in reversed(ends):
        text = fill[:end].rstrip()
        last = _LINE_END.split(text)[-1].strip()
        whole = last.endswith(";") or not _GOES_ON.match(fill[end:].lstrip())
        if last and whole and not last.startswith(language.comment):
            yield text
