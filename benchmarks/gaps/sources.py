"""Sources: files of each language, found on the machine or in folders that are named, sorted by whether they parse.

Knows files and grammars; knows no damage.
"""

import os
import random
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gaps.valid import is_valid
from dg_lsp.reasons import OutOfTime
from dg_lsp.settings import UsageError
from dg_lsp.source.language import Language, known_languages, load_language

# More files than this make a run longer and no number better.
FILES = 150
# Smaller files have nothing to damage; in larger ones every position would cost a long parse.
SMALLEST, LARGEST = 500, 100_000
# A header may be called as C's are, or have no suffix at all.
_HEADERS = {"cpp": (".h", ".hh", ".tcc", "")}
# What is never a person's source.
_STRANGE = (".d.ts", ".min.js", "_pb2.py")
_FETCH = "benchmarks/fetch_sources.sh fetches public ones; then give --source {0}=DIR"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The files of one language: those that parse, and those that its grammar cannot read whole.

    missing: why there are none, and the fix.
    """

    language: Language
    valid: tuple[bytes, ...] = ()
    broken: tuple[bytes, ...] = ()
    missing: str = ""


def find_corpus(name: str, given: Mapping[str, Path], count: int, seed: int) -> Corpus:
    """At most `count` valid files of the language `name`, chosen at random, from its folder or the machine's own.

    Raises:
        UsageError: there is no such language.
    """
    if name not in known_languages():
        raise UsageError(f"no language {name!r}; known are {', '.join(known_languages())}")
    language = load_language(name)
    roots = [given[name]] if name in given else _own(name)
    paths = sorted({path for root in roots for path in _files(language, root)})
    random.Random(f"{name} {seed}").shuffle(paths)
    valid: list[bytes] = []
    broken: list[bytes] = []
    for data in _texts(paths):
        kept = valid if is_valid(language, data) else broken
        # A file without a function has nothing to ask for.
        if len(kept) < count and _has_function(language, data):
            kept.append(data)
        if len(valid) == count:
            break
    missing = ""
    if not valid:
        looked = ", ".join(map(str, roots)) or "the machine"
        missing = f"no valid {name} source in {looked}; {_FETCH.format(name)}"
    return Corpus(language, tuple(valid), tuple(broken), missing)


def _has_function(language: Language, data: bytes) -> bool:
    """Return whether `data` has a function; a text that takes too long to read has none."""
    try:
        return bool(language.captures(language.parse(data).root_node).get("function.body"))
    except OutOfTime:
        return False


def parse_sources(given: Sequence[str]) -> dict[str, Path]:
    """The folders of `--source LANGUAGE=DIR` by language.

    Raises:
        UsageError: one is not of that form, or there is no such language or folder.
    """
    found = {}
    for text in given:
        name, _, folder = text.partition("=")
        if name not in known_languages() or not Path(folder).is_dir():
            known = ", ".join(known_languages())
            raise UsageError(f"{text!r} is no LANGUAGE=DIR; the languages are {known}, and DIR is a folder")
        found[name] = Path(folder)
    return found


def _own(name: str) -> list[Path]:
    """The folders of this machine's own sources."""
    if name == "python":
        return [Path(sysconfig.get_path("stdlib"))]
    if name == "javascript" and (npm := shutil.which("npm")):
        asked = subprocess.run([npm, "root", "-g"], capture_output=True, text=True, check=False)
        return [root for root in [Path(asked.stdout.strip())] if root.is_dir()]
    if name in ("c", "cpp"):
        root = Path("/usr/include/c++" if name == "cpp" else "/usr/include")
        return [root] if root.is_dir() else []
    return []


def _files(language: Language, root: Path) -> Iterator[Path]:
    suffixes = {*language.suffixes, *_HEADERS.get(language.name, ())}
    # The folder of the standard library contains installed packages, and that of C's headers those of C++.
    outside = {"python": "site-packages", "c": "c++"}.get(language.name, "")
    for folder, inside, names in os.walk(root):
        inside[:] = sorted(name for name in inside if name != outside)
        for name in names:
            path = Path(folder, name)
            if path.suffix in suffixes and not name.endswith(_STRANGE):
                yield path


def _texts(paths: Sequence[Path]) -> Iterator[bytes]:
    """The contents that can be damaged: text of a reasonable size with plain line ends."""
    for path in paths:
        if not path.is_file() or not SMALLEST < path.stat().st_size < LARGEST:
            continue
        data = path.read_bytes()
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if not any(odd in data for odd in (b"\r", b"\f", b"\0", b"\xef\xbb\xbf")):
            yield data
