"""Bodies longer than a canvas: what several canvases write, a denoiser that knows the truth in the network's place."""

from dataclasses import replace

import pytest

from dg_lsp.context import prompt
from dg_lsp.gaps.find import Gap
from dg_lsp.messages import Draft, Fill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.prompts.chat import far_suffix
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from tests.model.oracle import Oracle, long_bodies, talking, write_with

SETTINGS = Settings(effort="high", prefix_bytes=2000, suffix_bytes=1000)
BODIES = 12


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    return load_checkpoint("embedded", "cpu")


def filled(
    model: Checkpoint, oracle: Oracle, document: Document, gap: Gap, body: str
) -> tuple[list[Draft], Fill]:
    request = replace(prompt.build(document, gap, SETTINGS), like=body)
    *drafts, fill = infill(model, PrefixCache(model.network.config.text_config), request)
    assert isinstance(fill, Fill)
    return [d for d in drafts if isinstance(d, Draft)], fill


@pytest.mark.parametrize("talks", [False, True], ids=["file", "chat, far suffix"])
def test_a_long_body_comes_back_line_for_line(
    model: Checkpoint, talks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stitched = far = 0
    if talks:
        model = talking(model)
    for document, gap, body in long_bodies(model, 300, 1500, BODIES):
        oracle = Oracle(model, document, gap)
        write_with(monkeypatch, oracle)
        drafts, fill = filled(model, oracle, document, gap, body)
        assert fill.text == body.strip(), (document.uri, gap.name, fill.refusal)
        *opened, last = oracle.layouts
        assert all(opened) and not last, "the suffix is reached once, by the last canvas"
        stitched += len(opened)
        shown = "".join(run.text for run in drafts[-1].runs)
        assert body.strip() in shown or len(drafts[-1].runs) > 2
        far += bool(far_suffix(document.data[gap.end :].decode("utf-8")[:1000]).strip())
    # The standard library differs from Python to Python.
    assert stitched > 1.5 * BODIES and far >= 2
