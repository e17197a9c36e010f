"""What stays of a canvas when the gap goes on beyond it."""

import time

import pytest

from dg_lsp.guard.stitch import Written, ended, first_sentence, go_on, goes_round, without_round
from dg_lsp.messages import Infill

REQUEST = Infill("def f(a):\n    ", "\n\n\ndef g():\n    pass\n", "python", "function_body", indent="    ")


@pytest.mark.parametrize(
    ("before", "more", "text"),
    [
        # Whole lines stay, and the cut line up to its last whole word.
        ("", "x = 1\n    y = foo(x, ba", "x = 1\n    y = foo(x,"),
        ("", "x = 1\n    y = 2\n", "x = 1\n    y = 2\n"),
        ("", "x = 1\n    retu", "x = 1\n"),
        # The next canvas goes on where that one was cut.
        ("x = 1\n    y = foo(x,", " bar)\n    z = 3\n    re", "x = 1\n    y = foo(x, bar)\n    z = 3\n"),
        # What is open may still be closed: a block, a bracket, a string, a try.
        ("", "if a:\n", "if a:\n"),
        ("", "x = [\n        1,\n        2", "x = [\n        1,\n"),
        ("", 'x = """one\n    two\n', 'x = """one\n    two\n'),
        ("", "try:\n        a()\n        b()\n", "try:\n        a()\n        b()\n"),
        # What cannot come right goes, and all behind it.
        ("", "x = 1\n    y = = 2\n    z = 3\n    w =", "x = 1\n"),
        # One long line without an end.
        ("", "x = a + b + c + dddd", "x = a + b + c +"),
    ],
)
def test_what_stays_is_what_can_still_come_right(before: str, more: str, text: str) -> None:
    assert go_on(REQUEST, before, more) == Written(text)


def test_a_text_that_closes_the_container_is_complete() -> None:
    written = go_on(REQUEST, "", "return a\n\n\ndef g():\n    pass\n")
    assert written == Written("return a", ended=True)
    inside = go_on(REQUEST, "", 'x = """\nnot less deep: a string\n"""\n    y = 1\n')
    assert not inside.ended


def test_line_ends_are_those_of_the_file() -> None:
    request = Infill("def f(a):\r\n    ", "\r\n", "python", "function_body", indent="    ")
    assert go_on(request, "", "x = 1\n    y = 2\n    z").text == "x = 1\r\n    y = 2\r\n"


def test_nothing_stays_of_what_adds_nothing() -> None:
    assert go_on(REQUEST, "x = 1\n", "    = = =\n    y = 1\n") == Written("x = 1\n")
    assert go_on(REQUEST, "x = 1\n", "") == Written("x = 1\n")


SIX = "if x:\n        a\n        b\n        c\n        d\n        e\n"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a()\n    a()\n", "a()\n"),
        ("a()\n    b()\n    a()\n    b()\n", "a()\n    b()\n"),
        ("x = 1\n    if x:\n        y()\n    if x:\n        y()\n", "x = 1\n    if x:\n        y()\n"),
        ("a()\n    b()\n\n    a()\n    b()\n", "a()\n    b()\n"),
        ("y\n    " + SIX + "    " + SIX, "y\n    " + SIX),
        # The last line is not whole yet, and what stands deeper is another line.
        ("a()\n    a()", "a()\n    a()"),
        ("try:\n        a()\n    finally:\n        a()\n", "try:\n        a()\n    finally:\n        a()\n"),
        ("for x in y:\n        }\n    }\n", "for x in y:\n        }\n    }\n"),
        ("a()\n\n\n", "a()\n\n\n"),
        ("", ""),
    ],
)
def test_a_text_that_goes_round_is_cut_before_its_second_round(text: str, kept: str) -> None:
    assert without_round(text) == kept


@pytest.mark.parametrize(
    ("line", "round_"),
    [
        ("return self.items[0].price + self.items[1].price + self.items[2].price + ", True),
        ("return self.items[0].price + self.items[1].price + self.items[22].pr", False),
        ("return self.items[0].price + self.items[1].price + self.items[22].price + self.it", True),
        ("return a.x * b.x + a.y * b.y + a.z * b.z", False),
        ("rows = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0", False),
        ("-" * 80, False),
        ("return get_it(get_it(get_it(\n    x", False),
    ],
)
def test_a_line_goes_round_that_says_one_thing_three_times(line: str, round_: bool) -> None:
    assert goes_round("x = 1\n" + line) == round_


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Return x. It is", "Return x."),
        ("Return x.y of\n    all. It", "Return x.y of\n    all."),
        ("Return x\n\n    Args:", "Return x"),
        ("Return x\r\n\r\n    Args:", "Return x"),
        ("Is it? No", "Is it?"),
        ("Return the x of the x of", ""),
        ("Return x.", ""),
        ("", ""),
    ],
)
def test_the_first_sentence_is_one_that_has_ended(text: str, kept: str) -> None:
    assert first_sentence(text) == kept


def test_where_the_container_of_a_body_closes_it_has_ended() -> None:
    asked = Infill("def f():\n    ", "\n", "python", "function_body", indent="    ")
    assert ended(asked, "a()\n    b()") == Written("a()\n    b()")
    found = ended(asked, "a()\n\nx = 1")
    assert found.ended and found.text.rstrip() == "a()"


def test_a_long_line_is_looked_at_from_its_end_only() -> None:
    began = time.process_time()
    assert goes_round("x" + "for all of it " * 20_000) and not goes_round("a" * 200_000 + "!")
    assert time.process_time() - began < 5
