"""The judge: probabilities that add up, candidates of all sources compared alike, and what cannot be shown left out."""

from collections.abc import Generator
from dataclasses import replace

import pytest

from dg_lsp.messages import Draft, Fill, Infill, Retrieved
from dg_lsp.model import candidates
from dg_lsp.model import fill as whole
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.candidates import Candidate, merge_candidates
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import Way, best_fills
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.judge import SITUATIONS, chances, features, situation, sure_length
from dg_lsp.model.sources import bodies
from dg_lsp.model.task import Task

REQUEST = Infill("def area(r):\n    return ", "\n", "python", "rest_of_line")
# Whoever is found elsewhere is right.
TRUSTING = {str(name): {"one": -3.0, "retrieved": 6.0, "before": 1.0} for name in SITUATIONS}


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    return replace(load_checkpoint("embedded", "cpu"), judge=TRUSTING)


def forbidden(_: Task) -> Generator[Draft, None, list[Candidate]]:
    """A source that must not be asked."""
    pytest.fail("this source is not asked here")
    yield


def run(model: Checkpoint, request: Infill) -> Fill:
    fill = list(infill(model, PrefixCache(model.network.config.text_config), request))[-1]
    assert isinstance(fill, Fill)
    return fill


@pytest.mark.parametrize(
    ("prefix", "suffix", "wanted"),
    [
        ("x = 1\n    ", "\n", "line"),
        ("", "", "line"),
        ("x = ", "\ny", "rest"),
        ("x = ", "  \r\n", "rest"),
        ("f(", ")\n", "inside"),
        ("a\rx = ", "", "rest"),
    ],
)
def test_a_gap_is_a_line_its_rest_or_a_part_of_it(prefix: str, suffix: str, wanted: str) -> None:
    assert situation(Infill(prefix, suffix, "python", "rest_of_line")) == wanted


def test_the_chances_of_all_candidates_and_of_none_add_up_to_one() -> None:
    found = [
        Candidate("a", {"drafted": 0}, gap=3.0, tokens=1),
        Candidate("b", {"retrieved": 1}, gap=9.0, tokens=2),
    ]
    weights = {str(name): {"one": 0.5, "likelihood": 2.0} for name in SITUATIONS}
    both = chances(weights, REQUEST, found)
    assert 0 < both[1] < both[0] < 1 and sum(both) < 1
    # A rival takes probability from all others.
    assert chances(weights, REQUEST, found[:1])[0] > both[0]
    assert chances(weights, REQUEST, []) == []


def test_a_text_of_two_sources_is_one_candidate_that_knows_both() -> None:
    first = [Candidate(text, {"retrieved": rank}) for rank, text in enumerate(("a", "b"))]
    found = merge_candidates(
        first, [Candidate(text, {"denoised": n}) for n, text in enumerate(("b ", "c", ""))]
    )
    assert [(p.text, dict(p.sources)) for p in found] == [
        ("a", {"retrieved": 0}),
        ("b", {"retrieved": 1, "denoised": 0}),
        ("c", {"denoised": 1}),
    ]
    assert [row["agree"] for row in features(REQUEST, [replace(p, tokens=1) for p in found])] == [0, 1, 0]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("between", "wanted"), [(0, [1, 0]), (11, [1, 0]), (12, [0, 0])])
def test_a_candidate_that_repeats_a_line_just_above_says_so(
    end: str, between: int, wanted: list[float]
) -> None:
    lines = ["if found and value < 0:", *["    pass"] * between, "  if found and "]
    request = Infill(end.join(lines), f":{end}if found and value > 0:", "python", "expression")
    found = [Candidate(text, {"drafted": 0}, tokens=1) for text in ("value < 0", "value > 0")]
    assert [row["repeats"] for row in features(request, found)] == wanted


def test_a_sure_candidate_from_elsewhere_is_taken_without_denoising(model: Checkpoint) -> None:
    fill = run(model, replace(REQUEST, retrieved=(Retrieved("3.14 * r * r", before=6, behind=1),)))
    assert (fill.text, fill.source, fill.steps, fill.searched) == ("3.14 * r * r", "retrieved", 0, 0)
    assert fill.chance is not None and whole.SURE <= fill.chance < 1


def test_unasked_nothing_is_denoised_for_candidates_without_hope(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    hopeless = replace(model, judge={str(name): {"one": -9.0} for name in SITUATIONS})
    asked = replace(REQUEST, retrieved=(Retrieved("r * r", before=1),))
    assert run(hopeless, asked).searched, "who asks gets the best that can be had"
    monkeypatch.setitem(whole.WAYS, ("part", "judges"), replace(whole.WAYS["part", "judges"], last=forbidden))
    fill = run(hopeless, replace(asked, confidence=0.25))
    assert fill.text and fill.chance is not None and fill.chance < whole.HOPE


def test_what_would_add_an_error_or_leave_its_line_is_not_chosen(model: Checkpoint) -> None:
    wrong = tuple(Retrieved(text, before=9) for text in ("r)", "r\n    return 1", "return r", "   "))
    fill = run(model, replace(REQUEST, retrieved=(*wrong, Retrieved("r ** 2", before=1))))
    assert fill.text == "r ** 2"


def test_several_alternatives_come_from_all_sources_likeliest_first(model: Checkpoint) -> None:
    found = tuple(Retrieved(text, before=size) for text, size in (("r", 2), ("r * r", 6), ("2 * r", 4)))
    fill = run(model, replace(REQUEST, retrieved=found, alternatives=3))
    assert (fill.text, *fill.others) == ("r * r", "2 * r", "r")


@pytest.mark.parametrize(("confidence", "length"), [(0.05, 16), (0.2, 14), (0.31, 12), (0.6, 0)])
def test_a_beginning_is_as_likely_as_all_candidates_that_share_it(confidence: float, length: int) -> None:
    rated = [(0.15, "first.total(x), "), (0.1, "first.total(x)"), (0.1, "first.total(y)"), (0.2, "second")]
    assert sure_length("first.total(x), ", rated, confidence) == length


def test_where_only_a_beginning_is_sure_enough_it_is_offered_and_says_so(model: Checkpoint) -> None:
    found = tuple(Retrieved(f"math.pow({text})", before=3) for text in ("r, 2", "r, 1", "2, r", "r, r"))
    asked = replace(REQUEST, kind="expression", retrieved=found)
    plain = run(model, asked)
    assert plain.text.startswith("math.pow(") and plain.chance is not None and plain.chance < 0.4
    fill = run(model, replace(asked, confidence=plain.chance + 0.05))
    assert (fill.text, fill.partial, fill.others) == ("math.pow", True, ())
    assert fill.chance is not None and plain.chance < fill.chance <= 1
    assert run(model, replace(asked, confidence=1.0)).text == plain.text


def test_a_checkpoint_without_a_fitted_judge_says_no_chance(model: Checkpoint) -> None:
    fill = run(replace(model, judge={}), replace(REQUEST, retrieved=(Retrieved("r * r", before=6),)))
    assert fill.text and fill.chance is None


def test_a_denoised_text_keeps_its_steps_when_it_is_chosen(model: Checkpoint) -> None:
    found = [
        Candidate("r * r", {"denoised": 0}, Fill("r * r", steps=7), tokens=3),
        Candidate("2 +", {"retrieved": 0}, tokens=2),
    ]
    best = best_fills(model, replace(REQUEST, alternatives=2), found)
    assert [(f.text, f.steps, f.source) for f in best] == [("r * r", 7, "denoised")]


BODY = Infill("def area(r):\n    ", "\n\nx = 1\n", "python", "function_body", indent="    ", effort="low")


def test_measurements_that_give_the_length_are_denoised_only(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked in ("part", "body"):
        monkeypatch.setitem(whole.WAYS, (asked, "judges"), Way((forbidden,)))
    for request in (replace(BODY, like="return r * r"), replace(REQUEST, like="r * r")):
        fill = run(model, request)
        assert fill.chance is None and fill.source == "denoised" and fill.steps


def test_a_body_is_written_from_left_to_right_by_a_network_with_a_judge(model: Checkpoint) -> None:
    fill = run(model, BODY)
    assert fill.text and (fill.source, fill.steps) == ("drafted", 0)
    assert run(replace(model, judge={}), BODY).source == "denoised"


def test_where_no_written_body_can_be_shown_it_is_denoised(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> Generator[Draft, None, list[Fill]]:
        yield Draft(0, (), 0.0)
        return [bodies._fill_of(BODY, text) for text in (")", "pass\n", "a = 1\n    b = (")[: len(wanted)]]

    monkeypatch.setattr(bodies, "draft_bodies", write)
    wanted = [")", "pass"]
    assert run(model, BODY).source == "denoised"
    # Of the third text the first line can be shown.
    wanted.append("a")
    fill = run(model, replace(BODY, alternatives=2))
    assert (fill.text, fill.shortened, fill.source) == ("a = 1", True, "drafted")
    assert len(fill.others) == 1 and fill.others[0] != fill.text


DOCSTRING = Infill('def area(r):\n    """', '"""\n    return r\n', "python", "docstring", indent="    ")


def test_a_network_that_cannot_denoise_writes_docstrings_where_they_are_asked_for(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafting = replace(model, denoises=False)
    fill = run(drafting, DOCSTRING)
    assert fill.text and not fill.refusal and (fill.source, fill.chance) == ("drafted", bodies.DOCSTRINGS)
    assert run(model, DOCSTRING).source == "denoised"
    # Nothing is written that would not be shown.
    monkeypatch.setattr(bodies, "draft_bodies", lambda *_: pytest.fail("nothing is written here"))
    assert "ask for it" in run(drafting, replace(DOCSTRING, confidence=0.25)).refusal


def test_a_network_that_cannot_denoise_writes_no_selection_again(model: Checkpoint) -> None:
    span = Infill("def area(r):\n    ", "\n    return x\n", "python", "span", start="x = r", indent="    ")
    assert "delete the selected text" in run(replace(model, denoises=False), span).refusal


@pytest.mark.parametrize("request_", [REQUEST, BODY, DOCSTRING], ids=lambda one: one.kind)
def test_where_no_draft_can_be_shown_the_reason_is_that_of_the_best(
    request_: Infill, model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (candidates, bodies):
        monkeypatch.setattr(module, "why_refused", lambda *_: "it is no good")
    fill = run(replace(model, denoises=False), request_)
    assert not fill.text and "drafts could be shown; the best one: it " in fill.refusal
