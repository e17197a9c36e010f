"""What a broken place of a language with braces may lack at the cursor: small insertions, the likeliest first.

Knows what is open at the cursor and the forms of language.toml; knows no tree.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile

from dg_lsp.text.documents.lines import line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.braced_lack import Lack, lack_at
from dg_lsp.text.syntax.braced_tags import closing_tags
from dg_lsp.text.syntax.tokens import State

# A tree that so many changes do not mend is damaged elsewhere too, and lines serve better.
TRIED = 40
_FILLER = b"_g_"
_TOUCHED = re.compile(rb"[\w$\x80-\xff]\Z")
_VALUE = re.compile(rb"[\w$\x80-\xff)\]}\"'`]\Z")
_LAST_WORD = re.compile(rb"[\w$]+\Z")


def candidates(
    language: Language, data: bytes, offset: int, state: State
) -> Iterator[tuple[int, int, bytes]]:
    """Replacements (start, end, text) at or near the cursor, where `state` is open, cheapest first.

    1. At the cursor what is likely to follow and what closes the brackets that lines below do not close.
    2. The same at the end of its line.  3. Last of all the whole statement gives way.
    """
    lack = lack_at(language, data, offset, state)
    # 1.
    tried = chain(
        ((offset, offset, text) for text in _at_cursor(lack)),
        # 2.
        ((lack.eol, lack.eol, text) for text in _at_end(lack)),
        # 3.
        _masks(lack),
    )
    yield from islice(dict.fromkeys(c for c in tried if c[0] < c[1] or c[2]), TRIED)


def dangles(language: Language, data: bytes, offset: int, state: State) -> bool:
    """Whether a clean text is only so because the statement at `offset` takes in the one on the next line."""
    return lack_at(language, data, offset, state).dangles


def insertions(language: Language, data: bytes, offset: int, state: State) -> Iterator[bytes]:
    """What may be inserted at `offset`, where `state` is open, without touching any other byte."""
    lack = lack_at(language, data, offset, state)
    yield from dict.fromkeys(chain((b"",), _at_cursor(lack)))


def _at_cursor(lack: Lack) -> Iterator[bytes]:
    """What may be inserted at the cursor."""
    if lack.state.comment:
        return
    ends = list(_ends(lack))
    if lack.state.string:
        # A backslash at the end would take the quote along.
        slashes = len(lack.data[: lack.offset]) - len(lack.data[: lack.offset].rstrip(b"\\"))
        quotes = b"\\" * (slashes % 2) + lack.state.string
        yield from (quotes + end for end in ends)
        return
    for operand in _operands(lack):
        yield from (operand + end for end in ends)


def _at_end(lack: Lack) -> Iterator[bytes]:
    """What may be inserted at the end of the cursor's line."""
    state, comment = lack.state, lack.language.block_comments
    if state.comment:
        begins = lack.data[state.begins : state.begins + 2]
        shut = comment[0][1].encode() if comment and begins == comment[0][0].encode() else b""
        for end in _closings(lack, lack.behind):
            yield shut + lack.newline * (not end.startswith(lack.newline)) + end
    elif lack.rest:
        yield from _closings(lack, lack.behind)


def _ends(lack: Lack) -> Iterable[bytes]:
    """What may follow an operand at the cursor."""
    ends, directive = lack.language.words.ends, lack.language.words.directive
    if directive and lack.data.startswith(directive, line_start(lack.data, lack.offset)):
        return [b""]
    if lack.rest:
        # The rest of the line may close less than the statement has opened.
        closed = lack.before_rest
        closing = ends if lack.rest.startswith(b"}") else (b"",)
        plain = [lack.closing(closed, end) for end in closing]
        return dict.fromkeys((b"", *plain, *_joined(lack, closed, b"")))
    joined = [text for end in ends[:1] for text in _joined(lack, lack.missing, end)]
    return dict.fromkeys(
        (*joined, *_headers(lack), *_closings(lack, lack.missing), *_closings(lack, lack.all))
    )


def _closings(lack: Lack, brackets: Sequence[int]) -> list[bytes]:
    """What closes `brackets`, with each way in which a statement may end."""
    return [lack.closing(brackets, end) for end in lack.language.words.ends]


def _joined(lack: Lack, brackets: Sequence[int], end: bytes) -> Iterator[bytes]:
    """What closes `brackets` where behind some of them a part of the statement is missing."""
    own = list(takewhile(lambda at: at not in lack.heads, brackets))
    listed = lack.list_of
    items = [listed[1]] if listed and listed[1] and listed[1].split()[0] not in lack.before else []
    tags = closing_tags(lack.inside) if lack.language.words.tags else b""
    items += [tags] if tags else []
    for text in items:
        for count in range(len(own) + 1):
            yield lack.closing(brackets[:count], b"") + text + lack.closing(brackets[count:], end)


def _headers(lack: Lack) -> Iterator[bytes]:
    """What a header at the cursor lacks up to its body."""
    if not lack.is_header:
        return
    inner = lack.closing([at for at in lack.missing if at >= lack.state.line], b"")
    yield inner + (b" {" if lack.deeper else b" {}")


def _operands(lack: Lack) -> Iterable[bytes]:
    """What may stand between a half-written line and what closes it."""
    before, words = lack.before, lack.language.words
    word = _LAST_WORD.search(before.rstrip())
    value = bool(_VALUE.search(before.rstrip())) and not (word and word[0] in words.operators)
    forms = [text for pattern, text in words.operands if pattern.search(before)]
    if not before.strip():
        return dict.fromkeys((b"", *words.lines, _FILLER))
    space = b" " if word and word[0] in words.operators and _TOUCHED.search(before) else b""
    if value:
        return dict.fromkeys((b"", *forms, _FILLER, b"(" + _FILLER + b")"))
    return dict.fromkeys((space + _FILLER, *forms, b"", _FILLER))


def _masks(lack: Lack) -> Iterator[tuple[int, int, bytes]]:
    """The statement at the cursor replaced by one that stands for any."""
    line, data = lack.state.line, lack.data
    start = line + len(data[line : lack.offset]) - len(data[line : lack.offset].lstrip())
    start = max(start, line_start(data, start))
    opens = lack.deeper or data[start : lack.eol].rstrip().endswith(b"{")
    before = [at for at in lack.missing if at < start]
    for end in lack.language.words.ends:
        if opens:
            yield start, lack.eol, lack.language.words.mask
        yield start, lack.eol, _FILLER + lack.closing(before, end)
