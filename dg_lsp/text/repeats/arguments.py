"""Arguments: the calls of a function whose parameters have changed places, got another unit, or become one object."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tree_sitter import Node

from dg_lsp.text.documents.bursts import Burst, Bursts
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import Change
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.repeats.classes import Place, Source, source_of
from dg_lsp.text.repeats.renames import may_share
from dg_lsp.text.repeats.signatures import (
    SELF,
    arguments_around,
    arguments_of,
    calls,
    header_at,
    is_spread,
    parameter_list,
    parts_of,
)
from dg_lsp.text.syntax.names import Name

_NUMBER = re.compile(rb"\d[\d_]*(?:\.\d+)?")
_LITERAL = re.compile(rb"([\"'`]).*\1|(\d)[\w.]*", re.DOTALL)
# How many of one unit are one of another, of time and of sizes.
_UNITS = {10, 60, 100, 1000, 1024, 3600, 60_000, 1_000_000, 1_048_576, 3_600_000, 1_000_000_000}


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of `function` whose arguments were changed. old, new: all of them."""

    arguments: Node
    old: list[bytes]
    new: list[bytes]
    function: bytes


@dataclass(frozen=True, slots=True)
class _Header:
    """A function whose header was changed. then, now: its parameters, without `self`; later: all changes since."""

    name: Name
    then: list[bytes]
    now: list[bytes]
    later: tuple[Change, ...]

    def is_followed(self, arguments: Node) -> bool:
        """Return whether `arguments` were changed since the header, or with it."""
        start, end = arguments.byte_range
        return any(c.now < end and start < max(c.stop, c.now + 1) for c in self.later)


def reordered_places(source: Source, bursts: Bursts) -> Iterator[Place]:
    """Yield the edits that put the arguments of calls in the order of the parameters, which the `bursts` have changed.

    Calls that were changed since then are left as they are.
    """
    for header in _headers(source, bursts):
        then, now = header.then, header.now
        if then == now or sorted(then) != sorted(now) or len(set(now)) < len(now):
            continue
        for there, arguments in calls(source, header.name, ()):
            given = _given(arguments)
            if given is not None and len(given) == len(now) and not header.is_followed(arguments):
                yield there.document, _replaced(arguments, [given[then.index(part)] for part in now])


def converted_places(source: Source, bursts: Bursts, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the edits that change the other calls of a function as the newest of the `bursts` has changed one.

    1. A number became one of another unit, and the parameter has got another name.  2. All arguments are in one object
    now, or in another order, for a function that is defined once, here or in one of the `others`, and takes them so; in
    another order there must be literals in the places where they were.
    """
    call = _changed(source, bursts)
    if call is None:
        return
    # 1.
    same = len(call.old) == len(call.new)
    if same and sum(map(bytes.__ne__, call.old, call.new)) == 1:
        yield from _in_unit(source, bursts, call)
        return
    # 2.
    form, kinds = _form(call), [*map(_kind, call.old)]
    if not form or (same and kinds == [*map(_kind, call.new)]):
        return
    if _parameters_known(source, call.function, others) != [len(call.new)]:
        return
    for arguments in arguments_of(source, call.function):
        given = _given(arguments)
        if given is None or len(given) != len(call.old) or arguments.id == call.arguments.id:
            continue
        if not same or [*map(_kind, given)] == kinds:
            text = b"".join(given[part] if isinstance(part, int) else part for part in form)
            yield source.document, Edit(*arguments.byte_range, text.decode("utf-8", "replace"))


def _in_unit(source: Source, bursts: Bursts, call: _Call) -> Iterator[Place]:
    """Yield the edits that multiply a number in the other calls as in `call`."""
    at = next(n for n, (one, other) in enumerate(zip(call.old, call.new, strict=True)) if one != other)
    if not _NUMBER.fullmatch(call.old[at]) or not _NUMBER.fullmatch(call.new[at]):
        return
    for header in _headers(source, bursts):
        then, now = header.then[at : at + 1], header.now[at : at + 1]
        found = [arguments for _, arguments in calls(source, header.name, ())] if then != now else []
        if len(header.then) != len(header.now) or call.arguments.id not in {one.id for one in found}:
            continue
        for arguments in found:
            given = _given(arguments)
            if given is not None and len(given) > at and not header.is_followed(arguments):
                number = _multiplied(given[at], call.old[at], call.new[at])
                if number:
                    new = [*given[:at], number, *given[at + 1 :]]
                    yield source.document, _replaced(arguments, new)


def _multiplied(number: bytes, old: bytes, new: bytes) -> bytes:
    """Return the `number` multiplied as `old` became `new`, written like that; b"" where that is no unit's factor.

    From `5` and `5_000` follows `30_000` for `30`.
    """
    values = [Fraction(text.replace(b"_", b"").decode()) for text in (old, new)]
    if (
        not _NUMBER.fullmatch(number)
        or not all(values)
        or not {values[1] / values[0], values[0] / values[1]} & _UNITS
    ):
        return b""
    if new.startswith(old):
        return number + new[len(old) :] if number.strip(b"0") else b""
    rest = old[len(new) :]
    if old.startswith(new) and number.endswith(rest) and number != rest:
        return number[: -len(rest)].rstrip(b"_")
    value = Fraction(number.replace(b"_", b"").decode()) * values[1] / values[0]
    return b"%d" % value if value.denominator == 1 and value and b"_" not in new + number else b""


def _headers(source: Source, bursts: Bursts) -> Iterator[_Header]:
    """Yield the functions whose parameters the `bursts` have changed, the newest first."""
    for burst in reversed(bursts.recent):
        spans, seen = burst.spans(source.document.data), set[int]()
        for span in spans:
            name = header_at(source, (span,))
            found = parameter_list(name) if name is not None else None
            if name is not None and found is not None and name.start not in seen:
                seen.add(name.start)
                lists = (parts_of(text) for text in (_before(burst, spans, found), found.text or b""))
                then, now = ([part for part in parts if not SELF.match(part)] for parts in lists)
                yield _Header(name, then, now, (*spans, *burst.later.spans))


def _changed(source: Source, bursts: Bursts) -> _Call | None:
    """Return the call whose arguments are all that the newest of the `bursts` has changed."""
    burst = bursts.recent[-1]
    spans = burst.spans(source.document.data)
    function, arguments = arguments_around(source, spans[0].now, spans[-1].stop) if spans else (b"", None)
    if arguments is None or not function:
        return None
    old = parts_of(_before(burst, spans, arguments))
    return _Call(arguments, old, parts_of(arguments.text or b""), function)


def _form(call: _Call) -> list[bytes | int]:
    """Return the arguments of `call` as they are now, numbers in place of those of before; [] if one is missing."""
    spans, text = list[tuple[int, int, int]](), call.arguments.text or b""
    if len(call.old) < 2 or len(set(call.old)) < len(call.old):
        return []
    for number, part in enumerate(call.old):
        found = [m.span() for m in re.finditer(rb"(?<![\w$.\"'`])%b(?![\w$.])" % re.escape(part), text)]
        if len(found) != 1:
            return []
        spans.append((*found[0], number))
    form, at = list[bytes | int](), 0
    for start, stop, number in sorted(spans):
        if start < at:
            return []
        form += [text[at:start], number]
        at = stop
    return [*form, text[at:]]


def _parameters_known(source: Source, function: bytes, others: Sequence[Document]) -> list[int]:
    """Return how many parameters each function of that name has in `source` and in the `others`."""
    there = [source, *(source_of(other) for other in others if may_share(source, other, function))]
    lists = [parameter_list(n) for one in there for n in one.names(function) if n.scope is not None]
    return [len(parts_of(found.text or b"")) for found in lists if found is not None]


def _kind(argument: bytes) -> str:
    """Return the kind of a literal, empty for another expression."""
    found = _LITERAL.fullmatch(argument)
    return "" if found is None else "number" if found[2] else "string"


def _given(arguments: Node) -> list[bytes] | None:
    """Return the arguments of a call; None where not all of them are by their places."""
    nodes = [n for n in arguments.named_children if "comment" not in n.type]
    if any(is_spread(n) or n.type == "keyword_argument" for n in nodes):
        return None
    return [n.text or b"" for n in nodes]


def _replaced(arguments: Node, given: list[bytes]) -> Edit:
    """Return the edit that changes the arguments of a call to those `given`, from the first to the last changed one."""
    nodes = [n for n in arguments.named_children if "comment" not in n.type]
    changed = [n for n, (node, text) in enumerate(zip(nodes, given, strict=True)) if node.text != text]
    first, last = changed[0], changed[-1]
    text = given[first]
    data, start = arguments.text or b"", arguments.start_byte
    for n in range(first + 1, last + 1):
        text += data[nodes[n - 1].end_byte - start : nodes[n].start_byte - start] + given[n]
    return Edit(nodes[first].start_byte, nodes[last].end_byte, text.decode("utf-8", "replace"))


def _before(burst: Burst, spans: Sequence[Change], node: Node) -> bytes:
    """Return the text of `node` before the `burst`."""
    ends = list[int]()
    for at in (node.start_byte, node.end_byte):
        last = next((c for c in reversed(spans) if c.stop <= at and c.now < at), None)
        ends.append(at - last.stop + last.end if last is not None else at)
    return burst.before[slice(*ends)]
