"""The item below a text that is shown: where it ends, how likely it is, and where there is none."""

import math
from dataclasses import replace
from typing import Any

import pytest

from dg_lsp.messages import Infill
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.sources import below
from dg_lsp.model.sources.below import NOTHING, Lines, _shown
from tests.model.test_fim import ABOVE, SUFFIX, filled, knowing, knows, model  # noqa: F401

SHOWN = "x = half(r)"
IF = "\n    if x:\n        half(x)"


def asked(shown: str = SHOWN) -> Infill:
    return Infill(ABOVE + "    ", SUFFIX, "python", "statement", indent="    ", shown=shown, chance=0.6)


@pytest.mark.parametrize(
    ("shown", "truth", "wanted"),
    [
        (SHOWN, "\n    return x", "\n    return x"),
        (SHOWN, IF + "\n    return x", IF),
        (SHOWN, IF + "\n    else:\n        half(r)\n    return x", IF + "\n    else:\n        half(r)"),
        (SHOWN, "\n\n    return x", "\n\n    return x"),
        (SHOWN, "\n    # done\n    return x", "\n    # done"),
        ("if r:\n        half(r)", "\n        half(x)\n    return x", "\n        half(x)"),
        ("if r:\n        half(r)", "\n    return x", "\n    return x"),
        (SHOWN, "\n    x = [\n        r,\n    ]\n    return x", "\n    x = [\n        r,\n    ]"),
    ],
)
def test_one_item_is_written_below_what_is_shown(
    knowing: Checkpoint,  # noqa: F811
    shown: str,
    truth: str,
    wanted: str,
) -> None:
    knows(knowing, asked(shown), shown + truth)
    found = filled(knowing, asked(shown))
    assert found.text == shown + wanted and found.grows
    assert found.chance == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize(
    "truth",
    ["", "\n\n\ndef g(x):\n    return x", ".real\n    return x", "\n    return (x"],
)
def test_nothing_is_written_where_nothing_belongs_below(knowing: Checkpoint, truth: str) -> None:  # noqa: F811
    knows(knowing, asked(), SHOWN + truth)
    found = filled(knowing, asked())
    assert (found.text, found.refusal) == ("", NOTHING)


def test_the_chance_that_both_are_kept_is_at_least_what_is_asked_for(
    knowing: Checkpoint,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = replace(asked(), confidence=0.25)
    knows(knowing, request, SHOWN + "\n    return x")
    assert filled(knowing, request).text
    monkeypatch.setattr("dg_lsp.model.sources.below._KEPT", 1e8)
    assert not filled(knowing, request).text
    assert filled(knowing, replace(request, confidence=0.0)).text


def test_a_network_that_sees_one_side_says_so(knowing: Checkpoint) -> None:  # noqa: F811
    found = filled(replace(knowing, ends=()), asked())
    assert not found.text and "below a text that is shown" in found.refusal


def test_a_text_says_whether_it_may_grow(knowing: Checkpoint) -> None:  # noqa: F811
    request = Infill(ABOVE + "    ", SUFFIX, "python", "statement", indent="    ")
    knows(knowing, request, SHOWN)
    assert filled(knowing, request).grows
    assert math.isclose(filled(knowing, asked(SHOWN)).chance or 1.0, 1.0)


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        ("python", "def f():\n    item = Item(", "\n        a,\n        b,\n"),
        ("python", "def f():\n    ", "item = Item(\n        a,\n        b,\n"),
        ("go", "package a\n\nfunc f() {\n\titem := Item", "{\n\t\tA: 1,\n\t\tB: 2,\n"),
        ("typescript", "function f() {\n  ", "g([\n    1,\n    2,\n"),
    ],
)
def test_half_a_call_or_a_list_is_never_shown(language: str, before: str, text: str) -> None:
    request = Infill(before, "\n", language, "statement" if before.endswith("  ") else "rest_of_line")
    cut = Lines(text, ((len(text), 0.0),), whole=False)
    assert not list(_shown(request, cut, math.inf))


@pytest.mark.parametrize(
    ("before", "truth", "wanted"),
    [
        ("package a\n\nfunc half(r int) int {\n\tif ", "r > 1 {\n\t\treturn 1\n\t}", 3),
        (ABOVE + "    if ", "r:\n        return x", 1),
    ],
)
def test_a_block_that_would_be_empty_at_the_deadline_is_waited_for(
    knowing: Checkpoint,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    truth: str,
    wanted: int,
) -> None:
    go = before.startswith("package")
    request = Infill(
        before, "\n}\n" if go else SUFFIX, "go" if go else "python", "rest_of_line", deadline=60.0
    )
    request = replace(request, indent="\t" if go else "    ")
    knows(knowing, request, truth)
    over, rated = list[bool](), below.chances

    def chances(*given: Any) -> Any:
        over.append(True)  # the deadline passes once the first line is written
        return rated(*given)

    monkeypatch.setattr(below, "chances", chances)
    monkeypatch.setattr(Clock, "has_room", lambda *_: not over)
    monkeypatch.setattr(Clock, "is_hopeless", lambda *_: False)
    assert filled(knowing, request).text == "\n".join(truth.split("\n")[:wanted])


@pytest.mark.parametrize(
    ("soon", "further"),
    [
        ("if r:\n        half(x)", "\n        half(r)\n    return x"),
        ("if r:\n        # half\n        half(r)", "\n        half(x)\n    return x"),
        ("for x in r:\n        if x:\n            half(x)", "\n        half(r)"),
        ("if r:\n        x = half(\n            r\n        )", "\n        half(x)"),
        ("if r:\n        half(x)", "\n    else:\n        half(r)"),
        ("x = half(r)", ""),
        ("half(\n        r,\n    )", ""),
    ],
)
def test_a_block_is_shown_as_soon_as_it_can_be_and_grows_to_what_it_is_without(
    knowing: Checkpoint,  # noqa: F811
    soon: str,
    further: str,
) -> None:
    whole = Infill(ABOVE + "    ", SUFFIX, "python", "statement", indent="    ", alternatives=1)
    request = replace(whole, soon=True)
    knows(knowing, request, soon + further)
    found = filled(knowing, request)
    assert found.text == soon and found.grows
    text, all_of_it = found.text, filled(knowing, whole).text
    while text != all_of_it:
        longer = filled(knowing, replace(request, shown=text)).text
        assert longer.startswith(text) and len(longer) > len(text)
        text = longer


def test_an_element_of_a_list_is_shown_soon_and_further_ones_below_it(knowing: Checkpoint) -> None:  # noqa: F811
    request = Infill(
        ABOVE + "    x = [\n        ", "\n    ]" + SUFFIX, "python", "collection", indent="        "
    )
    knows(knowing, request, "r,\n        half(r),\n        half(x),")
    assert filled(knowing, request).text == "r,\n        half(r),\n        half(x),"
    soon = replace(request, soon=True)
    found = filled(knowing, soon)
    assert found.text == "r," and found.grows
    assert filled(knowing, replace(soon, shown="r,")).text == "r,\n        half(r),"


def test_the_rest_of_a_header_is_shown_before_its_block(knowing: Checkpoint) -> None:  # noqa: F811
    request = Infill(ABOVE + "    if ", SUFFIX, "python", "rest_of_line", indent="    ", soon=True)
    knows(knowing, request, "r:\n        return x\n    return r")
    found = filled(knowing, request)
    assert found.text == "r:" and found.grows
    assert filled(knowing, replace(request, shown="r:")).text == "r:\n        return x"


def test_a_block_in_braces_is_shown_whole_since_it_cannot_grow_above_its_brace(
    knowing: Checkpoint,  # noqa: F811
) -> None:
    above, suffix = "function area(r) {\n", "\n}\n"
    request = Infill(above + "    ", suffix, "javascript", "statement", indent="    ", soon=True)
    knows(knowing, request, "if (r) {\n        half(r);\n        half(x);\n    }")
    assert filled(knowing, request).text == "if (r) {\n        half(r);\n        half(x);\n    }"
