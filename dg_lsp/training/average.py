"""The mean of checkpoints that share their beginnings: often better than each of them, and no larger.

After Wortsman et al. 2022, "Model soups" (arXiv:2203.05482): weights of runs that went on from one ancestor, and whose
rates fell to nothing, lie in one basin of the loss. Knows checkpoint directories; knows no training.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch

from dg_lsp.engine.load.manifest import read_about, verify
from dg_lsp.engine.load.weights import FETCH_AGAIN, CheckpointError
from dg_lsp.training.export import export_like
from dg_lsp.training.shape import stored_network


def average(shares: Mapping[Path, float], to: Path) -> None:
    """Write the mean of the checkpoints to the directory `to`, each weight in proportion to its checkpoint's share.

    All that is not a weight, and the learning curve, is the first one's. The means are formed in fp32 and written in
    bf16.

    Raises:
        CheckpointError: a file of one of them is damaged, or it differs from the first in its tokenizer or its shape.
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
    told = [f"{share / whole:.2f} x ({read_about(path).get('note', path)})" for path, share in shares.items()]
    export_like(network, first, to, {"note": " + ".join(told)})
    for curve in first.glob("curve.*"):
        shutil.copyfile(curve, to / curve.name)
