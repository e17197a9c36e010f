"""The names of files: the path in an address, and which files must not be sent to a model, by globs. Reads nothing."""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit


def split_uri(uri: str) -> tuple[str, str]:
    """The scheme and the path of an address: ("file", "/w/a b.py") of `file:///w/a%20b.py`.

    What is no address at all, such as `a://[b/.env`, is a path without a scheme.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "", uri
    return parts.scheme, unquote(parts.path)


def excluding(path: PurePosixPath, globs: Iterable[str]) -> str:
    """The first of `globs` that excludes the file `path`, relative to its workspace folder; empty if none does.

    A glob without a slash is compared with the file's name (`*.pem`), one that ends with a slash with the names of the
    folders that the file is in (`.ssh/`), and any other one with the whole path (`deploy/*.py`). `*` stands for any
    text, also for one with slashes, and `**/` at the beginning for any folders or none. Case does not matter.
    """
    return next((glob for glob in globs if _matches(path, glob)), "")


def _matches(path: PurePosixPath, glob: str) -> bool:
    if "/" not in glob:
        return _equal(path.name, glob)
    if glob.endswith("/") and "/" not in glob[:-1]:
        return any(_equal(folder, glob[:-1]) for folder in path.parts[:-1])
    whole = glob + "*" if glob.endswith("/") else glob
    rooted = str(path).lstrip("/")
    return _equal(rooted, whole.lstrip("/")) or (whole.startswith("**/") and _equal(rooted, whole[3:]))


def _equal(text: str, glob: str) -> bool:
    return _pattern(glob).match(text.lower()) is not None


@lru_cache(1024)
def _pattern(glob: str) -> re.Pattern[str]:
    """What `glob` stands for; kept, as each request asks for each open document."""
    return re.compile(translate(glob.lower()))
