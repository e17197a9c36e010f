"""Headers: the other headers of a function whose header was changed, and `async` in one."""

import re
from collections.abc import Iterator, Sequence

from dg_lsp.edits.functions import Function, definitions_of, function_at, parameter_names
from dg_lsp.edits.places import Place, Source
from dg_lsp.edits.spans import TOKENS, text_before
from dg_lsp.gaps import Edit
from dg_lsp.source.document import Document
from dg_lsp.source.history import Change, Changes


def header_places(
    source: Source, before: bytes, spans: Sequence[Change], others: Sequence[Document] = ()
) -> Iterator[Place]:
    """Yield the edits that change the other headers of a function as `spans` have changed one of them.

    The tokens from the changed ones to the name and the parameters must have been the same there, but for the names of
    parameters that were not changed: `area(Shape s)` follows `area(Shape shape)`.  1. Find the tokens of this header as
    they were, and which were changed.  2. Find the same tokens in the others, and change those in their places.
    """
    function = function_at(source, spans)
    if function is None:
        return
    # 1.
    data, span = source.document.data, Changes(tuple(spans)).around()
    low = min(span.now, function.name.start, function.parameters.end_byte)
    high = max(span.stop, function.parameters.end_byte)
    tokens, at = [*TOKENS.finditer(text_before(before, spans, low, high))], span.now - low
    first = sum(t.end() <= at for t in tokens)
    last = sum(t.start() < at + span.end - span.start for t in tokens)
    mine = _unnamed(source, function, tokens, range(first, last))
    new, come = (
        data[span.now : span.stop].decode("utf-8", "replace"),
        TOKENS.findall(data, span.now, span.stop),
    )
    # 2.
    for there, other in definitions_of(source, function, others):
        theirs = [*TOKENS.finditer(there.document.data, *other.header)]
        yours = _unnamed(there, other, theirs)
        shifts = range(len(theirs) - len(mine) + 1)
        shift = next((n for n in shifts if yours[n : n + len(mine)] == mine), None)
        if shift is not None and not _is_done(yours, range(shift, shift + len(mine)), come):
            to = theirs[shift + first].start() if first < len(mine) else theirs[shift + first - 1].end()
            yield there.document, Edit(to, theirs[shift + last - 1].end() if first < last else to, new)


def _unnamed(
    source: Source, function: Function, tokens: Sequence[re.Match[bytes]], kept: range = range(0)
) -> list[bytes]:
    """Return the texts of `tokens` of a header, with numbers in place of the names of its parameters.

    kept: the tokens that stay as they are.
    """
    texts = [t[0] for t in tokens]
    words = [word for word in parameter_names(source, function.parameters) if word in texts]
    return [
        b"%d." % words.index(text) if text in words and n not in kept else text
        for n, text in enumerate(texts)
    ]


def _is_done(tokens: list[bytes], at: range, new: list[bytes]) -> bool:
    """Return whether the `new` tokens are before or after those `at` some place already."""
    after = tokens[at.stop : at.stop + len(new)]
    return bool(new) and new in (tokens[max(at.start - len(new), 0) : at.start], after)


def is_in_body(function: Function, spans: Sequence[Change]) -> bool:
    """Return whether all `spans` are in the body of `function`."""
    body = function.body
    return body is not None and body.start_byte <= spans[0].now and spans[-1].stop <= body.end_byte
