"""The embedded checkpoint itself: whole, small, honest about its tokens, and really filling."""

import json
import random
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DiffusionGemmaForBlockDiffusion

from dg_lsp.bench.files import read_listed
from dg_lsp.bench.holes import make_cases
from dg_lsp.context import prompt
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import fill as infill
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document, DocumentError
from tests.guard.faulty import faults

FILES = Path(str(resources.files("dg_lsp.model") / "embedded"))


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    return load_checkpoint("embedded", "cpu")


def heldout() -> list[Document]:
    """The installed files that the checkpoint was not trained on, in the listed versions."""
    found = []
    for entry in json.loads((FILES / "heldout.json").read_text())["files"]:
        with suppress(DocumentError, ValueError):
            found.append(read_listed(entry["path"], entry["sha256"]))
    return found


def run(model: Checkpoint, request: Infill) -> list[Draft | Fill]:
    return list(infill(model, PrefixCache(model.network.config.text_config), request))


def test_it_is_small_and_of_the_released_architecture(model: Checkpoint) -> None:
    assert isinstance(model.network, DiffusionGemmaForBlockDiffusion)
    assert model.canvas_lengths == (64, 128, 256)
    slow = torch.backends.cpu.get_cpu_capability() in {"DEFAULT", "AVX2"}
    assert model.network.dtype == (torch.float32 if slow else torch.bfloat16)
    assert (FILES / "model.safetensors").stat().st_size <= 32 * 2**20
    assert not [f for f in FILES.iterdir() if f.suffix in {".bin", ".pt", ".pkl", ".ckpt"}]


def test_a_line_end_is_always_a_token_of_its_own(model: Checkpoint) -> None:
    for token, number in model.tokenizer.get_vocab().items():
        text = model.tokenizer.decode([number], skip_special_tokens=False)
        if number not in model.special and ("\n" in text or "\r" in text):
            assert text in {"\n", "\r"}, token


def test_any_text_comes_back_from_its_tokens(model: Checkpoint) -> None:
    chance = random.Random(2)
    letters = "aZ_09 \t\n\r\x00\x0c\u2028é中🙂()<eos>\x02\x03"
    for _ in range(300):
        text = "".join(chance.choices(letters, k=chance.randrange(40)))
        ids = model.encode(text)
        assert model.tokenizer.decode(list(ids), skip_special_tokens=False) == text
        assert not model.special.intersection(ids)


def test_a_cut_at_a_line_start_changes_no_token(model: Checkpoint) -> None:
    text = heldout()[0].text[:4000]
    for at in [n + 1 for n, c in enumerate(text) if c == "\n"]:
        assert model.encode(text[:at]) + model.encode(text[at:]) == model.encode(text)


def test_it_fills_real_gaps_and_says_why_where_it_does_not(model: Checkpoint) -> None:
    documents = heldout()
    filled = 0
    for kind, count in (("rest_of_line", 6), ("function_body", 2)):
        for case in make_cases(documents, kind, count, 5):  # type: ignore[arg-type]
            request = prompt.build(case.document, case.gap, Settings(prefix_bytes=2000))
            *drafts, fill = run(model, request)
            assert isinstance(fill, Fill)
            assert bool(fill.text) != bool(fill.refusal)
            if fill.text:
                filled += 1
                parts = (request.language, request.kind, request.prefix, fill.text, request.suffix)
                assert faults(*parts) == ()
                first = fill.text.strip().splitlines()[0]
                # What was mended is anchored but for the span that was freed last.
                text = shown(drafts[-1], anchors=bool(fill.repairs))
                assert first in text if fill.repairs else text.startswith(first), (
                    "the last Draft is the Fill's"
                )
    assert filled >= 3, "a model that fills nothing proves nothing"


def shown(draft: Any, *, anchors: bool = False) -> str:
    """What stands in the free slots, or in all, less the white space that fitting drops."""
    return "".join(run.text for run in draft.runs if anchors or not run.anchored).lstrip()


def test_the_same_request_gives_the_same_fill(model: Checkpoint) -> None:
    request = Infill("def area(r):\n    return ", "\n\n\nprint(area(2))\n", "python", "rest_of_line", seed=4)
    found = [run(model, request)[-1] for _ in range(2)]
    texts = [(f.text, f.refusal, f.score, f.steps) for f in found if isinstance(f, Fill)]
    assert texts[0] == texts[1]
