"""What is open at a place of a text, by its bytes alone; the style of the language says who reads it.

Knows which module reads which style; knows no tree and no document.
"""

from collections.abc import Iterator

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax import braced as braces
from dg_lsp.text.syntax import braced_focus as brace_focus
from dg_lsp.text.syntax import indented as offside
from dg_lsp.text.syntax import indented_focus as offside_focus
from dg_lsp.text.syntax.tokens import Span, State, Token


def tokens(language: Language, data: bytes, start: int, stop: int) -> Iterator[Token]:
    """The tokens of data[start:stop], white space included, from a place that is in no string."""
    if language.style == "indent":
        return offside.tokens(data, start, stop)
    return braces.tokens(language, data, start, stop)


def state_at(language: Language, data: bytes, offset: int, start: int | None = None) -> State:
    """What is open at `offset`, read from `start`, a place in no string (without it, from its top-level item)."""
    start = window(language, data, offset)[0] if start is None else start
    if language.style == "indent":
        return offside.state_at(data, offset, start)
    return braces.state_at(language, data, offset, start)


def focus(language: Language, data: bytes, offset: int) -> tuple[bytes, tuple[Span, ...]]:
    """`data`, one top-level item; where it is long, without what stands apart from `offset`.

    That is cut, and the second value has pairs of an offset in `data` and a number of bytes below 0; or it is blanked.
    """
    if language.style == "indent":
        return offside_focus.focus(data, offset)
    return brace_focus.focus(language, data, offset), ()


def window(language: Language, data: bytes, offset: int) -> Span:
    """The top-level item round `offset`, found by its lines."""
    if language.style == "indent":
        return offside.window(data, offset)
    return braces.window(language, data, offset)


def block(language: Language, data: bytes, offset: int) -> Span:
    """The part of `window` that ends where the next line with text stands at column 0, closing brackets apart."""
    if language.style == "indent":
        return offside.block(data, offset)
    return braces.block(language, data, offset)
