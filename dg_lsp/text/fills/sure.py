"""The sure beginning of a fill, offered where only its first characters are certain."""

import re
from collections.abc import Iterator

from dg_lsp.text.fills import check
from dg_lsp.text.fills.site import site_of
from dg_lsp.text.languages.language import Language
from dg_lsp.text.messages import Infill
from dg_lsp.text.syntax.lexer import Token, tokens

# Places of a fill at which it is tried to end, the last ones first.
TRIES = 12
# Characters that are no white space and that a beginning has at least; fewer are typed sooner than read.
LEAST = 2
_WORD = re.compile(r"\w+")
_PART = re.compile(r"\w")


def sure_beginning(request: Infill, text: str, sure: int) -> str:
    """Return the longest beginning of `text` within its first `sure` characters that fits the gap.

    It ends with a whole word, a whole string, a closing bracket or a semicolon, leaves open nothing that it opens, and
    adds no fault (law 5). Of `first.total(x) + y`, sure up to `+`, `first.total(x)` is left; sure up to the bracket
    before `x`, `first.total`. Empty where no such beginning has LEAST characters.
    """
    site, found = site_of(request), list[str]()
    for end in _words(text) if site.is_prose else _ends(site.language, text):
        if end <= sure and len("".join(text[:end].split())) >= LEAST:
            found.append(text[:end])
    return next((start for start in found[: -TRIES - 1 : -1] if _can_stand(request, start)), "")


def _can_stand(request: Infill, text: str) -> bool:
    """Return whether `text` may be the whole fill: no syntax error, no stub, no word joined with the suffix."""
    if _PART.match(text[-1]) and _PART.match(request.suffix):
        return False
    if check.is_stub(request, text):
        return False
    return not check.faults_of(request, text)


def _words(text: str) -> Iterator[int]:
    """Yield where the words of a comment or of a string's text end."""
    return (word.end() for word in _WORD.finditer(text))


def _ends(language: Language, text: str) -> Iterator[int]:
    """Yield where code may end, as far as its own brackets and strings tell."""
    data, depth = text.encode("utf-8", "replace"), 0
    known = tokens(language, data, 0, len(data))
    for token, behind in zip(known, [*known[1:], None], strict=False):
        depth += (token.kind == "open") - (token.kind == "close" and depth > 0)
        if depth == 0 and _ends_here(data, token, behind):
            yield len(data[: token.end].decode("utf-8"))


def _ends_here(data: bytes, token: Token, behind: Token | None) -> bool:
    """Return whether code may end with `token`: not with the `f` of `f"..."`, which the string behind it belongs to."""
    if token.kind == "word":
        return behind is None or behind.kind not in ("string", "open_string")
    first = data[token.start : token.start + 1]
    return token.kind in ("close", "string") or first.isdigit() or first == b";"
