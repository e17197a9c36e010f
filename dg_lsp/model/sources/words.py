"""Half-typed words: choose the completion by likelihood, estimate its chance, then fill the line after it."""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dg_lsp.gaps import is_part
from dg_lsp.messages import Draft, Fill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.candidates import Candidate, candidates_of, checked, why_refused
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.likelihood import neg_log_likelihoods_of_tokens
from dg_lsp.model.sources.denoised import denoised
from dg_lsp.model.task import Task
from dg_lsp.model.tiles import tile_rows, tiled_logits
from dg_lsp.model.tokens import join_of, read_together, tokenise
from dg_lsp.model.tree import Tree
from dg_lsp.reasons import NO_WORD
from dg_lsp.source.document import last_line

# Characters of the line before the cursor that are read again with each ending; those before are encoded once.
HEAD = 200
# Further words that are tried where the likeliest cannot be shown.
SPARE = 1
# The probability that the word is one in sight at all, and the weight of the differences between their likelihoods:
# fitted on half-typed words of the standard library.
KNOWN, SHARPNESS = 0.97, 0.5
# A fill after the word that is right with a lower probability is left out, since it would spoil a word that is right.
LEAST = 0.4
# The number of likeliest tokens after a word that are examined, to decide whether the word continues.
NEXT = 16


@dataclass(frozen=True, slots=True)
class Ending:
    """A completion of the half-typed word, and the probability that it is the right one."""

    text: str
    chance: float


def words(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Complete the half word at the end of the prefix to one of `request.endings`; yield Drafts; return the texts.

    1. Rank the endings by the likelihood of the words.  2. Fill the line after the likeliest; after the next ones
    too, if alternatives are wanted.  3. The text is the ending and the fill after it, or the ending alone where that
    is likelier, or the fill is unsure. A fill that would continue the word is dropped. The Fill's chance is the word's
    chance times the fill's.
    """
    request, clock = task.request, task.clock
    if not request.endings:
        return _no_word()
    # 1.
    ranked = yield from rank_endings(task)
    found, refused = list[Fill](), list[Fill]()
    for ending in ranked[: request.alternatives + SPARE]:
        # 2.
        # The retrieved texts follow the half word, not the whole one.
        after = replace(
            request, prefix=request.prefix + ending.text, endings=None, alternatives=1, retrieved=()
        )
        fill = Fill("")
        for event in task.fill(replace(after, deadline=clock.left())):
            if isinstance(event, Draft):
                yield event
            else:
                fill = event
        # 3.
        fill = yield from _with_ending(task, ending, fill)
        (refused if fill.refusal else found).append(fill)
        if len(found) == request.alternatives or clock.is_over():
            break
    return [Candidate(fill.text, fill=fill) for fill in found or refused[:1]]


def whole_words(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Denoise the rest of the line, for a network that cannot read; yield Drafts; return the texts.

    A text is refused unless it begins with one of `request.endings`, where a word ends.
    """
    endings = task.request.endings
    if not endings:
        return _no_word()
    candidates = yield from denoised(task)
    found = list[Fill]()
    for candidate in candidates:
        fill = checked(task.request, candidate)
        after = (fill.text[len(one) :] for one in endings if fill.text.startswith(one))
        if not fill.refusal and all(is_part(rest.encode("utf-8")) for rest in after):
            why = "it makes another word of the half word before it"
            fill = replace(fill, text="", parses=False, refusal=why)
        found.append(fill)
    found.sort(key=lambda fill: bool(fill.refusal))
    return candidates_of("denoised", found)


def _no_word() -> list[Candidate]:
    return candidates_of("drafted", [Fill("", parses=False, refusal=NO_WORD)])


def rank_endings(task: Task) -> Generator[Draft, None, Sequence[Ending]]:
    """The endings of the request, the likeliest word first; yield Drafts while the prefix is encoded.

    The likelihood of a word is the product of its tokens' and of the probability that no token continues it. Without
    the second factor `self` would always be likelier than `self_test`.
    """
    model, request, endings = task.model, task.request, task.request.endings or ()
    if len(endings) == 1:
        return [Ending(endings[0], KNOWN)]
    line = last_line(request.prefix)
    cut = max(line, len(request.prefix) - HEAD)
    lines, seam = tokenise(model, replace(request, prefix=request.prefix[:cut]))
    rows = [model.encode(request.prefix[cut:] + ending) for ending in endings]
    # The tokens that all words begin with are encoded once; each row keeps a token of its own at least.
    same = next(
        (i for i, column in enumerate(zip(*rows, strict=False)) if len(set(column)) > 1), len(rows[0])
    )
    same = min(same, *(len(row) - 1 for row in rows))
    known = (*lines, *seam.head, *rows[0][:same])
    yield from task.encode(known)
    scores = word_neg_log_likelihoods(model, task.cache, [row[same:] for row in rows])
    yield Draft(0, (), task.clock.milliseconds())
    found = map(Ending, endings, posterior(scores))
    return sorted(found, key=lambda ending: ending.chance, reverse=True)


def posterior(scores: Sequence[float]) -> list[float]:
    """The probability that each word is the right one, from the -log p in nats of all of them; the sum is KNOWN."""
    least = min(scores)
    weights = [math.exp(SHARPNESS * (least - score)) for score in scores]
    return [KNOWN * weight / sum(weights) for weight in weights]


@torch.inference_mode()
def word_neg_log_likelihoods(
    model: Checkpoint, cache: PrefixCache, rows: Sequence[Sequence[int]]
) -> list[float]:
    """-log p in nats of each token sequence after the prefix in `cache`, and of a word's end after it."""
    network = model.network
    tree = Tree(network, cache, len(cache.tokens) - 1)
    tree.take([0] * len(rows))
    scores = []
    # Row by row, since a large vocabulary times all rows would take too much memory.
    for row, hidden in zip(rows, tree.read([[cache.tokens[-1], *row] for row in rows]), strict=True):
        # After the last one any token may follow.
        wanted, found = torch.tensor([*row, 0], device=hidden.device)[:, None], list[Tensor]()
        for logits, own in zip(tiled_logits(network, hidden), wanted.split(tile_rows(network)), strict=True):
            chances = logits.log_softmax(-1)
            found.append(chances.gather(-1, own).squeeze(1))
        word = torch.cat(found)[:-1].sum()
        chance, token = chances[-1].topk(min(NEXT, chances.shape[-1]))
        on = [is_part(model.tokenizer.decode([t]).encode("utf-8")) for t in token.tolist()]
        continued = float(chance[torch.tensor(on, device=chance.device)].exp().sum())
        scores.append(-float(word) - math.log(max(1 - continued, 1e-6)))
    return scores


def _with_ending(task: Task, ending: Ending, fill: Fill) -> Generator[Draft, None, Fill]:
    """The Fill of an ending and of the fill after it: both, or the ending alone where that is better."""
    model, cache, request = task.model, task.cache, task.request
    rest = "" if fill.refusal or is_part(fill.text.encode("utf-8")) else fill.text
    refused = why_refused(request, ending.text)
    alone = replace(fill, text=ending.text, chance=ending.chance, source="retrieved", refusal="", parses=True)
    if not rest and refused:
        why = "no fill ends the word where it is complete" if fill.text and not ending.text else fill.refusal
        return replace(fill, text="", refusal=why or refused, parses=False)
    if not rest or (not refused and fill.chance is not None and fill.chance < LEAST):
        return alone
    if not refused:
        after = replace(request, prefix=request.prefix + ending.text)
        lines, seam = tokenise(model, after)
        yield from task.encode(lines)
        join = join_of(model, after, lines, seam)
        read = [read_together(model, join, text) for text in ("", rest)]
        starts = [first for _, (first, _, _) in read]
        short, long = neg_log_likelihoods_of_tokens(
            model.network, cache, [t for t, _ in read], starts, join.kept
        )
        if sum(short) < sum(long):
            return alone
    # Without an estimate for the fill after it, the word's chance is an upper bound.
    following = 1.0 if fill.chance is None else fill.chance
    return replace(fill, text=ending.text + rest, chance=ending.chance * following)
