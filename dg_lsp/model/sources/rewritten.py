"""The lines that take the place of one after the edits of a file, written from left to right as a hunk of their diff.

The old line is a draft of the new one: what the network agrees with is read in one pass (speculative decoding:
Leviathan et al. 2023, arXiv:2211.17192), and so is what followed the same two tokens in the diff. A diff promises a
change, so that a network changes lines that are only like the edited one, too; how well the new lines fit into the
file as it is now counts as well.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dg_lsp.messages import Draft, Fill, Hunk
from dg_lsp.model.beam import Lookup, text_logits, tokens_across
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.candidates import Candidate, candidates_of
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import draft_of
from dg_lsp.model.likelihood import AT_ONCE, neg_log_likelihoods
from dg_lsp.model.prompts.diff import ADDED, REMOVED, diff_of, opening_of
from dg_lsp.model.task import Task, read_in_time
from dg_lsp.model.tokens import tokenise
from dg_lsp.model.tree import Tree
from dg_lsp.source.document import LINE_END

# Lines that take the place of one at most, and the tokens that they have more than it.
_LINES, _LONGER = 5, 48
# Tokens that are read ahead after one that the network did not expect.
_AHEAD = 8
# How likely the new lines must be after the edits, and how much likelier than the old one there, in nats. In the file
# other lines still are as they were before the edit, so that what is gained there counts less; but as much of it says
# enough by itself (docs/research/next-edits.md).
_SURE, _GAIN, _IN_FILE, _ALONE = -0.5, 7.6, 0.2, 7.0
# With less gain after the edits a line is not rated in the file, and with more it is surely the next one.
_LEAST, _ENOUGH = 2.5, 11.0
# How much likelier each line that repeats an edit must make all of them.
_EACH = 3.2
UNSURE = "no change of this line surely follows from the edits"


@dataclass(frozen=True, slots=True)
class _Start:
    """A tree that has read a diff, the line that may change, removed, and the same line as a new one.

    own: the tokens of the new one; same: their log likelihood. likeliest: the likeliest token in the place of each of
    them and after the last one, with its log likelihood.
    """

    tree: Tree
    lookup: Lookup
    own: tuple[int, ...]
    likeliest: list[tuple[int, float]]
    same: float


@torch.inference_mode()
def rewritten(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write what takes the place of the line of the last hunk, after the others; return it, or why there is none.

    A hunk that has the new lines already is only rated.
    """
    model, (*made, asked) = task.model, task.request.edits
    if asked.added:
        return (yield from _rated(task, asked))
    yield from task.encode(model.encode(diff_of(made)))
    start = _begin(task, asked, opening_of(asked, made[-1].path))
    text, score = yield from _written(task, start)
    if task.clock.is_over():
        return candidates_of("drafted", [Fill("", parses=False, refusal=task.clock.why_nothing())])
    gain = score - start.same
    if text != asked.removed and score >= _SURE and gain >= _LEAST:
        fits = 0.0
        if gain < _ENOUGH:
            old, new = yield from _unlikely_in_file(task, asked.removed, text)
            fits = old - new
        if gain + _IN_FILE * fits >= _GAIN or fits >= _ALONE:
            return candidates_of("drafted", [Fill(text, -score, reason="stable", source="drafted")])
    return candidates_of("drafted", [Fill("", parses=False, refusal=UNSURE)])


def _rated(task: Task, asked: Hunk) -> Generator[Draft, None, list[Candidate]]:
    """Return the added lines of `asked`, with how much unlikelier they are than those removed, in nats.

    None of them is offered if all of them are hardly likelier than all but one.
    """
    old, new = (text.splitlines(keepends=True) for text in (asked.removed, asked.added))
    changed = [n for n, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]]
    but_one = ["".join([*new[:n], old[n], *new[n + 1 :]]) for n in changed] if len(changed) > 1 else []
    before, after, *others = yield from _unlikely_in_file(task, asked.removed, asked.added, *but_one)
    if min(others, default=before) - after < _EACH:
        return candidates_of("drafted", [Fill("", parses=False, refusal=UNSURE)])
    return candidates_of("drafted", [Fill(asked.added, after - before, reason="stable", source="drafted")])


def _unlikely_in_file(task: Task, *lines: str) -> Generator[Draft, None, list[float]]:
    """Return how unlikely each text of whole `lines` is between the texts around the first, in nats."""
    model = task.model
    around = replace(task.request, edits=(), kind="rest_of_line")
    cache = PrefixCache(model.network.text_config)
    prefix, seam = tokenise(model, around)
    yield from read_in_time(model, cache, (*prefix, *seam.head), task.clock)
    texts = [model.encode(text.removesuffix("\n")) + model.ends[:1] for text in lines]
    return neg_log_likelihoods(model.network, cache, texts, [0] * len(texts))


def _begin(task: Task, asked: Hunk, opening: str) -> _Start:
    """Read the hunk `asked` up to its line, and the line: removed, and as a new one."""
    model, cache = task.model, task.cache
    above, own = model.encode(opening), model.encode(asked.removed)
    signs = *model.encode(f"{REMOVED}{asked.removed}"), *model.encode(ADDED)
    tree = Tree(model.network, cache, len(cache.tokens))
    (states,) = tree.read([[*above, *signs, *own]])
    likeliest, likely = _predicted(model, states[len(above) + len(signs) - 1 :], own)
    return _Start(tree, Lookup((*cache.tokens, *above), [own]), own, likeliest, sum(likely))


def _written(task: Task, start: _Start) -> Generator[Draft, None, tuple[str, float]]:
    """Write lines until none is likely to be added; yield a Draft before each pass.

    Returns the lines, and their log likelihood, that no further one is added included; minus infinity if they did not
    end in time, or are too unlikely.
    """
    model, tree, expected, likeliest = task.model, start.tree, start.own, start.likeliest
    tokens, lines, score = list[int](), list[tuple[int, ...]](), 0.0
    while score >= _SURE and len(tokens) <= len(start.own) + _LONGER and not task.clock.is_over():
        yield draft_of(len(tokens), model.tokenizer.decode(tokens), task.clock)
        # Take the tokens that were expected, and the first that was not, up to the end of the line.
        agreed = next((n for n, token in enumerate(expected) if token != likeliest[n][0]), len(expected))
        ends = (n for n, (token, _) in enumerate(likeliest[: agreed + 1]) if _ends_line(model, token))
        taken = likeliest[: next(ends, agreed) + 1]
        new = [token for token, _ in taken]
        score += sum(likely for _, likely in taken)
        tokens += new
        tree.shorten([len(expected) - len(new) + 1])
        if not _ends_line(model, new[-1]):
            expected = start.lookup.after(tokens, _AHEAD)
            likeliest, _ = _predicted(model, tree.read([[new[-1], *expected]])[0], expected)
            continue
        # A further line is added if that is likelier than not.
        lines.append(tuple(tokens))
        tokens = []
        (states,) = tree.read([[new[-1]]])
        plus = tokens_across(model, ADDED)
        added = float(text_logits(model, states)[0].softmax(-1)[plus].sum())
        if added < 0.5 or len(lines) == _LINES:
            texts = (LINE_END.split(model.tokenizer.decode(line), maxsplit=1)[0] for line in lines)
            return "".join(f"{text}\n" for text in texts), score + math.log1p(-min(added, 0.999))
        score += math.log(added)
        sign, expected = model.encode(ADDED), ()
        likeliest, _ = _predicted(model, tree.read([sign])[0][-1:], expected)
    return "", -math.inf


def _ends_line(model: Checkpoint, token: int) -> bool:
    return LINE_END.search(model.texts[token]) is not None


def _predicted(
    model: Checkpoint, states: Tensor, tokens: Sequence[int]
) -> tuple[list[tuple[int, float]], list[float]]:
    """Return the likeliest token after each of `states` with its log likelihood, and that of `tokens` there.

    The last of the states is that after the last token.
    """
    best, own = list[tuple[int, float]](), list[float]()
    for first, some in zip(range(0, len(states), AT_ONCE), states.split(AT_ONCE), strict=True):
        likely = text_logits(model, some).log_softmax(-1)
        values, found = likely.max(-1)
        best += zip(found.tolist(), values.tolist(), strict=True)
        own += [
            float(row[token]) for row, token in zip(likely, tokens[first : first + AT_ONCE], strict=False)
        ]
    return best, own
