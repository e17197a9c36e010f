"""Time as a plan: by the effort alone where nobody waits, else by what passes cost here and the time there is."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from dg_lsp.messages import OFF, Draft, Effort, Fill, Infill, Retrieved
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.costs import ROWS, SLOTS, Costs, keep_costs, kept_costs, measure
from dg_lsp.model.fill import fill
from dg_lsp.model.plan import FEW, Plan, plan_for, why_off
from tests.model.tiny import save_checkpoint, tiny_network

# The released shape in four bits on two cores, on sixteen, and on a card; the embedded checkpoint.
TWO, SIXTEEN = Costs(0.29, 2.9, 16.0), Costs(0.05, 0.45, 2.6)
CARD, EMBEDDED = Costs(0.07, 0.03, 0.07), Costs(0.003, 0.017, 0.09)
LINE = Infill("def f(a):\n    return ", "\n\n\nx = 1\n", "python", "rest_of_line")
BODY = Infill("def f(a):\n", "\n\n\nx = 1\n", "python", "function_body", indent="    ")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A tiny checkpoint of whose canvases it is said that they have 256 slots, as those of the released one."""
    path = tmp_path_factory.mktemp("tiny")
    save_checkpoint(path)
    return replace(load_checkpoint(str(path), "cpu"), canvas_lengths=(256,))


def planned(model: Checkpoint, request: Infill, costs: Costs, seconds: float | None) -> Plan:
    return plan_for(replace(request, deadline=seconds), replace(model, costs=costs))


def work(plan: Plan) -> tuple[int, ...]:
    """How much is denoised, in the order in which it is given up."""
    search = plan.search
    return plan.steps, plan.batch * plan.draws, len(search.lengths) * search.draws, plan.finalists


@pytest.mark.parametrize("effort", get_args(Effort))
@pytest.mark.parametrize("request_", [LINE, BODY], ids=["line", "body"])
def test_where_nobody_waits_the_plan_is_that_of_the_effort(
    model: Checkpoint, request_: Infill, effort: Effort
) -> None:
    asked = replace(request_, effort=effort)
    for costs in (TWO, EMBEDDED):
        assert planned(model, asked, costs, None) == plan_for(asked)
    assert plan_for(replace(asked, deadline=1.0), replace(model, costs=None)) == plan_for(asked)


def test_a_quick_network_does_what_the_effort_says_in_the_usual_deadline(model: Checkpoint) -> None:
    found = planned(replace(model, canvas_lengths=(64, 128)), LINE, EMBEDDED, 2.0)
    assert (work(found), found.drafts, found.drafted) == (work(plan_for(LINE)), plan_for(LINE).drafts, False)


@pytest.mark.parametrize("costs", [TWO, SIXTEEN, CARD, EMBEDDED])
@pytest.mark.parametrize("request_", [LINE, BODY], ids=["line", "body"])
def test_more_time_never_means_less_work(model: Checkpoint, request_: Infill, costs: Costs) -> None:
    plans = [planned(model, request_, costs, seconds) for seconds in (0.1, 1, 4, 10, 60, 300, 3000)]
    assert [work(plan) for plan in plans] == sorted(work(plan) for plan in plans)
    written = [plan.drafts.rows for plan in plans]
    assert written == sorted(written) and plans[0].drafts.rows >= 1 and plans[0].drafts.tokens >= 1
    assert work(plans[-1]) == work(plan_for(request_)), "with an hour all of it is done"


def test_a_slow_network_takes_short_canvases_few_steps_and_a_draft_to_start_from(model: Checkpoint) -> None:
    found = planned(model, LINE, TWO, 20.0)
    assert (found.width, found.steps, found.drafted) == (64, FEW, True)
    assert found.least == pytest.approx(FEW * TWO.row)
    assert (
        planned(model, LINE, TWO, 300.0).width in (64, 256) and not planned(model, LINE, TWO, 300.0).drafted
    )
    assert planned(model, LINE, CARD, 60.0).width == 256, (
        "as the checkpoint has learned it, where there is time"
    )


def test_what_is_drafted_fits_the_time(model: Checkpoint) -> None:
    for seconds in (2.0, 10.0, 120.0):
        for request in (LINE, BODY):
            drafts = planned(model, request, TWO, seconds).drafts
            assert drafts.tokens * TWO.seconds(drafts.rows) <= seconds
    assert planned(model, BODY, TWO, 120.0).drafts.tokens > 90, "a body can be written in two minutes"


@pytest.mark.parametrize(
    ("costs", "deadline", "confidence", "off"),
    [
        (TWO, 2.0, 0.25, True),
        (TWO, 2.0, 0.0, False),  # somebody has asked
        (TWO, None, 0.25, False),
        (TWO, 10.0, 0.25, False),
        (SIXTEEN, 2.0, 0.25, False),
        (EMBEDDED, 2.0, 0.25, False),
        (None, 0.001, 0.25, False),
    ],
)
def test_ghost_text_that_cannot_come_in_time_is_off_and_says_why(
    model: Checkpoint, costs: Costs | None, deadline: float | None, confidence: float, off: bool
) -> None:
    why = why_off(replace(LINE, deadline=deadline, confidence=confidence), replace(model, costs=costs))
    assert bool(why) == off
    if off:
        assert why.startswith(OFF) and "2.4 s" in why and "ghostDeadline leaves 2.0 s" in why


def test_between_what_is_measured_costs_lie_on_a_line() -> None:
    costs = Costs(1.0, 2.0, 9.0)
    assert [costs.seconds(n) for n in (0, 1, SLOTS, ROWS * SLOTS)] == [1.0, 1.0, 2.0, 9.0]
    assert costs.seconds(SLOTS + 224) == pytest.approx(5.5)
    assert costs.seconds(2 * ROWS * SLOTS) > 16


def test_costs_are_kept_of_some_places_unless_they_are_soon_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    slow, file = Costs(0.05, 0.25, 2.0), tmp_path / "dg-lsp" / "costs.json"
    assert kept_costs("a") is None
    keep_costs("a", Costs(0.001, 0.02, 0.1))
    assert not file.exists()
    for place in (*"abc", *map(str, range(40)), "b"):
        keep_costs(place, slow)
    assert kept_costs("b") == kept_costs("39") == slow and kept_costs("a") is None
    assert len(json.loads(file.read_text())) == 32
    for text in ("", "[]", "[" * 9000, '{"b": 1}', '{"b": [1, 2]}', '{"b": [NaN, 1, 2]}', '{"b": [0, 1, 2]}'):
        file.write_text(text)
        assert kept_costs("b") is None
    keep_costs("b", slow)
    assert kept_costs("b") == slow
    file.unlink()
    file.mkdir()
    keep_costs("b", slow)
    assert kept_costs("b") is None


def test_costs_are_measured_in_some_seconds_however_slow_the_network(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = measure(tiny_network(0))
    assert found is not None and 0 < found.token <= found.row <= found.rows
    clock, passes, real = [0.0], [0], model.network.read
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    monkeypatch.setattr("time.process_time", lambda: clock[0])

    def slow(*given: object) -> object:
        clock[0] += 0.4
        passes[0] += 1
        return real(*given)

    monkeypatch.setattr(type(model.network), "read", lambda _, *given: slow(*given))
    found = measure(model.network)
    assert found is not None and passes[0] == 2
    assert (found.token, found.row) == pytest.approx((0.4, 4.0)) and found.rows > 16


def filled(model: Checkpoint, request: Infill) -> tuple[Sequence[Draft], Fill]:
    *drafts, last = fill(model, PrefixCache(model.network.text_config), request)
    assert isinstance(last, Fill)
    return [event for event in drafts if isinstance(event, Draft)], last


@pytest.mark.parametrize("request_", [LINE, BODY], ids=["line", "body"])
def test_without_a_deadline_costs_change_nothing(model: Checkpoint, request_: Infill) -> None:
    asked, usual = replace(request_, effort="low"), replace(model, canvas_lengths=(64, 128))
    fills = [filled(replace(usual, costs=costs), asked)[1] for costs in (None, TWO)]
    assert len({replace(one, milliseconds=0) for one in fills}) == 1


def test_where_time_is_short_little_is_denoised_and_a_body_is_drafted(model: Checkpoint) -> None:
    # Costs that this network does not have: it has the time, and plans as if it had not.
    short = replace(model, costs=Costs(0.29, 1.0, 90.0), canvas_lengths=(256,))
    asked = replace(LINE, deadline=30.0, effort="high", retrieved=(Retrieved("a + 1"),))
    drafts, line = filled(short, asked)
    assert line.searched == 0 and max(draft.step for draft in drafts) <= FEW
    _, body = filled(short, replace(BODY, deadline=30.0))
    assert body.source == "drafted" or body.refusal
