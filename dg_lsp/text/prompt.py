"""A document and a gap as an Infill: how much of the file goes along.

The prefix is cut in big hops, so that its beginning, and with it what is cached of it, changes rarely.
"""

from typing import cast

from dg_lsp.settings import Settings
from dg_lsp.text.document import BOM, Document
from dg_lsp.text.gaps import Gap
from dg_lsp.text.messages import Effort, Infill


def build(document: Document, gap: Gap, settings: Settings) -> Infill:
    """The request for `gap`, with at most `prefix_bytes` before it and `suffix_bytes` after it, in whole lines.

    The gap's lead ends the prefix and its tail begins the suffix; both come on top of the limits.
    """
    before = document.data[: gap.start].removeprefix(BOM)
    after = document.data[gap.end :]
    return Infill(
        prefix=before[_cut_before(before, settings.prefix_bytes) :].decode("utf-8") + gap.lead,
        suffix=gap.tail + after[: _cut_after(after, settings.suffix_bytes)].decode("utf-8"),
        language=document.language,
        kind=gap.kind,
        indent=gap.indent,
        seed=settings.seed,
        effort=cast(Effort, settings.effort),
        deadline=settings.deadline or None,
        session=document.uri,
    )


def _cut_before(data: bytes, limit: int) -> int:
    """Where the prefix begins: the first line start after a multiple of half the limit."""
    if len(data) <= limit:
        return 0
    hop = max(limit // 2, 1)
    at = len(data) if limit == 0 else -((limit - len(data)) // hop) * hop
    ends = [end for end in (data.find(b"\n", at - 1), data.find(b"\r", at - 1)) if end >= 0]
    if ends and limit:
        end = min(ends) + 1
        return end + 1 if data[end - 1 : end + 1] == b"\r\n" else end
    return _character(data, at)


def _cut_after(data: bytes, limit: int) -> int:
    """Where the suffix ends: after the last line end within the limit."""
    if len(data) <= limit:
        return len(data)
    end = max(data.rfind(b"\n", 0, limit), data.rfind(b"\r", 0, limit)) + 1
    if data[end - 1 : end + 1] == b"\r\n":
        # The limit fell between the two halves of a line end, and the whole of it does not fit.
        end = max(data.rfind(b"\n", 0, end - 1), data.rfind(b"\r", 0, end - 1)) + 1
    if end:
        return end
    at = limit
    while at and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _character(data: bytes, at: int) -> int:
    """`at`, moved forward to the beginning of a character."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at
