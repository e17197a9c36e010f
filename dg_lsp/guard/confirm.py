"""Sentences for the user about a fill: how likely it is right, why it writes nothing, why a person must confirm it."""

from dg_lsp.gaps import Edit, Gap, apply_edit, finished
from dg_lsp.messages import BODIES, Fill, Source
from dg_lsp.source.analysis import analyze
from dg_lsp.source.bodies import has_only_placeholder
from dg_lsp.source.document import Document
from dg_lsp.source.history import common
from dg_lsp.source.language import load_language

# A fill that is right with a lower probability is unsure.
UNSURE = 0.1
_ORIGINS: dict[Source, str] = {
    "denoised": "denoised from noise",
    "retrieved": "found in the project",
    "drafted": "written from left to right",
}


def note_of(fill: Fill) -> str:
    """Return how likely `fill` is right and from where it is, such as `right with 62 %, found in the project`."""
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
    """Return why a person must confirm `edit`, which puts `fill` into `gap` at `cursor`, as a sentence; else empty."""
    if count := written_lines(document, gap, edit):
        chance = "" if fill.chance is None else f", and is right with {_percent(fill.chance)}"
        return f"this replaces {count} written line{'s' if count > 1 else ''}{chance}"
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

    A placeholder is no text, nor are words that the edit leaves: of `f(a)`, `f(a, b)` changes none, `f(b)` one.
    """
    if gap.further or gap.stub or gap.is_placeholder:
        # Each of several gaps is a placeholder, and the text between them stays.
        return 0
    old = document.data[gap.start : gap.end]
    if edit is not None and gap.kind not in BODIES:
        old = document.data[edit.start : edit.end]
        bare, new = old.strip(), edit.text.encode("utf-8").strip()
        # One more piece of text in it, before it or after it.
        if len(new) >= len(bare) and new.endswith(bare[common(bare, new) :]):
            return 0
    return sum(1 for line in old.splitlines() if line.strip())


def useless(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why `edit` writes nothing into the placeholder `gap`, as a sentence; empty if it does or `gap` is none."""
    old = document.data[gap.start : gap.end].strip()
    if not gap.stub or not (old or gap.asked):
        return ""
    if _is_placeholder(document, edit):
        return "the model wrote another placeholder"
    if gap.name and gap.kind not in BODIES and _imports(document.language, edit.text):
        return "the model wrote an import into a function"
    return ""


def _percent(share: float) -> str:
    """Return a share from 0 to 1 as a text such as `12 %`, rounded down: 39.9 % is not said to be below 40 %."""
    return f"{int(share * 100 + 1e-9)} %"


def _is_placeholder(document: Document, edit: Edit) -> bool:
    """Return whether the text of `edit` says no more than that something is not written yet."""
    analysis = analyze(apply_edit(document, edit), edit.start)
    first, last = analysis.inserted
    if first < last:
        return False
    span = analysis.cursor, analysis.cursor + len(edit.text.encode("utf-8"))
    stubs = [node.byte_range for node in analysis.captures(span).get("stub", [])]
    return has_only_placeholder(analysis.language, analysis.data, span, stubs)


def _imports(name: str, text: str) -> bool:
    """Return whether `text` is an import in the language called `name`."""
    language = load_language(name)
    return bool(language.captures(language.parse(text.encode("utf-8")).root_node).get("import"))
