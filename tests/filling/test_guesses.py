"""Guesses of the next edit: the places in the scenarios of next_edit_model/, and when a rating is good enough."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.next_edit import Hunk, Player, Scenario, play, read_scenarios
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.guesses import Guess, guesses_for, is_likely
from dg_lsp.messages import Fill

HERE = Path(__file__).parents[1] / "edits"
SCENARIOS = read_scenarios(HERE / "next_edit_model")
BOX = "struct Box {\n    int width;\n    int height;\n    double depth;\n};\n"
WIDER = Hunk("box.cpp", 0, ("    int width;",), ("    long width;",))


def guessed(text: str, hunk: Hunk, *more: Hunk) -> list[Guess]:
    player = Player(Scenario("", {hunk.name: text}, (), None, ()))
    for one in (hunk, *more):
        player.type(one)
    document = player.now(hunk.name)
    return guesses_for(document, player.documents.bursts(document.uri), player.cursors[hunk.name])


def knowing(scenario: Scenario) -> Callable[[Guess], bool]:
    """A model that rates as the scenario wants it."""
    new = {line for hunk in scenario.wanted for line in hunk.new}
    return lambda guess: guess.request.rated[1] in new


def test_there_are_enough_scenarios_of_which_half_want_silence() -> None:
    assert len(SCENARIOS) >= 40
    assert abs(sum(not s.wanted for s in SCENARIOS) - len(SCENARIOS) / 2) <= 1


def test_the_rules_alone_are_silent_in_all_of_them() -> None:
    assert [s.title for s in SCENARIOS if play(s).offered] == []


def test_nearly_all_that_is_wanted_is_guessed() -> None:
    missed = [s.title for s in SCENARIOS if not play(s, likely=knowing(s)).right]
    assert len(missed) <= 0.1 * len(SCENARIOS) / 2, missed


def test_nothing_is_guessed_where_the_rules_have_found_places() -> None:
    def fail(guess: Guess) -> bool:
        raise AssertionError(guess.edit)

    for scenario in read_scenarios(HERE / "next_edit")[::3]:
        if scenario.wanted:
            assert play(scenario, likely=fail).right, scenario.title


def test_a_model_that_likes_everything_is_asked_about_few_of_the_silent_scenarios() -> None:
    silent = [s for s in read_scenarios(HERE / "next_edit") if not s.wanted]
    shown = [s.title for s in silent if play(s, likely=lambda _: True).offered]
    assert len(shown) <= 0.25 * len(silent), shown


def test_a_request_has_the_text_around_the_line_and_both_lines() -> None:
    first, *_ = guessed(BOX, WIDER)
    request = first.request
    assert (request.prefix, request.suffix) == (
        "struct Box {\n    long width;\n",
        "\n    double depth;\n};\n",
    )
    assert request.rated == ("    int height;", "    long height;")
    assert request.context == () and request.priority == "ahead"


def test_an_edit_out_of_sight_comes_as_its_line_is_now() -> None:
    far = BOX.replace("    int height", "    // \n" * 400 + "    int height")
    (guess,) = guessed(far, WIDER)
    assert [piece.text for piece in guess.request.context] == ["    long width;\n"]
    assert len(guess.request.prefix) < 1500 < len(far)


@pytest.mark.parametrize(
    ("hunk", "why"),
    [
        (Hunk("box.cpp", 0, ("    int width;",), ("    int wide;",)), "the file defines the name"),
        (Hunk("box.cpp", 0, ("    int width;",), ("    int width;", "    int x;")), "a line is new"),
        (Hunk("box.cpp", 0, ("    double depth;",), ("    float depth;",)), "no other line has the text"),
    ],
)
def test_nothing_is_guessed(hunk: Hunk, why: str) -> None:
    assert guessed(BOX, hunk) == [], why


@pytest.mark.parametrize(
    ("old", "new", "other", "repeated"),
    [
        ("a = need(a);", 'a = need(a, "a");', "b = need(b);", 'b = need(b, "b");'),
        ('wrap(err, "a");', 'fail("a: %w", err);', 'wrap(err, "b");', 'fail("b: %w", err);'),
        ("same(0, x.size());", "that(x.size()).is(0);", "same(1, x.total());", "that(x.total()).is(1);"),
        (
            "r = get(url);",
            "r = get(url, wait=10);",
            "r = get(url, json=d);",
            "r = get(url, json=d, wait=10);",
        ),
    ],
)
def test_a_guess_repeats_the_texts_of_its_own_line(old: str, new: str, other: str, repeated: str) -> None:
    text = "void f() {\n" + "".join(f"    {line}\n" for line in (old, other)) + "}\n"
    found = guessed(text, Hunk("need.java", 0, (f"    {old}",), (f"    {new}",)))
    assert [guess.request.rated[1].strip() for guess in found] == [repeated]


def test_a_guess_is_shown_only_if_all_its_texts_were_rated() -> None:
    guess = guessed(BOX, WIDER)[0]

    def likely(*ratings: float) -> bool:
        return asyncio.run(is_likely(ScriptedEngine(Fill("", ratings=ratings)), guess))

    assert likely(30.0, 5.0)
    assert not likely(5.0, 30.0) and not likely(5.0, 5.0)
    assert not likely() and not likely(30.0)


@pytest.mark.parametrize(
    ("alone", "after", "shown", "asked"),
    [
        (7.5, -9.0, True, 1),
        (0.5, 3.8, True, 2),
        (0.5, 3.2, False, 2),
        (6.5, 3.0, False, 2),
        (-6.0, 20.0, False, 1),
    ],
)
def test_a_guess_that_is_not_likely_alone_is_rated_with_the_next_one(
    alone: float, after: float, shown: bool, asked: int
) -> None:
    guess = guessed(BOX.replace("double", "int"), WIDER)[0]
    assert guess.then is not None and guess.then.rated == ("    int depth;", "    long depth;")
    assert guess.then.prefix.endswith("    long width;\n    long height;\n")
    gains = {guess.request.rated: alone, guess.then.rated: after}
    engine = ScriptedEngine(lambda request: Fill("", ratings=(50.0 + gains[request.rated], 50.0)))
    assert asyncio.run(is_likely(engine, guess)) == shown
    assert len(engine.requests) == asked


def test_less_is_asked_of_a_guess_once_the_edit_was_repeated() -> None:
    player = Player(Scenario("", {"box.cpp": BOX.replace("double", "int")}, (), None, ()))
    player.type(WIDER)
    document = player.now("box.cpp")
    first, _ = guesses_for(document, player.documents.bursts(document.uri), player.cursors["box.cpp"])
    player.replace("box.cpp", first.edit.start, first.edit.end, first.edit.text)
    player.documents.absorb(document.uri)
    (left,) = guesses_for(player.now("box.cpp"), player.documents.bursts(document.uri), 0)
    assert left.request.rated[1] == "    long depth;" and left.least < first.least and left.then is None


def test_more_is_asked_of_a_text_that_was_only_put_in() -> None:
    put_in = guessed(BOX, Hunk("box.cpp", 0, ("    int width;",), ("    const int width;",)))
    assert put_in and put_in[0].least > guessed(BOX, WIDER)[0].least


def test_an_edit_in_a_comment_is_not_guessed_elsewhere() -> None:
    text = "int a = 1;  // the frist one\nint b = 2;  // the frist two\n"
    edit = Hunk("a.cpp", 0, ("int a = 1;  // the frist one",), ("int a = 1;  // the first one",))
    assert guessed(text, edit) == []


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("def f(a):\n    pass\n\n\ndef g(b):\n    pass\n", "def f(a):", "def f(a, key=None):"),
        ("def f():\n    pass\n\n\ndef g():\n    pass\n", "def f():", "def f(key):"),
    ],
)
def test_no_other_function_gets_a_parameter(text: str, old: str, new: str) -> None:
    assert guessed(text, Hunk("f.py", 1, (old,), (new,))) == []


@pytest.mark.parametrize(
    ("text", "old", "new", "other"),
    [
        (
            'func f() {\n\tmux := make()\n\thttp.Handle("/a", a)\n\thttp.Handle("/b", b)\n}\n',
            '\thttp.Handle("/a", a)',
            '\tmux.Handle("/a", a)',
            '\tmux.Handle("/b", b)',
        ),
        (
            'import "os"\n\nfunc f() {\n\tioutil.Read("a")\n\tioutil.Read("b")\n}\n',
            '\tioutil.Read("a")',
            '\tos.Read("a")',
            '\tos.Read("b")',
        ),
    ],
)
def test_a_name_that_the_file_has_in_place_of_another_is_guessed(
    text: str, old: str, new: str, other: str
) -> None:
    found = guessed(text, Hunk("a.go", 0, (old,), (new,)))
    assert found and found[0].request.rated[1] == other
