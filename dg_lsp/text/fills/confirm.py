"""Reasons why a person must confirm an edit: it replaces written text, its line is finished, or it is unsure.

Knows gaps, edits and fills; knows no engine and no editor.
"""

from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills.offers import percent
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.gaps.open import finished
from dg_lsp.text.messages import BODIES, Fill

# A fill that is right with a lower probability is unsure.
UNSURE = 0.1


def why_confirm(document: Document, gap: Gap, edit: Edit, fill: Fill, cursor: int | None = None) -> str:
    """Return why a person must confirm `edit`, which puts `fill` into `gap`, as a sentence; empty if nobody need.

    cursor: where a fill was asked for, if at a cursor.
    """
    if count := written_lines(document, gap, edit):
        return f"this replaces {count} written line{'s' if count > 1 else ''}"
    if cursor is not None and (reason := finished(document, gap, cursor)):
        return reason
    return unsure(fill)


def unsure(fill: Fill) -> str:
    """Return that `fill` is most likely wrong, as a sentence; empty if it is not, or if nobody has estimated that."""
    if fill.chance is None or fill.chance >= UNSURE:
        return ""
    return f"unsure: right with {percent(fill.chance)}"


def written_lines(document: Document, gap: Gap, edit: Edit | None = None) -> int:
    """Return how many lines with text `edit` takes away or changes; without an edit, how many a fill of `gap` may.

    What says that it is not written yet counts as no text, and neither does what the edit leaves as it is.
    Example: of `f(a)`, an edit that gives `f(a, b)` changes none, one that gives `f(b)` changes one.
    """
    if gap.further or gap.stub or gap.hollow:
        # Each of several gaps is a placeholder, and what stands between them stays.
        return 0
    old = document.data[gap.start : gap.end]
    if edit is not None and gap.kind not in BODIES:
        old = document.data[edit.start : edit.end]
        if _is_kept(old.strip(), edit.text.encode("utf-8").strip()):
            return 0
    return sum(1 for line in old.splitlines() if line.strip())


def _is_kept(old: bytes, new: bytes) -> bool:
    """Return whether `new` is `old` with one more piece of text in it, before it or behind it."""
    same = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        same += 1
    return len(new) >= len(old) and new.endswith(old[same:])
