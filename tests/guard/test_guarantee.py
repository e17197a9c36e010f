"""The guarantee: whatever is put into whatever gap, no file is broken and nothing typed is lost (laws 5 and 10).

Judged by the benchmark's judge, which shares no code with the guard nor with how gaps are found.
"""

import random
from functools import cache
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.gaps.sources import find_corpus
from benchmarks.guarantee.answers import TEXTS, ask, opened
from benchmarks.guarantee.judge import Claim, judge, read
from benchmarks.guarantee.places import Place, valid_places
from dg_lsp.filling import fill as filling
from dg_lsp.messages import KINDS, Kind
from dg_lsp.source.language import known_languages, load_language
from tests.source.fixtures import fixtures

# Larger files say no more and take longer.
LARGEST, COUNT = 6_000, 25


@cache
def files() -> tuple[tuple[str, bytes], ...]:
    """Files by language: some of the standard library, and the fixtures of all languages."""
    library = [("python", d) for d in find_corpus("python", {}, COUNT, 0).valid if len(d) < LARGEST]
    shown = [(name, f.document.data) for name in known_languages() for f in fixtures(name)]
    return (*library, *shown)


@st.composite
def places(draw: st.DrawFn) -> Place:
    """Any cursor in any of the files, any kind asked for or none."""
    language, data = draw(st.sampled_from(files()))
    at = draw(st.integers(0, len(data)))
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return Place(load_language(language), data, at, at, "code", draw(st.sampled_from((None, None, *KINDS))))


@settings(max_examples=250, derandomize=True, deadline=None)
@given(places(), st.sampled_from(TEXTS) | st.text(max_size=30))
def test_no_text_in_any_gap_does_harm(place: Place, text: str) -> None:
    assert ask(opened(place), text).harms == ()


GUARDED: dict[str, tuple[str, str, Kind | None, str, str]] = {
    "a bracket too many": ("python", "def f(a):\n    return a|\n", "rest_of_line", ")", "broken"),
    "quotes in code": ("python", "def f():\n    x = |2\n    return 1\n", None, '"""', "broken"),
    "a brace too many": ("java", "class A {\n  int f() {\n    |return 1;\n  }\n}\n", None, "}", "broken"),
    "a comment over code": ("c", "int f(void) {\n  return |1;\n}\n", None, "/*", "broken"),
}


@pytest.mark.parametrize("text", [")", "}", "]\n"])
@pytest.mark.parametrize("line", [3, 4, 5])
def test_below_an_unclosed_string_a_fill_is_complete_by_itself(line: int, text: str) -> None:
    data = b'def f(a):\n    """Text\n\ndef g(a):\n    """Text."""\n    return 4 * a\n'
    at = sum(map(len, data.splitlines(keepends=True)[: line - 1]))
    for kind in (None, "statement"):
        assert ask(opened(Place(load_language("python"), data, at, at, "code", kind)), text).harms == ()


@pytest.mark.parametrize("name", GUARDED)
def test_without_the_guard_the_judge_finds_harm(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    language, text, kind, fill, harm = GUARDED[name]
    data, at = text.replace("|", "").encode(), text.index("|")
    place = Place(load_language(language), data, at, at, "code", kind)
    assert ask(opened(place), fill).harms == ()
    monkeypatch.setattr(filling, "harm_of", lambda *_: "")
    assert harm in ask(opened(place), fill).harms


def test_the_blanks_after_a_comment_are_its_own() -> None:
    found = islice(valid_places(load_language("c"), b"// one two  \nint a;\n", random.Random(0)), 30)
    assert {place.room for place, _ in found if place.kind == "comment"} == {(0, 12)}


JUDGED: dict[str, tuple[str, str, str, Claim, tuple[str, ...]]] = {
    "nothing": ("python", "x = 1\n", "x = 1 + 2\n", Claim((5, 5), None), ()),
    "a typed word": ("python", "x = one(two)\n", "x = one(three)\n", Claim((8, 11), None), ("typed text lost",)),
    "a word asked for": ("python", "x = one(two)\n", "x = one(three)\n", Claim((8, 11), "arguments"), ()),
    "a word outside of what was asked for": (
        "python", '"""A."""\nx = 1\n', '"""B."""\n', Claim((3, 15), "docstring", (0, 8)), ("typed text lost",),
    ),
    "an end that both texts share": (
        "go", 'func f() {\n\tpanic("a")\n}\n', "func f() {\n\tg()\n\t// h(a)\n}\n",
        Claim((12, 22), "function_body"), (),
    ),
    "text round the gap": ("python", "x = 1\ny = 2\n", "x = 3\ny = 2\n", Claim((6, 6), "statement"), ("outside",)),
    "a stub": ("python", "def f():\n    pass\n", "def f():\n    return 1\n", Claim((13, 17), None), ()),
    "a stub's comment": (
        "python", "def f():\n    # One.\n    pass\n", "def f():\n    return 1\n", Claim((13, 28), "function_body"),
        ("comment lost",),
    ),
    "a stub's TODO": (
        "python", "def f():\n    # TODO\n    pass\n", "def f():\n    return 1\n", Claim((13, 28), None), (),
    ),
    "an error": ("go", "package a\n", "package a)\n", Claim((9, 9), None), ("broken",)),
    "what only the interpreter refuses": ("python", "f(a=1, )\n", "f(a=1, b)\n", Claim((7, 7), None), ("broken",)),
    "strings that swap with code": (
        "python", "f('a', x, 'b')\n", "f('a', ', x, 'b')\n", Claim((7, 7), None), ("broken",),
    ),
    "a comment that takes in code": (
        "c", "int a;\nint b; /* c */\n", "int a;/*\nint b; /* c */\n", Claim((6, 6), None), ("pairs behind",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JUDGED)
def test_the_judge_tells(name: str) -> None:
    language, old, new, claim, wanted = JUDGED[name]
    loaded = load_language(language)
    found = judge(read(loaded, old.encode()), read(loaded, new.encode()), claim).harms
    assert set(wanted) <= set(found) if wanted else found == ()
