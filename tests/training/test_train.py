"""The recipe: what it learns from, how its canvases are laid out, that it learns, and that it can go on."""

import argparse
import itertools
import json
import random
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from dg_lsp.cli import train
from dg_lsp.cli.main import main
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.training import corpus as corpora
from dg_lsp.training import loop, trainer
from dg_lsp.training.curve import picture, read_log
from dg_lsp.training.fusing import fuse
from dg_lsp.training.heldout import File, HeldOut, is_held_out, long_lines, read_held_out, windows_of
from dg_lsp.training.importing import Learned, import_checkpoint
from dg_lsp.training.layouts import Batch, Bucket, Cutter, draw
from dg_lsp.training.loading import Draws, batches
from dg_lsp.training.lora import ADAPTER, merge_stored
from dg_lsp.training.objective import canvas_view, corrupt, cross_entropy, losses
from dg_lsp.training.optimise import Optimiser
from dg_lsp.training.shape import BOS, EOS, PAD, embedded_config, fresh_network
from dg_lsp.training.tokenizer import train_tokenizer
from dg_lsp.training.trainer import Recipe, Trainer

BUCKET, SMALL = Bucket(2, 128, 4, 64, 1.0), Bucket(2, 64, 2, 64, 1.0)
# Of a run in which an adapter learns to write from left to right.
DRAFTS: dict[str, Any] = {"buckets": (Bucket(2, 64, 0, 64, 1.0),), "rank": 4, "rates": (0.0, 1e-2)}


def program(seed: int) -> str:
    """A made-up module of a few dozen lines, unlike those of other seeds."""
    chance = random.Random(seed)
    names = [f"{a}_{b}" for a in ("count", "read", "send") for b in ("lines", "items", "users")]
    parts = [f'"""Module {seed}."""\n\nimport os\n\n\n']
    for _ in range(8):
        name, other = chance.sample(names, 2)
        parts.append(f"def {name}_{chance.randrange(999)}(first, second={chance.randrange(99)}):\n")
        parts.append(f"    total = {other}(first, {chance.randrange(999)})\n    for part in first:\n")
        parts.append(
            f"        total += part.{chance.choice(names)}\n        if total > {chance.randrange(999)}:\n"
        )
        parts.append(f"            return {chance.choice(names)}[second]\n    return total\n\n\n")
    return "".join(parts)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Two threads that wait for each other on a busy machine take a hundred times longer than one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def cutter() -> Cutter:
    files = [File("made up", f"m{n}.py", program(n)) for n in range(12)]
    tokenizer = train_tokenizer((f.text for f in files), 320)
    source = corpora.Source("made up", "1", "MIT", len(files), 1, 1)
    return Cutter.of(corpora.tokenise(files, [source], tokenizer), tokenizer, BOS, EOS)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site-packages folder, and a standard library of a few files beside it."""
    library, site = tmp_path / "lib", tmp_path / "site"
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(library if name == "stdlib" else site))
    for number in range(6):
        write(library / f"part{number}.py", program(100 + number))
    package(site, "good", "MIT", {"good/one.py": program(1), "good/two.py": program(2)})
    return site


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def package(site: Path, name: str, licence: str, files: dict[str, str]) -> None:
    for path, text in files.items():
        write(site / path, text)
    about = site / f"{name}-1.0.dist-info"
    write(
        about / "METADATA",
        f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\nLicense-Expression: {licence}\n",
    )
    write(about / "RECORD", "".join(f"{path},,\n" for path in files))


def test_the_default_of_decay_is_that_of_the_recipe() -> None:
    assert Recipe().decay == train.DECAY


def options(out: Path, *more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    train.add_arguments(parser)
    return parser.parse_args(["--out", str(out), "--hidden", "32", "--no-compile", "--processes", "1", *more])


def paths(site: Path, held_out: HeldOut) -> set[str]:
    return {file.path for file in corpora.gather([site], held_out)[0]}


def nothing_held_out() -> HeldOut:
    return held_out()


def held_out(
    modules: Iterable[str] = (),
    packages: Iterable[str] = (),
    lines: Iterable[int] = (),
    windows: Sequence[int] | np.ndarray = (),
) -> HeldOut:
    known = np.sort(np.array(windows, dtype=np.uint64))
    return HeldOut(frozenset(modules), frozenset(packages), frozenset(), frozenset(lines), known)


def test_files_without_a_permissive_licence_are_left_out(installed: Path) -> None:
    package(installed, "copyleft", "GPL-3.0-only", {"copyleft/a.py": program(3)})
    package(installed, "weak", "MPL-2.0", {"weak/a.py": program(4)})
    package(installed, "unclear", "LicenseRef-Ours", {"unclear/a.py": program(5)})
    package(installed, "permissive", "BSD-3-Clause", {"permissive/implement_replace.py": program(6)})
    found = paths(installed, nothing_held_out())
    assert {"good/one.py", "permissive/implement_replace.py", "part0.py"} <= found
    assert not {"copyleft/a.py", "weak/a.py", "unclear/a.py"} & found


def test_files_of_other_languages_are_learned_from_where_a_folder_names_them(
    installed: Path, tmp_path: Path
) -> None:
    code = "".join(f"func add{n}(first int) int {{\n\treturn first + {n}\n}}\n\n" for n in range(9))
    for name, text in {
        "a.go": code,
        "b.go": "// Code generated by a tool. DO NOT EDIT.\n" + code,
        "c.txt": code,
        "tests/d.go": code,
        "f.go": "var x = 1",
    }.items():
        write(tmp_path / "go" / name, text)
    (tmp_path / "go" / "e.go").write_bytes(b"\xff" * 300)
    files, source = corpora.gather_folder("go", tmp_path / "go")
    assert [(file.path, file.text) for file in files] == [("a.go", code)]
    out = tmp_path / "out"
    out.mkdir()
    corpora.prepare(out, [installed], None, [("go", tmp_path / "go")])
    told = json.loads((out / "sources.json").read_text())
    assert told[-1]["name"] == source.name == "go=go" and told[-1]["mass"] == len(code)
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    tokens = corpora.Corpus.load(out / "corpus.npz").tokens.tolist()
    assert code in tokenizer.decode(tokens)


@pytest.mark.parametrize(
    "more, said",
    [
        (["--drafts"], "--from small"),
        (["--drafts", "--from", "embedded", "--repo", "."], "leave one away"),
        (["--source", "klingon=."], "such as go=src"),
        (["--source", "go=nowhere"], "no folder nowhere"),
    ],
)
def test_options_that_make_no_sense_are_named(
    more: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    try:
        code = main(["train", "--out", str(tmp_path), "--processes", "1", *more])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2 and said in capsys.readouterr().err


def test_copies_tables_and_generated_files_are_left_out(installed: Path) -> None:
    table = "TABLE = (\n" + "".join(f"    {n},\n" for n in range(200)) + ")\n"
    package(installed, "other", "MIT", {
        "other/copy.py": program(1) + "\n\ndone = True\n",
        "other/table.py": table,
        "other/made.py": "# Generated by a tool\n" + program(7),
        "other/own.py": program(8),
    })  # fmt: skip
    assert {path for path in paths(installed, nothing_held_out()) if "other" in path} == {"other/own.py"}


def test_held_out_files_and_their_copies_are_left_out(installed: Path) -> None:
    secret, kept = program(50), program(51)
    resembling = program(52) + "".join(secret.splitlines(keepends=True)[:40])
    package(installed, "secret", "MIT", {"secret/core.py": program(53)})
    package(installed, "vendor", "MIT", {
        "vendor/renamed.py": secret,
        "vendor/resembling.py": resembling,
        "vendor/_vendor/secret/other.py": program(54),
        "vendor/kept.py": kept,
    })  # fmt: skip
    lines = frozenset(long_lines(secret) - long_lines(kept))
    found = paths(installed, held_out({"part1.py"}, {"secret"}, lines))
    assert {path for path in found if "vendor" in path or "secret" in path} == {"vendor/kept.py"}
    assert "part1.py" not in found
    assert "part2.py" in found


def test_fifty_tokens_in_a_row_are_too_many_and_a_licence_is_none(installed: Path) -> None:
    licence = "".join(f"# You may do {n} with all of this and none of that.\n" for n in range(20))
    secret, other = licence + program(60), program(61).splitlines(keepends=True)
    lines = secret.splitlines(keepends=True)
    part = lines[next(n for n, line in enumerate(lines) if n > 30 and line.startswith("def ")) :]
    package(installed, "vendor", "MIT", {
        "vendor/fifty.py": "".join(other + part[:18]),
        "vendor/forty.py": "".join(program(62).splitlines(keepends=True) + part[:9]),
        "vendor/licence.py": licence + program(63),
    })  # fmt: skip
    assert len(windows_of("".join(part[:9]))) == 0 < len(windows_of("".join(part[:18])))
    found = paths(installed, held_out(windows=windows_of(secret)))
    assert {path for path in found if "vendor" in path} == {"vendor/forty.py", "vendor/licence.py"}


def test_every_file_of_the_shipped_list_is_held_out() -> None:
    known = read_held_out([])
    listed = json.loads(
        (Path(str(resources.files("dg_lsp.model") / "embedded" / "heldout.json"))).read_text()
    )["files"]
    assert len(listed) > 100
    for entry in listed:
        assert is_held_out(known, entry["path"].partition(":")[2], "", set())


def test_a_canvas_begins_at_a_line_start_and_goes_on_with_the_file(cutter: Cutter) -> None:
    newline = cutter.tokenizer.encode("\n", add_special_tokens=False).ids[0]
    whole = cutter.tokenizer.decode(cutter.corpus.tokens.tolist(), skip_special_tokens=False)
    for infill in (0.0, 1.0):
        batch = draw(cutter, Bucket(15, 128, 4, 64, 1.0), random.Random(3), infill)
        assert bool((batch.tokens[:, 0] == BOS).all())
        for document, canvases, starts in zip(batch.tokens.tolist(), batch.canvas, batch.starts, strict=True):
            for canvas, start in zip(canvases.tolist(), starts.tolist(), strict=True):
                assert document[start - 1] in (newline, BOS)
                tokens = [token for token in document[1:start] + canvas if token != EOS]
                assert cutter.tokenizer.decode(tokens, skip_special_tokens=False) in whole


def test_an_infill_keeps_its_suffix_and_a_continuation_is_free_throughout(cutter: Cutter) -> None:
    infills = draw(cutter, Bucket(15, 128, 4, 64, 1.0), random.Random(4), 1.0)
    assert bool(infills.free.any(-1).all())
    assert not bool(infills.free[..., -8:].any())
    assert bool(draw(cutter, BUCKET, random.Random(4), 0.0).free.all())


def test_gaps_vary_in_number_and_length(cutter: Cutter) -> None:
    free = draw(cutter, Bucket(50, 128, 4, 64, 1.0), random.Random(5), 1.0).free.flatten(0, 1)
    runs = (free[:, 1:] & ~free[:, :-1]).sum(1) + free[:, 0]
    assert set(runs.tolist()) == {1, 2, 3}
    assert len(set(free.sum(1).tolist())) > 15


def test_after_the_end_of_a_file_comes_eos(cutter: Cutter) -> None:
    canvases = draw(cutter, Bucket(25, 128, 4, 64, 1.0), random.Random(6), 0.0).canvas.flatten(0, 1)
    ended = [row for row in canvases.tolist() if EOS in row]
    assert ended
    assert all(set(row[row.index(EOS) :]) == {EOS} for row in ended)


def test_a_short_file_is_taken_whole_and_padded(cutter: Cutter) -> None:
    batch = draw(cutter, Bucket(4, 4096, 4, 64, 1.0), random.Random(15))
    assert bool((batch.tokens[:, -1] == PAD).all())
    first = batch.tokens[0].tolist()
    end = first.index(PAD)
    assert set(first[end:]) == {PAD} and int(batch.starts.max()) < 4096
    text = cutter.tokenizer.decode(first[1:end])
    assert text in [program(n) for n in range(12)]
    network = fresh_network(embedded_config(320, 32, 2), 0, torch.float32)
    short = replace(batch, tokens=batch.tokens[:, : int((batch.tokens != PAD).sum(1).max())])
    with torch.no_grad():
        padded, cut = losses(network, batch, batch.canvas), losses(network, short, batch.canvas)
    assert list(map(float, padded)) == pytest.approx(list(map(float, cut)), rel=1e-5)


def test_noise_falls_on_free_slots_only_and_on_all_of_them_at_time_one(cutter: Cutter) -> None:
    batch = draw(cutter, Bucket(10, 128, 4, 64, 1.0), random.Random(7))
    times = torch.ones(batch.starts.shape)
    noisy = corrupt(batch, times, 10**6, torch.Generator().manual_seed(0))
    assert torch.equal(noisy != batch.canvas, batch.free)
    assert torch.equal(corrupt(batch, times * 0, 320, torch.Generator()), batch.canvas)


def test_the_loss_asks_for_free_slots_only(cutter: Cutter) -> None:
    network = fresh_network(embedded_config(320, 32, 2), 0, torch.float32)
    batch = draw(cutter, BUCKET, random.Random(8), 1.0)
    noisy = corrupt(batch, torch.full(batch.starts.shape, 0.5), 320, torch.Generator().manual_seed(0))
    asked = losses(network, batch, noisy)[0]
    other = (batch.canvas + 1) % 320
    elsewhere = replace(batch, canvas=torch.where(batch.free, batch.canvas, other))
    assert torch.equal(losses(network, elsewhere, noisy)[0], asked)
    here = replace(batch, canvas=torch.where(batch.free, other, batch.canvas))
    assert not torch.equal(losses(network, here, noisy)[0], asked)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_canvas_sees_its_prefix_and_nothing_behind_it(cutter: Cutter, attention: str) -> None:
    """What stands in the document from the canvas's start on is the answer; it must not be seen."""
    network = fresh_network(embedded_config(320, 32, 2), 0, torch.float32, attention)
    batch = draw(cutter, Bucket(2, 128, 1, 64, 1.0), random.Random(12), 1.0)
    noisy = corrupt(batch, torch.ones(batch.starts.shape), 320, torch.Generator().manual_seed(0))
    asked = losses(network, batch, noisy)[0]
    hidden = torch.arange(128) >= batch.starts
    assert bool(hidden.any()) and not bool(hidden.all())
    behind = replace(batch, tokens=torch.where(hidden, 5, batch.tokens))
    assert torch.equal(losses(network, behind, noisy)[0], asked)
    before = replace(batch, tokens=torch.where(hidden, batch.tokens, 5))
    assert not torch.equal(losses(network, before, noisy)[0], asked)


def test_fused_parts_change_neither_losses_nor_gradients(cutter: Cutter) -> None:
    found = []
    for fused in (False, True):
        network = fresh_network(embedded_config(320, 32, 2), 0, torch.float32)
        torch.manual_seed(1)
        for name, weight in network.named_parameters():
            if "per_expert_scale" in name or "norm" in name:
                nn.init.uniform_(weight, 0.5, 1.5)
        if fused:
            fuse(network)
        batch = draw(cutter, BUCKET, random.Random(8), 0.5)
        noisy = corrupt(batch, torch.full(batch.starts.shape, 0.5), 320, torch.Generator().manual_seed(0))
        whole = torch.stack(losses(network, batch, noisy)).sum()
        whole.backward()
        grads = {n: w.grad for n, w in network.named_parameters() if w.grad is not None}
        found.append({"loss": whole.detach()} | grads)
    assert len(found[0]) > 30
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-5)


def test_a_sliding_layer_sees_the_last_of_the_prefix_and_the_canvas(cutter: Cutter) -> None:
    batch = draw(cutter, Bucket(1, 128, 2, 64, 1.0), random.Random(13))
    masks = canvas_view(batch, 32, torch.float32).masks
    assert masks is not None
    for row, start in enumerate(batch.starts.flatten().tolist()):
        for kind, least in (("full_attention", 0), ("sliding_attention", max(start - 31, 0))):
            seen = (masks[kind][row, 0, 0] == 0).nonzero().flatten().tolist()
            assert seen == [*range(least, start), *range(128, 192)]


def test_canvases_that_share_a_document_are_as_if_each_had_its_own(cutter: Cutter) -> None:
    network = fresh_network(embedded_config(320, 32, 2), 0, torch.float32)
    batch = draw(cutter, Bucket(1, 128, 4, 64, 1.0), random.Random(14), 1.0)
    noisy = corrupt(batch, torch.ones(batch.starts.shape), 320, torch.Generator().manual_seed(0))
    beyond = torch.arange(128) >= batch.starts.T
    apart = Batch(
        torch.where(beyond, PAD, batch.tokens.expand(4, -1)),
        *(part.transpose(0, 1) for part in (batch.canvas, batch.free, batch.starts)),
    )
    together = float(losses(network, batch, noisy)[0].detach())
    assert float(losses(network, apart, noisy.transpose(0, 1))[0].detach()) == pytest.approx(
        together, rel=1e-5
    )


def test_the_denoisers_loss_reaches_the_encoder_through_the_prefix(cutter: Cutter) -> None:
    network = fresh_network(embedded_config(320, 32, 2), 0, torch.float32)
    batch = draw(cutter, BUCKET, random.Random(9))
    noisy = corrupt(batch, torch.ones(batch.starts.shape), 320, torch.Generator().manual_seed(0))
    states: list[Any] = []
    network.model.encoder.language_model.layers[0].register_forward_hook(lambda *a: states.append(a[2]))
    with torch.enable_grad():
        diffusion = losses(network, batch, noisy)[0]
        grad = torch.autograd.grad(diffusion, states[0], allow_unused=True)[0]
    assert grad is not None
    assert float(grad.abs().max()) > 0


def test_the_loss_falls(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "_WARM_STEPS", 2)
    corpora.prepare(tmp_path, [installed])
    run = Trainer(tmp_path, small(steps=100))
    shown = [run.advance() for _ in range(16)]
    for name in ("diffusion", "ahead"):
        assert sum(s[name] for s in shown[-3:]) < 0.95 * sum(s[name] for s in shown[:3])


def test_several_processes_draw_the_batches_that_one_draws(cutter: Cutter) -> None:
    draws = Draws(cutter, (BUCKET, SMALL), 0.5, 320, 3)
    alone, helped = (itertools.islice(batches(draws, 5, processes), 6) for processes in (0, 2))
    for one, other in zip(alone, helped, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert not torch.equal(draws[5][0][0, :64], draws[6][0][0, :64])
    assert not torch.equal(draws[5][0][0, :64], replace(draws, seed=4)[5][0][0, :64])


def test_stacked_matrices_are_updated_as_by_muon_of_torch() -> None:
    torch.manual_seed(0)
    shapes = {
        "layers.0.q": (8, 16),
        "layers.1.q": (8, 16),
        "layers.0.experts": (3, 16, 8),
        "layers.0.norm": (8,),
    }
    named = {name: nn.Parameter(torch.randn(shape)) for name, shape in shapes.items()}
    idle = nn.Parameter(torch.ones(8, 8))
    plain = [nn.Parameter(m.detach().clone()) for name in shapes for m in matrices_of(named[name])]
    muon = torch.optim.Muon(plain, lr=0.1, weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
    ours = Optimiser([*named.items(), ("idle", idle)], (0.2, 0.0))
    for _ in range(3):
        slopes = [torch.randn_like(weight) for weight in named.values()]
        for weight, slope in zip(named.values(), slopes, strict=True):
            weight.grad = slope
        norm = torch.stack([slope.norm() for slope in slopes]).norm()
        parts = [part for slope in slopes for part in matrices_of(slope)]
        for matrix, part in zip(plain, parts, strict=True):
            matrix.grad = part / norm
        muon.step()
        assert float(ours.step(0.5)) == pytest.approx(float(norm))
    found = [part for weight in named.values() for part in matrices_of(weight)]
    for ours_now, wanted in zip(found, plain, strict=True):
        torch.testing.assert_close(ours_now, wanted, rtol=0, atol=0.02)
    assert torch.equal(idle, torch.ones(8, 8))


def matrices_of(tensor: torch.Tensor | None) -> list[torch.Tensor]:
    assert tensor is not None
    return [] if tensor.ndim == 1 else list(tensor.reshape(-1, *tensor.shape[-2:]).unbind())


def test_a_run_goes_on_where_it_was_saved(installed: Path, tmp_path: Path) -> None:
    corpora.prepare(tmp_path, [installed])
    straight = Trainer(tmp_path, small(steps=20))
    straight.advance()
    straight.save()
    wanted = numbers(straight.advance())
    assert wanted["stop"] == 0
    resumed = Trainer(tmp_path, small(steps=20, loaders=2))
    resumed.restore()
    assert resumed.count.step == 1
    assert numbers(resumed.advance()) == pytest.approx(wanted, rel=1e-3)


def numbers(shown: dict[str, Any]) -> dict[str, float]:
    """The results of a step as plain numbers, without the time that it took."""
    return {name: float(value) for name, value in shown.items() if name != "waiting"}


def test_a_run_that_begins_with_a_checkpoint_goes_on_as_well_as_it_was(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fresh optimiser, weights rounded to bf16: the loss jumps by less than two per cent."""
    monkeypatch.setattr(trainer, "_WARM_STEPS", 2)
    corpora.prepare(tmp_path, [installed])
    begun = Trainer(tmp_path, small(steps=400))
    for _ in range(24):
        begun.advance()
    begun.export(tmp_path / "export")
    further = Trainer(tmp_path, small(steps=20), tmp_path / "export")
    assert (further.count.step, further.version, further.warm) == (24, 1, 200)
    assert further.share() == pytest.approx(1 / 200)
    known = fixed_loss(begun)
    assert fixed_loss(further) == pytest.approx(known, rel=0.02)
    for _ in range(5):
        further.advance()
    assert fixed_loss(further) < 1.02 * known
    assert (further.count.step, further.done()) == (29, 0.25)


def imported(installed: Path, tmp_path: Path) -> Path:
    """A tiny Llama with random weights, imported, and the corpus for it in `tmp_path`."""
    corpora.prepare(tmp_path, [installed])
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    shape: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads: dict[str, Any] = {"num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": True}
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), bos_token_id=2, eos_token_id=1, **shape, **heads
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(tmp_path / "llama")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path / "llama")
    import_checkpoint(str(tmp_path / "llama"), tmp_path / "imported")
    assert not load_checkpoint(str(tmp_path / "imported"), "cpu").denoises
    return tmp_path / "imported"


def test_an_imported_network_learns_to_denoise_and_keeps_its_scales(installed: Path, tmp_path: Path) -> None:
    run = Trainer(tmp_path, small(steps=40, warm=2, decay=0.1), imported(installed, tmp_path))
    before = {name: weight.detach().clone() for name, weight in run.network.named_parameters()}
    known = fixed_loss(run)
    for _ in range(30):
        run.advance()
    assert fixed_loss(run) < 0.95 * known
    for name, weight in run.network.named_parameters():
        assert torch.equal(weight, before[name]) or float(before[name].abs().max()) < 1000, name
    run.export(tmp_path / "adapted")
    assert load_checkpoint(str(tmp_path / "adapted"), "cpu").denoises


def test_the_seed_of_a_run_is_that_of_its_adapter_too(installed: Path, tmp_path: Path) -> None:
    base = imported(installed, tmp_path)
    same, again, other = (
        dict(Trainer(tmp_path, small(seed=seed, **DRAFTS), base).network.named_parameters())
        for seed in (1, 1, 2)
    )
    factors = [name for name in same if "lora_A" in name]
    assert factors and all(torch.equal(same[name], again[name]) for name in factors)
    assert not any(torch.equal(same[name], other[name]) for name in factors)


def test_an_imported_network_learns_to_write_and_its_adapter_fits_another_import(
    installed: Path, tmp_path: Path
) -> None:
    base = imported(installed, tmp_path)
    run = Trainer(tmp_path, small(steps=60, warm=2, decay=0.1, **DRAFTS), base)
    shown = [run.advance() for _ in range(50)]
    assert all(one["diffusion"] == 0 for one in shown)
    assert sum(one["ahead"] for one in shown[-5:]) < 0.97 * sum(one["ahead"] for one in shown[:5])
    assert loop.measure(run) == {}
    run.export(tmp_path / "adapted")
    # It writes better, and still it is never asked to denoise.
    assert not load_checkpoint(str(tmp_path / "adapted"), "cpu").denoises
    # The adapter's own file, merged while the same network is imported once more, gives the same weights.
    learned = Learned(tmp_path / "judge.json", tmp_path / ADAPTER)
    learned.judge.write_text("{}")
    import_checkpoint(str(tmp_path / "llama"), tmp_path / "again", learned=learned)
    first, again = (load_file(tmp_path / name / "model.safetensors") for name in ("adapted", "again"))
    plain = load_file(base / "model.safetensors")
    changed = [name for name in first if not torch.equal(first[name], plain[name])]
    assert changed and all("self_attn" in name or ".mlp." in name for name in changed)
    for name, weight in first.items():
        if name in changed:
            assert torch.allclose(weight.float(), again[name].float(), atol=2e-2), name
        else:
            assert torch.equal(weight, again[name]), name
    with pytest.raises(ValueError, match="of another network"):
        merge_stored(fresh_network(embedded_config(320, 64, 2), 0), tmp_path / ADAPTER)


def test_a_run_with_an_adapter_goes_on_from_what_another_one_exported(
    installed: Path, tmp_path: Path
) -> None:
    first = Trainer(tmp_path, small(steps=8, warm=1, **DRAFTS), imported(installed, tmp_path))
    loop.train(first, [])
    first.export(tmp_path / "one")
    second = Trainer(tmp_path, small(steps=8, warm=1, **DRAFTS), tmp_path / "one")
    loop.train(second, [])
    second.export(tmp_path / "two")
    assert load_checkpoint(str(tmp_path / "two"), "cpu").digest


def test_what_only_writes_gets_its_gradient_where_compiling_was_asked_for(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = imported(installed, tmp_path)
    monkeypatch.undo()  # the compiler asks for the real paths
    shown = [
        numbers(Trainer(tmp_path, small(steps=4, warm=1, compiled=compiled, **DRAFTS), base).advance())
        for compiled in (False, True)
    ]
    assert shown[0]["norm"] > 0 and shown[1] == pytest.approx(shown[0], rel=0.02)


def test_losses_in_parts_have_the_values_and_the_gradients_of_those_of_a_head_that_learns() -> None:
    network = fresh_network(embedded_config(320, 64, 2), 0, torch.float32)
    network.config.text_config.final_logit_softcapping = network.final_logit_softcapping = 2.0
    vocabulary, size = network.lm_head.weight.shape
    torch.manual_seed(0)
    hidden, tokens = torch.randn(5, 150, size) * 3, torch.randint(vocabulary, (5, 150))
    weights, found = torch.rand(5, 150), []
    for learns in (True, False):
        network.lm_head.requires_grad_(requires_grad=learns)
        states = hidden.clone().requires_grad_()
        nats = cross_entropy(network, states, tokens)
        (nats * weights).sum().backward()
        found.append((nats.detach(), states.grad))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_a_run_goes_on_from_the_weights_before_the_rate_fell(installed: Path, tmp_path: Path) -> None:
    corpora.prepare(tmp_path, [installed])
    first = Trainer(tmp_path, small(steps=8, warm=1))
    loop.train(first, [])
    first.export(tmp_path / "export")
    assert load_checkpoint(str(tmp_path / "export"), "cpu").digest
    kept = load_file(tmp_path / "export" / trainer.WEIGHTS_BEFORE_DECAY)
    onward = dict(Trainer(tmp_path, small(steps=8), tmp_path / "export").network.named_parameters())
    other = dict(
        Trainer(tmp_path, small(steps=8, onward=False), tmp_path / "export").network.named_parameters()
    )
    final = dict(first.network.named_parameters())
    assert all(torch.equal(onward[name], weight) for name, weight in kept.items())
    assert all(torch.equal(other[name], weight) for name, weight in final.items())
    assert any(not torch.equal(final[name], weight) for name, weight in kept.items())


def test_a_run_does_not_export_the_weights_of_an_earlier_one_in_its_folder(
    installed: Path, tmp_path: Path
) -> None:
    corpora.prepare(tmp_path, [installed])
    (tmp_path / trainer.WEIGHTS_BEFORE_DECAY).write_bytes(b"of an earlier run")
    run = Trainer(tmp_path, small(steps=4, warm=1, decay=1e-9))  # its rate does not fall
    loop.train(run, [])
    run.export(tmp_path / "export")
    assert not (tmp_path / "export" / trainer.WEIGHTS_BEFORE_DECAY).exists()


def fixed_loss(run: Trainer) -> float:
    batch = draw(run.cutter, Bucket(8, 64, 4, 64, 1.0), random.Random(20))
    noisy = corrupt(batch, torch.full(batch.starts.shape, 0.7), 320, torch.Generator().manual_seed(0))
    with torch.no_grad():
        return float(sum(losses(run.network, batch, noisy)))


def small(**more: Any) -> Recipe:
    usual: dict[str, Any] = {"seconds": 600.0, "width": 32, "buckets": (SMALL,)}
    return Recipe(**usual | more)


def test_the_rate_warms_up_holds_and_falls_to_nothing(installed: Path, tmp_path: Path) -> None:
    corpora.prepare(tmp_path, [installed])
    run = Trainer(tmp_path, small())
    assert run.share() == pytest.approx(0.01)
    run.count.step = 500
    rates = []
    for minutes in (1, 7.5, 8.75, 10):
        run.count.seconds = 60 * minutes
        rates.append(run.share())
    assert rates == pytest.approx([1.0, 1.0, 0.5, 0.0])
    assert run.done() == 1
    annealed = Trainer(tmp_path, small(decay=1.0))
    annealed.count.step = 500
    for minutes, share in ((2.5, 0.75), (5, 0.5), (10, 0)):
        annealed.count.seconds = 60 * minutes
        assert annealed.share() == pytest.approx(share)


def test_the_command_makes_a_checkpoint_that_loads(installed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert train.run(options(out, "--steps", "2", "--packages", str(installed))) == 0
    model = load_checkpoint(str(out / "export"), "cpu")
    assert model.canvas_lengths == (64, 128, 256)
    assert (model.bos, model.eos, model.max_prefix) == (BOS, EOS, 1024)
    assert model.special == {0, 1, 2, 3}
    assert json.loads((out / "sources.json").read_text())[0]["licence"] == "PSF-2.0"
    assert train.run(options(out, "--export", str(tmp_path / "again"))) == 0
    assert load_checkpoint(str(tmp_path / "again"), "cpu").digest
    told = json.loads((tmp_path / "again" / "dg_lsp.json").read_text())
    assert (told["version"], told["trained"]["step"]) == (0, 2)


def test_the_log_holds_means_also_where_a_run_begins_between_two_lines(
    installed: Path, tmp_path: Path
) -> None:
    corpora.prepare(tmp_path, [installed])
    run = Trainer(tmp_path, small(steps=13))
    run.count.step = run.first.step = 7
    loop.train(run, [])
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [10, 20, 20]
    assert all(3 < line["diffusion"] < 9 for line in lines[:2])


def test_the_curve_is_an_average_and_a_picture_of_it_shows_all_points(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    lines = [{"step": n, "tokens": n * 10_000, "diffusion": 8 - n / 100, "ahead": 6.0} for n in range(1, 481)]
    log.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"step": 480, "heldout": {}}]))
    points = read_log(log)
    assert len(points) == 120
    assert points[-1] == {"tokens": 4.8, "diffusion": pytest.approx(3.215), "ahead": 6.0}
    drawn = ET.fromstring(picture(points, "a < b"))
    lines_drawn = [e.get("points", "").split() for e in drawn.iter() if e.get("stroke-width")]
    assert [len(line) for line in lines_drawn] == [120, 120]
    assert read_log(tmp_path / "none") == []


class Pair:
    """accelerate, as it looks to one of two processes of which the other has no gradients and read 3 everywhere."""

    num_processes, device = 2, torch.device("cpu")

    def reduce(self, flat: torch.Tensor, reduction: str) -> torch.Tensor:
        assert reduction == "mean"
        other = torch.zeros_like(flat)
        other[-2:] = 3.0
        return (flat + other) / 2


def test_gradients_and_numbers_are_means_over_the_processes(installed: Path, tmp_path: Path) -> None:
    corpora.prepare(tmp_path, [installed])
    run = Trainer(tmp_path, small(steps=20))
    batch = draw(run.cutter, SMALL, random.Random(0))
    torch.stack(losses(run.network, batch, batch.canvas)).sum().backward()
    before = {n: w.grad.clone() for n, w in run.network.named_parameters() if w.grad is not None}
    monkeyed: Any = run
    monkeyed.place = Pair()
    assert run._average([1.0, 5.0]) == [2.0, 4.0]
    after = {n: w.grad for n, w in run.network.named_parameters() if w.grad is not None}
    assert all(torch.allclose(after[name].float(), grad.float() / 2) for name, grad in before.items())


def test_several_processes_take_the_same_steps_and_are_told_to_stop_together(
    installed: Path, tmp_path: Path
) -> None:
    """Real processes: the command starts them, their weights agree, and they end by SIGTERM with an export."""
    corpora.prepare(tmp_path, [installed])
    command = [
        sys.executable,
        "-m",
        "dg_lsp",
        "train",
        "--out",
        str(tmp_path),
        "--hidden",
        "32",
        "--no-compile",
    ]
    run = subprocess.Popen([*command, "--steps", "10000", "--processes", "2"])
    log = tmp_path / "log.jsonl"
    try:
        # However slow the machine is; the first line comes with the first step.
        while run.poll() is None and not (log.exists() and log.read_text().endswith("\n")):
            time.sleep(0.2)
        run.send_signal(signal.SIGTERM)
        assert run.wait() == 0
    finally:
        run.terminate()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["step"] == 1
    # Twice a batch of the recipe's, which has at least 6,000 tokens.
    assert lines[0]["tokens"] > 2 * 6_000
    assert lines[-1]["step"] < 10_000
    assert load_checkpoint(str(tmp_path / "export"), "cpu").digest
