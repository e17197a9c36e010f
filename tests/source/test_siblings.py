"""Queries of a node that has one child hundreds of times: a capture that waits for a later sibling takes cubic time."""

import random
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tree_sitter import Node

from dg_lsp.reasons import OutOfTime
from dg_lsp.source.language import Language, load_language
from tests.robustness.depths import _sound, parsed_languages

TIMES, PAIRS, BOUND = 700, 150, 1.5
# Children that files of other people have, and fixtures have not: what is before them, one, and what is after them.
FOUND = (
    ("html", "<html>\n", '<meta name="a" content="b">\n', "</html>\n"),
    ("html", "<html ", "a ", ">\n"),
    ("html", "<p ", 'a="b" ', ">\n"),
    ("html", "", "<!DOCTYPE html>\n", "<html></html>\n"),
    ("html", "", "<p>a</p>\n", "<!DOCTYPE html>\n"),
    ("ruby", "def f\n  a\n", "else\n  b\n", "end\n"),
    ("ruby", "begin\n  a\n", "ensure\n  b\n", "end\n"),
    ("ruby", "f(", "a: 1, ", "b)\n"),
    ("csharp", "class A {\n  int B { ", "get; ", "}\n}\n"),
    ("rust", "fn f() {\n  for i in ", "&[4, 10] ", "{ }\n}\n"),
    ("rust", "fn f() {\n", "  a!(b)\n", "}\n"),
    ("python", "", "@a\n", "def f():\n    pass\n"),
    ("java", "class A {\n  ", "static ", "A() { }\n}\n"),
)


@pytest.mark.parametrize(("language", "above", "one", "below"), FOUND)
def test_a_child_that_a_node_has_hundreds_of_times_is_queried_soon(
    language: str, above: str, one: str, below: str
) -> None:
    assert seconds(load_language(language), (above + one * TIMES + below).encode()) < BOUND


@pytest.mark.parametrize("name", parsed_languages())
def test_each_child_of_a_sound_text_may_be_there_hundreds_of_times(name: str) -> None:
    language = load_language(name)
    texts = [text for whole in _sound(language) for text in repeated(language, whole.encode())]
    random.Random(1).shuffle(texts)
    assert texts
    slow = [text for text in texts[:PAIRS] if seconds(language, text) > BOUND]
    assert not slow, [(text[:200], text[-100:]) for text in slow]


def repeated(language: Language, data: bytes) -> Iterator[bytes]:
    """Yield `data` with one child of a node many times; each pair of types once."""
    seen, nodes = set[tuple[str, str]](), list[Node]()
    with suppress(OutOfTime):
        nodes.append(language.parse(data).root_node)
    while nodes:
        node = nodes.pop()
        nodes += node.named_children
        for child in node.named_children:
            after = child.next_named_sibling
            end = child.end_byte if after is None else after.start_byte
            if (node.type, child.type) not in seen and end - child.start_byte < 60:
                seen.add((node.type, child.type))
                one = data[child.start_byte : end]
                yield (
                    data[: child.start_byte]
                    + (one if after else one + b" ") * TIMES
                    + data[child.start_byte :]
                )


def seconds(language: Language, data: bytes) -> float:
    """Return the processor seconds in which `data` is parsed and queried, or refused."""
    began = time.thread_time()
    with suppress(OutOfTime):
        language.captures(language.parse(data).root_node)
    return time.thread_time() - began
