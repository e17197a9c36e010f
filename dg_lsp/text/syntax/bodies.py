"""The bodies of a text, from its tree or, where that is broken, from its lines; the style says who reads it.

Knows which module reads which style; knows no gaps, cursors or edits.
"""

from tree_sitter import Node

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax import braced_bodies as brace_bodies
from dg_lsp.text.syntax import indented_bodies as offside_bodies
from dg_lsp.text.syntax.body import OWNERS, Body
from dg_lsp.text.syntax.lexer import Span


def bodies_of(language: Language, root: Node, data: bytes, span: Span | None = None) -> tuple[Body, ...]:
    """Every body below `root`, the tree of `data`, in the order of the text; with a `span` those that meet it."""
    read = offside_bodies.bodies_of if language.style == "indent" else brace_bodies.bodies_of
    return tuple(sorted(read(language, root, data, span), key=_place))


def bodies_by_lines(language: Language, data: bytes, span: Span) -> tuple[Body, ...]:
    """Every body of the text `span`, a place that begins and ends with whole lines, for text that does not parse."""
    read = offside_bodies.bodies_by_lines if language.style == "indent" else brace_bodies.bodies_by_lines
    return tuple(sorted(read(language, data, span), key=_place))


def item_at(root: Node, offset: int) -> Node:
    """The last item at the top level that begins at or before `offset`, or `root` where there is none."""
    before = [n for n in root.children if n.start_byte <= offset and n.type != "comment"]
    return before[-1] if before else root


def _place(body: Body) -> tuple[int, int, int]:
    return body.header.define, -body.end, OWNERS.index(body.header.owner)
