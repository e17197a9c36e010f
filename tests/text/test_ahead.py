"""The state after Enter behind a line."""

import pytest

from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills.offers import next_line


@pytest.mark.parametrize(
    ("text", "after", "language"),
    [
        ("    x = 1|\n", "    x = 1\n    |\n", "python"),
        ("    if x:|", "    if x:\n        |", "python"),
        ("        return x|  \ny", "        return x\n    |  \ny", "python"),
        ("pass|\n", "pass\n|\n", "python"),
        ("x = (|\r\n", "x = (\r\n    |\r\n", "python"),
        ("\tif (x) {|\n\t}", "\tif (x) {\n\t\t|\n\t}", "typescript"),
        ("  return x;|\n", "  return x;\n  |\n", "typescript"),
        ("  case 1:|\n", "  case 1:\n  |\n", "typescript"),
    ],
)
def test_the_next_line_is_indented_as_editors_do(text: str, after: str, language: str) -> None:
    document = Document("file:///a", language, 3, text.replace("|", "").encode())
    found = next_line(document, len(text[: text.index("|")].encode()))
    assert found is not None
    assert found[0].data.decode() == after.replace("|", "")
    assert found[1] == len(after[: after.index("|")].encode())


def test_a_line_that_goes_on_has_no_next_one() -> None:
    assert next_line(Document("file:///a", "python", 3, b"f(x)"), 3) is None
