"""The bodies of a text, from its tree or, where that is broken, from its lines.

Python's, which indentation holds together, are read by `indented_bodies`. Knows no gaps, cursors or edits.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from tree_sitter import Node

from dg_lsp.text.documents.lines import leading, line_end
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax import indented_bodies
from dg_lsp.text.syntax.body import OWNERS, Body, Header, Owner
from dg_lsp.text.syntax.brackets import OpenBracket, read
from dg_lsp.text.syntax.indented_bodies import Captures
from dg_lsp.text.syntax.items import head_of, without_arguments
from dg_lsp.text.syntax.lexer import Span, marks

_SPACE = re.compile(rb"[ \t\f]*")
_BLANK = re.compile(rb"\s*")
# What may stand before the head of an owner and still belongs to it, such as `export` or `template <class T>`.
_BEFORE = re.compile(rb"(?:\w+\s+|<[^{}();=]*>\s*)*\Z")
# A line that shows no indentation of a body's own, for it may stand anywhere: a label or a closing bracket.
_ANYWHERE = re.compile(rb"(?:case|default)\b|[\w$]+[ \t]*:(?![:=])|[)\]}]")


@dataclass(frozen=True, slots=True)
class Record:
    """What a query tells of one body: whose it is, its nodes with and without the header, a colon, the owner's name."""

    owner: Owner
    outer: Node
    body: Node
    colon: Node | None
    name: str


def bodies_of(language: Language, root: Node, data: bytes, span: Span | None = None) -> tuple[Body, ...]:
    """Every body below `root`, the tree of `data`, in the order of the text; with a `span` those that meet it."""
    found = language.captures(root, span)
    names: list[tuple[int, str]] = []
    bodies: list[Body] = []
    for record in _records(language, root, span):
        names = [(end, name) for end, name in names if record.outer.end_byte <= end]
        names.append((record.outer.end_byte, record.name))
        qualified = ".".join(name for _, name in names if name)
        start, define = _start(language, data, record.outer), record.outer.start_byte
        if record.colon is not None:
            header = Header(record.owner, start, define, record.colon.end_byte, qualified)
            marks = indented_bodies.marks_of(language, root, record.outer, record.body) if span else found
            bodies.append(indented_bodies.body_of(data, header, record.body, marks))
        elif (inside := _inside(record.body)) is not None:
            header = Header(record.owner, start, define, inside[0], qualified)
            bodies.append(_between_braces(language, data, header, inside, found))
    return tuple(sorted(bodies, key=_place))


def bodies_by_lines(language: Language, data: bytes, span: Span) -> tuple[Body, ...]:
    """Every body of the text `span`, a place that begins and ends with whole lines, for text that does not parse.

    Between braces where they match, and by indentation where one is missing; these have no names.
    """
    if language.style == "indent":
        return tuple(sorted(indented_bodies.bodies_by_lines(language, data, span), key=_place))
    bodies: list[Body] = []
    for opened in (o for o in read(language, data, *span).all if o.bracket == b"{"):
        if head := head_of(language, data, opened.line, opened.at):
            header = Header(head.owner, head.start, head.start, opened.at + 1, name="")
            inside = opened.at + 1, *_ends(data, opened, span[1])
            bodies.append(_between_braces(language, data, header, inside, {}))
    return tuple(sorted(bodies, key=_place))


def _between_braces(
    language: Language, data: bytes, header: Header, inside: tuple[int, int, int], found: Captures
) -> Body:
    """The Body behind `header`, whose text is between the first two of `inside`; the third is behind its brace.

    It is a stub where nothing of it counts, or only what `found` captures as not written yet.
    """
    opens, closes, stop = inside
    stubs = [(n.start_byte, n.end_byte) for n in found.get("stub", ())]
    hollow = _is_stub(language, data, (opens, closes), stubs)
    begins = _BLANK.match(data, opens, closes)
    first = begins.end() if begins and begins.end() < closes else None
    end = closes - _trailing(data, closes) if first is not None else opens
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
        indent=None if inline or first is None else _indent(language, data, first, end),
        hollow=hollow,
        meant=any(n.start_byte in (header.start, header.define) for n in found.get("stub.skip", ())),
    )


def _records(language: Language, root: Node, span: Span | None) -> list[Record]:
    """What the query tells of each body, the outer ones first; where several patterns match one, a name counts."""
    found: dict[Span, Record] = {}
    records = language.records(root, span)
    for owner in OWNERS:
        for record in records[owner]:
            outer, body, name = (record.get(f"{owner}.{part}") for part in ("outer", "body", "name"))
            if outer is None or body is None:
                continue
            key = body.start_byte, body.end_byte
            if key not in found or (name is not None and not found[key].name):
                names = ".".join(filter(None, (_name(record.get(f"{owner}.owner")), _name(name))))
                found[key] = Record(owner, outer, body, record.get(f"{owner}.colon"), names)
    return sorted(found.values(), key=lambda r: (r.outer.start_byte, -r.outer.end_byte, r.body.start_byte))


def _inside(body: Node) -> tuple[int, int, int] | None:
    """Behind the opening brace, before the closing one, and behind that; a brace that is missing has no width."""
    opening = next((c for c in body.children if c.type == "{" and not c.is_missing), None)
    if opening is None:
        return None
    closing = body.children[-1]
    if closing.type != "}" or closing.start_byte < opening.end_byte:
        return opening.end_byte, body.end_byte, body.end_byte
    return opening.end_byte, closing.start_byte, closing.end_byte


def _name(node: Node | None) -> str:
    """The name that a node says, with dots between its parts: `Stack.push` of `Stack<T>::push`."""
    text = node.text.strip(b"\"'") if node is not None and node.text else b""
    return re.sub(r"\s*(?:::|\.)\s*", ".", without_arguments(text).decode("utf-8", "replace"))


def _start(language: Language, data: bytes, outer: Node) -> int:
    """Where `outer` begins with what stands before its head: decorators, attributes, `export`."""
    start, node = outer.start_byte, outer
    while node.parent is not None and node.parent.end_byte == outer.end_byte:
        node = node.parent
        if node.start_byte < start and not _BEFORE.match(data, node.start_byte, start):
            break
        start = node.start_byte
    before = outer.prev_sibling
    while before is not None and not data[before.end_byte : start].strip():
        # A neighbour that ends like this is an item itself, with attributes of its own.
        whole = data.endswith((b"}", b";"), before.start_byte, before.end_byte)
        if whole or not language.words.above.match(data, before.start_byte):
            break
        start, before = before.start_byte, before.prev_sibling
    return start


def _ends(data: bytes, opened: OpenBracket, stop: int) -> Span:
    """Where a body's text ends and what is behind its brace; without one it goes as far as lines say."""
    if opened.closed >= 0:
        return opened.closed, opened.closed + 1
    until = opened.stop if opened.stop >= 0 else stop
    end = max(until - _trailing(data, until), opened.at + 1)
    return end, end


def _trailing(data: bytes, stop: int) -> int:
    """How much white space stands before `stop`."""
    low = max(stop - 80, 0)
    piece = data[low:stop]
    while not piece.strip() and low > 0:
        low = max(low - 80, 0)
        piece = data[low:stop]
    return len(piece) - len(piece.rstrip())


def _indent(language: Language, data: bytes, first: int, end: int) -> bytes | None:
    """The white space of the first line of a body that shows its indentation."""
    at, directive = first, language.words.directive
    while at < end:
        odd = _ANYWHERE.match(data, at) or (directive and data.startswith(directive, at))
        if not odd:
            return leading(data, at)
        found = _BLANK.match(data, line_end(data, at), end)
        at = found.end() if found else end
    return leading(data, first)


def _is_stub(language: Language, data: bytes, inside: Span, stubs: Iterable[Span]) -> bool:
    """Whether a body holds nothing but comments and at most one statement that says that it is not written yet."""
    start, stop = inside
    within = [s for s in stubs if start <= s[0] and s[1] <= stop]
    low, high = max(within, key=lambda s: s[1] - s[0], default=(stop, stop))
    return all(low <= first and end <= high for first, end in _code(language, data, start, stop))


def _code(language: Language, data: bytes, start: int, stop: int) -> Iterator[Span]:
    """The pieces of a text that are neither white space nor comments nor semicolons."""
    for kind, first, end in chain(marks(language, data, start, stop), [("", stop, stop)]):
        if piece := data[start:first].strip():
            begins = data.index(piece, start)
            yield begins, begins + len(piece)
        if kind not in ("comment", "newline", "end", "joined", ""):
            yield first, end
        start = end


def item_at(root: Node, offset: int) -> Node:
    """The last item at the top level that begins at or before `offset`, or `root` where there is none."""
    before = [n for n in root.children if n.start_byte <= offset and n.type != "comment"]
    return before[-1] if before else root


def _place(body: Body) -> tuple[int, int, int]:
    return body.header.define, -body.end, OWNERS.index(body.header.owner)
