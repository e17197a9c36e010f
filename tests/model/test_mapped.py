"""Matrices that a start keeps and a later one maps: the same numbers, or they are made anew."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from dg_lsp.model.networks import eight, mapped
from dg_lsp.model.networks.gguf_causal import _Making, load_gguf
from dg_lsp.model.networks.gguf_file import read_gguf
from tests.model.gguf_files import VOCABULARY, source, tensors_of, write

CPU = torch.device("cpu")
TOKENS = torch.randint(VOCABULARY, (1, 20), generator=torch.Generator().manual_seed(5))
MATRICES = 15  # of two layers, and the head


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that mixes kinds of blocks, whose matrices are kept although they are small."""
    monkeypatch.setattr(mapped, "_LEAST", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write(tmp_path / "net-q4_k_m.gguf", tensors_of(source("qwen2"), "qwen2"))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The matrices that have been made of their tensors."""
    names, original = list[str](), _Making._matrix

    def counted(self: _Making, parent: str, stored: Any) -> Any:
        names.append(parent)
        return original(self, parent, stored)

    monkeypatch.setattr(_Making, "_matrix", counted)
    return names


def logits(file: Path, bits: int) -> Tensor:
    found: Tensor = load_gguf(read_gguf(file), CPU, torch.bfloat16, bits).trial(TOKENS)
    return found


def kept(file: Path) -> list[Path]:
    return [*(file.parent / "cache").rglob("*.safetensors")]


@pytest.mark.parametrize("in_bytes", [True, False])
@pytest.mark.parametrize("bits", [8, 16])
@torch.inference_mode()
def test_a_later_start_maps_the_same_numbers(
    file: Path, made: list[str], bits: int, in_bytes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_bytes and not eight.multiplies_bytes():
        pytest.skip("this CPU does not multiply bytes")
    monkeypatch.setattr(eight, "multiplies_bytes", lambda: in_bytes)
    first = logits(file, bits)
    assert len(made) == MATRICES
    made.clear()
    assert torch.equal(logits(file, bits), first)
    assert len(made) == 1  # as a check
    assert [path.stat().st_mode & 0o777 for path in kept(file)] == [0o600]


@torch.inference_mode()
def test_matrices_of_a_changed_file_or_in_other_bits_are_made_again_and_replace_the_old_ones(
    file: Path, made: list[str]
) -> None:
    logits(file, 8)
    (old,) = kept(file)
    os.utime(file, (1, 1))
    made.clear()
    logits(file, 8)
    assert len(made) == MATRICES
    (new,) = kept(file)
    assert new != old
    made.clear()
    logits(file, 16)
    assert len(made) == MATRICES
    assert len(kept(file)) == 1 and kept(file) != [new]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def without_orders(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b"order", b"ordr_").replace(b"group", b"grop_"))


def with_other_numbers(path: Path) -> None:
    data = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    data[begin:] = bytes(byte ^ 1 for byte in data[begin:])
    path.write_bytes(data)


def with_another_matrix(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"layers.0.mlp", b"layers.9.mlp"))


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("damage", [cut, emptied, without_orders, with_other_numbers, with_another_matrix])
@torch.inference_mode()
def test_a_damaged_file_of_matrices_is_made_anew(
    file: Path, made: list[str], damage: Callable[[Path], None], bits: int
) -> None:
    first = logits(file, bits)
    (path,) = kept(file)
    before = path.read_bytes()
    damage(path)
    if path.read_bytes() == before:
        pytest.skip("without a kernel for bytes, matrices in eight bits have no order")
    made.clear()
    assert torch.equal(logits(file, bits), first)
    assert len(made) >= MATRICES
    made.clear()
    assert torch.equal(logits(file, bits), first)
    assert len(made) == 1, "what replaces it is used"


@torch.inference_mode()
def test_matrices_are_not_kept_on_a_full_disk(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mapped.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    first = logits(file, 8)
    assert not kept(file)
    assert "too little space" in caplog.text
    assert torch.equal(logits(file, 8), first)


@torch.inference_mode()
def test_a_folder_that_cannot_be_written_only_costs_time(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (file.parent / "cache").write_text("a file")
    assert bool(torch.isfinite(logits(file, 8)).all())
    assert "cannot be written" in caplog.text


@torch.inference_mode()
def test_matrices_that_this_torch_cannot_map_are_not_kept(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "maps_order", lambda: False)
    logits(file, 8)
    assert not eight.multiplies_bytes() or not kept(file)


@torch.inference_mode()
def test_the_file_has_the_format_that_safetensors_reads(file: Path) -> None:
    logits(file, 16)
    (path,) = kept(file)
    with safe_open(path, "pt") as opened:
        assert len(opened.metadata()) == MATRICES
        assert len([*opened.keys()]) == 2 * MATRICES
