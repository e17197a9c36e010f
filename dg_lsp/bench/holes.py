"""Holes in real files, with their true texts: the cases of `dg-lsp bench`.

Knows the text layer; knows no engine. `lists.py` keeps holes that stay the same from run to run.
"""

import ast
import io
import random
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dg_lsp.budget import BOT, within
from dg_lsp.gaps import Gap, NoGap, find_gap, find_gaps
from dg_lsp.source.document import Document

_LONGEST = 10  # lines of a function body
_SHORT, _LONG = 4, 60  # characters of an expression
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Raise, ast.Assert, ast.Delete, ast.Expr)


@dataclass(frozen=True, slots=True)
class Case:
    """A hole in a document.

    name: where it is. kind: one of HOLES. gap: the gap to fill. truth: the text that was in it.
    """

    name: str
    kind: str
    document: Document
    gap: Gap
    truth: str


def make_cases(documents: Sequence[Document], kind: str, count: int, seed: int) -> list[Case]:
    """At most `count` holes of `kind`, one of HOLES, spread over the documents as evenly as possible.

    The same documents, kind, count and seed give the same holes.
    """
    chance = random.Random(f"{kind} {seed}")
    sources = [_cases(document, kind, chance) for document in chance.sample(list(documents), len(documents))]
    cases: list[Case] = []
    while sources and len(cases) < count:
        for source in list(sources):
            case = next(source, None)
            if case is None:
                sources.remove(source)
            elif len(cases) < count:
                cases.append(case)
    return cases


def case_at(document: Document, kind: str, start: int, end: int) -> Case:
    """The hole of `kind` at the bytes [start, end) of `document`.

    Raises:
        NoGap: no gap is found there.
    """
    truth = document.data[start:end].decode("utf-8")
    name = f"{document.uri}:{document.position(start, 'utf-8')[0] + 1}"
    if kind == "function_body":
        found = [g for g in find_gaps(document, start, end) if (g.start, g.end) == (start, end)]
        if not found:
            raise NoGap(f"{name}: no function body begins and ends there")
        return Case(name, kind, document, found[0], truth)
    # The text of a hole within a line is removed, as if it had not been typed yet.
    holed = replace(document, data=document.data[:start] + document.data[end:])
    gap = find_gap(holed, start, "rest_of_line")
    return Case(name, kind, holed, replace(gap, start=start, end=start), truth)


def whole_of(case: Case) -> bytes:
    """The bytes of the file without the hole."""
    start, _ = span_of(case)
    data = case.document.data
    return data if case.gap.end > case.gap.start else data[:start] + case.truth.encode("utf-8") + data[start:]


def span_of(case: Case) -> tuple[int, int]:
    """The bytes of the truth in the file without the hole."""
    return case.gap.start, case.gap.start + len(case.truth.encode("utf-8"))


def _cases(document: Document, kind: str, chance: random.Random) -> Iterator[Case]:
    spans = HOLES[kind](document, chance)
    for start, end in spans:
        try:
            yield case_at(document, kind, start, end)
        except NoGap:
            continue


def _bodies(document: Document, chance: random.Random) -> Iterator[tuple[int, int]]:
    """The spans of function bodies of at most _LONGEST lines, without docstrings and stubs, in random order."""
    with within(BOT):
        gaps = [g for g in find_gaps(document, 0, len(document.data)) if not g.stub]
    for gap in chance.sample(gaps, len(gaps)):
        truth = document.data[gap.start : gap.end].decode("utf-8")
        if truth.strip() and len(truth.splitlines()) <= _LONGEST:
            yield gap.start, gap.end


def _rests(document: Document, chance: random.Random) -> Iterator[tuple[int, int]]:
    """The rests of lines from a random token on, in random order."""
    by_line = _cuts(document.text)
    for line in chance.sample(sorted(by_line), len(by_line)):
        start = document.offset(line, chance.choice(by_line[line]), "utf-32")
        yield start, document.offset(line, 1_000_000_000, "utf-32")


def _statements(document: Document, chance: random.Random) -> Iterator[tuple[int, int]]:
    """The spans of simple statements of one line inside functions, without docstrings."""
    nodes = [
        child
        for function in _nodes(document, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.walk(function)
        if isinstance(child, _SIMPLE)
        and not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant))
    ]
    whole = [n for n in nodes if _blank_before(document, n)]
    yield from _spans(document, chance, whole, 8, 200)


def _expressions(document: Document, chance: random.Random) -> Iterator[tuple[int, int]]:
    """The spans of arguments, assigned and returned values, conditions and subscripts, at most one a line."""
    nodes: list[ast.expr] = []
    for node in _nodes(document, ast.AST):
        match node:
            case ast.Call():
                nodes += [*node.args, *(k.value for k in node.keywords)]
            case ast.Assign() | ast.AugAssign() | ast.Return() | ast.AnnAssign():
                nodes += [node.value] if node.value else []
            case ast.If() | ast.While() | ast.Assert():
                nodes.append(node.test)
            case ast.Subscript():
                nodes.append(node.slice)
            case ast.For():
                nodes.append(node.iter)
            case _:
                pass
    yield from _spans(document, chance, nodes, _SHORT, _LONG)


def _blank_before(document: Document, node: Any) -> bool:
    begin = document.line_starts[node.lineno - 1]
    return not document.data[begin : begin + node.col_offset].strip()


def _nodes(document: Document, kind: Any) -> list[Any]:
    try:
        return [node for node in ast.walk(ast.parse(document.data)) if isinstance(node, kind)]
    except (SyntaxError, ValueError, RecursionError):
        return []


def _spans(
    document: Document, chance: random.Random, nodes: Sequence[Any], least: int, most: int
) -> Iterator[tuple[int, int]]:
    """The byte spans of those `nodes` that are on one line and have `least` to `most` bytes; one a line, shuffled."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for node in nodes:
        if node.lineno == node.end_lineno and least <= node.end_col_offset - node.col_offset <= most:
            begin = document.line_starts[node.lineno - 1]
            spans.setdefault(node.lineno, []).append((begin + node.col_offset, begin + node.end_col_offset))
    for line in chance.sample(sorted(spans), len(spans)):
        yield chance.choice(sorted(set(spans[line])))


def _cuts(text: str) -> dict[int, list[int]]:
    """The columns at which each line of code, counted from 0, may be cut.

    These are the starts of its tokens except the first, with at least three characters after them. Lines with a
    comment or a part of a string of several lines are left out, because their rests are prose.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    cuts: dict[int, list[int]] = {}
    prose: set[int] = set()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return {}
    for token in tokens:
        (row, column), (last, _) = token.start, token.end
        if token.type == tokenize.COMMENT or last > row:
            prose.update(range(row - 1, last))
        elif (
            token.string.strip()
            and lines[row - 1][:column].strip()
            and len(lines[row - 1][column:].strip()) >= 3
        ):
            cuts.setdefault(row - 1, []).append(column)
    return {line: columns for line, columns in cuts.items() if line not in prose}


# The kinds of holes, and the functions that find their spans.
HOLES = {
    "function_body": _bodies,
    "rest_of_line": _rests,
    "expression": _expressions,
    "statement": _statements,
}
