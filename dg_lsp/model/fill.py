"""The only door into the model: from an Infill to Drafts and, last, one Fill.

`fill` is a generator that computes only when it is asked for the next event, so closing it cancels within one denoising
step or encoding chunk.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from dg_lsp.gaps import typed_half
from dg_lsp.guard import sure_beginning
from dg_lsp.messages import BODIES, PARTS, Draft, Fill, Infill
from dg_lsp.model.cache import CHUNK, PrefixCache, extend_to
from dg_lsp.model.candidates import Candidate, candidates_of, checked, merge_candidates, none_of
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock, draft_of
from dg_lsp.model.judge import PLAIN, chances, sure_length, words_in_sight
from dg_lsp.model.likelihood import neg_log_likelihoods_of_tokens
from dg_lsp.model.networks.base import Reader
from dg_lsp.model.plan import NOISED, may_denoise, plan_for
from dg_lsp.model.prompts.fim import near_suffix
from dg_lsp.model.sources.below import grown, next_item
from dg_lsp.model.sources.bodies import bodies, bodies_beside_similar, docstrings
from dg_lsp.model.sources.denoised import denoised
from dg_lsp.model.sources.lines import lines, lines_in_sight
from dg_lsp.model.sources.retrieved import retrieved
from dg_lsp.model.sources.rewritten import rewritten
from dg_lsp.model.sources.several import one_by_one, several
from dg_lsp.model.sources.spans import spans
from dg_lsp.model.sources.words import whole_words, words
from dg_lsp.model.task import Source, Task
from dg_lsp.model.tokens import read_together, shorten_to, tokenise
from dg_lsp.source.language import WORD

# How likely the best candidate must be for the judge to take it before anything is denoised; and how likely for
# anything to be denoised where nobody has asked: below it denoising never made a text that could be shown
# (docs/research/candidates-and-judge.md).
SURE, HOPE = 0.15, 0.1
# The share of the deadline in which all of the prompt may be read. Else only the text near the gap is: characters of
# the suffix, and tokens of prefix and suffix, which are one chunk with the tokens around them.
_SHARE, _SUFFIX, _READS = 0.5, 300, CHUNK - 24

Asked = Literal["edits", "shown", "half word", "gaps", "given", "span", "part", "body", "docstring"]
Ability = Literal["reads", "reads both sides", "only denoises", "denoises", "judges"]


@dataclass(frozen=True, slots=True)
class Way:
    """The sources for a gap, in the order in which they are asked.

    judged: the judge compares the candidates of the sources with those of the `last` one, which is asked only where
    none of them is good enough: likelier than SURE, or so unlikely, below HOPE, that nothing would help. Otherwise
    each source is asked only where the ones before it found too little. grows: the likeliest texts continue below their
    line where they open a block or a bracket.
    """

    sources: tuple[Source, ...]
    judged: bool = False
    grows: bool = False
    last: Source | None = None


def unable(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Find nothing, and give the reason why this checkpoint cannot fill the gap."""
    yield from ()
    why = "this checkpoint cannot rewrite a selection; delete the selected text to have the gap filled"
    if task.request.edits:
        why = "this checkpoint follows no edits; a model that was trained on fill-in-the-middle does, such as coder"
    elif task.request.shown:
        why = "this checkpoint writes nothing below a text that is shown"
    return candidates_of("denoised", [Fill("", parses=False, refusal=why)])


_WORDS, _DOCSTRINGS, _DENOISED = Way((words,)), Way((docstrings,)), Way((denoised,))
_ONE_BY_ONE, _SEVERAL, _UNABLE = Way((one_by_one,)), Way((several,)), Way((unable,))
_LINES = Way((retrieved, lines), judged=True)
_LINES_OR_DENOISED = replace(_LINES, last=denoised)
_SEEN_LINES = Way((lines_in_sight,), judged=True, grows=True)
# How a gap is filled: by the request, and in the order of Ability by the abilities of the checkpoint. If a measurement
# gives the length, only the denoiser can use it. A network that can denoise writes bodies from left to right only where
# its judge was fitted, since with such a one that was measured.
_ROWS: dict[Asked, tuple[Way, ...]] = {
    "edits": (_UNABLE, Way((rewritten,)), _UNABLE, _UNABLE, _UNABLE),
    "shown": (_UNABLE, Way((next_item,)), _UNABLE, _UNABLE, _UNABLE),
    "half word": (_WORDS, _SEEN_LINES, Way((whole_words,)), _WORDS, _WORDS),
    "gaps": (_ONE_BY_ONE, _ONE_BY_ONE, _SEVERAL, _SEVERAL, _SEVERAL),
    "given": (_UNABLE, _UNABLE, _DENOISED, _DENOISED, _DENOISED),
    "span": (_UNABLE, Way((spans, bodies)), _DENOISED, _DENOISED, _DENOISED),
    "part": (_LINES, _SEEN_LINES, _DENOISED, _LINES_OR_DENOISED, _LINES_OR_DENOISED),
    "body": (Way((bodies_beside_similar,)), Way((bodies,)), _DENOISED, _DENOISED, Way((bodies, denoised))),
    "docstring": (_DOCSTRINGS, _DOCSTRINGS, _DENOISED, _DENOISED, _DENOISED),
}
WAYS: dict[tuple[Asked, Ability], Way] = {
    (asked, ability): way
    for asked, row in _ROWS.items()
    for ability, way in zip(get_args(Ability), row, strict=True)
}


def fill(model: Checkpoint, cache: PrefixCache, request: Infill) -> Generator[Draft | Fill, None, None]:
    """Fill the gap of `request` with `model`, in the way that both allow; yield Drafts, then a Fill."""
    task = Task(model, cache, request, Clock(request.deadline), partial(fill, model, cache))
    return follow(task, way_of(model, request))


def follow(task: Task, way: Way) -> Generator[Draft | Fill, None, None]:
    """Ask the sources of `way`; the judge compares the texts that they find, if the way says so."""
    return (_fill_judged if way.judged else _fill_in_turn)(task, way)


def way_of(model: Checkpoint, request: Infill) -> Way:
    """The way in which `model` fills the gap of `request`."""
    asked: Asked = "given"
    if request.edits:
        asked = "edits"
    elif request.shown:
        asked = "shown"
    elif request.between:
        asked = "gaps"
    elif request.endings is not None:
        asked = "half word"
    elif request.like is None and request.kind in PARTS:
        asked = "part"
    elif request.like is None and request.kind in BODIES:
        asked = "body"
    elif request.like is None and request.kind == "docstring":
        asked = "docstring"
    elif request.like is None and not request.start:
        # Only a text that is there needs to be seen to be changed.
        asked = "span"
    ability = _ability(model)
    # Where time is short, bodies are drafted first, also if nobody has measured how good they are.
    if (asked, ability) == ("body", "denoises") and plan_for(request, model).drafted:
        ability = "judges"
    return WAYS[asked, ability]


def _ability(model: Checkpoint) -> Ability:
    """Return the column of WAYS for `model`."""
    if not model.denoises:
        return "reads both sides" if model.ends else "reads"
    if not isinstance(model.network, Reader):
        return "only denoises"
    return "judges" if model.judge else "denoises"


def _fill_in_turn(task: Task, way: Way) -> Generator[Draft | Fill, None, None]:
    """Ask the sources of `way` in turn until enough texts can be shown; yield Drafts, then the Fill.

    If none can be shown, the Fill is the last source's, with the reason.
    """
    found, request = list[Candidate](), task.request
    for source in way.sources:
        shown = {one.text: one for one in found if not checked(request, one).refusal}
        missing = request.alternatives - len(shown)
        if shown and (missing <= 0 or _is_late(task)):
            break
        more = yield from source(task.wanting(missing) if shown else task)
        found = more
        if shown:
            further = (one for one in more if not checked(request, one).refusal)
            found = [*shown.values(), *(one for one in further if one.text not in shown)]
    fills = [checked(request, one) for one in found]
    # The Drafts of a denoised text have shown it already.
    if "drafted" in found[0].sources:
        yield draft_of(max(fills[0].steps, 1), fills[0].text, task.clock)
    yield _last(task, fills)


def _fill_judged(task: Task, way: Way) -> Generator[Draft | Fill, None, None]:
    """Let the judge choose among the candidates of the sources of `way`; yield Drafts, then the Fill."""
    request, clock = task.request, task.clock
    # Ask all sources but the last one.
    found = list[Candidate]()
    for source in way.sources:
        found = merge_candidates(found, (yield from source(task)))
    found = score_candidates(task, found)
    if way.grows:
        found = yield from grown(task, found)
    # If the judge is sure of a candidate, or none is likely enough for unasked ghost text, or there is no last source,
    # take the best.
    best = best_fills(task.model, request, found)
    if way.last is None or (best and (_is_good_enough(request, best) or _is_late(task))):
        refused = [] if best else [checked(request, one) for one in found]
        fills = _sure_part(task, found, best) if best else [none_of(refused, clock.why_nothing())]
        if best and way.grows:
            fills = [_growing(fills[0]), *fills[1:]]
        yield draft_of(max(fills[0].steps, 1), fills[0].text, clock)
        yield _last(task, fills)
        return
    # Otherwise ask the last source, too. Texts that can be shown already are alternatives, too.
    wanting = task.wanting(max(request.alternatives - len(best), 1))
    further = yield from way.last(_in_time_left(wanting, best or found))
    # Judge all; the first Fill is the likeliest one, or a sure beginning of it. The last Draft shows the Fill.
    fills = [checked(request, one) for one in further]
    last = fills[0].text
    if found and not fills[0].refusal:
        found = score_candidates(task, merge_candidates(found, further))
        fills = best_fills(task.model, request, found)
    elif best:
        fills = best
    fills = _sure_part(task, found, fills)
    if fills[0].text != last:
        yield draft_of(max(fills[0].steps, 1), fills[0].text, clock)
    yield _last(task, fills)


def _growing(fill: Fill) -> Fill:
    """Return `fill`, which grows unless it is a beginning of a line, or was closed before its end."""
    return replace(fill, grows=not fill.partial and (fill.grows or not fill.shortened))


def _last(task: Task, fills: Sequence[Fill]) -> Fill:
    """Return the first of `fills`, with the texts of the others that are wanted."""
    others = tuple(one.text for one in fills[1 : task.request.alternatives])
    return task.clock.stamp(replace(fills[0], others=others))


def _is_late(task: Task) -> bool:
    """Return whether the time left does not allow any denoising."""
    left = task.clock.left()
    return task.clock.is_over() or not may_denoise(left, task.plan)


def _in_time_left(task: Task, best: Sequence[Fill | Candidate]) -> Task:
    """`task` with the time left as its deadline; where that is short, with the first of `best` to start from."""
    hurried = replace(task, request=replace(task.request, deadline=task.clock.left()))
    if not (best and hurried.plan.drafted):
        return hurried
    return replace(hurried, request=replace(hurried.request, start=best[0].text, noised=NOISED))


def _is_good_enough(request: Infill, best: Sequence[Fill]) -> bool:
    """Return whether the last source would add nothing to `best`, the texts so far, likeliest first."""
    chance = best[0].chance
    if chance is None or len(best) < request.alternatives:
        return False
    return chance >= SURE or chance < min(HOPE, request.confidence)


def score_candidates(task: Task, found: Sequence[Candidate]) -> list[Candidate]:
    """`found` with the likelihoods of each text and of the suffix after it; only those not read yet are read.

    The cache holds the prefix.
    """
    model, request = task.model, task.request
    elsewhere, seen = {r.text.strip(): r for r in request.retrieved}, words_in_sight(request)
    half = typed_half(request.prefix)
    described = [
        replace(
            one,
            unseen=len(set(WORD.findall(half + one.text)) - seen),
            retrieved=elsewhere.get(one.text.strip(), one.retrieved),
        )
        for one in found
    ]
    known, unread = [one for one in described if one.tokens], [one for one in described if not one.tokens]
    if not unread:
        return known
    join = task.join
    read = [read_together(model, join, one.text) for one in unread]
    texts, starts = [tokens for tokens, _ in read], [first for _, (first, _, _) in read]
    nats = neg_log_likelihoods_of_tokens(model.network, task.cache, texts, starts, join.kept)
    return known + [
        replace(one, gap=sum(row[: end - first]), suffix=sum(row[end - first :]), tokens=max(end - begin, 1))
        for one, (_, (first, begin, end)), row in zip(unread, read, nats, strict=True)
    ]


def best_fills(model: Checkpoint, request: Infill, found: Sequence[Candidate]) -> list[Fill]:
    """The drafts, of `found`, that can be shown, at most `request.alternatives`, as Fills, the likeliest first.

    A text that cannot be shown leaves the comparison.
    """
    known, left = dict[str, Fill](), list(found)
    while True:
        rated = zip(chances(model.judge or PLAIN, request, left), left, strict=True)
        best = sorted(rated, key=lambda pair: -pair[0])[: request.alternatives]
        for _, candidate in best:
            text = candidate.text.strip()
            if text not in known:
                known[text] = checked(request, candidate)
            if known[text].refusal:
                left.remove(candidate)
                break
        else:
            return [
                replace(known[one.text.strip()], chance=c * one.kept if model.judge else None)
                for c, one in best
            ]


def _sure_part(task: Task, found: Sequence[Candidate], fills: Sequence[Fill]) -> Sequence[Fill]:
    """`fills`; where the best one is less likely than the request's confidence, its surer beginning, if it has one."""
    request, best = task.request, fills[0]
    if best.chance is None or best.chance >= request.confidence:
        return fills
    text, judged = best.text.strip(), chances(task.model.judge or PLAIN, request, found)
    rated = [(chance, one.text.strip()) for chance, one in zip(judged, found, strict=True)]
    beginning = sure_beginning(request, text, sure_length(text, rated, request.confidence))
    if not beginning:
        return fills
    chance = sum(chance for chance, other in rated if other.startswith(beginning))
    lead = best.text[: len(best.text) - len(best.text.lstrip())]
    return [replace(best, text=lead + beginning, chance=min(chance, 1.0), partial=True)]


def near(model: Checkpoint, cache: PrefixCache, request: Infill) -> Infill:
    """Return `request`; with the text near the gap only where reading all that `cache` does not hold takes too long."""
    if _long_to_read(model, cache, request) <= CHUNK:
        return request
    suffix = near_suffix(request.suffix, _SUFFIX)
    return shorten_to(model, replace(request, suffix=suffix, context=()), _READS - len(model.encode(suffix)))


def with_time_to_read(model: Checkpoint, cache: PrefixCache, request: Infill) -> Infill:
    """Return `request`; its deadline counts from the moment when a long text that `cache` does not hold is read.

    A late text is better than none.
    """
    if not (unread := _long_to_read(model, cache, request)):
        return request
    assert model.costs is not None and request.deadline is not None
    return replace(request, deadline=request.deadline + model.costs.seconds(unread))


def _long_to_read(model: Checkpoint, cache: PrefixCache, request: Infill) -> int:
    """Return how many tokens `cache` does not hold; 0 where reading them leaves enough of the deadline."""
    if model.costs is None or request.deadline is None or not model.ends or request.edits:
        return 0
    wanted, _ = tokenise(model, request)
    unread = len(wanted) - cache.shared(wanted)
    return 0 if model.costs.seconds(unread) <= _SHARE * request.deadline else unread


def read_on(model: Checkpoint, cache: PrefixCache, request: Infill) -> Generator[int, None, None]:
    """Make `cache` hold the whole prompt of `request`, which gets no fill; yield after each chunk."""
    if model.ends and request.deadline is not None:
        yield from extend_to(model.network, cache, tokenise(model, request)[0], exact=False)
