"""Sharing: the names of other open documents that are defined at the top level of one."""

import re
from pathlib import PurePosixPath

from dg_lsp.edits.classes import receiver_text
from dg_lsp.edits.places import WORDS, Source, is_import, source_of, statement_of
from dg_lsp.files.excluded import split_uri
from dg_lsp.source.document import Document
from dg_lsp.source.language import knows, load_language
from dg_lsp.source.names import Name, binding


def may_share(source: Source, other: Document, word: bytes) -> bool:
    """Return whether an `other` document has `word` and is written in the language of `source`, or in a form of it.

    C and C++, or TypeScript and its form with elements, write names in the same places.
    """
    if word not in other.data or not knows(other.language):
        return False
    mine, yours = source.language.names, load_language(other.language).names
    return {**mine, "bare": None} == {**yours, "bare": None}


def shared_names(source: Source, other: Document, words: tuple[bytes, ...]) -> tuple[Source, list[Name]]:
    """Return an `other` document, and the names in it that are those which `source` defines at its top level.

    words: the name, and what it was called before. How files share names is data of the language: by an import that
    names the other file, by an include, by paths that begin with its name, or all files of a folder do.
    """
    there = source_of(other)
    found = tuple(n for word in words for n in there.names(word))
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
    for name in found:
        if name.role in ("variable", "type"):
            scope = binding(there.language, name, found)
            shared += [name] if scope is None or scope.parent is None else []
    return there, sorted(shared, key=lambda n: n.start)


def _are_near(source: Source, other: Document) -> bool:
    """Return whether `other` is in the same folder, and names the file of `source` where paths begin with that."""
    by_paths = "paths" in source.language.names["shares"]
    named = not by_paths or _stem(source.document) in WORDS.findall(other.data)
    return named and _folder(other) == _folder(source.document)


def _includes(source: Source, other: Source) -> bool:
    """Return whether `source` includes a file that is called like `other` but for its suffix."""
    pattern = rb"^[ \t]*#[ \t]*include[^\n]*\b%b\b" % re.escape(_stem(other.document))
    return re.search(pattern, source.document.data, re.MULTILINE) is not None


def _stem(document: Document) -> bytes:
    return PurePosixPath(split_uri(document.uri)[1]).stem.encode()


def _folder(document: Document) -> str:
    return str(PurePosixPath(split_uri(document.uri)[1]).parent)
