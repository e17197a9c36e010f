"""Focus: a long item of a file with its members blanked, except the one that a place is in, at the same length.

So damage in other members is none of the place's business, and parsing costs little. Knows lines; knows no tree.
"""

import re
from functools import lru_cache

from dg_lsp.text.documents.lines import leading, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.braced_headers import head_of
from dg_lsp.text.syntax.braced_tokens import marks
from dg_lsp.text.syntax.braced_window import item_above, item_below, texts_at
from dg_lsp.text.syntax.tokens import Span

# Blanking less than this saves nothing.
LONG = 4_000
_BLANKS = bytes(c if c in b"\r\n" else 32 for c in range(256))
_OPENS = re.compile(rb"\{[ \t]*(?://[^\r\n]*)?(?=[\r\n])")
_INNER = re.compile(rb"\s*?[\r\n]([ \t]*)(?=[^\s])")
_TEXT = re.compile(rb"[^\s]")
_APART = re.compile(rb"[#/*]|[\w$]+[ \t]*:|case\b")


@lru_cache(maxsize=4)
def focus(language: Language, data: bytes, offset: int) -> bytes:
    """`data`, one item of a file, with what stands apart from `offset` blanked; `data` itself where it is short."""
    item = 0, len(data)
    while item[1] - item[0] > LONG and (inside := _inside(language, data, item, offset)):
        start, stop, space = inside
        above = max(item_above(language, data, offset, space), start)
        below = max(min(item_below(language, data, offset, space), stop), above)
        if below - above >= item[1] - item[0]:
            break
        data = _blanked(language, data, (start, above), space)
        data = _blanked(language, data, (below, stop), space)
        item = above, below
    return data


def _inside(language: Language, data: bytes, item: Span, offset: int) -> tuple[int, int, bytes] | None:
    """The lines between the header of `item` and what closes it, if `offset` is on one; and their indentation."""
    start, stop = item
    found = marks(language, data, start, min(offset, stop))
    braces = (first for kind, first, _ in found if kind == "open" and data[first] in b"{")
    opens = next((m for m in (_OPENS.match(data, at) for at in braces) if m), None)
    if opens is None or head_of(language, data, start, opens.start()) is None:
        return None
    last = line_start(data, start + len(data[start:stop].rstrip()))
    text = _TEXT.search(data, last, stop)
    if text is None or data[text.start()] not in b")]}" or not opens.end() < offset < last:
        return None
    # Only where the members stand deeper, all of them, do their lines tell them apart.
    first, outer = _INNER.match(data, opens.end(), last), leading(data, text.start())
    if first is None or len(first[1]) <= len(outer):
        return None
    if not all(_APART.match(data, at) for at in texts_at(data, outer, opens.end(), last)):
        return None
    return opens.end(), last, _least(data, (opens.end(), last), outer, first[1])


def _least(data: bytes, span: Span, outer: bytes, space: bytes) -> bytes:
    """The least white space beyond `outer` that a line of code in `span` begins with; `space` at most."""
    while len(space) > len(outer) + 1:
        lesser = rb"[\r\n](%b[ \t]{1,%d})(?=[^\s/*#])" % (outer, len(space) - len(outer) - 1)
        found = re.compile(lesser).search(data, *span)
        if found is None:
            break
        space = found[1]
    return space


def _blanked(language: Language, data: bytes, span: Span, space: bytes) -> bytes:
    """`data` with `span` blanked, but for a member of no meaning on one of its lines and a comment at its end."""
    start, stop = span
    filler = language.words.member
    blank = bytearray(data[start:stop].translate(_BLANKS))
    last = len(data[start:stop].rstrip())
    mark = language.comment.encode()
    if last >= len(mark) and not re.search(rb"[\r\n]", data[start + last - len(mark) : start + last]):
        blank[last - len(mark) : last] = mark
    # Without it a class would look empty, and what is left open before it as if nothing followed.
    line = re.compile(rb"[\r\n]" + space + rb"(?=[^\s][^\r\n]{%d})" % len(filler))
    if found := line.search(data, max(start - 1, 0), stop):
        at = found.end() - start
        blank[at : at + len(filler)] = filler
    return data[:start] + bytes(blank) + data[stop:]
