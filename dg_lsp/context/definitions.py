"""Definitions: classes and functions of other files that the code around a gap names.

For `shape.area(` below `from .shapes import Shape`: the class `Shape` of `shapes.py` without its methods' bodies.
"""

import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import PurePosixPath
from urllib.parse import unquote

from dg_lsp.budget import bounded, tried
from dg_lsp.context.index import Index
from dg_lsp.context.outline import HEAD
from dg_lsp.context.secrets import redacted
from dg_lsp.files.excluded import key_of, split_uri
from dg_lsp.gaps import Gap
from dg_lsp.messages import Piece
from dg_lsp.source.bodies import Body, bodies_of
from dg_lsp.source.document import Document, whole
from dg_lsp.source.items import top_level_item
from dg_lsp.source.language import Language, load_language
from dg_lsp.source.lexer import line_end, line_start

# Files that are looked into, and the bytes of one, since each is parsed once in every version.
_FILES, _READ = 6, 64 << 10
# The share of the room that one definition may take.
_SHARE = 0.4
_NAME = re.compile(rb"(?!\d)[\w$\x80-\xff]{3,}")
# Files that are imported by the name of their folder.
_OF_FOLDER = ("__init__", "index", "mod", "lib")


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function or class at the top of a file: its name, its start there, its text without bodies."""

    name: bytes
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """Definitions of other files for a gap: a Piece for each file, and the files' uris."""

    pieces: tuple[Piece, ...] = ()
    uris: tuple[str, ...] = ()


@bounded
def context_of(document: Document, gap: Gap, index: Index, room: int) -> Context:
    """At most `room` bytes of definitions of the names around `gap`, in the stable order of the files' paths.

    1. Read the names in the top-level item of the gap, but for the lines of the gap.  2. Find the files that the
    document imports.  3. Take the definitions of those names there, the most used first, without text that looks like a
    key. A file that takes too long to read is left out.
    """
    language, data = load_language(document.language, document.macros), document.data
    if language.is_plain:
        return Context()
    # 1.
    start, stop = top_level_item(language, data, gap.start)
    first, last = line_start(data, gap.start), line_end(data, gap.span[1])
    used = Counter(_NAME.findall(data[start:first] + b" " + data[last:stop]))
    # 2.
    imported = tried(partial(_imported, language, data[:HEAD])) or frozenset()
    others = index.beside(document.uri, document.language)
    named = [
        other for other in others if _import_name(other.uri) in imported and len(other.rows.data) <= _READ
    ]
    named = list(islice(filter(index.still_has, named), _FILES))
    # 3.
    found = [
        (other.uri, one)
        for other in named
        for one in tried(partial(_definitions, language, other.rows.data)) or ()
        if one.name in used
    ]
    most, taken = int(room * _SHARE), list[tuple[str, _Definition]]()
    for uri, one in sorted(found, key=lambda pair: (-used[pair[1].name], pair[0], pair[1].start)):
        size = len(one.text.encode())
        if size <= min(room, most):
            taken.append((uri, one))
            room -= size
    texts: dict[str, str] = {}
    for uri, one in sorted(taken, key=lambda pair: (pair[0], pair[1].start)):
        texts[uri] = texts.get(uri, "") + one.text
    pieces = (piece_of(document, uri, redacted(text)) for uri, text in texts.items())
    return Context(tuple(pieces), tuple(texts))


def piece_of(document: Document, uri: str, text: str) -> Piece:
    """Return `text` of the file `uri` as a Piece, whose path counts from the folder of `document`."""
    folder = posixpath.dirname(key_of(document.uri))
    return Piece(whole(unquote(posixpath.relpath(key_of(uri), folder))), text)


def _import_name(uri: str) -> bytes:
    """The word that an import names the file `uri` by."""
    path = PurePosixPath(split_uri(uri)[1])
    return (path.parent.name if path.stem in _OF_FOLDER else path.stem).encode("utf-8", "replace")


@lru_cache(maxsize=8)
def _imported(language: Language, head: bytes) -> frozenset[bytes]:
    """The words of the imports at the beginning of a file."""
    nodes = language.captures(language.parse(head).root_node).get("import", ())
    return frozenset(word for node in nodes for word in _NAME.findall(head, node.start_byte, node.end_byte))


@lru_cache(maxsize=64)
def _definitions(language: Language, data: bytes) -> tuple[_Definition, ...]:
    """The functions and classes at the top of a file."""
    found = bodies_of(language, language.parse(data).root_node, data)
    bodies = [body for body in found if body.header.owner != "block"]
    return tuple(
        _Definition(body.header.name.encode(), body.header.start, _folded(data, body, bodies))
        for body in bodies
        if body.header.name and "." not in body.header.name
    )


def _folded(data: bytes, whole: Body, bodies: list[Body]) -> str:
    """The text of `whole` with its header, and ` ...` for each body of a function in it."""
    text, at = b"", whole.header.start
    for body in bodies:
        inside = at <= body.header.opens and body.stop <= whole.stop
        if inside and body.header.owner == "function" and body.header.start >= whole.header.start:
            text += data[at : body.header.opens] + b" ..." + (b" " if body.closes < body.stop else b"")
            at = body.closes
    return (text + data[at : whole.stop]).decode("utf-8", "replace").rstrip() + "\n"
