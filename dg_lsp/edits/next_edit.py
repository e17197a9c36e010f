"""Next edits: the places where the user's last edit is likely to be repeated, or continued.

A rule offers a place only where a tree says that it plays the same part. What else may follow, a model is asked.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

from dg_lsp.budget import bounded, check
from dg_lsp.edits.arguments import argument_places, parameter_places
from dg_lsp.edits.awaits import awaited_places
from dg_lsp.edits.conversions import converted_places, reordered_places
from dg_lsp.edits.functions import adds_parameter, function_at
from dg_lsp.edits.guesses import Example, guesses
from dg_lsp.edits.headers import header_places, is_in_body
from dg_lsp.edits.imports import imported_places, names_bound, reimported_places, replaced_places
from dg_lsp.edits.keys import key_places
from dg_lsp.edits.lines import similar_blocks, similar_lines
from dg_lsp.edits.missing import missing_places
from dg_lsp.edits.places import Place, Source, is_import, source_of, words_like
from dg_lsp.edits.properties import property_places
from dg_lsp.edits.renames import Renamed, rename_places
from dg_lsp.edits.series import kept_places, series_places
from dg_lsp.edits.spans import CONSTANT, LONGEST, NAME, spans_of
from dg_lsp.gaps import Edit
from dg_lsp.guard import complaint
from dg_lsp.reasons import Unreadable
from dg_lsp.source.analysis import tree_of
from dg_lsp.source.bursts import Burst, Bursts
from dg_lsp.source.document import Document
from dg_lsp.source.history import Change
from dg_lsp.source.items import member_alone
from dg_lsp.source.language import UnknownLanguage, load_language
from dg_lsp.source.lexer import line_end, line_start
from dg_lsp.source.names import binding, is_class
from dg_lsp.source.repair import cost_of

# A document of more bytes than this is never looked at.
LARGEST = 400_000
# Shorter words than this are rarely whole ones.
_SHORT = 3

Core = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """The newest edit of a `document`: its changes, extended to whole words, and where the cursor is.

    core: the old and the new text of each change.
    """

    document: Document
    burst: Burst
    spans: tuple[Change, ...]
    core: Core
    cursor: int


@bounded
def next_edits(
    document: Document, bursts: Bursts, cursor: int, others: Sequence[Document] = ()
) -> tuple[Place, ...]:
    """Return the places in `document`, and in the `others`, where the newest of its `bursts` is to be repeated.

    Raises:
        OutOfTime: looking for them takes too long.
    """
    newest = _newest(document, bursts)
    if newest is None:
        return ()
    typed = _typed(document, newest, cursor)
    with suppress(UnknownLanguage, Unreadable):
        source = source_of(document)
        rules = (
            _found(source, typed, bursts, others) if typed is not None else iter(()),
            kept_places(source, newest.before, cursor),
            imported_places(source, bursts),
            similar_blocks(source, bursts),
            series_places(document, bursts, others),
            missing_places(source, bursts, cursor, others),
        )
        return next(filter(None, map(tuple, map(dict.fromkeys, rules))), ())
    return ()


def may_be_followed(document: Document, bursts: Bursts, cursor: int) -> bool:
    """Return whether a model may be asked what follows from the newest of the `bursts` of `document`.

    Not where it was not finished, or is in a comment or in broken code, or renames what the file defines, or changes
    only a number or another constant, which is rarely repeated.

    Raises:
        OutOfTime: looking at it takes too long.
    """
    newest = _newest(document, bursts)
    typed = _typed(document, newest, cursor) or _typed_lines(document, newest, cursor) if newest else None
    with suppress(UnknownLanguage, Unreadable):
        source = source_of(document)
        if typed is None or _is_broken(source, typed) or all(map(CONSTANT.fullmatch, chain(*typed.core))):
            return False
        # A name may have been renamed where it is defined first.
        same = (b for b in bursts.recent if not {*typed.core}.isdisjoint(_core(b, document.data)))
        if any(_is_defined(source, _edit_of(document, burst, cursor)) for burst in same):
            return False
        inside = (source.root.descendant_for_byte_range(c.now, c.stop) for c in typed.spans)
        return not all(node is not None and "comment" in node.type for node in inside)
    return False


def guessed(document: Document, bursts: Bursts, cursor: int) -> list[Edit]:
    """Return the edits that may repeat the newest of the `bursts` of `document` there, the most similar lines first.

    Raises:
        OutOfTime: looking for them takes too long.
    """
    newest = _newest(document, bursts)
    typed = _typed(document, newest, cursor) if newest else None
    example = Example.of(typed.burst, document.data) if typed else None
    if typed is None or example is None or _disagrees(typed, bursts, document.data):
        return []
    with suppress(UnknownLanguage, Unreadable):
        source, found = source_of(document), guesses(document, example)
        return [edit for edit in found if is_sound(document, edit) and not adds_parameter(source, edit)]
    return []


def nearest(places: Iterable[Place], uri: str, cursor: int) -> list[Place]:
    """Return `places` in the order in which they are offered at the `cursor` of the document `uri`.

    1. Those after the cursor.  2. Those before it, the last one first.  3. Those in other documents.
    """

    def order(place: Place) -> tuple[int, int]:
        document, edit = place
        if document.uri != uri:
            return 2, 0
        return (0, edit.start) if edit.start >= cursor else (1, -edit.start)

    return sorted(places, key=order)


@bounded
def is_sound(document: Document, edit: Edit) -> bool:
    """Return whether `edit` adds no syntax error to `document`."""
    language, text, data = (
        load_language(document.language, document.macros),
        edit.text.encode("utf-8"),
        document.data,
    )
    with suppress(Unreadable):
        tree = tree_of(language, document)
        new = language.reparse(tree, data, (edit.start, edit.end), text)
        if cost_of(new) > cost_of(tree) and not _is_sound_alone(source_of(document), edit):
            return False
        if language.name != "python":
            return True
        items = (n for n in tree.root_node.children if n.start_byte <= edit.start and edit.end <= n.end_byte)
        item = next(items, tree.root_node)
        start, stop = item.start_byte, item.end_byte
        then = data[start : edit.start] + text + data[edit.end : stop]
        return complaint(data[start:stop]) is not None or complaint(then) is None
    return False


def _is_sound_alone(source: Source, edit: Edit) -> bool:
    """Return whether the function around `edit` has no syntax error before it and after it, read alone.

    A tree with errors may take sound code for a part of broken code beside it, whose cost grows with its length.
    """
    if not source.root.has_error:
        return False
    text = member_alone(source.language, source.document.data, edit.start)
    alone = source.language.parse(text)
    new = source.language.reparse(alone, text, (edit.start, edit.end), edit.text.encode("utf-8"))
    return not alone.root_node.has_error and not new.root_node.has_error


def _newest(document: Document, bursts: Bursts) -> Burst | None:
    """Return the newest of the `bursts`; None where it was undone, or the document is too large."""
    is_looked_at = len(document.data) <= LARGEST and hash(document.data) not in bursts.seen
    return bursts.last if is_looked_at else None


def _typed(document: Document, burst: Burst, cursor: int) -> Typed | None:
    """Return the edit `burst`; None where it is none that can be repeated.

    It spans lines, or is white space alone, or a new line, or a word that is still being typed.
    """
    typed, data = _edit_of(document, burst, cursor), document.data
    spans, core = typed.spans, typed.core
    if not core or any(len(text) > LONGEST or b"\n" in text or b"\r" in text for text in chain(*core)):
        return None
    if not any(b"".join(old.split()) != b"".join(new.split()) for old, new in core):
        return None
    # Code that is being written repeats nothing, and would be parsed at each pause.
    if not _line(burst.before, spans[0].start).strip():
        return None
    if any(_is_half(c, pair, cursor, data) for c, pair in zip(spans, core, strict=True)):
        return None
    return typed


def _typed_lines(document: Document, burst: Burst, cursor: int) -> Typed | None:
    """Return the edit `burst`; None unless it has changed several lines."""
    typed = _edit_of(document, burst, cursor)
    return typed if any(b"\n" in text or b"\r" in text for text in chain(*typed.core)) else None


def _edit_of(document: Document, burst: Burst, cursor: int) -> Typed:
    data, spans = document.data, spans_of(burst, document.data)
    return Typed(document, burst, spans, _texts(burst, spans, data), cursor)


def _is_half(span: Change, pair: tuple[bytes, bytes], cursor: int, data: bytes) -> bool:
    """Return whether the word at the cursor is probably not finished, as a short one that is nowhere else in `data`.

    A cursor inside of it is after a part that was changed, as in `fetch|User` for `getUser`, and not in `co_|unt`.
    """
    old, new = pair
    if not span.now < cursor <= span.stop or not NAME.fullmatch(new):
        return False
    typed, rest = new[: cursor - span.now], new[cursor - span.now :]
    if rest and not (old.endswith(rest) and _begins_part(old, len(old) - len(rest))):
        return True
    if len(typed) < _SHORT <= len(old) and words_like(new, data) < 2:
        return True
    return old.startswith(typed) or (not rest and typed.endswith(b"_"))


def _begins_part(word: bytes, at: int) -> bool:
    """Return whether a part of `word` begins at `at`: `User` in `getUser`, and `_name` or `name` in `file_name`."""
    return at == 0 or word[at : at + 1].isupper() or b"_" in word[at - 1 : at + 1]


def _found(source: Source, typed: Typed, bursts: Bursts, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the places of the first rule that finds any."""
    if _is_broken(source, typed):
        yield from _renamed_alone(source, typed, bursts)
        return
    before, spans, at = typed.burst.before, typed.spans, typed.spans[_last(typed)]
    # Both headers and calls follow a header.
    headers = header_places(source, before, spans, others), parameter_places(source, before, spans, others)
    similar = similar_lines(source, bursts)
    rules = (
        _renamed(source, typed, bursts, others),
        chain(*headers, reordered_places(source, bursts)),
        converted_places(source, bursts, others),
        argument_places(source, before, spans),
        awaited_places(source, at.now, at.stop),
        key_places(source, before, spans),
        similar,
        _header_before(source, typed, bursts, others),
    )
    # Two lines may have changed one text into two.
    for rule in (similar,) if _disagrees(typed, bursts, source.document.data) else rules:
        check()
        if found := [place for place in rule if not _is_own(place, typed)]:
            yield from found
            return


def _header_before(
    source: Source, typed: Typed, bursts: Bursts, others: Sequence[Document]
) -> Iterator[Place]:
    """Yield the places of the last burst but one if it has changed the header of the function that the newest is in."""
    burst = bursts.recent[-2] if len(bursts.recent) > 1 else None
    spans = spans_of(burst, source.document.data) if burst is not None else ()
    function = function_at(source, spans) if spans else None
    if burst is None or function is None or not is_in_body(function, typed.spans):
        return
    yield from header_places(source, burst.before, spans, others)
    yield from parameter_places(source, burst.before, spans, others)
    for span in spans:
        yield from awaited_places(source, span.now, span.stop)


def _is_broken(source: Source, typed: Typed) -> bool:
    """Return whether the edit is in broken code."""
    at = typed.spans[_last(typed)].now
    return any(n.has_error for n in source.root.children if n.start_byte <= at <= n.end_byte)


def _is_defined(source: Source, typed: Typed) -> bool:
    """Return whether only names were changed, and the file defines an old one, or a new one there, and no import does.

    The rules know all places of such a name. A defined name in place of another one, as `mux` for `http`, is none.
    """
    if not all(NAME.fullmatch(word) for pair in typed.core for word in pair):
        return False
    spans = [(span.now, span.stop) for span in typed.spans]
    if None in (source.name_at(*span) for span in spans):
        return False
    old, new = ({pair[side] for pair in typed.core} for side in (0, 1))
    named = [n for word in old | new for n in source.names(word) if n.scope is not None]
    return any(
        not is_import(n.place) and (source.document.data[n.start : n.end] in old or (n.start, n.end) in spans)
        for n in named
    )


def _last(typed: Typed) -> int:
    """Return which of the changes was typed last."""
    return min(bisect_left(typed.spans, typed.burst.touched, key=lambda c: c.stop), len(typed.spans) - 1)


def _is_own(place: Place, typed: Typed) -> bool:
    """Return whether a place is where the edit was made itself."""
    return place[0] is typed.document and any(c.now <= place[1].start <= c.stop for c in typed.spans)


def _disagrees(typed: Typed, bursts: Bursts, data: bytes) -> bool:
    """Return whether the same old text has become something else in an older burst."""
    mine = {old: new for old, new in typed.core if old.strip()}
    for burst in bursts.recent[:-1]:
        for old, new in _core(burst, data):
            if old in mine and new != mine[old] and NAME.fullmatch(old):
                return True
    return False


def _core(burst: Burst, data: bytes) -> Core:
    return _texts(burst, spans_of(burst, data), data)


def _texts(burst: Burst, spans: Iterable[Change], data: bytes) -> Core:
    """Return the old and the new text of each of `spans`."""
    return tuple((burst.before[c.start : c.end], data[c.now : c.stop]) for c in spans)


def _renamed(source: Source, typed: Typed, bursts: Bursts, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the other places of the names that were changed, the last one first, or of the name that an import has now.

    Where more than one name was changed, only those count that are defined there.
    """
    data, last = source.document.data, _last(typed)
    lines = _line(typed.burst.before, typed.spans[0].start), _line(data, typed.spans[0].now)
    # What an import binds now as a member is no other name of the module.
    if len({tuple(sorted({whole for _, whole in names_bound(line)})) for line in lines}) > 1:
        return
    older = [b for b in bursts.recent[:-1] if b.spans(data)]
    places = {line_start(data, c.now) for b in older for c in b.spans(data)}
    alone, done = len(set(typed.core)) == 1, set[tuple[bytes, bytes]]()
    for span, pair in sorted(
        zip(typed.spans, typed.core, strict=True), key=lambda p: p[0] != typed.spans[last]
    ):
        # A name in the place of another one has changed places with it.
        if pair in done or not all(map(NAME.fullmatch, pair)) or pair[1] in {old for old, _ in typed.core}:
            continue
        done.add(pair)
        old, new = pair
        before = next((b.before for b in bursts.recent if pair in _core(b, data)), typed.burst.before)
        count = max(words_like(new, data) - words_like(new, before), 1)
        ends = typed.cursor == span.stop
        renamed = Renamed(old, new, (span.now, span.stop), count, alone, typing=ends)
        found = [*rename_places(source, renamed, others), *property_places(source, renamed, others)]
        yield from found
        if alone and not found:
            twice = any(pair in _core(b, data) for b in older)
            yield from replaced_places(source, renamed, places, twice=twice)
    if not done:
        yield from reimported_places(source, typed.burst.before, typed.spans[0], others)


def _renamed_alone(source: Source, typed: Typed, bursts: Bursts) -> Iterator[Place]:
    """Yield the other places of a local name that was changed beside broken code, such as an unfinished function."""
    # Read the function around the edit alone.
    language, data = source.language, source.document.data
    text = member_alone(language, data, typed.spans[_last(typed)].now)
    near = replace(source, root=language.parse(text).root_node, known={})
    # It must be sound, and bind each name that was changed.
    if _is_broken(near, typed):
        return
    for span, (old, new) in zip(typed.spans, typed.core, strict=True):
        name = near.name_at(span.now, span.stop)
        scope = binding(language, name, (*near.names(old), *near.names(new))) if name is not None else None
        if scope is None or scope.parent is None or is_class(language, scope):
            return
    yield from _renamed(near, typed, bursts, ())


def _line(data: bytes, offset: int) -> bytes:
    return data[line_start(data, offset) : line_end(data, offset)]
