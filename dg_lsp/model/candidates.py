"""Candidates: texts for a gap with where they come from, and whether one can be shown. Knows texts; knows no tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dg_lsp.guard import check, fit
from dg_lsp.messages import Fill, Infill, Retrieved, Source


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text for a gap, its sources, and its likelihoods.

    sources: the ranks of the text by source, 0 for the first. fill: the text as a Fill if its source has checked it.
    retrieved: its result of retrieval. gap, suffix: its negative log likelihood under the reader in nats, and that
    of the suffix after it. tokens: its length, 0 if it was not read yet. unseen: how many of its words occur nowhere
    else. kept: how likely a person who keeps the text keeps the lines that `fill` has below it.
    """

    text: str
    sources: Mapping[Source, int] = field(default_factory=dict)
    fill: Fill | None = None
    retrieved: Retrieved = field(default_factory=lambda: Retrieved(""))
    gap: float = 0.0
    suffix: float = 0.0
    tokens: int = 0
    unseen: int = 0
    kept: float = 1.0


def candidates_of(source: Source, fills: Sequence[Fill]) -> list[Candidate]:
    """`fills`, which `source` has found and checked, as candidates; the best comes first."""
    return [Candidate(fill.text, {source: rank}, fill) for rank, fill in enumerate(fills)]


def merge_candidates(known: Sequence[Candidate], found: Sequence[Candidate]) -> list[Candidate]:
    """`known` and `found`; a text in both becomes one candidate with the sources of both, an empty one is left out."""
    by_text = {candidate.text.strip(): candidate for candidate in known}
    for candidate in found:
        text = candidate.text.strip()
        if text in by_text:
            before = by_text[text]
            sources = {**candidate.sources, **before.sources}
            candidate = replace(before, sources=sources, fill=before.fill or candidate.fill)  # noqa: PLW2901
        by_text[text] = candidate
    by_text.pop("", None)
    return list(by_text.values())


def checked(request: Infill, candidate: Candidate) -> Fill:
    """The Fill of a candidate; one whose source has not checked it is refused if it fits only after a change."""
    if candidate.fill is not None:
        return candidate.fill
    text = fit.beginning(request, candidate.text)
    # Of a header the fit leaves the part in front of its body, which is the same text: `a {` after `if `.
    same = text.strip() in (candidate.text.strip(), candidate.text.strip().removesuffix("{").rstrip())
    changed = "" if same else "it does not fit its place"
    text = fit.ended(request, text)
    refusal = changed or why_refused(request, text)
    source: Source = "retrieved" if "retrieved" in candidate.sources else "drafted"
    score = candidate.gap + candidate.suffix
    return Fill(text, score, reason="stable", parses=not refusal, refusal=refusal, source=source)


def fitted(request: Infill, text: str) -> Fill:
    """A text written from left to right as a Fill: as it fits its gap, with the reason where it must not be shown."""
    text = fit.fit(request, text)
    refusal = why_refused(request, text)
    return Fill(text, reason="stable", parses=not refusal, refusal=refusal, source="drafted")


def why_refused(request: Infill, text: str) -> str:
    """Return why `text` must not be shown as the fill of `request` (law 5), as a sentence; empty if it may."""
    if not text.strip():
        return "it is empty"
    if check.is_stub(request, text):
        return "it is a stub again"
    if repeats := fit.repetition(request, text):
        return repeats
    faults = check.faults_of(request, text)
    return f"it would add a syntax error, {faults[0].message}" if faults else ""


def none_of(refused: Sequence[Fill], why: str) -> Fill:
    """Return an empty Fill with the reason (law 9): why the first of the `refused` texts cannot be shown, or `why`.

    An empty text is no draft: the deadline ended it, or the model wrote nothing, which `why` says.
    """
    written = [fill for fill in refused if fill.text.strip()]
    if written:
        why = f"none of {len(written)} drafts could be shown; the best one: {written[0].refusal}"
    return Fill("", parses=False, refusal=why)
