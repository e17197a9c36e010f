"""Drafts by the encoder: texts written from left to right behind the prefix, up to what stands behind the gap.

The encoder has not seen the suffix; the judge reads it behind each draft. Knows tokens, and where a body ends.
"""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

import torch
from torch import Tensor

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.candidates import why_refused
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.plan import plan_for
from dg_lsp.model.steps import Clock
from dg_lsp.model.tokens import Join, settled
from dg_lsp.model.tree import Tree
from dg_lsp.text.fills import fit
from dg_lsp.text.fills.flaws import flaws_of
from dg_lsp.text.fills.stitch import ended as end_of
from dg_lsp.text.fills.stitch import first_sentence, goes_round, shorten, without_round
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import BODIES, Draft, Fill, Infill, Run

_BREAKS = ("\n", "\r")
# The likeliest tokens that begin in a gap and end behind it that are looked at.
_CROSSING = 4
# Nothing more is written once what goes on has this share of the probability of what has ended, and no text that is so
# many nats behind the likeliest one goes on: fewer tokens, and as many right texts of 372
# (docs/research/candidates-and-judge.md).
_LEFT = 0.4
_BEHIND = 4.0


# The tree that has read what stands before the gap, its last hidden state [1, hidden], and what is to be healed.
_Begun = tuple[Tree, Tensor, str]
# A beam search stops when texts without a flaw have ended for this share of its rows, where one body is wanted or where
# several are, or texts of any kind for a quarter more: by the times and the bodies in docs/research/bodies.md.
_ONE, _SEVERAL, _FLAWED = 1 / 2, 3 / 4, 1 / 4


@dataclass(frozen=True, slots=True)
class _Row:
    """A text of a beam search: the number of the row that it was a token shorter in, its tokens, its log likelihood."""

    parent: int
    tokens: tuple[int, ...]
    score: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Ends:
    """The tokens that begin what stands behind a gap.

    whole: those that lie behind it. crossing: those that begin in it, each with its part in the gap.
    """

    whole: tuple[int, ...]
    crossing: tuple[tuple[int, str], ...]


@torch.inference_mode()
def write(
    model: Checkpoint, cache: PrefixCache, request: Infill, join: Join, clock: Clock
) -> Generator[Draft, None, list[str]]:
    """Write texts for a gap within a line behind the prefix in `cache`; yield a Draft of step 0 after each token.

    Returns the texts, the likeliest first.

    A beam search (Graves 2012, arXiv:1211.3711) in which a text ends where the suffix begins: the likelihood of a whole
    text is that of its tokens and of a token that begins what stands behind the gap. The last token before the gap is
    written again, as one of those that begin with its text: behind `x = ` the blank and the `f` of `f()` are one token.

    1. Read what stands before the gap.  2. At each token: note how likely each text ends here; keep the likeliest texts
    that are a token longer.  3. Stop when no longer text can be likelier than the best `rows` that have ended.
    """
    writing, line_end = plan_for(request).drafts, _line_ends(model.texts)
    # 1.
    tree, states, again = _begin(model, cache, join)
    ends, never = _ends(model, join), sorted(model.special | line_end)
    texts, scores = [()], torch.zeros(1, device=model.device)  # type: list[tuple[int, ...]], Tensor
    found: dict[str, float] = {}
    for number in range(writing.tokens + 1):
        # 2.
        chances = model.network.logits(states).log_softmax(-1)
        totals = scores[:, None] + chances
        for row, text in enumerate(texts):
            written = model.tokenizer.decode(list(text), skip_special_tokens=False)
            if not number and again:
                totals[row] = _only(totals[row], _beginning(model, again))
                continue
            for whole, score in _ended(totals[row], ends, written[len(again) :]):
                known_score = found.get(whole, -math.inf)
                most = max(known_score, score)
                found[whole] = most + math.log(math.exp(known_score - most) + math.exp(score - most))
            totals[row, never] = -torch.inf
        scores, places = totals.flatten().topk(writing.rows)
        best = max([float(scores[0]), *found.values()])
        possible = int((scores > best - _BEHIND).sum())
        scores, places = scores[:possible], places[:possible]
        # 3.
        if number == writing.tokens or not possible or clock.is_over():
            break
        ended = float(torch.tensor(list(found.values())).logsumexp(0))
        if float(scores.logsumexp(0)) < ended + math.log(_LEFT):
            break
        rows, tokens = places // totals.shape[1], places % totals.shape[1]
        texts = [(*texts[row], token) for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
        tree.take(rows.tolist())
        states = torch.cat(tree.read([[text[-1]] for text in texts]))
        yield Draft(0, (), clock.milliseconds())
    likeliest = sorted(found, key=lambda text: -found[text])[: writing.rows]
    return [text for text in likeliest if found[text] > found[likeliest[0]] - _BEHIND]


@torch.inference_mode()
def write_lines(
    model: Checkpoint, cache: PrefixCache, request: Infill, join: Join, clock: Clock
) -> Generator[Draft, None, list[Fill]]:
    """Write bodies or docstrings behind the prefix in `cache`; yield a Draft after each token, with the first so far.

    Returns the texts, the best first. Those of a body are found by a beam search; where more are wanted than it found,
    others are written greedily, which are less alike. Docstrings are written greedily. Bodies with fewer flaws come
    before others.
    """
    flaws, found = flaws_of(request), list[Fill]()
    if request.kind in BODIES:
        found = yield from _searched(model, _begin(model, cache, join), request, clock, flaws)
    shown = [fill for fill in found if not fill.refusal]
    if len(shown) < request.alternatives and not (shown and clock.is_over()):
        found += yield from _greedy(model, _begin(model, cache, join), request, clock, shown)
    return sorted(found, key=lambda fill: (bool(fill.refusal), flaws(fill.text)))


def draft_of(count: int, text: str, clock: Clock) -> Draft:
    """A Draft that shows `text`, `count` tokens long."""
    return Draft(count, (Run(text, anchored=False, accepted=True, entropy=0.0),), clock.milliseconds())


def _searched(
    model: Checkpoint, begun: _Begun, request: Infill, clock: Clock, flaws: Callable[[str], int]
) -> Generator[Draft, None, list[Fill]]:
    """The bodies that a beam search ends first, those that can be shown and are the likeliest a token in front.

    By the mean over the tokens, since the likelihood of a whole text prefers short ones (Wu et al. 2016,
    arXiv:1609.08144, section 7). If none that can be shown has ended, the likeliest beginning follows.

    1. Stop when enough have ended.  2. Read the next token of each text.  3. Of the likeliest texts that are a token
    longer, keep those that have ended; drop those that go round in circles; go on with the others.
    """
    (tree, states, again), writing = begun, plan_for(request).drafts
    share = _ONE if request.alternatives == 1 else _SEVERAL
    chances = _logits(model, states)[0].log_softmax(-1)
    tokens = _first_tokens(model, request, chances, again, writing.rows)
    rows = [_Row(0, (token,), float(chances[token])) for token in tokens]
    ended: dict[str, tuple[float, Fill]] = {}
    for count in range(1, writing.tokens + 1):
        # 1.
        counts = [flaws(fill.text) for _, fill in ended.values() if not fill.refusal]
        enough = counts.count(0) >= max(share * writing.rows, 2)
        enough = enough or len(counts) >= max((share + _FLAWED) * writing.rows, 2)
        if enough or not rows or clock.is_over():
            break
        yield draft_of(count, rows[0].text, clock)
        # 2.
        tree.take([row.parent for row in rows])
        states = torch.cat(tree.read([[row.tokens[-1]] for row in rows]))
        # 3.
        longer, rows = _longer(rows, _logits(model, states), 3 * writing.rows), []
        for row in longer:
            text = model.tokenizer.decode(list(row.tokens))[len(again) :]
            kept = _kept(request, text)
            if kept != text and kept not in ended and end_of(request, text).ended:
                ended[kept] = row.score / len(row.tokens), _fill_of(request, kept)
            elif kept == text and not goes_round(text):
                rows.append(replace(row, text=text))
            if len(rows) == writing.rows:
                break
    best = sorted(ended.values(), key=lambda pair: (bool(pair[1].refusal), -pair[0]))
    found = [fill for _, fill in best]
    if rows and all(fill.refusal for fill in found):
        found.append(_fill_of(request, rows[0].text))
    return found


def _longer(rows: Sequence[_Row], logits: Tensor, count: int) -> list[_Row]:
    """The `count` likeliest texts that are a token longer than those of `rows`; `logits` [rows, vocabulary]."""
    scores = torch.tensor([row.score for row in rows], device=logits.device)
    found = (scores[:, None] + logits.log_softmax(-1)).flatten().topk(min(count, logits.numel()))
    places = zip(found.values.tolist(), found.indices.tolist(), strict=True)
    split = ((score, *divmod(place, logits.shape[1])) for score, place in places)
    return [_Row(parent, (*rows[parent].tokens, token), score) for score, parent, token in split]


def _greedy(
    model: Checkpoint, begun: _Begun, request: Infill, clock: Clock, known: Sequence[Fill]
) -> Generator[Draft, None, list[Fill]]:
    """Texts that begin with one of the likeliest first tokens each and go on with the likeliest token each time.

    Each ends where the container does, or where it would go round in circles; a body that goes round within a line is
    refused, and a docstring that does not close is left with its first sentence. Nothing more is written once as many
    as are wanted beside those that are `known` have ended and can be shown, and so have all likelier ones.
    """
    (tree, states, again), writing = begun, plan_for(request).drafts
    firsts = _first_tokens(model, request, _logits(model, states)[0], again, writing.rows)
    rows = [[token] for token in firsts]
    tree.take([0] * len(rows))
    written, done = [""] * len(rows), dict[int, Fill]()
    for count in range(1, writing.tokens + 1):
        ended = [done[number] for number in takewhile(done.__contains__, range(len(rows)))]
        texts = {fill.text for fill in (*known, *ended) if not fill.refusal}
        if len(texts) >= request.alternatives or len(done) == len(rows) or clock.is_over():
            break
        yield draft_of(count, known[0].text if known else written[0], clock)
        states = torch.cat(tree.read([[row[-1]] for row in rows]))
        for number, token in enumerate(_logits(model, states).argmax(-1).tolist()):
            rows[number].append(token)
            if number not in done:
                text = model.tokenizer.decode(rows[number])[len(again) :]
                written[number] = _kept(request, text)
                if request.kind != "docstring" and goes_round(text):
                    done[number] = Fill(text, parses=False, refusal="it goes round", source="drafted")
                elif written[number] != text:
                    done[number] = _fill_of(request, written[number])
    for number, text in enumerate(written):
        if number not in done:
            done[number] = _fill_of(request, first_sentence(text) if request.kind == "docstring" else text)
    return [done[number] for number in range(len(rows))]


def _fill_of(request: Infill, text: str) -> Fill:
    """What was written as a Fill: the whole text, or the longest beginning of a body that can be shown."""
    whole = fit.fit(request, text)
    refusal = why_refused(request, whole)
    short = shorten(request, whole) if refusal else ""
    if short and not why_refused(request, short):
        return Fill(short, reason="stable", source="drafted", shortened=True)
    return Fill(whole, reason="stable", parses=not refusal, refusal=refusal, source="drafted")


def _first_tokens(model: Checkpoint, request: Infill, logits: Tensor, again: str, count: int) -> list[int]:
    """At most `count` of the likeliest tokens that begin the text.

    A body begins with no comment, and with no string, which may be a docstring. again: what the tokens begin with,
    which is not a part of the text.
    """
    language = load_language(request.language, request.macros)
    others = (language.comment, *(quotes.open.decode() for quotes in language.strings))
    others = others if request.kind in BODIES else ()
    likeliest = _only(logits, _beginning(model, again)).topk(min(4 * count, len(logits)))
    tokens = [t for s, t in zip(*(x.tolist() for x in likeliest), strict=True) if s > -math.inf]
    return [t for t in tokens if not model.texts[t][len(again) :].strip().startswith(others)][:count]


def _kept(request: Infill, text: str) -> str:
    """What is kept of the beginning of a fill: `text` itself, unless the fill ends in it or it repeats itself."""
    if request.kind == "docstring" and goes_round(" ".join(text.split())):
        return first_sentence(text)
    if request.kind != "docstring" and "\n" not in text:
        return text
    found = end_of(request, text)
    return found.text if found.ended else without_round(text)


def _logits(model: Checkpoint, states: Tensor) -> Tensor:
    """The logits [rows, vocabulary] behind `states`; no special token is possible."""
    logits = model.network.logits(states)
    logits[:, sorted(model.special)] = -torch.inf
    return logits


def _begin(model: Checkpoint, cache: PrefixCache, join: Join) -> _Begun:
    """A tree that has read what stands before the gap, its last hidden state [1, hidden], and what is to be healed.

    What is to be healed is the end of what stands before the gap, where it is a part of the gap's first token: it is
    written again. That is the blank of `x = `, and the last token where another one that begins with its text is
    likelier, such as `()` instead of `(`. The last token of the prefix is read again, because its hidden state predicts
    the next one.
    """
    known, again = settled(model, join.before)
    tree = Tree(model.network, cache, join.kept - 1)
    (states,) = tree.read([[cache.tokens[join.kept - 1], *known]])
    if known and not again and "\ufffd" not in (last := model.texts[known[-1]]):
        likeliest = _only(_logits(model, states[-2:-1])[0], _beginning(model, last)).argmax()
        if int(likeliest) != known[-1]:
            tree.drop_last()
            return tree, states[-2:-1], last
    return tree, states[-1:], again


def _beginning(model: Checkpoint, text: str) -> Tensor:
    """The tokens that begin with `text` and do not go on to another line, int64 [tokens]."""
    found = _tokens_from(model.texts, model.special, text)
    return torch.tensor(found, dtype=torch.int64, device=model.device)


# A look at each token of a large vocabulary takes tens of milliseconds.
@lru_cache(maxsize=64)
def _tokens_from(texts: tuple[str, ...], without: frozenset[int], text: str) -> tuple[int, ...]:
    """The tokens but some whose texts begin with `text` and do not go on to another line."""
    size = len(text)
    found = (token for token, own in enumerate(texts) if token not in without and own.startswith(text))
    return tuple(token for token in found if not any(b in texts[token][size:] for b in _BREAKS))


def _only(scores: Tensor, tokens: Tensor) -> Tensor:
    """`scores` [vocabulary] with those of all other tokens than `tokens` at minus infinity."""
    return torch.full_like(scores, -torch.inf).index_copy(0, tokens, scores[tokens])


def _ends(model: Checkpoint, join: Join) -> _Ends:
    """The tokens that begin what stands behind the gap.

    Those whose text the suffix begins with, alone or behind a part of the gap: `)` and `))` in front of `)`. Where a
    line ends behind the gap, all that begin with a line end: it may be one token with the indentation.
    """
    suffix = join.behind or "\n"
    whole, crossing = list(join.end if not join.behind else ()), list[tuple[int, str]]()
    for token, text in enumerate(model.texts):
        at = text.find(suffix[0])
        while at >= 0 and token not in model.special:
            if suffix[0] in _BREAKS or suffix.startswith(text[at:]):
                if at:
                    crossing.append((token, text[:at]))
                else:
                    whole.append(token)
            at = -1 if suffix[0] in _BREAKS else text.find(suffix[0], at + 1)
    first = model.encode(suffix)[0]
    return _Ends(tuple(whole or [first]), tuple((t, part) for t, part in crossing if part.strip()))


def _ended(totals: Tensor, ends: _Ends, text: str) -> Iterator[tuple[str, float]]:
    """The texts that end behind `text`, with their scores; `totals` [vocabulary] are those with one token more."""
    if text:
        yield text, float(totals[list(ends.whole)].logsumexp(0))
    if ends.crossing:
        scores, places = totals[[token for token, _ in ends.crossing]].topk(
            min(_CROSSING, len(ends.crossing))
        )
        for score, place in zip(scores.tolist(), places.tolist(), strict=True):
            yield text + ends.crossing[place][1], score


@lru_cache(maxsize=4)
def _line_ends(texts: tuple[str, ...]) -> frozenset[int]:
    """The tokens that hold a line end."""
    return frozenset(token for token, text in enumerate(texts) if any(b in text for b in _BREAKS))
