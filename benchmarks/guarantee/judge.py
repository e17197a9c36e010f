"""The judge: what an edit has done to a file, read off the file before and the file after.

Knows parse trees and `ast`; knows neither the guard, nor the checks of fills, nor how gaps are found.
"""

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

from tree_sitter import Query, QueryCursor, QueryError, Tree

from benchmarks.gaps.place import line_of
from benchmarks.gaps.valid import is_python
from dg_lsp.budget import within
from dg_lsp.source.history import common
from dg_lsp.source.language import Language

Span = tuple[int, int]
_MAY_BE_STUBS = (None, "function_body", "class_body", "block", "statement", "expression")
_BRACKETS = ("(", ")", "[", "]", "{", "}")
_TOKEN = re.compile(rb"\w+|[^\w\s]")
_COMMENT = re.compile(rb"comment")
_STRING = re.compile(rb"string|char_literal|character_literal|rune_literal")
# A comment that says nothing but that something is to be done.
_MARKER = re.compile(rb"\W*(?:TODO|FIXME|XXX)\W*")
# What says that a body is not written yet, comments not counted.
_STUB = re.compile(
    rb"(?:pass|\.\.\.|raise\s+NotImplementedError\b.*|(?:todo|unimplemented)!\s*\(.*\)"
    rb"|(?:panic|throw|abort|assert)\b.*(?:implement|todo|unsupported).*)?;?",
    re.DOTALL | re.IGNORECASE,
)


# What is skipped whole, brackets, and what is half a string or half a comment.
_LEXEMES = re.compile(
    rb"""(?P<whole>\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`|/\*.*?\*/|//[^\n]*)"""
    rb"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<half>["'`]|/\*|\*/)""",
    re.DOTALL,
)
_CLOSES = {b"(": b")", b"[": b"]", b"{": b"}"}
# Seconds of processor time for one reading.
SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Reading:
    """A file and its tree. whole: it has no error, neither by its grammar nor, for Python, by `ast`."""

    language: Language
    data: bytes
    tree: Tree
    errors: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """The request, and the span of its gap.

    kind: the kind that was asked for by name, None where none was. room: where a gap of that kind may lie, where the
    asker knows that.
    """

    gap: Span
    kind: str | None
    room: Span | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The harm of one edit; all of it is empty where there is none.

    broken: the file was whole and is not. outside: bytes outside of the gap have changed. lost, comments: typed text
    that is gone. pairs: a bracket, string or comment after the gap is another one than before.
    """

    broken: bool = False
    outside: bool = False
    lost: bytes = b""
    comments: tuple[bytes, ...] = ()
    pairs: bool = False

    @property
    def harms(self) -> tuple[str, ...]:
        """The names of what is wrong."""
        found = {"broken": self.broken, "outside": self.outside, "typed text lost": self.lost}
        found |= {"comment lost": self.comments, "pairs behind": self.pairs}
        return tuple(name for name, wrong in found.items() if wrong)


def read(language: Language, data: bytes) -> Reading:
    """Read the file `data`, in a budget of the judge's own.

    Raises:
        OutOfTime: that takes too long.
    """
    with within(SECONDS):
        tree = language.parse(data)
    errors = count_errors(language, tree)
    whole = not errors and (language.name != "python" or is_python(data))
    return Reading(language, data, tree, errors, whole)


def code_of(reading: Reading, at: int, text: bytes) -> bytes:
    """Return the part of `text` that is code at `at`: nothing in a line comment, and braces between the tags of JSX."""
    before, behind = (_type_at(reading, first) for first in (at - 1, at))
    if "comment" in before and not reading.data.endswith((b"\n", b"*/"), 0, at):
        return b""
    return text.translate(None, b"()[]\"'`*/") if "jsx_text" in (before, behind) else text


def _type_at(reading: Reading, at: int) -> str:
    node = reading.tree.root_node.descendant_for_byte_range(at, at + 1) if at >= 0 else None
    return node.type if node is not None else ""


def is_unbalanced(text: bytes) -> bool:
    """Return whether code leaves a bracket, string or block comment open, or closes one that it has not opened."""
    opened: list[bytes] = []
    for match in _LEXEMES.finditer(text):
        if match["open"]:
            opened.append(_CLOSES[match[0]])
        elif match["half"] or (match["close"] and (not opened or opened.pop() != match[0])):
            return True
    return bool(opened)


def judge(before: Reading, after: Reading, claim: Claim) -> Verdict:
    """The faults of `after`, made of `before` by one edit.

    1. The change is the text that the two files do not share at their ends.  2. It is in the gap.  3. Typed text
    is still there.  4. A file that was whole is whole, and means the same after the gap.
    """
    # 1.
    start, end, text = changed(before.data, after.data)
    # 2.
    outside = not _keeps_around(before.data, after.data, claim.gap)
    # 3.
    removed = _removed(before.data, (start, end), text)
    near = marks(before, (start, end))
    noted = [(a, b) for a, b, kind in near if kind == "comment" and a < end and b > start]
    comments = [s for s in removed if any(a <= s[0] < b for a, b in noted)]
    typed = [s for s in removed if s not in comments]
    markers = [(a, b) for a, b in noted if _MARKER.fullmatch(before.data, a, b)]
    comments = [s for s in comments if not any(a <= s[0] < b for a, b in markers)]
    stub = claim.kind in _MAY_BE_STUBS and _is_stub(before, claim.gap)
    excused = _is_excused(before.data, claim, (start, end))
    if stub or excused:
        typed = []
    if excused and not stub:
        comments = []
    lost = b" ".join(before.data[a:b] for a, b in typed)
    gone = [before.data[a:b] for a, b in comments]
    if not before.whole:
        return Verdict(outside=outside, lost=lost, comments=tuple(gone))
    # 4.
    if not after.whole:
        return Verdict(broken=True, outside=outside, lost=lost, comments=tuple(gone))
    gone += _missing(before, after, claim.gap)
    # What the old and the new text of the gap end with alike, such as a bracket, may mean something else in each.
    rest = len(before.data) - (end if outside else claim.gap[1])
    pairs = _after(before, len(before.data) - rest) != _after(after, len(after.data) - rest)
    return Verdict(False, outside, lost, tuple(gone), pairs)


def changed(old: bytes, new: bytes) -> tuple[int, int, bytes]:
    """The shortest span of `old` that was replaced, and the text in its place in `new`."""
    most = min(len(old), len(new))
    start = common(old[:most], new[:most])
    back = common(old[start:][::-1], new[start:][::-1])
    return start, len(old) - back, new[start : len(new) - back]


def count_errors(language: Language, tree: Tree) -> int:
    """The number of nodes that are errors or missing; 1 where the tree has an error that no node shows."""
    captured = QueryCursor(_errors(language)).captures(tree.root_node)
    found = {(n.start_byte, n.end_byte, n.type) for nodes in captured.values() for n in nodes}
    return max(len(found), int(tree.root_node.has_error))


def marks(reading: Reading, span: Span | None = None) -> list[tuple[int, int, str]]:
    """The brackets, and the outermost strings and comments, that meet `span`, in the order of the text."""
    cursor = QueryCursor(_query(reading.language))
    if span is not None:
        cursor.set_byte_range(span[0], max(span[1], span[0] + 1))
    found: list[tuple[int, int, str]] = []
    nodes = [
        (n.start_byte, -n.end_byte, name)
        for name, ns in cursor.captures(reading.tree.root_node).items()
        for n in ns
    ]
    end = -1
    for start, stop, name in sorted(nodes):
        if start >= end:
            found.append((start, -stop, name))
            end = -stop if name != "bracket" else end
    return found


@cache
def _errors(language: Language) -> Query:
    return Query(language.grammar, "(ERROR) @error (MISSING) @missing")


@cache
def _query(language: Language) -> Query:
    """Captures brackets, strings and comments by what the grammar calls them."""
    grammar = language.grammar
    names = {
        grammar.node_kind_for_id(i) or ""
        for i in range(grammar.node_kind_count)
        if grammar.node_kind_is_named(i)
    }
    wanted = [f'"{b}" @bracket' for b in _BRACKETS]
    wanted += [f"({n}) @comment" for n in sorted(names) if _COMMENT.search(n.encode())]
    # Strings side by side are one each.
    strings = sorted(n for n in names if _STRING.search(n.encode()) and "concatenated" not in n)
    wanted += [f"({n}) @string" for n in strings]
    return Query(grammar, "\n".join(line for line in wanted if _compiles(language, line)))


def _compiles(language: Language, query: str) -> bool:
    try:
        Query(language.grammar, query)
    except QueryError:
        return False
    return True


def _keeps_around(old: bytes, new: bytes, gap: Span) -> bool:
    """Return whether `new` begins and ends with the text around `gap` in `old`."""
    before, behind = old[: gap[0]], old[gap[1] :]
    return len(before) + len(behind) <= len(new) and new.startswith(before) and new.endswith(behind)


def _removed(data: bytes, span: Span, text: bytes) -> list[Span]:
    """The tokens of `span` that `text`, the text there now, does not hold in their order."""
    tokens = [m.span() for m in _TOKEN.finditer(data, *span)]
    if not tokens:
        return []
    old, new = [data[a:b] for a, b in tokens], _TOKEN.findall(text)
    matched = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    kept = {n for block in matched for n in range(block.a, block.a + block.size)}
    return [token for n, token in enumerate(tokens) if n not in kept]


def _is_excused(data: bytes, claim: Claim, span: Span) -> bool:
    """Return whether typed text in `span` may go, since a gap of that kind was asked for by name.

    Where the tree of a broken file pairs quotes wrongly, those of a string's own line tell where it is.
    """
    if claim.kind is None:
        return False
    if claim.room is None or (claim.room[0] <= span[0] and span[1] <= claim.room[1]):
        return True
    start, stop = line_of(data, span[0])
    quoted = (m.span() for m in _LEXEMES.finditer(data, start, stop) if m["whole"])
    return claim.kind == "string" and any(first < span[0] and span[1] < end for first, end in quoted)


def _is_stub(reading: Reading, span: Span) -> bool:
    """Return whether the text in `span`, without its comments, marks a body as not written yet."""
    text = bytearray(reading.data)
    for start, end, kind in marks(reading, span):
        if kind == "comment":
            text[start:end] = b" " * (end - start)
    return _STUB.fullmatch(bytes(text[slice(*span)]).strip()) is not None


def _missing(before: Reading, after: Reading, gap: Span) -> list[bytes]:
    """The comments outside of `gap` that are comments no more."""
    old = [before.data[a:b] for a, b, k in marks(before) if k == "comment" and (b <= gap[0] or a >= gap[1])]
    new = [after.data[a:b] for a, b, k in marks(after) if k == "comment"]
    gone = Counter(map(bytes.strip, old)) - Counter(map(bytes.strip, new))
    # What is added to the end of a comment leaves it there.
    return [text for text in gone if not any(one.startswith(text) for one in new)]


def _after(reading: Reading, end: int) -> list[tuple[int, int, str]]:
    """The marks that lie wholly after `end`, counted from the end of the file."""
    size = len(reading.data)
    return [(size - a, size - b, kind) for a, b, kind in marks(reading, (end, size)) if a >= end]
