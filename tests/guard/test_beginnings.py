"""Beginnings: words that are no statement by themselves are not offered above a line that they would take in."""

import pytest

from tests.guard.test_foreign import filled

MEMBERS = {
    "csharp": "class A {\n    ‸\n    private int b = 2;\n}\n",
    "cpp": "struct A {\n    ‸\n    static int b;\n};\n",
    "java": "class A {\n    ‸\n    private int b = 2;\n}\n",
    "javascript": "class A {\n    ‸\n    static b = 2;\n}\n",
    "kotlin": "class A {\n    ‸\n    private val b = 2\n}\n",
    "php": "<?php\nclass A {\n    ‸\n    private $b = 2;\n}\n",
    "scala": "class A {\n    ‸\n    private val b = 2\n}\n",
    "swift": "class A {\n    ‸\n    private static let b = 2\n}\n",
    "tsx": "class A {\n    ‸\n    private b = 2;\n}\n",
    "typescript": "class A {\n    ‸\n    static b = 2;\n}\n",
    "rust": "struct A;\n‸\npub fn b() {}\n",
}
RUBY = "class A\n  ‸\n  private def b\n    1\n  end\nend\n"
IF = "def f\n  {} ‸\n    raise e\n  end\nend\n"
ELSIF = "def f\n  if a\n    b\n  elsif ‸\n    raise e\n  end\nend\n"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        *((language, "private") for language in ("csharp", "java", "kotlin", "php", "scala", "swift")),
        *(
            (language, "static")
            for language in ("cpp", "csharp", "java", "javascript", "php", "swift", "typescript")
        ),
        *((language, "public") for language in ("kotlin", "php", "swift", "tsx", "typescript")),
        *(("kotlin", text) for text in ("abstract", "private abstract", "override")),
        *(("php", text) for text in ("final", "abstract public")),
        *(("scala", text) for text in ("final", "implicit", "override")),
        *(("swift", text) for text in ("private static", "override", "final")),
        *(("rust", text) for text in ("pub", "pub unsafe")),
        ("javascript", "get"),
        ("tsx", "readonly"),
        ("typescript", "private"),
    ],
)
def test_a_modifier_alone_is_refused(language: str, text: str) -> None:
    assert filled(language, MEMBERS[language], text).startswith("<the fill would ")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("csharp", "[A]"),
        ("cpp", "private:"),
        ("java", "@A"),
        ("javascript", "static a = 1;"),
        ("kotlin", "@Test"),
        ("kotlin", '@A("b")'),
        ("kotlin", "private val a = 1"),
        ("php", "#[A]"),
        ("php", "private $a = 1;"),
        ("scala", "@tailrec"),
        ("swift", "@available(iOS 13, *)"),
        ("swift", "private static let a = 1"),
        ("typescript", "@A()"),
        ("typescript", "private a = 1;"),
        ("rust", "#[a]"),
    ],
)
def test_what_belongs_to_the_member_below_it_is_offered(language: str, text: str) -> None:
    assert filled(language, MEMBERS[language], text) == MEMBERS[language].replace("‸", text)


@pytest.mark.parametrize("text", ["private", "public", "include A", "private def x; end"])
def test_a_call_above_the_first_member_is_offered(text: str) -> None:
    assert filled("ruby", RUBY, text) == RUBY.replace("‸", text)


@pytest.mark.parametrize("text", ['log("a", b);', 'log("a", b)', "local c = 1"])
@pytest.mark.parametrize("call", ['d:e("b");', 'd:e("b")', "d = 1;"])
def test_a_statement_above_the_first_one_of_a_block_is_offered(text: str, call: str) -> None:
    marked = f"if a then\n    ‸\n    {call}\nend\n"
    assert filled("lua", marked, text) == marked.replace("‸", text)


@pytest.mark.parametrize("text", ["e:", "e: &f"])
def test_a_key_above_its_list_is_offered(text: str) -> None:
    marked = "‸\n- c\n- d\n"
    assert filled("yaml", marked, text) == marked.replace("‸", text)


@pytest.mark.parametrize("text", ["<?php", "<?php // a"])
def test_what_begins_code_is_offered(text: str) -> None:
    marked = "‸\n\nnamespace A;\n\nfunction f() {\n  return 1;\n}\n"
    assert filled("php", marked, text) == marked.replace("‸", text)


@pytest.mark.parametrize("word", ["if", "unless", "while", "until"])
@pytest.mark.parametrize("text", ["else", "end", "when", "rescue", "then"])
def test_a_word_of_the_language_is_no_condition(word: str, text: str) -> None:
    assert filled("ruby", IF.format(word), text).startswith("<the fill would ")
    assert filled("ruby", ELSIF, text).startswith("<the fill would ")


@pytest.mark.parametrize("text", ["b", "b.c", "else_one?", "b.else"])
def test_a_name_is_one(text: str) -> None:
    for marked in (ELSIF, IF.format("if"), IF.format("until")):
        assert filled("ruby", marked, text) == marked.replace("‸", text)
