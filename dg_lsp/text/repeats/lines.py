"""Similar lines: the changes of one edit by tokens, lines like two that were changed alike, and series of elements."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from dg_lsp.text.budget import check
from dg_lsp.text.documents.bursts import Burst, Bursts
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import Change, Changes, trimmed
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.repeats.classes import TOKENS, Place, Source, class_name, source_of
from dg_lsp.text.repeats.renames import may_share
from dg_lsp.text.syntax.lexer import line_end, line_start
from dg_lsp.text.syntax.names import binding, name_at, whole

# Longer texts are compared as a whole, and elements of a series are within twice as many bytes.
LONGEST = 200
# Shared tokens of two lines after which a third one is like them by no chance.
_ENOUGH = 8
# A name as most languages write it.
NAME = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")
_WORD_BYTE = re.compile(rb"[\w$\x80-\xff]")
_TOKENS_AND_STRINGS = re.compile(rb"[\w$\x80-\xff]+|\"[^\"\\]*\"|'[^'\\]*'|[^\w\s]")
_PIECES = re.compile(rb"[\w$\x80-\xff]+|\s+|[^\w\s]")


def similar_lines(source: Source, bursts: Bursts) -> Iterator[Place]:
    """Yield the places in lines, or groups of lines, like two that were changed in the same way, one after the other.

    1. The new lines are made of the same text, and of what differs between the old ones: from `f("a")` and `f("b")`,
    which became `g(1, "a")` and `g(1, "b")`, follows `g(1, "c")` for `f("c")`.  2. Another line of that form is a
    statement of the same block if both are of one, or has much in common with them, or is the same line.
    """
    # 1.
    document, data = source.document, source.document.data
    both = _blocks(bursts, data)[-2:]
    if len(both) < 2:
        return
    one, two = ((block.old.strip(), data[block.start : block.end].strip()) for block in both)
    changes = [
        change for pair in ((one, two), _widened(one, two)) if (change := _Pattern.of(*pair)) is not None
    ]
    count = one[0].count(b"\n")
    if not changes or count != two[0].count(b"\n") or max(map(len, one + two)) > LONGEST * (count + 1):
        return
    # 2.
    parents = {_statement_parent(source, block.start) for block in both}
    anywhere = len(parents) > 1 or changes[0].fixed >= _ENOUGH
    starts, margin = document.line_starts, _margin(data, both[0].start)
    for line in range(len(starts) - count):
        check()
        begin, end = starts[line], document.line_end(line + count)
        text = data[begin:end].strip() if end - begin <= 2 * LONGEST * (count + 1) else b""
        new = next((found for change in changes if (found := change.applied(text)) != text), text)
        if new == text or any(begin < block.end and block.start < end for block in both):
            continue
        if b"\n" in new and _margin(data, begin) != margin:
            continue
        start = begin + len(_margin(data, begin))
        if anywhere or text in (one[0], two[0]) or _statement_parent(source, start) in parents:
            yield document, line_edit(start, text, new)


def similar_blocks(source: Source, bursts: Bursts) -> Iterator[Place]:
    """Do as `similar_lines` does for groups of lines alone."""
    if all(b"\n" in block.old for block in _blocks(bursts, source.document.data)[-2:]):
        yield from similar_lines(source, bursts)


def _margin(data: bytes, start: int) -> bytes:
    """Return the white space at the beginning of the line that begins at `start`."""
    line = data[start : line_end(data, start)]
    return line[: len(line) - len(line.lstrip())]


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines that an edit has changed. start, end: as they are now; old: as they were."""

    start: int
    end: int
    old: bytes


def _blocks(bursts: Bursts, data: bytes) -> list[_Block]:
    """Return the lines that the `bursts` have changed, the newest last; one after the other in a line are one edit.

    Lines that were only put in or removed are left out.
    """
    found = list[tuple[int, int, Burst]]()
    for burst in bursts.recent:
        spans = burst.spans(data)
        if not spans:
            continue
        start, end = line_start(data, spans[0].now), line_end(data, spans[-1].stop)
        if found and found[-1][0] <= end and start <= found[-1][1]:
            low, high, oldest = found.pop()
            found.append((min(low, start), max(high, end), oldest))
        else:
            found.append((start, end, burst))
    blocks = list[_Block]()
    for start, end, burst in found:
        changes = burst.own.followed_by(burst.later).spans
        first, last = (_offset_before(changes, at) for at in (start, end))
        old = burst.before[line_start(burst.before, first) : line_end(burst.before, last)]
        if old.strip() and data[start:end].strip():
            blocks.append(_Block(start, end, old))
    return blocks


def _offset_before(changes: Sequence[Change], at: int) -> int:
    """Return the offset in the old text of the offset `at` in the new one."""
    last = next((c for c in reversed(changes) if c.now <= at), None)
    return at if last is None else last.end + at - last.stop if at >= last.stop else last.start


Pair = tuple[bytes, bytes]


def _widened(one: Pair, two: Pair) -> tuple[Pair, Pair]:
    """Return two changes, old and new, with a word in place of what is in brackets and is kept as it is.

    So `f(a)` and `f(b, c)` differ in one word. They have other words.
    """
    both = one, two
    spans = [_inside(old) for old, _ in both]
    found, last = list[Pair](both), 0
    for number, at in enumerate(zip(*spans, strict=True) if len(spans[0]) == len(spans[1]) else ()):
        parts = [old[slice(*span)] for (old, _), span in zip(both, at, strict=True)]
        kept = all(part and part in new for part, (_, new) in zip(parts, both, strict=True))
        if parts[0] != parts[1] and kept and at[0][0] >= last:
            last = at[0][1]
            words = b"\xff%d" % number, b"\xfe%d" % number
            found = [
                (old.replace(b"(%b)" % part, b"(%b)" % word), new.replace(part, word))
                for (old, new), part, word in zip(found, parts, words, strict=True)
            ]
    return found[0], found[1]


def _inside(text: bytes) -> list[tuple[int, int]]:
    """Return the spans between the brackets of each pair in `text`, in the order of their beginnings."""
    found, opened = list[tuple[int, int]](), list[int]()
    for match in re.finditer(rb"[()]", text):
        if match[0] == b"(":
            opened.append(match.end())
        elif opened:
            found.append((opened.pop(), match.start()))
    return sorted(found)


def line_edit(begin: int, old: bytes, new: bytes) -> Edit:
    """Return the edit that makes the text `old`, which begins at `begin`, the text `new`, by whole words."""
    whole = Changes((Change(0, len(old), 0, len(new)),))
    (change,) = whole_words(trimmed(whole, old, new).spans, old, new)
    text = new[change.now : change.stop].decode("utf-8", "replace")
    return Edit(begin + change.start, begin + change.end, text)


def spans_of(burst: Burst, data: bytes) -> tuple[Change, ...]:
    """Return the changes of `burst` by whole tokens, however much of a line the client has replaced.

    `x` that became `str(x)` is two changes: `str(` was put in before it, and `)` behind it.
    """
    found = list[Change]()
    for span in whole_words(burst.spans(data), burst.before, data):
        old, new = burst.before[span.start : span.end], data[span.now : span.stop]
        if not old or not new or max(len(old), len(new)) > LONGEST or b"\n" in old + new:
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


def whole_words(spans: tuple[Change, ...], old: bytes, new: bytes) -> tuple[Change, ...]:
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


@dataclass(frozen=True, slots=True)
class Example:
    """A line that was edited. start, end: the line as it is now; old: as it was; spans: its changes, within the line.

    now, stop of a span are offsets in the text as it is now.
    """

    start: int
    end: int
    old: bytes
    spans: tuple[Change, ...]

    @staticmethod
    def of(burst: Burst, data: bytes) -> "Example | None":
        """Return the line that `burst` has changed; None if it has changed several, or has put in or removed one."""
        spans = spans_of(burst, data)
        if not spans:
            return None
        start, first = line_start(data, spans[0].now), line_start(burst.before, spans[0].start)
        end, last = line_end(data, start), line_end(burst.before, first)
        if spans[-1].stop > end or spans[-1].end > last or not burst.before[first:last].strip():
            return None
        moved = tuple(Change(c.start - first, c.end - first, c.now, c.stop) for c in spans)
        return Example(start, end, burst.before[first:last], moved)

    @property
    def is_put_in(self) -> bool:
        """Return whether the edit has replaced nothing."""
        return not any(self.old[span.start : span.end].strip() for span in self.spans)

    def changed(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the text from the first change to the last one, before and after; `data` is the text as it is now."""
        first, last = self.spans[0], self.spans[-1]
        return self.old[first.start : last.end], data[first.now : last.stop]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A change of lines that are alike. form: an old line, with a group for each text that differs between them.

    done: a new line. new: the parts of a new line: a text, or the number of a group. equal: groups that must have the
    same text. examples: the two texts of each group. fixed: the number of tokens that the old lines share.
    """

    form: re.Pattern[bytes]
    done: re.Pattern[bytes]
    new: tuple[bytes | int, ...]
    equal: tuple[tuple[int, ...], ...]
    examples: tuple[tuple[bytes, bytes], ...]
    fixed: int

    @staticmethod
    def of(one: tuple[bytes, bytes], two: tuple[bytes, bytes]) -> "_Pattern | None":
        """Return the change of which two lines, old and new, are examples; None if they have too little in common.

        Where a text is in the new lines as often as in the old ones, its places correspond in their order.
        """
        old, new = map(_parts, one, two)
        examples = tuple(part for part in old if isinstance(part, tuple))
        fixed = [
            token for part in old if isinstance(part, bytes) for token in _TOKENS_AND_STRINGS.findall(part)
        ]
        longest = max(len(_TOKENS_AND_STRINGS.findall(line)) for line in (one[0], two[0]))
        if any(b"" in part for part in examples) or 2 * len(fixed) < longest:
            return None
        if not any(map(NAME.fullmatch, fixed)) and len(fixed) < 3:
            return None
        equal, parts, used = list[tuple[int, ...]](), list[bytes | int](), dict[tuple[bytes, bytes], int]()
        for part in new:
            if isinstance(part, bytes):
                parts.append(part)
                continue
            groups = tuple(n for n, example in enumerate(examples) if example == part)
            if not groups:
                return None
            if len(groups) != new.count(part):
                equal.append(groups)
            parts.append(groups[min(used.get(part, 0), len(groups) - 1)])
            used[part] = used.get(part, 0) + 1
        form, done = _form(old), _form(new)
        # Where something was only removed, a new line may be a part of an old one.
        done = re.compile(b"") if done.fullmatch(one[0]) else done
        return _Pattern(form, done, tuple(parts), tuple(equal), examples, len(fixed))

    def applied(self, line: bytes) -> bytes:
        """Return `line` changed; as it is if it does not have the form."""
        found = self.form.fullmatch(line)
        if (
            found is None
            or self.done.fullmatch(line)
            or not all(map(_is_like, found.groups(), self.examples))
        ):
            return line
        if any(len({found[n + 1] for n in groups}) > 1 for groups in self.equal):
            return line
        return b"".join(part if isinstance(part, bytes) else found[part + 1] for part in self.new)


def _parts(one: bytes, two: bytes) -> list[bytes | tuple[bytes, bytes]]:
    """Return the parts of two texts: those that they share, and where they differ both."""
    first, second = _PIECES.findall(one), _PIECES.findall(two)
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    parts = [(tag, b"".join(first[i:j]), b"".join(second[k:m])) for tag, i, j, k, m in matcher.get_opcodes()]
    return [mine if tag == "equal" else (mine, yours) for tag, mine, yours in parts]


def _form(parts: Sequence[bytes | tuple[bytes, bytes]]) -> re.Pattern[bytes]:
    """Return the pattern of a line of these `parts`; a group ends where the part behind it is first, so that matching
    takes linear time.
    """
    texts = [re.escape(part) if isinstance(part, bytes) else b"" for part in parts]
    texts[-1] += rb"\Z"
    found, at = b"", 0
    while at < len(parts):
        is_group = isinstance(parts[at], tuple)
        found += b"(?>(.+?)%b)" % b"".join(texts[at : at + 2]) if is_group else texts[at]
        at += 2 if is_group else 1
    return re.compile(found)


def _is_like(text: bytes, examples: tuple[bytes, bytes]) -> bool:
    """Return whether `text` may be where the `examples` are: a number only where both are, and no half of a pair."""
    pairs = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
    numbers = {example[:1].isdigit() for example in examples}
    return (
        (len(numbers) > 1 or text[:1].isdigit() in numbers)
        and all(text.count(a) == text.count(b) for a, b in pairs)
        and text.count(b'"') % 2 == text.count(b"'") % 2 == 0
    )


def series_places(document: Document, bursts: Bursts, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the edits that put in the missing lines of an element that the newest of the `bursts` has put in.

    They follow the lines of the element before it, which are as those of an earlier one, where its words are defined.
    """
    data, words, near = document.data, dict[bytes, bytes](), set[bytes]()
    for burst in reversed(bursts.recent):
        for span in burst.spans(data):
            if span.stop - span.now <= 2 * LONGEST and not burst.before[span.start : span.end].strip():
                words = _replaced(data, span.now, span.stop) | words
                near.update(NAME.findall(data, max(0, span.now - 2 * LONGEST), span.now))
        if not words:
            return
    count = max([1, *(data.count(b"\n", span.now, span.stop) for span in bursts.recent[-1].spans(data))])
    found = {document.line_at(m.start()) for word in words for m in whole(word).finditer(data)}
    starts, source = (*document.line_starts, len(data)), source_of(document)
    sources = [source, *(source_of(o) for o in others if any(may_share(source, o, word) for word in words))]
    for at in sorted({line - up for line in found for up in range(count)} & {*range(len(starts) - count)}):
        check()
        parts = [(starts[n], document.line_end(n + count - 1)) for n in range(at, -1, -count)[:4]]
        done = TOKENS.findall(data, starts[max(at - count, 0)], starts[min(at + 3 * count, len(starts) - 1)])
        used = [token for token in TOKENS.finditer(data, *parts[0]) if token[0] in words]
        edits = (_continued(data, parts[0], above, words, near) for above in parts[1:])
        edit = next(filter(None, edits), None) if {*done}.isdisjoint(words[t[0]] for t in used) else None
        if edit is not None and _are_defined(sources, [token.span() for token in used], words):
            yield document, edit


def _replaced(data: bytes, now: int, stop: int) -> dict[bytes, bytes]:
    """Return the words of the element at the bytes [now, stop) by those of the one before it, in the same form."""
    # It is the same edit one byte further where the first byte is as the next one, or the last as the one before.
    while data[now : now + 1] not in b"\r\n" and data[now : now + 1] == data[stop : stop + 1]:
        now, stop = now + 1, stop + 1
    while now and data[now - 1] == data[stop - 1] and NAME.match(data, stop - 1):
        now, stop = now - 1, stop - 1
    new = TOKENS.findall(data, now, stop)
    old = TOKENS.findall(data, max(0, now - 3 * (stop - now) - 2 * LONGEST), now)[-len(new) :]
    pairs = dict(zip(old, new, strict=False))
    if not new or [pairs.get(token) for token in old] != new:
        return {}
    changed = {one: other for one, other in pairs.items() if one != other}
    # A word at the end that is nowhere else, not even behind `_`, may be half of one.
    half = new[-1] in changed.values() and len(re.findall(rb"\b_?%b\b" % re.escape(new[-1]), data)) < 2
    return changed if not half and all(NAME.fullmatch(w) for pair in changed.items() for w in pair) else {}


def _continued(
    data: bytes, at: tuple[int, int], above: tuple[int, int], words: Mapping[bytes, bytes], near: set[bytes]
) -> Edit | None:
    """Return the edit that puts in the new element behind the lines `at`; None if they are not as those `above` them.

    Those have other words, of an element `near` by. Punctuation at the end may differ, as `;` for `&&`.
    """
    mine, yours = (list(TOKENS.finditer(data, *span)) for span in (above, at))
    rest = max((n + 1 for n, token in enumerate(yours) if token[0] in words), default=0)
    tails = [b"".join(token[0] for token in tokens[rest:]) for tokens in (mine, yours)]
    if not 0 < rest <= len(mine) or (tails[0] != tails[1] and re.search(rb"\w|\W{4}", b" ".join(tails))):
        return None
    for one, other in ((one[0], other[0]) for one, other in zip(mine[:rest], yours, strict=False)):
        if (one not in near or one == other) if other in words else one != other:
            return None
    new = TOKENS.sub(lambda token: words.get(token[0], token[0]), data[slice(*at)])
    # Lines that are there already, but for the punctuation at their end, are not missing.
    if new.strip().rstrip(b",;&|)}]") in data:
        return None
    new = (b"\r\n" if data.startswith(b"\r\n", above[1]) else b"\n") + new
    new = data[mine[rest - 1].end() : above[1]] + new
    return Edit(yours[rest - 1].end(), at[1], new.decode("utf-8", "replace"))


def _are_defined(sources: list[Source], used: list[tuple[int, int]], words: Mapping[bytes, bytes]) -> bool:
    """Return whether the new `words` are defined in each scope and class where those `used` are, and one at all."""
    source, known = sources[0], False
    for span in used:
        old, name = source.document.data[slice(*span)], name_at(source.language, source.root, *span)
        mine, yours = ([n for s in sources for n in s.names(word) if n.scope] for word in (old, words[old]))
        scopes = ({n.scope: n for n in names if n.role == "member"} for names in (mine, yours))
        classes = [{*map(class_name, found.values())} for found in scopes]
        if classes[0] - classes[1]:
            return False
        if name is not None and name.role in ("variable", "type"):
            scope = binding(source.language, name, (*mine, *yours))
            if name.scope is not None or (scope and scope not in [n.scope for n in yours]):
                return False
        known = known or bool(yours)
    return known


def kind_of(token: bytes) -> str:
    if token[:1] in b"\"'`":
        return "string"
    return "number" if token[:1].isdigit() else "word" if NAME.fullmatch(token) else token.decode("latin-1")


def _statement_parent(source: Source, offset: int) -> int:
    """Return the identity of the node whose children begin with the line of `offset`."""
    data = source.document.data
    while data[offset : offset + 1] in (b" ", b"\t"):
        offset += 1
    node = source.root.descendant_for_byte_range(offset, offset)
    while node is not None and node.parent is not None and node.parent.start_byte == node.start_byte:
        node = node.parent
    return node.parent.id if node is not None and node.parent is not None else 0
