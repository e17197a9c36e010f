"""Similar functions in the prompt of a model that writes from left to right."""

from dataclasses import replace

import pytest

from dg_lsp.messages import Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.judge import PLAIN
from dg_lsp.model.sources import bodies
from dg_lsp.model.tokens import tokenise, with_similar

IMPORT = "import os\n\n\n"
SEEN = "def read_line(path):\n    return path + 1\n\n\n"
OWN = "def read_text(path):\n    "
UNSEEN = "def read_all(path):\n    return path + 2\n"
REQUEST = Infill(IMPORT + SEEN + OWN, "\n\n\n" + UNSEEN, "python", "function_body", indent="    ")


@pytest.fixture(scope="module")
def model(model: Checkpoint) -> Checkpoint:
    return replace(model, denoises=False, max_prefix=400)


def test_what_is_unseen_stands_right_before_the_function(model: Checkpoint) -> None:
    assert with_similar(model, REQUEST) == replace(REQUEST, prefix=IMPORT + SEEN + UNSEEN + "\n" + OWN)
    crlf = replace(REQUEST, prefix=REQUEST.prefix.replace("\n", "\r\n"), suffix="\r\n" * 3 + UNSEEN)
    assert with_similar(model, crlf).prefix.endswith(UNSEEN + "\r\n" + OWN.replace("\n", "\r\n"))


def test_what_is_cut_off_above_comes_back_and_all_fits(model: Checkpoint) -> None:
    filler = "".join(f"VALUE_{n} = {n}\n" for n in range(60))
    asked = replace(REQUEST, prefix=IMPORT + SEEN + filler + OWN, suffix="")
    told = with_similar(model, asked)
    assert told.prefix.endswith(SEEN[:-1] + OWN) and told.prefix.startswith("import os\n")
    assert len(model.encode(told.prefix)) < model.max_prefix
    assert tokenise(model, told)[0][1:] == tuple(model.encode(told.prefix))[: -len("    ")]


def test_else_the_request_stays_as_it_is(model: Checkpoint) -> None:
    for same, asked in (
        (model, replace(REQUEST, kind="block")),
        (model, replace(REQUEST, suffix="\n")),
        (model, replace(REQUEST, suffix="\n\n\ndef close():\n    return 2\n")),
        # It would take more than half of the prompt.
        (replace(model, max_prefix=120), REQUEST),
    ):
        assert with_similar(same, asked) == asked


def test_a_body_is_written_with_them(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def spied(model: Checkpoint, request: Infill) -> object:
        read.append(request.prefix)
        return tokenise(model, request)

    monkeypatch.setattr(bodies, "tokenise", spied)
    for able, told in ((model, True), (replace(model, denoises=True, judge=PLAIN), False)):
        read.clear()
        list(infill(able, PrefixCache(model.network.config.text_config), replace(REQUEST, effort="low")))
        assert (UNSEEN in read[0]) == told
