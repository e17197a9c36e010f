"""Lines below a text: those that end what its first line opens, and the item that follows a text which is shown."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile

import torch
from torch import Tensor

from dg_lsp.guard import (
    closed_below,
    end_of_item,
    end_of_next,
    goes_round,
    may_continue,
    newline_of,
    opens_below,
    site_of,
    to_bytes,
)
from dg_lsp.messages import LISTS, Draft, Fill, Infill
from dg_lsp.model.beam import Row, Start, only, search, text_logits, tokens_across
from dg_lsp.model.candidates import Candidate, candidates_of, checked, fitted
from dg_lsp.model.judge import PLAIN, chances
from dg_lsp.model.task import Task
from dg_lsp.model.tree import Tree
from dg_lsp.source.brackets import unpaired
from dg_lsp.source.document import LINE_END, last_line

# Lines and tokens that are written below a text at most.
LINES, TOKENS = 12, 160
# Texts that continue below where several are wanted.
_TEXTS = 2
# Deadlines for which the first line below is waited for: a late block is better than none.
_LATE = 4.0
UNSURE = "what belongs below its first line is less likely than the setting confidence asks for"
NOTHING = "nothing that is likely enough belongs below the text that is shown"
# How much a nat below the first line lowers the probability that a person keeps the text up to there: a line that is
# not the true one to the letter is often kept (docs/research/blocks.md).
_KEPT = 0.4


def grown(task: Task, found: Sequence[Candidate]) -> Generator[Draft, None, list[Candidate]]:
    """Write the lines below the likeliest of `found` that open something; return `found` with these texts grown.

    A text that opens nothing is whole, and ends the work where one text is wanted; so does one that is too unlikely to
    be shown. Where the request wants its text soon, so does one that can be shown and grow.
    """
    request, texts = task.request, list(found)
    rated = zip(chances(task.model.judge or PLAIN, request, found), range(len(found)), strict=True)
    for chance, number in sorted(rated, reverse=True)[: max(request.alternatives, _TEXTS)]:
        one = found[number]
        opens = opens_below(site_of(request), one.text)
        if chance < request.confidence or not (opens or request.alternatives > 1):
            break
        if request.soon and _grows_alone(request, one):
            break
        if opens and not (task.clock.is_over() and _stands_alone(request, one)):
            most = _most(request, chance)
            written = yield from write_below(task, one, most)
            texts[number] = _with_lines(request, one, written, most)
            if request.alternatives == 1 and texts[number].fill:
                break
    return texts


def next_item(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write the item that belongs below the text that the request shows already; return both as one candidate.

    It is empty where nothing belongs there, or nothing that is likely enough.
    """
    request = task.request
    yield from task.encode(task.tokens[0])
    most, shown = _most(request, request.chance), request.shown
    end = partial(end_of_next, site_of(request), shown=len(shown))
    bounds = _Bounds(
        end,
        most,
        lambda text: _can_grow(*_item_below(request, text)),
        LINES + len(LINE_END.findall(shown)),
    )
    written = yield from _write(task, shown, bounds)
    place, item = _item_below(request, written.text)
    skipped = len(written.text) - len(item)
    lead = written.text[len(shown) : skipped]
    below = replace(written, text=item, nats=tuple((end - skipped, nats) for end, nats in written.nats))
    for fill, nats in _shown(place, below, most):
        # The shown text grows at its end only: nothing is closed that the next item would have to open again.
        if item.startswith(fill.text):
            chance = request.chance * math.exp(-_KEPT * nats)
            return candidates_of("drafted", [replace(fill, text=shown + lead + fill.text, chance=chance)])
    return candidates_of("drafted", [Fill("", parses=False, refusal=NOTHING)])


def _item_below(request: Infill, text: str) -> tuple[Infill, str]:
    """Return the place of what `text` has below the text that `request` shows, and that item, without white space."""
    item = text[len(request.shown) :].lstrip()
    above = text[: len(text) - len(item)]
    lead = above[len(request.shown) :]
    kind, indent = request.kind if request.kind in LISTS else "statement", lead[last_line(lead) :]
    return replace(request, prefix=request.prefix + above, kind=kind, indent=indent, shown=""), item


def _grows_alone(request: Infill, one: Candidate) -> bool:
    """Return whether `one` can be shown as it is and grow: an element of a list, or the rest of a header."""
    site = site_of(request)
    is_open = bool(unpaired(site.language, to_bytes(one.text)).openers)
    return _stands_alone(request, one) and not is_open and (request.kind in LISTS or not site.state.brackets)


def _can_grow(request: Infill, text: str) -> bool:
    """Return whether the whole lines of `text`, which open a block, can be shown and go on at their end.

    Where braces close a block they cannot: the shown text has them, and further lines would come above.
    """
    ends = [found.start() for found in LINE_END.finditer(text)]
    site, lines = site_of(request), text[: ends[-1]].rstrip() if ends else ""
    if not LINE_END.search(lines) or unpaired(site.language, to_bytes(lines)).openers:
        return False
    return opens_below(site, lines) and not fitted(request, lines).refusal


def _most(request: Infill, chance: float) -> float:
    """Return how unlikely lines below a text of the probability `chance` may be to be shown, in nats."""
    return math.log(max(chance / request.confidence, 1.0)) / _KEPT if request.confidence else math.inf


@dataclass(frozen=True, slots=True)
class Lines:
    """A text with the lines written below it.

    nats: how unlikely the lines are up to each place of the text, as pairs of characters and nats. whole: what the
    first line opens has ended.
    """

    text: str
    nats: tuple[tuple[int, float], ...]
    whole: bool

    def unlikely(self, size: int) -> float:
        """Return how unlikely the first `size` characters are, the first line not counted, in nats."""
        return next((nats for end, nats in self.nats if end >= size), self.nats[-1][1] if self.nats else 0.0)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of the lines below a text.

    end: returns where a text ends, in characters; None if it may continue. most: how unlikely the lines may be, in
    nats. can_grow: returns whether the whole lines of a text can be shown and grow. lines: line ends of the text at
    most. needed: the text is half a statement without the lines.
    """

    end: Callable[[str], int | None]
    most: float
    can_grow: Callable[[str], bool]
    lines: int = LINES
    needed: bool = False


def write_below(task: Task, one: Candidate, most: float = math.inf) -> Generator[Draft, None, Lines]:
    """Write the likeliest lines below the candidate `one`, token by token; yield a Draft before each.

    Nothing more is written once the lines are less likely than `most` nats. The deadline ends them where `one` can be
    shown as it is; else some are waited for.
    """
    end, can_grow = partial(end_of_item, site_of(task.request)), partial(_can_grow, task.request)
    bounds = _Bounds(end, most, can_grow, needed=not _stands_alone(task.request, one))
    return _write(task, one.text.rstrip() + newline_of(task.request), bounds)


@torch.inference_mode()
def _write(task: Task, begun: str, bounds: _Bounds) -> Generator[Draft, None, Lines]:
    """Write the likeliest lines below the text `begun` within `bounds`, token by token; yield a Draft before each."""
    join, newline = task.join, newline_of(task.request)
    below = "" if begun.endswith(newline) else newline
    tokens, again = _stable_tokens(task, join.before + begun, below)
    tree = Tree(task.model.network, task.cache, join.kept - 1)
    (states,) = tree.read([[task.cache.tokens[join.kept - 1], *tokens]])
    start = Start(tree, states[-1:], again, (*task.cache.tokens[: join.kept], *tokens), late=_LATE)
    policy = _Below(task, begun, again, bounds)
    return (yield from search(start, policy, task.clock))


def _stable_tokens(task: Task, before: str, below: str) -> tuple[tuple[int, ...], str]:
    """Return the tokens of `before` that stay however the line below it is indented, and the text that is left.

    A tokenizer may have tokens of a line end and the indentation after it, or of a brace and the line end after it.
    below: the line end that follows `before`; "" if it has one.
    """
    model, indent = task.model, task.request.indent
    spaces = ("", indent or "\t", "    " + indent, *([below] if below else []))
    starts = (model.encode(before + below + space + "x") for space in spaces)
    common = tuple(
        token for token, *_ in takewhile(lambda found: len(set(found)) == 1, zip(*starts, strict=False))
    )
    while not before.startswith(text := model.tokenizer.decode(list(common))):
        common = common[:-1]
    return common, before[len(text) :]


@dataclass(slots=True)
class _Below:
    """The likeliest token each time, until the text has ended, or repeats itself.

    begun: the text above the lines; again: what of it the tokens begin with. text: all of it so far; nats: as in Lines.
    looked: how many whole lines it had when it was last looked at whether they can be shown.
    """

    task: Task
    begun: str
    again: str
    bounds: _Bounds
    text: str = ""
    total: float = 0.0
    nats: list[tuple[int, float]] = field(default_factory=list)
    looked: int = 0
    done: bool = False
    whole: bool = False

    @property
    def limit(self) -> int:
        """The tokens that are written at most."""
        return TOKENS

    def first(self, states: Tensor) -> list[Row]:
        """Return the likeliest first token below the first line."""
        likely = text_logits(self.task.model, states)[0]
        if self.again:
            likely = only(likely, tokens_across(self.task.model, self.again))
        return self._longer((), likely)

    def longer(self, rows: Sequence[Row], states: Tensor) -> list[Row]:
        """Return the text with its likeliest next token; [] where it ends."""
        return self._longer(rows[0].tokens, text_logits(self.task.model, states)[0])

    def _longer(self, before: tuple[int, ...], logits: Tensor) -> list[Row]:
        likely = logits.log_softmax(-1)
        token = int(likely.argmax())
        tokens = (*before, token)
        self.total -= float(likely[token])
        if token in self.task.model.ends:
            self.done = self.whole = True
            return []
        written = self.task.model.tokenizer.decode(list(tokens)).removeprefix(self.again)
        self.text = self.begun + written
        self.nats.append((len(self.text), self.total))
        self._end()
        return [] if self.done else [Row(0, tokens, text=self.text)]

    def _end(self) -> None:
        """Note whether the text has ended, and cut it there."""
        *lines, last = LINE_END.split(self.text)
        if not may_continue(last) and (end := self.bounds.end(self.text)) is not None:
            self.text, self.done, self.whole = self.text[:end], True, True
        else:
            self.done = self.total > self.bounds.most or self._runs_on(lines) or self._is_ready(lines)

    def _is_ready(self, lines: Sequence[str]) -> bool:
        """Return whether the whole `lines` of the text are enough for a request that wants them soon."""
        if not self.task.request.soon or len(lines) == self.looked:
            return False
        self.looked = len(lines)
        return self.bounds.can_grow(self.text)

    def _runs_on(self, lines: Sequence[str]) -> bool:
        """Return whether the whole `lines` of the text are too many, or repeat themselves."""
        return len(lines) > self.bounds.lines or goes_round(self.text) or _repeats(lines)

    def is_enough(self, rows: Sequence[Row]) -> bool:  # noqa: ARG002
        """Return whether the text has ended."""
        return self.done

    def has_text(self, rows: Sequence[Row]) -> bool:  # noqa: ARG002
        """Return whether the lines that are ready can be shown."""
        if not self.bounds.needed:
            return True
        return next(_shown(self.task.request, self.result(()), self.bounds.most), None) is not None

    def draft(self, count: int, rows: Sequence[Row]) -> Draft:  # noqa: ARG002
        """Return a Draft without text: what of it will be shown is decided at its end."""
        return Draft(0, (), self.task.clock.milliseconds())

    def result(self, rows: Sequence[Row]) -> Lines:  # noqa: ARG002
        """Return the lines."""
        return Lines(self.text or self.begun, tuple(self.nats), self.whole)


def _stands_alone(request: Infill, one: Candidate) -> bool:
    """Return whether `one` can be shown as it is: `if a:`, but not `if a {`, which becomes an empty block."""
    fill = checked(request, one)
    return not fill.refusal and fill.text.rstrip() == one.text.rstrip()


def _with_lines(request: Infill, one: Candidate, written: Lines, most: float) -> Candidate:
    """Return `one` with as many of the lines `written` below it as can be shown within `most` nats.

    Where none can, it stays as it is if it can be shown alone; else it has the reason.
    """
    for fill, nats in _shown(request, written, most):
        return replace(one, fill=fill, kept=math.exp(-_KEPT * nats))
    if not checked(request, one).refusal or written.unlikely(len(written.text)) <= most:
        return one
    return replace(one, fill=Fill(one.text, parses=False, refusal=UNSURE))


def _shown(request: Infill, written: Lines, most: float) -> Iterator[tuple[Fill, float]]:
    """Yield the texts of at most `most` nats that can be shown, the longest first: each as a Fill, with its nats."""
    lines = [found.start() for found in LINE_END.finditer(written.text)]
    ends = ([len(written.text)] if written.whole else []) + lines[:0:-1]
    for end in ends:
        nats = written.unlikely(end)
        if nats > most:
            continue
        text, cut = written.text[:end], end != ends[0] or not written.whole
        closed = closed_below(request, text)
        if closed is None and cut:
            continue
        fill = fitted(request, closed or text)
        if not fill.refusal:
            # Below closers that were added nothing of the item can follow.
            yield replace(fill, shortened=cut, grows=not cut or closed == text.rstrip()), nats


def _repeats(lines: Sequence[str]) -> bool:
    """Return whether the last line is the one above it."""
    return len(lines) > 2 and bool(lines[-1].strip()) and lines[-1] == lines[-2]
