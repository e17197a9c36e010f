"""The C code of all grammars on deep, repeated and random texts, in child processes: none ends, hangs or eats memory.

    python -m tests.robustness.depths LANGUAGE SEED FIRST COUNT

reads texts FIRST to FIRST + COUNT of a language, and prints the number of each before.
"""

import os
import random
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from dg_lsp.budget import within
from dg_lsp.reasons import OutOfTime
from dg_lsp.source.language import Language, known_languages, load_language, plain_languages
from tests.robustness.readers import pool, sources
from tests.robustness.row import Row, missed

ROOT = Path(__file__).resolve().parents[2]
HANG = 60.0  # seconds of silence after which a child is killed: it starts, or reads, on a busy machine
SLOW = 2.0  # seconds of processor time for one text and an edit of it
MEMORY = 1_000_000  # kilobytes of a child
_BUDGET = 0.05  # seconds of processor time that one text may spend
_LARGEST = 150_000  # bytes of a text
_UNEDITED = 0.7  # the share of texts without an edit
_MOST, _FEW = (
    3_000,
    40,
)  # times that a token is repeated: in two texts of _DEEP, which take most of the time, and else
_DEEP = 16
_ABOVE = 200  # characters of a sound file above a text, on average
_SHRINKS = 300  # attempts to make a text that ends a process smaller
# What opens something in one language or another, beside the tokens of its own grammar.
OPENERS = (
    *("- ", "? ", ": ", "a: ", "- a: ", "|\n ", ">\n ", "--- ", "&a ", "!t ", "%TAG ", "\ufeff"),
    *("<<A ", "<<-A\n", "<<~A\n", '<<"A"\n', "<<<A\n", "<<<'A'\n", "<<" + "A" * 255 + " "),
    *('r#"', "r##", 'R"a(', "[==[", "--[[", "$a$", '$"{', '$$"""', '"""', "'''", '"#{', "`${", 'f"{', '"${'),
    *(
        '#"',
        "<a>",
        "<a b=",
        "<div><p>",
        "<!--",
        "</a>",
        "<?php ",
        "%w(",
        "%q<",
        ':"',
        "/*",
        "if x:\n",
        "{{",
        "[[",
    ),
    *("\\\n", "\r\n", "\r", "\0", "\f", "\u00a0", "\U0001f642"),
)
CLOSERS = ("", "", ")", "]", "}", ">", '"', "'", "\n", "\nA\n", "end ", '}"', "</a>")


# A text of some tokens, repeated so many times.
Shape = Callable[[tuple[str, ...], int, random.Random], str]


@dataclass(slots=True)
class Found:
    """What was read. dead: texts that ended or hung a child; slow, large: those that took too much time or memory."""

    texts: int = 0
    dead: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    large: list[str] = field(default_factory=list)


def depths(times: int, seed: int = 0, languages: tuple[str, ...] = ()) -> Row:
    """Read `times` texts of each language that has a grammar, and an edit of each."""
    found, names = Found(), languages or parsed_languages()
    for name in names:
        number = 0
        while number < times:
            number = _read_some(name, seed, range(number, times), found)
    return Row(
        "the C code of all grammars: deep, repeated and random tokens, and edits, in child processes",
        f"0 processes end; a text within {SLOW:.0f} s and {MEMORY // 1000:,} MB",
        f"{found.texts:,} texts of {len(names)} grammars: {len(found.dead)} ended or hung, {len(found.slow)} slow, "
        f"{len(found.large)} large",
        missed(
            (bool(found.dead), f"ended or hung: {found.dead[:5]}"),
            (bool(found.large), f"too much memory: {found.large[:5]}"),
            (bool(found.slow), f"too slow: {found.slow[:5]}"),
        ),
    )


def parsed_languages() -> tuple[str, ...]:
    """Return the names of the languages whose grammar is installed."""
    names = (*known_languages(), *plain_languages())
    return tuple(name for name in names if load_language(name).tree is not None)


def text_of(language: Language, seed: int, number: int) -> bytes:
    """Return text `number` of a seed, the same in every process: each token by itself first, then random ones."""
    chance, words = random.Random(f"depths:{language.name}:{seed}:{number}"), tokens(language)
    alone = _alone(language, seed)
    if number < len(alone):
        shape, word = alone[number]
        text = shape((word,), _MOST, chance)
    else:
        most = _MOST if number % _DEEP < 2 else _FEW
        if number % 4:
            units = tuple(chance.choice(words) for _ in range(chance.randint(1, 4)))
            text = chance.choice(SHAPES)(units, int(most ** chance.random()), chance)
        else:
            text = "".join(_soup(words, most, chance))
        text = _above(language, chance) + text
    return text.encode("utf-8", "replace")[:_LARGEST]


@cache
def _alone(language: Language, seed: int) -> list[tuple[Shape, str]]:
    """Return each token in each shape, in an order of the seed's own."""
    pairs = [(shape, word) for word in tokens(language) for shape in SHAPES]
    random.Random(seed).shuffle(pairs)
    return pairs


@cache
def tokens(language: Language) -> tuple[str, ...]:
    """Return the tokens of the grammar, and what opens something in any language."""
    return tuple(dict.fromkeys((*pool(language), *OPENERS)))


def _above(language: Language, chance: random.Random) -> str:
    """Return lines with which a sound file begins, or none: PHP is text of a page without them."""
    lines = chance.choice(_sound(language))[: chance.randrange(2 * _ABOVE)]
    return lines[: lines.rfind("\n") + 1] if chance.random() < 0.5 else lines


@cache
def _sound(language: Language) -> tuple[str, ...]:
    """Return sound texts of a language: the fixtures, or the sample of one that has none."""
    samples = (ROOT / "benchmarks/plain/samples").glob("*")
    mine = (one.read_text(encoding="utf-8") for one in samples if one.suffix in language.suffixes)
    return sources(language.name) or tuple(mine)


def _line(units: tuple[str, ...], times: int, chance: random.Random) -> str:
    """Return the units on one line, opened and perhaps closed."""
    return "".join(units) * times + "a" + chance.choice(CLOSERS) * times


def _spaced(units: tuple[str, ...], times: int, chance: random.Random) -> str:
    """Return the units on one line with blanks between."""
    return " ".join(units * times) + " a " + chance.choice(CLOSERS) * times


def _lines(units: tuple[str, ...], times: int, chance: random.Random) -> str:
    """Return the units on lines of one indentation, perhaps below others."""
    return ("\n" + chance.choice(("", " ", "\t", "  ")) + " ".join(units)) * times


def _rising(units: tuple[str, ...], times: int, chance: random.Random) -> str:
    """Return the units on lines that are indented deeper and deeper."""
    blank, end = chance.choice((" ", " ", "  ", "\t")), chance.choice(("\n", "\r\n", "\r"))
    lines = (blank * n + "".join(units) for n in range(min(times, 800)))
    return end.join(lines) + end + blank * min(times, 800) + chance.choice(('a = "b"', "a", 'f"{', ""))


def _nested(units: tuple[str, ...], times: int, chance: random.Random) -> str:
    """Return the units within random others, so that each is opened in another state."""
    between = chance.choice(OPENERS)
    return (between + "".join(units)) * times


SHAPES: tuple[Shape, ...] = (_line, _spaced, _lines, _rising, _nested)


def _soup(words: tuple[str, ...], most: int, chance: random.Random) -> Iterator[str]:
    """Yield random runs of tokens, each run some times: at most the root of `most`."""
    for _ in range(chance.randint(1, 12)):
        run = [chance.choice(words) + chance.choice(("", "", " ", "\n")) for _ in range(chance.randint(1, 6))]
        yield "".join(run) * int(most ** (chance.random() / 2))


def read(language: Language, data: bytes, chance: random.Random) -> None:
    """Parse `data`, query its tree, and parse it again after an edit, as requests do."""
    with suppress(OutOfTime), within(_BUDGET):
        tree = language.parse(data)
        if chance.random() < _UNEDITED:
            return
        language.captures(tree.root_node)
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.choice((0, 0, 1, 40)))
        words = tokens(language)
        text = (chance.choice(words) * chance.choice((1, 1, 300))).encode("utf-8", "replace")
        language.reparse(tree, data, (start, end), text)
        language.reparse_until_broken(tree, data, (start, end), text)


def _read_some(name: str, seed: int, numbers: range, found: Found) -> int:
    """Read texts in one child until all are read or one ends it; return the number of the next text."""
    arguments = [name, str(seed), str(numbers.start), str(len(numbers))]
    command = [sys.executable, "-m", "tests.robustness.depths", *arguments]
    current = numbers.start - 1
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while True:
            ready, _, _ = select.select([child.stdout], [], [], HANG)
            line = child.stdout.readline() if ready else ""
            if not line:
                break
            kind, number = line.split()
            if kind == "next":
                current = int(number)
                found.texts += 1
            else:
                (found.slow if kind == "slow" else found.large).append(_shown(name, seed, int(number)))
        if not ready:
            child.kill()
        if child.wait() == 0:
            return numbers.stop
    how = "ended" if ready else "hung"
    found.dead.append(
        f"{how} ({child.returncode}) {_shown(name, seed, current)}; {smallest(name, seed, current)!r}"
    )
    return current + 1


def _shown(name: str, seed: int, number: int) -> str:
    return f"{name} {number}: {text_of(load_language(name), seed, number)[:60]!r}"


def smallest(name: str, seed: int, number: int) -> bytes:
    """Return a text as small as can be found that ends a process as text `number` does; that itself if it does not."""
    language = load_language(name)
    data, tries = text_of(language, seed, number), _SHRINKS
    step = len(data) // 2
    while step and tries:
        at = 0
        while at < len(data) and tries:
            less, tries = data[:at] + data[at + step :], tries - 1
            if _ends(language, less, number):
                data = less
            else:
                at += step
        step //= 2
    return data


def _ends(language: Language, data: bytes, number: int) -> bool:
    """Return whether reading `data` ends a process."""
    process = os.fork()
    if not process:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        read(language, data, random.Random(number))
        os._exit(0)
    return os.waitpid(process, 0)[1] != 0


def _most_memory() -> int:
    """Return the most memory that this process has held, in KiB; the system's count for a child includes its parent."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


def main() -> None:
    """Read the texts of the arguments, and say what each takes."""
    name, *rest = sys.argv[1:]
    seed, first, count = map(int, rest)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    language, most = load_language(name), 0
    for number in range(first, first + count):
        print("next", number, flush=True)
        data, began = text_of(language, seed, number), time.thread_time()
        read(language, data, random.Random(number))
        if time.thread_time() - began > SLOW:
            print("slow", number, flush=True)
        memory = _most_memory()
        if memory > MEMORY > most:
            print("large", number, flush=True)
        most = memory


if __name__ == "__main__":
    main()
