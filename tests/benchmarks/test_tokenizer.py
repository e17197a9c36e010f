"""The embedded tokenizer: lossless, and no token crosses a line end."""

import random

import pytest
from tokenizers import Tokenizer

from benchmarks.embedded.tokenizer import SPECIAL, train_tokenizer

LINES = [
    "def area(self, width=10):\n",
    "    if width:\n",
    "        return width * self.height_of_box\n",
    "\n",
]
DEEP = ["            value = getHTTPServer(2024)\n", "                total += value\n"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["".join((LINES + DEEP) * 20)], 400)


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


def decode(tokenizer: Tokenizer, ids: list[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=False))


def test_any_text_comes_back_unchanged(tokenizer: Tokenizer) -> None:
    chance = random.Random(0)
    alphabet = "ab_Z9 \t\r\n\x00\x0b\x0c\x85\u00a0\u2028éßж中\u0301\u200d😀\ufeff()\"'#"
    for _ in range(300):
        text = "".join(chance.choice(alphabet) for _ in range(chance.randrange(40)))
        assert decode(tokenizer, encode(tokenizer, text)) == text
    everywhere = "".join(
        chr(chance.choice((chance.randrange(0xD800), chance.randrange(0xE000, 0x110000)))) for _ in range(999)
    )
    assert decode(tokenizer, encode(tokenizer, everywhere)) == everywhere


def test_each_line_end_is_a_token_of_its_own(tokenizer: Tokenizer) -> None:
    text = "".join(LINES) + "x\r\ny\r\r\n\n\n  \n"
    for token in encode(tokenizer, text):
        piece = decode(tokenizer, [token])
        assert piece in {"\r", "\n"} or not set(piece) & {"\r", "\n"}


def test_the_tokens_of_a_text_are_those_of_its_lines(tokenizer: Tokenizer) -> None:
    text = "".join(LINES + DEEP) + "  odd = 'é' \t\n\tx\n"
    apart = [i for line in text.splitlines(keepends=True) for i in encode(tokenizer, line)]
    assert encode(tokenizer, text) == apart


@pytest.mark.parametrize("width", [4, 8, 12, 16])
def test_an_indentation_is_one_token_and_leaves_the_word_alone(tokenizer: Tokenizer, width: int) -> None:
    assert len(encode(tokenizer, " " * width)) == 1
    assert encode(tokenizer, " " * width + "value") == encode(tokenizer, " " * width) + encode(
        tokenizer, "value"
    )


def test_encode_adds_nothing_and_no_text_becomes_a_special_token(tokenizer: Tokenizer) -> None:
    assert encode(tokenizer, "") == []
    assert min(encode(tokenizer, "<pad><eos><bos><unk> " + "".join(LINES))) >= len(SPECIAL)


def test_the_special_tokens_have_the_ids_of_the_config(tokenizer: Tokenizer) -> None:
    assert [tokenizer.token_to_id(token) for token in SPECIAL] == [0, 1, 2, 3]
    assert sorted(tokenizer.get_added_tokens_decoder()) == [0, 1, 2, 3]
