"""Names: where a word is written as a name, in which role, and which scope binds it, as far as the tree tells."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from dg_lsp.budget import check
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import Span

Role = Literal["variable", "type", "member", "keyword", "other"]
# A word that is written more often is not followed.
MOST = 400
_MEMBERS = ("field_identifier", "property_identifier")
_SHORTHANDS = (
    "shorthand_property_identifier", "shorthand_property_identifier_pattern", "shorthand_field_identifier",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """One occurrence of a word as a name. scope: the node in which it defines the name; None for a use.

    place: the node that defines it, or that it is a part of. shorthand: it is a member and a variable at once.
    """

    node: Node
    role: Role
    place: Node
    scope: Node | None = None
    parameter: bool = False
    shorthand: bool = False

    @property
    def start(self) -> int:
        """The offset of its first byte."""
        return self.node.start_byte

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.node.end_byte


def whole(word: bytes) -> re.Pattern[bytes]:
    """Return the pattern of `word` where it is no part of a longer word."""
    text = re.escape(word)
    # A pattern that begins with the word is looked for as fast as a text, and one that looks after first is not.
    return re.compile(rb"%b(?<![\w$\x80-\xff]%b)(?![\w$\x80-\xff])" % (text, text))


def names_in(language: Language, root: Node, data: bytes, word: bytes) -> tuple[Name, ...]:
    """Return the occurrences of `word` as a name below `root`, a node of the tree of `data`; none if there are many."""
    found = list[Name]()
    for number, match in enumerate(whole(word).finditer(data, root.start_byte, root.end_byte)):
        if number == MOST:
            return ()
        check()
        name = name_at(language, root, match.start(), match.end())
        if name is not None:
            found.append(name)
    return tuple(found)


def name_at(language: Language, root: Node, start: int, end: int) -> Name | None:
    """Return the name that is written at the bytes [start, end); None without one, or without a table of names."""
    if not language.names:
        return None
    node = root.descendant_for_byte_range(start, end)
    if node is None or node.byte_range != (start, end):
        return None
    if not node.type.endswith(("identifier", "implicit_parameter")) and node.type not in _SHORTHANDS:
        return None
    while (
        node.parent is not None
        and node.parent.type.endswith("identifier")
        and node.byte_range == node.parent.byte_range
    ):
        node = node.parent
    return _defined(language, node) or _used(language, node)


def declared_again(language: Language, root: Node, span: Span) -> list[Node]:
    """Return the declarations with a name in `span` that declare only what others in their block do.

    Of the languages that forbid it: those with a line `once`.
    """
    return [
        node
        for node in _once_in(language, root, span)
        if (own := _declared(language, node))
        and any(span[0] <= name.start_byte < span[1] for name in own)
        and {name.text for name in own} <= _declared_beside(language, node)
    ]


def _once_in(language: Language, root: Node, span: Span) -> Iterator[Node]:
    """Yield the declarations below `root` that meet `span` and are in a place of a line `once`."""
    stack = [root] if "once" in language.names else []
    while stack:
        check()
        node = stack.pop()
        if _is_once(language, node):
            yield node
        stack += [child for child in node.children if child.start_byte < span[1] and child.end_byte > span[0]]


def _is_once(language: Language, node: Node) -> bool:
    return node.parent is not None and f"{node.parent.type}.{node.type}" in language.names["once"]


def _declared(language: Language, declaration: Node) -> list[Node]:
    """Return the names of variables and classes that `declaration` gives to its block, as leaves."""
    found, stack = list[Node](), [declaration]
    while stack:
        node = stack.pop()
        if not node.children:
            name = name_at(language, node, *node.byte_range)
            if name and name.scope and name.role == "variable" and not name.parameter and node.text != b"_":
                found.append(node)
        stack += [child for child in node.children if child.type not in language.names["scopes"]]
    return found


def _declared_beside(language: Language, declaration: Node) -> set[bytes | None]:
    """Return the names that the other declarations of the block of `declaration` give."""
    others = declaration.parent.named_children if declaration.parent is not None else []
    beside = [one for one in others if one != declaration and _is_once(language, one)]
    return {name.text for one in beside for name in _declared(language, one)}


def binding(language: Language, name: Name, names: tuple[Name, ...]) -> Node | None:
    """Return the scope in which `name`, a variable or a type, is defined by one of `names`; None if none defines it.

    The scope of a class binds names only in its own statements, unless they are parameters of its types, or the
    language has `bare` members.
    """
    if name.scope is not None:
        return name.scope
    found = [n for n in names if n.scope is not None and _binds(language, n, name)]
    scopes = {n.scope.id for n in found if n.scope is not None}
    open_scopes = {n.scope.id for n in found if n.scope is not None and n.parameter}
    nested = outside = False
    for node in around(name.node.parent):
        closed = nested and is_class(language, node) and "bare" not in language.names
        if node.id in scopes and not outside and (not closed or node.id in open_scopes):
            return node
        nested = nested or node.type in language.names["scopes"]
        outside = node.type in language.names.get("outside", ())
    return None


def is_class(language: Language, node: Node) -> bool:
    """Return whether `node` holds members."""
    return node.type in language.names["classes"]


def class_of(language: Language, node: Node) -> Node | None:
    """Return the innermost class around `node`."""
    return next((one for one in around(node.parent) if is_class(language, one)), None)


def around(node: Node | None) -> Iterator[Node]:
    """Yield `node` and those around it, the innermost first; none of None."""
    while node is not None:
        yield node
        node = node.parent


def receiver_of(name: Name) -> Node | None:
    """Return the text before the dot of a member, as a node."""
    parent = name.node.parent
    if parent is None:
        return None
    if parent.type == "token_tree":
        dot = name.node.prev_sibling
        return dot.prev_sibling if dot is not None else None
    first = parent.child(0)
    return first if first is not None and first.id != name.node.id and first.is_named else None


def _defined(language: Language, leaf: Node) -> Name | None:
    """Return the Name of a `leaf` that defines itself; None if it does not."""
    facts, node = language.names, leaf
    # Climb through what may be around it in a pattern.
    while node.parent is not None and not any(
        _is_in(facts, key, node) for key in ("definitions", "parameters")
    ):
        if not _is_in(facts, "patterns", node) or _is_dotted(node, node.parent):
            return None
        node = node.parent
    place = node.parent
    if place is None:
        return None
    # Look whether it is a parameter, or in another place that defines a name.
    parameter = _is_in(facts, "parameters", node)
    if not parameter and _is_reference(place, node):
        return None
    # Find the scope: that of a parameter is the function, also of one without a body.
    inside = parameter and place.type in facts["scopes"]
    scope = place if inside else place.parent if place.type in facts["scopes"] else place
    ends = facts["scopes"] | (facts.get("prototypes", frozenset()) if parameter else frozenset())
    while scope is not None and scope.parent is not None and scope.type not in ends:
        scope = scope.parent
    if scope is None:
        return None
    if parameter and any(child.type == "accessibility_modifier" for child in place.children):
        # TypeScript declares a member so.
        return Name(leaf, "member", place, class_of(language, leaf), parameter)
    member = (is_class(language, scope) and not parameter) or leaf.type in _MEMBERS
    role: Role = "member" if member else "variable"
    return Name(leaf, role, place, scope, parameter, leaf.type in _SHORTHANDS)


def _used(language: Language, leaf: Node) -> Name | None:
    """Return the Name of a `leaf` that is used."""
    facts, parent = language.names, leaf.parent
    if parent is None or parent.type in facts.get("elsewhere", ()):
        return Name(leaf, "other", leaf)
    role: Role = "variable"
    if leaf.type in _SHORTHANDS or parent.type == "shorthand_field_initializer":
        return Name(leaf, role, parent, shorthand=True)
    if _is_in(facts, "keywords", leaf) or _is_in(facts, "keywords", parent):
        role = "keyword"
    elif _is_in(facts, "members", leaf) or leaf.type in _MEMBERS or _is_after_dot(leaf):
        role = "member"
    elif leaf.type == "type_identifier" or _is_in(facts, "types", leaf):
        role = "type"
    elif (
        parent.type in ("dotted_name", "import_specifier", "scoped_identifier") and leaf.next_sibling is None
    ):
        role = "other"
    # Python writes `self.name = name` for what others declare.
    if role == "member" and _is_assigned_to_self(parent):
        owner = class_of(language, leaf)
        return Name(leaf, role, parent, owner)
    return Name(leaf, role, parent)


def _is_in(facts: Mapping[str, frozenset[str]], key: str, node: Node) -> bool:
    """Return whether one of the entries PARENT or PARENT.FIELD under `key` names the place of `node`."""
    parent, entries = node.parent, facts.get(key, frozenset())
    if parent is None or all(entry.partition(".")[0] != parent.type for entry in entries):
        return False
    field = _field(parent, node)
    return (f"{parent.type}.{field}" if field else parent.type) in entries


def _field(parent: Node, node: Node) -> str:
    """Return the field in which `parent` has `node`; empty if in none."""
    for number, child in enumerate(parent.children):
        if child.id == node.id:
            return parent.field_name_for_child(number) or ""
    return ""


def _is_dotted(node: Node, parent: Node) -> bool:
    """Return whether `node` is a part of a dotted name that defines nothing: `join` of `os.path`, all in a pattern."""
    pattern = parent.parent is not None and parent.parent.type == "case_pattern"
    return parent.type == "dotted_name" and (
        node.prev_sibling is not None or (pattern and node.next_sibling is not None)
    )


def _is_reference(place: Node, node: Node) -> bool:
    """Return whether a place that may define a name only refers to one: `struct box b;`, `import { a as b }`."""
    if place.type.endswith("_specifier") and place.type.startswith(("struct", "class", "union", "enum")):
        return place.child_by_field_name("body") is None
    if place.child_by_field_name("declarator") is not None and place.type.startswith(
        ("function", "declaration")
    ):
        # A constructor, or a macro that looks like a function.
        return place.child_by_field_name("type") is None
    alias = place.child_by_field_name("alias")
    return alias is not None and alias.id != node.id and place.type in ("aliased_import", "import_specifier")


def _is_after_dot(leaf: Node) -> bool:
    """Return whether `leaf` is in tokens that the parser does not read, after a dot."""
    dot = leaf.prev_sibling
    return (
        leaf.parent is not None
        and leaf.parent.type == "token_tree"
        and dot is not None
        and dot.type in (".", "::")
    )


def _is_assigned_to_self(member: Node) -> bool:
    target, receiver = member.parent, member.child(0)
    return (
        target is not None
        and target.type in ("assignment", "assignment_expression")
        and target.child(0) == member
        and receiver is not None
        and receiver.text in (b"self", b"this")
    )


def _binds(language: Language, definition: Name, name: Name) -> bool:
    """Return whether `definition` may be that of `name`, by their roles alone."""
    if definition.role == "member":
        # Of a class with bare members, or in the statements of the class itself.
        return name.role == "variable" and definition.place.type not in ("attribute", "member_expression")
    is_type = definition.node.type == "type_identifier" or is_class(language, definition.place)
    return definition.role == "variable" and (name.role != "type" or is_type)
