"""Outline: lines above a cut that the code below needs: imports and headers of enclosing scopes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial

import tree_sitter
from tree_sitter import Node

from dg_lsp.budget import check, tried
from dg_lsp.source import lexer
from dg_lsp.source.bodies import Body, bodies_of
from dg_lsp.source.brackets import closers, state_at
from dg_lsp.source.items import top_level_item
from dg_lsp.source.language import Language, check_shape

# Imports are looked for in the first bytes of a file.
HEAD = 20_000
# Of a longer text only the top-level item round the cut is parsed.
WHOLE = 40_000
# A longer item, or one that the parser cannot read in time, is read by its indentation, not parsed.
ITEM = 60_000
# How deep in a tree an import may be: C headers have theirs inside `#ifndef` and `extern "C"`.
DEPTH = 4
# Whole lines by the offsets at which they begin in the whole text.
Lines = dict[int, bytes]


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch `data` of a text, which begins at byte `start` of it with a top-level item; `root` is its tree."""

    language: Language
    start: int
    data: bytes
    root: Node

    def lines(self, start: int, end: int) -> Lines:
        """Return lines of the span [start, end) without blanks at its end, with joined lines; at least one."""
        found: Lines = {}
        at = lexer.line_start(self.data, start)
        end = max(start + len(self.data[start:end].rstrip()), start + 1)
        while at < min(end, len(self.data)):
            stop = lexer.line_below(self.data, at)
            found[at + self.start] = line = self.data[at:stop]
            end = max(end, stop + 1) if line.rstrip(b"\r\n").endswith(b"\\") else end
            at = stop
        return found


@dataclass(frozen=True, slots=True)
class Outline:
    """`kept`: whole lines from above `cut`, in their order; the text continues at `cut`, which begins a line."""

    kept: bytes
    cut: int


@lru_cache(maxsize=8)
def outline(language: Language, above: bytes, at: int, budget: int) -> Outline:
    """Choose lines, in at most `budget` bytes, of a text that is cut at the line start `at`.

    `above` is the text up to a little below `at`, so that nothing typed further down changes the answer. For a cut in
    `Shape.area` of a long file: its imports, `class Shape:` and `def area(self):`.

    1. Parse the text around the cut.  2. Move the cut down to the next statement, if there is one.  3. Keep the headers
    of the scopes that enclose the cut, all or none.  4. Keep imports in at most half of the budget, the last ones
    first, since those name the project's own modules.
    """
    # 1.
    parted = len(above) > WHOLE and not language.is_plain
    start = top_level_item(language, above, at)[0] if parted else 0
    short = len(above) - start <= ITEM and not language.is_plain
    item = tried(partial(part_of, language, above, (start, len(above)), at)) if short else None
    # 2. A statement is complete as soon as the headers around it are there.
    cut = _next_statement(item, at) if item else at
    # 3. Some of them would make a text that is no better formed than one without any.
    headers = headers_at(item, cut) if item else None
    kept = _fitting([headers_by_lines(above, start, cut) if headers is None else headers], budget)
    # 4.
    head = b"" if language.is_plain else above[: lexer.line_start(above, min(start or cut, HEAD))]
    imports = _imports(item, cut) if item and not start else _imports_of(language, head) if head else ()
    kept |= _fitting(imports[::-1], min(budget - _size(kept), budget // 2))
    return Outline(b"".join(kept[n] for n in sorted(kept)), cut)


def part_of(language: Language, data: bytes, span: lexer.Span, floor: int) -> Part:
    """Return the `span` of `data` as a Part.

    1. Parse.  2. If that has errors, close the brackets that are open.  3. If it still has errors, leave out
    the statement at the end when it begins after `floor`.
    """
    start, stop = span
    data = data[start:stop]
    # 1.
    tree = language.parse(data)
    # 2.
    if tree.root_node.has_error:
        opened = state_at(language, data, len(data), 0).brackets
        tree = language.reparse(tree, data, (len(data), len(data)), closers(opened))
    # 3.
    if tree.root_node.has_error:
        tree = language.parse(_ended(language, data, floor - start))
    return Part(language, start, data, tree.root_node)


def headers_at(part: Part, cut: int) -> Lines | None:
    """Return the headers of all scopes that enclose the line start `cut`; None if the tree cannot tell."""
    cut -= part.start
    place = len(part.data) - len(part.data[cut:].lstrip())
    nodes = _nodes_at(part.root, place)
    # A comment alone does not show which scope is open; the statement after it would, and that is cut off.
    if not nodes or any(n.is_extra and n.start_byte >= cut for n in nodes):
        return None
    headers = _first_lines(part, nodes, cut)
    begun = {node.start_byte for node in nodes}
    bodies = bodies_of(part.language, part.root, part.data, (place, place + 1))
    for body in bodies:
        head = body.header
        start = head.start if head.start in begun else head.define
        # In the `else` of an `if` the first body is left out.
        start = max(
            (b.closes for b in bodies if start <= b.header.define and b.stop <= head.opens), default=start
        )
        lines = part.lines(start, head.opens)
        if head.opens <= cut and place < body.stop:
            headers |= lines
        elif head.opens <= cut and head.define in begun:
            headers |= lines | _folded(part, body)
    return {at: line for at, line in headers.items() if at < cut + part.start}


def headers_by_lines(data: bytes, start: int, cut: int) -> Lines:
    """Return the lines between `start` and `cut` that are indented less than every line between them and the cut."""
    found: Lines = {}
    rest = data[cut:].lstrip()
    deep = lexer.indentation(data, len(data) - len(rest)) + _closes(rest)
    at = cut
    for line in reversed(data[start:cut].splitlines(keepends=True)):
        at -= len(line)
        bare = line.lstrip()
        shallow = lexer.width(line[: len(line) - len(bare)])
        if bare and shallow < deep:
            found[at] = line
            deep = shallow + _closes(bare)
    return found


def _next_statement(item: Part, at: int) -> int:
    """Return the start of the first line from `at` on that begins with a statement; `at` if there is none."""
    for node in item.language.captures(item.root, (at - item.start, len(item.data))).get("statement", ()):
        begins = lexer.line_start(item.data, node.start_byte)
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
    """Return the lines of each import of `part`, the beginning of a file, that is before `cut`."""
    check_shape(part.root)
    cursor = tree_sitter.QueryCursor(part.language.query)
    cursor.set_max_start_depth(DEPTH)
    nodes = sorted(cursor.captures(part.root).get("import", ()), key=lambda n: n.start_byte)
    # An indented import is in a scope that is not kept.
    found = (
        part.lines(n.start_byte, n.end_byte) for n in nodes if not lexer.leading(part.data, n.start_byte)
    )
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


def _ended(language: Language, data: bytes, floor: int) -> bytes:
    """Return `data` without the statement at its end; one that begins before `floor` is closed instead."""
    # The tree of a broken text does not show open strings; the tokens do.
    state = state_at(language, data, len(data), 0)
    begins = state.begins if state.comment else state.line
    if begins > floor:
        return data[:begins] + state.closing(at for at in state.opened if at < begins)
    end = lexer.block_end(language, data[begins:]) if state.comment else b""
    return data + end + state.string + closers(state.brackets)


def _closes(line: bytes) -> bool:
    """Return whether `line` begins with a closing bracket; the line that opens it is then indented as deep."""
    return line[:1] in (b")", b"]", b"}")


def _first_lines(part: Part, nodes: list[Node], cut: int) -> Lines:
    """Return the first lines of `nodes`, each of which holds the next; an ERROR node is read by indentation."""
    found: Lines = {}
    for node, inner in zip(nodes, [*nodes[1:], None], strict=True):
        until = min(inner.start_byte, cut) if inner else cut
        if node.is_error and node.start_byte < until:
            start, stop = (lexer.line_start(part.data, at) for at in (node.start_byte, until))
            lines = headers_by_lines(part.data, start, stop)
            found |= {at + part.start: line for at, line in lines.items()}
        elif node.start_byte < cut and not (node.is_error or _is_sequence(part.language, node)):
            found |= part.lines(node.start_byte, node.start_byte)
    return found


def _nodes_at(root: Node, place: int) -> list[Node]:
    """Return the nodes that hold `place`, outermost first, without the root unless that is an ERROR."""
    found: list[Node] = []
    node = root.descendant_for_byte_range(place, place)
    while node is not None and (node.id != root.id or root.is_error):
        # A node's parent is looked for from the root down.
        check()
        found.append(node)
        node = node.parent
    return found[::-1]


def _is_sequence(language: Language, node: Node) -> bool:
    """Return whether `node` is only a sequence of statements, so that its first line is no header."""
    first = next((n for n in node.children if not n.is_extra), node)
    found = language.captures(node, (node.start_byte, node.start_byte + 1)).get("statement", ())
    return first.start_byte == node.start_byte and first.id in (n.id for n in found)


def _folded(part: Part, body: Body) -> Lines:
    """Return what must be kept of a body that ends above the cut, since an `else` or the like follows it."""
    if part.language.style != "indent":
        return part.lines(body.closes, body.stop)
    if body.inline or body.first is None:
        return {}
    first = body.docstring[0] if body.docstring else body.first
    newline = part.data[lexer.line_end(part.data, first) : lexer.line_below(part.data, first)]
    filler = (body.indent or b"") + part.language.placeholders["block"].encode() + newline
    return {lexer.line_start(part.data, first) + part.start: filler}
