"""Index: the texts of other files as rows, each put in, put in anew or dropped by itself. Bounded in memory.

Knows no disk: `put` gets the bytes. One thread may put while another one searches.
"""

from dataclasses import dataclass
from itertools import takewhile

from dg_lsp.text.budget import bounded
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.reasons import OutOfTime
from dg_lsp.text.related.rows import Rows, read_rows, reread

# Bytes of one file that are read: more is no file that a person writes. Bytes of all files together.
LARGEST = 256 << 10
ROOM = 40 << 20


@dataclass(frozen=True, slots=True)
class Other:
    """A file in the index: its uri, its family of languages, and its rows."""

    uri: str
    family: str
    rows: Rows


@bounded
def read_other(uri: str, language: str, data: bytes) -> Other:
    """The file `uri` as an entry of an index; the first LARGEST bytes of it are read."""
    found = load_language(language)
    return Other(uri, family_of(found.name), read_rows(found, data[:LARGEST]))


class Index:
    """The files that candidates may come from, by their uris."""

    def __init__(self, room: int = ROOM) -> None:
        self._files: dict[str, Other] = {}
        self._room = room
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._files)

    def holds(self, uri: str, data: bytes) -> bool:
        """Whether the file `uri` is in with this text."""
        known = self._files.get(uri)
        return known is not None and known.rows.data == data[:LARGEST]

    def put(self, uri: str, language: str, data: bytes) -> bool:
        """Take the file `uri` in, or its new text; whether it found room. The first LARGEST bytes of it are read.

        A file that takes too long to read is left out.
        """
        try:
            return self._put(uri, language, data)
        except OutOfTime:
            self.drop(uri)
            return True

    @bounded
    def _put(self, uri: str, language: str, data: bytes) -> bool:
        known, data = self._files.get(uri), data[:LARGEST]
        if known is None:
            return self.take(read_other(uri, language, data))
        rows = known.rows if known.rows.data == data else reread(load_language(language), known.rows, data)
        return self.take(Other(uri, known.family, rows))

    def take(self, other: Other) -> bool:
        """Take in a file that has been read; whether it found room."""
        self.drop(other.uri)
        if self.bytes + len(other.rows.data) > self._room:
            return False
        self._files[other.uri] = other
        self.bytes += len(other.rows.data)
        return True

    def drop(self, uri: str) -> None:
        """Leave the file `uri` out, if it is in."""
        known = self._files.pop(uri, None)
        if known is not None:
            self.bytes -= len(known.rows.data)

    def beside(self, uri: str, language: str) -> list[Other]:
        """The files of the family of `language` but for `uri`, those first whose path has most in common with its."""
        family = family_of(load_language(language).name)
        # A copy, since another thread may put meanwhile.
        like = [other for other in list(self._files.values()) if other.family == family and other.uri != uri]
        # Many files share a folder, so each of those is compared once.
        near = {folder: _shared(folder, uri) for folder in {_folder(other.uri) for other in like}}
        return sorted(like, key=lambda other: (-near[_folder(other.uri)], other.uri))


def family_of(language: str) -> str:
    """The languages that share their texts: JavaScript's and TypeScript's, C's and C++'s; any other one is alone."""
    families = {"javascript": "ecma", "jsx": "ecma", "typescript": "ecma", "tsx": "ecma", "cpp": "c"}
    return families.get(language, language)


def _folder(uri: str) -> str:
    return uri.rpartition("/")[0]


def _shared(folder: str, uri: str) -> int:
    """How many folders `folder` and the one of `uri` have in common."""
    folders = zip(folder.split("/"), uri.split("/")[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], folders))
