"""The n-gram baseline: fill a gap by counts of tokens in its own file. A model must beat it.

It sees the whole file except the gap. Knows the text layer only.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from dg_lsp.gaps import Gap
from dg_lsp.messages import PARTS
from dg_lsp.source.document import Document

_TOKEN = re.compile(r"\n[ \t]*|\w+|[^\w\s]|[^\S\n]+")
_ORDER = 4  # an n-gram of this many tokens
_LIMITS = {"rest_of_line": (40, 1), "function_body": (160, 10)}  # the most tokens and lines of a fill


def count_tokens(document: Document, gap: Gap) -> str:
    """The continuation by a 4-gram model of the file's own tokens, until the line or the body ends.

    It always takes the most frequent token after the longest known context: "stupid back-off" (Brants et al. 2007)
    without its scores.
    """
    before, after = (part.decode("utf-8") for part in (document.data[: gap.start], document.data[gap.end :]))
    head = _TOKEN.findall((before + gap.insert_before).replace("\r\n", "\n"))
    # The end of the file counts as a line end.
    table = _count([head, [*_TOKEN.findall(after.replace("\r\n", "\n")), "\n"]])
    tokens, lines = _LIMITS["rest_of_line" if gap.kind in PARTS else "function_body"]
    context = head[-(_ORDER - 1) :]
    fill: list[str] = []
    while len(fill) < tokens:
        following = _next(table, context)
        if following.startswith("\n") and sum(t.startswith("\n") for t in fill) + 1 >= lines:
            break
        fill.append(following)
        context = [*context, following][-(_ORDER - 1) :]
    return _until_dedent("".join(fill), gap.indent)


def _count(texts: Sequence[Sequence[str]]) -> dict[tuple[str, ...], Counter[str]]:
    """Return how often each token follows each context of 0 to 3 tokens; no context spans the gap."""
    table: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for text in texts:
        for size in range(_ORDER):
            for n in range(size, len(text)):
                table[tuple(text[n - size : n])][text[n]] += 1
    return table


def _next(table: dict[tuple[str, ...], Counter[str]], context: Sequence[str]) -> str:
    """The most frequent token after the longest known end of `context`."""
    for size in range(min(len(context), _ORDER - 1), -1, -1):
        known = table.get(tuple(context[len(context) - size :]))
        if known:
            return known.most_common(1)[0][0]
    return "\n"


def _until_dedent(text: str, indent: str) -> str:
    """The lines of `text` up to the first one that is indented less than the body."""
    first, *rest = text.split("\n")
    kept = [first]
    for line in rest:
        if line.strip() and not line.startswith(indent):
            break
        kept.append(line)
    return "\n".join(kept).rstrip()
