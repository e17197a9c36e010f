"""Outline: the lines above a cut that what follows it needs: imports, headers of what is open there, docstrings.

Knows trees and, where they are broken, indentation; knows no gap, no document and no setting.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import tree_sitter
from tree_sitter import Node

from dg_lsp.text.bodies import bodies_of
from dg_lsp.text.body import Body
from dg_lsp.text.language import Language
from dg_lsp.text.lexical import state_at, window
from dg_lsp.text.lines import indentation, leading, line_end, line_start, width
from dg_lsp.text.tokens import Span, closers

# Imports stand at the beginning of a file; more of it is not parsed for them.
HEAD = 20_000
# A top-level item that is longer is read by its lines.
ITEM = 60_000
# How deep in a tree an import may stand: a header file's guard and what it declares to be C count.
DEPTH = 4

_OPENING = {"(": b"(", "[": b"[", "{": b"{", "${": b"{"}
_CLOSING = (")", "]", "}")

# Whole lines by the offsets at which they begin.
Lines = dict[int, bytes]


@dataclass(frozen=True, slots=True)
class Outline:
    """`kept`: whole lines from above `cut`, in their order; the text goes on at `cut`, which begins a line."""

    kept: bytes
    cut: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a text and its tree; it begins with a top-level item."""

    language: Language
    start: int
    data: bytes
    root: Node


@lru_cache(maxsize=8)
def outline(language: Language, above: bytes, at: int, budget: int) -> Outline:
    """What to keep, in at most `budget` bytes, of a text that is cut at the line start `at`.

    `above` is the text up to a little behind `at`, so that nothing typed further down changes the answer.

    1. Parse the top-level item round the cut.  2. Let the cut wait for the next statement, where there is one.
    3. Keep the headers of what is open at the cut, all or none.  4. Keep imports in at most half of the budget, the last
    ones, which tell of the project itself.  5. Keep what fits of the docstrings of the functions that are open.
    """
    # 1.
    start = window(language, above, at)[0]
    item = _part(language, above, (start, len(above)), at) if len(above) - start <= ITEM else None
    # 2. A statement stands by itself as soon as the headers round it are there.
    cut = _next_statement(item, at) if item else at
    # 3. Some of them would make a text that is no better formed than one without any.
    headers, docstrings = (_open_at(item, cut) if item else None) or (_by_lines(above, start, cut), [])
    kept = _fitting([headers], budget)
    # 4.
    imports = _imports(language, above[: line_start(above, min(start or cut, HEAD))])
    kept |= _fitting(imports[::-1], min(budget - _size(kept), budget // 2))
    # 5. The innermost function is the one that is written.
    kept |= _fitting(docstrings[::-1], budget - _size(kept))
    return Outline(b"".join(kept[n] for n in sorted(kept)), cut)


def _part(language: Language, data: bytes, span: Span, floor: int) -> _Part:
    """The `span` of `data` and its tree: what is open at its end is closed for the parser.

    Where that does not do, the statement at the end is left out, if it begins behind `floor`.
    """
    start, stop = span
    data = data[start:stop]
    tree = language.parse(data)
    if tree.root_node.has_error:
        tree = language.reparse(tree, data, (len(data), len(data)), closers(_unclosed(tree.root_node)))
    if tree.root_node.has_error:
        tree = language.parse(_ended(language, data, floor - start))
    return _Part(language, start, data, tree.root_node)


def _ended(language: Language, data: bytes, floor: int) -> bytes:
    """`data` without the statement or comment at its end; with its ending where it begins before `floor`."""
    # Reading tokens costs more than parsing, but only they tell of strings.
    state = state_at(language, data, len(data), 0)
    begins = state.begins if state.comment else state.line
    if begins > floor:
        return data[:begins] + closers(bytes(data[at] for at in state.opened if at < begins))
    ends = (b for a, b in language.block_comments if state.comment and data.startswith(a.encode(), begins))
    return data + next(ends, "").encode() + state.string + closers(state.brackets)


def _unclosed(root: Node) -> bytes:
    """The brackets without their mates in a tree; where it has no error there are none."""
    brackets, stack = b"", [root]
    while stack:
        node = stack.pop()
        if node.has_error and not node.is_missing:
            stack.extend(reversed(node.children))
        elif node.type in _OPENING and not node.is_missing:
            brackets += _OPENING[node.type]
        elif node.type in _CLOSING and not node.is_missing:
            brackets = brackets[:-1]
    return brackets


def _next_statement(item: _Part, at: int) -> int:
    """The beginning of the first line from `at` on that begins with a statement; `at` where there is none."""
    for node in item.language.captures(item.root, (at - item.start, len(item.data))).get("statement", ()):
        begins = line_start(item.data, node.start_byte)
        alone = not item.data[begins : node.start_byte].strip()
        # Where a comment belongs no grammar says: behind it may come an `else`.
        if alone and begins >= at - item.start and not node.is_extra and not node.is_error:
            return begins + item.start
    return at


@lru_cache(maxsize=8)
def _imports(language: Language, head: bytes) -> tuple[Lines, ...]:
    """The lines of each import in the beginning of a file."""
    part = _part(language, head, (0, len(head)), 0)
    cursor = tree_sitter.QueryCursor(language.query)
    cursor.set_max_start_depth(DEPTH)
    nodes = sorted(cursor.captures(part.root).get("import", ()), key=lambda n: n.start_byte)
    # One that is indented stands in something that is not kept.
    return tuple(_lines(part, n.start_byte, n.end_byte) for n in nodes if not leading(head, n.start_byte))


def _open_at(item: _Part, cut: int) -> tuple[Lines, list[Lines]] | None:
    """The headers of all that is open at `cut`, and its functions' docstrings; None where the tree does not tell."""
    cut -= item.start
    place = len(item.data) - len(item.data[cut:].lstrip())
    nodes = _ancestors(item.root, place)
    # Where a comment is alone the statement behind it would tell, and that is not there.
    if not nodes or any(n.is_error or (n.is_extra and n.start_byte >= cut) for n in nodes):
        return None
    # What is no body's header, such as the beginning of a long list, shows by its first line.
    headers: Lines = {}
    for node in nodes:
        if node.start_byte < cut and not _is_sequence(item.language, node):
            headers |= _lines(item, node.start_byte, node.start_byte)
    docstrings: list[Lines] = []
    begun = {node.start_byte for node in nodes}
    for body in bodies_of(item.language, item.root, item.data, (place, place + 1)):
        head = body.header
        # What stands beside it, such as an attribute, may be left out; what it stands in may not.
        lines = _lines(item, head.start if head.start in begun else head.define, head.opens)
        if head.opens <= cut and place < body.stop:
            headers |= lines
            docstrings += _docstring(item, body, cut) if head.owner == "function" else []
        elif head.opens <= cut and head.define in begun:
            headers |= lines | _folded(item, body)
    return headers, docstrings


def _is_sequence(language: Language, node: Node) -> bool:
    """Whether `node` is nothing but statements, so that its beginning says nothing of what comes later."""
    first = next((n for n in node.children if not n.is_extra), node)
    found = language.captures(node, (node.start_byte, node.start_byte + 1)).get("statement", ())
    return first.start_byte == node.start_byte and first.id in (n.id for n in found)


def _docstring(item: _Part, body: Body, cut: int) -> list[Lines]:
    """The docstring of a function, above its header or below it: whole, and as its first paragraph."""
    below = len(item.data) - len(item.data[body.header.opens :].lstrip())
    above = len(item.data[: body.header.start].rstrip()) - 1
    for place in (below, above):
        for node in item.language.captures(item.root, (place, place + 1)).get("docstring", ()):
            if node.end_byte <= cut and (node.start_byte == below or node.start_byte <= above < node.end_byte):
                whole = _lines(item, node.start_byte, node.end_byte)
                return [_paragraph(whole), whole]
    return []


def _paragraph(docstring: Lines) -> Lines:
    """The lines of a docstring down to the first empty one, and the last one, which ends it."""
    found: Lines = {}
    for at, line in docstring.items():
        if not line.strip(b" \t\r\n*/"):
            break
        found[at] = line
    last = max(docstring)
    return found | {last: docstring[last]}


def _folded(item: _Part, body: Body) -> Lines:
    """What must stand of a body that ends above the cut, as it is followed there by an `else` or its like."""
    if item.language.style != "indent":
        return _lines(item, body.closes, body.stop)
    if body.inline or body.first is None:
        return {}
    first = body.docstring[0] if body.docstring else body.first
    begins = line_start(item.data, first)
    newline = item.data[line_end(item.data, first) : _next_line(item.data, first)]
    return {begins + item.start: (body.indent or b"") + item.language.placeholder("block").encode() + newline}


def _ancestors(root: Node, place: int) -> list[Node]:
    """The nodes round `place`, the outermost first, without the root."""
    found: list[Node] = []
    node = root.descendant_for_byte_range(place, place)
    while node is not None and node.id != root.id:
        found.append(node)
        node = node.parent
    return found[::-1]


def _by_lines(data: bytes, start: int, cut: int) -> Lines:
    """The lines above `cut`, down from `start`, that are less deep than all between them and the cut."""
    found: Lines = {}
    deep = indentation(data, len(data) - len(data[cut:].lstrip()))
    at = cut
    for line in reversed(data[start:cut].splitlines(keepends=True)):
        at -= len(line)
        bare = line.lstrip()
        shallow = width(line[: len(line) - len(bare)])
        if bare and shallow < deep:
            found[at] = line
            # What begins with a closing bracket has its opening one as deep as itself.
            deep = shallow + (bare[:1] in (b")", b"]", b"}"))
    return found


def _lines(part: _Part, start: int, end: int) -> Lines:
    """The whole lines of [start, end) of `part`, at least one."""
    found: Lines = {}
    at = line_start(part.data, start)
    end = max(start + len(part.data[start:end].rstrip()), start + 1)
    while at < end:
        stop = _next_line(part.data, at)
        found[at + part.start] = part.data[at:stop]
        at = stop
    return found


def _next_line(data: bytes, at: int) -> int:
    end = line_end(data, at)
    return min(end + (2 if data[end : end + 2] == b"\r\n" else 1), len(data))


def _fitting(groups: Iterable[Lines], budget: int) -> Lines:
    """The `groups` that fit into `budget` bytes, the first ones before the others."""
    found: Lines = {}
    for lines in groups:
        if _size(found) + _size(lines) <= budget:
            found |= lines
    return found


def _size(lines: Lines) -> int:
    return sum(map(len, lines.values()))
