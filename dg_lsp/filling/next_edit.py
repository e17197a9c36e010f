"""Next edits: the places where the user's last edit is likely to be repeated, by rules alone.

A place is offered only where a tree says that it plays the same part; an edit whose repetition is a guess has none.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

from dg_lsp.text.analysis import tree_of
from dg_lsp.text.budget import bounded, check
from dg_lsp.text.documents.bursts import Burst, Bursts
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import Change
from dg_lsp.text.fills.baseline import complaint
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.languages.language import UnknownLanguage, load_language
from dg_lsp.text.reasons import Unreadable
from dg_lsp.text.repeats.renames import (
    Place,
    Renamed,
    Source,
    key_owner,
    rename_places,
    replaced_places,
    source_of,
    words_like,
)
from dg_lsp.text.repeats.signatures import (
    argument_places,
    awaited_places,
    call_places,
    header_places,
    parameters_of,
)
from dg_lsp.text.syntax.lexer import line_end, line_start
from dg_lsp.text.syntax.names import binding, name_at
from dg_lsp.text.syntax.repair import cost_of

# A document of more bytes than this, or an edit of more than this, is never looked at.
LARGEST, _LONGEST = 400_000, 200
# Shorter words than this are rarely whole ones.
_SHORT = 3
_WORD_BYTE = re.compile(rb"[\w$\x80-\xff]")
_NAME = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")
_TOKENS = re.compile(rb"[\w$\x80-\xff]+|\"[^\"\\]*\"|'[^'\\]*'|[^\w\s]")
_PIECES = re.compile(rb"[\w$\x80-\xff]+|\s+|[^\w\s]")
_STRING = re.compile(rb"([\"'`])([\w.-]+)\1")
_FROM = re.compile(rb"\bfrom\s*[\"'].*|[#;].*|//.*")

# A line that keeps a parameter as a member: its indentation, the receiver, the name, the end.
_MEMBER = re.compile(rb"([ \t]*)((?:self|this)(?:\.|->))(\w+) = \3(;?)")

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
    typed = _typed(document, bursts, cursor)
    with suppress(UnknownLanguage, Unreadable):
        found = _found(source_of(document), typed, bursts, others) if typed is not None else ()
        return tuple(dict.fromkeys(found)) or tuple(_next_line(document, bursts, cursor))
    return ()


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
        if new.root_node.has_error and cost_of(new) > cost_of(tree):
            return False
        if language.name != "python":
            return True
        items = (n for n in tree.root_node.children if n.start_byte <= edit.start and edit.end <= n.end_byte)
        item = next(items, tree.root_node)
        start, stop = item.start_byte, item.end_byte
        then = data[start : edit.start] + text + data[edit.end : stop]
        return complaint(data[start:stop]) is not None or complaint(then) is None
    return False


def _typed(document: Document, bursts: Bursts, cursor: int) -> Typed | None:
    """Return the newest edit; None where it is none that can be repeated.

    It was undone, or spans lines, or is white space alone, or a new line, or a word that is still being typed.
    """
    data, burst = document.data, bursts.last
    if burst is None or len(data) > LARGEST or hash(data) in bursts.seen:
        return None
    spans = _spans(burst, data)
    core = tuple((burst.before[c.start : c.end], data[c.now : c.stop]) for c in spans)
    if not core or any(
        len(text) > _LONGEST or b"\n" in text or b"\r" in text for pair in core for text in pair
    ):
        return None
    if not any(b"".join(old.split()) != b"".join(new.split()) for old, new in core):
        return None
    # Code that is being written repeats nothing, and would be parsed at each pause.
    if not _line(burst.before, spans[0].start).strip():
        return None
    if any(_is_half(c, old, new, cursor) for c, (old, new) in zip(spans, core, strict=True)):
        return None
    return Typed(document, burst, spans, core, cursor)


def _spans(burst: Burst, data: bytes) -> tuple[Change, ...]:
    """Return the changes of `burst` by whole tokens, however much of a line the client has replaced.

    `x` that became `str(x)` is two changes: `str(` was put in before it, and `)` behind it.
    """
    found = list[Change]()
    for span in _words(burst.spans(data), burst.before, data):
        old, new = burst.before[span.start : span.end], data[span.now : span.stop]
        if not old or not new or max(len(old), len(new)) > _LONGEST or b"\n" in old + new:
            found.append(span)
            continue
        texts = [_PIECES.findall(text) for text in (old, new)]
        starts = [[0, *accumulate(map(len, pieces))] for pieces in texts]
        for tag, i, j, k, m in SequenceMatcher(a=texts[0], b=texts[1], autojunk=False).get_opcodes():
            if tag != "equal":
                first, last = span.start + starts[0][i], span.start + starts[0][j]
                found.append(Change(first, last, span.now + starts[1][k], span.now + starts[1][m]))
    blank = [c for c in found if not (burst.before[c.start : c.end] + data[c.now : c.stop]).strip()]
    return tuple(c for c in found if c not in blank) or tuple(found)


def _words(spans: tuple[Change, ...], old: bytes, new: bytes) -> tuple[Change, ...]:
    """Return `spans` extended to the whole words that they change a part of: `total` to `tot` for `al` to nothing."""
    found = list[Change]()
    for span in spans:
        word = _word(span, old, new)
        if found and found[-1].stop >= word.now:
            one = found.pop()
            first, now = min(one.start, word.start), min(one.now, word.now)
            word = Change(first, max(one.end, word.end), now, max(one.stop, word.stop))
        found.append(word)
    return tuple(found)


def _word(span: Change, old: bytes, new: bytes) -> Change:
    """Return `span` extended to whole words; both texts have the same bytes before it and behind it."""
    start, end, now, stop = span
    is_part = _WORD_BYTE.match
    if is_part(old, start) or is_part(new, now):
        while min(start, now) > 0 and is_part(old, start - 1):
            start, now = start - 1, now - 1
    if (end > 0 and is_part(old, end - 1)) or (stop > 0 and is_part(new, stop - 1)):
        while is_part(old, end) and is_part(new, stop):
            end, stop = end + 1, stop + 1
    return Change(start, end, now, stop)


def _is_half(span: Change, old: bytes, new: bytes, cursor: int) -> bool:
    """Return whether the word at the cursor is probably not finished.

    A cursor inside of it is behind a part that was changed, as in `fetch|User` for `getUser`, and not in `co_|unt`.
    """
    if not span.now < cursor <= span.stop or not _NAME.fullmatch(new):
        return False
    typed, rest = new[: cursor - span.now], new[cursor - span.now :]
    if rest and not (old.endswith(rest) and _begins_part(old, len(old) - len(rest))):
        return True
    return len(typed) < _SHORT <= len(old) or old.startswith(typed) or (not rest and typed.endswith(b"_"))


def _begins_part(word: bytes, at: int) -> bool:
    """Return whether a part of `word` begins at `at`: `User` in `getUser`, and `_name` or `name` in `file_name`."""
    return at == 0 or word[at : at + 1].isupper() or b"_" in word[at - 1 : at + 1]


def _next_line(document: Document, bursts: Bursts, cursor: int) -> Iterator[Place]:
    """Yield the line that does for the next parameter what the new line before the cursor does for one.

    That is `self.name = name`, which must be new, and the next parameter must not be used yet.
    """
    data, burst = document.data, bursts.last
    if burst is None or len(data) > LARGEST or hash(data) in bursts.seen:
        return
    start, end = line_start(data, cursor), line_end(data, cursor)
    line = _MEMBER.fullmatch(data[start:end])
    if line is None or cursor != end or line[0] in burst.before.splitlines():
        return
    source = source_of(document)
    last = end - len(line[4])
    name = name_at(source.language, source.root, last - len(line[3]), last)
    scope = (
        binding(source.language, name, source.within(name.node).names(line[3])) if name is not None else None
    )
    body = scope.child_by_field_name("body") if scope is not None else None
    names = parameters_of(source, scope) if scope is not None else []
    if body is None or line[3] not in names[:-1]:
        return
    after = names[names.index(line[3]) + 1]
    if not words_like(after, data[body.start_byte : body.end_byte]):
        end_of_line = b"\r\n" if data.endswith(b"\r\n", 0, start) else b"\n"
        text = end_of_line + line[1] + line[2] + after + b" = " + after + line[4]
        yield document, Edit(end, end, text.decode())


def _found(source: Source, typed: Typed, bursts: Bursts, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the places of the first rule that finds any."""
    data = source.document.data
    at = typed.spans[_last(typed)]
    broken = next(
        (n for n in source.root.children if n.start_byte <= at.now <= n.end_byte and n.has_error), None
    )
    if broken is not None or _disagrees(typed, bursts, data):
        return
    rules: tuple[Callable[[], Iterator[Place]], ...] = (
        lambda: _renamed(source, typed, bursts, others),
        lambda: header_places(source, typed.burst.before, typed.spans, others),
        lambda: call_places(source, typed.burst.before, typed.spans, others),
        lambda: argument_places(source, typed.burst.before, typed.spans),
        lambda: awaited_places(source, (at.now, at.stop)),
        lambda: _same_keys(source, typed),
        lambda: _similar_lines(source, typed, bursts),
    )
    for rule in rules:
        check()
        found = [place for place in rule() if not _is_own(place, typed)]
        if found:
            yield from found
            if rule is not rules[1]:
                return


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
            if old in mine and new != mine[old] and _NAME.fullmatch(old):
                return True
    return False


def _core(burst: Burst, data: bytes) -> Core:
    spans = _spans(burst, data)
    return tuple((burst.before[c.start : c.end], data[c.now : c.stop]) for c in spans)


def _renamed(source: Source, typed: Typed, bursts: Bursts, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the other places of the names that were changed, the last one first, or of the name that an import has now.

    Where more than one name was changed, only those count that are defined there.
    """
    data, last = source.document.data, _last(typed)
    older = [b for b in bursts.recent[:-1] if b.spans(data)]
    lines = {line_start(data, c.now) for b in older for c in b.spans(data)}
    alone, done = len(set(typed.core)) == 1, set[tuple[bytes, bytes]]()
    for span, pair in sorted(
        zip(typed.spans, typed.core, strict=True), key=lambda p: p[0] != typed.spans[last]
    ):
        if pair in done or not all(map(_NAME.fullmatch, pair)):
            continue
        done.add(pair)
        old, new = pair
        before = next((b.before for b in bursts if pair in _core(b, data)), typed.burst.before)
        count = max(words_like(new, data) - words_like(new, before), 1)
        ends = typed.cursor == span.stop
        renamed = Renamed(old, new, (span.now, span.stop), count, alone, typing=ends)
        found = list(rename_places(source, renamed, others))
        yield from found
        if alone and not found:
            twice = any(pair in _core(b, data) for b in older)
            yield from replaced_places(source, renamed, lines, twice=twice)
    if not done:
        yield from _imported(source, typed, others)


def _imported(source: Source, typed: Typed, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the places of the name that an import has had, where it has another one now, as without `as np`."""
    data, span, old = source.document.data, typed.spans[0], typed.burst.before
    line = _line(data, span.now)
    if b"," in line or line.split()[:1] not in ([b"import"], [b"from"], [b"use"], [b"using"]):
        return
    first, last = (_NAME.findall(_FROM.sub(b"", text)) for text in (_line(old, span.start), line))
    if first and last and first[-1] != last[-1]:
        end = line_start(data, span.now) + len(_FROM.sub(b"", line).rstrip().rstrip(b";\"'"))
        count = max(words_like(last[-1], data) - words_like(last[-1], old), 0) + 1
        renamed = Renamed(first[-1], last[-1], (end - len(last[-1]), end), count)
        yield from rename_places(source, renamed, others)


def _line(data: bytes, offset: int) -> bytes:
    return data[line_start(data, offset) : line_end(data, offset)]


def _same_keys(source: Source, typed: Typed) -> Iterator[Place]:
    """Yield the other places of a string that is a key of the same variable: of `row["name"]` and `row = {"name": 1}`.

    The new key must not have been one of it before.
    """
    data, before, span = source.document.data, typed.burst.before, typed.spans[0]
    start = line_start(data, span.now)
    inside = (m for m in _STRING.finditer(_line(data, span.now)) if start + m.start() < span.now)
    quoted = next((m for m in inside if span.stop < start + m.end()), None)
    if quoted is None or len(typed.spans) != 1:
        return
    first, last = start + quoted.start(), start + quoted.end()
    old = before[first - span.now + span.start : last - span.stop + span.end]
    owner = key_owner(source, first, last)
    if owner is None or not _STRING.fullmatch(old):
        return
    same = [m.start() for m in re.finditer(re.escape(quoted[0]), data)]
    same = [at for at in same if key_owner(source, at, at + len(quoted[0])) == owner]
    if len(same) > data.count(quoted[0]) - before.count(quoted[0]):
        return
    for match in re.finditer(re.escape(old), data):
        if key_owner(source, *match.span()) == owner:
            yield source.document, Edit(*match.span(), quoted[0].decode())


def _similar_lines(source: Source, typed: Typed, bursts: Bursts) -> Iterator[Place]:
    """Yield the places in lines like two that were changed in the same way, one after the other.

    1. Both changes put in the same text for the same text, at the same tokens of lines of the same form.  2. Another
    line of that form is a statement of the same block, or is the same line.
    """
    # 1.
    data, older = source.document.data, bursts.recent[-2:-1]
    if not older:
        return
    examples = [_Example.of(b, data) for b in (older[0], typed.burst)]
    one, two = examples
    if one is None or two is None or one.edits != two.edits or one.start == two.start:
        return
    form = _form(one.tokens, two.tokens)
    if form is None:
        return
    # 2.
    parents = {_statement_parent(source, e.start) for e in (one, two)}
    at, fixed = 0, [text for text, number in form if number < 0]
    for line in data.splitlines(keepends=True):
        begin, at = at, at + len(line)
        check()
        if not all(token in line for token in fixed):
            continue
        tokens = tuple(_TOKENS.finditer(line))
        texts = tuple(t[0] for t in tokens)
        if begin in (one.start, two.start) or not _fits(form, texts):
            continue
        same = texts in (one.tokens, two.tokens)
        if not same and _statement_parent(source, begin + tokens[0].start()) not in parents:
            continue
        yield from _repeated(source.document, begin, tokens, two.edits)


@dataclass(frozen=True, slots=True)
class _Example:
    """A line that was changed: the start of it as it is now, its old tokens, and what was put in between which edges.

    The edges of the tokens of a line are numbered: 0 is the start of the first one, 1 its end, and so on.
    """

    start: int
    tokens: tuple[bytes, ...]
    edits: tuple[tuple[int, int, bytes], ...]

    @staticmethod
    def of(burst: Burst, data: bytes) -> "_Example | None":
        """Return the line that `burst` has changed; None if it has changed none, or several."""
        spans = _spans(burst, data)
        if not spans or any(line_start(data, c.now) != line_start(data, spans[0].now) for c in spans):
            return None
        start = line_start(burst.before, spans[0].start)
        line = burst.before[start : line_end(burst.before, spans[-1].end)]
        tokens = tuple(_TOKENS.finditer(line))
        edges = [edge for token in tokens for edge in token.span()]
        if not edges:
            return None
        edits = list[tuple[int, int, bytes]]()
        for change in (_slid(c, burst.before, data) for c in spans):
            first, last = change.start - start, change.end - start
            low, high = _edges(edges, first, last)
            text = line[edges[low] : first] + data[change.now : change.stop] + line[last : edges[high]]
            edits.append((low, high, text))
        if any(a[1] > b[0] for a, b in pairwise(edits)):
            return None
        return _Example(line_start(data, spans[0].now), tuple(t[0] for t in tokens), tuple(edits))


def _edges(edges: list[int], first: int, last: int) -> tuple[int, int]:
    """Return the numbers of the edges around the bytes [first, last) of a line: whole tokens, and their blanks."""
    low, high = bisect_right(edges, first) - 1, bisect_left(edges, last)
    if first == last and low >= 0 and edges[low] == first:
        return low, low
    return max(low, 0), min(high, len(edges) - 1)


def _slid(change: Change, old: bytes, new: bytes) -> Change:
    """Return `change` with the blanks of its text behind it, not before it: `final ` is put in before `int`."""
    start, end, now, stop = change
    text = b"" if start < end and now < stop else old[start:end] or new[now:stop]
    while text[:1] in (b" ", b"\t") and text[:1] == old[end : end + 1]:
        text = text[1:] + text[:1]
        start, end, now, stop = start + 1, end + 1, now + 1, stop + 1
    return Change(start, end, now, stop)


def _form(one: tuple[bytes, ...], two: tuple[bytes, ...]) -> tuple[tuple[bytes, int], ...] | None:
    """Return the form that two lines share: each token, and which of the differing pairs it is, or -1 if they agree.

    None if they share too little. `self.a = a` and `self.b = b` share `self . ? = ?`, with the same name twice.
    """
    if len(one) != len(two):
        return None
    pairs: dict[tuple[bytes, bytes], int] = {}
    form = list[tuple[bytes, int]]()
    for a, b in zip(one, two, strict=True):
        if a != b and _kind(a) != _kind(b):
            return None
        form.append((a, -1 if a == b else pairs.setdefault((a, b), len(pairs))))
    fixed = [token for token, number in form if number < 0]
    return tuple(form) if any(map(_NAME.fullmatch, fixed)) or len(fixed) >= 3 else None


def _fits(form: tuple[tuple[bytes, int], ...], tokens: tuple[bytes, ...]) -> bool:
    if len(form) != len(tokens):
        return False
    known: dict[int, bytes] = {}
    for (text, number), token in zip(form, tokens, strict=True):
        if number < 0 and token != text:
            return False
        if number >= 0 and (_kind(token) != _kind(text) or known.setdefault(number, token) != token):
            return False
    return True


def _kind(token: bytes) -> str:
    if token[:1] in b"\"'`":
        return "string"
    return "number" if token[:1].isdigit() else "word" if _NAME.fullmatch(token) else token.decode("latin-1")


def _statement_parent(source: Source, offset: int) -> int:
    """Return the identity of the node whose children begin with the line of `offset`."""
    data = source.document.data
    while data[offset : offset + 1] in (b" ", b"\t"):
        offset += 1
    node = source.root.descendant_for_byte_range(offset, offset)
    while node is not None and node.parent is not None and node.parent.start_byte == node.start_byte:
        node = node.parent
    return node.parent.id if node is not None and node.parent is not None else 0


def _repeated(
    document: Document,
    begin: int,
    tokens: tuple[re.Match[bytes], ...],
    edits: tuple[tuple[int, int, bytes], ...],
) -> Iterator[Place]:
    """Yield one edit that makes all of `edits` in the line at `begin`."""
    edges = [begin + edge for token in tokens for edge in token.span()]
    text, at = b"", edges[edits[0][0]]
    for low, high, new in edits:
        text += document.data[at : edges[low]] + new
        at = edges[high]
    yield document, Edit(edges[edits[0][0]], at, text.decode("utf-8", "replace"))
