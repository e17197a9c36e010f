"""Bits per byte of the true texts of holes under a checkpoint: by the denoiser at several times, and by the encoder.

    python -m benchmarks.embedded.bits --checkpoint embedded --cases 125

Nothing is sampled but noise, so the table shows progress that exact matches do not show yet.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F

from benchmarks import parser_of
from dg_lsp.bench import lists
from dg_lsp.bench.holes import HOLES
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.canvas import LayoutError, lay_out
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.denoise import step_logits
from dg_lsp.model.networks.decoder import capped_logits
from dg_lsp.model.tokens import tokenise
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Infill
from dg_lsp.text.prompts import prompt

TIMES = (0.25, 0.5, 0.75, 1.0)  # shares of the free slots that are noise
DRAWS = 8  # draws of noise at each time


@torch.inference_mode()
def bits_of_gap(
    model: Checkpoint, request: Infill, times: Sequence[float] = TIMES, draws: int = DRAWS
) -> dict[str, float]:
    """The bits of the text `request.like` in the gap: by time for the denoiser, under "ahead" for the encoder.

    The canvas is the engine's for the true length. At time t each free slot is replaced by a random token with
    probability t; the cross-entropy is summed over all free slots, as in the training loss, without self-conditioning,
    and averaged over `draws`. The encoder reads from left to right and sees no suffix.

    Raises:
        LayoutError: the text is too long for any canvas of the checkpoint.
    """
    assert request.like
    truth = torch.tensor(model.encode(request.like))
    prefix, seam = tokenise(model, request)
    slots = next((n for n in model.canvas_lengths if n >= len(seam.head) + len(truth) + 1), None)
    if slots is None:
        raise LayoutError(f"{len(truth)} tokens do not fit a canvas of {model.canvas_lengths[-1]} slots")
    canvas = lay_out(seam, len(truth), slots)
    row = canvas.tokens[0].clone()
    row[~canvas.anchored[0]] = truth
    cache = PrefixCache(model.network.config.text_config)
    for _ in extend_to(model.network, cache, prefix):
        pass
    # A generator on the CPU gives the same noise for every checkpoint and device.
    noise = torch.Generator().manual_seed(request.seed)
    free = (~canvas.anchored).repeat(draws, 1)
    places = free.flatten().nonzero().squeeze(1).to(model.device)
    wanted = truth.repeat(draws).to(model.device)
    found = {}
    for time in times:
        rows = row.repeat(draws, 1)
        hit = (torch.rand(rows.shape, generator=noise) < time) & free
        rows = torch.where(hit, torch.randint(model.vocabulary, rows.shape, generator=noise), rows)
        logits = step_logits(model.network, cache.seen_by(draws), rows.to(model.device), places, None)
        found[str(time)] = float(F.cross_entropy(logits, wanted, reduction="sum")) / draws / math.log(2)
    whole = torch.tensor([[*prefix, *seam.head, *truth.tolist()]], device=model.device)
    states = model.network.model.encoder.language_model(input_ids=whole).last_hidden_state
    logits = capped_logits(model.network, states[0, -len(truth) - 1 : -1])
    found["ahead"] = float(F.cross_entropy(logits, truth.to(model.device), reduction="sum")) / math.log(2)
    return found


def bits_per_byte(
    model: Checkpoint, requests: Sequence[Infill], times: Sequence[float] = TIMES, draws: int = DRAWS
) -> dict[str, float]:
    """The bits of all gaps that fit a canvas, divided by their bytes in UTF-8; keys as in `bits_of_gap`."""
    bits: dict[str, float] = {}
    count = 0
    for number, request in enumerate(requests):
        try:
            found = bits_of_gap(model, replace(request, seed=number), times, draws)
        except LayoutError:
            continue
        count += len((request.like or "").encode("utf-8"))
        for name, value in found.items():
            bits[name] = bits.get(name, 0.0) + value
    return {name: value / max(count, 1) for name, value in bits.items()}


def as_text(found: dict[str, dict[str, float]]) -> str:
    """The table: a row for each kind, a column for each time of the denoiser, and one for the encoder."""
    columns = [*map(str, TIMES), "ahead"]
    wide = max(map(len, found))
    lines = [" ".join(["bits a byte".ljust(wide), *(f"{name:>6}" for name in columns)])]
    for kind, bits in found.items():
        lines.append(" ".join([kind.ljust(wide), *(f"{bits[name]:6.3f}" for name in columns)]))
    note = f"columns: the denoiser at time t, {DRAWS} draws, given the length; ahead: the encoder, without the suffix"
    return "\n".join([*lines, "", note])


def main(given: Sequence[str] | None = None) -> None:
    """Measure the shipped holes and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--cases", type=int, default=125, help="holes of each kind")
    options = parser.parse_args(given)
    model, settings = load_checkpoint(options.checkpoint, "auto"), Settings(checkpoint=options.checkpoint)
    cases, _ = lists.read(lists.shipped(), list(HOLES), options.cases)
    found: dict[str, dict[str, float]] = {}
    for kind in HOLES:
        asked = [
            replace(prompt.build(case.document, case.gap, settings), like=case.truth)
            for case in cases
            if case.kind == kind and case.truth.strip()
        ]
        found[f"{kind} ({len(asked)})"] = bits_per_byte(model, asked)
    print(as_text(found))


if __name__ == "__main__":
    main()
