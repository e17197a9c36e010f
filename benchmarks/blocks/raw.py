"""The network itself at a place: its likeliest text by the usual prompt for fill-in-the-middle, up to the dedent.

Nothing of the product is asked: no beam, no judge, no guard, no deadline. Tokens that cross the cursor are written
again, as in every good client.
"""

import re
import time
from collections.abc import Iterator, Sequence

import torch

from benchmarks import run_to_end
from benchmarks.blocks.places import MOST, Place
from benchmarks.blocks.wire import Answer
from benchmarks.judging import load_as_engine
from dg_lsp.model.beam import only, text_logits, tokens_from
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.prompts.base import plain, special
from dg_lsp.model.prompts.fim import family_of
from dg_lsp.model.tokens import stable_tokens
from dg_lsp.model.tree import Tree

ABOVE, BELOW = 4_000, 1_000  # characters in the prompt
_TOKENS = 160
# The beginning of a line that continues the statement of the line with the same indent.
_CONTINUES = re.compile(r"[)\]}]|(?:else|elif|except|finally|catch|case|default)\b|\.")


def answers(places: Sequence[Place], situation: str, checkpoint: str) -> Iterator[tuple[Place, Answer]]:
    """Yield the network's own text at each of `places`."""
    torch.set_num_threads(1)
    model = load_as_engine(checkpoint)
    for place in places:
        typed = place.word if situation == "word" else ""
        began = time.perf_counter()
        text = _written(model, place, typed)
        yield place, Answer(text, time.perf_counter() - began)


@torch.inference_mode()
def _written(model: Checkpoint, place: Place, typed: str) -> str:
    """Return the likeliest text after `typed`, up to where the statement or the block ends."""
    family = family_of(model.tokenizer)
    assert family is not None and family.middle, f"{model.name} knows no fill-in-the-middle"
    before = f"{place.above}\n{place.indent}{typed}"
    before = (
        before[max(before.find("\n", max(len(before) - ABOVE, 0)), 0) :] if len(before) > ABOVE else before
    )
    known, again = stable_tokens(model, before)
    names, tokenizer = (family.prefix, family.suffix, family.middle), model.tokenizer
    first, second, third = (special(tokenizer, name) for name in names)
    prompt = (first, *known, second, *plain(tokenizer, place.below[:BELOW]), third)
    cache = PrefixCache(model.network.text_config)
    run_to_end(extend_to(model.network, cache, prompt))
    tree = Tree(model.network, cache, len(prompt) - 1)
    (states,) = tree.read([[prompt[-1]]])
    scores = only(text_logits(model, states[-1:])[0], tokens_from(model, again))
    tokens, text = [int(scores.argmax())], ""
    while tokens[-1] not in model.ends and len(tokens) < _TOKENS:
        text = tokenizer.decode(tokens)[len(again) :]
        if ended(typed + text, place):
            break
        tree.take([0])
        (states,) = tree.read([[tokens[-1]]])
        tokens.append(int(text_logits(model, states[-1:])[0].argmax()))
    return cut(typed + text, place).removeprefix(typed)


def ended(text: str, place: Place) -> bool:
    """Return whether the lines of `text` end its statement or block, or are too many."""
    *whole, last = text.split("\n")
    # A line is known by its first word: it may continue the statement.
    known = re.match(r"\s*(?:\w+\W|[^\w\s])", last)
    lines = [*whole, last] if known else whole
    return len(lines) > MOST + 1 or len(cut("\n".join(lines), place).split("\n")) < len(
        "\n".join(lines).rstrip().split("\n")
    )


def cut(text: str, place: Place) -> str:
    """Return `text`, which begins at the cursor's indent, up to the end of its first statement or of its block."""
    indent, (first, *lines) = len(place.indent.expandtabs(4)), text.split("\n")
    kept = [first]
    for line in lines:
        columns = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        continues = _CONTINUES.match(line.lstrip()) or place.form != "statement"
        if line.strip() and (columns < indent or (columns == indent and not continues)):
            break
        kept.append(line)
    return "\n".join(kept).rstrip()
