"""Outline: the lines above a cut that the code below it needs: imports, headers of the enclosing scopes, docstrings."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import tree_sitter

from dg_lsp.text.documents.lines import leading, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.prompts.headers import headers_at, headers_by_lines
from dg_lsp.text.prompts.part import Lines, Part, part_of
from dg_lsp.text.syntax.items import window

# Imports are looked for in the first bytes of a file.
HEAD = 20_000
# Of a longer text only the top-level item round the cut is parsed.
WHOLE = 40_000
# A longer item is read by its indentation, not parsed.
ITEM = 60_000
# How deep in a tree an import may stand: C headers have theirs inside `#ifndef` and `extern "C"`.
DEPTH = 4


@dataclass(frozen=True, slots=True)
class Outline:
    """`kept`: whole lines from above `cut`, in their order; the text goes on at `cut`, which begins a line."""

    kept: bytes
    cut: int


@lru_cache(maxsize=8)
def outline(language: Language, above: bytes, at: int, budget: int) -> Outline:
    """Choose lines, in at most `budget` bytes, of a text that is cut at the line start `at`.

    `above` is the text up to a little below `at`, so that nothing typed further down changes the answer. For a cut in
    `Shape.area` of a long file: its imports, `class Shape:`, `def area(self):` and the docstring of `area`.

    1. Parse the text round the cut.  2. Move the cut down to the next statement, if there is one.
    3. Keep the headers of the scopes that enclose the cut, all or none.  4. Keep imports in at most half of the budget,
    the last ones first, since those name the project's own modules.  5. Keep docstrings of the enclosing functions.
    """
    # 1.
    start = window(language, above, at)[0] if len(above) > WHOLE else 0
    item = part_of(language, above, (start, len(above)), at) if len(above) - start <= ITEM else None
    # 2. A statement stands by itself as soon as the headers round it are there.
    cut = _next_statement(item, at) if item else at
    # 3. Some of them would make a text that is no better formed than one without any.
    found = headers_at(item, cut) if item else None
    headers, docstrings = found or (headers_by_lines(above, start, cut), [])
    kept = _fitting([headers], budget)
    # 4.
    head = above[: line_start(above, min(start or cut, HEAD))]
    imports = _imports(item, cut) if item and not start else _imports_of(language, head)
    kept |= _fitting(imports[::-1], min(budget - _size(kept), budget // 2))
    # 5. The innermost function is the one that is written.
    kept |= _fitting(docstrings[::-1] if headers.keys() <= kept.keys() else (), budget - _size(kept))
    return Outline(b"".join(kept[n] for n in sorted(kept)), cut)


def _next_statement(item: Part, at: int) -> int:
    """Return the start of the first line from `at` on that begins with a statement; `at` if there is none."""
    for node in item.language.captures(item.root, (at - item.start, len(item.data))).get("statement", ()):
        begins = line_start(item.data, node.start_byte)
        alone = not item.data[begins : node.start_byte].strip()
        # A comment does not count: an `else` may follow it.
        if alone and begins >= at - item.start and not node.is_extra and not node.is_error:
            return begins + item.start
    return at


@lru_cache(maxsize=8)
def _imports_of(language: Language, head: bytes) -> tuple[Lines, ...]:
    """Return the lines of each import at the beginning of a file."""
    return _imports(part_of(language, head, (0, len(head)), 0), len(head))


def _imports(part: Part, cut: int) -> tuple[Lines, ...]:
    """Return the lines of each import of `part`, the beginning of a file, that stands before `cut`."""
    cursor = tree_sitter.QueryCursor(part.language.query)
    cursor.set_max_start_depth(DEPTH)
    nodes = sorted(cursor.captures(part.root).get("import", ()), key=lambda n: n.start_byte)
    # An indented import stands in a scope that is not kept.
    found = (part.lines(n.start_byte, n.end_byte) for n in nodes if not leading(part.data, n.start_byte))
    return tuple(lines for lines in found if max(lines) < cut)


def _fitting(groups: Iterable[Lines], budget: int) -> Lines:
    """Return the lines of those `groups` that fit into `budget` bytes, tried in their order."""
    found: Lines = {}
    for lines in groups:
        if _size(found | lines) <= budget:
            found |= lines
    return found


def _size(lines: Lines) -> int:
    return sum(map(len, lines.values()))
