"""A change is undone in a text that was changed elsewhere since, or not at all."""

import pytest

from dg_lsp.source.undo import undo

BEFORE = "top\ndef f():\n    todo\n\ndef g():\n    todo\nend\n"
AFTER = "top\ndef f():\n    return 1\n    # filled\n\ndef g():\n    todo\nend\n"


@pytest.mark.parametrize(
    ("now", "wanted"),
    [
        (AFTER, BEFORE),
        (AFTER + "mine\n", BEFORE + "mine\n"),
        ("mine\n" + AFTER, "mine\n" + BEFORE),
        ("mine\n" + AFTER + "mine\n", "mine\n" + BEFORE + "mine\n"),
        (AFTER.replace("end", "mine") + "x", BEFORE.replace("end", "mine") + "x"),
        # The function was moved.
        (
            "top\ndef g():\n    todo\nend\ndef f():\n    return 1\n    # filled\n\n",
            "top\ndef g():\n    todo\nend\ndef f():\n    todo\n\n",
        ),
        # A comment was written below the fill, and the top was changed.
        (
            AFTER.replace("top", "mine").replace("# filled\n", "# filled\n    # mine\n"),
            BEFORE.replace("top", "mine").replace("todo\n", "todo\n    # mine\n", 1),
        ),
        # Somebody has worked on the fill.
        (AFTER.replace("return 1", "return 1 + mine"), None),
        (AFTER.replace("    # filled\n", ""), None),
        (BEFORE + "mine\n", None),
        # It is there twice.
        ("mine\n" + AFTER + "mine\n" + AFTER, None),
        ("", None),
    ],
)
def test_a_change_is_taken_out_where_it_is(now: str, wanted: str | None) -> None:
    for end in ("\n", "\r\n"):
        texts = [None if t is None else t.replace("\n", end).encode() for t in (BEFORE, AFTER, now, wanted)]
        before, after, found, undone = texts
        assert before is not None and after is not None and found is not None
        if wanted is None and now == "mine\n" + AFTER + "mine\n" + AFTER:
            # The lower one is where the change was.
            assert undo(before, after, found) in (None, found[: -len(after)] + before)
        else:
            assert undo(before, after, found) == undone


def test_an_end_of_line_that_an_editor_adds_is_no_change_of_the_fill() -> None:
    assert (
        undo(b"def f():\n    todo", b"def f():\n    return 1", b"def f():\n    return 1\n")
        == b"def f():\n    todo\n"
    )
    assert (
        undo(b"def f():\n    todo", b"def f():\n    return 1", b"#\ndef f():\n    return 1")
        == b"#\ndef f():\n    todo"
    )


def test_lines_that_only_went_are_not_put_where_they_may_be_already() -> None:
    assert undo(b"a\nb\nc\n", b"a\nc\n", b"a\nb\nc\nmine\n") is None
    assert undo(b"a\nb\nc\n", b"a\nc\n", b"mine\na\nb\nc\nmine\n") is None
    assert undo(b"a\n", b"", b"a\n") is None and undo(b"a\n", b"", b"") == b"a\n"


FILL = ["    a = 1", "    b = a", "    return b"]


@pytest.mark.parametrize("lost", [[0], [1], [2], [0, 1], [1, 2]])
@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("below", [True, False])
def test_a_fill_that_is_another_one_with_more_lines_is_replaced(
    lost: list[int], above: bool, below: bool
) -> None:
    def file(fill: list[str], mine: str = "todo") -> bytes:
        body = "\n".join(fill)
        top, end = mine if above else "todo", mine if below else "todo"
        return f"def e():\n    {top}\n\ndef f(x):\n{body}\n\ndef g():\n    {end}\n".encode()

    less = [line for number, line in enumerate(FILL) if number not in lost]
    for one, other in ((FILL, less), (less, FILL)):
        assert undo(file(one), file(other), file(other, "mine()")) == file(one, "mine()")


def test_many_equal_lines_take_no_time() -> None:
    many = b"x\n" * 20_000
    assert undo(many + b"todo\n" + many, many + b"x\n" + many, b"y\n" + many + b"x\n" + many + b"y\n") is None
