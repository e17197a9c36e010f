"""Properties: the other places of a key that a function takes out of its argument: its uses, calls and elements."""

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from dg_lsp.edits.classes import name_of
from dg_lsp.edits.places import WORDS, Place, Source, field_text
from dg_lsp.edits.renames import Renamed
from dg_lsp.edits.sharing import may_share, shared_names
from dg_lsp.gaps import Edit
from dg_lsp.source.document import Document
from dg_lsp.source.names import Name, binding, is_class

_ELEMENTS = ("jsx_opening_element", "jsx_self_closing_element")


def property_places(source: Source, renamed: Renamed, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the edits that rename a key in the functions that take it, as `{ key }`, and where it is given to them.

    The key was renamed in the parameters of a function, or in the type of the properties of a component.
    """
    edited = source.name_at(*renamed.at)
    if edited is None or edited.scope is None:
        return
    known = (*source.names(renamed.old), *source.names(renamed.new))
    for key in _taken(source, edited, edited.scope, known):
        scope = key.scope
        if scope is not None and not any(n.scope == scope and n.start != key.start for n in known):
            yield from _uses(source, renamed, known, scope)
            yield from _given_places(source, renamed, scope, others)


def _taken(source: Source, edited: Name, scope: Node, known: Sequence[Name]) -> list[Name]:
    """Return the keys among the `known` names that functions take, and that the name `edited` in its `scope` is of."""
    keys = [n for n in known if n.parameter and n.shorthand and n.scope is not None]
    if edited.role == "member" and is_class(source.language, scope):
        typed = (n for n in keys if WORDS.findall(field_text(n.place, "type")) == [name_of(scope)])
        return [n for n in typed if _is_component(n)]
    return [n for n in keys if n.start == edited.start]


def _is_component(key: Name) -> bool:
    """Return whether the function that takes `key` writes elements; in others `{ key: name }` may be meant."""
    text = (key.scope.text or b"") if key.scope is not None else b""
    return b"</" in text or b"/>" in text


def _uses(source: Source, renamed: Renamed, known: tuple[Name, ...], function: Node) -> Iterator[Place]:
    """Yield the edits that rename the variable of the key in a `function`; where it is given on, it keeps its name."""
    for name in known:
        if name.role != "variable" or name.node.text != renamed.old:
            continue
        if binding(source.language, name, known) == function:
            is_given = name.shorthand and name.scope is None
            text = renamed.old + b": " + renamed.new if is_given else renamed.new
            yield source.document, Edit(name.start, name.end, text.decode())


def _given_places(
    source: Source, renamed: Renamed, function: Node, others: Sequence[Document]
) -> Iterator[Place]:
    """Yield the edits that rename the key in calls and elements of a `function`, in `others` that import it, too."""
    word = field_text(function, "name") or field_text(function.parent, "name")
    if not word:
        return
    there = [(source, [*source.names(word)])]
    there += [shared_names(source, other, (word,)) for other in others if may_share(source, other, word)]
    for one, names in there:
        for node in (key for name in names if name.scope is None for key in _given(name.node)):
            if node.text == renamed.old:
                # `{ key }` becomes `{ name: key }`.
                is_short = node.type.startswith("shorthand")
                text = renamed.new + b": " + renamed.old if is_short else renamed.new
                yield one.document, Edit(node.start_byte, node.end_byte, text.decode())


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
