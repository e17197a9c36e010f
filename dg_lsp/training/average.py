"""Averages of checkpoints with one ancestor: often better than each of them, and no larger.

After "Model soups" (Wortsman et al. 2022, arXiv:2203.05482): such weights lie in one basin of the loss if each run's
learning rate fell to 0. Knows checkpoint directories; knows no training.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch

from dg_lsp.checkpoints import FETCH_AGAIN, CheckpointError, read_about
from dg_lsp.model.manifest import verify
from dg_lsp.training.export import export_like
from dg_lsp.training.shape import stored_network


def average(shares: Mapping[Path, float], to: Path) -> None:
    """Write the weighted average of checkpoints as a checkpoint to the directory `to`.

    shares: the weight of each checkpoint, by its directory; they need not sum to 1. All other files are the first
    checkpoint's. The average is computed in fp32 and written in bf16.

    Raises:
        CheckpointError: a file is damaged, or the checkpoints differ in their tokenizers or their shapes.
    """
    for path in shares:
        verify(path)
    first, *others = shares
    network, whole = stored_network(first), sum(shares.values())
    weights = dict(network.named_parameters())
    total = {name: weight.float() * (shares[first] / whole) for name, weight in weights.items()}
    for path in others:
        more = dict(stored_network(path).named_parameters())
        alike = {n: w.shape for n, w in more.items()} == {n: w.shape for n, w in weights.items()}
        if not alike or (path / "tokenizer.json").read_bytes() != (first / "tokenizer.json").read_bytes():
            raise CheckpointError(
                f"{path} has another shape or tokenizer than {first}, so their mean means nothing; {FETCH_AGAIN}"
            )
        for name, weight in more.items():
            total[name] += weight.float() * (shares[path] / whole)
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(total[name])
    notes = [
        f"{share / whole:.2f} x ({read_about(path).get('note', path)})" for path, share in shares.items()
    ]
    export_like(network, first, to, {"note": " + ".join(notes)})
    for curve in first.glob("curve.*"):
        shutil.copyfile(curve, to / curve.name)
