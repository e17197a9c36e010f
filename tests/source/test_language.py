"""Languages as data: every query compiles, captures what is documented, and agrees with a walk of the tree."""

import ast
import re
import sys
import tomllib
from types import FrameType

import pytest
import tree_sitter

from benchmarks.gaps.sources import find_corpus
from dg_lsp.messages import KINDS
from dg_lsp.source import language
from dg_lsp.source.bodies import bodies_of
from dg_lsp.source.language import (
    CAPTURES,
    UnknownLanguage,
    capture_names,
    containers,
    known_languages,
    language_of,
    load_language,
    plain_languages,
)


@pytest.mark.parametrize("name", known_languages())
def test_every_query_captures_documented_names_only(name: str) -> None:
    loaded = load_language(name)
    public = {c for c in capture_names(loaded.query) if not c.startswith("_")}
    assert public <= set(CAPTURES)
    assert set(loaded.placeholders) == set(KINDS)


@pytest.mark.parametrize("name", known_languages())
def test_a_stray_capture_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "CAPTURES", CAPTURES[1:])
    with pytest.raises(ValueError, match=f"captures {CAPTURES[0]}; known are"):
        language._tree.__wrapped__(name)


def test_captures_come_in_the_order_of_the_text() -> None:
    loaded = load_language("python")
    text = b"".join(b"def f%d():\n    'd'\n    pass\n" % n for n in range(60))
    found = loaded.captures(loaded.parse(text).root_node)
    assert len(found["function.outer"]) == len(found["docstring"]) == len(found["stub"]) == 60
    for nodes in found.values():
        starts = [n.start_byte for n in nodes]
        assert starts == sorted(starts)


def test_the_query_finds_the_functions_that_ast_finds() -> None:
    loaded = load_language("python")
    for data in find_corpus("python", {}, 15, 3).valid:
        starts = [0]
        for line in data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        nodes = [
            n for n in ast.walk(ast.parse(data)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        wanted = {
            (n.name, starts[n.lineno - 1] + n.col_offset, ast.get_docstring(n, clean=False) is not None)
            for n in nodes
        }
        bodies = bodies_of(loaded, loaded.parse(data).root_node, data)
        found = [b for b in bodies if b.header.owner == "function"]
        assert {
            (f.header.name.rpartition(".")[2], f.header.define, f.docstring is not None) for f in found
        } == wanted


def test_a_lone_cr_is_a_line_end_to_the_parser() -> None:
    loaded = load_language("python")
    assert not loaded.parse(b"def f():\r    a = 1\r    return a\r").root_node.has_error


def test_of_many_open_comments_the_parser_looks_for_the_end_of_the_first_only() -> None:
    loaded = load_language("c")
    sound, opened = b"int a; /* a */\n", b"int b; /* b\n" * 40
    data = sound + opened
    assert loaded.readable(data) == sound + b"int b; /* b\n" + b"int b;    b\n" * 39
    assert loaded.readable(few := sound + opened[:60]) == few
    # The edit that closes them shows the others again.
    tree, end = loaded.parse(data), len(data)
    closed = loaded.reparse(tree, data, (end, end), b"*/\nint c;\n")
    assert str(closed.root_node) == str(loaded.parse(data + b"*/\nint c;\n").root_node)
    assert not closed.root_node.has_error and tree.root_node.has_error


def test_a_file_chooses_its_language_by_its_suffix() -> None:
    assert language_of("A.PY") == "python"
    with pytest.raises(UnknownLanguage, match=r"known are .*\.py"):
        language_of("a.zig")
    with pytest.raises(UnknownLanguage, match=r"known are .*python"):
        load_language("zig")


def test_the_language_of_many_files_reads_each_fact_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    loads = tomllib.loads

    def counted(text: str) -> dict[str, object]:
        read.append(text)
        return loads(text)

    for cached in (language._facts, language._folders, language._suffixes):
        cached.cache_clear()
    monkeypatch.setattr(tomllib, "loads", counted)
    found = [language_of(f"src/file{n}.{suffix}") for n in range(200) for suffix in ("py", "PY", "rs")]
    assert set(found) == {"python", "rust"}
    assert {language_of(name) for name in ("Dockerfile", "a/dockerfile.dev", "Containerfile")} == {
        "dockerfile"
    }
    assert language_of("dockerfile.md") == "markdown" and language_of("main.tf") == "hcl"
    assert all(language.has_language(name) for name in ("a.py", "b.TSX")) and not language.has_language("c")
    assert len(read) == len(known_languages()) + len(plain_languages()) + len(containers())


def test_an_interrupt_while_a_query_is_compiled_is_no_error_of_the_query() -> None:
    def interrupt(frame: FrameType, *_: object) -> None:
        if frame.f_code is re.compile.__code__:
            sys.setprofile(None)
            raise KeyboardInterrupt

    grammar = load_language("python").grammar
    text = '((identifier) @a (#match? @a "^interrupted$"))'
    with pytest.raises(KeyboardInterrupt):
        sys.setprofile(interrupt)
        language.query_of(grammar, text)
    assert language.query_of(grammar, text).capture_count == 1
    with pytest.raises(tree_sitter.QueryError):
        language.query_of(grammar, text.replace("^", "("))
