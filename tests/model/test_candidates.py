"""Candidates: which texts can be shown as they were written."""

import pytest

from dg_lsp.messages import Infill
from dg_lsp.model.candidates import Candidate, checked


@pytest.mark.parametrize(
    ("text", "refusal"),
    [("got != 5", ""), ("got != 5 {", ""), ("got != 5 {}; }", "it does not fit its place")],
)
def test_a_header_may_be_cut_in_front_of_its_body(text: str, refusal: str) -> None:
    request = Infill("package p\n\nfunc F(got int) {\n\tif ", "\n}\n", "go", kind="expression", indent="\t")
    fill = checked(request, Candidate(text))
    assert fill.refusal == refusal
    assert refusal or fill.text == "got != 5"


@pytest.mark.parametrize("below", ["", "\n\nfunc main() {\n\tx := 1\n}"])
@pytest.mark.parametrize(
    ("language", "before", "written", "ending"),
    [
        ("go", "package p\n\nfunc F() ", "int {", "\n}"),
        ("go", "package p\n\nfunc F(", "x int) int {", "\n}"),
        ("go", "package p\n\nfunc F(x int) int {\n\tif ", "x > 1 {", "\n\t}"),
    ],
)
def test_a_text_that_needs_an_ending_is_shown_with_it(
    language: str, before: str, written: str, ending: str, below: str
) -> None:
    indent = before[len(before.rstrip("\n").rpartition("\n")[0]) :].lstrip("\n")
    indent = indent[: len(indent) - len(indent.lstrip())]
    request = Infill(before, below + "\n", language, kind="rest_of_line", indent=indent)
    fill = checked(request, Candidate(written))
    assert not fill.refusal
    assert fill.text.startswith(written) and fill.text.removeprefix(written) in ("", ending)
    assert not below or fill.text == written + ending
