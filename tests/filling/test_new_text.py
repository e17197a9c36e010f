"""Next edits in another form than the edit's: calls of a changed header, keys, imports, groups of lines."""

from pathlib import Path

import pytest

from benchmarks.next_edit import Hunk, Scenario, play, read_scenarios

# Written before the rules for them, by their author.
SCENARIOS = read_scenarios(Path(__file__).parents[1] / "edits/next_edit_newtext")
GO = "package p\n\ntype S interface {\n\tLoad(key string) int\n\tLen() int\n}\n\ntype m struct{}\n\n"


def offered(name: str, text: str, *edits: tuple[str, str]) -> list[str]:
    """Return the edits offered after the lines `edits` of the file `name` were changed; the first one ends the play."""
    made = tuple(Hunk(name, 0, tuple(old.split("\n")), tuple(new.split("\n"))) for old, new in edits)
    return [line.partition(": ")[2] for line in play(Scenario("", {name: text}, made, None, ())).offered]


def test_most_scenarios_that_want_another_form_are_right_and_no_edit_is_wrong() -> None:
    played = [(scenario, play(scenario)) for scenario in SCENARIOS]
    assert [s.title for s, result in played if result.wrong or (result.offered and not s.wanted)] == []
    assert sum(result.right for s, result in played if s.wanted) >= 7


def test_a_type_has_the_methods_of_an_interface_if_it_has_all_of_them() -> None:
    edit = "\tLoad(key string) int", "\tLoad(key string, at int) int"
    load, count = "func (m) Load(k string) int { return 1 }\n", "func (m) Len() int { return 0 }\n"
    new = "func (m) Load(k string, at int) int { return 1 }"
    assert offered("a.go", GO + load + count, edit) == [f"{load.strip()} -> {new}"]
    assert offered("a.go", GO + load, edit) == []


@pytest.mark.parametrize("call", ["f(1, 2)", "f(*both)", "f(1, b=2)", "f(1)", "g.f(1, 2)"])
def test_only_arguments_by_their_places_change_places(call: str) -> None:
    text = f"def f(a, b):\n    return a\n\n\nx = {call}\n"
    found = offered("a.py", text, ("def f(a, b):", "def f(b, a):"))
    assert found == (["x = f(1, 2) -> x = f(2, 1)"] if call == "f(1, 2)" else [])


@pytest.mark.parametrize(("old", "new", "other", "then"), [
    ("5", "5000", "30", "30000"),
    ("5000", "5", "30_000", "30"),
    ("5_000", "5", "30_000", "30"),
    ("60000", "60", "1500", ""),
    ("2", "120", "3", "180"),
    ("5", "7", "30", ""),
    ("5", "5000", "0", ""),
    ("5", "5000", "wait", ""),
])  # fmt: skip
def test_a_number_follows_a_unit(old: str, new: str, other: str, then: str) -> None:
    text = f"def f(a, seconds):\n    sleep(seconds)\n\n\nf(1, {old})\nf(2, {other})\n"
    header = "def f(a, seconds):\n    sleep(seconds)", "def f(a, units):\n    sleep(units)"
    found = offered("a.py", text, header, (f"f(1, {old})", f"f(1, {new})"))
    assert found == ([f"f(2, {other}) -> f(2, {then})"] if then else [])
    assert offered("a.py", text, (f"f(1, {old})", f"f(1, {new})")) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "use", "then"),
    [
        ("a.py", "import time", "from time import sleep", "time.sleep(1)", "sleep(1)"),
        ("a.py", "import time", "from time import sleep", "time.time()", ""),
        ("a.py", "import a\nimport b", "import b\nimport c", "a.go(1)", "c.go(1)"),
        ("a.py", "import a\nimport b", "import b\nimport c, d", "a.go(1)", ""),
        ("a.js", 'import all from "l";', 'import { one } from "l";', "all.one(1);", "one(1);"),
    ],
)
def test_uses_follow_an_import(name: str, old: str, new: str, use: str, then: str) -> None:
    found = offered(name, f"{old}\n\n{use}\n", (old, new))
    assert found == ([f"{use} -> {then}"] if then else [])


def test_a_name_that_is_defined_elsewhere_does_not_follow_an_import() -> None:
    text = "import a\nimport b\n\n\ndef f(a):\n    return a.go(1)\n"
    assert offered("a.py", text, ("import a\nimport b", "import b\nimport c")) == []


def test_a_call_is_not_awaited_where_a_strange_function_takes_it() -> None:
    head = "def load(n):\n    return n\n\n\nasync def run():\n"
    edit = "def load(n):", "async def load(n):"
    assert offered("a.py", f"{head}    return gather(load(1))\n", edit) == []
    other = "def name(n):\n    return n\n\n\n"
    found = offered("a.py", f"{other}{head}    return name(load(1))\n", edit)
    assert found == ["return name(load(1)) -> return name(await load(1))"]


def test_a_group_of_lines_is_repeated_in_its_own_block_only() -> None:
    group = "    if (!{0}) {{\n        fail();\n    }}\n"
    body = "".join(group.format(name) for name in ("a", "b(1)", "c(1, 2)"))
    nested = "    if (x) {\n        if (!d) {\n            fail();\n        }\n    }\n"
    text = f"void f() {{\n{body}}}\n\nvoid g() {{\n{nested}}}\n"
    edits = [(group.format(name).rstrip("\n"), f"    need({name});") for name in ("a", "b(1)")]
    found = play(
        Scenario(
            "",
            {"a.c": text},
            tuple(Hunk("a.c", 0, tuple(old.split("\n")), (new,)) for old, new in edits),
            None,
            (Hunk("a.c", 0, ("    if (!c(1, 2)) {", "        fail();", "    }"), ("    need(c(1, 2));",)),),
        )
    )
    assert found.right, found
