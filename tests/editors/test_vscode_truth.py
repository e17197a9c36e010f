"""The truth that VS Code's random keys are held to finds what is wrong, and nothing else. No editor is needed."""

from typing import Any

from tests.editors.vscode_keys import ROW, TEXT, judge


def look(line: str, key: str | None = None, ghost: str = "", frames: int = 3, **more: Any) -> dict[str, Any]:
    """A look at the screen, with ghost text at the end of the line."""
    rows = TEXT.split("\n")
    rows[ROW] = line
    seen = {"rows": rows, "ghost": ghost, "before": line if ghost else "", "after": "", "misplaced": False}
    return {"time": 0.0, **seen, **({} if key is None else {"key": key, "frames": frames}), **more}


def test_what_is_shown_may_be_taken_and_nothing_else() -> None:
    begin = [look("    ", "N"), look("    N", "Tab", "one")]
    assert not judge([*begin, look("    None", "")]).wrong
    assert judge([*begin, look("    None", "")]).accepts == 1
    for wrong in ("    NoneN", "    N", "    N   ", "    None ", "    Noneone"):
        assert judge([*begin, look(wrong, "")]).wrong, wrong


def test_a_right_text_that_was_not_painted_is_counted_and_a_wrong_one_is_wrong() -> None:
    begin = [look("    ", "N"), look("    N", "Tab")]
    assert judge([*begin, look("    N   ", "")]).unseen == 0
    verdict = judge([*begin, look("    None", "")])
    assert (verdict.wrong, verdict.unseen) == ([], 1)
    assert judge([*begin, look("    NNone", "")]).wrong


def test_keys_that_are_not_drawn_yet_may_go_each_way_but_no_third() -> None:
    begin = [look("    ", "N"), look("    N", "o", "one"), look("    N", "Tab", "one", frames=0)]
    assert not judge([*begin, look("    None", "")]).wrong
    assert not judge([*begin, look("    No  ", "")]).wrong
    assert judge([*begin, look("    NoneNo", "")]).wrong
    assert judge([*begin, look("    NoneoN", "")]).wrong


def test_stale_and_misplaced_ghost_text_is_wrong_in_any_frame() -> None:
    assert judge([look("    ", "x"), look("    x", ghost="None"), look("    x", "")]).wrong
    assert judge([look("    ", "N"), look("    N", ghost="one", misplaced=True), look("    N", "")]).wrong


def test_what_comes_for_the_place_that_an_arrow_key_has_just_left_is_counted() -> None:
    begin = [look("    ", "N"), look("    N", "ArrowLeft", time=100.0)]

    def late(milliseconds: float, **where: Any) -> list[dict[str, Any]]:
        shown = {"ghost": "one", "misplaced": True, "time": milliseconds, **where}
        return [*begin, look("    N", **shown), look("    N", "", time=900.0)]

    verdict = judge(late(140.0))
    assert (verdict.wrong, verdict.old) == ([], 1)
    assert judge(late(500.0)).wrong, "by then the extension knew that the cursor had moved"
    assert judge(late(140.0, before="    Nx")).wrong, "there the cursor never was"


def test_a_change_elsewhere_is_wrong() -> None:
    rows = [*TEXT.split("\n"), "more"]
    assert judge([look("    ", "x"), look("    x", "", rows=[*rows[:1], "    x", *rows[2:]])]).wrong
