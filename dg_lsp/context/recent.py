"""Recent edits: the lines written, copied or visited last in other open documents, for a model that reads pieces.

Knows documents and their bursts; knows no model and no disk.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dg_lsp.context.definitions import Context, piece_of
from dg_lsp.context.index import family_of
from dg_lsp.context.secrets import has_secret
from dg_lsp.source.bursts import Bursts
from dg_lsp.source.document import Document
from dg_lsp.source.language import knows, load_language

# Documents, edits of each, and lines of an edit at most; and how many of the lines around a place are above it.
_DOCUMENTS, _EDITS, _LINES, _ABOVE = 3, 2, 12, 2


@dataclass(frozen=True, slots=True)
class Edited:
    """A document that was edited, copied from or visited, with its recent edits.

    place: the line where the user was last, if that is not where it was edited last. copied: the first and the last
    line that were copied last, if nothing was changed since.
    """

    document: Document
    bursts: Bursts
    place: int | None = None
    copied: tuple[int, int] | None = None


def recent_edits(document: Document, edited: Sequence[Edited]) -> Context:
    """Return the lines of the last edits of other documents, those that were copied last and those around the user's
    last place, a Piece for each document.

    edited: the documents, the one used last at the end, as its piece is. Documents of other languages and lines with
    what looks like a secret are left out.
    """
    own = _family(document)
    texts = {
        one.document.uri: text for one in edited if _family(one.document) == own and (text := _text(one))
    }
    uris = tuple(texts)[-_DOCUMENTS:]
    return Context(tuple(piece_of(document, uri, texts[uri]) for uri in uris), uris)


def _family(document: Document) -> str:
    """Return the family of the languages that `document` shares texts with; empty if its language is unknown."""
    return family_of(load_language(document.language).name) if knows(document.language) else ""


def _text(edited: Edited) -> str:
    """Return the lines of a document that were edited or copied last, and those around the user's last place.

    They are in their order; empty if they are blank.
    """
    document, numbers = edited.document, set[int]()
    spans = [burst.lines for burst in edited.bursts.recent[-_EDITS:]]
    spans += [edited.copied] if edited.copied else []
    at = max(edited.place if edited.place is not None else spans[-1][0], _ABOVE) - _ABOVE
    for first, last in (*spans, (at, at + _LINES)):
        own = range(first, min(last + 1, first + _LINES, len(document.line_starts)))
        if own and not has_secret(document.data, document.line_starts[first], document.line_end(own[-1])):
            numbers |= {*own}
    lines = (document.data[document.line_starts[n] : document.line_end(n)] for n in sorted(numbers))
    text = b"".join(line + b"\n" for line in lines).decode("utf-8")
    return text if text.strip() else ""
