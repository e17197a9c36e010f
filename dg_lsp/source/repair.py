"""Repair search: the smallest change at the cursor that makes a broken text parse again, for all languages.

Open brackets and the line below tell the missing text. Each candidate is parsed incrementally, the cheapest is kept.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from tree_sitter import Tree

from dg_lsp.budget import check
from dg_lsp.reasons import Unreadable
from dg_lsp.source.brackets import (
    PAIRS,
    State,
    dangles,
    depths,
    next_line,
    read,
    state_at,
    unclosed,
    unpaired,
)
from dg_lsp.source.history import UNCHANGED, Change, Changes
from dg_lsp.source.items import Head, focus, head_of
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import Span, leading, line_at, line_end, line_start, quotes_at

_FIRST_WORD = re.compile(rb"\s*\}? *(?:async )?([\w$]+)")
# Seconds of work after which no further candidate is tried.
PATIENCE = 0.016
ERROR_COST, MISSING_COST, ERROR_BYTES = 20, 25, 4_000
# A tree that so many changes do not fix is damaged elsewhere too, and then lines are read instead.
TRIED = 40
# At most so many brackets of a list are closed one by one.
MOST_CLOSED = 8
FILLER = b"_g_"  # in the place of a name or a value that is missing
_TOUCHED = re.compile(rb"[\w$\x80-\xff]\Z")
_VALUE = re.compile(rb"[\w$\x80-\xff)\]}\"'`]\Z")
_BARE = re.compile(rb"[^(){}\[\]=<>]*")
_WORDS = re.compile(rb"[\w$]+")
_SHUT = re.compile(rb"\s*(?=[)\]}>\"'`])")
_LAST_WORD = re.compile(rb"[\w$]+\Z")
# What the header of a loop of three parts begins with.
_LOOP = re.compile(rb"\bfor\s*\Z")
_PARTS = re.compile(rb"\((?:[^=;:()]|::)*(?:=(?![=>])|;)")
# The bytes [start, end) of a text, and the text that replaces them.
Replacement = tuple[int, int, bytes]


@dataclass(frozen=True, slots=True)
class MissingTokens:
    """State at the cursor for repair. Brackets are given by their offsets, the innermost first.

    before: the statement up to the cursor. rest: the code of the line after it; eol: the line's end. deeper: the next
    line with text is deeper than the statement. heads: of those brackets that open bodies. opened: the open brackets;
    unclosed: those of them that no later line closes. breaks: the line end and the white space before the closer of a
    brace that is the last of its line.
    """

    language: Language
    data: bytes
    offset: int
    state: State
    before: bytes
    rest: bytes
    eol: int
    deeper: bool
    heads: dict[int, Head]
    opened: tuple[int, ...]
    unclosed: tuple[int, ...]
    breaks: dict[int, bytes]

    @property
    def is_header(self) -> bool:
        """Return whether the statement at the cursor begins with a word that wants a body, perhaps after modifiers."""
        words, first = self.language.words, _FIRST_WORD.match(self.before + self.rest)
        head = _BARE.match(self.before)
        if head and (words.functions | words.classes).intersection(_WORDS.findall(head[0])):
            return True
        return self.owns or (first is not None and first[1] in words.blocks)

    @property
    def owns(self) -> bool:
        """Return whether the statement at the cursor begins like a function or a class."""
        words, first = self.language.words, _FIRST_WORD.match(self.before + self.rest)
        return first is not None and first[1] in words.functions | words.classes

    def closing(self, brackets: Sequence[int], end: bytes) -> bytes:
        """Return the text that closes `brackets`; statements in them that do not end by themselves end with `end`.

        `f(a, [b` gets `]);` with `;` as `end`; a brace at the end of a line above gets a line with `}`. An element of a
        list ends with a comma, and with nothing in front of the bracket that closes the list.
        """
        data, text = self.data, b""
        ended = not self.before.strip()
        for at in brackets:
            head = self.heads.get(at)
            if head is not None:
                text += b"" if ended or self._is_list(at) else end
                text += self.breaks.get(at) or b" " * bool(text)
            text += self.parts(at) if at != self.opened[0] else b""
            text += PAIRS.get(data[at : at + 1]) or quotes_at(self.language, data, at).close
            ended = head is not None
        closed = frozenset(brackets)
        left = next((at for at in self.opened if at not in closed), None)
        listed = left is not None and self._is_list(left)
        return text + (b"," if listed and end else b"" if ended or listed else end)

    def parts(self, at: int) -> bytes:
        """Return the parts that are missing in the bracket at `at` if it is that of a loop: `for (i = 0` has one."""
        data = self.data
        if not (_LOOP.search(data, max(at - 20, 0), at) and _PARTS.match(data, at, self.offset)):
            return b""
        return (b";" + FILLER) * (2 - data.count(b";", at, self.offset) - self.rest.count(b";"))

    def _is_list(self, at: int) -> bool:
        """Return whether the bracket at `at` holds a list and not statements."""
        head = self.heads.get(at)
        return head is None or any(pattern.search(head.text) for pattern in self.language.words.lists)


def missing_tokens_at(language: Language, data: bytes, offset: int, state: State) -> MissingTokens:
    """Return the tokens missing at `offset`, where `state` is open."""
    line = line_at(data, offset)
    known = {o.at: o for o in read(language, data, state.start, offset).stack}
    # A header's brace is closed as deep as the header.
    found = {at: o.width if o.bracket == b"{" else o.columns for at, o in known.items()}
    # Looked up where it is known, since a line may be long and hold all the brackets.
    if unknown := [at for at in state.opened if at not in found]:
        found |= zip(unknown, depths(data, unknown, state.opened), strict=True)
    opened = [(at, found[at]) for at in reversed(state.opened)]
    braces = [o for o in known.values() if o.bracket == b"{" and language.style == "brace"]
    heads = {o.at: head for o in braces if (head := head_of(language, data, o.line, o.at))}
    columns, below = next_line(language, data, line.end)
    newline = b"\r\n" if data.startswith(b"\r\n", line.end) else b"\n"
    return MissingTokens(
        language=language,
        data=data,
        offset=offset,
        state=state,
        before=data[state.line : state.begins if state.comment else offset].lstrip(),
        rest=line.after.strip(),
        eol=line.end,
        deeper=columns > depths(data, [min(state.line, offset)], state.opened)[0],
        heads=heads,
        opened=tuple(at for at, _ in opened),
        unclosed=unclosed(language, data, opened, (columns, below)),
        breaks={
            at: newline + leading(data, head.start)
            for at, head in heads.items()
            if at < line.start and not data[at + 1 : line_end(data, at)].strip()
        },
    )


@dataclass(frozen=True, slots=True)
class Closing:
    """Two texts to insert: `text` at the cursor, and `tail` at the offset `at` after it."""

    text: bytes
    at: int
    tail: bytes


@dataclass(frozen=True, slots=True)
class Repaired:
    """A text after its repair, its tree, and the `changes` that lead back to the text before; `cost` 0 is clean.

    at: the cursor in it. One change is at the cursor, another one ends the line after the brackets after it.
    """

    data: bytes
    tree: Tree
    at: int
    cost: int
    changes: Changes = UNCHANGED


def repair(language: Language, data: bytes, offset: int) -> Repaired:
    """The cheapest repair of `data`, a top-level item, at `offset`: `_g_)` for `f(a, |`. A long item is read in part.

    1. Parse as it is; a clean tree needs no repair, unless a line dangles.  2. Parse each candidate.  3. Stop at the
    first that parses cleanly, or when too much time has gone; the earlier of two equal ones wins.
    """
    # 1. Most calls end here.
    data = focus(language, data, offset)
    tree = language.parse(data)
    best = Repaired(data, tree, offset, cost_of(tree))
    state, lowest = state_at(language, data, offset, 0), best.cost
    if lowest == 0 and dangles(language, data, offset, state):
        lowest = 1
    if lowest == 0 or (best.cost and language.style == "indent" and out_of_reach(tree, state.line)):
        return best
    begun = time.thread_time()
    for edits in _edits(missing_tokens_at(language, data, offset, state)):
        # 2. Only the neighbourhood of the cursor is parsed again.
        span, text, changes = _joined(data, edits)
        try:
            new = language.reparse(tree, data, span, text)
        except Unreadable:
            continue
        cost = cost_of(new)
        if cost < lowest:
            lowest = cost
            best = Repaired(data[: span[0]] + text + data[span[1] :], new, span[0], cost, changes)
        # 3. Cheapest first, so the first clean one is the smallest change. Others wait for this thread's parses.
        if cost == 0 or time.thread_time() - begun > PATIENCE:
            break
    return best


def _edits(missing: MissingTokens) -> Iterator[tuple[Replacement, ...]]:
    """The repairs at the cursor, likeliest first, as replacements; last of all the whole statement gives way."""
    offset = missing.offset
    yield from (((offset, offset, way.text), (way.at, way.at, way.tail)) for way in insertions(missing))
    yield from ((mask,) for mask in _masks(missing))


def insertions(missing: MissingTokens) -> Iterator[Closing]:
    """Texts to insert at the cursor, and after brackets there, without touching any other byte; likeliest first.

    1. Texts that go with brackets which an editor has closed on the line.  2. An operand at the cursor, and closers for
    the brackets that lines below do not close.
    """
    yield from _closings(missing)
    texts = dict.fromkeys(text for text in _at_cursor(missing) if text)
    yield from (Closing(text, missing.offset, b"") for text in islice(texts, TRIED))


def _joined(data: bytes, edits: Sequence[Replacement]) -> tuple[Span, bytes, Changes]:
    """Return the span of `data` that `edits` reach over, the text that replaces it, and the changes back to `data`."""
    start = at = edits[0][0]
    text, changes = b"", list[Change]()
    for first, last, new in edits:
        text += data[at:first]
        now = start + len(text)
        text, at = text + new, last
        changes += [Change(now, now + len(new), first, last)] if new or first < last else []
    return (start, at), text, Changes(tuple(changes))


def out_of_reach(tree: Tree, line: int) -> bool:
    """Return whether an error ends above the logical line at `line`, out of reach of a change on it."""
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        if (node.is_error or node.is_missing) and node.end_byte < line:
            return True
        if node.has_error:
            check()
            stack.extend(node.children)
    return False


def cost_of(tree: Tree) -> int:
    """Return the cost of a tree's errors: 20 and its bytes for an ERROR, 25 for a MISSING token."""
    cost, stack = 0, [tree.root_node]
    while stack:
        node = stack.pop()
        if node.is_missing:
            cost += MISSING_COST
        elif node.is_error:
            cost += ERROR_COST + min(node.end_byte - node.start_byte, ERROR_BYTES)
        elif node.has_error:
            check()
            stack.extend(node.children)
    # What a hidden rule of the grammar misses is no node that can be seen.
    return cost or MISSING_COST * tree.root_node.has_error


def _closings(missing: MissingTokens) -> list[Closing]:
    """Texts at the cursor and after brackets on its line: editors close `def f(|)`, which gets `: pass` after it."""
    language, data = missing.language, missing.data
    ends = _shut_ends(data, missing.offset, missing.state)
    if not ends or ends[0] > missing.eol:
        return []
    operands = (b"", b"_") if missing.state.string else tuple(_operands(missing))
    found: dict[Closing, None] = {}
    for at in ends:
        after = missing_tokens_at(language, data, at, state_at(language, data, at))
        tails = [tail for tail in _tails(after) if tail]
        found |= dict.fromkeys(Closing(operand, at, tail) for operand in operands for tail in tails)
    return list(found)[:TRIED]


def _tails(missing: MissingTokens) -> Iterable[bytes]:
    """Texts after brackets that end a line: those of `_ends`, the end of a body, a name after the type `Map<>`."""
    words, tails = missing.language.words, list(_ends(missing))
    if missing.is_header:
        tails += [words.headers[-1] + end for end in words.ends if end]
    if missing.before.rstrip().endswith(b">"):
        tails += [b" " + FILLER + tail for tail in tails]
    return tails


def _shut_ends(data: bytes, offset: int, state: State) -> tuple[int, ...]:
    """Return where brackets after `offset` have closed the statement, and all that they close; empty if none do."""
    wanted = [(state.begins, state.string)] if state.string else []
    opened = reversed(list(zip(state.opened, state.brackets, strict=True)))
    wanted += [(at, PAIRS[bytes([bracket])]) for at, bracket in opened]
    angled = b"<" in data[state.line : offset]
    at, own = offset, -1
    while found := _SHUT.match(data, at):
        if at > offset and (b"\n" in found[0] or b"\r" in found[0]):
            break
        if wanted and data.startswith(wanted[0][1], found.end()):
            begins, bracket = wanted.pop(0)
            at = found.end() + len(bracket)
            own = at if begins >= state.line else own
        elif angled and data.startswith(b">", found.end()):
            at = own = found.end() + 1
        else:
            break
    if at == offset or data[at : line_end(data, at)].strip():
        return ()
    return (own, at) if 0 <= own < at else (at,)


def _at_cursor(missing: MissingTokens) -> Iterator[bytes]:
    """Yield the texts that may be inserted at the cursor."""
    if missing.state.comment:
        yield from _after_comment(missing)
        return
    operands = _operands(missing)
    if missing.state.string:
        # A backslash at the end would take the quote along.
        slashes = len(missing.data[: missing.offset]) - len(missing.data[: missing.offset].rstrip(b"\\"))
        operands = [b"\\" * (slashes % 2) + missing.state.string]
    ends = _ends(missing)
    yield from (operand + end for operand in operands for end in ends)


def _after_comment(missing: MissingTokens) -> Iterator[bytes]:
    """Yield closers for brackets that nothing below closes, on their own lines: `{ // a|` gets a line with `}`."""
    line_comment = missing.data.startswith(missing.language.comment, missing.state.begins)
    texts = (missing.closing(brackets, b"") for brackets in (missing.unclosed, missing.opened))
    yield from (text for text in texts if line_comment and not missing.rest and text[:1] in (b"\r", b"\n"))


def _operands(missing: MissingTokens) -> Iterable[bytes]:
    """Return the texts that may come between a half-written line and its closers."""
    parts = missing.parts(missing.opened[0]) if missing.opened else b""
    return dict.fromkeys(text + parts for text in _values(missing))


def _values(missing: MissingTokens) -> Iterable[bytes]:
    """Return the texts that may complete a half-written value, the likeliest first."""
    before, words = missing.before, missing.language.words
    word = _LAST_WORD.search(before.rstrip())
    wanting = word is not None and word[0] in words.operators
    forms = [text for pattern, text in words.operands if pattern.search(before)]
    if not before.strip():
        return (b"", FILLER)
    if _VALUE.search(before.rstrip()) and not wanting:
        return (b"", *forms, FILLER)
    space = b" " if wanting and _TOUCHED.search(before) else b""
    return (space + FILLER, *forms, b"", FILLER)


def _ends(missing: MissingTokens) -> Iterable[bytes]:
    """Return the texts that may follow an operand at the cursor: closers, a statement's end, a header's colon."""
    words = missing.language.words
    if missing.rest:
        # The rest of the line may close less than the statement has opened; what the line opens is likely closed in it.
        own = list(takewhile(lambda at: at not in missing.heads, missing.opened))[:MOST_CLOSED]
        here = line_start(missing.data, missing.offset)
        # After a quote the rest of the line is read otherwise.
        opened = takewhile(lambda at: at >= here and missing.data[at : at + 1] in (b"(", b"[", b"{"), own)
        closed = len(unpaired(missing.language, missing.rest).closers)
        balanced = max(sum(1 for _ in opened) - closed, 0)
        ends = words.ends if missing.rest.startswith(b"}") else (b"",)
        counts = sorted(range(len(own) + 1), key=lambda count: (count != balanced, count))
        found = [missing.closing(own[:count], end) for count in counts for end in ends]
        found.insert(found.index(missing.closing((), ends[0])), b"")
    else:
        own = [at for at in missing.unclosed if at >= missing.state.line]
        headers = words.headers if missing.is_header else ()
        # A line that belongs to the item below it has no end of its own.
        bare = (b"",) if words.above.match(missing.before) else ()
        found = [missing.closing(missing.unclosed, end) for end in bare]
        # The body below a header does not show that its brackets are closed.
        statement = [at for at in missing.opened if at >= missing.state.line]
        headers = headers if missing.deeper else headers[::-1]
        found += [missing.closing(brackets, b"") + end for brackets in (own, statement) for end in headers]
        found += [missing.closing(missing.unclosed, end) for end in words.ends]
        # A brace may close a value, whose statement does not end with it: `x = new A() {` gets `};`.
        found += [
            missing.closing(missing.unclosed, end).removesuffix(end) + end
            for end in words.ends
            if missing.heads
        ]
        here = line_start(missing.data, missing.offset)
        line = [at for at in missing.opened if at >= here]
        found += [missing.closing(brackets, end) for brackets in (line, missing.opened) for end in words.ends]
    return dict.fromkeys(found)


def _masks(missing: MissingTokens) -> Iterator[Replacement]:
    """Yield replacements of the statement at the cursor by a neutral one."""
    line, data, words = missing.state.line, missing.data, missing.language.words
    start = line + len(data[line : missing.offset]) - len(data[line : missing.offset].lstrip())
    start = max(start, line_start(data, start))
    if missing.language.style == "indent" and missing.owns:
        return
    before = [at for at in missing.unclosed if at < start]
    yield from ((start, missing.eol, FILLER + missing.closing(before, end)) for end in words.ends)
