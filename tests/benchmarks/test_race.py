"""The race: that all contestants do the same work, that nobody's clock lies, and what the report makes of it."""

import builtins
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.race import fills as race_fills
from benchmarks.race import rivals as race_rivals
from benchmarks.race import run as race
from benchmarks.race import text as race_text
from benchmarks.race.__main__ import main
from benchmarks.race.fills import VARIANTS, Filled, fill_cases, summarise
from benchmarks.race.laps import CONTESTANTS, Course, Lap, Watch, lay, run_course
from benchmarks.race.rivals import find_rivals, run_generate
from benchmarks.released import build
from dg_lsp.bench.holes import make_cases
from dg_lsp.model.cache import CHUNK, extend_to
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.training.shape import fresh_network
from tests.model.tiny import VOCABULARY, save_checkpoint, tiny_config, tiny_network

COURSE = Course(prefix=300, canvas=24, free=7, steps=5)
TEXT = tuple((7 * i + i // 5) % VOCABULARY for i in range(700))
SOURCE = '"""Sums."""\n\n\ndef add(left, right):\n    """Return the sum."""\n    return left + right\n'


@dataclass
class Work:
    """What a network was made to do: the shape of each canvas, tokens encoded."""

    canvases: list[tuple[int, int]]
    encoded: list[int]


@pytest.fixture
def network() -> Any:
    return tiny_network(3)


@pytest.fixture
def work(network: Any) -> Iterator[Work]:
    """Counted in the network itself, since each contestant counts its own steps."""
    done = Work([], [])

    decoder, encoder = network.model.decoder.norm, network.model.encoder.language_model.norm
    hooks = [
        decoder.register_forward_pre_hook(lambda _, args: done.canvases.append(tuple(args[0].shape[:2]))),
        encoder.register_forward_pre_hook(lambda _, args: done.encoded.append(args[0].shape[1])),
    ]
    yield done
    for hook in hooks:
        hook.remove()


def without_diffusers(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "diffusers":
            raise ImportError(name)
        return usual(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_all_contestants_do_the_same_work(network: Any, work: Work) -> None:
    made: list[tuple[int, list[tuple[int, int]]]] = []

    def watched(rival: Callable[..., Lap]) -> Callable[..., Lap]:
        def run(tokens: Any, course: Course) -> Lap:
            work.encoded.clear()
            work.canvases.clear()
            lap = rival(tokens, course)
            made.append((sum(work.encoded), list(work.canvases)))
            assert sum(work.encoded) == len(tokens)
            return lap

        return run

    rivals = {name: watched(rival) for name, rival in find_rivals(network).items()}
    laps = run_course(network, TEXT, COURSE, 2, rivals)
    assert all(lap.steps == COURSE.steps for some in laps.values() for lap in some)
    assert made and all(canvases == [(1, COURSE.canvas)] * COURSE.steps for _, canvases in made)
    # The turn that is not counted has warmed up everybody.
    assert {name: len(some) for name, some in laps.items()} == dict.fromkeys(laps, 2)
    assert len(made) == 3 * len(rivals)
    assert network.config.canvas_length != COURSE.canvas, "the network is as it was"


def test_our_engine_encodes_what_is_new_and_no_more(network: Any, work: Work) -> None:
    laps = run_course(network, TEXT, COURSE, 1, {})
    assert set(laps) == {"cold", "typed", "same line", "cold, no anchors"}
    assert work.canvases == [(1, COURSE.canvas)] * COURSE.steps * 2 * 4
    rest = (COURSE.prefix - 1) % CHUNK + 1
    turn = [CHUNK, rest, 1, CHUNK, rest]  # cold, typed, nothing for the same line, cold without anchors
    assert work.encoded == turn * 2


def test_turns_are_spread_over_a_chunk(network: Any, work: Work) -> None:
    ends: list[int] = []

    def note(tokens: Any, course: Course) -> Lap:
        ends.append(len(tokens))
        return Lap(1.0, 1.0, 1)

    run_course(network, TEXT, Course(300, 16, 4, 1), 4, {"generate": note})
    counted = ends[1:]
    assert sum(counted) / 4 == 300
    assert sorted(end % (CHUNK // 4) for end in counted) == [counted[0] % (CHUNK // 4)] * 4
    assert len({end // (CHUNK // 4) for end in counted}) == 4


def test_no_engine_stops_early(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a network that would, as it is sure of one token whatever it is shown."""
    sure = 1000.0 * (torch.arange(VOCABULARY) == 5)
    monkeypatch.setattr(
        network.lm_head, "forward", lambda hidden: sure.expand(*hidden.shape[:-1], VOCABULARY)
    )
    usual = network.generate(input_ids=torch.tensor([TEXT[:30]]), max_new_tokens=16, eos_token_id=10**6)
    assert round(16 / float(usual.tokens_per_forward)) == 2
    laps = run_course(network, TEXT, COURSE, 1, find_rivals(network))
    assert {lap.steps for some in laps.values() for lap in some} == {COURSE.steps}


def test_a_clock_takes_the_first_step_and_the_whole() -> None:
    watch = Watch(torch.device("cpu"))
    watch.tick()
    early = watch.lap()
    watch.put_draft(None)
    late = watch.lap()
    assert (early.steps, late.steps, late.memory) == (1, 2, 0)
    assert 0 < late.first == early.first <= early.whole <= late.whole


def test_the_canvas_is_free_slots_and_then_what_follows_the_gap() -> None:
    canvas = lay(TEXT, 50, COURSE)
    assert canvas.free_slots.tolist() == list(range(7))
    assert tuple(canvas.tokens[0, 7:].tolist()) == TEXT[57:74]
    with pytest.raises(AssertionError, match="too short"):
        lay(TEXT, len(TEXT) - 20, COURSE)


def test_diffusers_is_left_out_where_it_is_not_installed(
    network: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_diffusers(monkeypatch)
    assert set(find_rivals(network)) == {"generate"}


def test_diffusers_denoises_as_generate_does(network: Any, work: Work) -> None:
    pytest.importorskip("diffusers", reason="diffusers is not installed: pip install 'dg-lsp[bench]'")
    lap = race_rivals.run_diffusers(race_rivals.open_pipeline(network), TEXT[:30], COURSE)
    assert lap.steps == 5
    theirs = (list(work.canvases), list(work.encoded))
    work.canvases.clear()
    work.encoded.clear()
    assert run_generate(network, TEXT[:30], COURSE).steps == 5
    assert theirs == (work.canvases, work.encoded)


def test_ratios_are_multiples_of_ours_and_bars_say_which_are_missed() -> None:
    laps = {
        "cold": [Lap(1.0, 4.0, 16), Lap(2.0, 5.0, 16), Lap(9.0, 9.0, 16)],
        "typed": [Lap(0.5, 2.0, 16)],
        "generate": [Lap(3.0, 4.0, 16, 7)],
    }
    found = race.compare(laps)
    assert (found["cold"]["first"], found["cold"]["whole"]) == (2.0, 5.0)
    assert found["generate"]["of_cold"] == [1.5, 0.8]
    assert found["generate"]["of_typed"] == [6.0, 2.0]
    fills = [
        {"kind": "rest_of_line", "effort": "normal", "length": length, "seconds": seconds}
        for length, seconds in (("given", 1.0), ("searched", 3.5))
    ]
    course = {"prefix": 2048, "canvas": 128, "steps": 16, "engines": found}
    bars = race.bars({"courses": [course], "fills": fills})
    assert [(bar.found, bar.is_held) for bar in bars] == [
        (0.8, False),
        (6.0, True),
        (2.0, True),
        (3.5, False),
    ]


def test_summaries_count_only_what_was_offered() -> None:
    def filled(seconds: float, steps: int, offered: bool) -> Filled:
        return Filled("a:1", "rest_of_line", "low", "searched", seconds, steps, 2 * steps, 12, offered, False)

    (record,) = summarise([filled(1.0, 4, True), filled(3.0, 8, True), filled(2.0, 0, False)])
    assert (record["holes"], record["seconds"], record["steps"]) == (3, 2.0, 6.0)
    assert (record["tokens_per_step"], record["passes"], record["offered"]) == (2.0, 8.0, 0.6667)
    (nothing,) = summarise([filled(1.0, 0, False)])
    assert (nothing["steps"], nothing["tokens_per_step"]) == (None, None)


def test_a_hole_is_filled_in_every_variant_with_its_prefix_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path)
    model = load_checkpoint(str(tmp_path), "cpu")
    document = Document("sums.py", "python", 0, SOURCE.encode())
    cases = make_cases([document], "rest_of_line", 1, 0)
    encoded: list[int] = []

    def noted(*arguments: Any, **more: Any) -> Iterator[int]:
        for length in extend_to(*arguments, **more):
            encoded.append(length)
            yield length

    monkeypatch.setattr("dg_lsp.model.fill.extend_to", noted)
    monkeypatch.setattr(race_fills, "extend_to", noted)
    filled = fill_cases(model, cases, Settings(), lambda _: None)
    assert [(f.effort, f.length) for f in filled] == list(VARIANTS)
    assert all(f.passes >= f.steps and f.passes > 0 and f.seconds > 0 for f in filled)
    # Once for the turn that is not counted and once for the others: no variant finds less encoded than the next.
    assert len(encoded) == 2
    assert not model.network.model.decoder.norm._forward_hooks, "what counted is gone"


def test_the_random_network_of_the_true_shape_is_tied_and_whole() -> None:
    """Encoder and decoder are one set of weights: two would take twice the memory and be another network."""
    made, usual = build(tiny_config(), torch.device("cpu"), 16), fresh_network(tiny_config(), 0)
    usual.model.encoder.vision_tower = usual.model.encoder.embed_vision = None
    assert [name for name, _ in made.named_parameters()] == [name for name, _ in usual.named_parameters()]
    assert made.lm_head.weight is made.model.decoder.embed_tokens.weight
    for (name, ours), (_, theirs) in zip(made.named_buffers(), usual.named_buffers(), strict=True):
        assert torch.equal(ours, theirs), name


def test_the_subcommand_prints_tables_and_writes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path / "model")
    (tmp_path / "sums.py").write_text(SOURCE)
    without_diffusers(monkeypatch)
    monkeypatch.setattr(race, "COURSES", (Course(200, 32, 8, 3),))
    report = tmp_path / "report.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks.race"])
    named = ["--files", tmp_path / "sums.py", "--checkpoint", tmp_path / "model", "--json", report]
    some = ["--device", "cpu", "--threads", "1", "--repeats", "1", "--kinds", "rest_of_line", "--cases", "1"]
    assert main([*map(str, named), *some]) == 0
    printed, told = capsys.readouterr().out, json.loads(report.read_text())
    assert race_text.MISSING in printed
    assert all(name in printed for name in CONTESTANTS)
    (course,) = told["courses"]
    assert set(course["engines"]) == set(CONTESTANTS) - {"diffusers"}
    assert course["engines"]["generate"]["steps"] == 3
    assert [fill["kind"] for fill in told["fills"]] == ["rest_of_line"] * 4
    assert [hole["effort"] for hole in told["holes"]] == ["normal", "low", "normal", "high"]
    assert {"found", "wanted", "held"} < set(told["bars"][0])
    assert told["threads"] == 1 and told["processor"] and "torch" in told["versions"] and told["load"]
