"""Fitting a checkpoint to a repository: what is learned from, what is held out, that it helps, and LoRA."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from dg_lsp.bench import adapted as adapt
from dg_lsp.bench.score import Score
from dg_lsp.cli.main import main
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.settings import UsageError
from dg_lsp.training.corpus import Corpus
from dg_lsp.training.layouts import Bucket
from dg_lsp.training.lora import ADAPTER, SCALE, add_adapter, merge_stored
from dg_lsp.training.shape import stored_network
from dg_lsp.training.trainer import Recipe, Trainer
from tests.model.tiny import save_checkpoint
from tests.training.test_train import program, small_batches

__all__ = ["small_batches"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random checkpoint of the released one's layout."""
    path = tmp_path_factory.mktemp("base")
    save_checkpoint(path)
    return path


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    for number in range(10):
        file = tmp_path / "repo" / "part" / f"module{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(program(300 + number))
    return tmp_path / "repo"


def test_a_fifth_of_the_files_is_held_out_and_never_learned_from(
    repo: Path, base: Path, tmp_path: Path
) -> None:
    held = adapt.prepare(repo, base, tmp_path)
    assert len(held) == 2
    learned, again = adapt.gather(repo)
    assert [file.path for file in again] == [document.uri for document in held]
    assert not {f.path for f in learned} & {f.path for f in again} and len(learned) == 8
    size = len(Corpus.load(tmp_path / "corpus.npz").tokens)
    assert size == sum(len(file.text) for file in learned)


def test_what_is_not_the_repositorys_own_is_left_out(repo: Path) -> None:
    for folder in ("node_modules", ".hidden", "venv"):
        (repo / folder).mkdir()
        (repo / folder / "other.py").write_text(program(400))
    (repo / "broken.py").write_text("def (:\n" * 60)
    found = [file.path for files in adapt.gather(repo) for file in files]
    assert len(found) == 10
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    subprocess.run(["git", "-C", str(repo), "add", "part/module1.py", "part/module2.py"], check=True)
    assert len([file for files in adapt.gather(repo) for file in files]) == 2


def test_a_folder_with_too_little_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(program(1))
    with pytest.raises(UsageError, match="at least 2"):
        adapt.gather(tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--repo", "."], "--from"),
        (["--repo", ".", "--from", "no/such/place/at/all"], "no checkpoint"),
        (["--repo", "no/such/folder", "--from", "embedded"], "there is no folder no/such/folder"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--out", str(tmp_path), *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("rank", [0, 4])
def test_the_command_shows_scores_before_and_after(
    rank: int, repo: Path, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    options = ["--out", str(out), "--repo", str(repo), "--from", str(base), "--lora", str(rank)]
    assert main(["train", *options, "--steps", "2", "--cases", "2", "--threads", "1", "--no-compile"]) == 0
    shown = capsys.readouterr().out
    for kind in adapt.KINDS:
        assert f"{kind} before" in shown and shown.index(f"{kind} before") < shown.index(f"{kind} then")
    model = load_checkpoint(str(out / "export"), "cpu")
    reported = json.loads((out / "export" / "dg_lsp.json").read_text())
    assert reported["trained"]["step"] == 2
    assert model.tokenizer.get_vocab_size() == load_checkpoint(str(base), "cpu").tokenizer.get_vocab_size()
    # The text of the released config stays as it is.
    assert (out / "export" / "config.json").read_text() == (base / "config.json").read_text()


def test_an_adapter_changes_attention_dense_parts_and_self_conditioning_only_and_for_both_passes(
    repo: Path, base: Path, tmp_path: Path
) -> None:
    adapt.prepare(repo, base, tmp_path)
    small = (Bucket(2, 64, 2, 64, 1.0),)
    run = Trainer(tmp_path, Recipe(steps=40, rank=4, rates=(0.0, 1e-2), warm=1, buckets=small), base)
    before = {name: w.clone() for name, w in stored_network(base).named_parameters()}
    losses = [sum(run.advance()[name] for name in ("diffusion", "ahead")) for _ in range(12)]
    assert sum(losses[-3:]) < sum(losses[:3])
    layers = run.network.model.encoder.language_model.layers, run.network.model.decoder.layers
    assert all(e.self_attn.q_proj is d.self_attn.q_proj for e, d in zip(*layers, strict=True))
    run.export(tmp_path / "export")
    network = stored_network(tmp_path / "export")
    layers = network.model.encoder.language_model.layers, network.model.decoder.layers
    after = dict(network.named_parameters())
    changed = {name for name, weight in before.items() if not torch.equal(weight, after[name])}
    assert changed and set(after) == set(before)
    parts = (".self_attn.", ".mlp.", ".self_conditioning.")
    assert all(any(part in name for part in parts) for name in changed)
    for encoder, decoder in zip(*layers, strict=True):
        assert encoder.self_attn.q_proj.weight is decoder.self_attn.q_proj.weight


def test_what_is_merged_gives_what_the_adapter_gave(base: Path, tmp_path: Path) -> None:
    network, merged, plain = (stored_network(base).float() for _ in range(3))
    add_adapter(network, 4, 0)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "lora_B" in name:
                weight.normal_(0, 0.1)
        factors = {name: weight for name, weight in network.named_parameters() if "lora_" in name}
        save_file(factors, tmp_path / ADAPTER, {"scale": str(SCALE)})
        merge_stored(merged, tmp_path / ADAPTER)
        tokens = torch.arange(3, 40)[None]
        adapted, found, unchanged = (
            one.model.encoder.language_model(tokens).last_hidden_state for one in (network, merged, plain)
        )
    assert torch.allclose(adapted, found, atol=1e-4)
    assert not torch.allclose(adapted, unchanged, atol=1e-2)


@pytest.mark.parametrize(
    ("better", "worse", "said"),
    [
        (0, 0, "no more than chance"),
        (1, 0, "no more than chance"),
        (6, 5, "no more than chance"),
        (12, 2, "the adaptation helps"),
        (2, 12, "the adaptation harms"),
    ],
)
def test_a_difference_counts_if_it_is_more_than_chance(better: int, worse: int, said: str) -> None:
    score = Score("a", "expression", "given", "x", "x", "x", True, 1.0, True, True, 0.1)
    wrong = replace(score, exact=False)
    before = [score] * 40 + [wrong] * better + [score] * worse
    after = [score] * 40 + [score] * better + [wrong] * worse
    sentence = adapt.verdict(before, after)
    assert said in sentence and sentence.startswith(f"{better} of {40 + better + worse} holes")
