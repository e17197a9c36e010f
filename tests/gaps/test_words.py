"""Half a word at the cursor, and the words in sight that it may become."""

import time

import pytest

from dg_lsp.gaps.words import MOST, endings, half_word, is_part
from dg_lsp.source.document import Document
from dg_lsp.source.language import known_languages, load_language

CODE = '''\
import fileinput  # finally a file
"""A docstring of fields and "figures"."""
first = f"fixture"
def find(field): return fileno, r'fin\\'al'
x = |
value = first_name + fill
'''


@pytest.mark.parametrize(
    ("text", "half"),
    [
        ("x = fi|", "fi"),
        ("x = self.fi|", "fi"),
        ("x = fi|rst", ""),
        ("x = fi |", ""),
        ("x = 12|", ""),
        ("x = 0xfi|", ""),
        ("x = v2fi|)", "v2fi"),
        ("größ|", "größ"),
        ("|", ""),
    ],
)
def test_half_a_word_stands_before_the_cursor_and_ends_there(text: str, half: str) -> None:
    before, _, after = text.partition("|")
    data = f"fi\n{before}{after}\n".encode()
    assert half_word(data, len(f"fi\n{before}".encode())).decode() == half


def found(
    typed: str, code: str = CODE, language: str = "python", others: tuple[bytes, ...] = ()
) -> list[str]:
    before, _, after = code.partition("|")
    data = f"{before}{typed}{after}".encode()
    document = Document("file:///a", language, 1, data)
    cursor = len(f"{before}{typed}".encode())
    return [typed + e for e in endings(load_language(language), document, cursor, others)]


def test_words_are_those_of_the_code_nearest_first_then_of_other_files_then_of_the_language() -> None:
    others = (b"first = fifth  # fiction", b"fifo")
    here = ["first_name", "fill", "fileno", "field", "find", "first", "fileinput"]
    assert found("fi", others=others) == [*here, "fifth", "fifo", "filter", "finally"]


def test_a_word_that_is_complete_has_an_empty_ending() -> None:
    assert "first" in found("first") and found("first")[0] == "first_name"
    # What is being typed is no word in sight of itself.
    assert found("fixt") == []
    assert found("fileinpu") == ["fileinput"]


def test_many_words_are_bounded_and_keep_those_of_the_language() -> None:
    code = "".join(f"value_{n} = 1\n" for n in range(500)) + "x = |\n"
    words = found("v", code)
    assert len(words) == MOST and words[0] == "value_499" and "vars" in words


def test_other_languages_have_their_comments_strings_and_keywords() -> None:
    code = "const fiber = 'fixed'; // fifty\n/* fine\n field */ let $fi = `first ${x}`;\nlet y = |\n"
    assert found("fi", code, "typescript") == ["fiber", "finally"]
    assert found("$f", code, "typescript") == ["$fi"]


def test_what_is_read_is_bounded() -> None:
    code = "fi_far\n" + "x = '\n" * 300_000 + "y = |\n" + "fi_near = 1\n"
    began = time.thread_time()
    words = found("fi", code)
    assert "fi_near" in words and "fi_far" not in words
    assert time.thread_time() - began < 2


def test_is_part() -> None:
    assert is_part(b"a") and is_part("é".encode()) and is_part(b"_") and is_part(b"1")
    assert not is_part(b"") and not is_part(b"(") and not is_part(b" ")


@pytest.mark.parametrize("name", known_languages())
def test_each_language_has_keywords_from_its_grammar_and_builtins_from_its_folder(name: str) -> None:
    language = load_language(name)
    assert {b"if", b"return", b"else"} <= set(language.keywords)
    assert language.builtins and all(is_part(word) for word in language.builtins)
    assert not set(language.builtins) & set(language.keywords)


def test_half_a_word_costs_nothing_in_a_long_line() -> None:
    # On the event loop it held each other request up for 0.4 s in a line of 5 MB.
    line = b"x = " + b"f(a, " * 1_000_000 + b"val"
    began = time.process_time()
    assert {half_word(line, len(line)) for _ in range(20)} == {b"val"}
    assert time.process_time() - began < 0.5
    assert half_word(b"x" * 2_000, 2_000) == half_word(b"1" + b"x" * 499, 500) == b""
    assert half_word(b"x" * 500, 500) == b"x" * 500
