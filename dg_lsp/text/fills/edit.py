"""Edit: a span of a document and the text that replaces it; how it is applied and shown."""

import difflib
from dataclasses import dataclass

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import Changes, begun


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
    return Document(document.uri, document.language, document.version + 1, data, history)


def unified_diff(old: Document, new: Document, path: str) -> str:
    """The change from `old` to `new` as `git apply` and `patch` take it; empty where there is none."""
    # Git ends the name by a tab where it holds a space.
    name = path + ("\t" if " " in path else "")
    lines = difflib.unified_diff(_lines(old.text), _lines(new.text), f"a/{name}", f"b/{name}")
    marked = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return "".join(marked)


def _lines(text: str) -> list[str]:
    """Lines as git sees them: they end at LF only."""
    parts = [part + "\n" for part in text.split("\n")]
    parts[-1] = parts[-1][:-1]
    return parts if parts[-1] else parts[:-1]
