"""Fixture: one case of a language's corpus, a text with a cursor in it and the gap that is right there.

Knows the files under grammars/<language>/fixtures and their marks; docs/adding-a-language.md tells both.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dg_lsp.gaps.gap import Gap
from dg_lsp.source.document import Document

GRAMMARS = Path(__file__).resolve().parents[2] / "grammars"
FLAGS = ("asked", "crlf", "bom", "no line end", "broken")
_HEADER = re.compile(r"^=== (?P<name>.+): (?P<kind>[a-z_]+)(?: \((?P<flags>[a-z, ]+)\))?$", re.MULTILINE)
_MARKED = re.compile(
    r"(?P<before>[^⟦⟧⟨⟩]*)(?:⟨(?P<lead>[^⟦⟧⟨⟩]*)⟩)?⟦(?P<inside>[^⟦⟧⟨⟩]*)⟧(?:⟨(?P<tail>[^⟦⟧⟨⟩]*)⟩)?(?P<after>[^⟦⟧⟨⟩]*)"
)


class BadFixture(ValueError):
    """A case that cannot be read; the message says which and what mends it."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """`marked` is the text with ⟦ ⟧ round its gap and ⟨ ⟩ round lead and tail; `cursor` counts in bytes of `document`.

    asked: the kind is asked for, not chosen. broken: the text has damage that no gap at the cursor mends.
    """

    name: str
    document: Document
    cursor: int
    kind: str
    marked: str
    asked: bool
    broken: bool


def fixtures(language: str) -> list[Fixture]:
    """All cases of `language`, in the order of their files.

    Raises:
        BadFixture: a case has marks or a header that mean nothing.
    """
    paths = sorted((GRAMMARS / language / "fixtures").glob("*.txt"))
    return [case for path in paths for case in _read(language, path)]


def show(document: Document, gap: Gap) -> str:
    """The text of `document` with `gap` marked as in a fixture."""
    parts = (document.data[: gap.start], document.data[gap.start : gap.end], document.data[gap.end :])
    before, inside, after = (part.decode("utf-8", "replace") for part in parts)
    lead, tail = (f"⟨{text}⟩" if text else "" for text in (gap.insert_before, gap.insert_after))
    return f"{before}{lead}⟦{inside}⟧{tail}{after}"


def _read(language: str, path: Path) -> Iterator[Fixture]:
    text = path.read_text(encoding="utf-8")
    headers = list(_HEADER.finditer(text))
    if text.count("\n=== ") + text.startswith("=== ") != len(headers):
        raise BadFixture(f"{path} has a line that begins with === and is no `=== name: kind (flags)`")
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        body = text[header.end() + 1 : following.start() if following else len(text)]
        flags = tuple(header["flags"].split(", ")) if header["flags"] else ()
        if stray := set(flags) - set(FLAGS):
            raise BadFixture(
                f"{path}: {header['name']}: no flag {', '.join(stray)}; known are {', '.join(FLAGS)}"
            )
        yield _fixture(language, (f"{path.stem}: {header['name']}", header["kind"], flags), body)


def _fixture(language: str, header: tuple[str, str, tuple[str, ...]], body: str) -> Fixture:
    name, kind, flags = header
    # Blank lines between two cases are for the reader; ␌ makes a form feed visible.
    text = body.rstrip("\n").replace("␌", "\f") + ("" if "no line end" in flags else "\n")
    text = ("\ufeff" if "bom" in flags else "") + (text.replace("\n", "\r\n") if "crlf" in flags else text)
    parts = _MARKED.fullmatch(text)
    if parts is None or text.count("‸") != 1:
        raise BadFixture(f"{name}: mark one gap by ⟦ ⟧, its lead and tail by ⟨ ⟩, and one cursor by ‸")
    source = parts["before"] + parts["inside"] + parts["after"]
    document = Document(f"file:///{language}/{name}", language, 0, source.replace("‸", "").encode())
    cursor = len(source[: source.index("‸")].encode())
    marked = text.replace("‸", "")
    return Fixture(name, document, cursor, kind, marked, "asked" in flags, "broken" in flags)
