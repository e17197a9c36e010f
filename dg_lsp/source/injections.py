"""Code in a file of another language: Markdown's fences, and the scripts and styles of HTML, Vue, Svelte and Astro.

What is such code in a language is the table [injections] of its language.toml.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from dg_lsp.reasons import NoGap
from dg_lsp.source.document import Document
from dg_lsp.source.language import (
    UnknownLanguage,
    injections_of,
    knows,
    language_of,
    line_comment_of,
    own_name,
)
from dg_lsp.source.lexer import line_start
from dg_lsp.source.words import Injections

_LARGEST = 500_000  # bytes of a file that is read for them
_MOST = 1_000  # elements that are looked at
_FENCE = re.compile(rb"(?<![^\r\n])[ \t>]*(?P<marks>`{3,}|~{3,})[ \t]*(?P<name>[\w+#-]*)")
_FRONT = re.compile(rb"\A\s*---[ \t]*(?=[\r\n])")
_FRONT_END = re.compile(rb"(?<![^\r\n])---")
_ATTRIBUTES = re.compile(rb"(?:[^<>\"'{}]|\"[^\"]*\"|'[^']*'|\{(?:[^{}]|\{[^{}]*\})*\})*>")
_LONGEST_TAG = 1_000
_NAMED = re.compile(rb"""\s(lang|type)\s*=\s*["']?([\w+./-]+)""", re.IGNORECASE)
# Types of scripts that name a format otherwise than it is called: https://html.spec.whatwg.org/#the-script-element
_TYPES = {"importmap": "json", "speculationrules": "json"}
_LINE = re.compile(rb"[^\r\n]+")
_REST_OF_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)?")


@dataclass(frozen=True, slots=True)
class _Part:
    """Code at the bytes [start, end), in whole lines. name: what its language is called, or a file's suffix.

    ends: what would end it, which no text in it may hold.
    """

    start: int
    end: int
    name: str
    ends: re.Pattern[bytes]

    def holds(self, data: bytes, offset: int) -> bool:
        """Return whether the cursor at `offset` of `data` is in the code, and not on the line of what ends it."""
        is_last = self.end == len(data) or data[self.end - 1 : self.end] not in (b"\n", b"\r")
        return self.start <= offset < self.end or (is_last and self.start <= offset == self.end)


def injected(document: Document, offset: int) -> tuple[Document, int]:
    """Return the code around `offset` in a file of another language and the offset in it, or the document as it is.

    Lines above the code become comments in its language (`# Usage` becomes `# # Usage`), those below are left out, so
    that positions stay. It may hold code itself, as a fence of HTML does. A large file is read without its parts.

    Raises:
        NoGap: at `offset` nothing is filled, or in a language that is not known.
    """
    facts = injections_of(document.language)
    if facts is None:
        return document, offset
    if len(document.data) <= _LARGEST:
        for part in _parts(document.data, facts):
            if part.holds(document.data, offset):
                found = _code_of(document, part, offset)
                return found if document.ends else injected(*found)
    elif not facts.rest:
        raise NoGap(f"a file of {facts.title} of more than {_LARGEST:,} bytes is not read")
    if not facts.rest:
        raise NoGap(outside(document.language))
    return (document if document.language == facts.rest else replace(document, language=facts.rest)), offset


def codes_of(document: Document) -> Iterator[Document]:
    """Yield all code in a file of another language that `injected` would return, one after the other."""
    facts = injections_of(document.language)
    for part in _parts(document.data, facts) if facts and len(document.data) <= _LARGEST else ():
        with suppress(NoGap):
            yield _code_of(document, part, part.start)[0]


def outside(language: str) -> str:
    """Return the reason why nothing is filled outside of the code in a file of the container `language`."""
    facts = injections_of(language)
    return f"in {facts.title} files only {facts.filled} are filled" if facts else ""


def _code_of(document: Document, part: _Part, offset: int) -> tuple[Document, int]:
    """Return the code of `part` as a document, and the `offset` in it."""
    language = _language(part.name)
    comment = line_comment_of(language)
    mark = comment + b" " if comment else b""
    above = _LINE.sub(lambda line: mark + line[0] if mark else b"", document.data[: part.start])
    data = above + document.data[part.start : part.end]
    ends = (*document.ends, part.ends)
    code = replace(document, language=language, data=data, history=None, ends=ends)
    return code, offset + len(above) - part.start


def _parts(data: bytes, facts: Injections) -> Iterator[_Part]:
    """Yield the code in `data`, the text of a file with such `facts`."""
    if facts.fences:
        yield from _fences(data)
    front = _FRONT.match(data) if facts.front else None
    end = _FRONT_END.search(data, front.end()) if front else None
    if front and end:
        yield _Part(_next_line(data, front.end()), end.start(), facts.front, _FRONT_END)
    if facts.elements:
        yield from _elements(data, end.end() if end else 0, facts)


def _fences(data: bytes) -> Iterator[_Part]:
    """Yield the code of the fences of Markdown; the last one may be open."""
    opened: re.Match[bytes] | None = None
    for found in (*_FENCE.finditer(data), None):
        if opened is None:
            opened = found
        elif found is None or (found["marks"].startswith(opened["marks"]) and not found["name"]):
            # Counted, since compiling a pattern of 100,000 marks takes a second.
            mark, count = opened["marks"][:1], len(opened["marks"])
            ends = re.compile(rb"(?<![^\r\n])[ \t>]*%b{%d}[ \t]*+(?![\w+#-])" % (mark, count))
            end = found.start() if found else len(data)
            yield _Part(_next_line(data, opened.end()), end, opened["name"].decode(), ends)
            opened = None


def _elements(data: bytes, at: int, facts: Injections) -> Iterator[_Part]:
    """Yield the code of the elements of `facts` from the byte `at` on: the whole lines between their tags."""
    names = b"|".join(sorted(facts.elements))
    opening = re.compile(rb"<!--|<(?P<name>%b)(?=[\s/>])" % names, re.IGNORECASE)
    for _ in range(_MOST):
        if (found := opening.search(data, at)) is None:
            return
        if found["name"] is None:
            at = data.find(b"-->", found.end())
            if at < 0:
                return
            continue
        name = found["name"].lower()
        tag = _ATTRIBUTES.match(data, found.end(), found.end() + _LONGEST_TAG)
        at = tag.end() if tag else found.end()
        if tag is None or tag[0].endswith(b"/>"):
            continue
        named = {key.lower(): value.decode().lower() for key, value in _NAMED.findall(tag[0])}
        called = named.get(b"lang", named.get(b"type", ""))
        called = _TYPES.get(called, called).rpartition("/")[2].rpartition("+")[2]
        called = facts.elements[name] if called in ("", "module") else called
        if called == facts.rest:
            continue
        ends = re.compile(rb"</%b(?=[\s/>])" % name, re.IGNORECASE)
        end = ends.search(data, at)
        stop = end.start() if end else len(data)
        start, line = _next_line(data, at), line_start(data, stop)
        # Its indentation belongs to the closing tag.
        yield _Part(start, line if not data[line:stop].strip() else stop, called, ends)
        at = stop


def _next_line(data: bytes, offset: int) -> int:
    found = _REST_OF_LINE.match(data, offset)
    assert found is not None, "it matches nothing, too"
    return found.end()


def _language(name: str) -> str:
    """Return the name of the language that a fence or an attribute calls `name`, such as `python` or `py`."""
    try:
        return own_name(name.lower()) if knows(name.lower()) else language_of(f"a.{name}")
    except UnknownLanguage as error:
        raise NoGap(f"the code names no language that is known here: {name or 'none'}") from error
