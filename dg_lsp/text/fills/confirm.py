"""Sentences for the user about a fill: how likely it is right, and why a person must confirm its edit."""

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import common
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.gaps.open import finished
from dg_lsp.text.messages import BODIES, Fill, Source

# A fill that is right with a lower probability is unsure.
UNSURE = 0.1
_ORIGINS: dict[Source, str] = {
    "denoised": "denoised from noise",
    "retrieved": "found in the project",
    "drafted": "written from left to right",
}


def note_of(fill: Fill) -> str:
    """Return how likely `fill` is right and where it comes from, such as `right with 62 %, found in the project`.

    It is empty where nobody has estimated that, and the text was denoised.
    """
    if fill.chance is None:
        return "" if fill.source == "denoised" else _ORIGINS[fill.source]
    right = "begins right" if fill.partial else "right"
    return f"{right} with {_percent(fill.chance)}, {_ORIGINS[fill.source]}"


def doubt(fill: Fill, confidence: float) -> str:
    """Return why `fill` is not shown unless somebody asks, as a sentence; empty if it is sure enough."""
    if fill.chance is None or fill.chance >= confidence:
        return ""
    return (
        f"the best fill is right with a probability of {_percent(fill.chance)}, less than confidence "
        f"({_percent(confidence)})"
    )


def why_confirm(document: Document, gap: Gap, edit: Edit, fill: Fill, cursor: int | None = None) -> str:
    """Return why a person must confirm `edit`, which puts `fill` into `gap`, as a sentence; empty if nobody need.

    cursor: where a fill was asked for, if at a cursor.
    """
    if count := written_lines(document, gap, edit):
        return f"this replaces {count} written line{'s' if count > 1 else ''}{_chance(fill)}"
    if cursor is not None and (reason := finished(document, gap, cursor)):
        return reason
    return unsure(fill)


def unsure(fill: Fill) -> str:
    """Return that `fill` is most likely wrong, as a sentence; empty if it is not, or if nobody has estimated that."""
    if fill.chance is None or fill.chance >= UNSURE:
        return ""
    return f"unsure: right with {_percent(fill.chance)}"


def written_lines(document: Document, gap: Gap, edit: Edit | None = None) -> int:
    """Return how many lines with text `edit` takes away or changes; without an edit, how many a fill of `gap` may.

    What says that it is not written yet counts as no text, and neither does what the edit leaves as it is.
    Example: of `f(a)`, an edit that gives `f(a, b)` changes none, one that gives `f(b)` changes one.
    """
    if gap.further or gap.stub or gap.is_placeholder:
        # Each of several gaps is a placeholder, and the text between them stays.
        return 0
    old = document.data[gap.start : gap.end]
    if edit is not None and gap.kind not in BODIES:
        old = document.data[edit.start : edit.end]
        if _is_kept(old.strip(), edit.text.encode("utf-8").strip()):
            return 0
    return sum(1 for line in old.splitlines() if line.strip())


def _chance(fill: Fill) -> str:
    """Return how likely `fill` is right, as the end of a sentence; empty if nobody has estimated that."""
    return "" if fill.chance is None else f", and is right with {_percent(fill.chance)}"


def _percent(share: float) -> str:
    """Return a share from 0 to 1 as a text such as `12 %`, rounded down: 39.9 % is not said to be below 40 %."""
    return f"{int(share * 100 + 1e-9)} %"


def _is_kept(old: bytes, new: bytes) -> bool:
    """Return whether `new` is `old` with one more piece of text in it, before it or behind it."""
    return len(new) >= len(old) and new.endswith(old[common(old, new) :])
