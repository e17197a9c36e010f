"""The headers of the scopes that enclose a place, and the docstrings of its functions; by tree or by indentation."""

import re

from tree_sitter import Node

from dg_lsp.text.documents.lines import indentation, line_end, line_start, width
from dg_lsp.text.languages.language import Language
from dg_lsp.text.prompts.part import Lines, Part, next_line
from dg_lsp.text.syntax.bodies import bodies_of
from dg_lsp.text.syntax.body import Body

_WORD = re.compile(rb"\w")


def headers_at(part: Part, cut: int) -> tuple[Lines, list[Lines]] | None:
    """Return the headers of all scopes that enclose the line start `cut`, and docstrings; None if the tree cannot tell.

    The docstrings are those of the enclosing functions, innermost last, each twice: its first paragraph, and all of it.
    Decorators may be left out; an enclosing header may not.
    """
    cut -= part.start
    place = len(part.data) - len(part.data[cut:].lstrip())
    nodes = _nodes_at(part.root, place)
    # A comment alone does not show which scope is open; the statement behind it would, and that is cut off.
    if not nodes or any(n.is_extra and n.start_byte >= cut for n in nodes):
        return None
    headers = _first_lines(part, nodes, cut)
    docstrings: list[Lines] = []
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
            docstrings += _twice(_docstring(part, body, cut)) if head.owner == "function" else []
        elif head.opens <= cut and head.define in begun:
            headers |= lines | _folded(part, body)
    return {at: line for at, line in headers.items() if at < cut + part.start}, docstrings


def headers_by_lines(data: bytes, start: int, cut: int) -> Lines:
    """Return the lines between `start` and `cut` that are indented less than every line between them and the cut."""
    found: Lines = {}
    rest = data[cut:].lstrip()
    deep = indentation(data, len(data) - len(rest)) + _closes(rest)
    at = cut
    for line in reversed(data[start:cut].splitlines(keepends=True)):
        at -= len(line)
        bare = line.lstrip()
        shallow = width(line[: len(line) - len(bare)])
        if bare and shallow < deep:
            found[at] = line
            deep = shallow + _closes(bare)
    return found


def _closes(line: bytes) -> bool:
    """Whether `line` begins with a closing bracket; the line that opens it is then indented as deep."""
    return line[:1] in (b")", b"]", b"}")


def _first_lines(part: Part, nodes: list[Node], cut: int) -> Lines:
    """Return the first lines of `nodes`, each of which holds the next; an ERROR node is read by indentation."""
    found: Lines = {}
    for node, inner in zip(nodes, [*nodes[1:], None], strict=True):
        until = min(inner.start_byte, cut) if inner else cut
        if node.is_error and node.start_byte < until:
            start, stop = (line_start(part.data, at) for at in (node.start_byte, until))
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
        found.append(node)
        node = node.parent
    return found[::-1]


def _is_sequence(language: Language, node: Node) -> bool:
    """Whether `node` is only a sequence of statements, so that its first line is no header."""
    first = next((n for n in node.children if not n.is_extra), node)
    found = language.captures(node, (node.start_byte, node.start_byte + 1)).get("statement", ())
    return first.start_byte == node.start_byte and first.id in (n.id for n in found)


def _docstring(part: Part, body: Body, cut: int) -> Lines:
    """Return the docstring of a function below its header, or the comment lines right above it."""
    data = part.data
    first = len(data) - len(data[body.header.opens :].lstrip())
    for node in part.language.captures(part.root, (first, first + 1)).get("docstring", ()):
        if node.start_byte == first and node.end_byte <= cut:
            return part.lines(first, node.end_byte)
    found: Lines = {}
    start = line_start(data, body.header.start)
    while start > 0:
        end = start - 2 if data.startswith(b"\r\n", start - 2) else start - 1
        comments = part.language.captures(part.root, (end - 1, end)).get("comment", ())
        # Only comments that have a line of their own count; an empty line ends them.
        above = [n for n in comments if not data[line_start(data, n.start_byte) : n.start_byte].strip()]
        if not above or not data[line_start(data, end) : end].strip():
            break
        found |= part.lines(above[0].start_byte, end)
        start = line_start(data, above[0].start_byte)
    return found


def _twice(docstring: Lines) -> list[Lines]:
    """Return the first paragraph of a docstring with its closing line, and the whole docstring."""
    paragraph: Lines = {}
    for at in sorted(docstring):
        if not _WORD.search(docstring[at]) and any(map(_WORD.search, paragraph.values())):
            break
        paragraph[at] = docstring[at]
    return [paragraph | {at: docstring[at] for at in sorted(docstring)[-1:]}, docstring]


def _folded(part: Part, body: Body) -> Lines:
    """Return what must be kept of a body that ends above the cut, since an `else` or the like follows it."""
    if part.language.style != "indent":
        return part.lines(body.closes, body.stop)
    if body.inline or body.first is None:
        return {}
    first = body.docstring[0] if body.docstring else body.first
    newline = part.data[line_end(part.data, first) : next_line(part.data, first)]
    filler = (body.indent or b"") + part.language.placeholder("block").encode() + newline
    return {line_start(part.data, first) + part.start: filler}
