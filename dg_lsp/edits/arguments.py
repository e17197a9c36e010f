"""Arguments: the calls of a function that has got or lost a parameter, or has in one call got or lost an argument."""

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from dg_lsp.edits.calls import calls, changed_call, given, is_keyword, is_spread
from dg_lsp.edits.functions import (
    function_at,
    functions_called,
    is_receiver,
    parameter_names,
    parts_of,
)
from dg_lsp.edits.places import Place, Source
from dg_lsp.edits.spans import text_before
from dg_lsp.gaps import Edit
from dg_lsp.source.document import Document
from dg_lsp.source.history import Change
from dg_lsp.source.names import is_class


def parameter_places(
    source: Source, before: bytes, spans: Sequence[Change], others: Sequence[Document] = ()
) -> Iterator[Place]:
    """Yield the edits of the calls of a function that has got, or lost, a parameter.

    A parameter without a default becomes an argument of its own name where a variable of that name is known.
    """
    function, data = function_at(source, spans), source.document.data
    if function is None or not function.inside[0] <= spans[0].now <= spans[-1].stop <= function.inside[1]:
        return
    then = parts_of(text_before(before, spans, *function.inside))
    now = parts_of(data[slice(*function.inside)])
    index, grows = _difference(then, now)
    if index is None or is_receiver((now if grows else then)[index]):
        return
    word = (parameter_names(source, function.parameters)[index:] or [b""])[0] if grows else b""
    if grows and (not word or any(sign in now[index] for sign in (b"=", b"?", b"..."))):
        return
    implied = bool(then) and is_receiver(then[0])
    at = index - implied
    for there, arguments in _calls_with(calls(source, function, others), len(then) - implied):
        if any(map(is_keyword, given(arguments)[: at + 1])):
            continue
        if not grows:
            yield there.document, _removed(given(arguments), at)
        elif _is_known(there, word, arguments):
            yield there.document, _added(arguments, at, word)


def argument_places(source: Source, before: bytes, spans: Sequence[Change]) -> Iterator[Place]:
    """Yield the edits that put in, or remove, an argument in the other calls of a function as in one call.

    The function must be defined here, and must want as many arguments as that call has now.
    """
    data = source.document.data
    call = changed_call(source, before, spans)
    functions = functions_called(source, call.function) if call is not None else []
    if call is None or len(functions) != 1:
        return
    then, now = call.old, call.new
    index, grows = _difference(then, now)
    wanted = parts_of(data[slice(*functions[0].inside)])
    implied = bool(wanted) and is_receiver(wanted[0])
    if index is None or len(wanted) - implied != len(now):
        return
    if any(b"=" in part or b"*" in part[:2] for part in wanted):
        return
    for there, arguments in _calls_with(calls(source, functions[0], ()), len(then)):
        added = _added(arguments, index, now[index]) if grows else _removed(given(arguments), index)
        yield there.document, added


def _calls_with(found: Iterator[tuple[Source, Node]], count: int) -> Iterator[tuple[Source, Node]]:
    """Yield the arguments of those calls that give `count` of them, each in one place."""
    for source, arguments in found:
        nodes = given(arguments)
        if len(nodes) == count and not any(map(is_spread, nodes)):
            yield source, arguments


def _difference(old: list[bytes], new: list[bytes]) -> tuple[int | None, bool]:
    """Return which part was put in (True) or removed (False) between two lists; None where more has changed."""
    long, short = (new, old) if len(new) > len(old) else (old, new)
    found = (k for k in range(len(long)) if [*long[:k], *long[k + 1 :]] == short)
    return next(found, None), long is new


def _removed(nodes: list[Node], at: int) -> Edit:
    """Return the edit that removes a single argument with one comma."""
    if at > 0:
        return Edit(nodes[at - 1].end_byte, nodes[at].end_byte, "")
    end = nodes[1].start_byte if len(nodes) > 1 else nodes[0].end_byte
    return Edit(nodes[0].start_byte, end, "")


def _added(arguments: Node, at: int, new: bytes) -> Edit:
    """Return the edit that puts a `new` argument in at the place `at`, or after the last one."""
    nodes, text = given(arguments), new.decode("utf-8", "replace")
    if at < len(nodes):
        return Edit(nodes[at].start_byte, nodes[at].start_byte, f"{text}, ")
    if nodes:
        return Edit(nodes[-1].end_byte, nodes[-1].end_byte, f", {text}")
    return Edit(arguments.start_byte + 1, arguments.start_byte + 1, text)


def _is_known(source: Source, word: bytes, call: Node) -> bool:
    """Return whether a variable called `word` is defined before `call`, in a scope around it."""
    for name in source.names(word):
        scope = name.scope
        if scope is None or name.role != "variable" or is_class(source.language, scope):
            continue
        if scope.start_byte <= name.start < call.start_byte and call.end_byte <= scope.end_byte:
            return True
    return False
