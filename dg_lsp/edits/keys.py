"""Keys: the other places of a string that is a key of one variable: of `row["name"]` and `row = {"name": 1}`."""

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from dg_lsp.edits.places import Place, Source
from dg_lsp.edits.spans import text_before
from dg_lsp.gaps import Edit
from dg_lsp.source.history import Change
from dg_lsp.source.lexer import line_end, line_start

_STRING = re.compile(rb"([\"'`])([\w.-]+)\1")


def key_places(source: Source, before: bytes, spans: Sequence[Change]) -> Iterator[Place]:
    """Yield the other places of a string that was changed, and is a key of a variable.

    The new key must not have been one of it before.
    """
    data, span = source.document.data, spans[0]
    line = line_start(data, span.now), line_end(data, span.now)
    inside = (m for m in _STRING.finditer(data, *line) if m.start() < span.now and span.stop < m.end())
    quoted = next(inside, None)
    if quoted is None or len(spans) != 1:
        return
    old, owner = text_before(before, spans, *quoted.span()), _owner(source, *quoted.span())
    if owner is None or not _STRING.fullmatch(old):
        return
    same = sum(_owner(source, *m.span()) == owner for m in re.finditer(re.escape(quoted[0]), data))
    if same > data.count(quoted[0]) - before.count(quoted[0]):
        return
    for match in re.finditer(re.escape(old), data):
        if _owner(source, *match.span()) == owner:
            yield source.document, Edit(*match.span(), quoted[0].decode())


def _owner(source: Source, start: int, end: int) -> tuple[bytes, int] | None:
    """Return the variable that the string at the bytes [start, end) is a key of: its text, and the scope that binds it.

    None for another string. The key is in `row["name"]`, `row.get("name")`, or in the literal of `row = {"name": 1}`.
    """
    key = source.root.descendant_for_byte_range(start, end)
    if key is None or key.byte_range != (start, end) or key.parent is None:
        return None
    around = key.parent if not key.parent.type.endswith(("_list", "argument")) else key.parent.parent
    owner = _indexed(around, key) if around is not None else None
    if owner is None or owner == key:
        return None
    scope = source.scope_at(*owner.byte_range)
    return owner.text or b"", scope.id if scope is not None else 0


def _indexed(around: Node, key: Node) -> Node | None:
    """Return the variable that has the `key`: in a subscript, in a pair of a literal, or in a call of `get`."""
    if re.search("subscript|index|element_access", around.type):
        return around.named_child(0)
    if around.type == "pair":
        assigned = around.parent.parent if around.parent is not None and around.child(0) == key else None
        is_known = assigned is not None and assigned.type in ("assignment", "variable_declarator")
        return assigned.child(0) if assigned is not None and is_known else None
    called = around.child_by_field_name("function")
    return called.named_child(0) if called is not None and (called.text or b"").endswith(b".get") else None
