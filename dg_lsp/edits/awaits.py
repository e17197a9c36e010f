"""Awaits: the calls of a function that are to be awaited, as one of them is now, or as it has become asynchronous."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from dg_lsp.edits.calls import call_of, calls, function_called
from dg_lsp.edits.functions import function_at, functions_called
from dg_lsp.edits.places import Place, Source, field_text
from dg_lsp.edits.spans import NAME
from dg_lsp.gaps import Edit
from dg_lsp.source.history import Change
from dg_lsp.source.names import around

# The ends of the kinds of nodes in which the value of a call is wanted at once.
_WANTED = ("assignment", "declarator", "declaration", "statement")


def awaited_places(source: Source, start: int, stop: int) -> Iterator[Place]:
    """Yield the edits that await the other calls of a function, where the bytes [start, stop) were put in.

    They are in asynchronous functions.  1. `async` was put into the header: then those calls whose value is wanted at
    once.  2. `await` was put before a call: then the calls of the same text that are in places like it.
    """
    new = source.document.data[start:stop]
    start += len(new) - len(new.lstrip())
    span = start, start + len(new.strip())
    if new.strip() == b"async":
        yield from _of_function(source, span)
    elif b"await" in new:
        yield from _like(source, span)


def _of_function(source: Source, span: tuple[int, int]) -> Iterator[Place]:
    """Yield the edits that await the calls of the function in whose header `span` is, as one of them is already."""
    function = function_at(source, (Change(0, 0, *span),))
    found = [n.parent for _, n in calls(source, function, ()) if n.parent] if function is not None else []
    one = next((n for n in found if n.parent and "await" in n.parent.type), None)
    for call in found:
        if _is_wanted(source, call) and _is_in_async(source, call):
            yield _awaited(source, call, one)


def _like(source: Source, span: tuple[int, int]) -> Iterator[Place]:
    """Yield the edits that await the calls of the same function as the call that is awaited at `span`."""
    nodes = source.nodes_at(*span)
    node = next((n for n in nodes if n.type.startswith("await") and n.named_child_count), None)
    call = node.named_child(0) if node is not None else None
    function = field_text(call, "function")
    if node is None or call is None or not function:
        return
    for use in source.names((NAME.findall(function) or [b""])[-1]):
        other = call_of(use)
        if other is None or other == call or field_text(other, "function") != function:
            continue
        is_like = (
            other.parent is not None and node.parent is not None and other.parent.type == node.parent.type
        )
        if is_like and _is_in_async(source, other):
            yield _awaited(source, other, call)


def _is_wanted(source: Source, call: Node) -> bool:
    """Return whether the value of `call` is wanted at once: it is assigned, or given to a function defined here.

    Other functions, such as `gather`, may take what is not awaited.
    """
    holder = call.parent
    if holder is None or holder.type.endswith(_WANTED):
        return holder is not None
    outer = holder.parent
    is_given = outer is not None and outer.child_by_field_name("arguments") == holder
    return is_given and bool(functions_called(source, function_called(source, holder)))


def _is_in_async(source: Source, node: Node) -> bool:
    """Return whether the innermost function around `node` is asynchronous."""
    kinds = re.compile(r"function|method|closure|lambda|async")
    function = next((one for one in around(node.parent) if kinds.search(one.type)), None)
    if function is None:
        return False
    body = function.child_by_field_name("body")
    end = body.start_byte if body is not None else function.start_byte + 20
    return re.search(rb"\basync\b", source.document.data[function.start_byte : end]) is not None


def _awaited(source: Source, call: Node, like: Node | None) -> Place:
    """Return the edit that awaits `call` as the call `like` is awaited, or else with the word before it."""
    data, waits = source.document.data, like.parent if like is not None else None
    lead, after = b"await ", b""
    if like is not None and waits is not None:
        lead, after = data[waits.start_byte : like.start_byte], data[like.end_byte : waits.end_byte]
    text = lead + (call.text or b"") + after
    return source.document, Edit(call.start_byte, call.end_byte, text.decode("utf-8", "replace"))
