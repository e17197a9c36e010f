"""Definitions of the names round a gap, out of the files that the document imports."""

from dg_lsp.context.definitions import Context, context_of
from dg_lsp.context.index import Index
from dg_lsp.gaps.find import find_gap
from dg_lsp.source.document import Document

SHAPES = '''import math


class Shape(Base):
    """A shape."""

    name: str = ""

    def area(self, unit: str) -> float:
        """The area."""
        if unit:
            return 1.0
        return 0.0

    @property
    def edges(self) -> int: return 4


class Other:
    pass


def scale(shape: Shape, by: float = 2.0) -> Shape:
    return shape
'''
USER = "from .shapes import Shape, scale\n\n\ndef size(shape: Shape):\n    one = scale(shape)\n    return one.|\n"


def index_of(files: dict[str, str], language: str = "python") -> Index:
    index = Index()
    for path, text in files.items():
        assert index.put(f"file:///p/{path}", language, text.encode())
    return index


def context(marked: str, index: Index, path: str = "app/user.py", room: int = 4000) -> Context:
    before, after = marked.split("|")
    language = {"py": "python", "ts": "typescript", "go": "go"}[path.rpartition(".")[2]]
    document = Document(f"file:///p/{path}", language, 0, (before + after).encode())
    return context_of(document, find_gap(document, len(before.encode())), index, room)


def test_an_imported_class_and_function_are_sent_without_the_bodies_of_functions() -> None:
    found = context(USER, index_of({"app/shapes.py": SHAPES}))
    assert found.uris == ("file:///p/app/shapes.py",)
    (piece,) = found.pieces
    assert piece.path == "shapes.py"
    assert piece.text == (
        'class Shape(Base):\n    """A shape."""\n\n    name: str = ""\n\n'
        "    def area(self, unit: str) -> float: ...\n\n"
        "    @property\n    def edges(self) -> int: ...\n"
        "def scale(shape: Shape, by: float = 2.0) -> Shape: ...\n"
    )


def test_files_that_are_not_imported_and_names_that_are_not_used_are_left_out() -> None:
    index = index_of(
        {"app/shapes.py": SHAPES, "app/others.py": SHAPES, "lib/util/__init__.py": "def far():\n    pass\n"}
    )
    assert context(USER.replace("shapes", "forms"), index) == Context()
    assert context("from .shapes import Shape\n\n\ndef f():\n    x = |\n", index) == Context()
    found = context("from lib import util\n\n\ndef run():\n    util.far()\n    x = |\n", index)
    assert [(piece.path, piece.text) for piece in found.pieces] == [
        ("../lib/util/__init__.py", "def far(): ...\n")
    ]


def test_what_is_typed_on_the_gaps_line_changes_nothing() -> None:
    index = index_of({"app/shapes.py": SHAPES})
    bare = "from .shapes import Shape, scale\n\n\ndef size(shape: Shape):\n    |\n"
    assert context(bare, index) == context(bare.replace("|", "one = scale(|"), index)
    assert "scale" not in context(bare, index).pieces[0].text


def test_the_room_is_kept_and_the_most_used_name_comes_first() -> None:
    index = index_of({"app/shapes.py": SHAPES})
    for room in range(0, 1000, 50):
        assert sum(len(piece.text) for piece in context(USER, index, room=room).pieces) <= room
    more = USER.replace("    return", "    two = scale(scale(one))\n    return")
    (piece,) = context(more, index, room=150).pieces
    assert piece.text.startswith("def scale")


def test_the_order_is_that_of_the_paths() -> None:
    index = index_of({"app/b.py": "", "app/shapes.py": SHAPES, "app/alpha.py": "def first(): return 1\n"})
    user = USER.replace("def size", "from . import alpha\n\n\ndef size").replace(
        "one =", "first(); first(); one ="
    )
    assert [piece.path for piece in context(user, index).pieces] == ["alpha.py", "shapes.py"]


def test_other_languages() -> None:
    shapes = "export class Shape {\n  area(unit: string): number {\n    return 1;\n  }\n}\n"
    user = 'import { Shape } from "./shapes";\n\nfunction size(shape: Shape) {\n  return shape.|\n}\n'
    (piece,) = context(user, index_of({"app/shapes.ts": shapes}, "typescript"), "app/user.ts").pieces
    assert piece.text == "export class Shape {\n  area(unit: string): number { ... }\n}\n"


def test_broken_and_odd_files_do_no_harm() -> None:
    odd = {"app/shapes.py": "class Shape(:\n  def\xff\n\x00", "app/alpha.py": "def first(" * 5000}
    odd["app/circle.py"] = "class Circle:\n    pass\n"
    user = "from . import shapes, alpha, circle\n\n\ndef f():\n    Shape(first, Circle)\n    x = |\n"
    found = context(user, index_of(odd))
    assert sum(len(piece.text) for piece in found.pieces) <= 4000
    # The file that takes too long to read is left out, and the others are not.
    assert any("class Circle" in piece.text for piece in found.pieces)
