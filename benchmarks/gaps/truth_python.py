"""The bodies, statements and docstrings of a valid Python file, by `ast`: nothing of it comes from a grammar.

Only what has one right answer is kept: no comments between a header and its body, or right after a body.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.gaps.place import Place, line_of, trimmed
from dg_lsp.messages import Kind

_DOCSTRING = re.compile(rb"[rR]?(\"\"\"|''')")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BLOCKS = (*_LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.ExceptHandler, ast.match_case)
_COMPOUND = (*_BLOCKS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match)


def suites(data: bytes) -> dict[str, list[Place]]:
    """The places of the kinds that are known by `ast`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(data)
    lines = _Lines(data)
    found: dict[str, list[Place]] = {
        kind: [] for kind in ("function_body", "class_body", "block", "statement", "docstring")
    }
    for node in ast.walk(tree):
        for kind, body in _bodies(node):
            documented = kind != "block" and ast.get_docstring(node, clean=False) is not None  # type: ignore[arg-type]
            if documented:
                found["docstring"] += lines.docstring(node, body[0])
            if len(body) > documented:
                found[kind].append(lines.suite(kind, node, body, documented))
            found["statement"] += [lines.statement(s) for s in body[documented:]]
    return found


def _bodies(node: ast.AST) -> Iterator[tuple[Kind, Sequence[ast.stmt]]]:
    """The suites that `node` itself holds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield "function_body", node.body
    elif isinstance(node, ast.ClassDef):
        yield "class_body", node.body
    elif isinstance(node, _BLOCKS):
        for name in ("body", "orelse", "finalbody"):
            suite = getattr(node, name, [])
            # An `elif` is a statement of its parent's else, without a suite of its own.
            chained = (
                name == "orelse" and isinstance(node, ast.If) and isinstance(suite[:1] and suite[0], ast.If)
            )
            if suite and not chained:
                yield "block", suite


class _Lines:
    """The offsets in bytes of the nodes of a file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.starts = [0, *(m.end() for m in re.finditer(rb"\r\n|\n|\r", data))]

    def suite(self, kind: Kind, node: ast.AST, body: Sequence[ast.stmt], documented: bool) -> Place:
        """The place of a suite; one that shares its lines, or whose ends comments leave open, is not clear."""
        data, first, start, end = (
            self.data,
            self.start(body[0]),
            self.start(body[documented]),
            self.end(body[-1]),
        )
        line = data.rfind(b"\n", 0, first) + 1
        opens = self.end(body[0]) if documented else len(data[:line].rstrip())
        own = not data[line:first].strip() and (documented or data.endswith(b":", 0, opens))
        header = data[data.rfind(b"\n", 0, opens) + 1 : opens]
        after = data[end : line_of(data, end)[1]]
        clear = own and b"#" not in header and not data[opens:start].strip() and not after.strip()
        clear = clear and re.match(rb"[ \t\n]*#", data[end:]) is None
        outer = self.start(node) if hasattr(node, "lineno") else opens
        place = trimmed(data, kind, (outer, end), (opens if own else first, end))
        return replace(place, start=start, clear=clear)

    def docstring(self, _: ast.AST, statement: ast.stmt) -> list[Place]:
        """The docstring between its three quotes, where it is one string and says something."""
        start, end = self.start(statement), self.end(statement)
        quotes = _DOCSTRING.match(self.data, start, end)
        if quotes is None or not self.data.endswith(quotes[1], quotes.end(), end):
            return []
        inside = quotes.end(), end - 3
        if quotes[1] in self.data[slice(*inside)]:
            return []
        place = trimmed(self.data, "docstring", (start, end), inside)
        return [place] if place.end > place.start else []

    def statement(self, node: ast.stmt) -> Place:
        span = self.start(node), self.end(node)
        place = trimmed(self.data, "statement", span, span)
        leaf = not isinstance(node, _COMPOUND)
        return Place("statement", span, place.opens, place.start, place.end, place.closes, leaf)

    def start(self, node: ast.AST) -> int:
        """The start of `node`, with its decorators."""
        node = min([node, *getattr(node, "decorator_list", ())], key=lambda n: n.lineno)  # type: ignore[attr-defined]
        at = self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        decorated = self.data[self.starts[node.lineno - 1] : at].strip() == b"@"  # type: ignore[attr-defined]
        return self.data.rfind(b"@", 0, at) if decorated else at

    def end(self, node: ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset
