"""A line in a terminal that moves while the user waits: what runs, and for how many seconds. Elsewhere nothing."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dg_lsp.cli.shown import show, shown

_REPAINTS = 4  # a second
_PAUSE = 10.0  # seconds between two passing messages in a file


class Waiting:
    """Show `what` and the time since on the last line of stderr, from the block's begin to its end.

    Where stderr is no terminal, nothing is written. Text printed meanwhile appears above the line.
    """

    def __init__(self, what: str) -> None:
        console = Console(stderr=True, highlight=False)
        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        self._line = Progress(
            *columns,
            console=console,
            transient=True,
            refresh_per_second=_REPAINTS,
            # Output for another program does not appear in the terminal instead.
            redirect_stdout=sys.stdout.isatty(),
            disable=not sys.stderr.isatty() or console.is_dumb_terminal,
        )
        self._task = self._line.add_task(shown(what), total=None)

    @property
    def moves(self) -> bool:
        """Return whether there is a terminal that shows the line."""
        return not self._line.disable

    def say(self, what: str) -> None:
        """Show `what` instead; the clock continues."""
        self._line.update(self._task, description=shown(what))

    def begin(self, what: str) -> None:
        """Show `what` instead, and start the clock again."""
        self._line.reset(self._task, description=shown(what))

    def stop(self) -> None:
        """Remove the line, if it is there, before something else is shown in its place."""
        if self._line.live.is_started:
            self._line.stop()

    def __enter__(self) -> "Waiting":
        self._line.start()
        if self.moves:
            # A process that is killed meanwhile leaves the terminal as it was.
            self._line.console.show_cursor(True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def seldom(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that says a message if the last one that it said was ten seconds ago."""
    said = -math.inf

    def pass_on(text: str) -> None:
        nonlocal said
        if (now := time.monotonic()) - said >= _PAUSE:
            say(text)
            said = now

    return pass_on


@contextmanager
def telling(what: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that prints messages, while a terminal shows `what`, then the last one, on the line that moves.

    A message that ends in a carriage return passes: a terminal shows it on that line only, and where there is none it
    is printed if the last passing one was ten seconds ago.
    """
    with Waiting(what) as line:
        passing = seldom(show)

        def tell(text: str) -> None:
            sentence = text.removesuffix("\r")
            line.say(sentence)
            if sentence == text:
                show(sentence)
            elif not line.moves:
                passing(sentence)

        yield tell
