"""A line in a terminal that moves while the user waits: what runs, and for how many seconds. Elsewhere nothing."""

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dg_lsp.cli.shown import shown

_REPAINTS = 4  # a second


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
        """Remove the line, before something else is shown in its place."""
        self._line.stop()

    def __enter__(self) -> "Waiting":
        self._line.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
