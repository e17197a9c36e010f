"""Every folder of grammars/: its facts are complete, its query agrees with a walk of the tree, its fixtures hold.

`pytest tests/source/test_languages.py -k '[go'` runs one language; docs/adding-a-language.md tells the rest.
"""

import importlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast, get_args

import pytest
from tree_sitter import Node

from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import Kind
from dg_lsp.reasons import NoGap
from dg_lsp.source.language import (
    CAPTURES,
    Language,
    capture_names,
    known_languages,
    language_of,
    load_language,
)
from tests.source.fixtures import GRAMMARS, BadFixture, Fixture, fixtures, show

LANGUAGES = known_languages()
CASES = [(name, case) for name in LANGUAGES for case in fixtures(name)]
# What a function is to a plain walk of the tree, and what its body is: the other opinion beside the query's.
_SCRIPT = (
    "function_declaration generator_function_declaration method_definition function_expression "
    "generator_function arrow_function",
    "statement_block",
)
FUNCTIONS = {
    "c": ("function_definition", "compound_statement"),
    "cpp": ("function_definition lambda_expression", "compound_statement"),
    "csharp": (
        "method_declaration constructor_declaration destructor_declaration operator_declaration"
        " conversion_operator_declaration accessor_declaration local_function_statement lambda_expression"
        " anonymous_method_expression",
        "block",
    ),
    "go": ("function_declaration method_declaration func_literal", "block"),
    "java": (
        "method_declaration constructor_declaration compact_constructor_declaration lambda_expression",
        "block constructor_body",
    ),
    "javascript": _SCRIPT,
    "python": ("function_definition", "block"),
    "rust": ("function_item closure_expression", "block"),
    "tsx": _SCRIPT,
    "typescript": _SCRIPT,
}
# What every language must capture; the rest of the closed list is there where the language has such a thing.
WANTED = {
    *("function.outer", "function.name", "function.body", "class.outer", "class.name", "class.body"),
    *("block.outer", "block.body", "arguments", "parameters", "collection", "expression", "statement"),
    *("string", "comment", "stub", "import"),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_its_query_captures_what_is_documented(name: str) -> None:
    loaded = load_language(name)
    public = {c for c in capture_names(loaded.query) if not c.startswith("_")}
    colons = {"function.colon", "class.colon", "block.colon"}
    assert public <= set(CAPTURES)
    assert public >= WANTED | (colons if loaded.style == "indent" else set())


@pytest.mark.parametrize("name", sorted(path.parent.name for path in GRAMMARS.glob("*/gaps.scm")))
def test_a_query_has_no_quantifier_beside_an_anchor(name: str) -> None:
    found = _anchored_quantifiers((GRAMMARS / name / "gaps.scm").read_text(encoding="utf-8"))
    assert not found, (
        f"tree-sitter also matches what is not adjacent there; write one pattern for each case: {found}"
    )


def test_a_quantifier_beside_an_anchor_is_seen() -> None:
    assert not _anchored_quantifiers('((a . (b) .) @c (#match? @c "x. *")) (d)* (e . "f")')
    for pattern in ("(a (b)* @c . (d))", '(a "{" . [(b) (c)]+ (d))', "(a . (b (c)) @d ? (e))"):
        assert _anchored_quantifiers(pattern)


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_kind_has_its_neutral_text(name: str) -> None:
    loaded = load_language(name)
    assert set(loaded.placeholders) == set(get_args(Kind))
    assert loaded.style in ("indent", "brace") and loaded.comment and not loaded.indent.strip()


@pytest.mark.parametrize("name", LANGUAGES)
def test_of_two_strings_that_begin_alike_the_longer_opening_comes_first(name: str) -> None:
    opened = [quotes.open for quotes in load_language(name).strings]
    assert opened and len(set(opened)) == len(opened)
    late = [b for n, a in enumerate(opened) for b in opened[n + 1 :] if b.startswith(a)]
    assert not late, f"{late} can never begin a string; move the longer opening up"


def test_every_suffix_and_every_name_belongs_to_one_language() -> None:
    loaded = [load_language(name) for name in LANGUAGES]
    suffixes = Counter(suffix for one in loaded for suffix in one.suffixes)
    names = Counter(called for one in loaded for called in {one.name, *one.ids})
    assert {k for k, n in (suffixes + names).items() if n > 1} == set()
    for one in loaded:
        assert one.name in LANGUAGES and all(s == s.lower() and s.startswith(".") for s in one.suffixes)
        assert {language_of(f"a{suffix}") for suffix in one.suffixes} == {one.name}
        assert {load_language(called).name for called in one.ids} == {one.name}


@pytest.mark.parametrize("name", LANGUAGES)
def test_its_wheel_is_an_ordinary_dependency_pinned_to_a_minor_version(name: str) -> None:
    facts = tomllib.loads((GRAMMARS / name / "language.toml").read_text(encoding="utf-8"))
    package = facts["wheel"].replace("_", "-")
    importlib.import_module(facts["wheel"])
    project = tomllib.loads((GRAMMARS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [d for d in project["dependencies"] if d.startswith(f"{package}>=")]
    assert len(wanted) == 1 and ",<" in wanted[0], (
        f"pyproject.toml needs {package} with both ends of its range"
    )
    pins = (GRAMMARS.parent / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert any(pin.startswith(f"{package}==") for pin in pins), f".ci/constraints.txt does not pin {package}"


def test_two_patterns_for_one_function_make_one_record_with_its_name() -> None:
    loaded = load_language("javascript")
    tree = loaded.parse(b"const area = (a) => { return a }; run(() => {}); shape.size = function () {};")
    records = loaded.records(tree.root_node)["function"]
    assert [r["function.body"].text for r in records] == [b"{ return a }", b"{}", b"{}"]
    assert [r["function.name"].text for r in records if "function.name" in r] == [b"area", b"size"]


def test_a_query_may_inherit_those_of_other_folders() -> None:
    typescript, tsx = load_language("typescript"), load_language("tsx")
    elements = (GRAMMARS / "jsx" / "gaps.scm").read_text(encoding="utf-8")
    assert tsx.query.pattern_count == typescript.query.pattern_count + elements.count("\n(")
    assert load_language("typescriptreact") is not typescript
    assert "ecma" not in known_languages()


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_query_finds_the_bodies_that_a_walk_of_the_tree_finds(name: str) -> None:
    loaded = load_language(name)
    assert name in FUNCTIONS, f"add to FUNCTIONS which nodes of {name} are functions, and which their bodies"
    count = empty = 0
    for case in fixtures(name):
        root = loaded.parse(_filled(loaded, case)).root_node
        wanted = {(n.start_byte, n.end_byte): n for n in _bodies(root, *FUNCTIONS[name])}
        records = loaded.records(root)["function"]
        found = [(r["function.body"].start_byte, r["function.body"].end_byte) for r in records]
        assert sorted(found) == sorted(wanted), f"{case.name}: {case.marked}"
        count += len(found)
        empty += sum(not any(c.is_named and not c.is_extra for c in n.children) for n in wanted.values())
    # An empty body is the gap that matters most, and the one that queries are said to miss.
    assert count >= 15 and (empty >= 5 or loaded.style == "indent")


@pytest.mark.parametrize("name", LANGUAGES)
def test_its_fixtures_are_many_and_different(name: str) -> None:
    cases = fixtures(name)
    assert len(cases) >= 25, f"grammars/{name}/fixtures holds {len(cases)} cases"
    assert len({case.name for case in cases}) == len(cases)
    assert {case.kind for case in cases} >= set(get_args(Kind)) - {"docstring", "rest_of_line", "span"}


WHOLE = [(name, case) for name, case in CASES if not case.broken and case.kind != "rest_of_line"]


@pytest.mark.parametrize(("language", "case"), WHOLE, ids=lambda v: v if isinstance(v, str) else v.name)
def test_the_right_gap_with_neutral_text_in_it_parses(language: str, case: Fixture) -> None:
    loaded = load_language(language)
    text = _filled(loaded, case)
    assert not loaded.parse(text).root_node.has_error, f"not {language}:\n{text.decode()}"


# What the folder of a language wants and the code cannot do yet.
WANTING = {
    ("csharp", "lines: a stub after an arrow"): "only what stands between braces is a body",
}


@pytest.mark.parametrize(("language", "case"), CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_the_gap_at_the_cursor_is_the_right_one(
    language: str, case: Fixture, request: pytest.FixtureRequest
) -> None:
    if reason := WANTING.get((language, case.name)):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    assert case.kind in get_args(Kind), f"there is no kind {case.kind}"
    try:
        gap = find_gap(case.document, case.cursor, cast(Kind, case.kind) if case.asked else None)
        found = f"{gap.kind}:\n{show(case.document, gap)}"
    except NoGap as error:
        found = f"no gap:\n{error}"
    wanted = f"{case.kind}:\n{case.marked}"
    if found != wanted:
        pytest.fail(f"wanted {wanted}\nfound {found}", pytrace=False)


def test_a_fixture_that_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.source.fixtures.GRAMMARS", tmp_path)
    path = tmp_path / "go" / "fixtures" / "a.txt"
    path.parent.mkdir(parents=True)
    for text, why in (
        ("=== a: block\nx\n", "mark one gap"),
        ("=== a: block (wished)\n⟦‸⟧\n", "no flag wished"),
        ("=== a\n⟦‸⟧\n", "begins with ==="),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(BadFixture, match=why):
            fixtures("go")


def _filled(language: Language, case: Fixture) -> bytes:
    """The text of `case` with the neutral text of its kind in the right gap."""
    before, _, rest = case.marked.partition("⟦")
    after = rest.partition("⟧")[2]
    text = before + language.placeholders[case.kind] + after
    return "".join(c for c in text if c not in "⟨⟩").encode()


def _anchored_quantifiers(query: str) -> list[str]:
    """The anchors of `query` that have a quantifier beside them, with the tokens round them."""
    every = re.findall(r'"(?:\\.|[^"\\])*"|;[^\n]*|@[\w.]+|#\w+[?!]|[\w:!-]+|[()\[\].*+?]', query)
    tokens = [token for token in every if token[0] not in ";@#"]
    found = []
    for at, token in enumerate(tokens):
        after, depth = at + 1, 0
        while token == "." and after < len(tokens):
            depth += (tokens[after] in "([") - (tokens[after] in ")]")
            after += 1
            if depth <= 0:
                break
        beside = (tokens[at - 1 : at], tokens[after : after + 1] if depth == 0 else [])
        if token == "." and any(one and one[0] in "*+?" for one in beside):
            found.append(" ".join(tokens[max(at - 4, 0) : after + 1]))
    return found


def _bodies(root: Node, functions: str, bodies: str) -> Iterator[Node]:
    """Every node whose type is one of `bodies` and whose parent's type is one of `functions`."""
    stack = [root]
    while stack:
        node = stack.pop()
        stack.extend(node.children)
        if node.type == "try_statement" and node.parent is not None and node.parent.type in functions.split():
            # In C++ a whole function may be tried.
            yield from (c for c in node.children if c.type in bodies.split())
        if node.type in functions.split():
            yield from (c for c in node.children if c.type in bodies.split())
