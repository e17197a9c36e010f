"""Recent edits: the lines written last in other open documents, for a model that reads pieces of other files.

Knows documents and their bursts; knows no model and no disk.
"""

from collections.abc import Sequence

from dg_lsp.text.documents.bursts import Bursts
from dg_lsp.text.documents.document import Document
from dg_lsp.text.languages.language import knows, load_language
from dg_lsp.text.related.definitions import Context, piece_of
from dg_lsp.text.related.index import family_of
from dg_lsp.text.related.secrets import has_secret

# Documents, edits of each, and lines of an edit at most.
_DOCUMENTS, _EDITS, _LINES = 3, 2, 12
Edited = tuple[Document, Bursts]


def recent_edits(document: Document, edited: Sequence[Edited]) -> Context:
    """Return the lines that the last edits of other documents have written, as one Piece for each document.

    edited: the documents, the one edited last at the end, as its piece is. Documents of other languages and edits with
    what looks like a secret are left out.
    """
    own = _family(document)
    texts = {
        other.uri: text
        for other, bursts in edited
        if _family(other) == own and (text := _text(other, bursts))
    }
    uris = tuple(texts)[-_DOCUMENTS:]
    return Context(tuple(piece_of(document, uri, texts[uri]) for uri in uris), uris)


def _family(document: Document) -> str:
    """Return the family of the languages that `document` shares texts with; empty if its language is unknown."""
    return family_of(load_language(document.language).name) if knows(document.language) else ""


def _text(document: Document, bursts: Bursts) -> str:
    """Return the lines of the last edits of `document`, in their order; empty if they are blank."""
    numbers = set[int]()
    for burst in bursts.recent[-_EDITS:]:
        first, last = burst.lines
        own = range(first, min(last + 1, first + _LINES, len(document.line_starts)))
        if own and not has_secret(document.data, document.line_starts[first], document.line_end(own[-1])):
            numbers |= {*own}
    lines = (document.data[document.line_starts[n] : document.line_end(n)] for n in sorted(numbers))
    text = b"".join(line + b"\n" for line in lines).decode("utf-8")
    return text if text.strip() else ""
