"""Calls: the calls of a function, and the arguments that they give it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from dg_lsp.edits.classes import class_name, is_evident, owner_of
from dg_lsp.edits.functions import Function, parts_of
from dg_lsp.edits.places import Source
from dg_lsp.edits.sharing import may_share, shared_names
from dg_lsp.edits.spans import NAME, text_before
from dg_lsp.source.document import Document
from dg_lsp.source.history import Change
from dg_lsp.source.names import Name, binding, is_class


@dataclass(frozen=True, slots=True)
class ChangedCall:
    """A call of `function` whose arguments were changed. old, new: all of them."""

    arguments: Node
    old: list[bytes]
    new: list[bytes]
    function: bytes


# Where a call has its function, by language.
_CALLED = ("function", "name", "type", "constructor")
_CONSTRUCTORS = (b"__init__", b"constructor")


def calls(source: Source, function: Function, others: Sequence[Document]) -> Iterator[tuple[Source, Node]]:
    """Yield the arguments of the calls of `function`, each with its document.

    Those of a method have receivers that are evidently of its class.
    """
    name, word = function.name, function.word
    if name.role == "type" or word in _CONSTRUCTORS:
        yield from ((source, arguments) for arguments in _constructions(source, name))
        return
    mine = [n for n in source.names(word) if n.scope is None and _is_use(source, name, n)]
    found = [(source, mine)]
    if name.role == "variable" and name.scope is not None and name.scope.parent is None:
        same = (o for o in others if may_share(source, o, word))
        found += [shared_names(source, other, (word,)) for other in same]
    for there, names in found:
        yield from ((there, arguments) for arguments in arguments_in_calls_of(names))


def _constructions(source: Source, constructor: Name) -> list[Node]:
    """Return the arguments with which objects of the class of a `constructor` are made.

    There must be one such class, and no other constructor of it.
    """
    names = source.names(class_name(constructor))
    classes = [n for n in names if n.scope is not None and is_class(source.language, n.place)]
    headers = [n for n in names if n.place.type == "constructor_declaration"]
    return arguments_in_calls_of(names) if len(classes) == 1 and len(headers) < 2 else []


def _is_use(source: Source, name: Name, use: Name) -> bool:
    """Return whether `use` is one of the function that `name` defines."""
    if use.role == "member":
        return name.role == "member" and is_evident(source, use, owner_of(source.language, name))
    if use.role != "variable" or name.scope is None:
        return False
    scope = binding(source.language, use, source.names(use.node.text or b""))
    if scope is None:
        return False
    return is_class(source.language, scope) if name.role == "member" else scope == name.scope


def arguments_in_calls_of(names: Iterable[Name]) -> list[Node]:
    """Return the arguments of the calls whose functions `names` are."""
    found = [call_of(name) for name in names if name.scope is None]
    given = [call.child_by_field_name("arguments") for call in found if call is not None]
    return [arguments for arguments in given if arguments is not None]


def call_of(name: Name) -> Node | None:
    """Return the call whose function `name` is."""
    node, parent = name.node, name.node.parent
    if parent is not None and name.role == "member" and parent.child_by_field_name("arguments") is None:
        node, parent = parent, parent.parent
    if parent is None or parent.child_by_field_name("arguments") is None:
        return None
    called = next(filter(None, map(parent.child_by_field_name, _CALLED)), None)
    return parent if called is not None and called == node else None


def function_called(source: Source, arguments: Node) -> bytes:
    """Return the name of the function that `arguments` are given to: `area` for those of `box.area(2)`."""
    start = arguments.parent.start_byte if arguments.parent is not None else arguments.start_byte
    words = NAME.findall(source.document.data, start, arguments.start_byte)
    return words[-1] if words else b""


def call_around(nodes: Iterable[Node]) -> Node | None:
    """Return the first of `nodes` that is a call."""
    return next((node for node in nodes if node.child_by_field_name("arguments") is not None), None)


def arguments_around(source: Source, start: int, stop: int) -> Node | None:
    """Return the arguments of a call in whose brackets the bytes [start, stop) are."""
    call = call_around(source.nodes_at(start, stop))
    given = call.child_by_field_name("arguments") if call is not None else None
    return given if given is not None and given.start_byte < start <= stop < given.end_byte else None


def changed_call(source: Source, before: bytes, spans: Sequence[Change]) -> ChangedCall | None:
    """Return the call whose arguments are all that `spans` have changed since the text `before`."""
    arguments = arguments_around(source, spans[0].now, spans[-1].stop) if spans else None
    function = function_called(source, arguments) if arguments is not None else b""
    if arguments is None or not function:
        return None
    start, end = arguments.start_byte + 1, arguments.end_byte - 1
    old = parts_of(text_before(before, spans, start, end))
    return ChangedCall(arguments, old, parts_of(source.document.data[start:end]), function)


def given(arguments: Node) -> list[Node]:
    """Return the single arguments, without comments between them."""
    return [n for n in arguments.named_children if "comment" not in n.type]


def is_spread(argument: Node) -> bool:
    """Return whether `argument` may be several: `*names`, `...names`."""
    return "spl" in argument.type or "spread" in argument.type


def is_keyword(argument: Node) -> bool:
    """Return whether `argument` names its parameter: `size=2`."""
    return argument.type == "keyword_argument"
