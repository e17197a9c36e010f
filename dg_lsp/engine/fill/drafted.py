"""Drafts by the encoder: texts written from left to right behind the prefix, up to what stands behind the gap.

The encoder has not seen the suffix; the judge reads it behind each draft. Knows tokens, and where a body ends.
"""

from collections.abc import Generator

import torch
from torch import Tensor

from dg_lsp.engine.cache import Branches, PrefixCache
from dg_lsp.engine.canvas import Seam
from dg_lsp.engine.decoder import capped_logits
from dg_lsp.engine.fill.plan import plan_for
from dg_lsp.engine.fill.steps import Clock
from dg_lsp.engine.load.checkpoint import Checkpoint
from dg_lsp.text.fills.stitch import ended, without_round
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import Draft, Infill

# Characters of the suffix that one token may hold.
_JOINT = 8


@torch.inference_mode()
def write(
    model: Checkpoint, cache: PrefixCache, request: Infill, seam: Seam, clock: Clock
) -> Generator[Draft, None, list[str]]:
    """Write texts for a gap within a line behind the prefix in `cache`; yield a Draft of step 0 after each token.

    Returns the texts, the likeliest first.

    A beam search (Graves 2012, arXiv:1211.3711) in which a text ends where the suffix begins: the likelihood of a whole
    text is that of its tokens and of a token that begins what stands behind the gap.

    1. Read the head of the line.  2. At each token: note how likely each text ends here; keep the likeliest texts that
    are a token longer.  3. Stop when no longer text can be likelier than the best `rows` that have ended.
    """
    writing = plan_for(request).drafts
    # 1. The last token of the prefix is read again, because its hidden state predicts the next one.
    branches = cache.branch(1, len(cache.tokens) - 1)
    states = _read(model, branches, torch.tensor([[cache.tokens[-1], *seam.head]], device=model.device))
    ends, never = _ends(model, request, seam), _never(model)
    texts, scores = [()], torch.zeros(1, device=model.device)  # type: list[tuple[int, ...]], Tensor
    ended: dict[tuple[int, ...], float] = {}
    for number in range(writing.tokens + 1):
        # 2.
        chances = capped_logits(model.network, states).log_softmax(-1)
        totals = scores[:, None] + chances
        if number:
            ended |= dict(zip(texts, totals[:, ends].logsumexp(-1).tolist(), strict=True))
        totals[:, never] = -torch.inf
        scores, places = totals.flatten().topk(writing.rows)
        # 3.
        best = sorted(ended.values(), reverse=True)[: writing.rows]
        if number == writing.tokens or (len(best) == writing.rows and best[-1] > float(scores[0])):
            break
        rows, tokens = places // model.vocabulary, places % model.vocabulary
        texts = [(*texts[row], token) for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
        branches.take(rows)
        states = _read(model, branches, tokens[:, None])
        yield Draft(0, (), clock.milliseconds())
    ranked = sorted(ended, key=lambda text: -ended[text])[: writing.rows]
    return [model.tokenizer.decode(list(text), skip_special_tokens=False) for text in ranked]


@torch.inference_mode()
def write_body(
    model: Checkpoint, cache: PrefixCache, request: Infill, seam: Seam, clock: Clock
) -> Generator[Draft, None, list[str]]:
    """Write texts for a body behind the prefix in `cache`; yield a Draft of step 0 after each token.

    Each text begins with another one of the likeliest first tokens and goes on with the likeliest token each time
    (greedy decoding). It ends where the body does, or where it would go round in circles.
    """
    writing = plan_for(request).drafts
    # The last token of the prefix is read again, because its hidden state predicts the next one.
    branches = cache.branch(1, len(cache.tokens) - 1)
    states = _read(model, branches, torch.tensor([[cache.tokens[-1], *seam.head]], device=model.device))
    rows = [[token] for token in _first_tokens(model, request, _logits(model, states)[0], writing.rows)]
    branches.take(torch.zeros(len(rows), dtype=torch.int64, device=model.device))
    written, going = [""] * len(rows), set(range(len(rows)))
    for _ in range(writing.tokens):
        if not going or clock.is_over():
            break
        yield Draft(0, (), clock.milliseconds())
        last = torch.tensor([[row[-1]] for row in rows], device=model.device)
        tokens = _logits(model, _read(model, branches, last)).argmax(-1).tolist()
        for number, token in enumerate(tokens):
            rows[number].append(token)
            if number in going:
                text = model.tokenizer.decode(rows[number])
                written[number] = _kept(request, text)
                going -= {number} if written[number] != text else set()
    return list(dict.fromkeys(written))


def _first_tokens(model: Checkpoint, request: Infill, logits: Tensor, count: int) -> list[int]:
    """At most `count` of the likeliest tokens that begin code: no comment, and no string, which may be a docstring."""
    language = load_language(request.language)
    others = (language.comment, *(quotes.open.decode() for quotes in language.strings))
    likeliest = logits.topk(min(4 * count, len(logits))).indices.tolist()
    return [t for t in likeliest if not model.tokenizer.decode([t]).strip().startswith(others)][:count]


def _kept(request: Infill, text: str) -> str:
    """What is kept of the beginning of a body: `text` itself, unless the body ends in it or it repeats itself."""
    if "\n" not in text:
        return text
    found = ended(request, text)
    return found.text if found.ended else without_round(text)


def _logits(model: Checkpoint, states: Tensor) -> Tensor:
    """The logits [rows, vocabulary] behind `states`; no special token is possible."""
    logits = capped_logits(model.network, states)
    logits[:, sorted(model.special)] = -torch.inf
    return logits


def _read(model: Checkpoint, branches: Branches, tokens: Tensor) -> Tensor:
    """Read `tokens` [rows, count] on behind the branches; the hidden states [rows, hidden] of the last of each row."""
    encoder = model.network.model.encoder.language_model
    states: Tensor = encoder(input_ids=tokens, past_key_values=branches).last_hidden_state[:, -1]
    return states


def _ends(model: Checkpoint, request: Infill, seam: Seam) -> list[int]:
    """The tokens that may begin what stands behind the gap: those whose text the suffix begins with."""
    starts = (request.suffix[:size] for size in range(1, _JOINT + 1))
    single = {ids[0] for text in starts if len(ids := model.encode(text)) == 1}
    return sorted(single | {(*seam.suffix, seam.filler)[0]})


def _never(model: Checkpoint) -> list[int]:
    """The tokens that no part of a line holds: special ones and line ends."""
    line_ends = (model.encode(text) for text in ("\n", "\r", "\r\n", "\n\n"))
    return sorted(model.special | {ids[0] for ids in line_ends if len(ids) == 1})
