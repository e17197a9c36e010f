"""Gap: the span of a document that a fill replaces. The noun only; `gaps` finds it."""

from dataclasses import dataclass

from dg_lsp.text.messages import Kind
from dg_lsp.text.syntax.lexer import Span


class NoGap(ValueError):
    """There is nothing to fill here; the message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The half-open byte span [start, end) that a fill replaces, equal at a bare cursor.

    indent: the white space that the lines of the fill begin with. insert_before, insert_after: text that the edit puts
    before and after the fill, so that the fill need not. name: the function's, with its owners. stub: what stands in
    the gap says that it is not written yet. further: the gaps behind this one that are filled together with it, in the
    order of the text. asked: a kind, a name or a range was asked for, so that typed text in the gap may go. endings:
    where the gap begins in the middle of a word, the texts that may complete it.
    """

    start: int
    end: int
    kind: Kind
    indent: str
    insert_before: str = ""
    insert_after: str = ""
    name: str = ""
    stub: bool = False
    further: tuple["Gap", ...] = ()
    asked: bool = False
    endings: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple["Gap", ...]:
        """This gap and its `further` ones."""
        return self, *self.further

    @property
    def span(self) -> Span:
        """From where it begins to where the last of its `further` gaps ends."""
        return self.start, self.parts[-1].end
