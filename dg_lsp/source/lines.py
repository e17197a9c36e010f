"""Bodies by lines: those of a text that its grammar cannot read, by braces that match and by indentation."""

import re
from collections.abc import Iterator
from dataclasses import replace

from dg_lsp.budget import check
from dg_lsp.source import python
from dg_lsp.source.bodies import (
    NO_CODE,
    Body,
    Header,
    Statement,
    StatementKind,
    between_braces,
    describe,
    is_loop,
    sort_key,
    trailing,
)
from dg_lsp.source.brackets import OpenBracket, read
from dg_lsp.source.items import head_of, name_of
from dg_lsp.source.language import Language, Owner
from dg_lsp.source.lexer import LogicalLine, Span, logical_lines, tokens

# The header of a function that no word begins, and what one without a block has.
_CALLED = re.compile(rb"[^=]*[\w$]\s*\(")
_BODILESS = re.compile(rb"\b(?:abstract|native|extern|partial)\b|=>")


def needs_body(language: Language, data: bytes, start: int, offset: int) -> bool:
    """Return whether the statement up to `offset` is the header of a function that has to have a body.

    So it is in a class of Java or an `impl` of Rust, and not in an interface. start: a place before it, in no string.
    """
    braces = [one for one in read(language, data, start, offset).stack if one.bracket == b"{"]
    owner = head_of(language, data, braces[-1].line, braces[-1].at) if braces else None
    if owner is None or not language.words.bodied.match(owner.text):
        return False
    header = data[max(data.rfind(end, 0, offset) for end in (b";", b"{", b"}")) + 1 : offset]
    if language.words.functions:
        return not language.words.functions.isdisjoint(header.split())
    return _CALLED.match(header) is not None and not _BODILESS.search(header)


def bodies_by_lines(language: Language, data: bytes, span: Span) -> tuple[Body, ...]:
    """Every body of the text `span`, whole lines: between braces that match, by indentation where one is missing."""
    if language.style == "indent":
        return tuple(sorted(_indented(language, data, span), key=sort_key))
    bodies: list[Body] = []
    around: list[tuple[int, Owner, str]] = []
    for opened in (o for o in read(language, data, *span).all if o.bracket == b"{"):
        check()
        if head := head_of(language, data, opened.line, opened.at):
            inside = opened.at + 1, *_ends(data, opened, span[1])
            around = [outer for outer in around if opened.at < outer[0]]
            loop = is_loop(language, data, (head.start, opened.at), around[-1][1] if around else None)
            owner: Owner = "block" if loop and head.owner == "function" else head.owner
            around.append((inside[1], owner, name_of(language, replace(head, owner=owner))))
            name = ".".join(name for *_, name in around if name)
            header = Header(owner, head.start, head.start, opened.at + 1, name)
            bodies.append(between_braces(language, data, header, inside, {}))
    return tuple(sorted(bodies, key=sort_key))


def _indented(language: Language, data: bytes, span: Span) -> Iterator[Body]:
    """Every body of the text `span` by indentation alone."""
    # Read logical lines. Comments neither open nor close anything.
    lines = [line for line in logical_lines(language, data, *span) if not line.comment]
    owners: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        check()
        while owners and owners[-1][0] >= line.width:
            owners.pop()
        # A header opens a body; a line of code that is not deeper closes it. The body is the run of deeper lines.
        named = python.DEF.match(data, line.start) or python.CLASS.match(data, line.start)
        owner: Owner = "function" if named and named.re is python.DEF else "class" if named else "block"
        colon = _colon(language, data, line)
        if named is not None:
            owners.append((line.width, named[1].decode("utf-8", "replace")))
        elif not python.BLOCK.match(data, line.start) or data[colon - 1 : colon] != b":":
            continue
        above = _decorators(lines, number, data) if named else line.start
        # The text in between, at the indentation of its first line, is its body. A line without its colon is no header;
        # repair inserts one where it can.
        body = _statements(language, data, (colon, line.end), _body_lines(lines, number))
        owner_line = next((outer for outer in reversed(lines[:number]) if outer.width < line.width), None)
        empty = bool(
            python.ABSTRACT.search(data, above, line.start)
            or (owner_line and python.PROTOCOL.match(data, owner_line.start, owner_line.end))
        )
        header = Header(owner, above, line.start, colon, ".".join(name for _, name in owners))
        yield describe(data, header, body, is_intentionally_empty=empty)


def function_over(language: Language, data: bytes, start: int, offset: int) -> LogicalLine | None:
    """The header of the outermost function that is open at `offset`, read from `start`; None where there is none."""
    opened: list[LogicalLine] = []
    for line in logical_lines(language, data[:offset], start, offset):
        if not line.comment:
            opened = [above for above in opened if above.width < line.width]
            opened += [line] if python.DEF.match(data, line.start) else []
    return opened[0] if opened else None


def _ends(data: bytes, opened: OpenBracket, stop: int) -> Span:
    """Return where a body's text ends, and the text after its brace; without one it goes as far as lines say."""
    if opened.closed >= 0:
        return opened.closed, opened.closed + 1
    until = opened.stop if opened.stop >= 0 else stop
    end = max(until - trailing(data, until), opened.at + 1)
    return end, end


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


def _body_lines(lines: list[LogicalLine], number: int) -> list[LogicalLine]:
    stop = number + 1
    while stop < len(lines) and lines[stop].width > lines[number].width:
        stop += 1
    return lines[number + 1 : stop]


def _statements(language: Language, data: bytes, after: Span, inside: list[LogicalLine]) -> list[Statement]:
    """The statements of a body as far as lines tell them: the rest of its header's line, and each line `inside`."""
    spans = [(b.start, b.end) for b in inside]
    same = re.compile(rb"[ \t\f]*([^\s#])").match(data, *after)
    spans[:0] = [(same.start(1), after[1])] if same else []
    body: list[Statement] = []
    for start, last in spans:
        check()
        code = [t for t in tokens(language, data, start, last) if t.kind not in NO_CODE]
        end = code[-1].end if code else last
        kind: StatementKind = "code"
        if (
            not body
            and python.DOCSTRING.fullmatch(data, start, end)
            and [t.kind for t in code if t.kind != "word"] == ["string"]
        ):
            kind = "docstring"
        elif python.STUB.fullmatch(data, start, end):
            kind = "stub"
        body.append(Statement(start, end, kind))
    return body
