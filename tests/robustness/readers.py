"""Random and mutated texts of one language, read as a request reads them; run as a child process by grammars.py.

    python -m tests.robustness.readers LANGUAGE SEED FIRST COUNT

Prints a JSON line before each reading, so that the parent knows which text hangs or crashes a parser.
"""

import json
import random
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from dg_lsp.budget import UNASKED, within
from dg_lsp.context.prompt import build
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.guard.harm import unchecked
from dg_lsp.messages import Fill
from dg_lsp.reasons import OutOfTime
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language, load_language
from tests.source.fixtures import fixtures

KEPT = Path(__file__).with_name("kept.toml")
NAMES = ("a", "b", "f", "x", "Foo", "_g_", "1", "0x", "é")
FILLS = (
    "x",
    "x)",
    "a, b",
    '"',
    "'",
    "/*",
    "{",
    "}",
    "return 1;",
    "x = (",
    "foo(a) // x",
    "`",
    "\n\n",
    "-> ->",
)
SHORT = 60  # characters of a text in which each cursor is tried
CURSORS = 3  # of a longer one
ENOUGH = 5  # readings of a text that run out of time, each of which takes long


@cache
def kept(language: str) -> tuple[str, ...]:
    """The texts of `language` that once hung a parser or took it quadratic time, each at its full length."""
    entries = tomllib.loads(KEPT.read_text(encoding="utf-8"))["text"]
    mine = [entry for entry in entries if language in entry["languages"]]
    return tuple(e["head"] + e.get("unit", "") * e.get("count", 0) + e.get("tail", "") for e in mine)


def text_of(language: Language, seed: int, number: int) -> str:
    """Text `number` of a seed: the kinds take turns, and each number gives the same text in every process."""
    chance = random.Random(f"{language.name}:{seed}:{number}")
    return KINDS[number % len(KINDS)](language, chance)


@cache
def pool(language: Language) -> tuple[str, ...]:
    """The tokens that texts are made of: the grammar's own, names, quotes, brackets and white space."""
    symbols = range(language.grammar.node_kind_count)
    plain = {
        language.grammar.node_kind_for_id(n) or ""
        for n in symbols
        if not language.grammar.node_kind_is_named(n)
    }
    marks = [
        mark.decode() for quotes in language.strings for mark in (quotes.open, quotes.close, quotes.hole)
    ]
    comments = [mark.decode() for pair in language.block_comments for mark in pair]
    few = ["\n", "\n", " ", "\t", "(", ")", "[", "]", "{", "}", "<", ">", "</", "/>", ":", ";", ",", "\\"]
    named = sorted(token for token in plain if token and len(token) < 16)
    return (*named, *marks, *comments, *few, *NAMES)


@cache
def sources(language: str) -> tuple[str, ...]:
    """The texts of the fixtures of `language`."""
    return tuple(one.document.data.decode("utf-8", "replace") for one in fixtures(language))


def _tokens(language: Language, chance: random.Random) -> str:
    """A random string of the language's tokens."""
    tokens = pool(language)
    return "".join(chance.choice(("", "", " ")) + chance.choice(tokens) for _ in range(chance.randint(3, 60)))


def _mutated(language: Language, chance: random.Random) -> str:
    """A fixture's text after one to four random edits."""
    source = chance.choice(sources(language.name))
    return _edited(language, chance, source)


def _near_kept(language: Language, chance: random.Random) -> str:
    """A text near one that once failed, if there is one; else a mutated fixture."""
    known = [text for text in kept(language.name) if len(text) < 1_000]
    return _edited(language, chance, chance.choice(known)) if known else _mutated(language, chance)


def _long(language: Language, chance: random.Random) -> str:
    """A sound beginning, then one random line many times: 4 to 120 kB."""
    tokens = pool(language)
    unit = " ".join(chance.choice(tokens) for _ in range(chance.randint(1, 5))) + chance.choice(
        ("\n", "\n", " ")
    )
    head = chance.choice(sources(language.name))
    return head + unit * (chance.choice((4_000, 12_000, 30_000, 120_000)) // len(unit))


def _edited(language: Language, chance: random.Random, text: str) -> str:
    tokens = pool(language)
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.choice((0, 0, 1, 3, 20)))
        middle = chance.choice(("", chance.choice(tokens), chance.choice(tokens) + text[start:end]))
        text = text[:start] + middle + text[end:]
    return text[: chance.randint(1, len(text))] if text and chance.random() < 0.3 else text


KINDS: tuple[Callable[[Language, random.Random], str], ...] = (_tokens, _mutated, _near_kept, _long)


def cursors(text: str, chance: random.Random) -> list[int]:
    """The offsets in characters at which `text` is read: each of a short text, else its end and a few by chance."""
    if len(text) <= SHORT:
        return list(range(len(text) + 1))
    return [len(text), *(chance.randint(0, len(text)) for _ in range(CURSORS - 1))]


def read(document: Document, offset: int, fill: str) -> str:
    """Find the gap at `offset`, build its request and finish `fill` in it; how that ended, as a word."""
    try:
        with within(UNASKED):
            gap = find_gap(document, offset)
            if any(unchecked(document, part) for part in gap.parts):
                return "unchecked"
            build(document, gap, Settings())
            return "edit" if finish(document, gap, Fill(fill)).edit else "refused"
    except OutOfTime:
        return "out of time"
    except NoGap:
        return "no gap"


def readings(language: str, seed: int, numbers: range) -> Iterator[dict[str, object]]:
    """Yield a record before each reading, and one after each text: the slowest in seconds of CPU, how all ended."""
    loaded, texts = load_language(language), kept(language)
    for number in numbers:
        chance = random.Random(f"cursors:{language}:{seed}:{number}")
        # The kept texts come first, as they are.
        text = texts[number] if number < len(texts) else text_of(loaded, seed, number - len(texts))
        document = Document("file:///w/a", language, 0, text.encode("utf-8", "replace"))
        slowest, ended, worst = 0.0, dict[str, int](), 0
        for at in cursors(text, chance):
            yield {"number": number, "cursor": at}
            if ended.get("out of time", 0) == ENOUGH:
                break
            offset = len(text[:at].encode("utf-8", "replace"))
            began = time.thread_time()
            how = read(document, offset, chance.choice(FILLS))
            took = time.thread_time() - began
            if took > slowest:
                slowest, worst = took, at
            ended[how] = ended.get(how, 0) + 1
        yield {"number": number, "seconds": slowest, "cursor": worst, "ended": ended}


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    own_seed, first, count = map(int, rest)
    for record in readings(name, own_seed, range(first, first + count)):
        print(json.dumps(record), flush=True)
