"""Part: a stretch of a text that may end in the middle of a statement, and its tree with the open brackets closed."""

from dataclasses import dataclass

from tree_sitter import Node

from dg_lsp.text.documents.lines import line_end, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.brackets import closers, state_at
from dg_lsp.text.syntax.lexer import Span

_OPENING = {"(": b"(", "[": b"[", "{": b"{", "${": b"{"}
_CLOSING = (")", "]", "}")

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
        """Return the whole lines that the part's span [start, end) touches, at least one.

        White space at the end of the span does not count; a line that ends with a backslash brings the next one.
        """
        found: Lines = {}
        at = line_start(self.data, start)
        end = max(start + len(self.data[start:end].rstrip()), start + 1)
        while at < min(end, len(self.data)):
            stop = next_line(self.data, at)
            found[at + self.start] = line = self.data[at:stop]
            end = max(end, stop + 1) if line.rstrip(b"\r\n").endswith(b"\\") else end
            at = stop
        return found


def part_of(language: Language, data: bytes, span: Span, floor: int) -> Part:
    """Return the `span` of `data` as a Part.

    1. Parse.  2. If that has errors, close the brackets that the tree shows open.  3. If it still has errors, leave out
    the statement at the end when it begins behind `floor`.
    """
    start, stop = span
    data = data[start:stop]
    # 1.
    tree = language.parse(data)
    # 2.
    if tree.root_node.has_error:
        tree = language.reparse(tree, data, (len(data), len(data)), closers(_unclosed(tree.root_node)))
    # 3.
    if tree.root_node.has_error:
        tree = language.parse(_ended(language, data, floor - start))
    return Part(language, start, data, tree.root_node)


def next_line(data: bytes, offset: int) -> int:
    """Return where the line below that of `offset` begins; the end of the text if there is none."""
    end = line_end(data, offset)
    return min(end + (2 if data[end : end + 2] == b"\r\n" else 1), len(data))


def _unclosed(root: Node) -> bytes:
    """Return the unmatched brackets of a tree, in the order of the text."""
    brackets, stack = b"", [root]
    while stack:
        node = stack.pop()
        if node.is_missing:
            continue
        if node.has_error:
            stack.extend(reversed(node.children))
        elif node.type in _OPENING:
            brackets += _OPENING[node.type]
        elif node.type in _CLOSING:
            brackets = brackets[:-1]
    return brackets


def _ended(language: Language, data: bytes, floor: int) -> bytes:
    """Return `data` without the statement at its end; one that begins before `floor` is closed instead."""
    # The tree of a broken text does not show open strings; the tokens do.
    state = state_at(language, data, len(data), 0)
    begins = state.begins if state.comment else state.line
    if begins > floor:
        return data[:begins] + closers(bytes(data[at] for at in state.opened if at < begins))
    ends = (b for a, b in language.block_comments if state.comment and data.startswith(a.encode(), begins))
    return data + next(ends, "").encode() + state.string + closers(state.brackets)
