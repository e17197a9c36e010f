"""Bodies that raise a mark, by which the tests that reach a function are known."""

import re
from collections.abc import Mapping

from dg_lsp.cli.reports import Results
from dg_lsp.cli.trial import Change
from dg_lsp.filling.stubs import StubStarted, stubs_of
from dg_lsp.gaps import Edit, Gap, apply_edit
from dg_lsp.source.document import Document

# What a failure says of a test that has reached one of the bodies below.
_MARK = "not implemented: dg-lsp is looking for the tests of this function"
# A body that raises.
_RAISE: Mapping[str, str] = {
    "python": f'raise NotImplementedError("{_MARK}")',
    "ruby": f'raise NotImplementedError, "{_MARK}"',
    "php": f"throw new \\Exception('{_MARK}');",
    "lua": f'error("{_MARK}")',
    "rust": f'panic!("{_MARK}")',
    "kotlin": f'TODO("{_MARK}")',
    "go": f'panic("{_MARK}")',
    "java": f'throw new UnsupportedOperationException("{_MARK}");',
    "csharp": f'throw new System.NotImplementedException("{_MARK}");',
    **dict.fromkeys(("javascript", "jsx", "typescript", "tsx"), f'throw new Error("{_MARK}");'),
}
_RAISING = re.compile(
    rb"\b(?:raise|throw|panic|error|abort|die|fail|fatalError|todo|unimplemented|TODO)\b|\?\?\?"
)


def raises(document: Document, gap: Gap) -> bool:
    """Return whether the unwritten body in `gap` raises, so that a test that reaches it fails there."""
    return bool(_RAISING.search(document.data, gap.start, gap.end))


def _with_mark(document: Document, gap: Gap) -> Document:
    """Return `document` with a body that raises the mark in `gap`; unchanged where a language has none."""
    body = _RAISE.get(document.language)
    if body is None:
        return document
    return apply_edit(document, Edit(gap.start, gap.end, gap.insert_before + body + gap.insert_after))


def raising(stub: StubStarted) -> bytes:
    """Return the text of the file in which the function of `stub` raises the mark; empty if none can be written."""
    raising = _with_mark(stub.document, stub.gap)
    return b"" if raising is stub.document else raising.data


def marked_in(document: Document) -> Change | None:
    """Return the change of `document` that has the mark raised by unwritten functions that raise; None if none do."""
    marked, name = document, ""
    for gap in reversed(stubs_of(document)):
        if gap.stub and raises(document, gap):
            marked, name = _with_mark(marked, gap), gap.name
    return None if marked is document else Change(name, document.data, marked.data)


def reaching(results: Results) -> set[str]:
    """Return the tests that have reached a body with the mark."""
    return {test for test, how in results.items() if _MARK in how}
