"""A repository of git on the disk: where it is, the files that it tracks, and whose patterns ignore files.

Only reads files, bounded and as data: what a repository's configuration names is never started.
"""

import os
import re
import stat
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path

from dg_lsp.budget import check

SECONDS = 2.0  # of processor time, for the rules of one folder
LONGEST = 1 << 13  # bytes of a line of a configuration or of patterns: a longer one would hold all threads up
_PATTERNS, _CONFIG, _INDEX = 1 << 20, 1 << 20, 1 << 26  # the most bytes of a file of each kind
_FILES = 64  # files that a configuration includes, and files of patterns that it names
_TRACKED = 200_000  # files in an index: a larger set would hold all threads up
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)"\s*)?\]')
_ENTRY = re.compile(r"([A-Za-z][\w-]*)\s*(?:=\s*(.*))?", re.DOTALL)
# The parts of a value: a text in quotes, an escape, a comment, or any other character.
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"|\\(.)|([#;].*)|([^"\\])', re.DOTALL)
_YES = ("true", "yes", "on", "1")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


class UnknownRepository(Exception):
    """A repository, or a rule about it, cannot be read."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository. root: its folder. data: its `.git`. common: that of the repository which a worktree belongs to."""

    root: Path
    data: Path
    common: Path


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that `folder` is in; None if there is none.

    Raises:
        UnknownRepository: its `.git` cannot be read.
    """
    for root in (folder, *folder.parents):
        data = root / ".git"
        if data.is_file():
            named = read_bounded(data, _CONFIG) or b""
            data = root / os.fsdecode(named.removeprefix(b"gitdir:").strip())
        elif not data.exists():
            continue
        if not (data / "HEAD").exists():
            raise UnknownRepository(f"{root} has a .git that is no repository")
        shared = read_bounded(data / "commondir", _CONFIG)
        return Repository(root, data, data / os.fsdecode(shared.strip()) if shared else data)
    return None


def read_bounded(path: Path, most: int = _PATTERNS) -> bytes | None:
    """Return the content of the file at `path`; None if there is none.

    Raises:
        UnknownRepository: it cannot be read, is no regular file, or has more than `most` bytes.
    """
    try:
        # Without waiting: the name may be that of a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_size > most:
                raise UnknownRepository(f"{path} is no file of at most {most:,} bytes")
            return file.read(most)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UnknownRepository(f"{path} cannot be read") from error


def own_exclude(repository: Repository) -> Path:
    """Return the file of patterns that belongs to a repository and is not among its files."""
    return repository.common / "info" / "exclude"


def ignores_case(repository: Repository) -> bool:
    """Return whether the files of a repository are on a disk that does not tell `A` from `a`."""
    return dict(_settings(repository.common / "config")).get("core.ignorecase", "").lower() in _YES


def excludes_files(repository: Repository) -> Iterator[Path]:
    """Yield the files of patterns that hold in the repository by a configuration."""
    user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git"
    named = dict[Path, None]()
    for config in (Path("/etc/gitconfig"), user / "config", Path.home() / ".gitconfig"):
        named |= dict.fromkeys(_excludes_files(config, repository))
    yield from named or [user / "ignore"]
    # Beside the user's, and not in their place: a repository takes no rule of the user's away.
    theirs = dict.fromkeys(_excludes_files(repository.common / "config", repository))
    if len(named) + len(theirs) > _FILES:
        raise UnknownRepository(f"{repository.root} has too many files of patterns")
    yield from theirs


def tracked_paths(repository: Repository) -> Set[bytes]:
    """Return the paths of the files in the index, from the root on; without those that a sparse checkout leaves out.

    Raises:
        UnknownRepository: the index has a form that is not known, or too many files.
    """
    index = repository.data / "index"
    try:
        found = index.stat()
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise UnknownRepository(f"{index} cannot be read") from error
    entries = dict(_settings(repository.common / "config"))
    size = 32 if entries.get("extensions.objectformat") == "sha256" else 20
    return _tracked(index, size, (found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=4)
def _tracked(index: Path, size: int, _stamp: tuple[int, ...]) -> Set[bytes]:
    """Return the paths in the file `index`, with hashes of `size` bytes, and in the one that it is a change of."""
    data, paths = read_bounded(index, _INDEX) or b"", set[bytes]()
    end = _add_entries(data, size, paths)
    if data[end : end + 4] == b"link":
        base = index.with_name(f"sharedindex.{data[end + 8 : end + 8 + size].hex()}")
        _add_entries(read_bounded(base, _INDEX) or b"", size, paths)
    return paths


def _add_entries(data: bytes, size: int, paths: set[bytes]) -> int:
    """Add the paths in an index to `paths` and return where its entries end."""
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if data[:4] not in (b"DIRC", b"") or version not in (0, 2, 3, 4):
        raise UnknownRepository("an index of git has a form that is not known")
    name, at = b"", 12
    for _ in range(count):
        check()
        flags = int.from_bytes(data[at + 40 + size : at + 42 + size], "big")
        begin, more = at + 42 + size, 0
        if flags & 0x4000:
            more, begin = int.from_bytes(data[begin : begin + 2], "big"), begin + 2
        cut = 0
        if version == 4:
            cut, begin = _number(data, begin)
        end = data.find(b"\0", begin)
        if end < 0 or end - begin + len(name) > LONGEST:
            raise UnknownRepository("an index of git is damaged")
        name = (name[: len(name) - cut] if version == 4 else b"") + data[begin:end]
        # A sparse checkout leaves the file out.
        if name and not more & 0x4000:
            paths.add(name)
            if len(paths) > _TRACKED:
                raise UnknownRepository("an index of git has too many files")
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
    return at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of variable length at `at`, and the place after it."""
    if data.find(b"\0", at) < 0:
        raise UnknownRepository("an index of git is damaged")
    value = data[at] & 0x7F
    while data[at] & 0x80 and value <= LONGEST:
        at += 1
        value = (value + 1 << 7) | (data[at] & 0x7F)
    return value, at + 1


def _excludes_files(config: Path, repository: Repository) -> Iterator[Path]:
    """Yield the files that `core.excludesFile` names in the file `config`."""
    for name, value in _settings(config):
        if name == "core.excludesfile" and value:
            yield repository.root / _expanded(value)


def _settings(config: Path, read: set[Path] | None = None) -> Iterator[tuple[str, str]]:
    """Yield names and values in the file `config` and in those that it includes, on whatever condition, each once.

    read: the files that include it, and those before them.
    """
    read = set() if read is None else read
    if config in read:
        return
    read.add(config)
    if len(read) > _FILES:
        raise UnknownRepository(f"{config} is one of too many files that include one another")
    section = ""
    for line in _lines(config):
        check()
        begin = 0
        if found := _SECTION.match(line):
            section, begin = found[1].lower() + (f".{found[2]}" if found[2] is not None else ""), found.end()
        words = line[begin:].strip()
        if not words or words[0] in "#;":
            continue
        entry = _ENTRY.fullmatch(words)
        if entry is None or not section:
            raise UnknownRepository(f"{config} cannot be read")
        name, value = f"{section}.{entry[1].lower()}", _value(entry[2] or "")
        yield name, value
        if name.split(".", maxsplit=1)[0] in ("include", "includeif") and name.endswith(".path"):
            yield from _settings(config.parent / _expanded(value), read)


def _lines(config: Path) -> Iterator[str]:
    """Yield the lines of a configuration; one that ends in a backslash which is not escaped continues on the next."""
    data, line = (read_bounded(config, _CONFIG) or b"").removeprefix(b"\xef\xbb\xbf"), ""
    for part in BytesIO(data):
        line += part.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
        if len(line) > LONGEST:
            raise UnknownRepository(f"{config} has a line of more than {LONGEST:,} bytes")
        if (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1]
            continue
        yield line
        line = ""
    yield line


def _value(text: str) -> str:
    """Return the value in `text`, without quotes, escapes and a comment."""
    done = ""
    for quoted, escaped, comment, plain in _PIECE.findall(text):
        if comment:
            break
        if quoted:
            done += re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), quoted)
        else:
            done += _ESCAPES.get(escaped, escaped) + plain
    return done.strip()


def _expanded(path: str) -> Path:
    with suppress(RuntimeError):
        return Path(path).expanduser()
    return Path(path)
