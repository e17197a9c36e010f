"""Which tests belong to a function, and which fills stay."""

import pytest

from dg_lsp.cli.trial import Ran
from dg_lsp.cli.verdict import Body, compare, why_of

STUB = {"a": "raised", "b": "raised", "other": "raised elsewhere", "fine": ""}
# The results with a fill, and: is it good, may it stay, its own tests that fail.
FILLS = {
    "all of its own pass": ({"a": "", "b": "", "other": "raised elsewhere", "fine": ""}, True, True, ()),
    "one of its own fails": ({"a": "", "b": "1 != 2", "other": "raised elsewhere", "fine": ""}, False, True, ("b",)),
    "none passes": ({"a": "1 != 2", "b": "1 != 2", "other": "raised elsewhere", "fine": ""}, False, True, ("a", "b")),
    "nothing changes": (STUB, False, False, ()),
    "it breaks another": ({"a": "", "b": "", "other": "raised elsewhere", "fine": "no"}, False, False, ("fine",)),
    "another is gone": ({"a": "", "b": "", "other": "raised elsewhere"}, False, False, ()),
    "all pass": (dict.fromkeys(STUB, ""), True, True, ()),
    "it reaches what is not written": (
        {"a": "NotImplementedError", "b": "raised", "other": "raised elsewhere", "fine": ""}, False, True, ("a",)
    ),
    "a new test fails": ({"a": "", "b": "", "c": "no", "other": "raised elsewhere", "fine": ""}, False, True, ("c",)),
    "no report": ({}, False, False, ()),
}  # fmt: skip


@pytest.mark.parametrize("case", FILLS)
def test_a_fill_is_good_if_its_own_tests_pass_and_no_other_fails_instead(case: str) -> None:
    results, good, stays, failing = FILLS[case]
    verdict = compare(STUB, STUB, Ran(1, "", results), "f")
    assert (verdict.good, verdict.stays, verdict.failing) == (good, stays, failing)
    assert compare(STUB, STUB, Ran(0, "", results), "f").good


def test_a_fill_that_no_test_needs_is_said_to_be_unread() -> None:
    for results, said in ((STUB, True), (dict.fromkeys(STUB, ""), False), ({}, False)):
        ran = Ran(0, "", results)
        assert (
            "no test fails without it" in why_of(ran, Body(b"", ran, compare(STUB, STUB, ran, "f")))
        ) == said


def test_a_silent_stub_is_known_by_the_tests_that_fail_if_it_raises() -> None:
    before, raised = {"a": "None != 1", "b": "None != 2"}, {"a": "raised", "b": "raised"}
    assert not compare(before, raised, Ran(1, "", {"a": "", "b": "None != 2"}), "f").good
    # Without such a run nothing tells that `b` is its own, too.
    assert compare(before, before, Ran(1, "", {"a": "", "b": "None != 2"}), "f").good


def test_a_function_that_is_called_while_tests_are_loaded_is_judged_by_those_that_reach_no_other_stub() -> (
    None
):
    before = {"test_a.py": "NotImplementedError while it is loaded"}
    results = {"a": "", "b": "NotImplementedError in g"}
    assert compare(before, before, Ran(1, "", results), "f").good
    assert not compare(before, before, Ran(1, "", {**results, "c": "1 != 2"}), "f").good
    # A run that stops at the first red test is another thing: who knows what comes after it.
    assert not compare({"a": "raised"}, {"a": "raised"}, Ran(1, "", results), "f").good


@pytest.mark.parametrize(
    ("test", "named"),
    [
        ("t::test_add", True),
        ("t::test_add[1-2]", True),
        ("t.TestAdd::test_x", True),
        ("a/TestAddAll", False),
        ("t::test_add_all", False),
    ],
)
def test_a_test_that_is_named_after_the_function_belongs_to_it(test: str, named: bool) -> None:
    before = {test: "fails elsewhere", "x": "raised"}
    verdict = compare(before, before, Ran(1, "", {test: "fails elsewhere", "x": ""}), "Cart.add")
    assert verdict.good != named
