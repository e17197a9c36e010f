"""The project round a hole: its other files, but for copies of the hole's own."""

from pathlib import Path

from dg_lsp.bench.holes import make_cases
from dg_lsp.bench.projects import is_alike, project_of
from dg_lsp.source.document import read_document

OWN = (
    "def first(one):\n    value = load(one)\n    return value\n\n\ndef second(one):\n    return first(one)\n"
)


def test_a_holes_own_file_and_those_like_it_are_left_out(tmp_path: Path) -> None:
    files = {
        "own.py": OWN,
        "copy.py": "import os\n" + OWN,
        "other.py": "x = load(2)\n",
        "notes.txt": "x = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    case = make_cases([read_document(tmp_path / "own.py")], "expression", 1, 0)[0]
    index = project_of(case)
    assert [Path(o.uri).name for o in index.beside(case.document.uri, "python")] == ["other.py"]


def test_a_third_of_the_lines_makes_a_copy() -> None:
    one = b"a\nb\n\nc\n"
    assert is_alike(one, b"a\n" + b"\n".join(b"%d" % n for n in range(20)))
    assert not is_alike(one, b"x\n\n\ny\n")
    assert not is_alike(b"", b"")
