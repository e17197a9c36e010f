"""Next edits in the scenarios of next_edit/: their bars, and edits that break nothing."""

import random

import pytest

from benchmarks.next_edit import Hunk, Player, Scenario, Way, play, read_scenarios
from dg_lsp.filling.next_edit import is_sound, next_edits
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit

SCENARIOS = read_scenarios()


@pytest.fixture(scope="module")
def results() -> list[tuple[Scenario, list[str], bool]]:
    """Each scenario with the edits that were offered in it, and whether its files ended as wanted."""
    played = [(scenario, play(scenario)) for scenario in SCENARIOS]
    return [(scenario, result.offered, result.right) for scenario, result in played]


def test_there_are_enough_scenarios_and_about_half_of_them_want_silence() -> None:
    silent = sum(not scenario.wanted for scenario in SCENARIOS)
    assert len(SCENARIOS) >= 60
    assert 0.4 * len(SCENARIOS) <= silent <= 0.6 * len(SCENARIOS)
    assert len({scenario.title for scenario in SCENARIOS}) == len(SCENARIOS)


def test_no_wrong_edit_is_offered(results: list[tuple[Scenario, list[str], bool]]) -> None:
    wrong = [(s.title, offered) for s, offered, right in results if offered and not s.wanted and not right]
    assert wrong == []
    for scenario, offered, _ in results:
        pairs = [(w.name, *("\n".join(lines).strip() for lines in (w.old, w.new))) for w in scenario.wanted]
        wanted = [f"{name}: {old} -> {new}" for name, old, new in pairs]
        assert set(offered) <= set(wanted), scenario.title


def test_most_wanted_edits_are_offered(results: list[tuple[Scenario, list[str], bool]]) -> None:
    missed = [s.title for s, _, right in results if s.wanted and not right]
    assert len(missed) <= 0.1 * len(SCENARIOS), missed


@pytest.mark.parametrize("way", ["lines", "whole"])
def test_clients_that_send_lines_or_the_whole_text_get_the_same(way: Way) -> None:
    results = [(scenario.title, play(scenario, way=way)) for scenario in SCENARIOS]
    assert [title for title, result in results if result.wrong] == []
    assert sum(not result.right for _, result in results) <= 0.1 * len(SCENARIOS)


def test_a_scenario_with_other_wishes_is_not_right() -> None:
    # The player can tell right from wrong.
    first = next(s for s in SCENARIOS if s.wanted)
    assert not play(Scenario("", first.files, first.edits, None, ())).right
    more = Hunk(first.wanted[0].name, 0, ("gone",), ("come",))
    assert not play(Scenario("", first.files, first.edits, None, (*first.wanted, more))).right


def test_a_burst_is_one_edit_however_many_keys_it_took() -> None:
    scenario = Scenario("", {"a.py": "one = 1\nprint(one)\nx = 2\n"}, (), None, ())
    player = Player(scenario)
    for hunk in (
        Hunk("a.py", 0, ("one = 1",), ("three = 1",)),
        Hunk("a.py", 0, ("three = 1",), ("three = 13",)),
        Hunk("a.py", 0, ("x = 2",), ("xy = 2",)),
    ):
        player.type(hunk)
    first, second = player.documents.bursts("file:///project/a.py")
    data = player.now("a.py").data
    assert [(first.before[a:b], data[c:d]) for a, b, c, d in first.spans(data)] == [
        (b"on", b"thre"),
        (b"", b"3"),
    ]
    assert second.before == b"three = 13\nprint(one)\nx = 2\n"


def test_random_edits_raise_nothing_and_places_are_within_their_document() -> None:
    chance, found = random.Random(1), 0
    pieces = [
        "a",
        "_",
        "(",
        ")",
        "{",
        "}",
        "\n",
        " ",
        ",",
        ".",
        "x1",
        "é",
        '"',
        "'",
        "=",
        "self",
        "await ",
        "\r\n",
        "#",
    ]
    for _ in range(60):
        scenario = chance.choice(SCENARIOS)
        player = Player(scenario)
        for _ in range(8):
            name = chance.choice([*scenario.files])
            text = player.now(name).text
            start = chance.randrange(len(text) + 1)
            end = min(len(text), start + chance.choice([0, 0, 1, 4]))
            first, last = (len(text[:at].encode()) for at in (start, end))
            player.replace(name, first, last, chance.choice(pieces) * chance.choice([0, 1, 1, 2]))
            document = player.now(name)
            others = [player.now(other) for other in scenario.files if other != name]
            bursts = player.documents.bursts(document.uri)
            for place, edit in next_edits(document, bursts, player.cursors[name], others):
                found += 1
                assert place in (document, *others)
                assert 0 <= edit.start <= edit.end <= len(place.data)
    assert found < 20  # there is hardly ever anything to repeat


def test_an_edit_that_breaks_the_file_is_not_sound() -> None:
    document = Document("file:///a.py", "python", 1, b"def f(a):\n    return a\n")
    assert is_sound(document, Edit(6, 7, "b"))
    assert not is_sound(document, Edit(6, 7, "1"))
    assert not is_sound(document, Edit(21, 22, "(a"))
    braced = Document("file:///a.go", "go", 1, b"package p\n\nvar a = 1\n")
    assert is_sound(braced, Edit(19, 20, "2"))
    assert not is_sound(braced, Edit(19, 20, "(2"))
