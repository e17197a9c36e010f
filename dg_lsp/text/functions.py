"""Function: where a function's header, docstring and body are, from a tree or, where it is broken, from lines.

Knows Python's layout rules; knows no gaps, cursors or edits.
"""

import re
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from dg_lsp.text.language import Language
from dg_lsp.text.lexical import (
    LogicalLine,
    indentation,
    leading,
    line_end,
    line_start,
    logical_lines,
    tokens,
    width,
)

Span = tuple[int, int]
_DEF = re.compile(rb"(?:async[ \t]+)?def[ \t]+([\w\x80-\xff]+)")
_CLASS = re.compile(rb"class[ \t]+([\w\x80-\xff]+)")
STUB = re.compile(rb"(?:pass|\.\.\.|raise[ \t]+NotImplemented(?:Error)?(?:[ \t]*\(.*\))?)[ \t]*;?", re.DOTALL)
_DOC = re.compile(rb"[rRuU]?[\"'].*[\"']", re.DOTALL)
_MEANT = re.compile(rb"@[^\r\n]*\b(?:abstract(?:|class|static)method|abstractproperty|overload)\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a function's own block."""

    start: int
    end: int
    kind: Literal["docstring", "stub", "code"]


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before a body: [start, colon) with decorators, the `def`, the name with its owners."""

    start: int
    define: int
    colon: int
    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function as byte offsets.

    opens: where the body may begin, after the header's line or the docstring's. first: the first text there.
    end: the end of the body's text. inline: the body is on the header's line. indent: the white space of
    the body's lines, where one shows it. stub: not written yet. meant: a stub on purpose.
    """

    header: Header
    opens: int
    docstring: Span | None
    first: int | None
    end: int
    inline: bool
    indent: bytes | None
    stub: bool
    meant: bool


def functions_of(language: Language, root: Node, data: bytes) -> tuple[Function, ...]:
    """Every function below `root`, the tree of `data`, in the order of the text."""
    found = language.captures(root)
    kinds: dict[Span, Literal["docstring", "stub"]] = {
        (n.start_byte, n.end_byte): "stub" for n in found.get("stub", ())
    }
    kinds |= {
        (n.start_byte, n.end_byte): "docstring"
        for n in found.get("docstring", ())
        if _DOC.fullmatch(data, n.start_byte, n.end_byte)
    }
    meant = {n.start_byte for n in found.get("stub.skip", ())}
    described = []
    for record in language.functions(root):
        outer, block = record["function.outer"], record["function.body"]
        decorated = outer.parent is not None and outer.parent.type == "decorated_definition"
        start = outer.parent.start_byte if decorated and outer.parent else outer.start_byte
        header = Header(start, outer.start_byte, record["function.colon"].end_byte, _qualified(outer))
        parts = [n for n in block.named_children if n.type != "comment" and n.end_byte > n.start_byte]
        body = [
            Statement(n.start_byte, _code_end(n), kinds.get((n.start_byte, n.end_byte), "code"))
            for n in parts
        ]
        described.append(describe(data, header, body, meant=outer.start_byte in meant))
    return tuple(described)


def item_at(root: Node, offset: int) -> Node:
    """The last item at the top level that begins at or before `offset`, or `root` where there is none."""
    before = [n for n in root.children if n.start_byte <= offset and n.type != "comment"]
    return before[-1] if before else root


def functions_by_lines(data: bytes, start: int, stop: int) -> tuple[Function, ...]:
    """Every function of data[start:stop] by indentation alone, for text that does not parse.

    1. Read logical lines.  2. A def opens a function; a line of code that is not deeper closes it.
    3. What stands in between, at the indentation of its first line, is its body.
    """
    # 1. Comments neither open nor close anything.
    lines = [line for line in logical_lines(data, start, stop) if not line.comment]
    found = []
    owners: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        while owners and owners[-1][0] >= line.width:
            owners.pop()
        # 2. The body is the run of deeper lines.
        named = _DEF.match(data, line.start) or _CLASS.match(data, line.start)
        if named is None:
            continue
        owners.append((line.width, named[1].decode("utf-8", "replace")))
        if named.re is not _DEF:
            continue
        colon = _colon(data, line)
        above = _decorators(lines, number, data)
        inside = _body_lines(lines, number)
        # 3. A line without its colon is no header; repair inserts one where it can.
        body = _statements(data, colon, line, inside)
        meant = bool(_MEANT.search(data, above, line.start)) or _in_protocol(data, lines, number)
        found.append(
            describe(
                data, Header(above, line.start, colon, ".".join(n for _, n in owners)), body, meant=meant
            )
        )
    return tuple(found)


def describe(data: bytes, header: Header, body: list[Statement], *, meant: bool) -> Function:
    """The Function that `header` and the statements of its body make; comments that belong to it count."""
    docstring = body[0] if body and body[0].kind == "docstring" else None
    rest = body[1:] if docstring else body
    inline = bool(body) and not re.search(rb"[\r\n]", data[header.colon : body[0].start])
    opens = docstring.end if docstring else header.colon
    if not (rest and rest[0].start < line_end(data, opens)):
        opens = _with_comment(data, opens)
    end = _with_comments(data, body[-1].end if body else opens, width(leading(data, header.define)))
    first = next((m.start() for m in [re.compile(rb"\S").search(data, opens, end)] if m), None)
    # A comment may stand at another depth than the code; it counts only where it is alone.
    shown = body[0].start if body else first
    indent = leading(data, shown) if shown is not None and not inline else None
    stub = not rest or (len(rest) == 1 and rest[0].kind == "stub")
    span = (docstring.start, docstring.end) if docstring else None
    return Function(header, opens, span, first, end, inline, indent, stub and not meant, meant)


def _qualified(node: Node) -> str:
    names = []
    at: Node | None = node
    while at is not None:
        name = (
            at.child_by_field_name("name") if at.type in ("function_definition", "class_definition") else None
        )
        if name is not None and name.text is not None:
            names.append(name.text.decode("utf-8", "replace"))
        at = at.parent
    return ".".join(reversed(names))


def _code_end(node: Node) -> int:
    """Where the last text of `node` ends that is no comment."""
    while inner := [c for c in node.children if c.type != "comment" and c.end_byte > c.start_byte]:
        node = inner[-1]
    return node.end_byte


def _with_comment(data: bytes, at: int) -> int:
    """`at`, moved behind a comment (or semicolon) that ends its line."""
    found = re.compile(rb"[ \t\f]*;?[ \t\f]*(?:#[^\r\n]*)?").match(data, at, line_end(data, at))
    assert found is not None
    return at + len(found[0].rstrip(b" \t\f"))


def _with_comments(data: bytes, at: int, header: int) -> int:
    """`at`, moved behind the comments that follow on its line or, deeper than `header` columns, below it."""
    at = _with_comment(data, at)
    below = re.compile(rb"[ \t\f\r\n]*(#[^\r\n]*)")
    while (found := below.match(data, at)) and indentation(data, found.start(1)) > header:
        if line_start(data, found.start(1)) <= at:
            break
        at = at + len(found[0].rstrip())
    return at


def _colon(data: bytes, line: LogicalLine) -> int:
    """The end of the colon that ends the header beginning at `line`, or of the line where there is none."""
    depth, end = 0, line.start
    for token in tokens(data, line.start, line.end):
        depth += (token.kind == "open") - (token.kind == "close")
        if token.kind == "other" and depth <= 0 and data[token.start : token.end] == b":":
            return token.end
        end = token.end if token.kind not in ("space", "comment") else end
    return end


def _decorators(lines: list[LogicalLine], number: int, data: bytes) -> int:
    while (
        number
        and lines[number - 1].width == lines[number].width
        and data.startswith(b"@", lines[number - 1].start)
    ):
        number -= 1
    return lines[number].start


def _in_protocol(data: bytes, lines: list[LogicalLine], number: int) -> bool:
    owner = next((line for line in reversed(lines[:number]) if line.width < lines[number].width), None)
    return owner is not None and bool(
        re.match(rb"class\b[^\r\n]*\bProtocol\b", data[owner.start : owner.end])
    )


def _body_lines(lines: list[LogicalLine], number: int) -> list[LogicalLine]:
    stop = number + 1
    while stop < len(lines) and lines[stop].width > lines[number].width:
        stop += 1
    return lines[number + 1 : stop]


def _statements(data: bytes, colon: int, line: LogicalLine, inside: list[LogicalLine]) -> list[Statement]:
    """The statements of a body as far as lines tell them: each logical line is one."""
    spans = [(b.start, b.end) for b in inside]
    same = re.compile(rb"[ \t\f]*([^\s#])").match(data, colon, line.end)
    spans[:0] = [(same.start(1), line.end)] if same else []
    body: list[Statement] = []
    for start, last in spans:
        end = _code_stop(data, start, last)
        kind: Literal["docstring", "stub", "code"] = "code"
        if not body and _DOC.fullmatch(data, start, end) and len(list(tokens(data, start, end))) == 1:
            kind = "docstring"
        elif STUB.fullmatch(data, start, end):
            kind = "stub"
        body.append(Statement(start, end, kind))
    return body


def _code_stop(data: bytes, start: int, end: int) -> int:
    """Where the last token of data[start:end] ends that is neither comment nor white space."""
    blank = ("space", "comment", "newline", "joined")
    code = [t.end for t in tokens(data, start, end) if t.kind not in blank]
    return code[-1] if code else end
