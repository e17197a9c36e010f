"""Candidates: which texts can be shown as they were written."""

import pytest

from dg_lsp.model.candidates import Candidate, checked
from dg_lsp.text.messages import Infill


@pytest.mark.parametrize(
    ("text", "refusal"),
    [("got != 5", ""), ("got != 5 {", ""), ("got != 5 {}; }", "it does not fit its place")],
)
def test_a_header_may_be_cut_in_front_of_its_body(text: str, refusal: str) -> None:
    request = Infill("package p\n\nfunc F(got int) {\n\tif ", "\n}\n", "go", kind="expression", indent="\t")
    fill = checked(request, Candidate(text))
    assert fill.refusal == refusal
    assert refusal or fill.text == "got != 5"
