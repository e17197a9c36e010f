"""Lines: lines, or groups of lines, like two that were changed in the same way."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from dg_lsp.budget import check
from dg_lsp.edits.places import Place, Source
from dg_lsp.edits.spans import LONGEST, NAME, PIECES, line_edit, text_before
from dg_lsp.source.bursts import Burst, Bursts
from dg_lsp.source.document import Document
from dg_lsp.source.lexer import leading, line_end, line_start

# Shared tokens of two lines after which a third one is like them by no chance.
_ENOUGH = 8
_TOKENS_AND_STRINGS = re.compile(rb"[\w$\x80-\xff]+|\"[^\"\\]*\"|'[^'\\]*'|[^\w\s]")

# The old and the new text of lines.
Pair = tuple[bytes, bytes]


def similar_lines(source: Source, bursts: Bursts) -> Iterator[Place]:
    """Yield the places in lines, or groups of lines, like two that were changed in the same way, one after the other.

    1. The new lines are made of the same text, and of what differs between the old ones: from `f("a")` and `f("b")`,
    which became `g(1, "a")` and `g(1, "b")`, follows `g(1, "c")` for `f("c")`.  2. Another line of that form is a
    statement of the same block if both are of one, or has much in common with them, or is the same line.
    """
    # 1.
    data = source.document.data
    both = _blocks(bursts, data)[-2:]
    if len(both) < 2:
        return
    one, two = ((block.old.strip(), data[block.start : block.end].strip()) for block in both)
    patterns = list(filter(None, (_Pattern.of(*pair) for pair in ((one, two), _widened(one, two)))))
    count = one[0].count(b"\n")
    if not patterns or count != two[0].count(b"\n") or max(map(len, one + two)) > LONGEST * (count + 1):
        return
    # 2.
    parents = {_statement_parent(source, block.start) for block in both}
    anywhere = len(parents) > 1 or patterns[0].fixed >= _ENOUGH
    for begin, end, new in _applied(source.document, patterns, count):
        text, start = data[begin:end].strip(), begin + len(leading(data, begin))
        if any(begin < block.end and block.start < end for block in both):
            continue
        if b"\n" in new and leading(data, begin) != leading(data, both[0].start):
            continue
        if anywhere or text in (one[0], two[0]) or _statement_parent(source, start) in parents:
            yield source.document, line_edit(start, text, new)


def _applied(document: Document, patterns: list["_Pattern"], count: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield the spans of the lines that one of the `patterns` changes, and their new text without blanks at its ends.

    count: the line ends in them.
    """
    starts = document.line_starts
    for line in range(len(starts) - count):
        check()
        begin, end = starts[line], document.line_end(line + count)
        text = document.data[begin:end].strip() if end - begin <= 2 * LONGEST * (count + 1) else b""
        new = next((found for pattern in patterns if (found := pattern.applied(text)) != text), text)
        if new != text:
            yield begin, end, new


def similar_blocks(source: Source, bursts: Bursts) -> Iterator[Place]:
    """Do as `similar_lines` does for groups of lines alone."""
    if all(b"\n" in block.old for block in _blocks(bursts, source.document.data)[-2:]):
        yield from similar_lines(source, bursts)


def _statement_parent(source: Source, offset: int) -> int:
    """Return the identity of the node whose children begin with the line of `offset`."""
    data = source.document.data
    while data[offset : offset + 1] in (b" ", b"\t"):
        offset += 1
    node = source.root.descendant_for_byte_range(offset, offset)
    while node is not None and node.parent is not None and node.parent.start_byte == node.start_byte:
        node = node.parent
    return node.parent.id if node is not None and node.parent is not None else 0


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
        old = text_before(burst.before, burst.own.followed_by(burst.later).spans, start, end)
        if old.strip() and data[start:end].strip():
            blocks.append(_Block(start, end, old))
    return blocks


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
    examples: tuple[Pair, ...]
    fixed: int

    @staticmethod
    def of(one: Pair, two: Pair) -> "_Pattern | None":
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
        found = _made_of(new, examples)
        if found is None:
            return None
        form, done = _form(old), _form(new)
        # Where something was only removed, a new line may be a part of an old one.
        done = re.compile(b"") if done.fullmatch(one[0]) else done
        return _Pattern(form, done, *found, examples, len(fixed))

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


def _made_of(
    new: Sequence[bytes | Pair], examples: tuple[Pair, ...]
) -> tuple[tuple[bytes | int, ...], tuple[tuple[int, ...], ...]] | None:
    """Return the parts of a new line, and the groups that must have the same text, as a Pattern has them.

    examples: the two texts of each group. None if the new lines differ in a text that is in no group.
    """
    equal, parts, used = list[tuple[int, ...]](), list[bytes | int](), dict[Pair, int]()
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
    return tuple(parts), tuple(equal)


def _parts(one: bytes, two: bytes) -> list[bytes | Pair]:
    """Return the parts of two texts: those that they share, and where they differ both."""
    first, second = PIECES.findall(one), PIECES.findall(two)
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    parts = [(tag, b"".join(first[i:j]), b"".join(second[k:m])) for tag, i, j, k, m in matcher.get_opcodes()]
    return [mine if tag == "equal" else (mine, yours) for tag, mine, yours in parts]


def _form(parts: Sequence[bytes | Pair]) -> re.Pattern[bytes]:
    """Return the pattern of a line of these `parts`; a group ends where the part after it is first, so that matching
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


def _is_like(text: bytes, examples: Pair) -> bool:
    """Return whether `text` may be where the `examples` are: a number only where both are, and no half of a pair."""
    pairs = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
    numbers = {example[:1].isdigit() for example in examples}
    return (
        (len(numbers) > 1 or text[:1].isdigit() in numbers)
        and all(text.count(a) == text.count(b) for a, b in pairs)
        and text.count(b'"') % 2 == text.count(b"'") % 2 == 0
    )
