"""The picture of a settling canvas: what it shows, that it fits, that nothing in a file can steer it."""

import html
import re
from html.parser import HTMLParser

import pytest

from dg_lsp.cli.page import page
from dg_lsp.cli.settling import Color, Context, around, columns, frame, mean_entropy, repaint, visible
from dg_lsp.text.messages import Draft, Run

HEAD = Run("    return ", anchored=True, accepted=True, entropy=0.0)
SURE = Run("max(words", anchored=False, accepted=True, entropy=0.0)
UNSURE = Run(" qux", anchored=False, accepted=False, entropy=6.0)
TAIL = Run(")\n\n", anchored=True, accepted=True, entropy=0.0)
DRAFT = Draft(7, (HEAD, SURE, UNSURE, TAIL), 312.4)
CONTEXT = Context("def longest(words):\n", "def other():\n    pass\n")
_CODES = re.compile(r"\x1b\[[0-9;]*m")


def picture(draft=DRAFT, context=CONTEXT, color=Color.NONE, size=(80, 24)):
    return frame(draft, context, color, size)


def test_plain_frame_marks_exactly_the_free_text():
    assert "    return ⟦max(words qux⟧)\n" in picture()


def test_plain_frame_holds_no_escape():
    assert "\x1b" not in picture()


def test_progress_line_tells_step_time_and_mean_entropy():
    # Nine sure and four unsure characters: 6.0 * 4 / 13.
    assert picture().splitlines()[-1] == "step 7  312 ms  mean entropy 1.85"


def test_context_stands_round_the_canvas():
    lines = picture().splitlines()
    assert lines.index("def longest(words):") < lines.index("def other():")


def test_a_free_line_end_is_seen_and_breaks_the_line():
    draft = Draft(1, (Run("a\nb", anchored=False, accepted=False, entropy=1.0),), 1.0)
    assert "⟦a↵\nb⟧" in picture(draft)


@pytest.mark.parametrize("color", [Color.ANSI256, Color.TRUE])
def test_colours_differ_between_fixed_sure_unsure_and_accepted(color):
    def style(run):
        text = frame(Draft(1, (run,), 0.0), Context("", ""), color)
        found = re.search(r"\x1b\[([0-9;]+)m" + re.escape(run.text), text.split("\n", 1)[1])
        assert found is not None
        return found[1]

    runs = [
        Run("x", a, b, e)
        for a, b, e in ((True, True, 0), (False, True, 0), (False, False, 0), (False, False, 5))
    ]
    assert len({style(run) for run in runs}) == 4


def test_every_painted_piece_is_reset_within_its_row():
    for row in picture(color=Color.TRUE).splitlines():
        assert row.count("\x1b[0m") * 2 == row.count("\x1b[")


@pytest.mark.parametrize("size", [(80, 24), (20, 10), (1, 1), (300, 100)])
@pytest.mark.parametrize("color", list(Color))
def test_no_frame_is_wider_or_higher_than_the_terminal(size, color):
    wide = Run("字" * 70 + "\n" + "e\u0301" * 200 + "\tx" * 30, anchored=False, accepted=True, entropy=0.5)
    rows = frame(Draft(1, (HEAD, wide, *([TAIL] * 40)), 1.0), CONTEXT, color, size).splitlines()
    # Below nine columns or six rows nothing useful can be shown.
    assert len(rows) < max(size[1], 6)
    assert all(columns(_CODES.sub("", row)) < max(size[0], 9) for row in rows)


def test_a_long_line_is_folded_and_not_lost():
    text = "".join(chr(97 + n % 26) for n in range(200))
    shown = picture(Draft(1, (Run(text, False, False, 1.0),), 1.0), Context("", ""), size=(40, 24))
    assert text in shown.replace("\n", "")


def test_the_gap_stays_in_sight_in_a_low_terminal():
    before = Run("fixed\n" * 60, anchored=True, accepted=True, entropy=0.0)
    assert "⟦max(words⟧" in picture(Draft(1, (before, SURE, before), 1.0), size=(80, 12))


def test_repaint_goes_back_over_exactly_the_rows_painted():
    first = picture()
    assert repaint("", first) == first
    assert repaint(first, "x\n") == f"\x1b[{len(first.splitlines())}F\x1b[Jx\n"


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\x00", "\x7f", "\x9b", "\u202e", "\u2028", "\x0c"])
def test_no_character_of_a_file_steers_the_terminal(character):
    draft = Draft(1, (Run(f"a{character}b", anchored=True, accepted=True, entropy=0.0),), 1.0)
    assert character not in picture(draft, Context(character, character))


def test_a_draft_without_a_canvas_says_what_goes_on():
    assert "searching the length" in picture(Draft(0, (), 5.0))


def test_around_leaves_out_what_the_canvas_shows_itself():
    context = around(DRAFT, "import re\ndef f():\n    return ", ")\n\nprint()\n")
    assert context == Context("import re\ndef f():\n", "print()\n")


def test_around_keeps_a_few_lines_only():
    context = around(DRAFT, "x\n" * 99 + "    return ", ")\n\n" + "y\n" * 99)
    assert context == Context("x\n" * 8, "y\n" * 8)


def test_mean_entropy_leaves_fixed_slots_out():
    assert mean_entropy(Draft(1, (TAIL, Run("ab", False, False, 2.0)), 0.0)) == 2.0
    assert mean_entropy(Draft(1, (TAIL,), 0.0)) == 0.0


def test_visible_keeps_ordinary_text_and_shows_control_characters():
    assert visible("a\x1bb\x07") == "a␛b␇"
    assert visible("naïve 字 ok\r\n", "\n") == "naïve 字 ok\n"


class _Reader(HTMLParser):
    """Collects tags, attributes and the text of each class."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.texts, self._open = [], [], {}, []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in {"meta", "input"}:
            self._open.append(dict(attrs).get("class", tag))

    def handle_endtag(self, tag):
        self._open.pop()

    def handle_data(self, data):
        for name in self._open:
            self.texts[name] = self.texts.get(name, "") + data


def read(text):
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader._open == [], "every tag is closed"
    return reader


def test_page_has_one_section_for_each_step_with_a_canvas():
    tags = read(page([Draft(0, (), 1.0), DRAFT, DRAFT], CONTEXT, "t")).tags
    assert tags.count("section") == 2


def test_page_asks_for_nothing_from_outside():
    reader = read(page([DRAFT], CONTEXT, "t"))
    assert not {"link", "img", "iframe"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name in {"src", "href", "action"}]


def test_page_escapes_everything_that_a_file_holds():
    evil = "</pre><script>alert(1)</script>&amp;\"'"
    runs = (Run(evil, True, True, 0.0), Run(evil, False, False, 1.0))
    reader = read(page([Draft(1, runs, 1.0)], Context(evil, evil), evil))
    assert reader.tags.count("script") == 1
    assert reader.texts["anchor"].endswith(evil)
    assert reader.texts["title"] == evil


def test_page_shades_free_slots_by_entropy_and_fixes_anchors():
    text = page([DRAFT], CONTEXT, "t")
    body = text[text.index("<section") :]
    assert '<span class="free accepted" style="--e:0.00" title="0.00 nats">max(words</span>' in body
    assert '<span class="free" style="--e:1.00" title="6.00 nats"> qux</span>' in body
    assert '<span class="anchor">    return </span>' in body


def test_page_shows_title_step_and_time_in_both_themes():
    text = page([DRAFT], CONTEXT, "How it went")
    assert "<h1>How it went</h1>" in text
    assert "step 7, 312 ms" in html.unescape(text)
    assert "prefers-color-scheme: dark" in text


def test_page_without_steps_says_so():
    assert "nothing to show" in page([], CONTEXT, "t")
