"""Conversions: the calls of a function whose parameters have changed places, got another unit, or become one object."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tree_sitter import Node

from dg_lsp.edits.calls import (
    ChangedCall,
    arguments_in_calls_of,
    calls,
    changed_call,
    given,
    is_keyword,
    is_spread,
)
from dg_lsp.edits.functions import Function, function_at, functions_called, is_receiver, parts_of
from dg_lsp.edits.places import Place, Source, source_of
from dg_lsp.edits.sharing import may_share
from dg_lsp.edits.spans import text_before
from dg_lsp.gaps import Edit
from dg_lsp.source.bursts import Bursts
from dg_lsp.source.document import Document
from dg_lsp.source.history import Change

_NUMBER = re.compile(rb"\d[\d_]*(?:\.\d+)?")
_LITERAL = re.compile(rb"([\"'`]).*\1|(\d)[\w.]*", re.DOTALL)
# How many of one unit are one of another, of time and of sizes.
_UNITS = {10, 60, 100, 1000, 1024, 3600, 60_000, 1_000_000, 1_048_576, 3_600_000, 1_000_000_000}


@dataclass(frozen=True, slots=True)
class _Header:
    """A function whose header was changed. then, now: its parameters, without `self`; later: all changes since."""

    function: Function
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
        for there, arguments in calls(source, header.function, ()):
            texts = _texts(arguments)
            if texts is not None and len(texts) == len(now) and not header.is_followed(arguments):
                yield there.document, _replaced(arguments, [texts[then.index(part)] for part in now])


def converted_places(source: Source, bursts: Bursts, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the edits that change the other calls of a function as the newest of the `bursts` has changed one.

    1. A number became one of another unit, and the parameter has got another name.  2. All arguments are in one object
    now, or in another order, for a function that is defined once, here or in one of the `others`, and takes them so; in
    another order there must be literals in the places where they were.
    """
    newest = bursts.recent[-1]
    call = changed_call(source, newest.before, newest.spans(source.document.data))
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
    for arguments in arguments_in_calls_of(source.names(call.function)):
        texts = _texts(arguments)
        if texts is None or len(texts) != len(call.old) or arguments == call.arguments:
            continue
        if not same or [*map(_kind, texts)] == kinds:
            text = b"".join(texts[part] if isinstance(part, int) else part for part in form)
            yield source.document, Edit(*arguments.byte_range, text.decode("utf-8", "replace"))


def _in_unit(source: Source, bursts: Bursts, call: ChangedCall) -> Iterator[Place]:
    """Yield the edits that multiply a number in the other calls as in `call`."""
    at = next(n for n, (one, other) in enumerate(zip(call.old, call.new, strict=True)) if one != other)
    if not _NUMBER.fullmatch(call.old[at]) or not _NUMBER.fullmatch(call.new[at]):
        return
    for header in _headers(source, bursts):
        then, now = header.then[at : at + 1], header.now[at : at + 1]
        found = [arguments for _, arguments in calls(source, header.function, ())] if then != now else []
        if len(header.then) != len(header.now) or call.arguments not in found:
            continue
        for arguments in found:
            texts = _texts(arguments)
            if texts is not None and len(texts) > at and not header.is_followed(arguments):
                number = _multiplied(texts[at], call.old[at], call.new[at])
                if number:
                    new = [*texts[:at], number, *texts[at + 1 :]]
                    yield source.document, _replaced(arguments, new)


def _multiplied(number: bytes, old: bytes, new: bytes) -> bytes:
    """Return the `number` multiplied as `old` became `new`, written like that; b"" where that is no unit's factor.

    From `5` and `5_000` follows `30_000` for `30`.
    """
    values = [Fraction(text.replace(b"_", b"").decode()) for text in (old, new)]
    if not _NUMBER.fullmatch(number) or not all(values):
        return b""
    factor = values[1] / values[0]
    if not {factor, 1 / factor} & _UNITS:
        return b""
    value = Fraction(number.replace(b"_", b"").decode()) * factor
    if value.denominator != 1 or not value:
        return b""
    return (f"{int(value):_}" if b"_" in number + new else str(value)).encode()


def _headers(source: Source, bursts: Bursts) -> Iterator[_Header]:
    """Yield the functions whose parameters the `bursts` have changed, the newest first."""
    data = source.document.data
    for burst in reversed(bursts.recent):
        spans, seen = burst.spans(data), set[int]()
        for span in spans:
            function = function_at(source, (span,))
            if function is not None and function.name.start not in seen:
                seen.add(function.name.start)
                texts = text_before(burst.before, spans, *function.inside), data[slice(*function.inside)]
                then, now = ([part for part in parts_of(text) if not is_receiver(part)] for text in texts)
                yield _Header(function, then, now, (*spans, *burst.later.spans))


def _form(call: ChangedCall) -> list[bytes | int]:
    """Return the arguments of `call` as they are now, numbers in place of those of before; [] if one is missing.

    From `(a, b)` and `({ x: a, y: b })` follows `({ x: `, 0, `, y: `, 1, ` })`.
    """
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
    found = [(one.document.data, known) for one in there for known in functions_called(one, function)]
    return [len(parts_of(data[slice(*known.inside)])) for data, known in found]


def _kind(argument: bytes) -> str:
    """Return the kind of a literal, empty for another expression."""
    found = _LITERAL.fullmatch(argument)
    return "" if found is None else "number" if found[2] else "string"


def _texts(arguments: Node) -> list[bytes] | None:
    """Return the texts of single arguments; None where not all of them are by their places."""
    nodes = given(arguments)
    return None if any(is_spread(n) or is_keyword(n) for n in nodes) else [n.text or b"" for n in nodes]


def _replaced(arguments: Node, texts: list[bytes]) -> Edit:
    """Return the edit that changes single arguments to those `texts`, from the first to the last changed one."""
    nodes = given(arguments)
    changed = [n for n, (node, text) in enumerate(zip(nodes, texts, strict=True)) if node.text != text]
    first, last = changed[0], changed[-1]
    data, start, new = arguments.text or b"", arguments.start_byte, texts[first]
    for n in range(first + 1, last + 1):
        new += data[nodes[n - 1].end_byte - start : nodes[n].start_byte - start] + texts[n]
    return Edit(nodes[first].start_byte, nodes[last].end_byte, new.decode("utf-8", "replace"))
