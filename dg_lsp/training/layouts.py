"""Training canvases: cut out of a corpus, and laid out as the engine lays out the canvas of a gap.

Several canvases follow different lines of one document, so that one encoding serves them all. `spans.py` chooses
the characters that become gaps. Knows tokens and lines; knows no networks and no noise.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from dg_lsp.training.corpus import Corpus
from dg_lsp.training.shape import PAD
from dg_lsp.training.spans import Pieces, Span, indent_of, part_of_line, rest_of_line, whole_lines

# The share of canvases with gaps and anchors. In the others every slot may be noise, as in the published recipe; from
# these a network learns to doubt the tokens on a canvas, and the length search needs that doubt.
INFILLS = 0.5
_KEPT = 8  # slots kept for the suffix at least, so that a gap is followed by anchors
_LINES = 12  # lines of a gap at most
# How often each kind of gap is made: the rest of a line, a part of it, whole lines, several gaps.
_KINDS = {"rest": 0.3, "part": 0.15, "lines": 0.3, "several": 0.25}


@dataclass(frozen=True, slots=True)
class Bucket:
    """The shape of a batch: `rows` documents of `length` tokens, each with `canvases` canvases of `slots` slots.

    Without canvases only the encoder learns. share: the probability that a step draws this shape.
    """

    rows: int
    length: int
    canvases: int
    slots: int
    share: float


# About 8,000 tokens each, including those of the first pass of self-conditioning; a quarter are the encoder's. Canvases
# of 64 slots are the most frequent, because the fills within a line, which a typing person waits for, use them.
BUCKETS = (Bucket(4, 512, 16, 64, 0.58), Bucket(4, 512, 8, 128, 0.30), Bucket(2, 1024, 32, 64, 0.12))

# For texts written from left to right: 2,048 tokens each, no canvas.
DRAFTS = (Bucket(4, 512, 0, 64, 0.8), Bucket(2, 1024, 0, 64, 0.2))


@dataclass(frozen=True, slots=True)
class Batch:
    """B documents of P tokens with K canvases of C slots each.

    tokens: int64 [B, P], bos first, pad after the end of a short file. canvas: int64 [B, K, C], without noise. free:
    bool [B, K, C], the slots that noise may replace. starts: int64 [B, K]; canvas k follows tokens[:starts[k]].
    """

    tokens: Tensor
    canvas: Tensor
    free: Tensor
    starts: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same batch on `device`."""
        return Batch(*(part.to(device) for part in (self.tokens, self.canvas, self.free, self.starts)))


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts canvases out of a corpus.

    colons: bool [L], the lines whose previous line ends with a colon, so that a block begins with them.
    """

    corpus: Corpus
    tokenizer: Tokenizer
    colons: np.ndarray
    bos: int
    eos: int

    @classmethod
    def of(cls, corpus: Corpus, tokenizer: Tokenizer, bos: int, eos: int) -> "Cutter":
        """A cutter for `corpus`; finds the lines at which blocks begin."""
        ending = [i for t, i in tokenizer.get_vocab().items() if t.endswith(":")]
        last = corpus.tokens[np.maximum(corpus.lines[1:] - 2, 0)]
        ends = np.isin(last, ending) & ~corpus.prose
        colons = np.concatenate([[False], ends[:-1]]) & (np.arange(len(ends)) > corpus.first)
        return cls(corpus, tokenizer, colons, bos, eos)

    @property
    def pieces(self) -> Pieces:
        """A function from a text to the spans that the tokenizer's tokens do not cross."""
        split = self.tokenizer.pre_tokenizer.pre_tokenize_str
        return lambda text: [span for _, span in split(text)]


def draw(cutter: Cutter, bucket: Bucket, chance: random.Random, infill: float = INFILLS) -> Batch:
    """A batch in the shape of `bucket`; each canvas is an infill with probability `infill`, else a continuation."""
    documents, canvases, frees, starts = [], [], [], []
    for _ in range(bucket.rows):
        begin, end = _window(cutter.corpus, bucket, chance)
        at, last = (int(cutter.corpus.lines[n]) for n in (begin, cutter.corpus.last[begin]))
        tokens = cutter.corpus.tokens[at : min(at + bucket.length - 1, last)].tolist()
        documents.append([cutter.bos, *tokens, *[PAD] * (bucket.length - 1 - len(tokens))])
        for _ in range(bucket.canvases):
            line, (slots, free) = _canvas(cutter, bucket, chance, (begin, end, infill))
            canvases.append(slots)
            frees.append(free)
            starts.append(int(cutter.corpus.lines[line]) - at + 1)
    shape = (bucket.rows, bucket.canvases)
    return Batch(
        torch.tensor(documents),
        torch.tensor(canvases, dtype=torch.int64).view(*shape, bucket.slots),
        torch.tensor(frees, dtype=torch.bool).view(*shape, bucket.slots),
        torch.tensor(starts, dtype=torch.int64).view(shape),
    )


_Canvas = tuple[list[int], list[bool]]


def _window(corpus: Corpus, bucket: Bucket, chance: random.Random) -> tuple[int, int]:
    """Choose a document: the half-open span of lines at which its canvases may begin; its tokens begin with the first.

    A third of the documents begin with their file and a tenth end with it, so that both ends of files are learned.
    """
    begin, end, _ = chance.choices(corpus.sources.tolist(), corpus.sources[:, 2].tolist())[0]
    line = chance.randrange(begin, end)
    first, last = int(corpus.first[line]), int(corpus.last[line])
    # The last line from which the rest of the file still fills a document; a shorter file is taken from its beginning.
    room = corpus.lines[last] - (bucket.length - 1)
    latest = max(int(np.searchsorted(corpus.lines, room, side="right")) - 1, first)
    dice = chance.random()
    line = first if dice < 0.33 else latest if dice > 0.9 else min(line, latest)
    stop = int(np.searchsorted(corpus.lines, corpus.lines[line] + bucket.length - 1, side="right"))
    return line, min(stop, last)


def _canvas(
    cutter: Cutter, bucket: Bucket, chance: random.Random, where: tuple[int, int, float]
) -> tuple[int, _Canvas]:
    """The line at which a canvas begins, and the canvas; `where` = (begin, end, probability of an infill)."""
    begin, end, infill = where
    # A document may have no line that suits an infill, such as a licence.
    for _ in range(50 if chance.random() < infill else 0):
        line = chance.randrange(begin, end)
        kind = chance.choices(list(_KINDS), list(_KINDS.values()))[0]
        if kind == "lines" and chance.random() < 0.7:
            near = np.flatnonzero(cutter.colons[line : min(line + 50, end)])
            line += int(near[0]) if len(near) else 0
        # Most lines of prose are skipped: a network of this size cannot learn to write it.
        if cutter.corpus.prose[line] and chance.random() < 0.9:
            continue
        if (found := _infill(cutter, line, kind, bucket.slots, chance)) is not None:
            return line, found
    line = chance.randrange(begin, end)
    # A continuation: no anchors; every slot is free, those after the end of the file included.
    return line, (_following(cutter, line, bucket.slots), [True] * bucket.slots)


def _infill(cutter: Cutter, line: int, kind: str, count: int, chance: random.Random) -> _Canvas | None:
    """A canvas with gaps of the given `kind` that begins at `line`; None if the line does not suit."""
    # Decode the lines that the gaps touch.
    stop = line + 1
    if kind == "lines":
        stop = _block_end(cutter, line, chance)
    elif kind == "several":
        stop = min(line + chance.randint(2, 6), int(cutter.corpus.last[line]))
    text = _text(cutter, line, stop)
    # Choose the spans of the gaps.
    spans = _gaps_in(text, kind, cutter.pieces, chance)
    if not spans or any(not text[a:b].strip() for a, b in spans):
        return None
    # Tokenise gaps and the text between them separately, as the engine does, because the ends of a gap need not be ends
    # of tokens.
    slots, free = list[int](), list[bool]()
    at = 0
    for begin, end in [*spans, (len(text), len(text))]:
        for part, is_gap in ((text[at:begin], False), (text[begin:end], True)):
            ids = cutter.tokenizer.encode(part, add_special_tokens=False).ids
            slots, free = slots + ids, free + [is_gap] * len(ids)
        at = end
    while free and not free[-1] and len(slots) > count:
        slots, free = slots[:-1], free[:-1]
    if free.index(True) > count // 4 or len(free) - free[::-1].index(True) > count - _KEPT:
        return None
    # Fill the canvas with the tokens that follow.
    slots += _following(cutter, stop, count - len(slots), int(cutter.corpus.last[line]))
    return slots, free + [False] * (count - len(free))


def _gaps_in(text: str, kind: str, pieces: Pieces, chance: random.Random) -> list[Span]:
    """The spans of the gaps of the given `kind` in `text`, whole lines."""
    if kind == "lines":
        return [whole_lines(text, pieces, chance)]
    if kind != "several":
        return [(rest_of_line if kind == "rest" else part_of_line)(text, 0, pieces, chance)]
    begins = [0, *(i + 1 for i, c in enumerate(text[:-1]) if c == "\n")]
    chosen = sorted(chance.sample(begins, min(len(begins), chance.randint(2, 3))))
    spans = [chance.choice((rest_of_line, part_of_line))(text, begin, pieces, chance) for begin in chosen]
    return [(a, b) for a, b in spans if text[a:b].strip()]


def _block_end(cutter: Cutter, line: int, chance: random.Random) -> int:
    """The line after a gap of whole lines from `line` on: the end of its block, or a random one."""
    stop = min(line + _LINES, int(cutter.corpus.last[line]))
    if chance.random() < 0.25:
        return min(line + chance.randint(1, _LINES), stop)
    indent, end = indent_of(_text(cutter, line, line + 1)), line + 1
    for number in range(line + 1, stop):
        text = _text(cutter, number, number + 1)
        if text.strip():
            if indent_of(text) < indent:
                break
            end = number + 1
    return end


def _text(cutter: Cutter, line: int, stop: int) -> str:
    """The text of the lines from `line` up to `stop`."""
    ids = cutter.corpus.tokens[cutter.corpus.lines[line] : cutter.corpus.lines[stop]]
    return str(cutter.tokenizer.decode(ids.tolist(), skip_special_tokens=False))


def _following(cutter: Cutter, line: int, count: int, last: int | None = None) -> list[int]:
    """`count` tokens from the start of `line` on, eos after the end of the file; `last` is the line after the file."""
    stop = int(cutter.corpus.lines[cutter.corpus.last[line] if last is None else last])
    start = int(cutter.corpus.lines[line])
    found: Sequence[int] = cutter.corpus.tokens[start : min(start + count, stop)].tolist()
    return [*found, *[cutter.eos] * (count - len(found))]
