"""The tokens of a request: those to encode before the canvas, and those on both sides of the gap."""

from dataclasses import replace

from dg_lsp.engine.canvas import Seam
from dg_lsp.engine.fill.plan import plan_for
from dg_lsp.engine.load.checkpoint import Checkpoint
from dg_lsp.engine.load.frame import frame_of
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import Infill
from dg_lsp.text.prompts.prompt import shortened

# Bytes per token that are tried, the most first, when a prefix is cut to a number of tokens.
BYTES_PER_TOKEN = (4, 3.5, 3, 2.5, 2, 1.5, 1)


def tokenise(model: Checkpoint, request: Infill) -> tuple[tuple[int, ...], Seam]:
    """The tokens to encode (the prompt's frame, then whole lines), and the seam of the canvas (head of line, suffix).

    A prefix that is too long for the checkpoint is shortened by the text layer, which keeps the imports and headers
    from above the cut, and moves the cut in large hops so that the cached prefix survives typing. If the head is longer
    than a quarter of the canvas, its beginning is encoded with the prefix.
    """
    lines, head = _lines_and_head(model, request.prefix)
    if len(lines) + len(head) >= model.max_prefix:
        request = _shortened(model, request)
        lines, head = _lines_and_head(model, request.prefix)
    keep = plan_for(request).slots // 4
    if len(head) > keep:
        lines, head = lines + head[:-keep], head[-keep:]
    hop = max(model.max_prefix // 2, 1)
    over = max(len(lines) + 1 - model.max_prefix, 0)
    lines = lines[-(-over // hop) * hop :]
    frame = frame_of(model.tokenizer, model.style, model.bos, request)
    return (*frame.before, *lines), Seam(head, model.encode(request.suffix) + frame.after, model.eos)


def _lines_and_head(model: Checkpoint, prefix: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens of the whole lines of `prefix`, and those of the line that it ends in."""
    start = max(prefix.rfind("\n"), prefix.rfind("\r")) + 1
    return model.encode(prefix[:start]), model.encode(prefix[start:])


def _shortened(model: Checkpoint, request: Infill) -> Infill:
    """`request` with its prefix cut to fewer tokens than the checkpoint takes; BYTES_PER_TOKEN are tried in turn."""
    before = request.prefix.encode("utf-8", "replace")
    for share in BYTES_PER_TOKEN:
        if len(model.encode(request.prefix)) < model.max_prefix:
            break
        short = shortened(load_language(request.language), before, int(share * model.max_prefix))
        request = replace(request, prefix=short.decode("utf-8"))
    return request
