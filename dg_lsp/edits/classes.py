"""Classes: the classes of members, and the members that are evidently of one of them."""

import re

from tree_sitter import Node

from dg_lsp.edits.places import WORDS, Source, statement_of
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import line_start
from dg_lsp.source.names import Name, around, class_of, is_class, receiver_of

_SELVES = (b"self", b"this", b"Self", b"cls")


def name_of(owner: Node) -> bytes:
    """Return the name of a class, or of that of the receiver of a method: `Box` of `func (b *Box[T]) Area()`."""
    named = owner.child_by_field_name("receiver") or owner.child_by_field_name("type")
    if owner.type == "type_spec" or named is None:
        named = owner.child_by_field_name("name")
    words = WORDS.findall(re.split(rb"[<\[]", named.text or b"")[0]) if named is not None else []
    return words[-1] if words else b""


def class_name(name: Name) -> bytes:
    """Return the name of the class that defines the member `name`; b"" of a use."""
    return name_of(name.scope) if name.scope is not None else b""


def owner_of(language: Language, name: Name) -> Node:
    """Return the class in which the member `name` is defined; of a method in Go, the method."""
    return name.scope if name.scope is not None and is_class(language, name.scope) else name.place


def related(one: Node, other: Node) -> bool:
    """Return whether two classes are the same one, or the header of one names the other."""
    mine, yours = name_of(one), name_of(other)
    return one.id == other.id or mine == yours or mine in _header(other) or yours in _header(one)


def _header(owner: Node) -> list[bytes]:
    """Return the words of the header of a class."""
    body = owner.child_by_field_name("body") or owner.child_by_field_name("value")
    text = owner.text or b""
    return WORDS.findall(text[: body.start_byte - owner.start_byte] if body is not None else text[:200])


def receiver_text(name: Name) -> bytes:
    """Return the text before the dot of the member `name`; b"" without one."""
    node = receiver_of(name)
    return (node.text or b"") if node is not None else b""


def is_own(name: Name) -> bool:
    """Return whether the receiver of the member `name` is the object that its method belongs to."""
    return receiver_text(name) in _SELVES


def is_evident(source: Source, name: Name, owner: Node) -> bool:
    """Return whether the receiver of the member `name` is evidently of the class `owner`.

    It is `self` in the class, the class itself, a variable whose definition names the class, or called like it.
    """
    called, receiver = name_of(owner), receiver_of(name)
    text = (receiver.text or b"") if receiver is not None else b""
    if receiver is None or text in _SELVES:
        own = class_of(source.language, name.node)
        return own is not None and related(owner, own)
    words = WORDS.findall(text)
    if not words or not called:
        return False
    if words[-1] == called or (words[0] == called and text[-1:] in b")}"):
        return True
    if receiver.type == "identifier" and called in _words_of_definition(source, receiver):
        return True
    return re.sub(rb"\A.*_", b"", words[-1]).lower() == called.lower()


def _words_of_definition(source: Source, variable: Node) -> list[bytes]:
    """Return the words of the first line in which a `variable` is defined, as its type is: `box: Box = make()`."""
    scope = source.scope_at(*variable.byte_range)
    same = source.names(variable.text or b"") if scope is not None else ()
    place = next((n.place for n in same if n.scope == scope), None)
    return WORDS.findall((statement_of(place).text or b"").splitlines()[0]) if place is not None else []


def class_of_literal(source: Source, node: Node) -> bytes:
    """Return the name of the class of the literal or call that `node` is a key of, from the line where that begins."""
    literal = next((one for one in around(node.parent) if (one.text or b"").endswith((b"}", b")"))), None)
    if literal is None:
        return b""
    data, start = source.document.data, literal.start_byte
    before = WORDS.findall(data[line_start(data, start) : start + 1])
    return next((word for word in reversed(before) if word[:1].isupper()), b"")
