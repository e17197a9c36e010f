"""The mean of checkpoints: weight by weight, whole as a checkpoint, refused where it would mean nothing."""

from pathlib import Path

import pytest
import torch

from dg_lsp.checkpoints import CheckpointError
from dg_lsp.cli.main import main
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.training.average import average
from dg_lsp.training.shape import stored_network
from tests.model.tiny import byte_tokenizer, save_checkpoint


def saved(path: Path, seed: int) -> Path:
    save_checkpoint(path, seed=seed)
    return path


def test_each_weight_is_the_mean_and_the_rest_is_the_first_ones(tmp_path: Path) -> None:
    one, two = (saved(tmp_path / str(seed), seed) for seed in (1, 2))
    average({one: 3.0, two: 1.0}, tmp_path / "mean")
    networks = [stored_network(path) for path in (one, two, tmp_path / "mean")]
    apart = 0
    for (name, a), (_, b), (_, mean) in zip(*(n.named_parameters() for n in networks), strict=True):
        wanted = (0.75 * a.float() + 0.25 * b.float()).to(a.dtype)
        assert torch.equal(mean, wanted), name
        apart += not torch.equal(mean, a)
    assert apart > 5
    assert (tmp_path / "mean" / "tokenizer.json").read_bytes() == (one / "tokenizer.json").read_bytes()


def test_one_alone_comes_back_bit_for_bit(tmp_path: Path) -> None:
    one = saved(tmp_path / "one", 1)
    average({one: 0.3}, tmp_path / "same")
    networks = [stored_network(path) for path in (one, tmp_path / "same")]
    assert all(torch.equal(a, b) for a, b in zip(*(n.parameters() for n in networks), strict=True))


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    one, two = saved(tmp_path / "one", 1), tmp_path / "two"
    bytes_only = byte_tokenizer()
    bytes_only.add_special_tokens(["<more>"])
    save_checkpoint(two, tokenizer=bytes_only)
    with pytest.raises(CheckpointError, match="another shape or tokenizer"):
        average({one: 0.5, two: 0.5}, tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


@pytest.mark.parametrize("share", ["=0.5", "DIR", "DIR=much", "DIR=-1"])
def test_a_share_that_is_none_is_an_error_that_says_how(
    share: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--out", "OUT", "--average", share])
    assert "such as DIR=0.5" in capsys.readouterr().err


def test_a_checkpoint_that_is_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["train", "--out", str(tmp_path / "mean"), "--average", "embedded=0.5", f"{tmp_path}/none=1"])
    assert code != 0
    assert "no checkpoint" in capsys.readouterr().err


def test_the_command_writes_the_mean(tmp_path: Path) -> None:
    one, two = (saved(tmp_path / str(seed), seed) for seed in (1, 2))
    assert main(["train", "--out", str(tmp_path / "mean"), "--average", f"{one}=0.5", f"{two}=0.5"]) == 0
    assert load_checkpoint(str(tmp_path / "mean"), "cpu").digest
