"""The picture of a settling canvas, drawn from frames that are written down here."""

from xml.etree import ElementTree

from benchmarks.picture import SOURCE, Frame, gaps, picture
from dg_lsp.cli.settling import Context
from dg_lsp.text.messages import Run

HERE = Context("call(", ")\nend <&\n")
FREE = Run("a, b", anchored=False, accepted=True, entropy=1.0)
ANCHOR = Run("call(", anchored=True, accepted=True, entropy=0.0)


def test_each_gap_of_the_source_is_cut_out_of_text_without_marks():
    plain = SOURCE.replace("⟦", "").replace("⟧", "")
    cut = list(gaps(SOURCE))
    assert [before + wanted + after for before, wanted, after in cut] == [plain] * 3
    assert cut[0][0].endswith("super().__init__(")
    assert cut[0][1] == "name, age"


def test_the_picture_is_svg_that_shows_one_frame_after_the_other():
    frames = [Frame(HERE, (FREE,), "step 1", 1.0), Frame(HERE, (ANCHOR, FREE), "done", 3.0, done=True)]
    drawn = picture(frames, "a <title>")
    root = ElementTree.fromstring(drawn)
    groups = [g for g in root if g.tag.endswith("}g")]
    assert [g.get("class") for g in groups] == ["frame", "frame last"]
    words = ["".join(t.itertext()) for t in groups[0] if t.tag.endswith("}text")]
    assert words == ["call(", "a, b", ")", "end <&", "step 1"]
    assert "animation-duration: 4.00s" in drawn
    assert "@keyframes f1{0%{opacity:0}25.00%{opacity:1}100.00%{opacity:0}}" in drawn
    assert "script" not in drawn
