"""Plain languages: their data loads, gaps are lines and blocks, and no fill breaks what is around it."""

import importlib
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.plain.__main__ import SAMPLES, judge_of, measure
from dg_lsp.context.outline import outline
from dg_lsp.gaps.find import NoGap, find_gap, find_gaps, find_named
from dg_lsp.gaps.gap import Gap, apply_edit
from dg_lsp.guard import fit, plain
from dg_lsp.guard.harm import harm_of
from dg_lsp.guard.site import Site
from dg_lsp.messages import Kind
from dg_lsp.reasons import Unreadable
from dg_lsp.source.document import Document
from dg_lsp.source.language import (
    has_language,
    language_ids,
    language_of,
    load_language,
    plain_languages,
)

ROOT = Path(__file__).parents[2]


def at(language: str, marked: str, kind: Kind | None = None) -> tuple[Document, Gap]:
    """The document `marked` without its cursor `|`, and the gap there."""
    before, _, after = marked.partition("‸")
    document = Document("file:///w/a", language, 1, (before + after).encode())
    return document, find_gap(document, len(before.encode()), kind)


def filled(language: str, marked: str, text: str) -> str:
    """The text with a fill at the cursor; the reason in brackets if it is refused."""
    document, gap = at(language, marked)
    edit = fit.make_edit(document, gap, text)
    reason = harm_of(document, gap, edit)
    return f"<{reason}>" if reason else apply_edit(document, edit).text


@pytest.mark.parametrize("name", plain_languages())
def test_its_data_loads_and_its_wheel_is_named(name: str) -> None:
    facts = tomllib.loads((ROOT / "grammars" / name / "language.toml").read_text(encoding="utf-8"))
    language = load_language(name)
    assert set(facts["ids"]) <= set(language_ids()) and language.is_plain and language.strings
    assert {language_of(f"a{suffix}") for suffix in facts["suffixes"]} == {name}
    assert not any(has_language(f"a{suffix}") for suffix in facts["suffixes"]), "no index reads them"
    if "wheel" not in facts:
        return
    package = facts["wheel"].replace("_", "-")
    importlib.import_module(facts["wheel"])
    assert language.tree is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for wanted in [project["dependencies"]] if name != "sql" else [extras["sql"], extras["dev"]]:
        assert [d for d in wanted if d.startswith(f"{package}>=") and ",<" in d]
    pins = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert any(pin.startswith(f"{package}==") for pin in pins)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.suffix[1:])
def test_true_lines_are_offered_and_few_wrong_ones_break_a_file(path: Path) -> None:
    assert judge_of(language_of(path))(path.read_text(encoding="utf-8"))
    found = measure(path, 16)
    assert found.offered >= 0.8 * found.places
    assert found.valid == found.offered
    assert found.broke <= 0.15 * found.wrong


def test_a_sample_is_there_for_every_plain_language() -> None:
    assert {language_of(path) for path in SAMPLES} == set(plain_languages())


@pytest.mark.parametrize(
    ("language", "marked", "text", "wanted"),
    [
        ("json", '{\n  "a": ‸\n  "b": 2\n}\n', "1", '{\n  "a": 1,\n  "b": 2\n}\n'),
        ("json", '{\n  "a": ‸\n  "b": 2\n}\n', '[1, 2],\n"c"', '{\n  "a": [1, 2],\n  "b": 2\n}\n'),
        ("lua", "if x‸\n  y()\nend\n", " == 2 then", "if x == 2 then\n  y()\nend\n"),
        ("lua", "function f()‸\n", "", "<no part of the fill fits into the gap>"),
        ("lua", "‸\n", "function f()", "function f()\nend\n"),
        ("shell", 'echo "‸\necho b\n', 'a $x"', 'echo "a $x"\necho b\n'),
        ("php", "<?php\n$x = foo(‸\n", '$a, "b");', '<?php\n$x = foo($a, "b");\n'),
        ("css", "a {\n  color: ‸\n}\n", "red;", "a {\n  color: red;\n}\n"),
        ("sql", "SELECT a, ‸ FROM t;\n", "count(b)", "SELECT a, count(b) FROM t;\n"),
        ("html", "<p>‸\n", "don't</p>", "<p>don't</p>\n"),
    ],
)
def test_the_rest_of_a_line_is_filled(language: str, marked: str, text: str, wanted: str) -> None:
    assert filled(language, marked, text) == wanted


@pytest.mark.parametrize(
    ("language", "marked", "text", "wanted"),
    [
        ("lua", "function f()\n  ‸\nend\n", "a = 1\n  b()\nend\nc()", "function f()\n  a = 1\n  b()\nend\n"),
        ("json", "{\n‸\n}\n", '"x": 1,\n  "y": 2\n}', '{\n  "x": 1,\n  "y": 2\n}\n'),
        ("yaml", "a:\n  ‸\nb: 1\n", "x: 1\n  y: 2\nz: 3", "a:\n  x: 1\n  y: 2\nb: 1\n"),
        ("php", "<?php\nif ($a) {\n\t‸\n}\n", "b();\n}", "<?php\nif ($a) {\n\tb();\n}\n"),
    ],
)
def test_an_empty_block_is_filled_up_to_its_end(language: str, marked: str, text: str, wanted: str) -> None:
    assert at(language, marked)[1].kind == "block"
    assert filled(language, marked, text) == wanted


@pytest.mark.parametrize(
    ("language", "marked", "text"),
    [
        ("sql", "CREATE TABLE t (\n  id INTEGER,\n  ‸\n);\n", "name TEXT);"),
        ("css", "a {\n  ‸\n}\n", "b: c; }"),
        ("json", '{\n  "a": ‸\n  "b": 2\n}\n', "1 2"),
        ("toml", "a = ‸\nb = 1\n", '"""'),
        ("html", "<ul>\n  <li>‸\n</ul>\n", "x</div>"),
        ("html", '<p class="a" ‸>b</p>\n', 'id="c" class="d"'),
        ("html", "<p>\n  ‸\n</p>\n", "<input disabled name=a disabled>"),
        ("kotlin", "fun f() {\n    ‸\n    g()\n}\n", "/* later"),
        ("lua", "local a = ‸\n", "'b\0'"),
    ],
)
def test_what_would_break_the_file_is_refused(language: str, marked: str, text: str) -> None:
    assert filled(language, marked, text).startswith("<the fill would")
    before, after = (part.encode() for part in marked.split("‸"))
    without = Site(replace(load_language(language), load_tree=lambda: None), "rest_of_line", before, after)
    if language not in ("json", "html"):
        assert plain.harm_between(without, text.encode()), "tokens alone show it"


def test_other_kinds_and_functions_are_no_part_of_it() -> None:
    document = Document("file:///w/a.lua", "lua", 1, b"function f()\nend\n")
    with pytest.raises(NoGap, match="read by lines"):
        find_gap(document, 12, "function_body")
    with pytest.raises(NoGap, match="no function f"):
        find_named(document, "f")
    assert find_gaps(document, 0, 20) == []


def test_a_long_file_keeps_the_headers_above_without_a_tree() -> None:
    text = b"services:\n  web:\n" + b"    - a: 1\n" * 6_000
    found = outline(load_language("yaml"), text, len(text) - 11, 500)
    assert found.kept == b"services:\n  web:\n"


def test_what_needs_a_tree_finds_nothing_where_there_is_no_grammar() -> None:
    language = replace(load_language("sql"), load_tree=lambda: None)
    assert language.keywords == ()
    with pytest.raises(Unreadable):
        language.parse(b"SELECT 1;\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("SELECT * FROM a WHERE b = 'c'", "SELECT * FROM a WHERE b = 'c';"), ("ALTER TABLE a", "")],
    ids=["whole", "cut short"],
)
def test_a_statement_of_sql_ends_before_the_one_below_it(text: str, shown: str) -> None:
    unknown = "ALTER TABLE {0} ADD PRIMARY KEY USING INDEX {0}_index;\n\n"
    above, below = (
        "".join(unknown.format(name) for name in names) for names in (("d", "e", "f"), ("g", "h", "i"))
    )
    found = filled("sql", f"{above}‸\n\n{below}", text)
    assert found == f"{above}{shown}\n\n{below}" if shown else found.startswith("<")
