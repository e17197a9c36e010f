"""Build an Infill from a Document and a Gap: choose the text of the file that is sent to the engine.

A long prefix is cut at a line that moves in big hops, so that its beginning, and its KV cache, changes rarely.
"""

from itertools import pairwise
from typing import cast

from dg_lsp.budget import bounded
from dg_lsp.context.outline import outline
from dg_lsp.gaps import Gap
from dg_lsp.messages import Effort, Infill
from dg_lsp.settings import Settings
from dg_lsp.source.document import BOM, Document
from dg_lsp.source.history import character_start, splits_character
from dg_lsp.source.language import Language, load_language
from dg_lsp.source.lexer import line_below, line_end, line_start

# The most bytes of imports and headers that are kept from above the cut; few files have more.
KEPT = 2_000
# The share of a text that becomes noise where it is to be written again.
NOISED = 0.5


@bounded
def build(document: Document, gap: Gap, settings: Settings) -> Infill:
    """Return the request for `gap`, with at most `prefix_bytes` before it and `suffix_bytes` after it, in whole lines.

    The prefix ends with the gap's insert_before and the suffix begins with its insert_after, beyond those limits. The
    text between several gaps is sent whole.
    """
    before = document.data[: gap.start].removeprefix(BOM)
    after = document.data[gap.span[1] :]
    # Of a span that is to be written again a part is kept.
    start = document.data[gap.start : gap.end].decode("utf-8") if gap.kind == "span" else ""
    language = load_language(document.language, document.macros)
    return Infill(
        prefix=shortened(language, before, settings.prefix_bytes).decode("utf-8") + gap.insert_before,
        suffix=gap.parts[-1].insert_after + after[: _cut_after(after, settings.suffix_bytes)].decode("utf-8"),
        language=document.language,
        kind=gap.kind,
        indent=gap.indent,
        seed=settings.seed,
        effort=cast(Effort, settings.effort),
        deadline=settings.deadline or None,
        session=document.uri,
        endings=gap.endings,
        macros=document.macros,
        start=start or None,
        noised=NOISED if start else 1.0,
        between=tuple(
            one.insert_after + document.data[one.end : two.start].decode("utf-8") + two.insert_before
            for one, two in pairwise(gap.parts)
        ),
    )


@bounded
def shortened(language: Language, before: bytes, limit: int) -> bytes:
    """Return `before` in at most `limit` bytes: imports and enclosing headers, then the text from a cut on.

    1. Leave room for those lines.  2. Cut at a line start, which moves by a quarter of the limit at a time. 3. Choose
    the lines from the text that ends a little below the cut, so that they stay the same while one types.
    """
    if len(before) <= limit:
        return before
    if limit == 0:
        return b""
    # 1.
    hop = max(limit // 4, 1)
    budget = min(limit // 4, KEPT)
    # 2.
    cut = _first_line(before, -((limit - budget - len(before)) // hop) * hop)
    # 3. Lines so long that there is no such text are cut where they happen to be.
    stop = _first_line(before, cut + limit // 8)
    if cut != line_start(before, cut) or stop >= len(before):
        return before[cut:]
    found = outline(language, before[:stop], cut, budget)
    return found.kept + before[found.cut :]


def _first_line(data: bytes, at: int) -> int:
    """Return the first line start from `at` on; without a further line, the beginning of the next character."""
    end = line_end(data, at - 1)
    if end < len(data):
        return line_below(data, end)
    while splits_character(data, at):
        at += 1
    return at


def _cut_after(data: bytes, limit: int) -> int:
    """Return where the suffix ends: after the last line end within `limit` bytes."""
    if len(data) <= limit:
        return len(data)
    # With one more byte the last line is too long, and a line end is never cut in two.
    if end := limit + 1 - len(data[: limit + 1].splitlines(keepends=True)[-1]):
        return end
    return character_start(data, limit)
