"""Edits: the changes of one edit by whole words, the text that was there before it, and the edit of a line."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from dg_lsp.gaps import Edit
from dg_lsp.source.bursts import Burst
from dg_lsp.source.history import Change, Changes, trimmed

# Longer texts are compared as a whole.
LONGEST = 200
# A name as most languages write it.
NAME = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")
# Constants and operators, which are no words of a file.
CONSTANT = re.compile(rb"(?i:\s|[\d.+*/%<>=!&|^~-]|true|false|null|nil|none|undefined|0x[\da-f]+)*")
TOKENS = re.compile(rb"[\w$\x80-\xff]+|[^\w\s]")
# The tokens of a text, and the blanks between them.
PIECES = re.compile(rb"[\w$\x80-\xff]+|\s+|[^\w\s]")
_WORD_BYTE = re.compile(rb"[\w$\x80-\xff]")


def spans_of(burst: Burst, data: bytes) -> tuple[Change, ...]:
    """Return the changes of `burst` by whole tokens, however much of a line the client has replaced.

    `x` that became `str(x)` is two changes: `str(` was put in before it, and `)` after it.
    """
    found = list[Change]()
    for span in whole_words(burst.spans(data), burst.before, data):
        old, new = burst.before[span.start : span.end], data[span.now : span.stop]
        if not old or not new or max(len(old), len(new)) > LONGEST or b"\n" in old + new:
            found.append(span)
            continue
        texts = [PIECES.findall(text) for text in (old, new)]
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
    """Return `span` extended to whole words; both texts have the same bytes before it and after it."""
    start, end, now, stop = span
    is_part = _WORD_BYTE.match
    if is_part(old, start) or is_part(new, now):
        while min(start, now) > 0 and is_part(old, start - 1):
            start, now = start - 1, now - 1
    if (end > 0 and is_part(old, end - 1)) or (stop > 0 and is_part(new, stop - 1)):
        while is_part(old, end) and is_part(new, stop):
            end, stop = end + 1, stop + 1
    return Change(start, end, now, stop)


def text_before(before: bytes, spans: Sequence[Change], start: int, end: int) -> bytes:
    """Return the text in `before` in place of which the bytes [start, end) are now.

    Text that was removed at one of its ends is a part of it: `a, b` for `a` in `(a)`, where `, b` was removed.
    """
    back = Changes(tuple(spans)).turned()
    return before[back.before(start) : back.after(end)]


def line_edit(begin: int, old: bytes, new: bytes) -> Edit:
    """Return the edit that makes the text `old`, which begins at `begin`, the text `new`, by whole words."""
    whole = Changes((Change(0, len(old), 0, len(new)),))
    (change,) = whole_words(trimmed(whole, old, new).spans, old, new)
    text = new[change.now : change.stop].decode("utf-8", "replace")
    return Edit(begin + change.start, begin + change.end, text)
