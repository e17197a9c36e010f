"""The picture of a canvas that is filled: what it shows, that it fits, that nothing in a file can steer it."""

import io
import re

import pytest
from rich.console import Console

from dg_lsp.cli.screen import Context, Screen, around, mean_entropy, page, picture, visible
from dg_lsp.messages import Draft, Run
from dg_lsp.model.clock import Clock, draft_of

HEAD = Run("    return ", anchored=True, accepted=True, entropy=0.0)
SURE = Run("max(words", anchored=False, accepted=True, entropy=0.0)
UNSURE = Run(" qux", anchored=False, accepted=False, entropy=6.0)
TAIL = Run(")\n\n", anchored=True, accepted=True, entropy=0.0)
DRAFT = Draft(7, (HEAD, SURE, UNSURE, TAIL), 312.4)
CONTEXT = Context("def longest(words):\n", "def other():\n    pass\n")


def plain(draft=DRAFT, context=CONTEXT, height=24):
    return picture(draft, context, colours=False, height=height).plain


def painted(draft=DRAFT, width=80, height=24):
    stream = io.StringIO()
    console = Console(file=stream, width=width, height=height, force_terminal=True, color_system="truecolor")
    console.print(picture(draft, CONTEXT, colours=True, height=height))
    return stream.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_without_colours_exactly_the_free_text_is_marked():
    assert "    return ⟦max(words qux⟧)\n" in plain()


def test_the_last_line_says_step_time_and_mean_entropy():
    # Nine sure and four unsure characters: 6.0 * 4 / 13.
    assert plain().splitlines()[-1] == "step 7  312 ms  mean entropy 1.85"


def test_a_draft_that_was_not_denoised_has_no_entropy():
    draft = draft_of(3, "max(words)", Clock(None))
    assert re.fullmatch(r"step 3  \d+ ms", plain(draft).splitlines()[-1])


def test_the_context_is_around_the_canvas():
    lines = plain().splitlines()
    assert lines.index("def longest(words):") < lines.index("def other():")


def test_a_free_line_end_is_seen_and_breaks_the_line():
    draft = Draft(1, (Run("a\nb", anchored=False, accepted=False, entropy=1.0),), 1.0)
    assert "⟦a↵\nb⟧" in plain(draft)


def test_colours_differ_between_fixed_sure_unsure_and_accepted():
    runs = [
        Run("xyz", a, b, e)
        for a, b, e in ((True, True, 0), (False, True, 0), (False, False, 0), (False, False, 5))
    ]
    found = [re.findall(r"\x1b\[([0-9;]+)mxyz", painted(Draft(1, (run,), 0.0))) for run in runs]
    assert all(len(styles) == 1 for styles in found) and len({styles[0] for styles in found}) == 4


def test_a_long_line_is_folded_and_not_lost():
    text = "".join(chr(97 + n % 26) for n in range(200))
    shown = re.sub(
        r"\x1b\[[0-9;]*m|\n", "", painted(Draft(1, (Run(text, False, False, 1.0),), 1.0), width=40)
    )
    assert text in shown


def test_the_gap_stays_in_sight_in_a_low_terminal():
    before = Run("fixed\n" * 60, anchored=True, accepted=True, entropy=0.0)
    found = plain(Draft(1, (before, SURE, before), 1.0), height=12)
    assert "⟦max(words⟧" in found and len(found.splitlines()) < 12


def test_a_terminal_is_repainted_and_gets_its_cursor_back(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    screen = Screen(terminal, ("def f():\n    ", "\n"))
    for draft in (DRAFT, DRAFT):
        screen.show(draft)
    screen.close()
    said = terminal.getvalue()
    assert said.count("\x1b[2K") > 4 and said.rindex("\x1b[?25h") > said.index("\x1b[?25l")
    assert "mean entropy" in said


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}])
def test_no_colours_are_shown_where_the_environment_says_so(monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    screen = Screen(terminal, ("", ""))
    screen.show(DRAFT)
    screen.close()
    assert "⟦max(words qux⟧" in terminal.getvalue() and "38;" not in terminal.getvalue()


def test_elsewhere_the_steps_1_2_4_8_and_the_last_are_written():
    stream = io.StringIO()
    screen = Screen(stream, ("", ""))
    for number in range(1, 12):
        screen.show(Draft(number, DRAFT.runs, 1.0))
    screen.close()
    assert re.findall(r"step (\d+)", stream.getvalue()) == ["1", "2", "4", "8", "11"]
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\x00", "\x7f", "\x9b", "\u202e", "\u2028", "\x0c"])
def test_no_character_of_a_file_steers_the_terminal(character):
    draft = Draft(1, (Run(f"a{character}b", anchored=True, accepted=True, entropy=0.0),), 1.0)
    assert character not in plain(draft, Context(character, character))


def test_around_leaves_out_what_the_canvas_shows_itself():
    context = around(DRAFT, "import re\ndef f():\n    return ", ")\n\nprint()\n")
    assert context == Context("import re\ndef f():\n", "print()\n")


def test_around_keeps_a_few_lines_only():
    context = around(DRAFT, "x\n" * 99 + "    return ", ")\n\n" + "y\n" * 99)
    assert context == Context("x\n" * 4, "y\n" * 3)


def test_mean_entropy_leaves_fixed_slots_out():
    assert mean_entropy(Draft(1, (TAIL, Run("ab", False, False, 2.0)), 0.0)) == 2.0
    assert mean_entropy(Draft(1, (TAIL,), 0.0)) == 0.0


def test_visible_keeps_ordinary_text_and_shows_control_characters():
    assert visible("a\x1bb\x07") == "a␛b␇"
    assert visible("naïve 字 ok\r\n", "\n") == "naïve 字 ok\n"


def test_the_page_shows_each_step_escapes_the_file_and_asks_for_nothing():
    evil = "</pre><script>alert(1)</script>[red]&amp;\"'"
    runs = (Run(evil, True, True, 0.0), Run(evil, False, False, 1.0))
    text = page([DRAFT, Draft(8, runs, 1.0)], Context(evil, evil), evil)
    assert "step 7" in text and "step 8" in text and "[red]" in text
    assert "<script" not in text and not re.search(r"\b(?:src|href|action)=", text)
    assert "nothing to show" in page([], CONTEXT, "t")
