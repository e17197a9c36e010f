"""Cut the rest of a line, or a part of it, out of the samples; offer the truth and wrong texts; have a parser judge.

    python -m benchmarks.plain [LANGUAGE...]
    python -m benchmarks.plain --checkpoint coder --count 12 [LANGUAGE...]

The second one has a checkpoint fill the rests of lines instead. The judge is the language's own parser where one is
here (json, tomllib, html.parser, PyYAML, SQLite, `bash -n`), else the grammar that the guard reads, too.
"""

import argparse
import asyncio
import json
import random
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import yaml

from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.fill import fill_gap
from dg_lsp.gaps.find import find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.guard import fit
from dg_lsp.guard.harm import harm_of
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.language import language_of, load_language

SAMPLES = sorted((Path(__file__).parent / "samples").iterdir())
_TOKEN = re.compile(r"\w+|[^\w\s]")
# A line that only ends what lines above have begun, which no fill does.
_ENDS = re.compile(r"\s*(?:(?:end|fi|done|esac|TEXT)\b|until\b.*|</[\w-]+>|\"\"\"|[)\]};,])*\s*")
_STRAY = ("end", "}", "fi", "</div>", "*/", "-->", "then", "#", "--", ",")
_VOID = ("br", "input", "link", "meta")


class _Tags(HTMLParser):
    """Elements that are open; strange once one is closed that is not the innermost."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.strange = list[str](), False

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.open += [] if tag in _VOID else [tag]

    def handle_endtag(self, tag: str) -> None:
        self.strange = self.strange or not self.open or self.open.pop() != tag


def _html(text: str) -> bool:
    tags = _Tags()
    tags.feed(text)
    tags.close()
    return not (tags.strange or tags.open or tags.rawdata)


def _sql(text: str) -> bool:
    try:
        sqlite3.connect(":memory:").executescript(text)
    except sqlite3.Error as error:
        return not re.search("syntax error|incomplete input|unrecognized token", str(error))
    return True


def _shell(text: str) -> bool:
    ran = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False)
    return not (ran.returncode or ran.stderr)


def _read_by(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def is_valid(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, yaml.YAMLError) as error:
            # A key that is there twice is no matter of syntax.
            return str(error).startswith(("Cannot overwrite", "Cannot declare"))
        return True

    return is_valid


JUDGES: dict[str, Callable[[str], bool]] = {
    "html": _html,
    "json": _read_by(json.loads),
    "shell": _shell,
    "sql": _sql,
    "toml": _read_by(tomllib.loads),
    "yaml": _read_by(yaml.safe_load),
}


def judge_of(language: str) -> Callable[[str], bool]:
    """Return what says whether a text is valid in `language`."""
    grammar = load_language(language)
    return JUDGES.get(language) or (lambda text: not grammar.parse(text.encode()).root_node.has_error)


@dataclass(slots=True)
class Counts:
    """Places, true texts offered and valid; wrong texts, those offered, and those of them that broke a file.

    Of a checkpoint's texts: those offered, valid, and exactly right.
    """

    places: int = 0
    offered: int = 0
    valid: int = 0
    wrong: int = 0
    taken: int = 0
    broke: int = 0
    right: int = 0

    @property
    def share_valid(self) -> float:
        """The share of files that are valid after a text was offered, true or wrong."""
        return 1 - (self.offered - self.valid + self.broke) / max(self.offered + self.taken, 1)


def measure(path: Path, most: int | None = None) -> Counts:
    """Return what happens at `most` places of the sample `path`, or at all of them."""
    language, text, counts = language_of(path), path.read_text(encoding="utf-8"), Counts()
    rng, is_valid = random.Random(language), judge_of(language)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    found = list(_places(text, rng))
    for start, end in found if most is None else rng.sample(found, most):
        counts.places += 1
        truth = text[start:end]
        if (new := _offered(language, text, (start, end), truth)) is not None:
            counts.offered += 1
            counts.valid += is_valid(new)
        for wrong in _wrong(truth, lines, rng):
            if not wrong.strip() or wrong == truth:
                continue
            counts.wrong += 1
            if (new := _offered(language, text, (start, end), wrong)) is not None:
                counts.taken += 1
                counts.broke += not is_valid(new)
    return counts


def _places(text: str, rng: random.Random) -> Iterator[tuple[int, int]]:
    """Yield rests of lines, and parts of lines without a quote, as spans of `text`."""
    at = 0
    for line in text.split("\n"):
        tokens = [found.start() for found in _TOKEN.finditer(line)]
        if not _ENDS.fullmatch(line):
            for cut in sorted({tokens[0], *rng.sample(tokens, min(3, len(tokens)))}):
                yield at + cut, at + len(line)
                behind = [one for one in tokens if one > cut]
                end = rng.choice(behind) if behind else cut
                if end > cut and not re.search("[\"'`]", line[cut:end]):
                    yield at + cut, at + end
        at += len(line) + 1


def _wrong(truth: str, lines: list[str], rng: random.Random) -> Iterator[str]:
    """Yield texts that are mostly wrong: the truth with a sign too few or too many, half of it, another line."""
    yield truth[:-1]
    yield truth[: len(truth) // 2]
    yield from (truth + rng.choice(signs) for signs in (")]}", "([{", "\"'"))
    yield truth + " " + rng.choice(_STRAY)
    yield truth.replace(rng.choice("([{\"',:;="), "", 1)
    yield rng.choice(lines)


def _offered(language: str, text: str, span: tuple[int, int], fill: str) -> str | None:
    """Return the file with `fill` in the gap where `span` was cut out; None if the fill is refused."""
    before, after = text[: span[0]], text[span[1] :]
    document = Document("file:///sample", language, 1, (before + after).encode())
    gap = find_gap(document, len(before.encode()))
    edit = fit.make_edit(document, gap, fill)
    return None if harm_of(document, gap, edit) else apply_edit(document, edit).text


async def filled(path: Path, engine: Engine, count: int) -> Counts:
    """Return how many rests of lines of the sample `path` the engine fills, rightly or validly, of `count`."""
    language, text, counts = language_of(path), path.read_text(encoding="utf-8"), Counts()
    rng, is_valid = random.Random(language), judge_of(language)
    found = [span for span in _places(text, rng) if text[span[1] : span[1] + 1] == "\n"]
    for start, end in rng.sample(found, count):
        document = Document(path.as_uri(), language, 1, (text[:start] + text[end:]).encode())
        gap = find_gap(document, len(text[:start].encode()))
        outcome = await fill_gap(engine, document, gap, Settings(related=False))
        counts.places += 1
        if outcome.edit is not None:
            new = apply_edit(document, outcome.edit).text
            counts.offered += 1
            counts.valid += is_valid(new)
            counts.right += new.rstrip() == text.rstrip()
    return counts


async def _print_filled(paths: Sequence[Path], checkpoint: str, count: int) -> None:
    engine = LocalEngine.open(Settings(checkpoint=checkpoint))
    for path in paths:
        one = await filled(path, engine, count)
        print(
            f"{language_of(path):7} {one.places} places: {one.offered} offered, {one.valid} of these valid, "
            f"{one.right} exactly right",
            flush=True,
        )
    await engine.close()


def main(arguments: list[str]) -> None:
    """Print a line for each language that is named, or for all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plain")
    parser.add_argument("languages", nargs="*")
    parser.add_argument("--checkpoint")
    parser.add_argument("--count", type=int, default=12)
    given = parser.parse_args(arguments)
    paths = [path for path in SAMPLES if not given.languages or language_of(path) in given.languages]
    if given.checkpoint:
        asyncio.run(_print_filled(paths, given.checkpoint, given.count))
        return
    for path in paths:
        one = measure(path)
        print(
            f"{language_of(path):7} {one.places} places; truth offered {one.offered / one.places:.1%}, valid "
            f"{one.valid / one.offered:.1%}; of {one.wrong} wrong texts {one.taken} offered, {one.broke} broke "
            f"the file; valid after an offer {one.share_valid:.1%}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
