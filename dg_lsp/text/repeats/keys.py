"""Keys: the other places of a key that a function takes out of its argument: its uses, calls and elements."""

from collections.abc import Iterator, Sequence
from itertools import chain

from tree_sitter import Node

from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.repeats.classes import WORDS, Place, Source, name_of
from dg_lsp.text.repeats.renames import Renamed, may_share, shared_names
from dg_lsp.text.syntax.names import Name, binding, is_class, name_at

_ELEMENTS = ("jsx_opening_element", "jsx_self_closing_element")


def key_places(source: Source, renamed: Renamed, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the edits that rename a key in the functions that take it, as `{ key }`, and where it is given to them.

    The key was renamed in the parameters of a function, or in the type of the properties of a component. 1. Find these
    functions.  2. Rename the key there, and the variable of its name.  3. Rename it in calls and elements of them, in
    this document and others.
    """
    edited = name_at(source.language, source.root, *renamed.at)
    if edited is None or edited.scope is None:
        return
    # 1.
    known = (*source.names(renamed.old), *source.names(renamed.new))
    keys = [n for n in known if n.parameter and n.shorthand and n.scope is not None]
    if edited.role == "member" and is_class(source.language, edited.scope):
        keys = [n for n in keys if _type_of(n) == [name_of(edited.scope)] and _is_component(n)]
    else:
        keys = [n for n in keys if n.start == edited.start]
    for key in keys:
        scope = key.scope
        again = [n for n in known if n.scope is not None and n.scope == scope and n.start != key.start]
        if scope is None or again:
            continue
        # 2.
        bound = [n for n in known if n.role == "variable" and n.node.text == renamed.old]
        for name in bound:
            if binding(source.language, name, known) == scope:
                text = renamed.new
                if name.shorthand and name.scope is None:
                    text = renamed.old + b": " + text
                yield source.document, Edit(name.start, name.end, text.decode())
        # 3.
        function = _name_of(scope)
        there = [(source, [*source.names(function)])] if function else []
        if (
            scope.parent is not None
            and scope.parent.parent is not None
            and scope.parent.parent.parent is None
        ):
            there += [
                shared_names(source, o, (function,))
                for o in others
                if function and may_share(source, o, function)
            ]
        for one, names in there:
            given = chain.from_iterable(_given(name.node) for name in names if name.scope is None)
            for node in given:
                if node.text == renamed.old:
                    yield one.document, Edit(node.start_byte, node.end_byte, _new(node, renamed))


def _new(node: Node, renamed: Renamed) -> str:
    """Return the new text of a key that is given: `{ key }` becomes `{ name: key }`."""
    is_short = node.type.startswith("shorthand")
    return (renamed.new + b": " + renamed.old if is_short else renamed.new).decode()


def _is_component(key: Name) -> bool:
    """Return whether the function that takes `key` writes elements; in others `{ key: name }` may be meant."""
    text = (key.scope.text or b"") if key.scope is not None else b""
    return b"</" in text or b"/>" in text


def _type_of(key: Name) -> list[bytes]:
    """Return the words of the type of the parameter that `key` is taken out of."""
    found = key.place.child_by_field_name("type")
    return WORDS.findall(found.text or b"") if found is not None else []


def _name_of(function: Node) -> bytes:
    """Return the name of a function, or of the variable that it is the value of; empty without one."""
    named = function.child_by_field_name("name")
    if named is None and function.parent is not None and function.parent.type == "variable_declarator":
        named = function.parent.child_by_field_name("name")
    return (named.text or b"") if named is not None else b""


def _given(function: Node) -> Iterator[Node]:
    """Yield the keys that are given where `function` is called, or is the name of an element."""
    around = function.parent
    if around is None:
        return
    if around.type in _ELEMENTS:
        yield from (n.children[0] for n in around.children if n.type == "jsx_attribute")
    arguments = around.child_by_field_name("arguments") if around.child(0) == function else None
    for argument in arguments.named_children if arguments is not None else ():
        if argument.type == "object":
            for entry in argument.named_children:
                found = entry.child_by_field_name("key") if entry.type == "pair" else entry
                yield from (found,) if found is not None else ()
