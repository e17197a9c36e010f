"""Next edits in the scenarios of next_edit/: their bars, and edits that break nothing."""

import random
from pathlib import Path

import pytest

from benchmarks.next_edit import Hunk, Player, Result, Scenario, Way, play, read_scenarios
from dg_lsp.edits.next_edit import is_sound, next_edits
from dg_lsp.gaps.gap import Edit
from dg_lsp.source.document import Document

SCENARIOS = read_scenarios()
# Those of held, fresh and seven are by authors who had not read the rules; many are more than a repetition.
FRESH = [
    s
    for name in ("held", "fresh", "blind", "seven")
    for s in read_scenarios(Path(__file__).parent / f"next_edit_{name}")
]


@pytest.fixture(scope="module")
def results() -> list[tuple[Scenario, Result]]:
    """Each scenario with its result."""
    return [(scenario, play(scenario)) for scenario in SCENARIOS]


def test_there_are_enough_scenarios_and_about_half_of_them_want_silence() -> None:
    silent = sum(not scenario.wanted for scenario in SCENARIOS)
    assert len(SCENARIOS) >= 60
    assert 0.4 * len(SCENARIOS) <= silent <= 0.6 * len(SCENARIOS)
    assert len({scenario.title for scenario in SCENARIOS}) == len(SCENARIOS)


def test_no_wrong_edit_is_offered(results: list[tuple[Scenario, Result]]) -> None:
    assert [(s.title, result.wrong) for s, result in results if result.wrong] == []


def test_most_wanted_edits_are_offered(results: list[tuple[Scenario, Result]]) -> None:
    missed = [s.title for s, result in results if s.wanted and not result.right]
    assert len(missed) <= 0.1 * len(SCENARIOS), missed


def test_in_scenarios_that_no_rule_was_made_for_no_edit_is_wrong_and_many_are_found() -> None:
    played = [(scenario, play(scenario)) for scenario in FRESH]
    assert [(s.title, result.wrong) for s, result in played if result.wrong] == []
    assert sum(result.right for s, result in played if s.wanted) >= 80


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


def test_code_that_makes_a_file_longer_is_below_what_begins_it() -> None:
    """In Java functions stood above the package line."""
    files = {
        "A.java": "package a;\n\nclass A {}\n",
        "a.go": "package a\n\nvar x = 1\n",
        "a.py": "from __future__ import annotations\n\nx = 1\n",
        "a.rs": "#![allow(unused)]\n\nstatic X: i32 = 1;\n",
    }
    player = Player(Scenario("", files, (), None, ()), lines=30)
    for name, text in files.items():
        longer = player.now(name)
        assert longer.text.startswith(text) and len(longer.line_starts) > 30


def test_a_burst_is_one_edit_however_many_keys_it_took() -> None:
    scenario = Scenario("", {"a.py": "one = 1\nprint(one)\nx = 2\n"}, (), None, ())
    player = Player(scenario)
    for hunk in (
        Hunk("a.py", 0, ("one = 1",), ("three = 1",)),
        Hunk("a.py", 0, ("three = 1",), ("three = 13",)),
        Hunk("a.py", 0, ("x = 2",), ("xy = 2",)),
    ):
        player.type(hunk)
    first, second = player.documents.bursts("file:///project/a.py").recent
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


def right(name: str, text: str, edits: list[tuple[str, str]], wanted: list[tuple[str, str]]) -> bool:
    """Play lines that change in the file `name`, and return whether exactly the `wanted` ones were offered."""
    made, rest = ([Hunk(name, 0, (old,), (new,)) for old, new in lines] for lines in (edits, wanted))
    return play(Scenario("", {name: text}, tuple(made), None, tuple(rest))).right


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "use"),
    [
        ("a.rs", "use std::collections::HashMap;\n\nfn f(m: &HashMap) {}\n", "HashMap", "BTreeMap", 2),
        ("a.java", "import java.util.HashMap;\n\nclass A {\n    HashMap m;\n}\n", "HashMap", "TreeMap", 3),
        ("a.py", "from a import one\n\nprint(one(1))\n", "one", "two", 2),
    ],
)
def test_the_uses_of_an_import_that_was_replaced_follow(
    name: str, text: str, old: str, new: str, use: int
) -> None:
    lines = text.splitlines()
    edit, wanted = ((line, line.replace(old, new)) for line in (lines[0], lines[use]))
    assert right(name, text, [edit], [wanted])
    # The new name is another one of the file.
    assert right(name, f"{text}\n{new}\n", [edit], []) or name == "a.py"


@pytest.mark.parametrize(
    ("name", "text", "old", "new"),
    [
        ("a.rs", "use crate::config::Settings;\n\nfn f() {\n    config::load();\n}\n", "config", "setup"),
        (
            "a.java",
            "import org.config.Settings;\n\nclass A extends B {\n    int f = config.f;\n}\n",
            "config",
            "setup",
        ),
    ],
)
def test_a_part_of_the_path_of_an_import_is_no_name_of_the_file(
    name: str, text: str, old: str, new: str
) -> None:
    line = text.splitlines()[0]
    assert right(name, text, [(line, line.replace(old, new))], [])


def test_of_a_member_that_two_classes_have_the_own_uses_are_renamed() -> None:
    body = "    def __init__(self):\n        self.items = {}\n\n    def get(self):\n        return self.items\n\n\n"
    text = f"class A:\n{body}".replace("{}", "[1]") + f"class B:\n{body}def f(a: A):\n    return a.items\n"
    edit, use = (
        Hunk("a.py", 0, (line,), (line.replace("items", "rows"),))
        for line in ("        self.items = [1]", "        return self.items")
    )
    result = play(Scenario("", {"a.py": text}, (edit,), None, (use,)))
    assert result.right and len(result.offered) == 1


TOTAL = {
    "a.py": "def total(values):\n    kept = [v for v in values if v]\n    return sum(kept) / len(values)\n",
    "a.ts": "function total(values: number[]) {\n  const kept = values.filter(Boolean);\n  return kept.length;\n}\n",
    "b.py": "class Shop:\n    def total(self, values):\n        kept = len(values)\n        return kept\n",
}
UNFINISHED = {
    "a.py": ("def f(a, b\n", "def f(a):\n    print(a,\n", "def f(a):\n    return {'a': a,\n", "class F\n"),
    "a.ts": ("function f(\n", "function f(a) {\n", "function f(a) {\n  const x = a +\n}\n"),
    "b.py": ("    def f(self\n", "    def f(self):\n        self.\n", "    def f(self):\n        x = 'abc\n"),
}
BESIDE = [(name, broken) for name, texts in UNFINISHED.items() for broken in texts]


@pytest.mark.parametrize(("name", "broken"), BESIDE)
@pytest.mark.parametrize("order", ["above", "below"])
def test_a_parameter_is_renamed_beside_an_unfinished_function(name: str, broken: str, order: str) -> None:
    text = TOTAL[name]
    head, rest = text.split("\n", 1) if name == "b.py" else ("", text)
    parts = [broken, rest] if order == "above" else [rest, broken]
    whole = (head and head + "\n") + "\n".join(parts)
    changed = [(line, line.replace("values", "numbers")) for line in text.splitlines() if "values" in line]
    assert right(name, whole, changed[:1], changed[1:])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Its uses in the broken part are not seen.
        ("def total(values):", "def count(values):"),
        ("    return total(values) + LIMIT", "    return total(values) + MOST"),
        # The edit is in the broken part.
        ("def unfinished(first, second", "def unfinished(former, second"),
    ],
)
def test_only_what_a_sound_function_binds_is_renamed_beside_broken_code(old: str, new: str) -> None:
    text = (
        "LIMIT = 3\n\n\ndef unfinished(first, second\n    return total(first) + first + LIMIT\n\n\n"
        "def total(values):\n    return total(values) + LIMIT\n"
    )
    assert right("a.py", text, [(old, new)], [])


def test_two_edits_in_two_blocks_are_repeated_in_a_third_one() -> None:
    text = (
        "class T {\n"
        + "".join(f'    void t{n}() {{\n        same(true, f("{n}"));\n    }}\n' for n in "abc")
        + "}\n"
    )
    lines = [(f'        same(true, f("{n}"));', f'        holds(f("{n}"));') for n in "abc"]
    assert right("T.java", text, lines[:2], lines[2:])


@pytest.mark.parametrize(
    ("old", "new", "texts", "then"),
    [
        ("a{0} = get('{0}').or('no {0}');", "a{0} = get('{0}').or(Missing('{0}'));", "xyz", True),
        ("if ({0} == null) fail(name({0}));", "need({0});", "xyz", True),
        ("return ptr<Shape>(new {0}(a));", "return make<{0}>(a);", ["Circle", "Box", "Arc"], True),
        ("a.{0} = at('{0}');", "a.{0} = query('#{0}');", ["one", "two", "three-four"], True),
        # A number in place of a name, and half of a pair of brackets.
        ("set({0}, true);", "put({0});", ["a", "b", "1"], False),
        ("set({0}, true);", "put({0});", ["a", "b", "f(c"], False),
        # The new text has another part of the lines.
        ("set({0}, true);", "put({0}, {0}{0});", "xyz", False),
    ],
)
def test_a_third_line_is_made_as_two_were(old: str, new: str, texts: list[str], then: bool) -> None:
    lines = [(f"    {old}".format(text), f"    {new}".format(text)) for text in texts]
    body = "".join(f"{line}\n" for line, _ in lines)
    assert right("a.cpp", f"void f() {{\n{body}}}\n", lines[:2], lines[2:] if then else [])


def test_a_line_that_is_done_already_is_not_changed_again() -> None:
    lines = [(f"    if (v{n}.valid()) {{", f"    if (!v{n}.valid()) {{") for n in "abc"]
    body = "".join(f"{line}\n    }}\n" for line in (lines[0][0], lines[1][0], lines[2][1]))
    assert right("a.cpp", f"void f() {{\n{body}}}\n", lines[:2], [])


def test_lines_with_many_differences_are_compared_in_bounded_time() -> None:
    # A pattern that looks for its parts in more than one place would need longer than anybody waits.
    calls = [f"    f({', '.join(f'{name}{n}' for n in range(12))});" for name in "abc"]
    lines = [(line, line.replace(");", ").get();")) for line in calls]
    other = calls[2].replace(");", f"{40 * ', 1'}) ;")
    body = "\n".join([*calls, other])
    assert right("a.cpp", f"void t() {{\n{body}\n}}\n", lines[:2], lines[2:])


def test_the_object_of_a_method_is_no_argument_of_its_calls() -> None:
    head, new = "    def area(width):", "    def area(self, width):"
    text = f"class Box:\n{head}\n        return width\n\n    def all(self):\n        return Box.area(3)\n"
    found = play(Scenario("", {"a.py": text}, (Hunk("a.py", 0, (head,), (new,)),), None, ()))
    assert found.offered == []


def test_a_star_between_parameters_is_none_of_them() -> None:
    head = "class Box:\n    def __init__(self, wide, *, high):\n        "
    found = play(
        Scenario(
            "",
            {"a.py": f"{head}pass\n"},
            (Hunk("a.py", 0, ("        pass",), ("        self.wide = wide",)),),
            None,
            (),
        )
    )
    assert [line.partition(" -> ")[2].split("\n") for line in found.offered] == [
        ["self.wide = wide", "        self.high = high"]
    ]
