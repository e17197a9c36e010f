"""Renames: the other places of a name that was changed at one place, as far as the trees of the open files tell.

A place that may belong to another name is left out; of a name that may be another one itself, such as one that two
classes define, there are no places at all.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tree_sitter import Node

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.excluded import split_uri
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.languages.language import Language, knows, load_language
from dg_lsp.text.repeats.classes import (
    BLOCK,
    WORDS,
    Place,
    Source,
    class_name,
    class_of_literal,
    is_evident,
    is_own,
    name_of,
    owner_of,
    receiver_text,
    related,
    source_of,
    statement_of,
)
from dg_lsp.text.syntax.lexer import line_start
from dg_lsp.text.syntax.names import Name, binding, is_class, name_at, whole

_IMPORTS = ("import", "using", "use_")


@dataclass(frozen=True, slots=True)
class Renamed:
    """A name that was changed from `old` to `new` at the bytes `at`. count: how many places were changed already.

    alone: nothing else was changed in the same edit, so that it may be a rename where the name is only used.
    typing: the cursor is behind it, so that it may become another word of the file.
    """

    old: bytes
    new: bytes
    at: tuple[int, int]
    count: int
    alone: bool = True
    typing: bool = False


def may_share(source: Source, other: Document, word: bytes) -> bool:
    """Return whether an `other` document has `word` and is written in the language of `source`, or in a form of it.

    C and C++, or TypeScript and its form with elements, write names in the same places.
    """
    if word not in other.data or not knows(other.language):
        return False
    mine, yours = source.language.names, load_language(other.language).names
    return {**mine, "bare": None} == {**yours, "bare": None}


def words_like(word: bytes, data: bytes) -> int:
    """Return how often `word` is in `data`, in any role."""
    return len(whole(word).findall(data))


def rename_places(source: Source, renamed: Renamed, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the edits that rename the other places, first those of the same document.

    others: the other open documents.
    """
    edited = name_at(source.language, source.root, *renamed.at)
    if edited is None or edited.shorthand or edited.role in ("other", "keyword"):
        return
    if source.language.own_words & {word.decode("utf-8", "replace") for word in (renamed.old, renamed.new)}:
        return
    # At a use a word of the file is rather another name that is meant.
    new = re.escape(renamed.new)
    word = rb"%b(?<![\w$\x80-\xff]%b)[\w$\x80-\xff]" % (new, new)
    known = words_like(renamed.new, source.document.data) > renamed.count
    known = known or (renamed.typing and re.search(word, source.document.data) is not None)
    if edited.scope is None and (known or not renamed.alone):
        return
    if edited.role == "member":
        yield from _member_places(source, renamed, edited, others)
    else:
        yield from _variable_places(source, renamed, edited, others)


def replaced_places(source: Source, renamed: Renamed, lines: set[int], *, twice: bool) -> Iterator[Place]:
    """Yield the edits that put in another name wherever one is used that `source` does not define itself.

    The old name is not defined any more, and the new one is in one of the `lines` that were changed, by their offsets:
    those of `import numpy`; or it is the imported one, as in `use std::collections::BTreeMap`. Or a call was changed in
    this way `twice`: then it is done in the other calls.
    """
    edited = name_at(source.language, source.root, *renamed.at)
    if edited is None or edited.scope is not None or edited.role == "keyword":
        return
    old, data = source.names(renamed.old), source.document.data
    # The last name of its path is imported, and the others are none of the file's.
    is_last = data[edited.end : edited.end + 1] not in (b".", b":", b"/")
    imported = is_last and is_import(edited.place) and words_like(renamed.new, data) == renamed.count
    if edited.role == "other" and not imported:
        return
    if any(n.scope is not None and not is_import(n.place) for n in old):
        return
    moved = any(n.scope is not None and line_start(data, n.start) in lines for n in source.names(renamed.new))
    moved = imported or (moved and edited.role != "member")
    if moved and not any(n.scope is not None for n in old):
        found = [n for n in old if n.role in ("variable", "type")]
    elif twice and _is_called(edited.node):
        found = [n for n in old if n.role == edited.role and _is_called(n.node)]
        found = [n for n in found if n.role != "member" or receiver_text(n) == receiver_text(edited)]
    else:
        return
    yield from (_edit(source, n, renamed.new, member=False) for n in found)


def key_owner(source: Source, start: int, end: int) -> tuple[bytes, int] | None:
    """Return the variable that the string at the bytes [start, end) is a key of: its text, and the scope that binds it.

    None for another string. The key is in `row["name"]`, `row.get("name")`, or in the literal of `row = {"name": 1}`.
    """
    node = source.root.descendant_for_byte_range(start, end)
    if node is None or (node.start_byte, node.end_byte) != (start, end) or node.parent is None:
        return None
    around = node.parent if not node.parent.type.endswith(("_list", "argument")) else node.parent.parent
    owner = None
    if around is not None and re.search("subscript|index|element_access", around.type):
        owner = around.named_child(0)
    elif around is not None and around.type == "pair" and around.parent is not None:
        assigned = around.parent.parent
        owner = assigned.child(0) if assigned is not None and around.child(0) == node else None
        owner = (
            owner if assigned is not None and assigned.type in ("assignment", "variable_declarator") else None
        )
    elif around is not None and (around.child_by_field_name("function") is not None):
        called = around.child_by_field_name("function")
        owner = (
            called.named_child(0) if called is not None and (called.text or b"").endswith(b".get") else None
        )
    if owner is None or owner.id == node.id:
        return None
    text = owner.text or b""
    name = name_at(source.language, source.root, owner.start_byte, owner.end_byte)
    scope = binding(source.language, name, source.names(text)) if name is not None else None
    return text, scope.id if scope is not None else 0


def _is_called(node: Node) -> bool:
    """Return whether `node` is the name of a function that is called there."""
    parent = node.parent
    if parent is not None and parent.child_by_field_name("arguments") is None:
        node, parent = parent, parent.parent
    return (
        parent is not None and parent.child_by_field_name("arguments") is not None and parent.child(0) == node
    )


def _variable_places(
    source: Source, renamed: Renamed, edited: Name, others: Sequence[Document]
) -> Iterator[Place]:
    """Do as `rename_places` does for a variable, a function or a type.

    1. Find the scope that binds the old name, in the top-level item or else in the file.  2. The new name must be
    unknown there, and the old one must be a single variable.  3. Rename what is bound in that scope, and the keyword
    arguments of a parameter.  4. Go on in files that share names of the file.
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
    bound = [n for n in old if _is_bound(source, n, known, scope)]
    # 2.
    taken = [n for n in again if n.role != "member" and _within(n.node, scope)]
    definitions = [n for n in known if n.scope is not None and n.scope.id == scope.id and n.role != "other"]
    if len(taken) > renamed.count or not _is_one(source, definitions, edited):
        return
    if edited.scope is None and any(is_import(d.place) for d in definitions):
        return
    member = next((d for d in definitions if d.role == "member"), None)
    if member is not None:
        yield from _member_places(source, renamed, member, others)
        return
    # 3.
    if any(is_class(source.language, d.place) for d in definitions):
        both = (renamed.old, renamed.new)
        bound += [n for n in old if n.role == "member" and _is_constructor(source.language, n, both)]
    if spaces := {space for d in definitions for space in _spaces(d.place)}:
        names = source.names(renamed.old)
        bound += [
            n
            for n in names
            if n.role == "member" and (WORDS.findall(receiver_text(n)) or [b""])[-1] in spaces
        ]
    if any(d.parameter for d in definitions):
        function = _function_name(scope)
        names = source.names(renamed.old)
        bound += [n for n in names if n.role == "keyword" and function and _callee(n.node) == function]
    yield from (_edit(source, n, renamed.new, member=False) for n in sorted(bound, key=lambda n: n.start))
    # 4.
    if scope.parent is None and edited.scope is not None:
        for other in others:
            if may_share(source, other, renamed.old):
                there, shared = shared_names(source, other, (renamed.old, renamed.new))
                mine = (n for n in shared if n.node.text == renamed.old)
                yield from (_edit(there, n, renamed.new, member=False) for n in mine)


def shared_names(source: Source, other: Document, words: tuple[bytes, ...]) -> tuple[Source, list[Name]]:
    """Return an `other` document, and the names in it that are those which `source` defines at its top level.

    words: the name, and what it was called before. How files share names is data of the language: by an import that
    names the other file, by an include, by paths that begin with its name, or all files of a folder do.
    """
    there = source_of(other)
    found = [n for word in words for n in there.names(word)]
    stem, how = _stem(source.document), source.language.names.get("shares", frozenset())
    tops = [n for n in found if n.scope is not None and n.scope.parent is None]
    imports = [n for n in tops if stem in WORDS.findall(statement_of(n.place).text or b"")]
    shared = [n for n in found if n.role == "member" and WORDS.findall(receiver_text(n))[-1:] == [stem]]
    if "headers" in how:
        if not _includes(source, there) and not _includes(there, source):
            return there, []
    elif "imports" in how:
        if len(imports) < len(tops) or not imports:
            # A module may be imported whole.
            return there, shared if any(is_import(n.place) for n in there.names(stem)) else []
    elif len(imports) < len(tops) or (not imports and not _are_near(source, other)):
        return there, []
    known = tuple(found)
    for name in found:
        if name.role in ("variable", "type"):
            scope = binding(there.language, name, known)
            shared += [name] if scope is None or scope.parent is None else []
    return there, sorted(shared, key=lambda n: n.start)


def _are_near(source: Source, other: Document) -> bool:
    """Return whether `other` is in the same folder, and names the file of `source` where paths begin with that."""
    named = "paths" not in source.language.names["shares"] or _stem(source.document) in WORDS.findall(
        other.data
    )
    return named and _folder(other) == _folder(source.document)


def _stem(document: Document) -> bytes:
    return PurePosixPath(split_uri(document.uri)[1]).stem.encode()


def _includes(source: Source, other: Source) -> bool:
    """Return whether `source` includes a file that is called like `other` but for its suffix."""
    pattern = rb"^[ \t]*#[ \t]*include[^\n]*\b%b\b" % re.escape(_stem(other.document))
    return re.search(pattern, source.document.data, re.MULTILINE) is not None


def _member_places(
    source: Source, renamed: Renamed, edited: Name, others: Sequence[Document]
) -> Iterator[Place]:
    """Do as `rename_places` does for a member of a class.

    1. Find the class.  2. No class may define the new name.  3. Rename the uses whose receivers are evidently of the
    class: if another class defines the old name, too, only those that are the class's own `self` or literals.
    """
    # 1.
    names = source.names(renamed.old)
    definitions = [n for n in names if n.role == "member" and n.scope is not None]
    owners = {class_name(d): owner_of(source.language, d) for d in definitions}
    if edited.scope is not None:
        owner = owner_of(source.language, edited)
    elif len(owners) == 1:
        owner = next(iter(owners.values()))
        if not is_evident(source, edited, owner):
            return
    else:
        return
    # 2.
    strange = [d for d in definitions if not related(owner, owner_of(source.language, d))]
    if strange:
        names = tuple(n for n in names if n not in strange and (n.role == "keyword" or is_own(n)))
        others = ()
    mine = [*(d for d in definitions if d not in strange), *([edited] if edited.scope is not None else [])]
    if _is_overloaded(source.language, [d for d in mine if d.scope is not None and d.scope.id == owner.id]):
        return
    again = [n for n in source.names(renamed.new) if n.role == "member"]
    hidden = "bare" in source.language.names and any(
        n.role == "variable" and _within(n.node, owner) and n.scope is not None
        for n in source.names(renamed.new)
    )
    if len(again) > renamed.count or hidden:
        return
    if owner.child_by_field_name("trait") is not None and not any(
        "trait" in _owner_type(d) for d in definitions
    ):
        return
    # 3.
    if len({_is_function(d) for d in mine}) > 1:
        names = tuple(n for n in names if _is_function(n) == _is_function(edited))
    yield from _members(source, renamed, owner, names)
    for other in others:
        if may_share(source, other, renamed.old):
            there = source_of(other)
            found = there.names(renamed.old)
            if all(
                related(owner, owner_of(there.language, n)) for n in found if n.role == "member" and n.scope
            ):
                yield from _members(there, renamed, owner, found)


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


def _is_bound(source: Source, name: Name, known: tuple[Name, ...], scope: Node) -> bool:
    if name.role not in ("variable", "type"):
        return False
    found = binding(source.language, name, known)
    return found is not None and found.id == scope.id


def _spaces(place: Node) -> list[bytes]:
    """Return the names of the namespaces and modules around a definition at the top level of one."""
    found, node = list[bytes](), place.parent
    while node is not None and not re.search("function|class|struct|impl|trait", node.type):
        named = (
            node.child_by_field_name("name") if re.search("namespace|mod_item|module", node.type) else None
        )
        found += WORDS.findall(named.text or b"")[-1:] if named is not None else []
        node = node.parent
    return found if node is None else []


def _is_constructor(language: Language, name: Name, both: tuple[bytes, bytes]) -> bool:
    """Return whether the member `name` is called like its class, whose old and new names are `both`."""
    if name.scope is not None:
        return is_class(language, name.scope) and name_of(name.scope) in both
    return receiver_text(name) in both


def _is_one(source: Source, definitions: list[Name], edited: Name) -> bool:
    """Return whether `definitions` are of one variable: all others are assignments in blocks below the first."""
    if not definitions:
        return False
    if all("function" in statement_of(d.place).type or "method" in d.place.type for d in definitions):
        return not _is_overloaded(source.language, definitions)
    first = edited if edited.scope is not None else min(definitions, key=lambda d: d.start)
    block = _block(first.place)
    others = [_block(d.place) for d in definitions if d.start != first.start]
    return all(other.id != block.id and _within(other, block) for other in others)


def _is_function(name: Name) -> bool:
    """Return whether `name` defines a function or calls one, where a class has a field of the same name, too."""
    if name.scope is None:
        return _is_called(name.node)
    return name.place.child_by_field_name("parameters") is not None


def _owner_type(name: Name) -> str:
    return name.scope.type if name.scope is not None else ""


def _is_overloaded(language: Language, definitions: list[Name]) -> bool:
    """Return whether several functions with bodies are among `definitions`, so that calls choose one of them.

    Where indentation holds bodies together, they are the parts of a property, or versions of one function.
    """
    bodies = [d for d in definitions if d.place.child_by_field_name("body") is not None]
    return language.style == "brace" and len({d.start for d in bodies}) > 1


def _edit(source: Source, name: Name, new: bytes, *, member: bool) -> Place:
    """Return the edit that renames `name`; of a shorthand such as `{ mail }` only the part that is meant."""
    text, old = new.decode(), (name.node.text or b"").decode()
    if name.shorthand:
        text = f"{text}: {old}" if member else f"{old}: {text}"
    return source.document, Edit(name.start, name.end, text)


def _function_name(scope: Node) -> bytes:
    """Return the name of the function that `scope` is; empty if it has none."""
    named = scope.child_by_field_name("name")
    return (named.text or b"") if named is not None else b""


def _callee(node: Node) -> bytes:
    """Return the last name of the function of the call that `node` is a keyword argument of."""
    call = node.parent
    while call is not None and call.child_by_field_name("arguments") is None:
        call = call.parent
    function = call.child_by_field_name("function") if call is not None else None
    words = WORDS.findall(function.text or b"") if function is not None else []
    return words[-1] if words else b""


def _block(node: Node) -> Node:
    """Return the block that `node` is a statement of, or in one of."""
    while node.parent is not None and not BLOCK.search(node.parent.type):
        node = node.parent
    return node.parent or node


def _within(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def is_import(place: Node) -> bool:
    """Return whether `place` is a part of an import."""
    return statement_of(place).type.startswith(_IMPORTS)


def _folder(document: Document) -> str:
    return str(PurePosixPath(split_uri(document.uri)[1]).parent)
