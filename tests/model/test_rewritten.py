"""Lines that follow edits: the prompt is a diff, and the text is what the network writes token by token after it."""

import math
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks import run_to_end
from dg_lsp.messages import Draft, Fill, Hunk, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import fill
from dg_lsp.model.prompts.diff import diff_of, opening_of
from dg_lsp.model.sources import rewritten as source
from dg_lsp.model.sources.rewritten import UNSURE
from dg_lsp.model.tokens import tokenise
from tests.model.oracle import task_of
from tests.model.test_fim import Knowing, names_of, save, tokenizer_with

MADE = Hunk("a.py", 3, "def area(r):", "    x = r\n", "    y = 2 * r\n", "    y = 3 * r\n    z = 1\n", "\n")
LINE = Hunk("a.py", 9, "def half(x):", "    a = x\n", "    b = 2 * x\n", "", "    return b\n")
OTHER = replace(LINE, path="b.py", scope="")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    path = save(tmp_path_factory.mktemp("coder"), tokenizer_with(names_of("Qwen2.5-Coder, Qwen3-Coder")))
    loaded = load_checkpoint(str(path), "cpu")
    return replace(loaded, network=loaded.network.double())


def request(*edits: Hunk) -> Infill:
    return Infill("", "", "python", "statement", edits=edits or (MADE, LINE))


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How much likelier new lines are in the file, in nats: all of them, and all but one of them, of each one."""
    found = [3.0]

    def unlikely(*texts: object) -> Generator[Draft, None, list[float]]:
        yield from ()
        return [30.0, 30.0 - found[0], *(30.0 - gain for gain in found[1:])]

    monkeypatch.setattr(source, "_unlikely_in_file", unlikely)
    return found


def last(model: Checkpoint, asked: Infill) -> Fill:
    *_, found = fill(model, PrefixCache(model.network.text_config), asked)
    assert isinstance(found, Fill)
    return found


def test_hunks_are_a_unified_diff() -> None:
    assert diff_of([MADE, MADE]) == (
        "--- a/a.py\n+++ b/a.py\n"
        "@@ -3,3 +3,4 @@ def area(r):\n     x = r\n-    y = 2 * r\n+    y = 3 * r\n+    z = 1\n \n"
        "@@ -3,3 +3,4 @@ def area(r):\n     x = r\n-    y = 2 * r\n+    y = 3 * r\n+    z = 1\n \n"
    )
    assert opening_of(LINE, "a.py") == "@@ -9,3 +9,3 @@ def half(x):\n     a = x\n"
    assert opening_of(OTHER, "a.py") == "--- a/b.py\n+++ b/b.py\n@@ -9,3 +9,3 @@\n     a = x\n"


def knowing(model: Checkpoint, after: str, line: Hunk = LINE) -> Checkpoint:
    """A network that is sure of the text `after` the line was removed."""
    network = Knowing(model)
    parts = diff_of([MADE]), opening_of(line, "a.py"), f"-{line.removed}", "+", after
    network.whole = tuple(token for part in parts for token in model.encode(part))
    return replace(model, network=network)


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ("    b = 3 * x\n     return b\n", "    b = 3 * x\n"),
        ("    b = 3 * x\n+    c = 1\n     return b\n", "    b = 3 * x\n    c = 1\n"),
        ("\n+    b = é\n@@", "\n    b = é\n"),
    ],
)
@pytest.mark.usefixtures("fits")
def test_the_lines_are_written_that_the_network_is_sure_of(model: Checkpoint, after: str, text: str) -> None:
    found = last(knowing(model, after), request())
    assert (found.text, found.refusal, found.source) == (text, "", "drafted")
    assert found.score == pytest.approx(0.0, abs=0.01)


@pytest.mark.usefixtures("fits")
def test_a_line_of_another_file_gets_the_header_of_that(model: Checkpoint) -> None:
    known = knowing(model, "    b = 3 * x\n     return b\n", OTHER)
    assert last(known, request(MADE, OTHER)).text == "    b = 3 * x\n"


@pytest.mark.parametrize(
    "after",
    ["    b = 2 * x\n     return b\n", "    b = 3 * x", "".join(f"    b{n} = 1\n+" for n in range(20))],
)
@pytest.mark.usefixtures("fits")
def test_a_line_that_stays_or_has_no_end_is_not_offered(model: Checkpoint, after: str) -> None:
    found = last(knowing(model, after), request())
    assert (found.text, found.refusal) == ("", UNSURE)


@pytest.mark.usefixtures("fits")
def test_few_passes_write_a_line_that_is_nearly_the_old_one(model: Checkpoint) -> None:
    line = replace(LINE, removed="    b = x * x + 2 * x + half(x) + half(x) + area(r) + 2 * x\n")
    new = line.removed.replace("2 * x +", "3 * x +")
    known = knowing(model, f"{new}     return b\n", line)
    assert last(known, request(MADE, line)).text == new
    assert known.network.passes <= 8 < len(model.encode(new)) / 2


@pytest.mark.parametrize(
    ("gains", "is_shown"),
    [
        ((8.0, 0.0), True),
        ((8.0, -3.0), False),
        ((6.0, 8.1), True),
        ((3.0, 6.9), False),
        ((3.0, 7.1), True),
        ((2.4, 30.0), False),
        ((11.1, -30.0), True),
    ],
)
def test_lines_that_gain_too_little_after_the_edits_and_in_the_file_are_not_offered(
    model: Checkpoint,
    fits: list[float],
    gains: tuple[float, float],
    is_shown: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gain, fits[0] = gains
    begin = source._begin
    monkeypatch.setattr(source, "_begin", lambda *given: replace(begin(*given), same=-gain))
    assert bool(last(knowing(model, "    b = 3 * x\n     return b\n"), request()).text) == is_shown


@pytest.mark.parametrize(
    ("gains", "is_likely"),
    [
        ((3.3,), True),
        ((3.1,), False),
        ((9.0, 2.0, 5.0), True),
        ((9.0, 2.0, 6.0), False),
        ((8.4, 8.0, 0.1), False),
    ],
)
def test_lines_that_are_given_are_rated_with_each_of_them_left_out(
    model: Checkpoint, fits: list[float], gains: tuple[float, ...], is_likely: bool
) -> None:
    fits[:] = gains
    old, new = ("".join(f"    {kind} a{n}\n" for n in range(len(gains) - 1 or 1)) for kind in ("int", "long"))
    found = last(model, request(MADE, replace(LINE, removed=old, added=new)))
    assert (found.text, -found.score if is_likely else 0) == (
        (new, pytest.approx(gains[0])) if is_likely else ("", 0)
    )


@pytest.mark.usefixtures("fits")
def test_the_texts_that_are_compared_leave_one_line_out(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    rated = list[str]()

    def unlikely(_: object, *texts: str) -> Generator[Draft, None, list[float]]:
        rated.extend(texts)
        yield from ()
        return [0.0] * len(texts)

    monkeypatch.setattr(source, "_unlikely_in_file", unlikely)
    last(model, request(MADE, replace(LINE, removed="a\nb\nc\n", added="A\nb\nC\n")))
    assert rated == ["a\nb\nc\n", "A\nb\nC\n", "a\nb\nC\n", "A\nb\nc\n"]


def test_lines_are_compared_in_the_file_as_the_text_of_a_gap(model: Checkpoint) -> None:
    asked = Infill("a = 1\n", "\nc = 3\n", "python", "statement", edits=(MADE, LINE))
    old, new = "b = 2\n", "b = 2 * a\n"
    _, found = run_to_end(source._unlikely_in_file(task_of(model, asked), old, new))
    around = replace(asked, edits=(), kind="rest_of_line")
    prefix, seam = tokenise(model, around)
    nats = list[float]()
    for text in (old, new):
        tokens = [*prefix, *seam.head, *model.encode(text.rstrip("\n")), model.ends[0]]
        with torch.inference_mode():
            likely = model.network.network(torch.tensor([tokens])).logits[0].log_softmax(-1)
        first = len(prefix) + len(seam.head)
        nats.append(-sum(float(likely[at - 1, tokens[at]]) for at in range(first, len(tokens))))
    assert found == pytest.approx(nats, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_text_and_its_likelihood_are_those_of_one_token_after_the_other(
    model: Checkpoint, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, plain = model.encode(LINE.removed), source.text_logits
    # Some tokens are likelier everywhere, so that the texts differ and lines end.
    more = torch.randn(model.vocabulary, generator=torch.Generator().manual_seed(seed))
    more[[model.encode("\n")[0], model.encode("+")[0]]] += 4
    monkeypatch.setattr(source, "_SURE", -math.inf)
    monkeypatch.setattr(source, "text_logits", lambda model, states: 40 * plain(model, states) + more)
    start = [t for text in (diff_of([MADE]), opening_of(LINE, "a.py")) for t in model.encode(text)]
    before, text, score = [*start, *model.encode(f"-{LINE.removed}"), *model.encode("+")], "", 0.0

    def likely(tokens: list[int]) -> torch.Tensor:
        with torch.inference_mode():
            states = model.network.network.model(torch.tensor([tokens])).last_hidden_state[0, -1:]
            return source.text_logits(model, states)[0].log_softmax(-1)

    for _ in range(source._LINES):
        tokens = list[int]()
        while not (tokens and source._ends_line(model, tokens[-1])):
            found = likely([*before, *tokens])
            tokens.append(int(found.argmax()))
            score += float(found.max())
            if len(tokens) > len(own) + source._LONGER:
                break
        before += tokens
        text += model.tokenizer.decode(tokens).split("\n")[0] + "\n"
        added = float(likely(before)[source.tokens_across(model, "+")].exp().sum())
        if added < 0.5:
            score += math.log1p(-added)
            break
        score += math.log(added)
        before += model.encode("+")
    task = task_of(model, request())
    list(task.encode(model.encode(diff_of([MADE]))))
    with torch.inference_mode():
        begun = source._begin(task, LINE, opening_of(LINE, "a.py"))
        _, got = run_to_end(source._written(task, begun))
    ended = len(tokens) <= len(own) + source._LONGER
    assert got == ((text, pytest.approx(score, abs=1e-3)) if ended else ("", -math.inf))


def test_a_network_that_sees_one_side_follows_no_edit(model: Checkpoint, tmp_path: Path) -> None:
    found = last(replace(model, ends=()), request())
    assert "fill-in-the-middle" in found.refusal and not found.text
