"""The bodies of a text, from its tree: those between braces, and those that indentation holds together (Python)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tree_sitter import Node

from dg_lsp.budget import check
from dg_lsp.messages import Kind
from dg_lsp.source import python
from dg_lsp.source.items import head_of, without_arguments
from dg_lsp.source.language import OWNERS, Language, Owner
from dg_lsp.source.lexer import (
    Span,
    first_token,
    indentation,
    leading,
    line_end,
    line_start,
    tokens,
    width,
)

_BLANK = re.compile(rb"\s*")
_CASE = re.compile(rb"(?:case|default)\b")
# Text that may be before the head of an owner and still belongs to it, such as `export` or `template <class T>`.
_BEFORE = re.compile(rb"(?:\w+\s+|<[^{}();=]*>\s*)*\Z")
_CALLED = re.compile(rb"\w+\s*\(.*\)\s*", re.DOTALL)
_WORD = re.compile(rb"\w+")
_INNER = re.compile(rb"\w\w+\w\Z")
Captures = Mapping[str, Sequence[Node]]
StatementKind = Literal["docstring", "stub", "code"]
# The kind of gap that the body of an owner is, and the other way round.
KIND_OF: dict[Owner, Kind] = {"function": "function_body", "class": "class_body", "block": "block"}
# The kinds of tokens that say nothing.
NO_CODE = ("space", "comment", "newline", "joined")
# A comment that says only that something is to be done.
MARKER = re.compile(rb"\W*(?:TODO|FIXME|XXX)\W*")
OWNER_OF: dict[Kind, Owner] = {kind: owner for owner, kind in KIND_OF.items()}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a body itself, not of what is nested in it."""

    start: int
    end: int
    kind: StatementKind


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a body: [start, opens) with decorators or attributes. define: the beginning of its owner, such as
    its `def`.

    opens: the end of the colon or brace that the body follows. name: the owner's with its owners', where it has one.
    """

    owner: Owner
    start: int
    define: int
    opens: int
    name: str

    @property
    def last_name(self) -> str:
        """The owner's name without its owners'."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a function, a class or a block.

    opens: where its text may begin, after the header or the docstring. first: the first text there, None without. end:
    the end of its text. closes: where the closing brace begins; without one, equal to `end`. stop: after that brace.
    inline: its text is on the header's line. indent: the white space of its lines, where one shows it. is_placeholder:
    it holds only comments or a statement that marks it as not written yet. is_intentionally_empty: its header shows
    that it is to stay so.
    """

    header: Header
    opens: int
    docstring: Span | None
    first: int | None
    end: int
    closes: int
    stop: int
    inline: bool
    indent: bytes | None
    is_placeholder: bool
    is_intentionally_empty: bool

    @property
    def stub(self) -> bool:
        """Return whether it is not written yet, and is to be."""
        return self.is_placeholder and not self.is_intentionally_empty


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A function whose body is missing: the text with a placeholder for it, its tree, its functions, and this one."""

    data: bytes
    root: Node
    functions: tuple[Body, ...]
    own: Body


@dataclass(frozen=True, slots=True)
class Record:
    """The captures of one body: its owner, its nodes with and without the header, a colon, the owner's name."""

    owner: Owner
    outer: Node
    body: Node
    colon: Node | None
    name: str


def bodies_of(language: Language, root: Node, data: bytes, span: Span | None = None) -> tuple[Body, ...]:
    """Every body below `root`, the tree of `data`, in the order of the text; with a `span` those that meet it."""
    found = language.captures(root, span)
    around: list[Record] = []
    bodies: list[Body] = []
    for found_record in _records(language, root, data, span):
        around = [outer for outer in around if found_record.outer.end_byte <= outer.outer.end_byte]
        record = _owned(language, data, found_record, around[-1].owner if around else None)
        around.append(record)
        qualified = ".".join(outer.name for outer in around if outer.name)
        start, define = _start(language, data, record.outer), record.outer.start_byte
        if record.colon is not None:
            header = Header(record.owner, start, define, record.colon.end_byte, qualified)
            marks = marks_of(language, root, record.outer, record.body) if span else found
            bodies.append(body_of(data, header, record.body, marks))
        elif (inside := _inside(record.body)) is not None:
            header = Header(record.owner, start, define, inside[0], qualified)
            bodies.append(between_braces(language, data, header, inside, found))
    return tuple(sorted(bodies, key=sort_key))


def unwritten(language: Language, before: bytes, after: bytes) -> Unwritten | None:
    """The innermost named function whose body is missing between two texts; None where no function is round them."""
    data = before + language.placeholders["block"].encode() + after
    root, place = language.parse(data).root_node, len(before)
    functions = tuple(body for body in bodies_of(language, root, data) if body.header.owner == "function")
    around = [body for body in functions if body.header.name and body.header.opens <= place < body.stop]
    own = max(around, key=lambda body: body.header.opens, default=None)
    return None if own is None else Unwritten(data, root, functions, own)


def item_at(root: Node, offset: int) -> Node:
    """The last item at the top level that begins at or before `offset`, or `root` where there is none."""
    before = [n for n in root.children if n.start_byte <= offset and n.type != "comment"]
    return before[-1] if before else root


def describe(data: bytes, header: Header, body: Sequence[Statement], *, is_intentionally_empty: bool) -> Body:
    """The Body of a `header` and the statements after it (Python): a docstring first is its own, comments count."""
    docstring = body[0] if body and body[0].kind == "docstring" and header.owner != "block" else None
    rest = body[1:] if docstring else body
    inline = bool(body) and not re.search(rb"[\r\n]", data[header.opens : body[0].start])
    opens = docstring.end if docstring else header.opens
    if not (rest and rest[0].start < line_end(data, opens)):
        opens = _with_comment(data, opens)
    end = _with_comments(data, body[-1].end if body else opens, width(leading(data, header.define)))
    first = next((m.start() for m in [re.compile(rb"\S").search(data, opens, end)] if m), None)
    # A comment may be at another depth than the code; it counts only where it is alone.
    shown = body[0].start if body else first
    indent = leading(data, shown) if shown is not None and not inline else None
    is_placeholder = not rest or (len(rest) == 1 and rest[0].kind == "stub")
    span = (docstring.start, docstring.end) if docstring else None
    return Body(
        header, opens, span, first, end, end, end, inline, indent, is_placeholder, is_intentionally_empty
    )


def code_end(node: Node) -> int:
    """Return where the last text of `node` ends that is no comment."""
    while inner := next(filter(_is_code, map(node.child, reversed(range(node.child_count)))), None):
        node = inner
    return node.end_byte


def between_braces(
    language: Language, data: bytes, header: Header, inside: tuple[int, int, int], found: Captures
) -> Body:
    """The Body after `header`: its text between the first two of `inside`, its brace before the third."""
    opens, closes, stop = inside
    stubs = [n.byte_range for n in found.get("stub", ())]
    is_placeholder = has_only_placeholder(language, data, (opens, closes), stubs)
    begins = _BLANK.match(data, opens, closes)
    first = begins.end() if begins and begins.end() < closes else None
    end = closes - trailing(data, closes) if first is not None else opens
    inline = first is not None and first <= line_end(data, opens)
    closes = closes if stop > closes else end
    return Body(
        header=header,
        opens=opens,
        docstring=None,
        first=first,
        end=end,
        closes=closes,
        stop=max(stop, closes),
        inline=inline,
        indent=None if inline or first is None else _indent(language, data, header, (first, end)),
        is_placeholder=is_placeholder,
        is_intentionally_empty=any(
            n.start_byte in (header.start, header.define) for n in found.get("stub.skip", ())
        ),
    )


def _records(language: Language, root: Node, data: bytes, span: Span | None) -> list[Record]:
    """Return a Record of each body, the outer ones first; of several matches of one body, that with a name."""
    found: dict[Span, Record] = {}
    records = language.records(root, span)
    for owner in OWNERS:
        for record in records[owner]:
            outer, body, name = (record.get(f"{owner}.{part}") for part in ("outer", "body", "name"))
            if outer is None or body is None:
                continue
            key = body.start_byte, body.end_byte
            if key not in found or (name is not None and not found[key].name):
                names = ".".join(filter(None, (_name(data, record.get(f"{owner}.owner")), _name(data, name))))
                found[key] = Record(owner, outer, body, record.get(f"{owner}.colon"), names)
    return sorted(found.values(), key=lambda r: (r.outer.start_byte, -r.outer.end_byte, r.body.start_byte))


def _owned(language: Language, data: bytes, record: Record, around: Owner | None) -> Record:
    """`record`, in a body of `around`, with the owner that its header names where macros mislead the grammar.

    `class API Foo {` looks like a function of the type `class API`, and `each(x) {` in a function like another one.
    """
    start, end = record.outer.start_byte, record.body.start_byte
    if record.owner != "function" or not language.macros.loops:
        return record
    if is_loop(language, data, (start, end), around):
        return replace(record, owner="block", name="")
    word = _WORD.match(data, start, end)
    if word is not None and word[0] in language.words.classes:
        head = head_of(language, data, start, end)
        return replace(record, owner="class", name="") if head and head.owner == "class" else record
    return record


def is_loop(language: Language, data: bytes, header: Span, around: Owner | None) -> bool:
    """Return whether a `header` in a body of `around` is that of a macro, `each(x)`: a function there has a type."""
    inside = language.macros.loops and around in ("function", "block")
    return bool(inside and _CALLED.fullmatch(data, *header))


def _inside(body: Node) -> tuple[int, int, int] | None:
    """After the opening brace, before the closing one, and after that; a brace that is missing has no width."""
    opening = next((c for c in body.children if c.type == "{" and not c.is_missing), None)
    if opening is None:
        return None
    closing = body.children[-1]
    if closing.type != "}" or closing.is_missing or closing.start_byte < opening.end_byte:
        return opening.end_byte, body.end_byte, body.end_byte
    return opening.end_byte, closing.start_byte, closing.end_byte


def _name(data: bytes, node: Node | None) -> str:
    """The name that a node of `data` says, with dots between its parts: `Stack.push` of `Stack<T>::push`."""
    if node is None or _INNER.match(data, max(node.start_byte - 1, 0), node.end_byte + 1):
        # A part of a word is a name that only the parser reads, in the place of a macro.
        return ""
    text = data[node.start_byte : node.end_byte].strip(b"\"'")
    text = without_arguments(text) if b"<" in text else text
    return re.sub(r"\s*(?:::|\.)\s*", ".", text.decode("utf-8", "replace"))


def _start(language: Language, data: bytes, outer: Node) -> int:
    """Return where `outer` begins, decorators, attributes and `export` before its head included."""
    start, node = outer.start_byte, outer
    while node.parent is not None and node.parent.end_byte == outer.end_byte:
        check()
        node = node.parent
        if node.start_byte < start and not _BEFORE.match(data, node.start_byte, start):
            break
        start = node.start_byte
    before = outer.prev_sibling
    while before is not None and not data[before.end_byte : start].strip():
        # A neighbour that ends like this, or holds what it decorates, is an item itself, with attributes of its own.
        whole = data.endswith((b"}", b";"), before.start_byte, before.end_byte)
        whole = whole or before.child_by_field_name("definition") is not None
        if whole or not language.words.above.match(data, before.start_byte):
            break
        start, before = before.start_byte, before.prev_sibling
    return start


def trailing(data: bytes, stop: int) -> int:
    """Return the number of bytes of white space before `stop`."""
    low = max(stop - 80, 0)
    piece = data[low:stop]
    while not piece.strip() and low > 0:
        low = max(low - 80, 0)
        piece = data[low:stop]
    return len(piece) - len(piece.rstrip())


def _indent(language: Language, data: bytes, header: Header, inside: Span) -> bytes | None:
    """The white space of the first line of a body that shows its indentation; None where no line does."""
    (at, end), words, least = inside, language.words, indentation(data, header.define)
    while at < end:
        # A label, a directive or a closing bracket may be at any depth, and a comment at that of the header.
        directive = words.directive and data.startswith(words.directive, at)
        shallow, last = indentation(data, at) <= least, at
        if shallow and (token := first_token(language, data, at)).kind == "comment":
            last = token.end
        elif _CASE.match(data, at) or not (
            directive or words.labels.match(data, at) or data.startswith((b")", b"]", b"}"), at)
        ):
            return leading(data, at)
        found = _BLANK.match(data, line_end(data, last), end)
        at = found.end() if found else end
    return None


def has_only_placeholder(language: Language, data: bytes, inside: Span, stubs: Iterable[Span]) -> bool:
    """Return whether a body holds only comments and at most one statement that marks it as not written yet."""
    start, stop = inside
    within = [s for s in stubs if start <= s[0] and s[1] <= stop]
    low, high = max(within, key=lambda s: s[1] - s[0], default=(stop, stop))
    code = (token for token in tokens(language, data, start, stop) if token.kind not in NO_CODE)
    return all((low <= t.start and t.end <= high) or data[t.start : t.end] == b";" for t in code)


def sort_key(body: Body) -> tuple[int, int, int]:
    return body.header.define, -body.end, OWNERS.index(body.header.owner)


def body_of(data: bytes, header: Header, block: Node, marks: Captures) -> Body:
    """The Body after `header` whose statements are the node `block`; `marks` are what is captured in it."""
    kinds = _kinds(data, marks)
    body = [
        Statement(n.start_byte, code_end(n), kinds.get(n.byte_range, "code")) for n in _statements_of(block)
    ]
    is_intentionally_empty = any(n.start_byte == header.define for n in marks.get("stub.skip", ()))
    return describe(data, header, body, is_intentionally_empty=is_intentionally_empty)


def marks_of(language: Language, root: Node, outer: Node, block: Node) -> Captures:
    """Return the captures in the first statement of `block`, or in all of it where it has two at most."""
    parts = _statements_of(block)
    if not parts:
        return language.captures(root, (outer.start_byte, outer.start_byte + 1))
    start = outer.start_byte if len(parts) <= 2 else parts[0].start_byte
    return language.captures(root, (start, parts[: 2 if len(parts) <= 2 else 1][-1].end_byte))


def _statements_of(block: Node) -> list[Node]:
    return [n for n in block.named_children if n.type != "comment" and n.end_byte > n.start_byte]


def _kinds(data: bytes, found: Captures) -> dict[Span, Literal["docstring", "stub"]]:
    kinds: dict[Span, Literal["docstring", "stub"]] = {n.byte_range: "stub" for n in found.get("stub", ())}
    for node in found.get("docstring", ()):
        if python.DOCSTRING.fullmatch(data, node.start_byte, node.end_byte):
            kinds[node.start_byte, node.end_byte] = "docstring"
    return kinds


def _is_code(node: Node | None) -> bool:
    return node is not None and not node.type.endswith("comment") and node.end_byte > node.start_byte


def _with_comment(data: bytes, at: int) -> int:
    """`at`, moved after a comment (or semicolon) that ends its line."""
    found = re.compile(rb"[ \t\f]*;?[ \t\f]*(?:#[^\r\n]*)?").match(data, at)
    assert found is not None
    return at + len(found[0].rstrip(b" \t\f"))


def _with_comments(data: bytes, at: int, header: int) -> int:
    """`at`, moved after the comments that follow on its line or, deeper than `header` columns, below it."""
    at = _with_comment(data, at)
    below = re.compile(rb"[ \t\f\r\n]*(#[^\r\n]*)")
    while (found := below.match(data, at)) and indentation(data, found.start(1)) > header:
        if line_start(data, found.start(1)) <= at:
            break
        at = at + len(found[0].rstrip())
    return at
