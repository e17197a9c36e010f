"""Bodies where indentation holds them together (Python), from a tree or, where it is broken, from logical lines.

Knows no gaps, cursors or edits.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from dg_lsp.text.documents.lines import indentation, leading, line_end, line_start, width
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.body import Body, Header, Owner, Statement
from dg_lsp.text.syntax.lexer import Span, Token, tokens

_DEF = re.compile(rb"(?:async[ \t]+)?def[ \t]+([\w\x80-\xff]+)")
_CLASS = re.compile(rb"class[ \t]+([\w\x80-\xff]+)")
_BLOCK = re.compile(rb"(?:async[ \t]+)?(?:if|elif|else|for|while|with|try|except|finally|match|case)\b")
STUB = re.compile(rb"(?:pass|\.\.\.|raise[ \t]+NotImplemented(?:Error)?(?:[ \t]*\(.*\))?)[ \t]*;?", re.DOTALL)
_DOC = re.compile(rb"[rRuU]?[\"'].*[\"']", re.DOTALL)
_MEANT = re.compile(rb"@[^\r\n]*\b(?:abstract(?:|class|static)method|abstractproperty|overload)\b")
_BLANK = ("space", "comment", "newline", "joined")
Captures = Mapping[str, Sequence[Node]]


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """One statement's header, one simple statement or one comment line: [start, end) without indentation.

    `width` is its indentation in columns, tabs to the next multiple of 8; `comment` says it is only one.
    """

    start: int
    end: int
    width: int
    comment: bool


def body_of(data: bytes, header: Header, block: Node, marks: Captures) -> Body:
    """The Body behind `header` whose statements are the node `block`; `marks` are what is captured in it."""
    kinds = _kinds(data, marks)
    body = [
        Statement(n.start_byte, code_end(n), kinds.get((n.start_byte, n.end_byte), "code"))
        for n in _statements_of(block)
    ]
    meant = any(n.start_byte == header.define for n in marks.get("stub.skip", ()))
    return describe(data, header, body, meant=meant)


def marks_of(language: Language, root: Node, outer: Node, block: Node) -> Captures:
    """The captures of a body's first statement, or of all that a body which may be a stub has."""
    parts = _statements_of(block)
    if not parts:
        return language.captures(root, (outer.start_byte, outer.start_byte + 1))
    start = outer.start_byte if len(parts) <= 2 else parts[0].start_byte
    return language.captures(root, (start, parts[: 2 if len(parts) <= 2 else 1][-1].end_byte))


def _statements_of(block: Node) -> list[Node]:
    return [n for n in block.named_children if n.type != "comment" and n.end_byte > n.start_byte]


def _kinds(data: bytes, found: Captures) -> dict[Span, Literal["docstring", "stub"]]:
    kinds: dict[Span, Literal["docstring", "stub"]] = {
        (n.start_byte, n.end_byte): "stub" for n in found.get("stub", ())
    }
    for node in found.get("docstring", ()):
        if _DOC.fullmatch(data, node.start_byte, node.end_byte):
            kinds[node.start_byte, node.end_byte] = "docstring"
    return kinds


def bodies_by_lines(language: Language, data: bytes, span: Span) -> Iterator[Body]:
    """Every body of the text `span` by indentation alone.

    1. Read logical lines.  2. A header opens a body; a line of code that is not deeper closes it.
    3. What stands in between, at the indentation of its first line, is its body.
    """
    # 1. Comments neither open nor close anything.
    lines = [line for line in logical_lines(language, data, *span) if not line.comment]
    owners: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        while owners and owners[-1][0] >= line.width:
            owners.pop()
        # 2. The body is the run of deeper lines.
        named = _DEF.match(data, line.start) or _CLASS.match(data, line.start)
        owner: Owner = "function" if named and named.re is _DEF else "class" if named else "block"
        colon = _colon(language, data, line)
        if named is not None:
            owners.append((line.width, named[1].decode("utf-8", "replace")))
        elif not _BLOCK.match(data, line.start) or data[colon - 1 : colon] != b":":
            continue
        above = _decorators(lines, number, data) if named else line.start
        # 3. A line without its colon is no header; repair inserts one where it can.
        body = _statements(language, data, (colon, line.end), _body_lines(lines, number))
        meant = bool(_MEANT.search(data, above, line.start)) or _in_protocol(data, lines, number)
        header = Header(owner, above, line.start, colon, ".".join(name for _, name in owners))
        yield describe(data, header, body, meant=meant)


def logical_lines(language: Language, data: bytes, start: int, stop: int) -> Iterator[LogicalLine]:
    """The logical lines of data[start:stop], from a place that begins one."""
    depth, first, end, comment, fresh = 0, -1, start, True, True
    for token in tokens(language, data, start, stop):
        if fresh and depth and _begins_statement(language, data, token, first):
            yield LogicalLine(first, end, indentation(data, first), comment)
            depth, first, comment = 0, -1, True
        if token.kind == "newline":
            fresh = True
            if depth == 0 and first >= 0:
                yield LogicalLine(first, end, indentation(data, first), comment)
                first, comment = -1, True
            continue
        if token.kind == "space":
            continue
        fresh, end = False, token.start + 1 if token.kind == "joined" else token.end
        first = token.start if first < 0 else first
        comment = comment and token.kind == "comment"
        depth = max(depth + (token.kind == "open") - (token.kind == "close"), 0)
    if first >= 0:
        yield LogicalLine(first, end, indentation(data, first), comment)


def _begins_statement(language: Language, data: bytes, token: Token, line: int) -> bool:
    """Whether `token`, the first of a line inside brackets, begins a statement: then a bracket was lost.

    So does a keyword, a decorator, or a word less deep than `line`, where the brackets were opened.
    """
    text = data[token.start : token.end]
    if text in language.words.starts or (text == b"@" and data[token.end : token.end + 1].isalpha()):
        return True
    return token.kind == "word" and indentation(data, token.start) < indentation(data, line)


def function_over(language: Language, data: bytes, start: int, offset: int) -> LogicalLine | None:
    """The header of the outermost function that is open at `offset`, read from `start`; None where there is none."""
    opened: list[LogicalLine] = []
    for line in logical_lines(language, data[:offset], start, offset):
        if not line.comment:
            opened = [above for above in opened if above.width < line.width]
            opened += [line] if _DEF.match(data, line.start) else []
    return opened[0] if opened else None


def describe(data: bytes, header: Header, body: Sequence[Statement], *, meant: bool) -> Body:
    """The Body that `header` and its statements make; comments that belong to it count."""
    docstring = body[0] if body and body[0].kind == "docstring" and header.owner != "block" else None
    rest = body[1:] if docstring else body
    inline = bool(body) and not re.search(rb"[\r\n]", data[header.opens : body[0].start])
    opens = docstring.end if docstring else header.opens
    if not (rest and rest[0].start < line_end(data, opens)):
        opens = _with_comment(data, opens)
    end = _with_comments(data, body[-1].end if body else opens, width(leading(data, header.define)))
    first = next((m.start() for m in [re.compile(rb"\S").search(data, opens, end)] if m), None)
    # A comment may stand at another depth than the code; it counts only where it is alone.
    shown = body[0].start if body else first
    indent = leading(data, shown) if shown is not None and not inline else None
    hollow = not rest or (len(rest) == 1 and rest[0].kind == "stub")
    span = (docstring.start, docstring.end) if docstring else None
    return Body(header, opens, span, first, end, end, end, inline, indent, hollow, meant)


def code_end(node: Node) -> int:
    """Where the last text of `node` ends that is no comment."""
    while inner := next(filter(_is_code, map(node.child, reversed(range(node.child_count)))), None):
        node = inner
    return node.end_byte


def _is_code(node: Node | None) -> bool:
    return node is not None and not node.type.endswith("comment") and node.end_byte > node.start_byte


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


def _colon(language: Language, data: bytes, line: LogicalLine) -> int:
    """The end of the colon that ends the header beginning at `line`, or of the line where there is none."""
    depth, end = 0, line.start
    for token in tokens(language, data, line.start, line.end):
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


def _statements(language: Language, data: bytes, behind: Span, inside: list[LogicalLine]) -> list[Statement]:
    """The statements of a body as far as lines tell them: the rest of its header's line, and each line `inside`."""
    spans = [(b.start, b.end) for b in inside]
    same = re.compile(rb"[ \t\f]*([^\s#])").match(data, *behind)
    spans[:0] = [(same.start(1), behind[1])] if same else []
    body: list[Statement] = []
    for start, last in spans:
        code = [t for t in tokens(language, data, start, last) if t.kind not in _BLANK]
        end = code[-1].end if code else last
        kind: Literal["docstring", "stub", "code"] = "code"
        if (
            not body
            and _DOC.fullmatch(data, start, end)
            and [t.kind for t in code if t.kind != "word"] == ["string"]
        ):
            kind = "docstring"
        elif STUB.fullmatch(data, start, end):
            kind = "stub"
        body.append(Statement(start, end, kind))
    return body
