"""Gap: the span of a document that a fill replaces, and the text inserted around the fill. Edit: that replacement."""

import difflib
from dataclasses import dataclass, replace

from dg_lsp.messages import Kind
from dg_lsp.source.document import Document
from dg_lsp.source.history import Changes, begun
from dg_lsp.source.lexer import Span


@dataclass(frozen=True, slots=True)
class Gap:
    """The half-open byte span [start, end) that a fill replaces, equal at a bare cursor.

    indent: the white space that the lines of the fill begin with. insert_before, insert_after: text that the edit puts
    around the fill. name: the function's, with its owners. stub: the text in the gap marks it as not written yet.
    is_placeholder: it is the body of a stub, or one without code on purpose. further: the gaps after this one that are
    filled together with it, in order. asked: a kind, a name or a range was asked for, so that typed text in the gap may
    go. endings: where the gap begins in the middle of a word, the texts that complete it to a word in sight; else None.
    """

    start: int
    end: int
    kind: Kind
    indent: str
    insert_before: str = ""
    insert_after: str = ""
    name: str = ""
    stub: bool = False
    is_placeholder: bool = False
    further: tuple["Gap", ...] = ()
    asked: bool = False
    endings: tuple[str, ...] | None = None

    @property
    def parts(self) -> tuple["Gap", ...]:
        """This gap and its `further` ones."""
        return self, *self.further

    @property
    def span(self) -> Span:
        """From where it begins to where the last of its `further` gaps ends."""
        return self.start, self.parts[-1].end

    def moved(self, by: int) -> "Gap":
        """Return the same gap with all its places `by` bytes further on."""
        further = tuple(part.moved(by) for part in self.further)
        return replace(self, start=self.start + by, end=self.end + by, further=further)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes [start, end) by `text`."""

    start: int
    end: int
    text: str


def apply_edit(document: Document, edit: Edit) -> Document:
    """The document after `edit`, one version on, which remembers it; every byte outside [start, end) is as it was."""
    text = edit.text.encode("utf-8")
    data = document.data[: edit.start] + text + document.data[edit.end :]
    changes = Changes().then(edit.start, edit.end, edit.start + len(text))
    history = (document.history or begun(document.data)).after(data, changes)
    return replace(document, version=document.version + 1, data=data, history=history)


def unified_diff(old: Document, new: Document, path: str) -> str:
    """The change from `old` to `new` as `git apply` and `patch` take it; an absolute `path` is named from the root."""
    # Git ends the name by a tab where it holds a space.
    name = path.lstrip("/") + ("\t" if " " in path else "")
    lines = difflib.unified_diff(_lines_of(old.text), _lines_of(new.text), f"a/{name}", f"b/{name}")
    marked = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return "".join(marked)


def _lines_of(text: str) -> list[str]:
    """Lines as git sees them: they end at LF only."""
    parts = [part + "\n" for part in text.split("\n")]
    parts[-1] = parts[-1][:-1]
    return parts if parts[-1] else parts[:-1]
