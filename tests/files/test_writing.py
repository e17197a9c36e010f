"""Files are written whole, and a text that was there before is in the file or in its copy."""

import errno
import os
import re
import signal
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from dg_lsp.files.writing import (
    ENDING,
    FileError,
    check_free,
    drop,
    hold,
    kept_of,
    let_go,
    make_whole,
    os_error_in,
    put,
    put_back,
    replace_text,
    words_of,
    write_whole,
)


def test_a_file_is_replaced_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in (b"one", b"two"):
        write_whole(path, data)
        assert path.read_bytes() == data and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("at", ["prepare", "fsync", "replace"])
def test_whatever_fails_the_old_text_stays_whole(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fails(*_: object) -> None:
        raise OSError("disk full")

    if at == "fsync":
        monkeypatch.setattr(os, "fsync", fails)
    if at == "replace":
        monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new", fails if at == "prepare" else lambda _: None)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_the_text_is_written_before_it_takes_its_place(tmp_path: Path) -> None:
    path, seen = tmp_path / "file", list[bytes]()
    path.write_bytes(b"old")

    def look(part: Path) -> None:
        seen.extend([part.read_bytes(), path.read_bytes()])

    write_whole(path, b"new", look)
    assert seen == [b"new", b"old"] and path.read_bytes() == b"new"


TEXT = b"one\ntwo\nthree\n" * 400
NEW = b"one\nTWO\nthree\n" * 400
ACL = "system.posix_acl_access"
NOBODY = 0xFFFFFFFF


def acl(*entries: tuple[int, int, int]) -> bytes:
    """An access control list as the system stores it: of owner, user, group, mask, others;
    tag (1, 2, 4, 16, 32), rights, id."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_bytes(TEXT)
    return path


@pytest.fixture(params=["one name", "two names"])
def named(request: pytest.FixtureRequest, file: Path) -> Path:
    """A file that is replaced, or one that is written in place."""
    if request.param == "two names":
        (file.parent / "other.py").hardlink_to(file)
    return file


def rights(path: Path) -> tuple[int, int, int, dict[str, bytes]]:
    found = path.stat()
    return found.st_mode, found.st_uid, found.st_gid, {n: os.getxattr(path, n) for n in os.listxattr(path)}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"other.py"}


def set_acl(path: Path) -> None:
    entries = ((1, 6, NOBODY), (2, 6, 1234), (4, 0, NOBODY), (16, 6, NOBODY), (32, 0, NOBODY))
    try:
        os.setxattr(path, ACL, acl(*entries))
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no lists of access control")


def test_rights_attributes_and_lists_of_access_stay(named: Path) -> None:
    set_acl(named)
    before = rights(named)
    held = hold(kept_of(named), TEXT)
    assert rights(held.kept.copy) == before
    put(held, TEXT, NEW)
    assert rights(named) == before and named.read_bytes() == NEW
    put_back(held, NEW)
    assert rights(named) == before and named.read_bytes() == TEXT and names(named.parent) == {"shop.py"}


def test_a_list_of_access_that_cannot_be_copied_makes_nothing_wider(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_acl(file)
    before = rights(file)

    def fails(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "setxattr", fails)
    held = hold(kept_of(file), TEXT)
    assert stat.S_IMODE(held.kept.copy.stat().st_mode) == 0o600
    put(held, TEXT, NEW)
    assert rights(file) == before and file.read_bytes() == NEW
    drop(held)
    assert names(file.parent) == {"shop.py"}


def test_rights_come_before_the_text(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(0o600)
    written = os.write
    seen = list[int]()

    def write(handle: int, data: bytes) -> int:
        seen.append(stat.S_IMODE(os.fstat(handle).st_mode))
        return written(handle, data)

    monkeypatch.setattr(os, "write", write)
    mask = os.umask(0)
    try:
        drop(hold(kept_of(file), TEXT))
        replace_text(file, TEXT, NEW)
        write_whole(file, TEXT)
    finally:
        os.umask(mask)
    assert {*seen} == {0o600}


def test_what_a_folder_gives_to_new_files_is_not_given_to_a_copy(file: Path) -> None:
    entries = ((1, 7, NOBODY), (2, 7, 1234), (4, 7, NOBODY), (16, 7, NOBODY), (32, 0, NOBODY))
    try:
        os.setxattr(file.parent, "system.posix_acl_default", acl(*entries))
    except OSError:
        pytest.skip("this file system has no lists of access control")
    before = rights(file)
    replace_text(file, TEXT, NEW)
    assert rights(file) == before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_without_space_nothing_is_changed(number: int, named: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", fails)
    with pytest.raises(FileError, match=r"no space .* free some"):
        replace_text(named, TEXT, NEW + NEW)
    assert named.read_bytes() == TEXT and names(named.parent) == {"shop.py"}


@pytest.mark.parametrize("also", [False, True])
def test_a_file_with_two_names_is_put_back_or_its_copy_is_named(
    also: bool, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file.parent / "other.py").hardlink_to(file)
    written, inode, left = os.write, file.stat().st_ino, [1]

    def write(handle: int, data: bytes) -> int:
        if os.fstat(handle).st_ino == inode and (also or left):
            if not left:
                raise OSError(errno.EIO, "the disk is broken")
            left.pop()
            return written(handle, data[:100])
        if os.fstat(handle).st_ino == inode and bytes(data) in NEW:
            raise OSError(errno.EIO, "the disk is broken")
        return written(handle, data)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(FileError, match="disk is broken") as told:
        replace_text(file, TEXT, NEW)
    if also:
        copy = kept_of(file).copy
        assert str(copy) in str(told.value) and copy.read_bytes() == TEXT
    else:
        assert file.read_bytes() == TEXT and names(file.parent) == {"shop.py"}


@pytest.mark.parametrize("what", ["link", "folder", "pipe", "file"])
def test_what_stands_where_the_copy_belongs_is_left_alone(what: str, file: Path, tmp_path: Path) -> None:
    kept, home = kept_of(file), tmp_path / "home"
    if what == "link":
        kept.copy.symlink_to(home)
    elif what == "folder":
        kept.copy.mkdir()
    elif what == "pipe":
        os.mkfifo(kept.copy)
    else:
        kept.copy.write_bytes(b"a stranger's\n")
    with pytest.raises(FileError, match=re.escape(str(kept.copy))):
        hold(kept, TEXT)
    with pytest.raises(FileError, match=re.escape(str(kept.copy))):
        replace_text(file, TEXT, NEW)
    assert os.path.lexists(kept.copy) and not home.exists() and file.read_bytes() == TEXT
    assert what != "file" or kept.copy.read_bytes() == b"a stranger's\n"


def test_all_names_of_a_file_have_one_copy(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "link.py").symlink_to("shop.py")
    (tmp_path / "other.py").hardlink_to(file)
    monkeypatch.chdir(tmp_path)
    found = {kept_of(tmp_path / name).copy for name in ("shop.py", "folder/link.py", "other.py")}
    assert {*found, kept_of(Path("shop.py")).copy} == {kept_of(file).copy}


@pytest.mark.parametrize("name", ["n" * 252 + ".py", "ä" * 126 + ".py", os.fsdecode(b"\xff\xfe.py")])
def test_any_name_can_have_a_copy(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(TEXT)
    held = hold(kept_of(path), TEXT)
    put(held, TEXT, NEW)
    put_back(held, NEW)
    assert path.read_bytes() == TEXT and list(tmp_path.iterdir()) == [path]


def test_another_process_is_told_who_holds_the_copy(file: Path) -> None:
    held = hold(kept_of(file), TEXT)
    code = "import sys; from pathlib import Path; from dg_lsp.files.writing import check_free, kept_of; "
    ask = [sys.executable, "-c", code + "check_free(kept_of(Path(sys.argv[1])))", str(file)]
    told = subprocess.run(ask, capture_output=True, text=True, check=False).stderr
    assert f"another run (process {os.getpid()}) is trying a change of {file}: wait" in told
    os.close(held.handle)
    told = subprocess.run(ask, capture_output=True, text=True, check=False).stderr
    assert "an earlier run was killed" in told and "from before is in the file" in told


def test_what_a_kill_left_is_explained_from_what_is_in_the_file(file: Path) -> None:
    kept = kept_of(file)
    held = hold(kept, TEXT)
    put(held, TEXT, NEW)
    let_go(held)
    with pytest.raises(FileError, match="put it back, or delete it") as told:
        check_free(kept)
    assert "line" in str(told.value) and f"mv -f {kept.copy} {file}" in str(told.value)
    file.write_bytes(NEW + b"# mine\n")
    with pytest.raises(FileError, match="what was saved since") as told:
        check_free(kept)
    assert f"diff {kept.copy} {file}" in str(told.value) and "put it back" not in str(told.value)
    assert kept.copy.read_bytes() == TEXT


def test_a_copy_has_its_name_only_once_it_is_whole(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, settled = kept_of(file), os.fsync

    def sync(handle: int) -> None:
        assert stat.S_ISDIR(os.fstat(handle).st_mode) or not kept.copy.exists()
        settled(handle)

    monkeypatch.setattr(os, "fsync", sync)
    drop(hold(kept, TEXT))


def test_a_copy_without_hard_links_is_never_put_over_another_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", fails)
    held = hold(kept_of(file), TEXT)
    assert held.kept.copy.read_bytes() == TEXT
    drop(held)
    assert names(file.parent) == {"shop.py"}


def test_signals_wait_until_a_file_is_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = os.write

    def write(handle: int, data: bytes) -> int:
        for one in ENDING:
            os.kill(os.getpid(), one)
        return written(handle, data)

    came = list[int]()
    before = {one: signal.signal(one, lambda number, _: came.append(number)) for one in ENDING}
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", write)
            replace_text(file, TEXT, NEW)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert {*came} == {*ENDING} and file.read_bytes() == NEW and names(file.parent) == {"shop.py"}


def test_a_report_goes_where_its_path_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("report")
    with pytest.raises(OSError, match="does not exist"):
        write_whole(tmp_path / "link", b"{}")
    assert not (tmp_path / "report").exists()
    write_whole(tmp_path / "report", b"{}")
    assert stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o666 & ~umask()
    (tmp_path / "report").chmod(0o640)
    write_whole(tmp_path / "link", b"[]")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "report").read_bytes() == b"[]"
    assert stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o640
    read, write = os.pipe()
    write_whole(Path(f"/proc/self/fd/{write}"), b"through")
    assert os.read(read, 100) == b"through"
    os.close(read)
    os.close(write)


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EACCES])
def test_a_report_that_cannot_be_replaced_is_written_to(
    number: int, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "replace", fails)
    write_whole(file, b"new")
    assert file.read_bytes() == b"new" and names(file.parent) == {"shop.py"}


def test_a_file_of_a_library_takes_its_place_when_it_is_complete(file: Path) -> None:
    def half(part: Path) -> None:
        part.write_bytes(b"half")
        raise RuntimeError("I/O error: No space left on device (os error 28)")

    with pytest.raises(RuntimeError) as told:
        make_whole(file, half)
    assert file.read_bytes() == TEXT and names(file.parent) == {"shop.py"}
    found = os_error_in(told.value)
    assert found is not None and "no space on the disk" in words_of(found)
    make_whole(file, lambda part: part.write_bytes(b"whole"))
    assert file.read_bytes() == b"whole" and names(file.parent) == {"shop.py"}


@pytest.mark.parametrize("change", ["link", "folder", "gone", "pipe"])
def test_a_file_that_is_no_file_any_more_is_left_alone(change: str, file: Path, tmp_path: Path) -> None:
    held = hold(kept_of(file), TEXT)
    put(held, TEXT, NEW)
    file.unlink()
    (tmp_path / "else").write_bytes(NEW)
    if change == "link":
        file.symlink_to("else")
    elif change == "folder":
        file.mkdir()
    elif change == "pipe":
        os.mkfifo(file)
    with pytest.raises(FileError):
        put_back(held, NEW)
    assert (tmp_path / "else").read_bytes() == NEW and held.kept.copy.read_bytes() == TEXT
