"""The tokens of a request: those to encode before the canvas, and those on both sides of the gap."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dg_lsp.context import shortened, similar
from dg_lsp.guard import hint, newline_of
from dg_lsp.messages import Infill
from dg_lsp.model.canvas import Seam
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.plan import plan_for
from dg_lsp.model.prompts.styles import frame_of
from dg_lsp.source.document import last_line
from dg_lsp.source.language import load_language

# Tokens of the suffix that the judge reads after each candidate, and the characters that hold them.
SUFFIX_READ, _NEAR = 10, 200

# Tokens before the gap that are read again at each key where there is no canvas, since the next key may change them.
_HEAD = 4

# Bytes per token that are tried, the most first, when a prefix is cut to a number of tokens.
BYTES_PER_TOKEN = (4, 3.5, 3, 2.5, 2, 1.5, 1)


@dataclass(frozen=True, slots=True)
class Join:
    """Text on both sides of a gap that is tokenised with each candidate, since tokens cross the borders of a gap.

    `x = ` and `f(y` in front of `)` are read as `x`, ` =`, ` f`, `(`, `y`, `)`, where the blank belongs to the gap's
    first token. kept: how many tokens of the prefix stay in front. before: the text from there up to the gap. after:
    the beginning of the suffix, SUFFIX_READ tokens long; "" for a network that has seen the suffix before the gap. end:
    the tokens of the end of the file, where it follows, or the one that such a network writes at the end of a gap.
    """

    kept: int
    before: str
    after: str
    end: tuple[int, ...]


def join_of(model: Checkpoint, request: Infill, prefix: Sequence[int], seam: Seam) -> Join:
    """The Join of `request`, whose tokens are `prefix` and `seam`."""
    known = (*prefix, *seam.head)
    kept, before = next(
        (n, text)
        for n in range(max(len(prefix) - 1, 1), len(known) + 1)
        if not model.special.intersection(known[n:])
        and request.prefix.endswith(text := model.tokenizer.decode(list(known[n:])))
    )
    if model.ends:
        return Join(kept, before, "", model.ends[:1])
    near = request.suffix[:_NEAR]
    suffix = model.encode(near)
    end = (*seam.suffix[len(suffix) :], seam.filler) if near == request.suffix else ()
    end = end[: max(SUFFIX_READ - len(suffix), 0)]
    return Join(kept, before, suffix_beginning(model, request), end)


def suffix_beginning(model: Checkpoint, request: Infill) -> str:
    """Return the first SUFFIX_READ tokens of the text after the gap, as text."""
    suffix = model.encode(request.suffix[:_NEAR])[:SUFFIX_READ]
    return model.tokenizer.decode(list(suffix), skip_special_tokens=False).rstrip("\ufffd")


def stable_tokens(model: Checkpoint, before: str) -> tuple[tuple[int, ...], str]:
    """The tokens of the text `before` a gap that stay the same where a word follows, and the text after them.

    `x = ` gives `x`, ` =` and leaves the blank, which is a part of the word's first token.
    """
    encoding = model.tokenizer.encode(before + "x", add_special_tokens=False)
    count = sum(stop <= len(before) for _, stop in encoding.offsets)
    stop = encoding.offsets[count - 1][1] if count else 0
    return tuple(encoding.ids[:count]), before[stop:]


def read_together(model: Checkpoint, join: Join, text: str) -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """The tokens of `text` in its Join, and three of their numbers: the first that counts, and the gap's two ends.

    The first that counts is the first token that may differ from text to text.
    """
    encoding = model.tokenizer.encode(join.before + text + join.after, add_special_tokens=False)
    begin, end, spans = len(join.before), len(join.before) + len(text), encoding.offsets
    known, again = stable_tokens(model, join.before)
    counted = begin - len(again or (model.texts[known[-1]] if known else ""))
    first = sum(stop <= counted for _, stop in spans)
    return (*encoding.ids, *join.end), (
        first,
        max(first, sum(stop <= begin for _, stop in spans)),
        sum(start < end for start, _ in spans),
    )


def tokenise(model: Checkpoint, request: Infill) -> tuple[tuple[int, ...], Seam]:
    """The tokens to encode (the prompt's frame and whole lines), and the seam of the canvas (head of line, suffix).

    A prefix that is too long for the checkpoint is shortened by the text layer, which keeps the imports and headers
    from above the cut, and moves the cut in large hops so that the cached prefix survives typing. If the head is longer
    than a quarter of the canvas, its beginning is encoded with the prefix; without a canvas all but its last tokens.
    """
    if len(model.encode(request.prefix)) >= model.max_prefix:
        request = shorten_to(model, request, model.max_prefix)
    frame = frame_of(model.tokenizer, model.style, model.bos, request)
    above = model.encode(request.prefix[: frame.cut])
    lines, head = _lines_and_head(model, request.prefix[frame.cut :])
    keep = _HEAD if model.ends else plan_for(request, model).slots // 4
    if len(head) > keep:
        lines, head = lines + head[:-keep], head[-keep:]
    hop = max(model.max_prefix // 2, 1)
    over = max(len(above) + len(lines) + 1 - model.max_prefix, 0)
    cut = -(-over // hop) * hop
    above, lines = above[cut:], lines[max(cut - len(above), 0) :]
    # A network that writes the text before the suffix is shown that the line's brackets are closed.
    suffix = () if model.ends else model.encode(hint(request) + request.suffix)
    return (*frame.before, *above, *frame.between, *lines), Seam(head, suffix + frame.after, model.eos)


def _lines_and_head(model: Checkpoint, prefix: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens of the whole lines of `prefix`, and those from the first that reaches into its last line.

    A tokenizer may have tokens that cross a line end, such as one of a line end and the indentation after it.
    """
    start = last_line(prefix)
    encoding = model.tokenizer.encode(prefix, add_special_tokens=False)
    ids, whole = tuple(encoding.ids), sum(end <= start for _, end in encoding.offsets)
    return ids[:whole], ids[whole:]


def with_similar(model: Checkpoint, request: Infill) -> Infill:
    """`request` with the similar functions that a reader, which sees nothing of the suffix, does not see.

    They are right before the function that is to be written, so that the cached prefix above it stays.
    """
    if request.kind != "function_body":
        return request
    before, after = (text.encode("utf-8", "replace") for text in (request.prefix, request.suffix))
    found = similar(load_language(request.language, request.macros), before, after)
    if found is None:
        return request
    own, newline = before[found.at :].decode("utf-8"), newline_of(request)
    room = sum(len(model.encode(one.header + one.body)) for one in found.functions)
    if room > model.max_prefix // 2:
        return request
    short = shorten_to(model, request, model.max_prefix - room)
    above = short.prefix.removesuffix(own)
    unseen = [one.header + one.body + newline for one in found.functions if one.body not in above]
    if above == short.prefix or not unseen:
        return request
    return replace(short, prefix=above + "".join(unseen) + own)


def shorten_to(model: Checkpoint, request: Infill, limit: int) -> Infill:
    """`request` with its prefix cut to fewer than `limit` tokens; BYTES_PER_TOKEN are tried in turn."""
    before = request.prefix.encode("utf-8", "replace")
    for share in BYTES_PER_TOKEN:
        if len(model.encode(request.prefix)) < limit:
            break
        short = shortened(load_language(request.language, request.macros), before, int(share * limit))
        request = replace(request, prefix=short.decode("utf-8"))
    return request
