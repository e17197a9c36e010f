"""Index: the texts of other files as rows; each file can be added, replaced or dropped. Bounded in memory.

One thread may put while another one searches.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from posixpath import commonprefix

from dg_lsp.budget import bounded
from dg_lsp.context.rows import Rows, read_rows
from dg_lsp.files.excluded import key_of
from dg_lsp.reasons import OutOfTime
from dg_lsp.source.language import load_language

# Bytes of one file that are read: more is no file that a person writes. Bytes of all files together.
LARGEST = 256 << 10
ROOM = 40 << 20


# What tells one state of a file on disk from the next.
Stamp = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """A file in the index: uri, language family, rows, and the stamp of the file read; None for an open document."""

    uri: str
    family: str
    rows: Rows
    stamp: Stamp | None = None


@bounded
def read_other(uri: str, language: str, data: bytes, stamp: Stamp | None = None) -> Other:
    """The file `uri` as an entry of an index; the first LARGEST bytes of it are read."""
    found = load_language(language)
    return Other(uri, family_of(found.name), read_rows(found, data[:LARGEST]), stamp)


class Index:
    """The files that candidates may come from, by uri. is_current: returns whether a file is still as taken in."""

    def __init__(self, room: int = ROOM, is_current: Callable[[Other], bool] = lambda _: True) -> None:
        self._files: dict[str, Other] = {}
        self._room, self._is_current = room, is_current
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._files)

    def holds(self, uri: str, data: bytes) -> bool:
        """Return whether the open document `uri` is in with this text."""
        known = self._files.get(key_of(uri))
        return known is not None and known.stamp is None and known.rows.data == data[:LARGEST]

    def others(self) -> list[Other]:
        """The files that are in."""
        return list(self._files.values())

    def stamp(self, uri: str) -> Stamp | None:
        """The stamp of the file `uri`; None if it is not in, or is in as an open document."""
        known = self._files.get(key_of(uri))
        return known.stamp if known else None

    def put(self, uri: str, language: str, data: bytes, stamp: Stamp | None = None) -> bool:
        """Take the file `uri` in, or its new text, if it can be read in time; whether it found room."""
        other = self.read(uri, language, data, stamp)
        return other is None or self.take(other)

    def read(self, uri: str, language: str, data: bytes, stamp: Stamp | None = None) -> Other | None:
        """Read the file `uri` as an entry, not taken in; if it takes too long, None, and the older one is left out."""
        try:
            return read_other(uri, language, data, stamp)
        except OutOfTime:
            self.drop(uri)
            return None

    def take(self, other: Other) -> bool:
        """Take in a file that has been read; whether it found room."""
        self.drop(other.uri)
        if self.bytes + len(other.rows.data) > self._room:
            return False
        self._files[key_of(other.uri)] = other
        self.bytes += len(other.rows.data)
        return True

    def drop(self, uri: str) -> None:
        """Leave the file `uri` out, if it is in."""
        known = self._files.pop(key_of(uri), None)
        if known is not None:
            self.bytes -= len(known.rows.data)

    def drop_below(self, uris: Iterable[str]) -> None:
        """Leave out the files `uris`, and all files of folders of these names; open documents stay."""
        gone = set(map(key_of, uris))
        for key, other in list(self._files.items()):
            if other.stamp is not None and any(name in gone for name in _names(key)):
                self.drop(other.uri)

    def still_has(self, other: Other) -> bool:
        """Return whether `other` may be used: it is in, and still as it was taken in. If it is not, it is left out."""
        if self._files.get(key_of(other.uri)) is not other:
            return False
        if not self._is_current(other):
            self.drop(other.uri)
            return False
        return True

    def beside(self, uri: str, language: str) -> list[Other]:
        """The files of the family of `language` but for `uri`, those first whose path has most in common with its."""
        family, own = family_of(load_language(language).name), key_of(uri)
        # A copy, since another thread may put meanwhile.
        files = list(self._files.items())
        like = [(key, other) for key, other in files if other.family == family and key != own]
        # Many files share a folder, so each of those is compared once.
        folders, mine = {_folder(key) for key, _ in like}, _folder(own).split("/")
        near = {folder: len(commonprefix([folder.split("/"), mine])) for folder in folders}
        like.sort(key=lambda one: (-near[_folder(one[0])], one[0]))
        return [other for _, other in like]


def family_of(language: str) -> str:
    """The languages that share their texts: JavaScript's and TypeScript's, C's and C++'s; any other one is alone."""
    families = {"javascript": "ecma", "jsx": "ecma", "typescript": "ecma", "tsx": "ecma", "cpp": "c"}
    return families.get(language, language)


def _names(key: str) -> Iterator[str]:
    """Yield `key`, and the folders that it is in, the innermost first."""
    while key:
        yield key
        key = _folder(key)


def _folder(uri: str) -> str:
    return uri.rpartition("/")[0]
