"""What is remembered of a text after damage that came edit by edit. In the samples `|` is the cursor."""

import random
import sysconfig
from pathlib import Path

import pytest

from dg_lsp.gaps.gap import Edit, apply_edit
from dg_lsp.source.analysis import tree_of, without_damage
from dg_lsp.source.document import Document
from dg_lsp.source.history import begun
from dg_lsp.source.language import load_language

# What is replaced by what: each stands once, at the moment that it is replaced.
Damage = tuple[tuple[str, str], ...]

PYTHON = '''\
"""A module."""

def first(x):
    """Say it."""
    return [x]


class Shape:
    def area(self, wide, high):
        total = wide * high
        for side in self.sides:
            total += side(1, 2)
        return total

    def name(self):
        return "shape"
'''
TYPESCRIPT = """\
const greeting = "hello";

function first(x: number) {
  return [x];
}

class Shape {
  area(wide: number, high: number) {
    let total = wide * high;
    for (const side of this.sides) {
      total += side(1, 2);
    }
    return total;
  }

  name() {
    return "shape";
  }
}
"""
PYTHON_AREA = """\
total = wide * high
        for side in self.sides:
            total += side(1, 2)
        return total"""
TYPESCRIPT_AREA = """{
    let total = wide * high;
    for (const side of this.sides) {
      total += side(1, 2);
    }
    return total;
  }"""
LOST = {
    "python": {
        "a quote above": (('Say it."""', 'Say it.""'),),
        "a bracket above": (("return [x]", "return [x"),),
        "a bracket in the header": (("high):", "high:"),),
        "the header cut": (("def area(self, wide, high):", "def ar"),),
        "a quote, a bracket and a header": (
            ('Say it."""', 'Say it."'),
            ("[x]", "[x"),
            ("name(self):", "na"),
        ),
    },
    "typescript": {
        "a quote above": (('"hello"', '"hello'),),
        "a bracket above": (("return [x];\n}", "return [x];\n"),),
        "a bracket in the header": (("high: number)", "high: number"),),
        "the header cut": (("area(wide: number, high: number) {", "ar {"),),
        "a quote, a bracket and a header": (('"hello"', '"hello'), ("[x]", "[x"), ("  name() {", "  na {")),
    },
}
SAMPLES = {"python": (PYTHON, PYTHON_AREA), "typescript": (TYPESCRIPT, TYPESCRIPT_AREA)}
DAMAGES = [(language, what) for language, kinds in LOST.items() for what in kinds]


def damaged(language: str, text: str, damage: Damage, newline: str = "\n") -> Document:
    """`text` as an open document that `damage` was done to, one edit after another."""
    data = text.replace("\n", newline).encode()
    document = Document("file:///m", language, 0, data, begun(data))
    for old, new in damage:
        gone, come = (part.replace("\n", newline).encode() for part in (old, new))
        assert document.data.count(gone) == 1, old
        start = document.data.index(gone)
        # As an editor would send it: without what stays.
        while gone and come and gone[:1] == come[:1]:
            gone, come, start = gone[1:], come[1:], start + 1
        document = apply_edit(document, Edit(start, start + len(gone), come.decode()))
    return document


def shown(document: Document, span: tuple[int, int]) -> str:
    return document.data[slice(*span)].decode().replace("\r\n", "\n")


# -- trees


def test_a_tree_is_parsed_once_and_equals_that_of_a_full_parse() -> None:
    rng, python = random.Random("trees"), load_language("python")
    source = (Path(sysconfig.get_path("stdlib")) / "textwrap.py").read_bytes()
    document, same = Document("file:///m.py", "python", 0, source, begun(source)), 0
    for _ in range(60):
        start = rng.randrange(len(document.data))
        document = apply_edit(
            document, Edit(start, start + rng.choice((0, 0, 1, 9)), rng.choice(("", "x", "(", "\n")))
        )
        if rng.random() < 0.5:
            continue
        tree = tree_of(python, document)
        assert tree_of(python, document) is tree
        assert tree.root_node.end_byte == len(document.data)
        same += str(tree.root_node) == str(python.parse(document.data).root_node)
        if same % 5 == 0:
            document = apply_edit(document, Edit(0, len(document.data), source.decode()))
            assert str(tree_of(python, document).root_node) == str(python.parse(source).root_node)
    # Recovery from errors may differ with what was there before, and only it may.
    assert same > 10


def test_a_document_from_a_file_has_no_history_and_still_a_tree() -> None:
    document = Document("file:///m.py", "python", 0, b"x = 1\n")
    assert not tree_of(load_language("python"), document).root_node.has_error
    assert without_damage(document, 0) == ()


# -- damage undone


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("language", "what"), DAMAGES)
def test_damage_elsewhere_is_undone_and_the_line_of_the_cursor_is_kept(
    language: str, what: str, newline: str
) -> None:
    sample, body = SAMPLES[language]
    document = damaged(language, sample, (*LOST[language][what], ("side(1, 2)", "side(1, √")), newline)
    found = without_damage(document, document.data.index("√".encode()))[0]
    assert found.document.data == sample.replace("side(1, 2)", "side(1, √").replace("\n", newline).encode()
    assert found.document.data[found.cursor :].startswith("√".encode())
    bare = body.removeprefix("{").removesuffix("}").replace("side(1, 2)", "side(1, √").replace("\n", newline)
    start = found.document.data.index(bare.encode())
    span = found.changes.span(start, start + len(bare.encode()))
    assert span is not None
    assert document.data[slice(*span)] == bare.encode()


def test_where_only_the_line_of_the_cursor_has_changed_nothing_is_undone() -> None:
    document = damaged("python", PYTHON, (("side(1, 2)", "side(1, √"),))
    assert without_damage(document, document.data.index("√".encode())) == ()


def test_damage_on_the_line_of_the_cursor_is_undone_next() -> None:
    document = damaged(
        "python", PYTHON, (("[x]", "[x"), ("total +=", "total ="), ("side(1, 2)", "side(1, √"))
    )
    line, place = without_damage(document, document.data.index("√".encode()))
    typed = PYTHON.replace("side(1, 2)", "side(1, √")
    assert line.document.data == typed.replace("total +=", "total =").encode()
    assert place.document.data == typed.encode()
    assert place.document.data[place.cursor :].startswith("√".encode())


def test_what_is_typed_in_one_place_is_kept_as_a_whole() -> None:
    typed = ("        return total\n", "        return total\n\n    def new(self):\n        if √\n")
    document = damaged("python", PYTHON, (('Say it."""', 'Say it.""'), typed))
    found = without_damage(document, document.data.index("√".encode()))[0]
    assert found.document.data == PYTHON.replace(*typed).encode()


def test_an_end_that_was_replaced_itself_has_no_way_back() -> None:
    document = damaged("python", PYTHON, (("total\n\n    def name(", "totals("), ("side(1, 2)", "side(1, √")))
    found = without_damage(document, document.data.index("√".encode()))[0]
    end = found.document.data.index(b"total\n\n") + 6
    assert found.changes.span(found.cursor, end) is None
    assert found.changes.span(found.cursor, end - 6) is not None


def test_what_was_put_in_at_the_ends_of_a_span_is_not_of_it() -> None:
    more = (
        ("total = wide", "# new\n        total = wide"),
        ("return total", "return total\n\n    limit = ("),
    )
    document = damaged("python", PYTHON, (*more, ("side(1, 2)", "side(1, √")))
    found = without_damage(document, document.data.index("√".encode()))[0]
    body = PYTHON_AREA.replace("side(1, 2)", "side(1, √")
    start = found.document.data.index(body.encode())
    span = found.changes.span(start, start + len(body.encode()))
    assert span is not None
    assert shown(document, span) == body
