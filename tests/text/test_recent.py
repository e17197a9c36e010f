"""Recent edits and places of other documents: which lines are pieces, in which order, and what is left out."""

from dg_lsp.server.documents import Documents, Position
from dg_lsp.text.related.recent import Edited, recent_edits

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
    for uri in documents.edited():
        document = documents.snapshot(uri)
        assert document is not None
        found += [(document, documents.bursts(uri), documents.place(uri))] if uri != OWN else []
    own = documents.snapshot(OWN)
    assert own is not None
    return [(piece.path, piece.text) for piece in recent_edits(own, found).pieces]


def far(documents: Documents, uri: str) -> None:
    """Put the user's place where nothing is written, behind many lines."""
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
    assert pieces(documents) == [("lib/other.py", "def first_name(a):\n")]


def test_few_documents_are_sent_the_last_ones() -> None:
    documents = opened()
    for n in range(6):
        uri = f"file:///p/m{n}.py"
        documents.open(uri, "python", 1, TEXT)
        write(documents, uri, (9, 0), f"x = {n}")
    assert [path for path, _ in pieces(documents)] == ["m3.py", "m4.py", "m5.py"]
