"""Renames: the other places of a name that was changed at one place, as far as the trees of the open files tell.

A place that may belong to another name is left out; of a name that may be another one itself, such as one that two
classes define, there are no places at all.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from dg_lsp.edits.calls import call_around, call_of
from dg_lsp.edits.classes import (
    class_name,
    class_of_literal,
    is_evident,
    is_own,
    name_of,
    owner_of,
    receiver_text,
    related,
)
from dg_lsp.edits.places import (
    WORDS,
    Place,
    Source,
    block_of,
    field_text,
    is_import,
    is_within,
    source_of,
    statement_of,
    words_like,
)
from dg_lsp.edits.sharing import may_share, shared_names
from dg_lsp.gaps import Edit
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language
from dg_lsp.source.names import Name, around, binding, is_class


@dataclass(frozen=True, slots=True)
class Renamed:
    """A name that was changed from `old` to `new` at the bytes `at`. count: how many places were changed already.

    alone: nothing else was changed in the same edit, so that it may be a rename where the name is only used.
    typing: the cursor is after it, so that it may become another word of the file.
    """

    old: bytes
    new: bytes
    at: tuple[int, int]
    count: int
    alone: bool = True
    typing: bool = False


def rename_places(source: Source, renamed: Renamed, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the edits that rename the other places, first those of the same document.

    others: the other open documents.
    """
    edited = source.name_at(*renamed.at)
    if edited is None or edited.shorthand or edited.role in ("other", "keyword"):
        return
    if source.language.own_words & {word.decode("utf-8", "replace") for word in (renamed.old, renamed.new)}:
        return
    if edited.scope is None and (not renamed.alone or _is_another_name(source.document.data, renamed)):
        return
    if edited.role == "member":
        yield from _member_places(source, renamed, edited, others)
    else:
        yield from _variable_places(source, renamed, edited, others)


def _is_another_name(data: bytes, renamed: Renamed) -> bool:
    """Return whether the new name is in the file already, or its beginning is while it is typed.

    Where a name is used, this one is meant rather than a new name for the old one.
    """
    if words_like(renamed.new, data) > renamed.count:
        return True
    new = re.escape(renamed.new)
    longer = rb"%b(?<![\w$\x80-\xff]%b)[\w$\x80-\xff]" % (new, new)
    return renamed.typing and re.search(longer, data) is not None


def _variable_places(
    source: Source, renamed: Renamed, edited: Name, others: Sequence[Document]
) -> Iterator[Place]:
    """Do as `rename_places` does for a variable, a function or a type.

    1. Find the scope that binds the old name, in the top-level item or else in the file.  2. The new name must be
    unknown there, and the old one must be a single variable.  3. Rename what is bound in that scope.  4. Go on in files
    that share names of the file.
    """
    # 1.
    for near in (source.within(edited.node), source):
        old, again = near.names(renamed.old), near.names(renamed.new)
        known = (*old, *again)
        scope = binding(source.language, edited, known)
        if scope is not None and scope.parent is not None:
            break
    if scope is None or any(name.role == "other" and name.node is name.place for name in old):
        return
    # 2.
    taken = [n for n in again if n.role != "member" and is_within(n.node, scope)]
    definitions = [n for n in known if n.scope == scope and n.role != "other"]
    if len(taken) > renamed.count or not _is_one(source.language, definitions, edited):
        return
    if edited.scope is None and any(is_import(d.place) for d in definitions):
        return
    member = next((d for d in definitions if d.role == "member"), None)
    if member is not None:
        yield from _member_places(source, renamed, member, others)
        return
    # 3.
    uses = [n for n in old if n.role in ("variable", "type")]
    bound = [n for n in uses if binding(source.language, n, known) == scope]
    bound += _written_with_it(source, renamed, definitions)
    yield from (_edit(source, n, renamed.new, member=False) for n in sorted(bound, key=lambda n: n.start))
    # 4.
    if scope.parent is None and edited.scope is not None:
        for other in others:
            if may_share(source, other, renamed.old):
                there, shared = shared_names(source, other, (renamed.old, renamed.new))
                mine = (n for n in shared if n.node.text == renamed.old)
                yield from (_edit(there, n, renamed.new, member=False) for n in mine)


def _is_one(language: Language, definitions: list[Name], edited: Name) -> bool:
    """Return whether `definitions` are of one variable: all others are assignments in blocks below the first."""
    if not definitions:
        return False
    if all("function" in statement_of(d.place).type or "method" in d.place.type for d in definitions):
        return not _is_overloaded(language, definitions)
    first = edited if edited.scope is not None else min(definitions, key=lambda d: d.start)
    block = block_of(first.place)
    others = [block_of(d.place) for d in definitions if d.start != first.start]
    return all(other != block and is_within(other, block) for other in others)


def _is_overloaded(language: Language, definitions: list[Name]) -> bool:
    """Return whether several functions with bodies are among `definitions`, so that calls choose one of them.

    Where indentation holds bodies together, they are the parts of a property, or versions of one function.
    """
    bodies = [d for d in definitions if d.place.child_by_field_name("body") is not None]
    return language.style == "brace" and len({d.start for d in bodies}) > 1


def _written_with_it(source: Source, renamed: Renamed, definitions: list[Name]) -> list[Name]:
    """Return the places of the old name, in other roles, that are of the same variable, function or type.

    They are constructors of a class, members of its namespace, and keyword arguments of a parameter.
    """
    names, found = source.names(renamed.old), list[Name]()
    members = [n for n in names if n.role == "member"]
    if any(is_class(source.language, d.place) for d in definitions):
        both = (renamed.old, renamed.new)
        found += [n for n in members if _is_constructor(source.language, n, both)]
    spaces = {space for d in definitions for space in _spaces(d.place)}
    found += [n for n in members if spaces.intersection(WORDS.findall(receiver_text(n))[-1:])]
    function = next((field_text(d.scope, "name") for d in definitions if d.parameter), b"")
    return found + [n for n in names if n.role == "keyword" and function and _callee(n.node) == function]


def _is_constructor(language: Language, name: Name, both: tuple[bytes, bytes]) -> bool:
    """Return whether the member `name` is called like its class, whose old and new names are `both`."""
    if name.scope is not None:
        return is_class(language, name.scope) and name_of(name.scope) in both
    return receiver_text(name) in both


def _spaces(place: Node) -> list[bytes]:
    """Return the names of the namespaces and modules around a definition at the top level of one."""
    nodes = [*around(place.parent)]
    if any(re.search("function|class|struct|impl|trait", node.type) for node in nodes):
        return []
    spaces = (node for node in nodes if re.search("namespace|mod_item|module", node.type))
    return [word for node in spaces for word in WORDS.findall(field_text(node, "name"))[-1:]]


def _callee(node: Node) -> bytes:
    """Return the last name of the function of the call that `node` is a keyword argument of."""
    words = WORDS.findall(field_text(call_around(around(node.parent)), "function"))
    return words[-1] if words else b""


def _member_places(
    source: Source, renamed: Renamed, edited: Name, others: Sequence[Document]
) -> Iterator[Place]:
    """Do as `rename_places` does for a member of a class."""
    # Find the class.
    names = source.names(renamed.old)
    definitions = [n for n in names if n.role == "member" and n.scope is not None]
    owner = _owner(source, edited, definitions)
    if owner is None:
        return
    strange = [d for d in definitions if not related(owner, owner_of(source.language, d))]
    mine = [*(d for d in definitions if d not in strange), *([edited] if edited.scope is not None else [])]
    # No class may define the new name.
    overloaded = _is_overloaded(source.language, [d for d in mine if d.scope == owner])
    if overloaded or _is_taken(source, renamed, owner):
        return
    # Rename the uses whose receivers are evidently of the class: if another class defines the old name, too, only those
    # that are the class's own `self` or literals.
    if strange:
        names = tuple(n for n in names if n not in strange and (n.role == "keyword" or is_own(n)))
    if len({_is_function(d) for d in mine}) > 1:
        names = tuple(n for n in names if _is_function(n) == _is_function(edited))
    yield from _members(source, renamed, owner, names)
    for other in () if strange else others:
        if may_share(source, other, renamed.old):
            there = source_of(other)
            found = there.names(renamed.old)
            theirs = (owner_of(there.language, n) for n in found if n.role == "member" and n.scope)
            if all(related(owner, their) for their in theirs):
                yield from _members(there, renamed, owner, found)


def _owner(source: Source, edited: Name, definitions: list[Name]) -> Node | None:
    """Return the class of the member `edited`; None of a use that is not evidently of the only class that has it."""
    if edited.scope is not None:
        return owner_of(source.language, edited)
    owners = {class_name(d): owner_of(source.language, d) for d in definitions}
    owner = next(iter(owners.values()), None)
    return owner if owner is not None and len(owners) == 1 and is_evident(source, edited, owner) else None


def _is_taken(source: Source, renamed: Renamed, owner: Node) -> bool:
    """Return whether a class has a member with the new name, or a variable of `owner` would hide it.

    A variable does where members are written without a receiver.
    """
    again = source.names(renamed.new)
    hides = (n for n in again if n.role == "variable" and n.scope is not None and is_within(n.node, owner))
    if "bare" in source.language.names and any(hides):
        return True
    return sum(n.role == "member" for n in again) > renamed.count


def _is_function(name: Name) -> bool:
    """Return whether `name` defines a function or calls one, where a class has a field of the same name, too."""
    if name.scope is None:
        return call_of(name) is not None
    return name.place.child_by_field_name("parameters") is not None


def _members(source: Source, renamed: Renamed, owner: Node, names: tuple[Name, ...]) -> Iterator[Place]:
    """Yield the edits of the members among `names` that belong to the class `owner`."""
    for name in names:
        if name.role == "member":
            wanted = name.scope is not None or is_evident(source, name, owner)
        elif name.role == "keyword" or name.shorthand:
            wanted = class_of_literal(source, name.node) == name_of(owner)
        else:
            scope = binding(source.language, name, (*names, *source.names(renamed.new)))
            wanted = scope is not None and is_class(source.language, scope) and related(owner, scope)
        if wanted:
            yield _edit(source, name, renamed.new, member=True)


def _edit(source: Source, name: Name, new: bytes, *, member: bool) -> Place:
    """Return the edit that renames `name`; of a shorthand such as `{ mail }` only the part that is meant."""
    text, old = new.decode(), (name.node.text or b"").decode()
    if name.shorthand:
        text = f"{text}: {old}" if member else f"{old}: {text}"
    return source.document, Edit(name.start, name.end, text)
