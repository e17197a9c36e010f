"""Files on disk: written whole, and changed with a copy beside them until the change is certain.

Readers see the old text or the new one, and never a part. Whatever fails or ends the process, the text that was there
before is in the file or in its copy. A new file has owner, rights and attributes of the old one before it has any text.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import shlex
import signal
import stat
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dg_lsp.settings import UsageError

# The signals that end a process and can be caught.
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_COPY = ".{}.dg-lsp-{}"
_ACL = "system.posix_acl_access"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# File systems that cannot reserve space, and those without hard links.
_CANNOT = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EMLINK)
# What a file answers that cannot be replaced and perhaps can be written: one that is a mount, or of a read-only folder.
_FIXED = (errno.EBUSY, errno.EACCES, errno.EPERM, errno.EROFS)
# The record of a lock as the system lays it out: type, whence, start, length, process.
_LOCK = "qqihh" if sys.platform == "darwin" else "hhqqi"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


class FileError(UsageError):
    """A file cannot be changed; the message says what is in it now, and how to go on."""


class FileChanged(FileError):
    """A file holds another text than the one to be replaced; it was left alone."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} has changed meanwhile, so it was left alone; run the command again")


@dataclass(frozen=True, slots=True)
class Kept:
    """A file, with all links followed, and the place beside it for a copy of its text."""

    path: Path
    copy: Path


@dataclass(frozen=True, slots=True)
class Held:
    """A copy that this process has made of `text`, and has open and locked as `handle`."""

    kept: Kept
    text: bytes
    handle: int


def write_whole(
    path: Path, data: bytes, prepare: Callable[[Path], None] = lambda _: None, mode: int = 0o666
) -> None:
    """Replace the file at `path` by one with `data`, or leave it.

    A link is followed, and a pipe or a device is written to. prepare: gets the new file's path before it takes its
    place, and may raise. mode: of a file that is not there yet, without what the process's umask takes away.

    Raises:
        OSError: it cannot be written; why_unwritten says why.
    """
    if path.is_symlink() and not path.exists():
        raise OSError(errno.ELOOP, "a link to a file that does not exist; name another file", str(path))
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.write(data)
        return
    real = Path(os.path.realpath(path))
    try:
        part, handle, _ = _make(real, mode)
        try:
            _pour(handle, data)
            prepare(part)
            part.replace(real)
        finally:
            os.close(handle)
            part.unlink(missing_ok=True)
        _settle(real.parent)
    except OSError as error:
        if error.errno not in _FIXED or not real.exists():
            raise
        with real.open("r+b") as stream:
            _pour(stream.fileno(), data)


def make_whole(path: Path, make: Callable[[Path], object]) -> None:
    """Let `make` write a file, and put it at `path` once it is complete; else leave the old one."""
    part = path.with_name(f".dg-lsp-{secrets.token_hex(8)}{path.suffix}")
    try:
        make(part)
        handle = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _settle(path.parent)


def kept_of(path: Path, what: Literal["before", "partial"] = "before") -> Kept:
    """Return the file at `path`, and where its copy belongs: one place for all names that it has in its folder.

    what: the text from before a change that is tried, or from before all partial ones that stay for now.
    """
    real = Path(os.path.realpath(path))
    name = real.name
    with suppress(OSError):
        found = real.stat()
        if found.st_nlink > 1 and real.is_file():
            name = min(entry.name for entry in os.scandir(real.parent) if entry.inode() == found.st_ino)
    copy = _COPY.format(name, what)
    most = 255
    with suppress(OSError, ValueError):
        most = os.pathconf(real.parent, "PC_NAME_MAX")
    if len(os.fsencode(copy)) > most:
        copy = _COPY.format(hashlib.sha256(os.fsencode(name)).hexdigest()[:32], what)
    return Kept(real, real.with_name(copy))


def check_free(kept: Kept) -> None:
    """Raise FileError if a run is changing the file, or was killed while it did, or something else is in the way."""
    try:
        found = kept.copy.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(why_unwritten(kept.path, error)) from error
    if not stat.S_ISREG(found.st_mode):
        what = {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link"}.get(stat.S_IFMT(found.st_mode), "no file")
        raise FileError(
            f"{kept.copy} is {what} where the copy of {kept.path.name} belongs, so {kept.path} was left alone; "
            "move it away, and run the command again"
        )
    raise FileError(_why_there(kept))


def hold(kept: Kept, text: bytes) -> Held:
    """Write a copy of `text`, which is that of `kept.path`, and keep it locked until `drop` or `put_back`.

    The copy is complete before it has its name, and it is never readable for more people than the file.

    Raises:
        FileError: there is no space for it, or something is there already.
    """
    check_free(kept)
    try:
        part, handle, _ = _make(kept.path, 0o600)
    except OSError as error:
        raise FileError(why_unwritten(kept.copy, error)) from error
    try:
        _pour(handle, text)
        if _read(handle) != text:
            raise OSError(errno.EIO, "the disk returns another text than was written", str(kept.copy))
        with suppress(OSError):  # some network file systems have no locks
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _name(part, kept.copy)
    except BaseException as error:
        os.close(handle)
        if isinstance(error, FileExistsError):
            check_free(kept)
        if isinstance(error, OSError):
            raise FileError(why_unwritten(kept.copy, error)) from error
        raise
    finally:
        part.unlink(missing_ok=True)
    _settle(kept.copy.parent)
    return Held(kept, text, handle)


def drop(held: Held) -> None:
    """Remove the copy, unless another file has its name by now, and unlock it."""
    if _is_there(held):
        with suppress(OSError):
            held.kept.copy.unlink()
    os.close(held.handle)


def let_go(held: Held) -> None:
    """Unlock the copy and leave it where it is."""
    os.close(held.handle)


def replace_text(path: Path, old: bytes, new: bytes) -> None:
    """Replace the text `old` of the file at `path` by `new`; owner, rights, attributes and links stay.

    Raises:
        FileError: it holds another text, a run is trying a change of it, or it cannot be written.
    """
    kept = kept_of(path)
    check_free(kept)
    with undisturbed():
        if _swap(kept.path, old, new):
            return
        held = hold(kept, old)
        put(held, old, new)
        drop(held)


def put(held: Held, old: bytes, new: bytes) -> None:
    """Replace the text `old` of the file whose copy is `held` by `new`.

    Raises:
        FileError: it holds another text, or it cannot be written. The copy is gone then if the file holds its text.
    """
    path = held.kept.path
    try:
        with undisturbed():
            if not _swap(path, old, new):
                _write_over(held, old, new)
            # An equal time tells the next run, should this one be killed, that nobody has saved the file since.
            with suppress(OSError):
                found = path.stat()
                os.utime(held.handle, ns=(found.st_atime_ns, found.st_mtime_ns))
    except BaseException as error:
        # A text that somebody else has written over before this wrote anything is not missed.
        if read_now(path) == held.text or (isinstance(error, FileChanged) and old == held.text):
            drop(held)
        else:
            let_go(held)
        raise


def put_back(held: Held, now: bytes) -> None:
    """Replace the text `now` of the file by that of its copy, which is gone then.

    Where it can, the copy itself takes the file's place, which takes no space on the disk.

    Raises:
        FileError: it holds another text, or it cannot be written; the copy stays.
    """
    path, copy = held.kept.path, held.kept.copy
    try:
        with undisturbed():
            if path.lstat().st_nlink == 1 and _is_there(held) and _dress(held.handle, path):
                _check_unchanged(path, now)
                copy.replace(path)
                # Build tools take an older file for an unchanged one.
                os.utime(held.handle)
                _settle(path.parent)
            else:
                _write_over(held, now, held.text)
    except BaseException as error:
        let_go(held)
        if isinstance(error, OSError):
            raise FileError(why_unwritten(path, error)) from error
        raise
    drop(held)


def read_now(path: Path) -> bytes | None:
    """Return the text of the file at `path`; None if there is no file, or no regular one, or it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _read(handle) if stat.S_ISREG(os.fstat(handle).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(handle)


def lines_apart(one: bytes, other: bytes) -> tuple[int, int]:
    """Return the first and the last line of `other`, from 1, that `one` does not have in their places."""
    a, b = one.splitlines(keepends=True), other.splitlines(keepends=True)
    short = min(len(a), len(b))
    first = next((n for n in range(short) if a[n] != b[n]), short)
    after = next((n for n in range(short - first) if a[-1 - n] != b[-1 - n]), short - first)
    return first + 1, max(len(b) - after, first + 1)


def why_unwritten(path: Path, error: OSError) -> str:
    """Return why the file at `path` could not be written, as a sentence that says how to go on."""
    if error.errno in _NO_SPACE:
        return f"there is no space to write {path}: free some, and run the command again; nothing was changed"
    if error.errno == errno.EROFS:
        return (
            f"{path} is on a read-only file system, so nothing was changed; mount it for writing, or copy it"
        )
    why = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{path} cannot be written: {why}; check its permissions and attributes, and its folder's"
    return f"{path} cannot be written: {why}"


def words_of(error: OSError) -> str:
    """Return `error` as a sentence, without the number that Python puts first."""
    where = f" for {error.filename}" if error.filename else ""
    if error.errno in _NO_SPACE:
        return f"there is no space on the disk{where}: free some, and run the command again"
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def os_error_in(error: BaseException) -> OSError | None:
    """Return the error of the operating system that `error`, of a library in another language, tells in its words."""
    if isinstance(error, OSError):
        return error
    found = _OS_ERROR.search(str(error))
    return OSError(int(found[1]), os.strerror(int(found[1]))) if found else None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep signals that would end this process until the block is done; then they do what they would have done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = list[int]()
    before: dict[signal.Signals, Any] = {}
    try:
        for one in ENDING:
            if signal.getsignal(one) is not None:  # one that Python did not set could not be set again
                before[one] = signal.signal(one, lambda number, _: came.append(number))
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        for number in came:
            os.kill(os.getpid(), number)


def _make(path: Path, mode: int) -> tuple[Path, int, bool]:
    """Make an empty file beside `path`; return its path, its handle, and whether all that belongs to `path` is on it.

    mode: of a file that is to be new.
    """
    part = path.with_name(f".dg-lsp-{secrets.token_hex(8)}.tmp")
    exists = path.exists()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(part, flags, 0o600 if exists else mode)
    try:
        return part, handle, _dress(handle, path) if exists else True
    except BaseException:
        os.close(handle)
        part.unlink(missing_ok=True)
        raise


def _dress(handle: int, path: Path) -> bool:
    """Give the file `handle` owner, group, attributes and rights of the one at `path`; return whether it has them all.

    Where it cannot have them all it is its owner's alone: narrower than the other one, and never wider.
    """
    found, exact = path.stat(), True
    mine = os.fstat(handle)
    if (mine.st_uid, mine.st_gid) != (found.st_uid, found.st_gid):
        try:
            os.fchown(handle, found.st_uid, found.st_gid)
        except OSError:
            exact = False
    exact = _give_attributes(handle, path) and exact
    os.fchmod(handle, stat.S_IMODE(found.st_mode) & (0o7777 if exact else 0o700))
    return exact


def _give_attributes(handle: int, path: Path) -> bool:
    """Give the file `handle` the extended attributes of the one at `path`; return whether it has all that count.

    Python knows them on Linux only.
    """
    if sys.platform != "linux":
        return True
    names, exact = list[str](), True
    with suppress(OSError):
        names = os.listxattr(path)
    for name in names:
        try:
            os.setxattr(handle, name, os.getxattr(path, name))
        except OSError:
            # What the system itself gives a file need not be given again.
            exact = exact and name != _ACL and not name.startswith("user.")
    if _ACL not in names:
        # The folder's default one.
        with suppress(OSError):
            os.removexattr(handle, _ACL)
    return exact


def _pour(handle: int, data: bytes) -> None:
    """Write `data` to the file `handle` from its beginning, after the space for it is reserved."""
    _reserve(handle, len(data))
    os.lseek(handle, 0, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.ftruncate(handle, len(data))
    os.fsync(handle)


def _reserve(handle: int, size: int) -> None:
    """Reserve `size` bytes on the disk; where there is no space, the file has its old size again."""
    if not size or not hasattr(os, "posix_fallocate"):
        return
    old = os.fstat(handle).st_size
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        os.ftruncate(handle, old)
        if error.errno not in _CANNOT:
            raise


def _read(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    parts = list[bytes]()
    while part := os.read(handle, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _name(part: Path, copy: Path) -> None:
    """Give the file `part` the name `copy`, which must be free."""
    try:
        os.link(part, copy, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        if os.path.lexists(copy):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(copy)) from error
        part.rename(copy)


def _swap(path: Path, old: bytes, new: bytes) -> bool:
    """Put a new file with the text `new` in the place of the one at `path` with `old`.

    Return False, and change nothing, if it would lose names, owner, rights or attributes.
    """
    try:
        if path.lstat().st_nlink > 1:
            return False
        part, handle, exact = _make(path, 0o600)
        try:
            if not exact:
                return False
            _pour(handle, new)
            _check_unchanged(path, old)
            part.replace(path)
        finally:
            os.close(handle)
            part.unlink(missing_ok=True)
        _settle(path.parent)
        return True
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise FileError(why_unwritten(path, error)) from error


def _write_over(held: Held, old: bytes, new: bytes) -> None:
    """Write `new` over the text `old` of the file whose copy is `held`, and compare; after an error, write `old`."""
    path = held.kept.path
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise FileError(why_unwritten(path, error)) from error
    try:
        if _read(handle) != old:
            raise FileChanged(path)
        try:
            _pour(handle, new)
            if _read(handle) != new:
                raise OSError(errno.EIO, "the disk returns another text than was written", str(path))
        except OSError as error:
            _pour(handle, old)
            raise FileError(why_unwritten(path, error)) from error
    except OSError as error:
        raise FileError(
            f"{path} could neither be written nor be put back ({error.strerror or error}); its text from before is in "
            f"{held.kept.copy}: copy it to another place, and from there back"
        ) from error
    finally:
        os.close(handle)


def _is_there(held: Held) -> bool:
    """Return whether the copy still has its name."""
    try:
        return os.path.samestat(held.kept.copy.lstat(), os.fstat(held.handle))
    except OSError:
        return False


def _check_unchanged(path: Path, old: bytes) -> None:
    if read_now(path) != old:
        raise FileChanged(path)


def _settle(folder: Path) -> None:
    """Have the names in `folder` written to the disk, where that is possible."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _why_there(kept: Kept) -> str:
    """Return why there is a copy already, and how to go on, as a sentence."""
    path, copy, text, now = kept.path, kept.copy, read_now(kept.copy), read_now(kept.path)
    if holder := _holder(copy):
        return f"another run ({holder}) is trying a change of {path}: wait until it has ended"
    begun = f"an earlier run was killed while it tried a change of {path}"
    remove = f"rm {shlex.quote(str(copy))}"
    if text is None or now is None:
        return f"{begun}; the text from before is in {copy}: put it back, or delete it ({remove})"
    if text == now:
        return f"{begun}, and the text from before is in the file: delete its copy ({remove})"
    first, last = lines_apart(text, now)
    where = f"line {first}" if first == last else f"lines {first} to {last}"
    with suppress(OSError):
        if path.stat().st_mtime_ns == copy.stat().st_mtime_ns:
            back = f"mv -f {shlex.quote(str(copy))} {shlex.quote(str(path))}"
            return (
                f"{begun}: the untested fill is in {where}, and the text from before is in {copy}: put it back, or "
                f"delete it ({back}, or {remove})"
            )
    return (
        f"{begun}; {where} may hold an untested fill, and what was saved since. The text from before is in {copy}: "
        f"compare both (diff {shlex.quote(str(copy))} {shlex.quote(str(path))}), and then delete it ({remove})"
    )


def _holder(copy: Path) -> str:
    """Return the process that has the file `copy` locked, in words; empty if none has."""
    with suppress(OSError, struct.error):
        handle = os.open(copy, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            values = (0, 0, 0, fcntl.F_WRLCK, 0) if _LOCK[0] == "q" else (fcntl.F_WRLCK, 0, 0, 0, 0)
            answer = struct.unpack(_LOCK, fcntl.fcntl(handle, fcntl.F_GETLK, struct.pack(_LOCK, *values)))
        finally:
            os.close(handle)
        kind, process = (answer[3], answer[2]) if _LOCK[0] == "q" else (answer[0], answer[4])
        if kind != fcntl.F_UNLCK:
            return f"process {process}" if process > 0 else "of another machine"
    return ""
