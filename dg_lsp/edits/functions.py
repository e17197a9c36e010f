"""Functions: the definition of one, its header, its parameters, and the other definitions of the same function."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from dg_lsp.edits.classes import name_of, owner_of, receiver_text, related
from dg_lsp.edits.places import Source, source_of
from dg_lsp.edits.sharing import may_share, shared_names
from dg_lsp.edits.spans import NAME
from dg_lsp.gaps import Edit
from dg_lsp.source.document import Document
from dg_lsp.source.history import Change
from dg_lsp.source.names import Name, around, class_of

_PARAMETERS = re.compile(r"parameters\Z|parameter_list\Z")
_FUNCTION = re.compile(r"function|method|signature|declaration|definition")
_SELF = re.compile(rb"&?(?:'\w+ )?(?:mut )?self\b|cls\Z")
_OPEN, _CLOSE = b"([{<", b")]}>"


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function by the `name` that defines it. node: all of it; parameters: their list, with its brackets."""

    name: Name
    node: Node
    parameters: Node

    @staticmethod
    def of(name: Name) -> "Function | None":
        """Return the function that `name` defines; None if it defines none, or none with a list of parameters."""
        node = name.place
        # `Class::name(...)` is a name in a declarator in the function.
        while node.type in ("qualified_identifier", "function_declarator") and node.parent is not None:
            node = node.parent
        for inner in around(name.node.parent):
            found = inner.child_by_field_name("parameters") if inner.start_byte >= node.start_byte else None
            if found is not None or inner == node or inner.start_byte < node.start_byte:
                return Function(name, node, found) if found is not None else None
        return None

    @property
    def word(self) -> bytes:
        """The name as it is written."""
        return self.name.node.text or b""

    @property
    def body(self) -> Node | None:
        """The body; None of a prototype."""
        return self.node.child_by_field_name("body")

    @property
    def header(self) -> tuple[int, int]:
        """The span from the beginning of the function to its body."""
        return self.node.start_byte, self.body.start_byte if self.body is not None else self.node.end_byte

    @property
    def inside(self) -> tuple[int, int]:
        """The span between the brackets of the parameters."""
        return self.parameters.start_byte + 1, self.parameters.end_byte - 1


def function_at(source: Source, spans: Sequence[Change]) -> Function | None:
    """Return the function in whose header all `spans` are; that of a constructor has its class as scope."""
    first, last = spans[0].now, spans[-1].stop
    nodes = (node for node in source.nodes_at(first, last) if _FUNCTION.search(node.type))
    function = next(filter(None, (_defined_by(source, node) for node in nodes)), None)
    return function if function and function.header[0] <= first and last <= function.header[1] else None


def _defined_by(source: Source, node: Node) -> Function | None:
    """Return the function that `node` is; None where it has no name, or no parameters."""
    leaf = node.child_by_field_name("declarator") or node.child_by_field_name("name")
    while leaf is not None and (inner := leaf.child_by_field_name("declarator")) is not None:
        leaf = inner
    name = source.name_at(*leaf.byte_range) if leaf is not None else None
    if name is not None and node.type == "constructor_declaration":
        name = replace(name, scope=class_of(source.language, name.node))
    return Function.of(name) if name is not None and name.scope is not None else None


def functions_called(source: Source, word: bytes) -> list[Function]:
    """Return the functions called `word` that `source` defines."""
    found = (Function.of(name) for name in source.names(word) if name.scope is not None)
    return [function for function in found if function is not None]


def definitions_of(
    source: Source, function: Function, others: Sequence[Document]
) -> Iterator[tuple[Source, Function]]:
    """Yield the other definitions of a `function`, each with its document.

    They are prototypes, or methods of a class that implements an interface or overrides another class. In another
    document one of both must be a prototype, or in a class that names the other one.
    """
    word, is_method = function.word, function.name.role == "member"
    by_headers = "headers" in source.language.names.get("shares", ())
    for other in source.names(word):
        found = Function.of(other) if other.start != function.name.start else None
        if found is not None and is_same(source, function, found):
            yield source, found
    shared = [o for o in others if may_share(source, o, word)] if is_method or by_headers else []
    for document in shared:
        there = source_of(document)
        names = there.names(word) if is_method else shared_names(source, document, (word,))[1]
        known = (Function.of(n) for n in names if is_method or n.scope is not None)
        for found in (one for one in known if one is not None):
            is_pair = not by_headers or (function.body is None) != (found.body is None)
            if is_pair and (not is_method or is_same(there, function, found)):
                yield there, found


def is_same(source: Source, function: Function, other: Function) -> bool:
    """Return whether two definitions are of one function; `source` is the document of the `other` one."""
    name, there = function.name, other.name
    if name.role != there.role or name.scope is None:
        return False
    if name.role != "member":
        return name.scope == there.scope
    owner = owner_of(source.language, name)
    if there.scope is None:
        # After `Class::`.
        return other.body is not None and receiver_text(there) == name_of(owner)
    theirs = owner_of(source.language, there)
    return related(owner, theirs) or _implements(source, theirs, owner)


def _implements(source: Source, method: Node, interface: Node) -> bool:
    """Return whether a `method` is of a type that has all methods of the `interface`, two at least.

    So it is in Go, where types do not name the interfaces that they implement.
    """
    body = interface.child_by_field_name("type")
    if body is None or "interface" not in body.type or method.child_by_field_name("receiver") is None:
        return False
    wanted = {named.text for n in body.named_children if (named := n.child_by_field_name("name"))}
    methods = [n for n in source.root.children if n.child_by_field_name("receiver") is not None]
    names = [n.child_by_field_name("name") for n in methods if name_of(n) == name_of(method)]
    return len(wanted) > 1 and wanted <= {n.text for n in names if n is not None}


def is_receiver(parameter: bytes) -> bool:
    """Return whether a `parameter` is the object that a method belongs to, which its calls do not give."""
    return _SELF.match(parameter) is not None


def parts_of(text: bytes) -> list[bytes]:
    """Return the parts of a list without its brackets, without blanks at their ends: `a, b: T<c, d>` has two."""
    parts, depth, start = list[bytes](), 0, 0
    for at in range(len(text)):
        byte = text[at : at + 1]
        if byte in _OPEN:
            depth += 1
        elif byte in _CLOSE and text[at - 1 : at] not in (b"-", b"="):
            depth -= 1
        elif byte == b"," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return parts if parts[-1] else parts[:-1]


def parameter_names(source: Source, parameters: Node | None) -> list[bytes]:
    """Return the name of each of the `parameters` in order, b"" for one without a name."""
    nodes = parameters.named_children if parameters is not None else []
    return [_name_in(source, node) for node in nodes if "comment" not in node.type]


def _name_in(source: Source, parameter: Node) -> bytes:
    """Return the name that a `parameter` has, which is in front of its type or after it."""
    for match in NAME.finditer(source.document.data, *parameter.byte_range):
        name = source.name_at(*match.span())
        if name is not None and name.parameter:
            return match[0]
    return b""


def adds_parameter(source: Source, edit: Edit) -> bool:
    """Return whether `edit` gives a function more parameters than it has, or fewer."""
    nodes = source.nodes_at(edit.start, edit.end)
    node = next((node for node in nodes if _PARAMETERS.search(node.type)), None)
    if node is None:
        return False
    data, start, end = source.document.data, node.start_byte + 1, node.end_byte - 1
    new = data[start : edit.start] + edit.text.encode() + data[edit.end : end]
    return len(parts_of(data[start:end])) != len(parts_of(new))
