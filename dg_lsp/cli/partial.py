"""Partial fills that stay in files for now: as long as they do, the text from before is in a copy beside each file.

A run that is killed leaves the copy, by which the next one knows of them.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from dg_lsp.files.writing import Held, check_free, drop, hold, kept_of, let_go


@dataclass(slots=True)
class Partials:
    """The copies of one run, by the paths of their files."""

    copies: dict[Path, Held] = field(default_factory=dict)

    def check(self, path: Path) -> None:
        """Raise FileError if another run has partial fills in the file at `path`, or was killed while it had."""
        kept = kept_of(path, "partial")
        if kept.path not in self.copies:
            check_free(kept)

    def begin(self, path: Path, text: bytes) -> None:
        """Keep `text`, that of the file at `path` before a partial fill, unless an earlier text of it is kept.

        Raises:
            FileError: there is no space for it, or something is there already.
        """
        kept = kept_of(path, "partial")
        if kept.path not in self.copies:
            self.copies[kept.path] = hold(kept, text)

    def end(self, left: Collection[Path]) -> list[Held]:
        """Remove the copies, except those of the files `left`, which may still hold such a fill; return these."""
        stay = {kept_of(path).path for path in left}
        found = [held for path, held in self.copies.items() if path in stay]
        for path, held in self.copies.items():
            let_go(held) if path in stay else drop(held)
        self.copies.clear()
        return found
