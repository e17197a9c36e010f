"""Similar functions: the likest first, whole lines, nothing of what is written itself, in the room that there is."""

import random

import pytest

from dg_lsp.context.similar import ROOM, Function, Similar, similar
from dg_lsp.source.language import load_language

ABOVE = b'''\
import os


class Store:
    def load_file(self, path):
        """Read a file.

        And close it.
        """
        with open(path) as file:
            return file.read()

    def close(self):
        self.is_open = False

    def load_link(self, path): return None

    @traced
    def load_bytes(self, path):
        """Read the bytes of a file."""
        '''
BELOW = b"""

    @traced
    def load_text(self, path):
        # As it is.
        return open(path).read()

    def load_later(self, path):
        raise NotImplementedError


def load_bytes(path):
    return open(path, "rb").read()
"""
TEXT = Function(
    "    @traced\n    def load_text(self, path):\n", "        # As it is.\n        return open(path).read()\n"
)
FILE = Function(
    "    def load_file(self, path):\n",
    "        with open(path) as file:\n            return file.read()\n",
)


def found(above: bytes, below: bytes, language: str = "python") -> Similar | None:
    return similar(load_language(language), above, below)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_the_likest_functions_are_found_above_and_below_without_their_docstrings(newline: bytes) -> None:
    shown = found(ABOVE.replace(b"\n", newline), BELOW.replace(b"\n", newline))
    assert shown is not None
    as_lf = [Function(*(s.replace("\r\n", "\n") for s in (one.header, one.body))) for one in shown.functions]
    # Not `close`, whose name has nothing of it, no stub, nothing on one line, no function outside of the class.
    assert as_lf == [TEXT, FILE]
    assert ABOVE.replace(b"\n", newline)[shown.at :].startswith(b"    @traced")


def test_the_likeness_is_that_of_the_words_of_names_and_headers() -> None:
    below = b"\n\ndef send_all(to):\n    x = 1\n    return x\n\n\ndef readItems(path):\n    return 2\n"
    for head in (b"def read_items(path):\n    ", b"def itemsRead(path):\n    "):
        shown = found(head, below)
        assert shown and [one.header for one in shown.functions] == ["def readItems(path):\n"]
    assert found(b"def other(to_it):\n    ", below) is None


def test_between_braces_a_function_ends_with_its_brace() -> None:
    above = b"class A {\n  /** Doc. */\n  loadFile(path: string): string {\n    return read(path);\n  }\n\n"
    shown = found(above + b"  loadBytes(path: string): string {\n    ", b"\n  }\n}\n", "typescript")
    header, body = "  loadFile(path: string): string {\n", "    return read(path);\n  }\n"
    assert shown == Similar(len(above), (Function(header, body),))


def test_what_is_long_is_left_out_and_all_has_its_room() -> None:
    long = b"\n\ndef read_one(path):\n" + b"    path = path + 1\n" * 100
    below = b"".join(b"\n\ndef read_%d(path):\n" % n + b"    path += 1\n" * 20 for n in range(9))
    shown = found(b"def read_it(path):\n    ", long + below)
    assert shown and all("read_one" not in one.header for one in shown.functions)
    assert 1 < len(shown.functions) <= 3
    assert sum(len(one.header + one.body) for one in shown.functions) <= ROOM


def test_outside_of_a_function_there_are_none() -> None:
    assert found(b"x = 1\n", BELOW) is None
    assert found(b"", b"") is None


@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_text_each_function_is_in_it_and_not_around_the_gap(seed: int) -> None:
    rng = random.Random(seed)
    whole = ABOVE + b"return 1" + BELOW
    at, stop = sorted(rng.sample(range(len(whole)), 2))
    above, below = whole[:at], whole[stop:]
    for _ in range(rng.randrange(3)):
        cut = rng.randrange(len(above) + 1)
        above = above[:cut] + rng.choice([b'"""', b"(", b"}", b"\r", b"\xc3", b"def x("]) + above[cut:]
    shown = found(above, below)
    if shown is not None:
        assert 0 <= shown.at <= len(above) and above[shown.at - 1 : shown.at] in (b"", b"\n", b"\r")
        for one in shown.functions:
            for part in (one.header, one.body):
                text = part.encode().strip()
                assert text and (text in above or text in below or b"\xef\xbf\xbd" in text)
