"""Lines that may follow the last edit: which are asked for, what the request has, and the edit that comes of a text."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.next_edit import Hunk, Player, Scenario, play, read_scenarios
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.rewrites import Rewrite, rewrites_for, written
from dg_lsp.gaps import apply_edit
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings

HERE = Path(__file__).parents[1] / "edits"
SCENARIOS = read_scenarios(HERE / "next_edit_model")
BOX = "struct Box {\n    int width;\n    int height;\n    double depth;\n};\n"
SIZES = "    long size = 4;\n    long other_size = 4;\n"
WIDER = Hunk("box.cpp", 0, ("    int width;",), ("    long width;",))


def played(files: dict[str, str], *hunks: Hunk) -> Player:
    player = Player(Scenario("", files, (), None, ()))
    for hunk in hunks:
        player.type(hunk)
    return player


def asked(player: Player, name: str, settings: Settings | None = None) -> list[Rewrite]:
    document = player.now(name)
    others = [player.now(other) for other in player.cursors if other != name]
    bursts = player.documents.bursts(document.uri)
    return rewrites_for(document, bursts, player.cursors[name], others, settings)


def lines(found: list[Rewrite]) -> list[str]:
    return [rewrite.request.edits[-1].removed.strip() for rewrite in found]


def knowing(scenario: Scenario) -> Callable[[Rewrite], str]:
    """A model that writes what the scenario wants, and finds repeated lines likely if it wants all of them."""
    wanted = {one: other for hunk in scenario.wanted for one, other in zip(hunk.old, hunk.new, strict=True)}

    def write(rewrite: Rewrite) -> str:
        hunk = rewrite.request.edits[-1]
        if not hunk.added:
            return f"{wanted.get(hunk.removed.rstrip(), '')}\n".lstrip("\n")
        pairs = zip(hunk.removed.splitlines(), hunk.added.splitlines(), strict=True)
        return hunk.added if all(wanted.get(one, one) == other for one, other in pairs) else ""

    return write


def test_there_are_enough_scenarios_of_which_half_want_silence() -> None:
    assert len(SCENARIOS) >= 40
    assert abs(sum(not s.wanted for s in SCENARIOS) - len(SCENARIOS) / 2) <= 1


def test_the_rules_alone_are_silent_in_all_of_them() -> None:
    assert [s.title for s in SCENARIOS if play(s).offered] == []


def test_nearly_all_that_is_wanted_is_asked_for() -> None:
    missed = [s.title for s in SCENARIOS if s.wanted and not play(s, write=knowing(s)).right]
    assert len(missed) <= 0.1 * len(SCENARIOS) / 2, missed


def test_nothing_is_asked_where_the_rules_have_found_places() -> None:
    def fail(rewrite: Rewrite) -> str:
        raise AssertionError(rewrite.line)

    for scenario in read_scenarios(HERE / "next_edit")[::3]:
        if scenario.wanted:
            assert play(scenario, write=fail).right, scenario.title


def test_a_request_has_the_edit_and_the_line_as_hunks() -> None:
    first, *_ = asked(played({"box.cpp": BOX}, WIDER), "box.cpp")
    made, line = first.request.edits
    assert (made.path, made.line, made.scope) == ("box.cpp", 1, "")
    assert (made.above, made.removed) == ("struct Box {\n", "    int width;\n")
    assert (made.added, made.below) == ("    long width;\n", "    int height;\n    double depth;\n")
    assert (line.removed, line.added, line.line) == ("    int height;\n", "    long height;\n", 1)
    assert line.above == "struct Box {\n    long width;\n"
    assert first.request.priority == "ahead" and first.request.deadline


def test_hunks_name_the_class_and_the_function_around_them() -> None:
    text = "class Cart:\n    def add(self, item):\n" + "        pass\n" * 8
    text += "        self.log(1)\n" + "        pass\n" * 8 + "        self.log(2)\n"
    edit = Hunk("cart.py", 0, ("        self.log(1)",), ("        self.note(1)",))
    found = asked(played({"cart.py": text}, edit), "cart.py")[0]
    assert [hunk.scope for hunk in found.request.edits] == ["class Cart: def add(self, item):"] * 2


def test_lines_of_other_open_files_are_asked_for() -> None:
    player = played(
        {
            "a.py": 'def keys():\n    return {"total": 1}\n',
            "b.py": 'from a import keys\n\nprint(keys()["total"])\n',
        },
    )
    player.cursors["b.py"] = 0
    player.type(Hunk("a.py", 0, ('    return {"total": 1}',), ('    return {"amount": 1}',)))
    found = asked(player, "a.py")
    assert (found[0].line.document.uri, found[0].request.edits[-1].path) == ("file:///project/b.py", "b.py")
    assert found[0].request.edits[-1].added == ""
    (place,) = found[0].places('print(keys()["amount"])\n')
    assert place[0] is player.now("b.py")
    assert 'keys()["amount"]' in apply_edit(*place).text


def test_no_line_of_another_file_is_asked_for_with_a_secret() -> None:
    files = {"a.py": 'password = "x"\nlogin(1)\n', "b.py": "login(2)\n"}
    player = played(files, Hunk("a.py", 0, ("login(1)",), ("log_in(1)",)))
    player.cursors["b.py"] = 0
    assert lines(asked(player, "a.py")) == ["login(2)"]
    hidden = {**files, "a.py": 'password = "hunter2-Old-Passw0rd"\nlogin(1)\n'}
    player = played(hidden, Hunk("a.py", 0, ("login(1)",), ("log_in(1)",)))
    player.cursors["b.py"] = 0
    assert asked(player, "a.py") == []


def test_a_server_learns_no_name_of_a_file() -> None:
    found = asked(played({"box.cpp": BOX}, WIDER), "box.cpp", Settings(engine_url="https://models.example"))
    assert {hunk.path for one in found for hunk in one.request.edits} == {"1.cpp"}


@pytest.mark.parametrize(
    ("hunk", "why"),
    [
        (Hunk("box.cpp", 0, ("    int width;",), ("    int wide;",)), "the file defines the name"),
        (Hunk("box.cpp", 0, ("    int width;",), ("    int width;", "    int x;")), "a line is new"),
        (
            Hunk("box.cpp", 0, ("    long size = 4;",), ("    long size = 8;",)),
            "only a number is another one",
        ),
    ],
)
def test_nothing_is_asked(hunk: Hunk, why: str) -> None:
    assert asked(played({"box.cpp": BOX + SIZES}, hunk), "box.cpp") == [], why


def test_an_edit_in_a_comment_is_followed_by_nothing() -> None:
    text = "int a = 1;  // the frist one\nint b = 2;  // the frist two\n"
    edit = Hunk("a.cpp", 0, ("int a = 1;  // the frist one",), ("int a = 1;  // the first one",))
    assert asked(played({"a.cpp": text}, edit), "a.cpp") == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("    long height;\n", "    long height;"),
        ("    long width;\n    long depth;\n", "    long width;{0}    long depth;"),
    ],
)
def test_a_text_takes_the_place_of_its_line_with_the_line_ends_of_the_file(
    text: str, new: str, end: str
) -> None:
    player = played({"box.cpp": BOX})
    document = player.now("box.cpp")
    player.replace("box.cpp", 0, len(document.data), BOX.replace("\n", end))
    start = player.now("box.cpp").data.index(b"int width")
    player.documents.absorb(document.uri)
    player.replace("box.cpp", start, start + 3, "long")
    first, *_ = asked(player, "box.cpp")
    (place,) = first.places(text)
    old, wanted = BOX.replace("int width", "long width"), new.replace("{0}", "\n")
    assert apply_edit(*place).text == old.replace("    int height;", wanted).replace("\n", end)


@pytest.mark.parametrize(
    ("text", "is_offered"),
    [
        ("    count = items.size\n", True),
        ("    count = len(items) if items else None\n", True),
        ('    count = load("another key")\n', True),
        ("    count = total  # another word\n", True),
        ("    count = counted(items)\n", False),
        ("    new_count = items\n", False),
    ],
)
def test_a_text_with_a_name_that_no_open_document_has_is_not_offered(text: str, is_offered: bool) -> None:
    files = {"a.py": 'items = load("a")\nif items:\n    count = items\n', "b.py": "total = items.size\n"}
    player = played(files, Hunk("b.py", 0, ("total = items.size",), ("total = items.size()",)))
    player.cursors["a.py"] = 0
    found = next(
        one for one in asked(player, "b.py") if one.request.edits[-1].removed == "    count = items\n"
    )
    assert bool(found.places(text)) is is_offered


def test_the_answer_is_the_text_of_the_fill() -> None:
    first, *_ = asked(played({"box.cpp": BOX}, WIDER), "box.cpp")

    def answer(fill: Fill) -> str | None:
        return asyncio.run(written(ScriptedEngine(fill), first))

    assert answer(Fill("    long height;\n", -7.1)) == "    long height;\n"
    assert answer(Fill("    long height;\n", -6.9)) == ""
    assert answer(Fill("", refusal="nothing surely follows")) == "" and first.places("") == []
    assert answer(Fill("", refusal="too late", reason="deadline")) is None


def test_lines_in_which_the_edit_may_be_repeated_are_rated_together_and_offered_one_by_one() -> None:
    text = BOX.replace("double", "int").replace("    int depth", "    // the third\n    int depth")
    player = played({"box.cpp": text}, WIDER)
    (first,) = asked(player, "box.cpp")
    old, new = (
        "    int height;\n    // the third\n    int depth;\n",
        "    long height;\n    // the third\n    long depth;\n",
    )
    hunk = first.request.edits[-1]
    assert (hunk.removed, hunk.added) == (old, new)
    assert (first.request.prefix, first.request.suffix) == ("struct Box {\n    long width;\n", "\n};\n")
    assert [edit.text for _, edit in first.places(new)] == ["long", "long"]


@pytest.mark.parametrize(
    ("text", "hunk", "least"),
    [
        (BOX, WIDER, 7.0),
        (BOX.replace("double", "int"), WIDER, 6.0),
        (BOX, Hunk("box.cpp", 0, ("    int width;",), ("    const int width;",)), 9.0),
        (
            BOX.replace("double", "int"),
            Hunk("box.cpp", 0, ("    int width;",), ("    const int width;",)),
            8.0,
        ),
    ],
)
def test_more_is_asked_of_one_line_and_of_a_text_that_was_only_put_in(
    text: str, hunk: Hunk, least: float
) -> None:
    assert asked(played({"box.cpp": text}, hunk), "box.cpp")[0].least == least


def test_lines_far_from_the_nearest_one_are_left_for_later() -> None:
    far = BOX.replace("    double depth", "    // \n" * 400 + "    int depth")
    first, *_ = asked(played({"box.cpp": far}, WIDER), "box.cpp")
    assert first.request.edits[-1].removed == "    int height;\n"


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
def test_a_repetition_has_the_texts_of_its_own_line(old: str, new: str, other: str, repeated: str) -> None:
    text = "void f() {\n" + "".join(f"    {line}\n" for line in (old, other)) + "}\n"
    first, *_ = asked(
        played({"need.java": text}, Hunk("need.java", 0, (f"    {old}",), (f"    {new}",))), "need.java"
    )
    assert first.request.edits[-1].added.strip() == repeated


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("def f(a):\n    pass\n\n\ndef g(b):\n    pass\n", "def f(a):", "def f(a, key=None):"),
        ("def f():\n    pass\n\n\ndef g():\n    pass\n", "def f():", "def f(key):"),
    ],
)
def test_no_other_function_gets_a_parameter(text: str, old: str, new: str) -> None:
    found = asked(played({"f.py": text}, Hunk("f.py", 1, (old,), (new,))), "f.py")
    assert not [one for one in found if one.least]


def test_less_is_asked_once_the_edit_was_repeated() -> None:
    player = played({"box.cpp": BOX.replace("double", "int")}, WIDER)
    first, *_ = asked(player, "box.cpp")
    place = first.places(first.request.edits[-1].added)[0]
    player.replace("box.cpp", place[1].start, place[1].end, place[1].text)
    player.documents.absorb(place[0].uri)
    (left,) = asked(player, "box.cpp")
    made, line = left.request.edits
    assert made.removed == "    int width;\n    int height;\n" and made.added.count("long") == 2
    assert (line.removed, line.added) == ("    int depth;\n", "    long depth;\n")
    assert left.least < first.least
