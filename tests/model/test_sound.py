"""Whatever the files of a checkpoint hold gives one sentence with the file and the fix, in bounded time and memory."""

import json
import os
import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.checkpoints import CheckpointError, digest_of, measured, read_json
from dg_lsp.cli.doctor import check_checkpoint
from dg_lsp.model.checkpoint import inspect, load_checkpoint
from dg_lsp.model.networks.gguf_file import architecture_of, read_gguf
from dg_lsp.settings import Settings
from tests.model.gguf_files import source, tensors_of, write
from tests.model.tiny import save_checkpoint

# Changed headers that are tried; the rest of them once, by hand: DG_LSP_TEST_HEADERS=20000.
HEADERS = int(os.environ.get("DG_LSP_TEST_HEADERS", "150"))
DEEP = 100_000
TEXT, LIST, U32 = 8, 9, 4


def text(words: str) -> bytes:
    data = words.encode()
    return struct.pack("<Q", len(data)) + data


def entry(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def header(entries: list[bytes], tensors: list[bytes] = [], counts: tuple[int, int] | None = None) -> bytes:  # noqa: B006
    count, entries_count = counts or (len(tensors), len(entries))
    return b"GGUF" + struct.pack("<IQQ", 3, count, entries_count) + b"".join(entries) + b"".join(tensors)


def tensor(name: str, shape: tuple[int, ...], kind: int = 0, at: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, at)


ALIGNED = "general.alignment"
HEADERS_REFUSED = {
    "alignment 0": header([entry(ALIGNED, U32, struct.pack("<I", 0))]),
    "alignment is huge": header([entry(ALIGNED, 10, struct.pack("<Q", 2**63))]),
    "alignment is negative": header([entry(ALIGNED, 5, struct.pack("<i", -32))]),
    "alignment is no number": header([entry(ALIGNED, 6, struct.pack("<f", float("nan")))]),
    "alignment is a switch": header([entry(ALIGNED, 7, b"\1")]),
    "alignment is a text": header([entry(ALIGNED, TEXT, text("32"))]),
    "alignment is a list": header([entry(ALIGNED, LIST, struct.pack("<IQI", U32, 1, 32))]),
    "lists in lists": header([entry("a", LIST, struct.pack("<IQ", LIST, 1) * 3_000)]),
    "2^63 tensors": header([], counts=(2**63, 0)),
    "2^63 entries": header([], counts=(0, 2**63)),
    "a list of 2^62 numbers": header([entry("a", LIST, struct.pack("<IQ", U32, 2**62))]),
    "a list of 2^62 texts": header([entry("a", LIST, struct.pack("<IQ", TEXT, 2**62))]),
    "a text of 2^60 bytes": header([entry("a", TEXT, struct.pack("<Q", 2**60))]),
    "a name of 2^64-1 bytes": header([struct.pack("<Q", 2**64 - 1)]),
    "a name that is no UTF-8": header([struct.pack("<Q", 2) + b"\xff\xfe"]),
    "an unknown type": header([entry("a", 77, b"")]),
    "an entry twice": header([entry("a", U32, struct.pack("<I", 1))] * 2),
    "a tensor twice": header([], [tensor("a", (1,)), tensor("a", (1,), at=32)]) + bytes(100),
    "a tensor behind the end": header([], [tensor("a", (32,), at=2**63)]),
    "a shape whose product is too large": header([], [tensor("a", (2**62, 2**62))]),
    "a shape of zeros": header([], [tensor("a", (0, 4))]),
    "no dimension": header([], [tensor("a", ())]),
    "many dimensions": header([], [tensor("a", (1,) * 9)]),
    "an unknown kind of blocks": header([], [tensor("a", (1,), kind=250)]),
    "tensors over each other": header([], [tensor("a", (8,)), tensor("b", (8,), at=16)]) + bytes(200),
    "nothing": b"",
    "another format": b"PK\3\4" + bytes(100),
    "another version": b"GGUF" + struct.pack("<IQQ", 99, 0, 0),
}


def refused(path: Path) -> str:
    """Return why everything that reads the checkpoint in `path` refuses it."""
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(str(path), "cpu")
    why = str(caught.value)
    with pytest.raises(CheckpointError):
        inspect(str(path))
    assert str(path) in why and len(why) < 700 and "\n" not in why
    assert any(words in why for words in ("fetch", "name ", "pack it again")), why
    found = check_checkpoint(Settings(checkpoint=str(path)))
    assert found.state == "fail" and found.fix
    digest_of(str(path))
    return why


@pytest.mark.parametrize("name", HEADERS_REFUSED)
def test_a_header_that_cannot_be_is_refused_with_little_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "net.gguf"
    path.write_bytes(HEADERS_REFUSED[name])
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=r"net\.gguf"):
            read_gguf(path)
        assert architecture_of(path) == ""
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()
    refused(path)


def test_a_large_file_does_not_make_a_large_header(tmp_path: Path) -> None:
    path = tmp_path / "net.gguf"
    with path.open("wb") as file:
        file.write(header([entry("a", LIST, struct.pack("<IQ", TEXT, 2**32))]))
        file.truncate(1 << 40)
    assert "4294967296 values" in refused(path)


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(
        tmp_path_factory.mktemp("gguf") / "net.gguf", tensors_of(source("qwen2"), "qwen2")
    ).read_bytes()


def changed(data: bytes, end: int) -> Iterator[bytes]:
    """Yield `data` with one byte or eight of its first `end` ones changed, or cut short there."""
    chance = random.Random(54)
    for number in range(HEADERS):
        at = chance.randrange(end)
        if number % 3 == 0:
            yield data[:at]
            continue
        piece = bytes([data[at] ^ (1 << chance.randrange(8))])
        if number % 3 == 1:
            piece = chance.choice([bytes(8), b"\xff" * 8, b"\x7f" * 8, b"\0\0\0\0\1\0\0\0"])
        yield data[:at] + piece + data[at + len(piece) :]


def test_a_changed_header_is_read_or_refused(gguf: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.gguf"
    path.write_bytes(gguf)
    end, outcomes = min(stored.at for stored in read_gguf(path).tensors.values()), [0, 0]
    for data in changed(gguf, end):
        path.write_bytes(data)
        try:
            inspect(str(path))
            outcomes[0] += 1
        except CheckpointError as error:
            assert "net.gguf" in str(error) and len(str(error)) < 700
            outcomes[1] += 1
    assert all(outcomes)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved")
    save_checkpoint(path)
    (path / "manifest.json").unlink()
    return path


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    for file in saved.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def put(name: str, value: object) -> Callable[[Path], object]:
    return lambda path: (path / name).write_text(value if isinstance(value, str) else json.dumps(value))


def with_entry(name: str, **more: Any) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        known = json.loads((path / name).read_text()) if (path / name).exists() else {}
        (path / name).write_text(json.dumps(known | more))

    return change


def with_text_entry(**more: Any) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        known = json.loads((path / "config.json").read_text())
        known["text_config"] |= more
        (path / "config.json").write_text(json.dumps(known))

    return change


def pipe(name: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        (path / name).unlink(missing_ok=True)
        os.mkfifo(path / name)

    return change


def link(name: str, to: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        (path / name).unlink(missing_ok=True)
        (path / name).symlink_to(to)

    return change


def directory(name: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        (path / name).unlink(missing_ok=True)
        (path / name).mkdir()

    return change


def tensors_header(said: bytes, length: int | None = None) -> Callable[[Path], object]:
    data = struct.pack("<Q", len(said) if length is None else length) + said
    return lambda path: (path / "model.safetensors").write_bytes(data)


NESTED = ("[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP)
DAMAGES: dict[str, Callable[[Path], object]] = {
    **{
        f"{name} nested {number}": put(name, nested)
        for name in ("config.json", "tokenizer.json", "dg_lsp.json", "judge.json", "manifest.json")
        for number, nested in enumerate(NESTED)
    },
    **{
        f"{name} holds {said}": put(name, said)
        for name in ("config.json", "tokenizer.json", "dg_lsp.json", "judge.json", "manifest.json")
        for said in ("[]", "5", "{", "", "\0")
    },
    **{
        f"{name} holds {said}": put(name, said)
        for name in ("config.json", "tokenizer.json", "judge.json", "manifest.json")
        for said in ("{}", '{"model_type": [], "model": 5, "files": 5}', '{"files": {"config.json": 5}}')
    },
    **{
        f"{name} is a {kind.__name__}": kind(name)
        for name in ("config.json", "tokenizer.json", "dg_lsp.json", "judge.json", "model.safetensors")
        for kind in (pipe, directory)
    },
    **{
        f"{name} leads to {to}": link(name, to)
        for name in ("config.json", "tokenizer.json", "model.safetensors", "manifest.json")
        for to in ("/dev/zero", "nowhere", "manifest.json" if name != "manifest.json" else "config.json")
    },
    "a manifest names a file elsewhere": put(
        "manifest.json", {"files": {"../../etc/passwd": {"bytes": 1, "sha256": ""}}}
    ),
    "a manifest names a file by its whole path": put(
        "manifest.json", {"files": {"/dev/zero": {"bytes": 0, "sha256": ""}}}
    ),
    "an index leads elsewhere": put(
        "model.safetensors.index.json", {"weight_map": {"a": "../../etc/passwd"}}
    ),
    "an index has a whole path": put("model.safetensors.index.json", {"weight_map": {"a": "/etc/passwd"}}),
    "an index of nothing": put("model.safetensors.index.json", {"weight_map": 5}),
    "an adapter": put("adapter_config.json", {"base_model_name_or_path": "../other"}),
    "canvas lengths are no list": with_entry("dg_lsp.json", canvas_lengths=64),
    "a canvas length is huge": with_entry("dg_lsp.json", canvas_lengths=[10**9]),
    "no canvas length": with_entry("dg_lsp.json", canvas_lengths=[]),
    "a prefix without an end": with_entry("dg_lsp.json", max_prefix_tokens=2**70),
    "a prefix of a text": with_entry("dg_lsp.json", max_prefix_tokens="512"),
    "a style that is a list": with_entry("dg_lsp.json", prompt=["raw"]),
    "languages that are numbers": with_entry("dg_lsp.json", languages=[1]),
    "packed in words": with_entry("dg_lsp.json", packed={"bits": "four", "order": []}),
    "packed as a list": with_entry("dg_lsp.json", packed=[1]),
    "a judge without a situation": put("judge.json", {"line": {"one": 1.0}}),
    "a judge of texts": put("judge.json", {s: {"one": "1"} for s in ("line", "rest", "inside")}),
    "a judge of infinities": put("judge.json", '{"line": {"a": Infinity}, "rest": {}, "inside": {}}'),
    "a billion layers": with_text_entry(num_hidden_layers=10**9),
    "a billion layers in the vision tower": with_entry(
        "config.json", vision_config={"num_hidden_layers": 10**9}
    ),
    "a huge vocabulary": with_text_entry(vocab_size=10**9),
    "a huge width": with_text_entry(hidden_size=10**8),
    "a width of a text": with_text_entry(hidden_size="32"),
    "a width of nothing": with_text_entry(hidden_size=None),
    "no head": with_text_entry(num_attention_heads=0),
    "more experts than numbers": with_text_entry(num_experts=2**40),
    "kinds of layers are numbers": with_text_entry(layer_types=5),
    "an infinite number": put("config.json", '{"model_type": "diffusion_gemma", "canvas_length": Infinity}'),
    "a text config of texts": with_entry("config.json", text_config="a"),
    "a foreign quantisation": with_entry("config.json", quantization_config=5),
    "no header": tensors_header(b""),
    "a header of 2^60 bytes": tensors_header(b"{}", 2**60),
    "a nested header": tensors_header(b"[" * DEEP + b"]" * DEEP),
    "a header of a list": tensors_header(b"[1]"),
    "offsets behind the end": tensors_header(b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,999999]}}'),
    "negative offsets": tensors_header(b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[-16,0]}}'),
    "a shape that is too large": tensors_header(
        b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}'
    ),
    "a pickle": lambda path: (path / "model.safetensors").write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR."),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_folder_that_cannot_be_is_refused(name: str, folder: Path) -> None:
    inspect(str(folder))
    DAMAGES[name](folder)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(str(folder), "cpu")
    why = str(caught.value)
    assert str(folder) in why and len(why) < 900, why
    assert "fetch" in why or "name " in why or "pack it again" in why, why
    found = check_checkpoint(Settings(checkpoint=str(folder)))
    assert found.state == "fail" and found.fix, found


def test_a_sound_folder_is_inspected_without_a_word(folder: Path) -> None:
    inspect(str(folder))
    assert check_checkpoint(Settings(checkpoint=str(folder))).state == "ok"


def test_links_to_files_are_files_as_the_hub_keeps_them(saved: Path, tmp_path: Path) -> None:
    for file in saved.iterdir():
        (tmp_path / file.name).symlink_to(file)
    inspect(str(tmp_path))


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_checkpoint("./" + "a" * 5_000, "cpu")


def test_a_file_without_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="no regular file"):
        read_json(tmp_path / "config.json")


@pytest.mark.parametrize("said", ["Infinity", "-1", "NaN", '"a"', "[" * DEEP, "null"])
def test_a_time_that_cannot_be_counts_as_not_measured(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "dg-lsp" / "small"
    folder.mkdir(parents=True)
    for name in ("seconds", "memory"):
        good = {"seconds": "1", "memory": "1"} | {name: said}
        (folder / "fetched.json").write_text("{" + ", ".join(f'"{n}": {v}' for n, v in good.items()) + "}")
        assert measured("small") is None
