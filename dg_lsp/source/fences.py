"""Code fences of a Markdown file: a document with the code of one, in whose lines and columns nothing moves."""

import re
from dataclasses import replace

from dg_lsp.reasons import NoGap
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language, UnknownLanguage, knows, language_of, load_language

MARKDOWN = "markdown"
_LARGEST = 500_000
_FENCE = re.compile(rb"(?<![^\r\n])[ \t>]*(?P<marks>`{3,}|~{3,})[ \t]*(?P<name>[\w+#-]*)")
_LINE = re.compile(rb"[^\r\n]+")


def fenced(document: Document, offset: int) -> tuple[Document, int]:
    """Return the code of the fence around `offset` and the offset in it; any other document as it is.

    Lines above the fence become comments in its language (`# Usage` becomes `# # Usage`), those below are left out, so
    that positions stay. NoGap is raised where `offset` is in no fence of a language that is known.
    """
    if document.language != MARKDOWN:
        return document, offset
    if len(document.data) > _LARGEST:
        raise NoGap(f"a Markdown file of more than {_LARGEST:,} bytes is not read")
    start, end, name = _around(document.data, offset)
    language = _language(name)
    begins = _line_behind(document.data, start)
    mark = language.comment + b" " if language.has_comments else b""
    above = _LINE.sub(lambda line: mark + line[0] if mark else b"", document.data[:begins])
    part = replace(document, language=language.name, data=above + document.data[begins:end], history=None)
    return part, offset + len(above) - begins


def _around(data: bytes, offset: int) -> tuple[int, int, str]:
    """Return where the fence around `offset` begins and its code ends, and the name that it has."""
    opened: re.Match[bytes] | None = None
    for found in _FENCE.finditer(data):
        if opened is None:
            if found.start() >= offset:
                break
            opened = found
        elif found["marks"].startswith(opened["marks"]) and not found["name"]:
            if _line_behind(data, opened.end()) <= offset <= found.start():
                return opened.end(), found.start(), opened["name"].decode()
            opened = None
    if opened is not None and _line_behind(data, opened.end()) <= offset:
        return opened.end(), len(data), opened["name"].decode()
    raise NoGap("of a Markdown file only the code fences are filled")


def _line_behind(data: bytes, offset: int) -> int:
    found = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)?").match(data, offset)
    assert found is not None, "it matches nothing, too"
    return found.end()


def _language(name: str) -> Language:
    """Return the language that a fence calls `name`, such as `python` or `py`."""
    try:
        language = load_language(name.lower() if knows(name.lower()) else language_of(f"a.{name}"))
    except UnknownLanguage as error:
        raise NoGap(f"the fence names no language that is known here: {name or 'none'}") from error
    if language.name == MARKDOWN:
        raise NoGap("of a Markdown file only the code fences are filled")
    return language
