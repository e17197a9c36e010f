"""Classes: the document in which names are looked up, and which members of it are evidently of which class."""

import re
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from dg_lsp.text.analysis import tree_of
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.syntax.lexer import line_start
from dg_lsp.text.syntax.names import Name, binding, class_of, is_class, name_at, names_in, receiver_of

Place = tuple[Document, Edit]

WORDS = re.compile(rb"[^\W\d]\w*")
TOKENS = re.compile(rb"[\w$\x80-\xff]+|[^\w\s]")
BLOCK = re.compile(
    r"(?:block|_body|statement_list|source_file|program|translation_unit|module|compound_statement|declaration_list)\Z"
)
_SELVES = (b"self", b"this", b"Self", b"cls")


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A document with its tree. known: the names that were looked up in it."""

    document: Document
    language: Language
    root: Node
    known: dict[bytes, tuple[Name, ...]] = field(default_factory=dict)

    def within(self, node: Node) -> "Source":
        """Return the source with the names in the top-level item of `node` only."""
        while node.parent is not None and node.parent.parent is not None:
            node = node.parent
        return replace(self, root=node, known={})

    def names(self, word: bytes) -> tuple[Name, ...]:
        """Return the occurrences of `word` as a name."""
        if word not in self.known:
            self.known[word] = names_in(self.language, self.root, self.document.data, word)
        return self.known[word]


def source_of(document: Document) -> Source:
    """Return `document` with its tree.

    Raises:
        UnknownLanguage: it has no grammar. OutOfTime, Unreadable: it cannot be parsed in time.
    """
    language = load_language(document.language, document.macros)
    return Source(document, language, tree_of(language, document).root_node)


def is_evident(source: Source, name: Name, owner: Node) -> bool:
    """Return whether the receiver of the member `name` is evidently of the class `owner`.

    It is `self` in the class, the class itself, a variable whose definition names the class, or called like it.
    """
    called, receiver = name_of(owner), receiver_of(name)
    around = class_of(source.language, name.node)
    inside = around is not None and related(owner, around)
    if receiver is None:
        return inside
    text = receiver.text or b""
    if text in _SELVES:
        return inside
    words = WORDS.findall(text)
    if not words or not called:
        return False
    if words[-1] == called or (words[0] == called and text[-1:] in b")}"):
        return True
    if receiver.type == "identifier":
        mine = name_at(source.language, source.root, receiver.start_byte, receiver.end_byte)
        same = source.names(text)
        scope = binding(source.language, mine, same) if mine is not None else None
        places = [
            n.place for n in same if scope is not None and n.scope is not None and n.scope.id == scope.id
        ]
        if any(called in WORDS.findall((statement_of(p).text or b"").splitlines()[0]) for p in places[:1]):
            return True
    return re.sub(rb"\A.*_", b"", words[-1]).lower() == called.lower()


def is_own(name: Name) -> bool:
    """Return whether the receiver of the member `name` is the object that its method belongs to."""
    return receiver_text(name) in _SELVES


def owner_of(language: Language, name: Name) -> Node:
    """Return the class in which the member `name` is defined; of a method in Go, the method."""
    return name.scope if name.scope is not None and is_class(language, name.scope) else name.place


def related(one: Node, other: Node) -> bool:
    """Return whether two classes are the same one, or the header of one names the other."""
    mine, yours = name_of(one), name_of(other)
    return one.id == other.id or mine == yours or mine in _header(other) or yours in _header(one)


def class_of_literal(source: Source, node: Node) -> bytes:
    """Return the name of the class of the literal or call that `node` is a key of, from the line where that begins."""
    literal = node.parent
    while literal is not None and not (literal.text or b"").endswith((b"}", b")")):
        literal = literal.parent
    if literal is None:
        return b""
    data, start = source.document.data, literal.start_byte
    before = WORDS.findall(data[line_start(data, start) : start + 1])
    return next((word for word in reversed(before) if word[:1].isupper()), b"")


def class_name(name: Name) -> bytes:
    return name_of(name.scope) if name.scope is not None else b""


def name_of(owner: Node) -> bytes:
    """Return the name of a class, or of that of the receiver of a method."""
    named = owner.child_by_field_name("receiver") or owner.child_by_field_name("type")
    if owner.type == "type_spec" or named is None:
        named = owner.child_by_field_name("name")
    words = WORDS.findall(re.split(rb"[<\[]", named.text or b"")[0]) if named is not None else []
    return words[-1] if words else b""


def _header(owner: Node) -> list[bytes]:
    body = owner.child_by_field_name("body") or owner.child_by_field_name("value")
    text = owner.text or b""
    return WORDS.findall(text[: body.start_byte - owner.start_byte] if body is not None else text[:200])


def receiver_text(name: Name) -> bytes:
    node = receiver_of(name)
    return (node.text or b"") if node is not None else b""


def statement_of(node: Node) -> Node:
    """Return the statement, or the parameter, that `node` is in."""
    while (
        node.parent is not None
        and not BLOCK.search(node.parent.type)
        and "parameters" not in node.parent.type
    ):
        node = node.parent
    return node
