"""Container: the brackets, the quotes or the indentation round a gap, and where a fill would leave them."""

from dataclasses import dataclass

from tree_sitter import Node

from dg_lsp.text.documents.lines import width
from dg_lsp.text.languages.language import Language
from dg_lsp.text.messages import BODIES, LISTS, STRINGS, Infill
from dg_lsp.text.syntax.baseline import Text, neutral_text
from dg_lsp.text.syntax.brackets import state_at
from dg_lsp.text.syntax.indented_bodies import LogicalLine, function_over, logical_lines
from dg_lsp.text.syntax.items import window
from dg_lsp.text.syntax.lexer import tokens


@dataclass(frozen=True, slots=True)
class Literal:
    """A string or a comment. close: what ends it. lines: it may go on over line ends."""

    close: bytes
    lines: bool


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


def function_of_span(language: Language, before: bytes) -> LogicalLine | None:
    """The header of the function that a span behind `before` may not leave; None where there is none.

    That is the outermost one: a span may end a function in it, and what stands behind the span does not tell.
    """
    if language.style != "indent":
        return None
    start, _ = window(language, before, len(before))
    return function_over(language, before, start, len(before))


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


def surplus(language: Language, fill: bytes) -> int | None:
    """Return where `fill` closes a bracket that it has not opened; None if it does not."""
    depth = 0
    for token in tokens(language, fill, 0, len(fill)):
        depth += (token.kind == "open") - (token.kind == "close")
        if depth < 0:
            return token.start
    return None


def container_of(language: Language, text: Text) -> tuple[int, int] | None:
    """Return the places of the innermost brackets round the fill, by the tree of `text`; None if it has none."""
    state = state_at(language, text.before, len(text.before))
    if not state.opened:
        return None
    opened = text.tree.root_node.descendant_for_byte_range(state.opened[-1], state.opened[-1] + 1)
    holder = opened.parent if opened and opened.child_count == 0 else None
    if opened is None or holder is None or holder.is_error:
        return None
    last = _closer(opened, holder)
    return (opened.start_byte, last.start_byte) if last else None


def _closer(opened: Node, holder: Node) -> Node | None:
    """Return the bracket among the children of `holder` that closes `opened`."""
    behind = [c for c in holder.children if c.start_byte > opened.start_byte and not c.is_missing]
    return next((c for c in reversed(behind) if c.type in (")", "]", "}")), None)


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
