"""The whole algorithm: from an Infill to Drafts and, last, one Fill, chosen among candidates of all sources.

`infill` is a generator that computes only when it is asked for the next event, so closing it cancels within one
denoising step or encoding chunk.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace

from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.candidates import why_refused
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.judge import PLAIN, Proposal, chances, sure_length, words_in_sight
from dg_lsp.model.likelihood import neg_log_likelihoods_of_tokens
from dg_lsp.model.sources.denoised import denoised
from dg_lsp.model.sources.drafted import draft_of, write, write_lines
from dg_lsp.model.steps import Clock
from dg_lsp.model.tokens import Join, join_of, read_together, tokenise, with_similar
from dg_lsp.text.fills import fit
from dg_lsp.text.fills.sure import sure_beginning
from dg_lsp.text.languages.language import WORD
from dg_lsp.text.messages import BODIES, PARTS, Draft, Fill, Infill, Kind, Source

# How likely the best candidate must be for the judge to take it before anything is denoised; and how likely for
# anything to be denoised where nobody has asked: below it denoising never made a text that could be shown
# (docs/research/candidates-and-judge.md).
SURE, HOPE = 0.15, 0.1
# How likely a docstring written from left to right is exactly right; none of 60 was (docs/research/bodies.md).
DOCSTRINGS = 0.01


def infill(model: Checkpoint, cache: PrefixCache, request: Infill) -> Generator[Draft | Fill, None, None]:
    """Fill the gap of `request`; yield Drafts (step 0 while encoding and searching), then one Fill.

    The Fill is chosen among candidates of several sources. If a measurement gives the length, only the denoiser can be
    told of it. A body is written from left to right only by a network whose judge was fitted, with which that was
    measured, or that can do nothing else.
    """
    clock = Clock(request.deadline)
    if request.kind in PARTS and request.like is None:
        fills = yield from _fill_part(model, cache, request, clock)
    elif request.like is None and _is_written(model, request.kind):
        fills = yield from _fill_lines(model, cache, request, clock)
    else:
        fills = yield from denoised(model, cache, request, clock)
    yield clock.stamp(_with_others(fills[: request.alternatives]))


def _is_written(model: Checkpoint, kind: Kind) -> bool:
    """Whether the encoder writes gaps of this `kind`, of several lines, from left to right."""
    if model.denoises:
        return kind in BODIES and bool(model.judge)
    return kind in (*BODIES, "docstring")


def _fill_part(
    model: Checkpoint, cache: PrefixCache, request: Infill, clock: Clock
) -> Generator[Draft, None, Sequence[Fill]]:
    """Fill a gap within a line; yield Drafts. Returns the fills, the likeliest first.

    1. Propose the texts that were retrieved and those that the encoder drafts.  2. If the judge is sure of one, or has
    no hope where nobody has asked, or the network cannot denoise, take the best.  3. Otherwise denoise fills from
    noise.  4. Judge all; the first Fill is the likeliest one, or its beginning that is sure enough.
    """
    # 1.
    prefix, seam = tokenise(model, request)
    join = join_of(model, request, prefix, seam)
    proposals = yield from propose(model, cache, request, (prefix, join), clock)
    # 2.
    best = choose(model, request, proposals)
    if not model.denoises or (best and (_is_settled(request, best) or clock.is_over())):
        refused = [] if best else [fill_of(request, proposal) for proposal in proposals]
        fills = _sure_part(model, request, proposals, best) if best else [_none_of(refused, clock)]
        yield draft_of(max(fills[0].steps, 1), fills[0].text, clock)
        return fills
    # 3. Texts that can be shown already are alternatives, too.
    missing = max(request.alternatives - len(best), 1)
    fills = yield from denoised(model, cache, replace(request, alternatives=missing), clock)
    # 4. The last Draft shows the Fill.
    denoised_text = fills[0].text
    if proposals and not fills[0].refusal:
        proposals = rate(model, cache, request, join, add(proposals, "denoised", [f.text for f in fills]))
        fills = choose(model, request, proposals, fills)
    elif best:
        fills = best
    fills = _sure_part(model, request, proposals, fills)
    if fills[0].text != denoised_text:
        yield draft_of(max(fills[0].steps, 1), fills[0].text, clock)
    return fills


def _is_settled(request: Infill, best: Sequence[Fill]) -> bool:
    """Whether denoising would add nothing to `best`, the texts that can be shown so far, likeliest first."""
    chance = best[0].chance
    if chance is None or len(best) < request.alternatives:
        return False
    return chance >= SURE or chance < min(HOPE, request.confidence)


def _fill_lines(
    model: Checkpoint, cache: PrefixCache, request: Infill, clock: Clock
) -> Generator[Draft, None, Sequence[Fill]]:
    """Fill a gap of several lines; yield Drafts. Returns the fills: those written by the encoder, then denoised ones.

    Denoised ones are made only where too few of the others can be shown. On bodies the judge has nothing to say: by
    likelihood the shortest text wins, by likelihood a token the one that repeats itself most (docs/research/bodies.md).
    A docstring that nobody has asked for is not written if it could not be shown.
    """
    prose = request.kind == "docstring"
    if prose and request.confidence > DOCSTRINGS:
        why = "a docstring written from left to right is exactly right too seldom to be shown unasked; ask for it"
        return [Fill("", parses=False, refusal=why)]
    prefix, seam = tokenise(model, with_similar(model, request))
    join = join_of(model, request, prefix, seam)
    for _ in extend_to(model.network, cache, prefix, exact=request.deadline is None):
        yield Draft(0, (), clock.milliseconds())
    written = yield from write_lines(model, cache, request, join, clock)
    fills = dict[str, Fill]()
    for fill in written:
        if not fill.refusal:
            fills.setdefault(fill.text, replace(fill, chance=DOCSTRINGS if prose else None))
    missing = request.alternatives - len(fills)
    if model.denoises and missing > 0 and not (fills and clock.is_over()):
        more = yield from denoised(model, cache, replace(request, alternatives=missing), clock)
        if not fills:
            return more
        fills |= {fill.text: fill for fill in more if not fill.refusal and fill.text not in fills}
    found = list(fills.values()) or [_none_of(written, clock)]
    yield draft_of(max(found[0].steps, 1), found[0].text, clock)
    return found


def _none_of(written: Sequence[Fill], clock: Clock) -> Fill:
    """An empty Fill: why none of what was `written` can be shown, or why nothing was."""
    if written:
        why = f"none of {len(written)} drafts could be shown; the best one: {written[0].refusal}"
    else:
        why = "the deadline passed before a candidate was ready" if clock.is_over() else ""
    return Fill("", parses=False, refusal=why or "the model left the gap empty")


def propose(
    model: Checkpoint, cache: PrefixCache, request: Infill, tokens: tuple[tuple[int, ...], Join], clock: Clock
) -> Generator[Draft, None, list[Proposal]]:
    """The retrieved candidates of `request` and the encoder's drafts, with likelihoods; yields Drafts of step 0.

    tokens: those of the prefix, and the Join of the request.
    """
    prefix, join = tokens
    # A Draft after each chunk and token lets the caller cancel.
    for _ in extend_to(model.network, cache, prefix, exact=request.deadline is None):
        yield Draft(0, (), clock.milliseconds())
    drafts = yield from write(model, cache, request, join, clock)
    found = add([], "retrieved", [one.text for one in request.retrieved])
    return rate(model, cache, request, join, add(found, "drafted", drafts))


def add(proposals: Sequence[Proposal], source: Source, texts: Sequence[str]) -> list[Proposal]:
    """`proposals` and `texts`, which come from `source`, the best first; a text that is known gets a further source."""
    by_text = {p.text.strip(): p for p in proposals}
    for rank, text in enumerate(texts):
        known = by_text.get(text.strip()) or Proposal(text, {})
        by_text[text.strip()] = replace(known, sources={source: rank, **known.sources})
    by_text.pop("", None)
    return list(by_text.values())


def rate(
    model: Checkpoint, cache: PrefixCache, request: Infill, join: Join, proposals: Sequence[Proposal]
) -> list[Proposal]:
    """`proposals` with their likelihoods under the encoder, of the text and of the suffix behind it.

    `cache` holds the prefix. The encoder reads only those proposals that it has not read yet.
    """
    known, unread = [p for p in proposals if p.tokens], [p for p in proposals if not p.tokens]
    if not unread:
        return known
    retrieved, seen = {r.text.strip(): r for r in request.retrieved}, words_in_sight(request)
    read = [read_together(model, join, p.text) for p in unread]
    texts, starts = [tokens for tokens, _ in read], [first for _, (first, _, _) in read]
    nats = neg_log_likelihoods_of_tokens(model.network, cache, texts, starts, join.kept)
    return known + [
        replace(
            p,
            gap=sum(row[: end - first]),
            suffix=sum(row[end - first :]),
            tokens=max(end - begin, 1),
            unseen=len(set(WORD.findall(p.text)) - seen),
            retrieved=retrieved.get(p.text.strip(), p.retrieved),
        )
        for p, (_, (first, begin, end)), row in zip(unread, read, nats, strict=True)
    ]


def choose(
    model: Checkpoint, request: Infill, proposals: Sequence[Proposal], fills: Sequence[Fill] = ()
) -> list[Fill]:
    """Those of `proposals` that can be shown, at most `request.alternatives`, as Fills, the likeliest first.

    fills: the denoised ones, which have been checked. A text that cannot be shown leaves the comparison.
    """
    known, left = {fill.text.strip(): fill for fill in fills}, list(proposals)
    while True:
        rated = zip(chances(model.judge or PLAIN, request, left), left, strict=True)
        best = sorted(rated, key=lambda pair: -pair[0])[: request.alternatives]
        for _, proposal in best:
            text = proposal.text.strip()
            if text not in known:
                known[text] = fill_of(request, proposal)
            if known[text].refusal:
                left.remove(proposal)
                break
        else:
            return [replace(known[p.text.strip()], chance=c if model.judge else None) for c, p in best]


def _sure_part(
    model: Checkpoint, request: Infill, proposals: Sequence[Proposal], fills: Sequence[Fill]
) -> Sequence[Fill]:
    """`fills`; where the best one is less likely than the request's confidence, its surer beginning, if it has one."""
    best = fills[0]
    if best.chance is None or best.chance >= request.confidence:
        return fills
    text, judged = best.text.strip(), chances(model.judge or PLAIN, request, proposals)
    rated = [(chance, p.text.strip()) for chance, p in zip(judged, proposals, strict=True)]
    beginning = sure_beginning(request, text, sure_length(text, rated, request.confidence))
    if not beginning:
        return fills
    chance = sum(chance for chance, other in rated if other.startswith(beginning))
    lead = best.text[: len(best.text) - len(best.text.lstrip())]
    return [replace(best, text=lead + beginning, chance=min(chance, 1.0), partial=True)]


def fill_of(request: Infill, proposal: Proposal) -> Fill:
    """A proposal that was not denoised as a Fill; it is refused where it could be shown only after a change."""
    text = fit.fit(request, proposal.text)
    changed = "" if text.strip() == proposal.text.strip() else "it does not fit its place"
    refusal = changed or why_refused(request, text)
    source: Source = "retrieved" if "retrieved" in proposal.sources else "drafted"
    score = proposal.gap + proposal.suffix
    return Fill(text, score, reason="stable", parses=not refusal, refusal=refusal, source=source)


def _with_others(fills: Sequence[Fill]) -> Fill:
    """The first of `fills` with the texts of the others."""
    return replace(fills[0], others=tuple(fill.text for fill in fills[1:]))
