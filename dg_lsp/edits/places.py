"""Source: a document with its tree, in which names are looked up, and the statements around them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from dg_lsp.gaps import Edit
from dg_lsp.source.analysis import tree_of
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language, load_language
from dg_lsp.source.names import Name, around, binding, name_at, names_in, whole

# What each rule yields: an edit, and the document that it is for.
Place = tuple[Document, Edit]

WORDS = re.compile(rb"[^\W\d]\w*")
_BLOCK = re.compile(
    r"(?:block|_body|statement_list|source_file|program|translation_unit|module|compound_statement|declaration_list)\Z"
)
IMPORTS = ("import", "using", "use_")


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

    def nodes_at(self, start: int, end: int) -> Iterator[Node]:
        """Yield the nodes that hold the bytes [start, end), the innermost first."""
        return around(self.root.descendant_for_byte_range(start, end))

    def names(self, word: bytes) -> tuple[Name, ...]:
        """Return the occurrences of `word` as a name."""
        if word not in self.known:
            self.known[word] = names_in(self.language, self.root, self.document.data, word)
        return self.known[word]

    def name_at(self, start: int, end: int) -> Name | None:
        """Return the name that is written at the bytes [start, end)."""
        return name_at(self.language, self.root, start, end)

    def scope_at(self, start: int, end: int) -> Node | None:
        """Return the scope that binds the name at the bytes [start, end); None if none does, or there is no name."""
        name = self.name_at(start, end)
        return binding(self.language, name, self.names(name.node.text or b"")) if name is not None else None


def source_of(document: Document) -> Source:
    """Return `document` with its tree.

    Raises:
        UnknownLanguage: it has no grammar. OutOfTime, Unreadable: it cannot be parsed in time.
    """
    language = load_language(document.language, document.macros)
    return Source(document, language, tree_of(language, document).root_node)


def words_like(word: bytes, data: bytes) -> int:
    """Return how often `word` is in `data`, in any role."""
    return len(whole(word).findall(data))


def field_text(node: Node | None, field: str) -> bytes:
    """Return the text of a `field` of `node`; b"" where there is none."""
    found = node.child_by_field_name(field) if node is not None else None
    return (found.text or b"") if found is not None else b""


def statement_of(node: Node) -> Node:
    """Return the statement, or the parameter, that `node` is in."""
    while (
        node.parent is not None
        and not _BLOCK.search(node.parent.type)
        and "parameters" not in node.parent.type
    ):
        node = node.parent
    return node


def block_of(node: Node) -> Node:
    """Return the block that `node` is a statement of, or in one of."""
    while node.parent is not None and not _BLOCK.search(node.parent.type):
        node = node.parent
    return node.parent or node


def is_import(place: Node) -> bool:
    """Return whether `place` is a part of an import."""
    return statement_of(place).type.startswith(IMPORTS)


def is_within(node: Node, outer: Node) -> bool:
    """Return whether the text of `node` is a part of that of `outer`."""
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte
