"""`dg-lsp bench --bits`: the bits per byte of the true texts of holes under a checkpoint, as a table.

Nothing is sampled or searched, so the table shows progress that exact matches do not show yet.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dg_lsp.bench.holes import HOLES, Case
from dg_lsp.checkpoints import CheckpointError
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.settings import Settings, UsageError
from dg_lsp.text.prompts import prompt
from dg_lsp.training.bits import DRAWS, TIMES, bits_per_byte


def run(arguments: argparse.Namespace, cases: Sequence[Case], settings: Settings) -> int:
    """Measure the bits of `cases`, print the table, and write the numbers to the file `--json`; return exit code 0.

    Raises:
        UsageError: the checkpoint cannot be used.
    """
    torch.set_num_threads(settings.threads or torch.get_num_threads())
    try:
        model = load_checkpoint(settings.checkpoint, settings.device)
    except CheckpointError as error:
        raise UsageError(str(error)) from error
    found: dict[str, dict[str, float]] = {}
    for kind in HOLES:
        asked = [
            replace(prompt.build(case.document, case.gap, settings), like=case.truth)
            for case in cases
            if case.kind == kind and case.truth.strip()
        ]
        if asked:
            found[f"{kind} ({len(asked)})"] = bits_per_byte(model, asked)
    print(as_text(found))
    if arguments.json:
        report: dict[str, Any] = {"checkpoint": settings.checkpoint, "digest": model.digest, "bits": found}
        Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def as_text(found: dict[str, dict[str, float]]) -> str:
    """The table: a row for each kind, a column for each time of the denoiser, and one for the encoder."""
    columns = [*map(str, TIMES), "ahead"]
    wide = max(map(len, found))
    lines = [" ".join(["bits a byte".ljust(wide), *(f"{name:>6}" for name in columns)])]
    for kind, bits in found.items():
        lines.append(" ".join([kind.ljust(wide), *(f"{bits[name]:6.3f}" for name in columns)]))
    note = f"columns: the denoiser at time t, {DRAWS} draws, given the length; ahead: the encoder, without the suffix"
    return "\n".join([*lines, "", note])
