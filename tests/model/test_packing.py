"""A packed folder: the network that packing while streaming gives, bit for bit, and nothing damaged is loaded."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmarks.released import tiny_config
from dg_lsp.cli.main import main
from dg_lsp.engine import memory
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.manifest import verify
from dg_lsp.model.networks import packing
from dg_lsp.model.networks.loading import CheckpointError
from dg_lsp.model.networks.packing import load_packed, write_packed
from dg_lsp.model.networks.streaming import load_quantised
from tests.model.test_streaming import logits
from tests.model.tiny import byte_tokenizer, save_checkpoint, tiny_network, write_manifest

EXPERTS = "model.decoder.layers.1.experts.down_proj"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source")
    save_checkpoint(path)
    config = tiny_config()
    config.text_config.vocab_size = byte_tokenizer().get_vocab_size()
    network = tiny_network(1, torch.bfloat16, config)
    network.model.decoder.layers[0].layer_scalar.fill_(0.5)
    network.generation_config = type(network.generation_config).from_pretrained(str(path))
    (path / "model.safetensors").unlink()
    network.save_pretrained(path, max_shard_size="200KB")
    write_manifest(path)
    return path


@pytest.fixture(scope="module", params=[4, 8])
def packed(
    request: pytest.FixtureRequest, source: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, int]:
    to = tmp_path_factory.mktemp("packed") / "made"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(packing, "_SHARD", 100_000)  # in several files, as the released one comes
        assert main(["pack", str(source), "--bits", str(request.param), "--out", str(to)]) == 0
    return to, request.param


def state(network: Any) -> dict[str, torch.Tensor]:
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


@torch.inference_mode()
def test_the_network_is_that_of_packing_while_streaming_bit_for_bit(
    packed: tuple[Path, int], source: Path
) -> None:
    path, bits = packed
    assert len([*path.glob("packed-*.safetensors")]) > 2
    found, wanted = load_packed(path, "cpu", bits), load_quantised(source, "cpu", bits)
    ours, theirs = state(found), state(wanted)
    assert ours.keys() == theirs.keys()
    assert all(t.dtype == theirs[name].dtype and torch.equal(t, theirs[name]) for name, t in ours.items())
    assert torch.equal(logits(found), logits(wanted))
    assert found.lm_head.weight is found.model.decoder.embed_tokens.weight
    assert found.model.decoder.layers[0].experts is found.model.encoder.language_model.layers[0].experts


def test_it_is_a_checkpoint_whose_files_stay_mapped(
    packed: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, bits = packed
    model = load_checkpoint(str(path), "cpu")
    assert load_checkpoint(str(path), "cpu", bits=bits).digest == model.digest
    assert model.tokenizer.get_vocab_size() == model.vocabulary
    if (maps := Path("/proc/self/maps")).exists():
        mapped = {Path(line.split()[-1]).name for line in maps.read_text().splitlines() if line}
        assert {file.name for file in path.glob("packed-*")} <= mapped
    # It is counted as what it is.
    size = sum(f.stat().st_size for f in path.glob("*.safetensors"))
    assert size <= memory.needed(path, "cuda", bits=bits) == memory.needed(path, "cuda") < 1.2 * size
    with pytest.raises(CheckpointError, match=f"packed in {bits} bits, not {12 - bits}"):
        load_checkpoint(str(path), "cpu", bits=12 - bits)
    with pytest.raises(CheckpointError, match="damaged"):
        file = sorted(path.glob("packed-*"))[-1]
        kept = file.read_bytes()
        try:
            file.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
            load_checkpoint(str(path), "cpu")
        finally:
            file.write_bytes(kept)


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("model.decoder.norm.weight", lambda _: None, "1 tensors are missing"),
        ("model.decoder.norm.weight", lambda t: torch.cat([t, t]), "has the shape"),
        ("model.decoder.norm.weight", lambda t: t.float(), "instead of bfloat16"),
        ("model.decoder.norm.weight", lambda t: {"model.decoder.other": t}, "no tensor of this network"),
        (f"{EXPERTS}.quanta", lambda _: None, f"{EXPERTS}.quanta is missing"),
        (f"{EXPERTS}.quanta", lambda t: t[:, :-1], "do not fit each other|has the shape"),
        (f"{EXPERTS}.quanta", lambda t: t.view(torch.int8), "do not fit each other"),
        (f"{EXPERTS}.both", lambda _: None, f"{EXPERTS}.both is missing"),
        (f"{EXPERTS}.both", lambda t: t[..., :-1, :], "do not fit each other|has the shape"),
        (f"{EXPERTS}.both", lambda t: torch.full_like(t, torch.nan), "not finite"),
        ("packing.probe", lambda t: t ^ 1, "orders matrices in another way"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused_by_name(
    source: Path, tmp_path: Path, name: str, change: Any, why: str
) -> None:
    path = written(source, tmp_path / "packed")
    tensors = load_file(path / "packed-00001.safetensors")
    new = change(tensors.pop(name))
    tensors |= new if isinstance(new, dict) else {} if new is None else {name: new.contiguous()}
    save_file(tensors, path / "packed-00001.safetensors")
    with pytest.raises(CheckpointError, match=why):
        load_packed(path, "cpu", 4)


@pytest.mark.parametrize(
    "about", [{}, {"packed": 1}, {"packed": {"bits": "x", "order": "cpu"}}, {"packed": {"bits": 4}}]
)
def test_a_description_that_does_not_say_how_is_refused(source: Path, tmp_path: Path, about: Any) -> None:
    path = written(source, tmp_path / "packed")
    (path / "dg_lsp.json").write_text(json.dumps(about))
    with pytest.raises(CheckpointError, match="does not say how it is packed"):
        load_packed(path, "cpu", 4)


def test_another_device_is_told(source: Path, tmp_path: Path) -> None:
    path = written(source, tmp_path / "packed")
    (path / "dg_lsp.json").write_text(json.dumps({"packed": {"bits": 4, "order": "rows"}}))
    with pytest.raises(CheckpointError, match="is packed for a GPU; run dg-lsp pack again with --device cpu"):
        load_packed(path, "cpu", 4)


def test_a_source_that_does_not_fit_leaves_no_folder(source: Path, tmp_path: Path, capsys: Any) -> None:
    path, to = tmp_path / "damaged", tmp_path / "to"
    shutil.copytree(source, path)
    (path / "manifest.json").unlink()
    file = next(f for f in sorted(path.glob("*.safetensors")) if EXPERTS in load_file(f))
    tensors = load_file(file)
    tensors.pop(EXPERTS)
    save_file(tensors, file)
    for given, why in (
        (str(path), f"1 tensors are missing, such as {EXPERTS}"),
        (str(tmp_path), "nothing to pack"),
    ):
        code = main(["pack", given, "--out", str(to)])
        told = capsys.readouterr().err
        assert code == 2 and why in told
        assert sorted(p.name for p in tmp_path.iterdir()) == ["damaged"]
    to.mkdir()
    assert main(["pack", str(source), "--out", str(to)]) == 2 and "exists already" in capsys.readouterr().err


def test_a_folder_that_pack_has_not_made_stays(source: Path, tmp_path: Path) -> None:
    part = tmp_path / "to.part"
    part.mkdir()
    (part / "mine").write_text("mine")
    assert main(["pack", str(source), "--out", str(tmp_path / "to")]) == 0
    assert (part / "mine").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["to", "to.part"]
    (tmp_path / "other").mkdir()
    assert (tmp_path / "to").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_full_disk_ends_in_a_sentence_and_leaves_no_folder(source: Path, tmp_path: Path) -> None:
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); "
    code += "from dg_lsp.cli.main import main; sys.exit(main(sys.argv[1:]))"
    pack = [sys.executable, "-c", code, "pack", str(source), "--out", str(tmp_path / "to")]
    done = subprocess.run(pack, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "no space on the disk" in done.stderr and "free some" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_source_that_differs_from_its_manifest_leaves_no_folder(
    source: Path, tmp_path: Path, capsys: Any
) -> None:
    """Its files are compared while they are packed; a weight of another value fits the network."""
    path, to = tmp_path / "damaged", tmp_path / "to"
    shutil.copytree(source, path)
    file = sorted(path.glob("*.safetensors"))[0]
    data = file.read_bytes()
    file.write_bytes(data[:-2] + bytes([data[-2] ^ 1, data[-1]]))
    assert main(["pack", str(path), "--out", str(to)]) == 2
    assert f"{file} does not match its sha256" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["damaged"]


def test_the_manifest_has_the_files_as_they_were_written(packed: tuple[Path, int]) -> None:
    verify(packed[0], large=1 << 40)


def written(source: Path, to: Path) -> Path:
    """The packed form of `source` in four bits, in one file, without a manifest."""
    to.mkdir()
    about = {"packed": write_packed(source, to, "cpu", 4)}
    (to / "dg_lsp.json").write_text(json.dumps(about))
    for name in ("config.json", "generation_config.json"):
        shutil.copyfile(source / name, to / name)
    return to
