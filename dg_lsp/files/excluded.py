"""The names of files: the path in an address, and the files that no model may get, by globs, under all their names."""

import os
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from fnmatch import translate
from functools import lru_cache
from pathlib import PurePosixPath
from urllib.parse import quote_from_bytes, unquote, urlsplit

from dg_lsp.settings import SECRETS

_LINKS = 40  # links that are followed in one path, as Linux does
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_VARIANTS = 64  # texts that one glob with braces expands to, at most
# Stars, a set of characters such as `[!a-z]`, or any other character.
_TOKEN = re.compile(r"(?<![^/])\*\*/|\*+|\[!?\]?[^\]]*\]|(?s:.)")
_TOKEN_WITHOUT_SET = re.compile(r"(?<![^/])\*\*/|\*+|(?s:.)")
_DRIVE = re.compile(r"/?([A-Za-z])[:|](?=/|\Z)")


def split_uri(uri: str) -> tuple[str, str]:
    """The scheme and the path of an address: ("file", "/w/a b.py") of `file:///w/a%20b.py`.

    Any other text, such as `a://[b/.env`, is a path without a scheme. In a file's address `#` and `?`, which some
    clients do not encode, are characters of its name.
    """
    scheme, path = _split_uri(uri)
    return scheme, unquote(path)


def path_of(uri: str) -> str:
    """The path in a file's address as the system knows it, bytes that are no UTF-8 as surrogates; else empty."""
    scheme, path = _split_uri(uri)
    return unquote(path, errors="surrogateescape") if scheme == "file" else ""


def key_of(uri: str) -> str:
    """Return the one spelling that all addresses of the same file share.

    `file://localhost/C%3A/a/../b+c.py` and `file:///c:/b%2bc.py` both give `file:///c:/b%2Bc.py`. No link is followed.
    """
    scheme, _ = _split_uri(uri)
    if scheme != "file":
        return f"{scheme}:{unquote(uri[len(scheme) + 1 :])}" if scheme else uri
    host, path = urlsplit(uri).netloc.lower(), path_of(uri)
    if drive := _DRIVE.match(path):
        path = f"{drive[1].lower()}:{path[drive.end() :]}"
    path = posixpath.normpath("/" + path.lstrip("/"))
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError:
        # Half a character, which no file's name has.
        name = path.encode("utf-8", "surrogatepass")
    return f"file://{'' if host == 'localhost' else host}{quote_from_bytes(name, safe='/:')}"


def _split_uri(uri: str) -> tuple[str, str]:
    """The scheme and the path of an address, as it is encoded there."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "", uri
    if parts.scheme == "file" and uri[5:7] == "//":
        return "file", f"/{uri[7:].partition('/')[2]}"
    return parts.scheme, uri[5:] if parts.scheme == "file" else parts.path


def excluding(path: PurePosixPath, globs: Iterable[str]) -> str:
    """The first of `globs` that excludes the file `path`, relative to its workspace folder; empty if none does.

    A glob without a slash is compared with the file's name (`*.pem`) and, but for those of SECRETS, with the names of
    its folders (`private`). One that ends with a slash is compared with the names of folders only (`.ssh/`), any other
    one with the whole path (`deploy/*.py`) and with that of each folder (`deploy/live`). `*` matches any text, also one
    with slashes, `**/` any folders or none, `{a,b}` `a` or `b`. Case does not matter.
    """
    return excluding_names([str(path)], globs)


def excluding_file(path: str, folders: Iterable[str], globs: Iterable[str]) -> str:
    """The first of `globs` that excludes the file at the absolute `path` under any of its names; else empty."""
    return excluding_names(names_of(path, folders), globs)


def excluding_names(names: Iterable[str], globs: Iterable[str]) -> str:
    """The first of `globs` that excludes a file with these `names`; empty if none does."""
    globs, paths = tuple(globs), {_plain(name).strip("/") for name in names}
    return next(glob for glob in globs if _fit((glob,), paths)) if _fit(globs, paths) else ""


def names_of(path: str, folders: Iterable[str]) -> tuple[str, ...]:
    """Return all names of the file at `path` that a glob is compared with.

    1. The path as it is given, and after each link in it is followed.  2. Each of these relative to each of `folders`,
    links in those followed, too; with the folder's name in front; and from the root. Example: /w/app/a.py, a link to
    /w/private/.env, with the folder /w/app: `a.py`, `app/a.py`, `w/app/a.py`, `w/private/.env`.
    """
    # 1.
    paths = list(dict.fromkeys(one for given in _written(path) for one in _followed(given)))
    bases = dict.fromkeys(one for folder in folders for one in _followed(folder))
    # 2.
    names: dict[str, None] = {}
    for one in paths:
        for base in bases:
            inside = one[len(base.rstrip("/")) + 1 :]
            if one.startswith(base.rstrip("/") + "/"):
                names[inside] = names[f"{posixpath.basename(base)}/{inside}"] = None
        names[one.lstrip("/")] = None
    return tuple(names)


def _written(path: str) -> Iterator[str]:
    """Yield the readings of a path: as it is, up to `?` or `#`, and with slashes for backslashes."""
    yield path
    if cut := re.match(r"[^?#]+(?=[?#])", path):
        yield cut[0]
    if "\\" in path:
        yield path.replace("\\", "/")


def _followed(path: str) -> Iterator[str]:
    """Yield `path`, and what it is after each link in it is followed; the last one has no link."""
    yield posixpath.normpath(path)
    done, left, links = "/", path.split("/")[::-1], 0
    while left:
        part = left.pop()
        if part == "..":
            done = posixpath.dirname(done)
        if part in ("", ".", ".."):
            continue
        at = posixpath.join(done, part)
        target = _target(at) if links < _LINKS else ""
        if not target:
            done = at
            continue
        links += 1
        done = "/" if target.startswith("/") else done
        left += target.split("/")[::-1]
        yield posixpath.normpath("/".join((done, *left[::-1])))


def _target(path: str) -> str:
    """The text of the link at `path`; empty where there is no link."""
    try:
        return os.readlink(path)  # noqa: PTH115 - a Path would drop what it takes for needless in the text
    except (OSError, ValueError):
        return ""


def _fit(globs: tuple[str, ...], paths: Iterable[str]) -> bool:
    """Return whether one of `globs` fits one of `paths`, or the name of a folder or the file in it."""
    names, inside, whole = _compiled(globs)
    for path in paths:
        *folders, last = path.split("/")
        if names.match(last) or whole.match(path) or any(map(inside.match, folders)):
            return True
    return False


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


@lru_cache(maxsize=256)
def _compiled(globs: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return `globs` as patterns of files' names, of folders' names, of paths; kept for the next open document."""
    names, folders, paths = list[str](), list[str](), list[str]()
    for glob in globs:
        for one in _without_braces(_plain(glob).strip()):
            text = re.sub(r"/{2,}", "/", one).removeprefix("./")
            body = text.strip("/")
            if not body:
                continue
            if "/" not in text:
                names.append(body)
                folders += [] if glob in SECRETS else [body]
            elif text == f"{body}/" and "/" not in body:
                folders.append(body)
            else:
                paths += [f"{body}/*"] if text.endswith("/") else [body, f"{body}/*"]
    return tuple(re.compile("|".join(map(_regular, one)) or "(?!)") for one in (names, folders, paths))


def _without_braces(glob: str) -> list[str]:
    """The globs that `glob` expands to: `*.{pem,key}` is `*.pem` and `*.key`."""
    found, done = [glob], list[str]()
    while found and len(found) + len(done) <= _VARIANTS:
        one = found.pop()
        if braces := _BRACES.search(one):
            found += [one[: braces.start()] + part + one[braces.end() :] for part in braces[1].split(",")]
        else:
            done.append(one)
    return done + found


def _regular(glob: str) -> str:
    """The regular expression of `glob`; each star takes as little as it can and gives nothing back, so it is fast."""
    done = piece = ""
    # After the last `]` a `[` begins no set, and looking for its end at each of many would take quadratic time.
    sets = glob.rfind("]") + 1
    for token in (*_TOKEN.findall(glob, 0, sets), *_TOKEN_WITHOUT_SET.findall(glob, sets)):
        if token.startswith("*"):
            done, piece = f"{done}(?>{piece})", "(?:.*?/)??" if token == "**/" else ".*?"
        else:
            # Without the group and the end that `translate` puts around it.
            piece += translate(token)[4:-3]
    return rf"(?s:{done}(?>{piece}\Z))"
