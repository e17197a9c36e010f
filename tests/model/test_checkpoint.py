"""Loading is safe: what is missing, cut short, foreign or damaged is refused with a message that says the mend."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dg_lsp.checkpoints import CheckpointError
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.networks.loading import number_type
from tests.model.tiny import save_checkpoint, write_manifest


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved")
    save_checkpoint(path)
    return path


@pytest.fixture
def broken(saved: Path, tmp_path: Path) -> Path:
    for file in saved.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_a_sound_checkpoint_loads(saved: Path) -> None:
    said: list[str] = []
    model = load_checkpoint(str(saved), "cpu", said.append)
    assert model.canvas_lengths == (64, 128)
    assert model.max_prefix == 512
    assert (model.bos, model.eos) == (2, 1)
    assert model.special == {0, 1, 2, 3}
    assert model.schedule.steps == 8
    assert model.network.model.encoder.vision_tower is None
    assert model.tokenizer.decode(list(model.encode("naïve\r\n\tx"))) == "naïve\r\n\tx"
    assert len(said) == 2


def refused(path: Path | str, match: str) -> None:
    with pytest.raises(CheckpointError, match=match) as caught:
        load_checkpoint(str(path), "cpu")
    assert len(str(caught.value)) < 600


def test_a_flipped_byte_is_named(broken: Path) -> None:
    weights = broken / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 0x40
    weights.write_bytes(data)
    refused(broken, r"model.safetensors does not match its sha256")


def test_weights_that_give_no_numbers_are_refused_without_a_manifest(broken: Path) -> None:
    (broken / "manifest.json").unlink()
    weights = load_file(broken / "model.safetensors")
    weights["model.decoder.norm.weight"] = torch.full_like(weights["model.decoder.norm.weight"], torch.nan)
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    refused(broken, "logits that are no numbers")


def test_a_missing_tensor_is_refused(broken: Path) -> None:
    weights = load_file(broken / "model.safetensors")
    del weights["model.decoder.layers.2.mlp.up_proj.weight"]
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    write_manifest(broken)
    refused(broken, "missing_keys: .*up_proj")


def test_a_foreign_tensor_is_refused(broken: Path) -> None:
    weights = load_file(broken / "model.safetensors") | {"model.decoder.surplus": torch.ones(2)}
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    write_manifest(broken)
    refused(broken, "unexpected_keys: model.decoder.surplus")


def cut_short(path: Path) -> None:
    data = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(data[: len(data) // 2])


def cut_short_with_manifest(path: Path) -> None:
    cut_short(path)
    write_manifest(path)


def foreign(path: Path) -> None:
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}))
    write_manifest(path)


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (cut_short, "cut short"),
        (cut_short_with_manifest, "cannot be loaded"),
        (foreign, "holds a 'gpt2' model, and only diffusion_gemma, llama"),
        (lambda p: (p / "config.json").unlink(), "no config.json"),
        (lambda p: (p / "config.json").write_text("{"), "does not match|bytes instead"),
        (lambda p: (p / "tokenizer.json").unlink(), "tokenizer.json is missing"),
        (lambda p: (p / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda p: (p / "manifest.json").write_text("no JSON"), "is no JSON file"),
        (lambda p: (p / "manifest.json").write_text("{}"), "lists no files"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)) if callable(value) else None,
)
def test_each_damage_has_its_message(broken: Path, damage: Callable[[Path], object], match: str) -> None:
    damage(broken)
    refused(broken, match)


def test_a_checkpoint_that_is_nowhere_is_said_to_be_so(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "neither a folder, nor a GGUF file, nor a hub name")
    refused(tmp_path, "no config.json")


def test_pickled_weights_are_never_read(broken: Path) -> None:
    (broken / "manifest.json").unlink()
    (broken / "model.safetensors").rename(broken / "pytorch_model.bin")
    refused(broken, "no other format is read")


@pytest.mark.parametrize(
    ("device", "match"), [("cuda:99", "no device cuda:99 here"), ("toaster", "no device called 'toaster'")]
)
def test_a_device_that_is_not_there_is_named(saved: Path, device: str, match: str) -> None:
    with pytest.raises(CheckpointError, match=match) as refusal:
        load_checkpoint(str(saved), device)
    assert "fetch the checkpoint again" not in str(refusal.value)


@pytest.mark.parametrize(
    ("capability", "placed", "wanted"),
    [
        ("AVX2", {"": "cpu"}, "float32"),
        ("DEFAULT", {"": "cpu"}, "float32"),
        ("AVX512", {"": "cpu"}, "auto"),
        ("AVX2", {"": "cuda"}, "auto"),
        ("AVX2", {"lm_head": "cpu"}, "auto"),
    ],
)
def test_a_cpu_without_fast_bfloat16_gets_float32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capability: str, placed: dict[str, str], wanted: str
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    (tmp_path / "model.safetensors").write_bytes(b"0" * 100)
    assert number_type(tmp_path, placed) == wanted
    # Twice the memory is too much for a large network.
    monkeypatch.setattr("dg_lsp.model.networks.loading._SMALL", 99)
    assert number_type(tmp_path, placed) == "auto"
