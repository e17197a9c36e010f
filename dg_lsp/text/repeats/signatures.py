"""Signatures: the other places of a change to a function's header: its other headers, and its calls."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tree_sitter import Node

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import Change
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.repeats.classes import (
    TOKENS,
    Place,
    Source,
    class_name,
    is_evident,
    name_of,
    owner_of,
    receiver_text,
    related,
    source_of,
)
from dg_lsp.text.repeats.lines import NAME
from dg_lsp.text.repeats.renames import may_share, shared_names
from dg_lsp.text.syntax.names import Name, binding, class_of, is_class, name_at

_PARAMETERS = re.compile(r"parameters\Z|parameter_list\Z")
_FUNCTION = re.compile(r"function|method|signature|declaration|definition")
SELF = re.compile(rb"&?(?:'\w+ )?(?:mut )?self\b|cls\Z")
_OPEN, _CLOSE = b"([{<", b")]}>"
# Where a call has its function, by language.
_CALLED = ("function", "name", "type", "constructor")
_CONSTRUCTORS = (b"__init__", b"constructor")


def header_places(
    source: Source, before: bytes, spans: Sequence[Change], others: Sequence[Document] = ()
) -> Iterator[Place]:
    """Yield the edits that change the other headers of a function as `spans` have changed one of them.

    They are of the same function: a prototype, or the method of a class that implements an interface or overrides
    another class, also in `others`. The tokens from the changed ones to the name and the parameters must have been the
    same before, but for the names of parameters that were not changed.
    """
    found = header_at(source, spans)
    if found is None:
        return
    name, data = found, source.document.data
    span = Change(spans[0].start, spans[-1].end, spans[0].now, spans[-1].stop)
    end = _parameters_end(name)
    low, high = min(span.now, name.start, end), max(span.stop, end)
    old = before[low - span.now + span.start : high - span.stop + span.end]
    tokens, at = list(TOKENS.finditer(old)), span.now - low
    first = next((n for n, t in enumerate(tokens) if t.end() > at), len(tokens))
    last = next((n for n, t in enumerate(tokens) if t.start() >= at + span.end - span.start), len(tokens))
    mine = _unnamed(source, name, tokens, range(first, last))
    new = data[span.now : span.stop].decode("utf-8", "replace")
    for there, other in _headers(source, name, others):
        theirs = list(TOKENS.finditer(there.document.data, *_header(other)))
        yours = _unnamed(there, other, theirs)
        shifts = range(len(theirs) - len(mine) + 1)
        shift = next((n for n in shifts if yours[n : n + len(mine)] == mine), None)
        if shift is not None and not _is_done(
            yours, range(shift, shift + len(mine)), TOKENS.findall(data, span.now, span.stop)
        ):
            to = theirs[shift + first].start() if first < len(mine) else theirs[shift + first - 1].end()
            yield there.document, Edit(to, theirs[shift + last - 1].end() if first < last else to, new)


def _is_done(tokens: list[bytes], at: range, new: list[bytes]) -> bool:
    """Return whether the `new` tokens are before or behind those `at` some place already."""
    return bool(new) and new in (
        tokens[max(at.start - len(new), 0) : at.start],
        tokens[at.stop : at.stop + len(new)],
    )


def _unnamed(
    source: Source, name: Name, tokens: Sequence[re.Match[bytes]], kept: range = range(0)
) -> list[bytes]:
    """Return the texts of `tokens` of the header of `name`, with numbers in place of its parameters' names.

    kept: the tokens that stay as they are.
    """
    texts = [t[0] for t in tokens]
    words = [word for word in _names_of(source, parameter_list(name)) if word in texts]
    return [
        b"%d." % words.index(text) if text in words and n not in kept else text
        for n, text in enumerate(texts)
    ]


def _headers(source: Source, name: Name, others: Sequence[Document]) -> Iterator[tuple[Source, Name]]:
    """Yield the other definitions of the function that `name` defines, each with its document.

    In another document one of them must be a prototype, or in a class that names the other one.
    """
    word, by_headers = name.node.text or b"", "headers" in source.language.names.get("shares", ())
    for other in source.names(word):
        if other.start != name.start and _is_same(source, name, other):
            yield source, other
    for document in others:
        if may_share(source, document, word) and (by_headers or name.role == "member"):
            there, names = (
                shared_names(source, document, (word,)) if by_headers else (source_of(document), [])
            )
            if name.role == "member":
                names = [n for n in there.names(word) if _is_same(there, name, n)]
            for other in names:
                is_function = parameter_list(other) is not None and (name.role == "member" or other.scope)
                if is_function and (not by_headers or _has_body(name) != _has_body(other)):
                    yield there, other


def is_in_body(name: Name, spans: Sequence[Change]) -> bool:
    """Return whether all `spans` are in the body of the function that `name` defines."""
    body = _function(name).child_by_field_name("body")
    return body is not None and body.start_byte <= spans[0].now and spans[-1].stop <= body.end_byte


def _has_body(name: Name) -> bool:
    return _function(name).child_by_field_name("body") is not None


def _function(name: Name) -> Node:
    """Return the function that `name` defines, which is not the place of the name behind `Class::`."""
    node = name.place
    while node.type in ("qualified_identifier", "function_declarator") and node.parent is not None:
        node = node.parent
    return node


def call_places(
    source: Source, before: bytes, spans: Sequence[Change], others: Sequence[Document] = ()
) -> Iterator[Place]:
    """Yield the edits of the calls of a function that has got, or lost, a parameter.

    A parameter without a default becomes an argument of its own name where a variable of that name is known.
    """
    name = header_at(source, spans)
    parameters = parameter_list(name) if name is not None else None
    if name is None or parameters is None:
        return
    data = source.document.data
    first, last = spans[0], spans[-1]
    if not parameters.start_byte < first.now <= last.stop < parameters.end_byte:
        return
    old = before[parameters.start_byte - first.now + first.start : parameters.end_byte - last.stop + last.end]
    then, now = parts_of(old), parts_of(data[parameters.start_byte : parameters.end_byte])
    index, grows = _difference(then, now)
    if index is None or any(SELF.match(part) for part in (then[:1] if index == 0 else ())):
        return
    implied = bool(then) and SELF.match(then[0]) is not None
    word = _parameter(source, parameters, index) if grows else b""
    if grows and (not word or b"=" in now[index] or b"?" in now[index] or b"..." in now[index]):
        return
    for there, call in calls(source, name, others):
        arguments = [n for n in call.named_children if "comment" not in n.type]
        at = index - implied
        if len(arguments) != len(then) - implied or any(is_spread(n) for n in arguments):
            continue
        if any(n.type == "keyword_argument" for n in arguments[: at + 1]):
            continue
        if not grows:
            yield there.document, _removed(arguments, at)
        elif _is_known(there, word, call):
            yield there.document, _added(call, arguments, at, word.decode())


def is_spread(argument: Node) -> bool:
    return "spl" in argument.type or "spread" in argument.type


def argument_places(source: Source, before: bytes, spans: Sequence[Change]) -> Iterator[Place]:
    """Yield the edits that put in, or remove, an argument in the other calls of a function as in one call.

    The function must be defined here, and must want as many arguments as that call has now.
    """
    first, last = spans[0], spans[-1]
    function, given = arguments_around(source, first.now, last.stop)
    if given is None:
        return
    old = before[given.start_byte - first.now + first.start : given.end_byte - last.stop + last.end]
    index, grows = _difference(parts_of(old), now := parts_of(given.text or b""))
    definitions = [n for n in source.names(function) if n.scope and parameter_list(n)] if function else []
    parameters = parameter_list(definitions[0]) if len(definitions) == 1 else None
    if index is None or parameters is None:
        return
    wanted = parts_of(parameters.text or b"")
    implied = bool(wanted) and SELF.match(wanted[0]) is not None
    if len(wanted) - implied != len(now) or any(b"=" in part or b"*" in part[:2] for part in wanted):
        return
    for there, other in calls(source, definitions[0], ()):
        arguments = [n for n in other.named_children if "comment" not in n.type]
        if len(arguments) == len(parts_of(old)) and not any(is_spread(n) for n in arguments):
            if grows:
                yield there.document, _added(other, arguments, index, now[index].decode("utf-8", "replace"))
            else:
                yield there.document, _removed(arguments, index)


def arguments_around(source: Source, start: int, stop: int) -> tuple[bytes, Node | None]:
    """Return the name of the function of the call in whose arguments the bytes [start, stop) are, and its arguments."""
    call = source.root.descendant_for_byte_range(start, stop)
    while call is not None and call.child_by_field_name("arguments") is None:
        call = call.parent
    given = call.child_by_field_name("arguments") if call is not None else None
    if call is None or given is None or not given.start_byte < start <= stop < given.end_byte:
        return b"", None
    named = NAME.findall(source.document.data, call.start_byte, given.start_byte)
    return named[-1] if named else b"", given


def arguments_of(source: Source, function: bytes) -> list[Node]:
    """Return the arguments of all calls of what is called `function`."""
    return _given_to(source.names(function))


def _given_to(names: Iterable[Name]) -> list[Node]:
    """Return the arguments of the calls whose functions `names` are."""
    found = [_call_of(name) for name in names if name.scope is None]
    given = [call.child_by_field_name("arguments") for call in found if call is not None]
    return [arguments for arguments in given if arguments is not None]


def _difference(old: list[bytes], new: list[bytes]) -> tuple[int | None, bool]:
    """Return which part was put in (True) or removed (False) between two lists; None where more has changed."""
    long, short = (new, old) if len(new) > len(old) else (old, new)
    found = (k for k in range(len(long)) if [*long[:k], *long[k + 1 :]] == short)
    return next(found, None), long is new


def awaited_places(source: Source, span: tuple[int, int]) -> Iterator[Place]:
    """Yield the edits that await the other calls of a function.

    One of them is awaited now: then those in places like it. Or the function has become `async`.
    """
    data = source.document.data
    new = data[slice(*span)]
    start = span[0] + len(new) - len(new.lstrip())
    span = start, start + len(new.strip())
    if new.strip() == b"async":
        name = header_at(source, (Change(0, 0, *span),))
        found = [n.parent for _, n in calls(source, name, ()) if n.parent] if name is not None else []
        one = next((n for n in found if n.parent and "await" in n.parent.type), None)
        yield from (
            _awaited(source, n, one) for n in found if _is_awaitable(source, n) and _is_async(source, n)
        )
        return
    node = source.root.descendant_for_byte_range(*span)
    while node is not None and not (node.type.startswith("await") and node.named_child_count):
        node = node.parent
    call = node.named_child(0) if node is not None else None
    function = call.child_by_field_name("function") if call is not None else None
    if node is None or call is None or function is None or b"await" not in new:
        return
    words = NAME.findall(function.text or b"")
    for use in source.names(words[-1]) if words else ():
        other = _call_of(use)
        if other is None or other.id == call.id or other.parent is None or node.parent is None:
            continue
        callee = other.child_by_field_name("function")
        if callee is None or callee.text != function.text or other.parent.type != node.parent.type:
            continue
        if _is_async(source, other):
            yield _awaited(source, other, call)


def _is_awaitable(source: Source, call: Node) -> bool:
    """Return whether the value of `call` is wanted at once: it is assigned, or given to a function defined here.

    Other functions, such as `gather`, may take what is not awaited.
    """
    around = call.parent
    if around is None or around.type.endswith(("assignment", "declarator", "declaration", "statement")):
        return around is not None
    outer = around.parent
    given = outer.child_by_field_name("arguments") if outer is not None else None
    if outer is None or given is None or given.id != around.id:
        return False
    words = NAME.findall(source.document.data, outer.start_byte, given.start_byte)
    names = source.names(words[-1]) if words else ()
    return any(n.scope is not None and parameter_list(n) is not None for n in names)


def _awaited(source: Source, call: Node, like: Node | None) -> Place:
    """Return the edit that awaits `call` as the call `like` is awaited, or else with the word before it."""
    data, around = source.document.data, like.parent if like is not None else None
    lead, behind = b"await ", b""
    if like is not None and around is not None:
        lead, behind = data[around.start_byte : like.start_byte], data[like.end_byte : around.end_byte]
    text = lead + (call.text or b"") + behind
    return source.document, Edit(call.start_byte, call.end_byte, text.decode("utf-8", "replace"))


def parameters_of(source: Source, function: Node) -> list[bytes]:
    """Return the names of the parameters of `function`, in order; `self` is left out."""
    names = _names_of(source, function.child_by_field_name("parameters"))
    return [name for name in names if name and not SELF.match(name)]


def _names_of(source: Source, parameters: Node | None) -> list[bytes]:
    """Return the name of each of the `parameters`, empty where it has none."""
    count = len(parameters.named_children) if parameters is not None else 0
    return [_parameter(source, parameters, n) for n in range(count)] if parameters is not None else []


def adds_parameter(source: Source, edit: Edit) -> bool:
    """Return whether `edit` gives a function more parameters than it has, or fewer."""
    node = source.root.descendant_for_byte_range(edit.start, edit.end)
    while node is not None and not _PARAMETERS.search(node.type):
        node = node.parent
    if node is None:
        return False
    data, start, end = source.document.data, node.start_byte, node.end_byte
    new = data[start : edit.start] + edit.text.encode() + data[edit.end : end]
    return len(parts_of(data[start:end])) != len(parts_of(new))


def header_at(source: Source, spans: Sequence[Change]) -> Name | None:
    """Return the name of the function in whose header all `spans` are; that of a constructor has its class as scope."""
    node = source.root.descendant_for_byte_range(spans[0].now, spans[-1].stop)
    while node is not None:
        if _FUNCTION.search(node.type):
            named = node
            while (inner := named.child_by_field_name("declarator")) is not None:
                named = inner
            leaf = named if named.id != node.id else node.child_by_field_name("name")
            name = (
                name_at(source.language, source.root, leaf.start_byte, leaf.end_byte)
                if leaf is not None
                else None
            )
            if name is not None and node.type == "constructor_declaration":
                name = replace(name, scope=class_of(source.language, name.node))
            if name is not None and name.scope is not None and parameter_list(name) is not None:
                start, stop = _header(name)
                return name if start <= spans[0].now and spans[-1].stop <= stop else None
        node = node.parent
    return None


def parameter_list(name: Name) -> Node | None:
    """Return the list of parameters of the function that `name` defines."""
    node, last = name.node.parent, _function(name)
    while node is not None and node.start_byte >= last.start_byte:
        found = node.child_by_field_name("parameters")
        if found is not None or node.id == last.id:
            return found
        node = node.parent
    return None


def _parameters_end(name: Name) -> int:
    found = parameter_list(name)
    return found.end_byte if found is not None else name.end


def _header(name: Name) -> tuple[int, int]:
    """Return the span from the beginning of a function to its body."""
    node = _function(name)
    body = node.child_by_field_name("body")
    return node.start_byte, body.start_byte if body is not None else node.end_byte


def _is_same(source: Source, name: Name, other: Name) -> bool:
    """Return whether two definitions are of one function; `source` is the document of the `other` one."""
    if parameter_list(other) is None or name.role != other.role or name.scope is None:
        return False
    if name.role != "member":
        return other.scope is not None and name.scope.id == other.scope.id
    owner = owner_of(source.language, name)
    if other.scope is None:
        # Behind `Class::`.
        return _has_body(other) and receiver_text(other) == name_of(owner)
    theirs = owner_of(source.language, other)
    return related(owner, theirs) or _implements(source, theirs, owner)


def _implements(source: Source, one: Node, other: Node) -> bool:
    """Return whether the method `one` is of a type that has all methods of the interface `other`, two at least.

    So it is in Go, where types do not name the interfaces that they implement.
    """
    wanted = {n.text for n in _elements(other)}
    named = name_of(one)
    if len(wanted) < 2 or one.child_by_field_name("receiver") is None:
        return False
    methods = [n for n in source.root.children if n.child_by_field_name("receiver") is not None]
    names = [n.child_by_field_name("name") for n in methods if name_of(n) == named]
    return wanted <= {n.text for n in names if n is not None}


def _elements(interface: Node) -> list[Node]:
    """Return the names of the methods of an interface."""
    body = interface.child_by_field_name("type")
    methods = [n.child_by_field_name("name") for n in body.named_children] if body is not None else []
    return [n for n in methods if n is not None] if body is not None and "interface" in body.type else []


def parts_of(text: bytes) -> list[bytes]:
    """Return the parts of a list in brackets, without blanks at their ends: `(a, b: T<c, d>)` has two."""
    parts, depth, start = list[bytes](), 0, 1
    for at in range(1, len(text) - 1):
        byte = text[at : at + 1]
        if byte in _OPEN:
            depth += 1
        elif byte in _CLOSE and text[at - 1 : at] not in (b"-", b"="):
            depth -= 1
        elif byte == b"," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:-1].strip())
    return parts if parts[-1] else parts[:-1]


def _parameter(source: Source, parameters: Node, index: int) -> bytes:
    """Return the name of the parameter `index`."""
    children = [n for n in parameters.named_children if "comment" not in n.type]
    if index >= len(children):
        return b""
    node = children[index]
    for match in NAME.finditer(source.document.data, node.start_byte, node.end_byte):
        name = name_at(source.language, source.root, match.start(), match.end())
        if name is not None and name.parameter:
            return match[0]
    return b""


def calls(source: Source, name: Name, others: Sequence[Document]) -> Iterator[tuple[Source, Node]]:
    """Yield the arguments of the calls of the function that `name` defines, each with its document."""
    word = name.node.text or b""
    if name.role == "type" or word in _CONSTRUCTORS:
        yield from _constructions(source, name)
        return
    mine = [n for n in source.names(word) if n.scope is None and _is_use(source, name, n)]
    strange = (n for n in source.names(word) if n.role == "member" and n.scope and n.start != name.start)
    if name.role == "member" and not all(_is_same(source, name, n) for n in strange):
        return
    found = [(source, mine)]
    if name.role == "variable" and name.scope is not None and name.scope.parent is None:
        same = (o for o in others if may_share(source, o, word))
        found += [shared_names(source, other, (word,)) for other in same]
    for there, names in found:
        for arguments in _given_to(names):
            yield there, arguments


def _constructions(source: Source, name: Name) -> Iterator[tuple[Source, Node]]:
    """Yield the arguments with which objects of the class that has the constructor `name` are made.

    There must be one such class, and no other constructor of it.
    """
    word = class_name(name)
    names = source.names(word)
    classes = [n for n in names if n.scope is not None and is_class(source.language, n.place)]
    headers = [n for n in names if n.place.type == "constructor_declaration"]
    if not word or len(classes) != 1 or len(headers) > 1:
        return
    for arguments in _given_to(names):
        yield source, arguments


def _is_use(source: Source, name: Name, use: Name) -> bool:
    """Return whether `use` is one of the function that `name` defines."""
    if use.role == "member":
        return name.role == "member" and is_evident(source, use, owner_of(source.language, name))
    scope = (
        binding(source.language, use, source.names(name.node.text or b"")) if use.role == "variable" else None
    )
    if scope is None or name.scope is None:
        return False
    return is_class(source.language, scope) if name.role == "member" else scope.id == name.scope.id


def _call_of(name: Name) -> Node | None:
    """Return the call whose function `name` is."""
    node, parent = name.node, name.node.parent
    if parent is not None and name.role == "member" and parent.child_by_field_name("arguments") is None:
        node, parent = parent, parent.parent
    if parent is None or parent.child_by_field_name("arguments") is None:
        return None
    called = next(filter(None, map(parent.child_by_field_name, _CALLED)), None)
    return parent if called is not None and called.id == node.id else None


def _removed(arguments: list[Node], at: int) -> Edit:
    """Return the edit that removes an argument with one comma."""
    if at > 0:
        return Edit(arguments[at - 1].end_byte, arguments[at].end_byte, "")
    end = arguments[1].start_byte if len(arguments) > 1 else arguments[0].end_byte
    return Edit(arguments[0].start_byte, end, "")


def _added(call: Node, arguments: list[Node], at: int, word: str) -> Edit:
    """Return the edit that puts `word` in before the argument `at`, or behind the last one."""
    if at < len(arguments):
        start = arguments[at].start_byte
        return Edit(start, start, f"{word}, ")
    if arguments:
        return Edit(arguments[-1].end_byte, arguments[-1].end_byte, f", {word}")
    return Edit(call.start_byte + 1, call.start_byte + 1, word)


def _is_known(source: Source, word: bytes, call: Node) -> bool:
    """Return whether a variable called `word` is defined around `call` and before it."""
    for name in source.names(word):
        scope = name.scope
        if scope is None or name.role != "variable" or is_class(source.language, scope):
            continue
        if (
            scope.start_byte <= call.start_byte
            and call.end_byte <= scope.end_byte
            and name.start < call.start_byte
        ):
            return True
    return False


def _is_async(source: Source, node: Node) -> bool:
    """Return whether the innermost function around `node` is asynchronous."""
    around = node.parent
    while around is not None and not re.search(r"function|method|closure|lambda|async", around.type):
        around = around.parent
    if around is None:
        return False
    body = around.child_by_field_name("body")
    head = source.document.data[
        around.start_byte : body.start_byte if body is not None else around.start_byte + 20
    ]
    return re.search(rb"\basync\b", head) is not None
