"""Recent edits and places of other documents: which lines are pieces, in which order, and what is left out."""

from dg_lsp.context.recent import Edited, recent_edits
from dg_lsp.server.documents import Documents, Position

OWN, OTHER, THIRD = "file:///p/own.py", "file:///p/lib/other.py", "file:///p/third.py"
TEXT = "import os\n\n\ndef first(a):\n    return a\n\n\ndef last(a):\n    return a\n"


def opened(**languages: str) -> Documents:
    documents = Documents()
    for uri in (OWN, OTHER, THIRD):
        documents.open(uri, languages.get(uri.rpartition("/")[2].partition(".")[0], "python"), 1, TEXT)
        documents.snapshot(uri)
    return documents


def write(documents: Documents, uri: str, at: Position, text: str) -> None:
    """Type `text` key by key."""
    for key in text:
        documents.change(uri, 2, [((at, at), key)])
        at = (at[0] + 1, 0) if key == "\n" else (at[0], at[1] + 1)


def pieces(documents: Documents) -> list[tuple[str, str]]:
    """The path and the text of each piece for a request in OWN."""
    found: list[Edited] = []
    for uri, bursts, place, copied in documents.edited():
        document = documents.snapshot(uri)
        assert document is not None
        edited = Edited(document, bursts, place, copied)
        found += [edited] if uri != OWN else []
    own = documents.snapshot(OWN)
    assert own is not None
    return [(piece.path, piece.text) for piece in recent_edits(own, found).pieces]


def far(documents: Documents, uri: str) -> None:
    """Put the user's place where nothing is written, after many lines."""
    line = len(TEXT.splitlines())
    documents.change(uri, 2, [(((line, 0), (line, 0)), "\n" * 40)])
    documents.visit(uri, line + 30)


def test_the_lines_of_the_last_edits_are_pieces_and_the_newest_comes_last() -> None:
    documents = opened()
    for uri in (OTHER, THIRD):
        far(documents, uri)
    write(documents, THIRD, (0, 9), ", re")
    far(documents, THIRD)
    write(documents, OTHER, (7, 10), ", limit=20")
    write(documents, OTHER, (3, 9), "_name")
    documents.visit(OTHER, 30)
    assert [(path, text.split("\n\n")[0]) for path, text in pieces(documents)] == [
        ("third.py", "import os, re"),
        ("lib/other.py", "def first_name(a):\ndef last(a, limit=20):"),
    ]
    write(documents, THIRD, (4, 12), " + 1")
    assert [path for path, _ in pieces(documents)] == ["lib/other.py", "third.py"]


def test_the_lines_around_the_last_edit_are_a_piece_or_those_where_the_user_was_after_it() -> None:
    documents, lines = opened(), [f"x{n} = {n}" for n in range(60)]
    documents.open(OTHER, "python", 1, "\n".join(lines))
    documents.visit(OTHER, 20)
    assert pieces(documents) == [("lib/other.py", "\n".join(lines[18:30]) + "\n")]
    write(documents, OTHER, (40, 0), "y")
    lines[40] = "yx40 = 40"
    assert pieces(documents) == [("lib/other.py", "\n".join(lines[38:50]) + "\n")]
    documents.visit(OTHER, 0)
    assert pieces(documents) == [("lib/other.py", "\n".join([*lines[:12], lines[40]]) + "\n")]
    documents.visit(OTHER, 59)
    documents.visit("file:///p/unknown.py", 3)
    assert pieces(documents) == [("lib/other.py", "\n".join([lines[40], *lines[57:]]) + "\n")]


def test_the_lines_that_were_copied_are_a_piece_until_their_document_changes() -> None:
    documents, lines = opened(), [f"x{n} = {n}" for n in range(60)]
    documents.open(OTHER, "python", 1, "\n".join(lines))
    documents.copy(OTHER, (30, 31))
    assert pieces(documents) == [("lib/other.py", "\n".join(lines[28:40]) + "\n")]
    documents.visit(OTHER, 2)
    assert pieces(documents) == [("lib/other.py", "\n".join([*lines[:12], *lines[30:32]]) + "\n")]
    documents.copy(OTHER, (50, 500))
    assert pieces(documents) == [("lib/other.py", "\n".join([*lines[:12], *lines[50:]]) + "\n")]
    documents.copy("file:///p/unknown.py", (3, 3))
    write(documents, OTHER, (40, 0), "y")
    lines[40] = "yx40 = 40"
    assert pieces(documents) == [("lib/other.py", "\n".join(lines[38:50]) + "\n")]


def test_a_document_that_was_copied_from_last_is_the_last_piece() -> None:
    documents = opened()
    for uri in (OTHER, THIRD):
        write(documents, uri, (4, 12), " + 1")
    documents.copy(OTHER, (0, 0))
    assert [(path, "import os" in text) for path, text in pieces(documents)] == [
        ("third.py", False),
        ("lib/other.py", True),
    ]


def test_of_a_long_edit_its_first_lines_are_sent_and_of_an_empty_one_nothing() -> None:
    documents = opened()
    write(documents, OTHER, (9, 0), "".join(f"x{n} = {n}\n" for n in range(40)))
    documents.change(THIRD, 2, [(((0, 0), (9, 0)), "")])
    ((path, text),) = pieces(documents)
    assert path == "lib/other.py" and text.count("\n") == 14 and "x0 = 0\n" in text


def test_lines_with_a_secret_and_those_in_another_language_are_left_out() -> None:
    documents = opened(third="rust")
    write(documents, THIRD, (0, 9), ", re")
    write(documents, OTHER, (9, 0), 'password = "correct-horse-7"\n')
    assert pieces(documents) == []
    write(documents, OTHER, (3, 9), "_name")
    documents.visit(OTHER, 9)
    documents.copy(OTHER, (9, 9))
    assert pieces(documents) == [("lib/other.py", "def first_name(a):\n")]


def test_few_documents_are_sent_the_last_ones() -> None:
    documents = opened()
    for n in range(6):
        uri = f"file:///p/m{n}.py"
        documents.open(uri, "python", 1, TEXT)
        write(documents, uri, (9, 0), f"x = {n}")
    assert [path for path, _ in pieces(documents)] == ["m3.py", "m4.py", "m5.py"]
