"""Unimported names: those that a document uses and neither defines nor imports, for a gap in an import."""

import re
from collections import Counter
from functools import partial

from tree_sitter import Node

from dg_lsp.budget import bounded, check, tried
from dg_lsp.gaps import Gap
from dg_lsp.source.analysis import tree_of
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language, load_language
from dg_lsp.source.lexer import Span, line_end, line_start
from dg_lsp.source.names import name_at

_IMPORT = re.compile(rb"[ \t]*(?:from|import|use|using)\b")
_WORD = re.compile(rb"[\w$\x80-\xff]+")
_NAME = re.compile(rb"(?<![\w$\x80-\xff.])(?!\d)[\w$\x80-\xff]{3,}")
# Names at most, bytes below the gap that are read for them, and uses of one name.
_NAMES, _READ, _USES = 24, 64 << 10, 6


@bounded
def unimported(document: Document, gap: Gap) -> tuple[str, ...]:
    """Return the names below `gap`, if it is in an import, that nothing in `document` defines or imports; else ().

    For `import java.util.|` above `var joiner = new StringJoiner(",");`: StringJoiner. The first that is used is first.
    """
    language, data = load_language(document.language, document.macros), document.data
    if not language.names or not _IMPORT.match(data, line_start(data, gap.start), gap.start):
        return ()
    own = line_start(data, gap.start), line_end(data, gap.span[1])
    found = tried(partial(_names, language, document, own)) or []
    return tuple(name.decode("utf-8", "replace") for name in found[:_NAMES])


def _names(language: Language, document: Document, own: Span) -> list[bytes]:
    """Return the names below the line `own` that nothing defines or imports."""
    data, blank = document.data, b" " * (own[1] - own[0])
    # An import that is being written may be read together with what is below it.
    root = language.reparse(tree_of(language, document), data, own, blank).root_node
    imports = language.captures(root).get("import", ())
    known = {*_WORD.findall(data, *own), *(word.encode() for word in language.own_words)}
    known.update(*(_bound(data, node) for node in imports))
    used, looked = dict[bytes, None](), Counter[bytes]()
    for match in _NAME.finditer(data, own[1], own[1] + _READ):
        word = match[0]
        if word in known or looked[word] == _USES:
            continue
        check()
        looked[word] += 1
        name = name_at(language, root, *match.span())
        if name is not None and name.scope is not None:
            known.add(word)
        elif name is not None and name.role in ("variable", "type"):
            used.setdefault(word)
    return [word for word in used if word not in known]


def _bound(data: bytes, node: Node) -> list[bytes]:
    """Return the words of an import that it may bind: of `from json import loads` not the module."""
    module = node.child_by_field_name("module_name") or node.child_by_field_name("source")
    start, end = module.byte_range if module is not None else (node.end_byte, node.end_byte)
    return _WORD.findall(data, node.start_byte, start) + _WORD.findall(data, end, node.end_byte)
