"""Budget: the time that one request may spend on reading texts, however many parses and scans that takes.

Threads that begin with a copy of a request's context share its budget; where none is set, each call has a default.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from time import monotonic, thread_time
from typing import ParamSpec, TypeVar

from dg_lsp.reasons import SLOW, OutOfTime, Unreadable

# Seconds for ghost text that nobody has asked for, for what somebody has asked for, and for a gap in a bot's file.
UNASKED, ASKED, BOT = 0.25, 2.0, 5.0
# The part of the time that is left for one of several attempts.
ATTEMPT = 0.3
# Seconds for one call where no budget is set.
DEFAULT = 0.5
_NESTED = "reading the file takes too long, because its code is nested too deep"
_CANCELLED = "the request was cancelled"

Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class Budget:
    """The seconds for all text work of one request, and those spent so far. cancelled: the work ends at its next check.

    Seconds are processor time, so that a busy machine refuses no good file. spare: nobody has asked for the work, so a
    cancellation also ends a chunk that a network reads.
    """

    seconds: float
    spent: float = 0.0
    cancelled: bool = False
    spare: bool = False


@dataclass(slots=True, eq=False)
class Work:
    """One outermost call of a thread, which spends a budget. attempt: the seconds after which an attempt has failed."""

    budget: Budget
    began: float = field(default_factory=monotonic)
    clock: float = field(default_factory=thread_time)
    attempt: float = math.inf

    def check(self, now: float) -> None:
        """Return while the budget lasts, at the monotonic time `now`; else raise OutOfTime, or Unreadable."""
        if self.budget.cancelled:
            raise OutOfTime(_CANCELLED)
        if self.is_over(now):
            left = self.budget.seconds - self.budget.spent
            raise OutOfTime(SLOW) if thread_time() - self.clock > left else Unreadable

    def is_over(self, now: float) -> bool:
        """Return whether the budget or the attempt is spent, or the work cancelled, at the monotonic time `now`."""
        most = min(self.budget.seconds - self.budget.spent, self.attempt)
        # Reading the processor time is slow, and it is never ahead of the other.
        return self.budget.cancelled or (now - self.began > most and thread_time() - self.clock > most)


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)
_work: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def within(seconds: float) -> Iterator[Budget]:
    """Give the block's text work, that of threads that it begins included, `seconds`; cancel it when the block ends."""
    budget = Budget(seconds)
    with spending(budget):
        try:
            yield budget
        finally:
            # Nobody waits for a thread that is still at work.
            budget.cancelled = True


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Spend `budget` in the block, for work in several parts, such as the steps of a generator; cancelled together."""
    token = _budget.set(budget)
    try:
        yield
    except BaseException as error:
        # A cancellation, an interrupt or the end of a generator; nobody waits for threads that are still at work.
        budget.cancelled = budget.cancelled or not isinstance(error, Exception)
        raise
    finally:
        _budget.reset(token)


def current(seconds: float) -> Budget:
    """The budget that is set; where there is none, a new one of `seconds`."""
    return _budget.get() or Budget(seconds)


@contextmanager
def working() -> Iterator[Work]:
    """The Work of this thread; where there is none, one for the block. Raises OutOfTime where the budget is spent."""
    work = _work.get()
    if work is not None:
        yield work
        return
    work = Work(current(DEFAULT))
    token = _work.set(work)
    try:
        work.check(work.began)
        yield work
    finally:
        _work.reset(token)
        work.budget.spent += thread_time() - work.clock


@contextmanager
def attempt() -> Iterator[None]:
    """Give the block a part of the time that is left; raises Unreadable where it takes longer."""
    with working() as work:
        outer, used = work.attempt, thread_time() - work.clock
        left = min(work.budget.seconds - work.budget.spent, outer) - used
        work.attempt = used + left * ATTEMPT
        try:
            yield
        finally:
            work.attempt = outer


def tried(read: Callable[[], Result]) -> Result | None:
    """Return what `read` returns; None where a parser cannot read its text in a part of the time that is left."""
    try:
        with attempt():
            return read()
    except Unreadable:
        return None


def bounded(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make `function` one Work, unless it is called within another: all that it reads spends one budget."""

    @wraps(function)
    def within_budget(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        if _work.get() is not None:
            return function(*args, **kwargs)
        try:
            with working():
                return function(*args, **kwargs)
        except RecursionError as error:
            # Code in strings that is in code in strings, and so on a hundred times.
            raise OutOfTime(_NESTED) from error

    return within_budget


def unbilled(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make `function` spend no budget: it loads something once, such as a grammar, whatever text is read then."""

    @wraps(function)
    def outside_budget(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        work = _work.get()
        if work is None:
            return function(*args, **kwargs)
        spent = monotonic() - work.began, thread_time() - work.clock
        try:
            return function(*args, **kwargs)
        finally:
            work.began, work.clock = monotonic() - spent[0], thread_time() - spent[1]

    return outside_budget


def check() -> None:
    """Return while the budget of the work under way lasts, else raise OutOfTime; for loops over a text."""
    work = _work.get()
    if work is None:
        return
    # Most calls end here, and loops call it often.
    budget, now = work.budget, monotonic()
    if budget.cancelled or now - work.began > min(budget.seconds - budget.spent, work.attempt):
        work.check(now)
