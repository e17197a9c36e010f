"""Which fills still agree after some typing, and the next line after one."""

import pytest

from dg_lsp.filling.offers import Offer, accepted_end, covered, next_line, still_good, used_up
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.source.document import Document

OLD = Document("file:///a.py", "python", 1, b"x = \ny = 1\n")
OFFER = Offer(OLD.uri, OLD.data, 4, 4, ("None", "No", "1"))


def typed(text: bytes, rest: bytes = b"") -> tuple[Document, int]:
    return Document(OLD.uri, "python", 2, b"x = " + text + rest + b"\ny = 1\n"), 4 + len(text)


def test_what_agrees_is_shortened_by_nothing_and_replaces_what_was_typed() -> None:
    document, cursor = typed(b"N")
    edits = still_good(OFFER, document, cursor)
    assert [e.text for e in edits] == ["None", "No"]
    assert apply_edit(document, edits[0]).data == b"x = None\ny = 1\n"


def test_nothing_typed_keeps_all() -> None:
    assert len(still_good(OFFER, *typed(b""))) == 3


def test_what_was_typed_to_its_end_is_no_offer() -> None:
    assert [e.text for e in still_good(OFFER, *typed(b"No"))] == ["None"]
    assert still_good(OFFER, *typed(b"None")) == []


def test_a_fill_that_was_taken_whole_is_used_up() -> None:
    assert used_up(OFFER, *typed(b"None")) and used_up(OFFER, *typed(b"No"))
    assert not used_up(OFFER, *typed(b"N"))
    assert not used_up(OFFER, *typed(b"None", b")"))
    assert not used_up(OFFER, Document(OLD.uri, "python", 2, b"x = None\ny = 2\n"), 8)


def test_a_fill_that_was_accepted_ends_where_its_text_does() -> None:
    assert accepted_end(OFFER, typed(b"None")[0]) == 8 and accepted_end(OFFER, typed(b"No")[0]) == 6
    assert accepted_end(OFFER, typed(b"N")[0]) is None
    assert accepted_end(OFFER, typed(b"None ")[0]) is None
    assert accepted_end(OFFER, typed(b"None)")[0]) is None


def test_what_does_not_agree_is_none() -> None:
    assert still_good(OFFER, *typed(b"Q")) == []
    assert still_good(OFFER, *typed(b"N", b")")) == []


def test_brackets_that_the_editor_has_closed_stay_after_the_rest_of_the_offer() -> None:
    offer = Offer(OLD.uri, OLD.data, 4, 4, ("sum(a[0])", "sum(b) + 1"))
    for text, closed in ((b"sum(", b")"), (b"sum(a", b")"), (b"sum(a[", b"])")):
        document, cursor = typed(text, closed)
        edit = still_good(offer, document, cursor)[0]
        assert edit.end == cursor
        assert apply_edit(document, edit).data == b"x = sum(a[0])\ny = 1\n"
    assert not used_up(offer, *typed(b"sum(a[", b"])")) and used_up(offer, *typed(b"sum(a[0", b"])"))
    assert (
        still_good(offer, *typed(b"sum(", b"}")) == [] and still_good(offer, *typed(b"sum(", b") + 2")) == []
    )


def test_a_block_stays_offered_while_it_is_typed_into_the_braces_that_the_editor_has_closed() -> None:
    block = "if (a) {\n        b();\n        c();\n    }"
    old = Document("file:///a.js", "javascript", 1, b"    \ny();\n")
    offer = Offer(old.uri, old.data, 4, 4, (block,))
    for text, closed in (
        (b"if (", b")"),
        (b"if (a) {", b"}"),
        (b"if (a) {\n        ", b"\n    }"),
        (b"if (a) {\n        b();\n        ", b"\n    }"),
    ):
        cursor = 4 + len(text)
        document = Document(old.uri, "javascript", 2, b"    " + text + closed + b"\ny();\n")
        edit = still_good(offer, document, cursor)[-1]
        assert apply_edit(document, edit).data == f"    {block}\ny();\n".encode()
    # Another indentation of the brace, and one that the offer does not have, are left alone.
    for closed in (b"\n  }", b"\n    })"):
        typed = b"    if (a) {\n        " + closed + b"\ny();\n"
        assert still_good(offer, Document(old.uri, "javascript", 2, typed), 21) == []


def test_an_offer_that_goes_on_after_closed_brackets_covers_them() -> None:
    offer = Offer(OLD.uri, OLD.data, 4, 4, ("dict(zip(a, b))[0]",))
    for text, closed in (
        (b"dict(", b")"),
        (b"dict(zip(", b"))"),
        (b"dict(zip(a, b)", b")"),
        (b"dict(zip(a, b))[", b"]"),
    ):
        document, cursor = typed(text, closed)
        (edit,) = still_good(offer, document, cursor)
        assert covered(document, cursor, edit) == (closed != b"]")
        assert apply_edit(document, edit).data == b"x = dict(zip(a, b))[0]\ny = 1\n"
    # Brackets that the offer does not have would be lost.
    assert (
        still_good(offer, *typed(b"dict(", b"}")) == [] and still_good(offer, *typed(b"dict(", b")))")) == []
    )


def test_brackets_that_the_offer_closes_early_may_be_typed() -> None:
    offer = Offer(OLD.uri, OLD.data, 4, 4, ("print(len(a), max(b))",))
    document, cursor = typed(b"print(len(a", b"))")
    covering, plain = still_good(offer, document, cursor)
    assert covered(document, cursor, covering) and not covered(document, cursor, plain)
    for edit in (covering, plain):
        assert apply_edit(document, edit).data == b"x = print(len(a), max(b))\ny = 1\n"
    # With the bracket typed, what covers still comes to the same.
    document, cursor = typed(b"print(len(a)", b")")
    assert apply_edit(document, covering).data == b"x = print(len(a), max(b))\ny = 1\n"
    (edit,) = still_good(offer, document, cursor)
    assert not covered(document, cursor, edit)
    assert len(still_good(offer, *typed(b"print(", b")"))) == 1


def test_a_change_elsewhere_or_another_document_is_none() -> None:
    assert still_good(OFFER, Document(OLD.uri, "python", 2, b"x = N\ny = 2\n"), 5) == []
    assert still_good(OFFER, Document(OLD.uri, "python", 2, b"z = N\ny = 1\n"), 5) == []
    assert still_good(OFFER, Document("file:///b.py", "python", 2, b"x = N\ny = 1\n"), 5) == []


def test_trailing_blanks_are_replaced() -> None:
    document, cursor = typed(b"N", b"  ")
    assert apply_edit(document, still_good(OFFER, document, cursor)[0]).data == b"x = None\ny = 1\n"


def test_a_shrunken_document_is_none() -> None:
    assert still_good(OFFER, Document(OLD.uri, "python", 2, b"x"), 1) == []


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
