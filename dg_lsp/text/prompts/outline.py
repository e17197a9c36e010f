"""Outline: the lines above a cut that what follows it needs: imports, headers of what is open there, docstrings.

Knows what counts and how much room there is; knows no gap, no document and no setting.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import tree_sitter

from dg_lsp.text.documents.lines import leading, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.prompts.headers import headers_at, headers_by_lines
from dg_lsp.text.prompts.part import Lines, Part, part_of
from dg_lsp.text.syntax.lexical import window

# Imports stand at the beginning of a file; more of it is not parsed for them.
HEAD = 20_000
# Of a longer text only the top-level item round the cut is parsed, as its lines tell where it begins.
WHOLE = 40_000
# An item that is longer is read by its lines.
ITEM = 60_000
# How deep in a tree an import may stand: a header file's guard and what it declares to be C count.
DEPTH = 4


@dataclass(frozen=True, slots=True)
class Outline:
    """`kept`: whole lines from above `cut`, in their order; the text goes on at `cut`, which begins a line."""

    kept: bytes
    cut: int


@lru_cache(maxsize=8)
def outline(language: Language, above: bytes, at: int, budget: int) -> Outline:
    """What to keep, in at most `budget` bytes, of a text that is cut at its line start `at`.

    `above` is the text up to a little behind `at`, so that nothing typed further down changes the answer.

    1. Parse the text round the cut.  2. Let the cut wait for the next statement, where there is one.
    3. Keep the headers of what is open at the cut, all or none.  4. Keep imports in at most half of the budget, the
    last ones, which tell of the project itself.  5. Keep what fits of the docstrings of the functions that are open.
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
    """The beginning of the first line from `at` on that begins with a statement; `at` where there is none."""
    for node in item.language.captures(item.root, (at - item.start, len(item.data))).get("statement", ()):
        begins = line_start(item.data, node.start_byte)
        alone = not item.data[begins : node.start_byte].strip()
        # Where a comment belongs no grammar says: behind it may come an `else`.
        if alone and begins >= at - item.start and not node.is_extra and not node.is_error:
            return begins + item.start
    return at


@lru_cache(maxsize=8)
def _imports_of(language: Language, head: bytes) -> tuple[Lines, ...]:
    """The lines of each import in the beginning of a file."""
    return _imports(part_of(language, head, (0, len(head)), 0), len(head))


def _imports(part: Part, cut: int) -> tuple[Lines, ...]:
    """The lines of each import of `part`, the beginning of a file, that stands before `cut`."""
    cursor = tree_sitter.QueryCursor(part.language.query)
    cursor.set_max_start_depth(DEPTH)
    nodes = sorted(cursor.captures(part.root).get("import", ()), key=lambda n: n.start_byte)
    # One that is indented stands in something that is not kept.
    found = (part.lines(n.start_byte, n.end_byte) for n in nodes if not leading(part.data, n.start_byte))
    return tuple(lines for lines in found if max(lines) < cut)


def _fitting(groups: Iterable[Lines], budget: int) -> Lines:
    """The `groups` that fit into `budget` bytes, the first ones before the others."""
    found: Lines = {}
    for lines in groups:
        if _size(found | lines) <= budget:
            found |= lines
    return found


def _size(lines: Lines) -> int:
    return sum(map(len, lines.values()))
