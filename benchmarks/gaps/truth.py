"""The places of a valid file by its tree: bodies, lists, expressions, statements, strings, comments.

Knows the captures of gaps.scm; trims what they hold by its own rules, so that those of the gaps can be wrong.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from tree_sitter import Node

from benchmarks.gaps.place import Place, Span, Truth, trimmed
from benchmarks.gaps.truth_python import suites
from dg_lsp.messages import Kind
from dg_lsp.source.language import Language, Owner

_OWNERS: dict[Owner, Kind] = {"function": "function_body", "class": "class_body", "block": "block"}
_LISTS: tuple[Kind, ...] = ("arguments", "parameters", "collection")
_PAIRS = {b"(": b")", b"[": b"]", b"{": b"}"}
_RAW = re.compile(rb'(?:u8|[uUL])?R"([^()\s\\]*)\(')
_OPENING = re.compile(rb"[A-Za-z@$]*(#*)(\"\"\"|'''|[\"'`])")
_COMMENT = re.compile(rb"(?P<line>//+!?|#+)|/\*+")


@lru_cache(maxsize=512)
def truth_of(language: Language, data: bytes) -> Truth:
    """The places of a valid file."""
    tree = language.parse(data)
    found = language.captures(tree.root_node)
    places: dict[str, list[Place]] = {kind: [] for kind in (*_OWNERS.values(), *_LISTS)}
    if language.style == "indent":
        places |= suites(data)
    else:
        for owner, kind in _OWNERS.items():
            places[kind] = list(_braced(language, tree.root_node, data, owner))
    for kind in _LISTS:
        places[kind] = [p for n in found.get(kind, ()) for p in _listed(data, kind, n)]
    places["string"] = [p for n in found.get("string", ()) for p in _quoted(data, "string", n)]
    places["comment"] = [p for n in found.get("comment", ()) for p in _commented(data, n)]
    # Code inside a string can be asked for as either.
    places["mixed"] = [_whole(data, "string", n) for n in found.get("string", ()) if _holds_code(n)]
    # Nobody need fill an empty constructor.
    places["meant"] = [_whole(data, "function_body", n) for n in found.get("stub.skip", ())]
    places["expression"] = [_whole(data, "expression", n) for n in found.get("expression", ())]
    if language.style != "indent":
        bodies = [p for kind in _OWNERS.values() for p in places[kind]]
        nodes = [n for n in found.get("statement", ()) if "comment" not in n.type]
        places["statement"] = [_statement(data, n, bodies) for n in nodes]
    ordered = {k: tuple(sorted(set(v), key=lambda p: (p.opens, -p.closes))) for k, v in places.items()}
    return Truth(language, data, ordered)


def _braced(language: Language, root: Node, data: bytes, owner: Owner) -> Iterator[Place]:
    """The bodies of one owner that are between braces."""
    for record in language.records(root)[owner]:
        node, body = record[f"{owner}.outer"], record.get(f"{owner}.body")
        braces = [c for c in body.children if c.type in ("{", "}")] if body else []
        if len(braces) > 1 and braces[0].type == "{" and braces[-1].type == "}":
            inside = braces[0].end_byte, braces[-1].start_byte
            yield trimmed(data, _OWNERS[owner], (node.start_byte, node.end_byte), inside)


def _listed(data: bytes, kind: Kind, node: Node) -> Iterator[Place]:
    """A list between brackets, empty or not."""
    start, end = node.start_byte, node.end_byte
    text = data[start:end]
    # A literal may have its type before the braces, a match its keyword.
    opening = b"{" if kind == "collection" and text.endswith(b"}") else text[:1]
    at = text.find(opening)
    if at >= 0 and opening in _PAIRS and text.endswith(_PAIRS[opening]):
        place = trimmed(data, kind, (start, end), (start + at + 1, end - 1))
        # A tuple without its end looks like any other parenthesis.
        yield replace(place, clear=kind != "collection" or opening != b"(")


def _quoted(data: bytes, kind: Kind, node: Node) -> Iterator[Place]:
    """A string that holds something, and no code."""
    start, end = node.start_byte, node.end_byte
    inside = unquoted(data[start:end])
    if inside is None or _holds_code(node):
        return
    place = trimmed(data, kind, (start, end), (start + inside[0], start + inside[1]))
    if place.end > place.start:
        yield place


def _holds_code(node: Node) -> bool:
    return any("substitution" in c.type or "interpolation" in c.type for c in node.children)


def unquoted(text: bytes) -> Span | None:
    """The span between the quotes of a string of any of the languages; None where it has none."""
    if raw := _RAW.match(text):
        shut = b")" + raw[1] + b'"'
        return (raw.end(), len(text) - len(shut)) if text.endswith(shut) else None
    opening = _OPENING.match(text)
    if opening is None:
        return None
    shut = opening[2] + opening[1]
    closed = text.endswith(shut) and len(text) >= opening.end() + len(shut)
    return (opening.end(), len(text) - len(shut)) if closed else None


def _commented(data: bytes, node: Node) -> Iterator[Place]:
    """A comment of one line that holds something."""
    start, end = node.start_byte, node.end_byte
    text = data[start:end].rstrip(b"\n")
    begins = _COMMENT.match(text)
    if begins is None or b"\n" in text or not text[begins.end() :].strip(b" */"):
        return
    close = 0 if begins["line"] else 2
    yield trimmed(
        data, "comment", (start, start + len(text)), (start + begins.end(), start + len(text) - close)
    )


def _whole(data: bytes, kind: Kind, node: Node) -> Place:
    span = node.start_byte, node.end_byte
    return trimmed(data, kind, span, span)


def _statement(data: bytes, node: Node, bodies: list[Place]) -> Place:
    span = node.start_byte, node.end_byte
    # An expression in markup has no end of its own, and a signature may become the header of a function.
    strange = "signature" in node.type or (node.parent is not None and node.parent.type == "jsx_expression")
    leaf = not strange and not any(span[0] <= b.opens and b.closes <= span[1] for b in bodies)
    place = trimmed(data, "statement", span, span)
    return Place("statement", span, place.opens, place.start, place.end, place.closes, leaf)
