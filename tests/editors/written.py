"""Random places of written code, and the judgement whether any of it is gone."""

import random
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

from benchmarks.gaps.sources import find_corpus
from dg_lsp.source.language import load_language

_LARGEST = 20_000  # bytes of a file, so that an editor reads it at once
_TOKEN = re.compile(rb"\w+|[^\w\s]")
# Words of a lost text that only said that something was not written yet, with blanks between its tokens.
_UNWRITTEN = re.compile(
    rb"pass|\. \. \.|(?:raise|throw new) [\w ]*(?:\( (?:. [\w ]* . )?\))?|[\w ]+ ! \( \)|;"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor in a file of real code: before a character that is no white space, or at the end of a line."""

    language: str
    name: str
    data: bytes
    at: int

    @property
    def line(self) -> int:
        """The number of its line, from 1."""
        return self.data.count(b"\n", 0, self.at) + 1

    @property
    def before(self) -> str:
        """The text before it on its line."""
        return self.data[self.data.rfind(b"\n", 0, self.at) + 1 : self.at].decode()

    @property
    def is_in_body(self) -> bool:
        """Return whether its line is indented."""
        return self.before[:1].isspace()


def written_places(languages: dict[str, Path], count: int, seed: int) -> list[Place]:
    """Return `count` places in files of `languages`; a language without a folder takes the machine's own files."""
    chance = random.Random(seed)
    places: list[Place] = []
    while len(places) < count:
        language = chance.choice(sorted(languages))
        data = chance.choice(_files(language, languages[language]))
        ends = [found.start() for found in re.finditer(rb"(?<=\S)\n", data)]
        starts = [found.start() for found in re.finditer(rb"\S", data)]
        at = chance.choice(ends if chance.random() < 0.3 else starts)
        if data[at] & 0xC0 == 0x80:
            continue
        suffix = load_language(language).suffixes[0]
        places.append(Place(language, f"place{len(places)}{suffix}", data, at))
    return places


@cache
def _files(language: str, folder: Path) -> tuple[bytes, ...]:
    given = {language: folder} if folder.name else {}
    files = [data for data in find_corpus(language, given, 60, 1).valid if len(data) < _LARGEST]
    files = [data for data in files if b"\r" not in data]
    assert files, f"no files of {language}"
    return tuple(files)


def gone(place: Place, data: bytes) -> str:
    """Return the written words and signs of `place` that its file with the text `data` lost; empty if it lost none."""
    rest = iter(b"".join(data.split()))
    if all(sign in rest for sign in b"".join(place.data.split())):
        # What is new is between the signs that were there.
        return ""
    old, new = (_TOKEN.findall(text) for text in (place.data, data))
    # What is alike at both ends need not be compared, and most is.
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    kept = {number for block in blocks for number in range(block.a, block.a + block.size)}
    lost = b" ".join(token for number, token in enumerate(old) if number not in kept)
    return _UNWRITTEN.sub(b"", lost).strip().decode("utf-8", "replace")
