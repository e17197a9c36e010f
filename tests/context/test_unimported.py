"""Names that a document uses and neither defines nor imports, for a gap in an import."""

import pytest

from dg_lsp.budget import within
from dg_lsp.context.unimported import unimported
from dg_lsp.gaps.find import find_gap
from dg_lsp.gaps.gap import Gap
from dg_lsp.source.document import Document

# Language, text with the cursor as `|`, and the names that are found.
CASES = {
    "java": (
        "import java.util.Map;\nimport java.util.|\n\nclass A {\n    Map<A, A> all;\n\n    String b(int parts) {\n"
        '        StringJoiner joiner = new StringJoiner(",");\n        return b(parts, joiner);\n    }\n}\n',
        ("StringJoiner",),
    ),
    "python": (
        "import os\nfrom |\n\n\ndef load(path: Path) -> str:\n    # Missing in a comment\n"
        "    return json.loads(os.fspath(path), first=print)\n",
        ("Path", "json"),
    ),
    "typescript": (
        "import { a } from './a'\nimport { |\n\nexport function f(given: Given): number {\n  const local = a(given)\n"
        "  return local.missing + other(local)\n}\n",
        ("Given", "other"),
    ),
    "rust": (
        "use std::fmt;\nuse std::|\n\nstruct Own;\n\nfn f(own: Own) -> fmt::Result {\n"
        "    let map = HashMap::new();\n    g(own, map)\n}\n\n"
        "fn g(own: Own, map: u8) -> fmt::Result {\n    Ok(())\n}\n",
        ("HashMap",),
    ),
}


def names(language: str, marked: str) -> tuple[str, ...]:
    before, after = marked.split("|")
    document = Document("file:///p/own", language, 0, (before + after).encode())
    return unimported(document, find_gap(document, len(before.encode())))


@pytest.mark.parametrize("language", CASES)
def test_names_that_nothing_defines_or_imports_are_found(language: str) -> None:
    marked, wanted = CASES[language]
    assert names(language, marked) == wanted


@pytest.mark.parametrize(
    ("language", "marked", "wanted"),
    [
        ("python", "from json import loads\nimport |\n\n\nf = json.dumps(loads(a))\n", ("json",)),
        ("python", "import json, os.path as path\nimport |\n\n\nf = json.dumps(path)\n", ()),
        ("typescript", "import { load } from 'json'\nimport { |\n\njson.dumps(load(1))\n", ("json",)),
    ],
)
def test_the_module_of_imported_names_is_not_imported_with_them(
    language: str, marked: str, wanted: tuple[str, ...]
) -> None:
    assert names(language, marked) == wanted


def test_only_a_gap_in_an_import_has_some() -> None:
    marked, _ = CASES["python"]
    assert names("python", marked.replace("from |", "x = |")) == ()
    assert names("python", "import |\n\n\ndef f(a):\n    return a\n") == ()


def test_the_first_names_are_taken() -> None:
    found = names("python", "from |\n\n" + "".join(f"use_{n}(1)\n" for n in range(200)))
    assert found == tuple(f"use_{n}" for n in range(24))


def test_a_file_that_takes_too_long_has_none_and_is_filled_all_the_same() -> None:
    many = b"".join(b"use_%d(a, b)\n" % n for n in range(4_000))
    document = Document("file:///p/own.py", "python", 0, b"from \n" + many)
    with within(0.02):
        assert unimported(document, Gap(5, 5, "rest_of_line", "")) == ()
