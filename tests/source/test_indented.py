"""Reading Python that no parser can read yet: a long class with damage in its other members."""

import random
import re

import pytest

from dg_lsp.gaps import find as gaps
from dg_lsp.messages import Kind
from dg_lsp.source import items
from dg_lsp.source.document import Document
from dg_lsp.source.items import focus
from dg_lsp.source.language import load_language

METHOD = '''    @cached(size=(1,
                  2))
    def m{0}(self, a, b=(1, [2])):  # "it's" {{
        """A docstring: it's one, with (brackets.

    def nobody(self):
        """
        if a == "x(" and b['"']:
            return [a, {0},
                    "(", (
                    2),  # )
                    -1,
                    b]  # (
        text = 'a' "b" + f"{{a}}" \\
            + \'\'\'(\'\'\'
        return text.replace("'", '"')

'''
LONG = (
    "class A(B):\n    '''Many.'''\n\n    x = (1)\n\n"
    + "".join(map(METHOD.format, range(40)))
    + "    y = (\n        2)\n"
)
FILE = f"import os\n\n\n{LONG}\n\nclass C:\n    pass\n"
PYTHON = load_language("python")


def test_of_a_long_class_only_the_member_round_the_place_is_left() -> None:
    data = LONG.encode()
    at = data.index(b"m20(")
    left = focus(PYTHON, data, at)
    assert re.findall(rb"def m(\d+)", left) == [b"20"]
    assert len(left) == len(data)
    assert left.index(b"m20(") == at
    # The class must end where it did, so that a gap of all of it is found.
    assert len(left.rstrip()) == len(data.rstrip())
    compile(left, "left", "exec")


@pytest.mark.parametrize(
    "kind", ["function_body", "class_body", "rest_of_line", "statement", "arguments", None]
)
def test_a_gap_in_a_long_broken_class_is_where_it_is_when_all_of_it_is_read(
    kind: Kind | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, documents = random.Random(3), []
    for number in range(12):
        head, line = f"def m{rng.randrange(40)}(self, a, b=(1, [2])):", "\n            return [a, "
        at = FILE.index(line, FILE.index(head)) + len(line)
        # More than a repair at the cursor mends stands at the end of the file.
        text = FILE[:at] + "f(" * (number % 2) + FILE[at:] + "def f(:\n" * 9000
        documents.append(
            (Document(f"file:///{number}.py", "python", 0, text.encode()), at + 2 * (number % 2))
        )

    def found() -> list[object]:
        spans: list[object] = []
        for document, cursor in documents:
            try:
                gap = gaps.find_gap(document, cursor, kind)
                spans.append((gap.start, gap.end, gap.kind, gap.indent, gap.name))
            except gaps.NoGap as error:
                spans.append(str(error))
        return spans

    quick = found()
    monkeypatch.setattr(items, "LONG", 10**9)
    focus.cache_clear()
    assert quick == found()
    focus.cache_clear()


def test_what_is_no_class_or_short_or_goes_on_below_it_is_read_whole() -> None:
    short = b"class A:\n    def f(self):\n        pass\n"
    assert focus(PYTHON, short, 20) == short
    function = LONG.replace("class A(B):", "def a():").encode()
    assert focus(PYTHON, function, 3000) == function
    below = LONG.encode() + b"if x:\n    y()\n"
    assert focus(PYTHON, below, len(below) - 3) == below
    # The text at column 0 is in a docstring, which would lose one of its ends.
    inside = LONG.replace("A docstring: it's one", "A docstring:\nit's one", 1).encode()
    assert focus(PYTHON, inside, inside.index(b"m20(")) == inside
