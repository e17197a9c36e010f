"""A template that holds open code counts as a bracket, however its quotes are written."""

import pytest

from dg_lsp.context.prompt import build
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings
from dg_lsp.source.brackets import state_at
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language

OPEN = {
    "csharp": ('void F()\n{\n    var text = $"the {area', '}"}'),
    "csharp, verbatim": ('void F()\n{\n    var text = $@"the {area', '}"}'),
    "csharp, in a call": ('void F()\n{\n    G($"the {area', '}")}'),
    "javascript": ("function f() {\n  const text = `the ${area", "}`}"),
    "typescript, in a list": ("const text = [`the ${area(", ")}`]"),
}


@pytest.mark.parametrize("name", OPEN)
def test_an_open_template_is_closed_like_a_bracket(name: str) -> None:
    text, closed = OPEN[name]
    language = load_language(name.partition(",")[0])
    state = state_at(language, text.encode(), len(text), 0)
    assert state.closing(state.opened).decode() == closed


@pytest.mark.parametrize("name", OPEN)
def test_a_file_that_ends_in_an_open_template_is_read_at_each_cursor(name: str) -> None:
    text, language = OPEN[name][0], name.partition(",")[0]
    document = Document("file:///w/a", language, 0, text.encode())
    for offset in range(len(text) + 1):
        try:
            gap = find_gap(document, offset)
        except NoGap:
            continue
        build(document, gap, Settings())
        finish(document, gap, Fill("x)"))
