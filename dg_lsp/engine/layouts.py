"""Training canvases cut out of a corpus, laid out as the engine lays them out when it fills a gap.

Half are whole-canvas continuations, half have gaps between anchors. Knows tokens and lines; no networks, no noise.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from dg_lsp.engine.corpus import Corpus
from dg_lsp.engine.tokenizer import pieces

_KEPT = 8  # slots at least that stay for the suffix, so that a gap has an end to arrive at
_LINES = 12


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rows of one shape: `prefix` tokens before a canvas of `canvas` slots; share: how often it is drawn."""

    rows: int
    prefix: int
    canvas: int
    share: float


# About 6,000 tokens each. The short canvas is the one that a keystroke waits for.
BUCKETS = (
    Bucket(24, 192, 64, 0.33),
    Bucket(24, 128, 128, 0.30),
    Bucket(12, 256, 256, 0.13),
    Bucket(64, 32, 64, 0.12),
    Bucket(7, 832, 64, 0.12),
)


@dataclass(frozen=True, slots=True)
class Batch:
    """prefix: int64 [B, P], bos first. canvas: int64 [B, C], clean. free: bool [B, C], what noise may fall on."""

    prefix: Tensor
    canvas: Tensor
    free: Tensor


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts canvases. colons: bool [L], the line before ends with a colon, so a block begins here."""

    corpus: Corpus
    tokenizer: Tokenizer
    colons: np.ndarray
    bos: int
    eos: int

    @classmethod
    def of(cls, corpus: Corpus, tokenizer: Tokenizer, bos: int, eos: int) -> "Cutter":
        """Find where blocks begin."""
        ending = [i for t, i in tokenizer.get_vocab().items() if t.endswith(":")]
        last = corpus.tokens[np.maximum(corpus.lines[1:] - 2, 0)]
        ends = np.isin(last, ending) & ~corpus.prose
        colons = np.concatenate([[False], ends[:-1]]) & (np.arange(len(ends)) > corpus.first)
        return cls(corpus, tokenizer, colons, bos, eos)


def draw(cutter: Cutter, bucket: Bucket, chance: random.Random, infill: float = 0.5) -> Batch:
    """A batch in the shape of `bucket`; each row is an infill with probability `infill`, else a continuation."""
    rows = list[_Row]()
    for _ in range(bucket.rows):
        row = None if chance.random() < infill else _continuation(cutter, bucket, chance)
        while row is None:
            row = _infill(cutter, bucket, chance)
        rows.append(row)
    prefix, canvas, free = (np.array(part) for part in zip(*rows, strict=True))
    return Batch(torch.from_numpy(prefix), torch.from_numpy(canvas), torch.from_numpy(free))


_Row = tuple[list[int], list[int], list[bool]]


def _continuation(cutter: Cutter, bucket: Bucket, chance: random.Random) -> _Row:
    """Whole lines and no anchors; the end of the file is to be predicted, too."""
    line = _line(cutter.corpus, bucket, chance)
    slots = _following(cutter, line, bucket.canvas)
    return _prefix(cutter, line, bucket.prefix), slots, [True] * bucket.canvas


def _infill(cutter: Cutter, bucket: Bucket, chance: random.Random) -> _Row | None:
    """Head anchors from a line start, gap, suffix anchors; None where the drawn place does not suit.

    1. Choose a kind of gap and a line.  2. The lines that the gaps touch, as text.  3. The spans of the gaps.
    4. Tokenise the parts separately, since a seam does not respect tokens.  5. Fill up with what follows.
    """
    corpus = cutter.corpus
    # 1. Prose is a small part: nobody expects a network of this size to write it.
    kind = chance.choices(("rest", "lines", "two"), (0.55, 0.35, 0.10))[0]
    line = _line(corpus, bucket, chance)
    if kind == "lines" and chance.random() < 0.7:
        line = _block_start(cutter, line, bucket.prefix)
    if corpus.prose[line] and chance.random() < 0.9:
        return None
    # 2. and 3.
    stop = line + 1
    if kind == "lines":
        stop = _block_end(cutter, line, chance)
    elif kind == "two":
        stop = min(line + chance.randint(2, 4), int(corpus.last[line]))
    text = _text(cutter, line, stop)
    if kind == "lines":
        spans = [_whole_lines(cutter, text, chance)]
    else:
        spans = [_in_line(cutter, text, 0, chance)]
        if kind == "two":
            spans.append(_in_line(cutter, text, text.rfind("\n", 0, -1) + 1, chance))
    if any(not text[a:b].strip() for a, b in spans) or (kind == "two" and spans[0][1] >= spans[1][0]):
        return None
    # 4.
    slots, free = list[int](), list[bool]()
    at = 0
    for begin, end in [*spans, (len(text), len(text))]:
        for part, is_gap in ((text[at:begin], False), (text[begin:end], True)):
            ids = cutter.tokenizer.encode(part, add_special_tokens=False).ids
            slots, free = slots + ids, free + [is_gap] * len(ids)
        at = end
    while free and not free[-1] and len(slots) > bucket.canvas:
        slots, free = slots[:-1], free[:-1]
    if free.index(True) > bucket.canvas // 4 or len(free) - free[::-1].index(True) > bucket.canvas - _KEPT:
        return None
    # 5.
    slots += _following(cutter, stop, bucket.canvas - len(slots), int(corpus.last[line]))
    free += [False] * (bucket.canvas - len(free))
    return _prefix(cutter, line, bucket.prefix), slots, free


def _line(corpus: Corpus, bucket: Bucket, chance: random.Random) -> int:
    """A line with enough tokens before it in its file; half of the short prefixes reach back to the file's start."""
    while True:
        begin, end, _ = chance.choices(corpus.sources.tolist(), corpus.sources[:, 2].tolist())[0]
        line = chance.randrange(begin, end)
        if bucket.prefix <= 64 and chance.random() < 0.5:
            line = int(corpus.first[line])
            line = int(np.searchsorted(corpus.lines, corpus.lines[line] + bucket.prefix - 1))
        if line < end and corpus.lines[line] - corpus.lines[corpus.first[line]] >= bucket.prefix - 1:
            return line


def _block_start(cutter: Cutter, line: int, prefix: int) -> int:
    """The next line, within fifty, at which a block begins."""
    near = np.flatnonzero(cutter.colons[line : min(line + 50, int(cutter.corpus.last[line]))])
    return line + int(near[0]) if len(near) else line


def _block_end(cutter: Cutter, line: int, chance: random.Random) -> int:
    """The line after the gap: where the indentation falls below that of `line`, or after a random number of lines."""
    stop = min(line + _LINES, int(cutter.corpus.last[line]))
    if chance.random() < 0.25:
        return min(line + chance.randint(1, _LINES), stop)
    indent, end = _indent(_text(cutter, line, line + 1)), line + 1
    for number in range(line + 1, stop):
        text = _text(cutter, number, number + 1)
        if text.strip():
            if _indent(text) < indent:
                break
            end = number + 1
    return end


def _whole_lines(cutter: Cutter, text: str, chance: random.Random) -> tuple[int, int]:
    """From the line start, its indentation or a place in the first line, to the end of the last line."""
    first = text.split("\n", 1)[0]
    begin = chance.choice((0, _indent(first), _indent(first), _cut(cutter, first, chance)))
    end = len(text.rstrip("\n"))
    return begin, len(text) if chance.random() < 0.3 else end


def _in_line(cutter: Cutter, text: str, start: int, chance: random.Random) -> tuple[int, int]:
    """From a place in the line that begins at `start` to its end, or now and then to a place before it."""
    line = text[start:].split("\n", 1)[0].rstrip("\r")
    begin = _cut(cutter, line, chance)
    end = len(line)
    if chance.random() < 0.15:
        end = chance.choice([b for _, b in pieces(cutter.tokenizer, line) if b > begin] or [end])
    return start + begin, start + end


def _cut(cutter: Cutter, line: str, chance: random.Random) -> int:
    """Where a gap begins in `line`: in half of the cases between two pieces, else at any character."""
    indent = _indent(line)
    if chance.random() < 0.5:
        return chance.randint(indent, max(indent, len(line) - 1))
    return chance.choice([a for a, _ in pieces(cutter.tokenizer, line) if a >= indent] or [indent])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _text(cutter: Cutter, line: int, stop: int) -> str:
    ids = cutter.corpus.tokens[cutter.corpus.lines[line] : cutter.corpus.lines[stop]]
    return str(cutter.tokenizer.decode(ids.tolist(), skip_special_tokens=False))


def _prefix(cutter: Cutter, line: int, count: int) -> list[int]:
    end = int(cutter.corpus.lines[line])
    return [cutter.bos, *cutter.corpus.tokens[end - count + 1 : end].tolist()]


def _following(cutter: Cutter, line: int, count: int, last: int | None = None) -> list[int]:
    """`count` tokens from the start of `line` on; after the end of the file, eos."""
    stop = int(cutter.corpus.lines[cutter.corpus.last[line] if last is None else last])
    start = int(cutter.corpus.lines[line])
    found: Sequence[int] = cutter.corpus.tokens[start : min(start + count, stop)].tolist()
    return [*found, *[cutter.eos] * (count - len(found))]
