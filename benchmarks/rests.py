"""Rests of lines and headers as a user gets them: the gap is found, filled and finished as in an editor.

    python -m benchmarks.rests FOLDER LANGUAGE --checkpoint coder-0.5b --count 60
    python -m benchmarks.rests FOLDER LANGUAGE --checkpoint coder --places headers --count 20
    python -m benchmarks.rests FOLDER LANGUAGE --true --count 300     # the true text in place of a model's

The file ends after the cursor, as when new code is typed. `--below all` keeps the lines below, and `--below items`
those that do not belong to the statement or header: new code above other code. Each place is filled as typed, and with
the closing brackets that editors put after the cursor. An offer is right if its first line is the true line, or its
beginning up to the end of a word.
"""

import argparse
import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import parser_of
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.fill import fill_gap
from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.candidates import Candidate, checked, none_of
from dg_lsp.settings import Settings
from dg_lsp.source.brackets import PAIRS, state_at, unpaired
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language

_LARGEST = 60_000
_WORD = re.compile(r"\w+|[^\w\s]+")
# Parts of the types of nodes that are no code.
_PROSE = ("comment", "string", "template", "escape", "char")
_RESULT = r"\b(?:def|func|fn|function)\b[^{}\n]*\)\s*(?:->|:)?\s*(?=[\w\[*&(<{\"'])"
HEADERS = {
    "parameters": re.compile(r"\b(?:def|func|fn|function)\s+(?:\([^()\n]*\)\s*)?\w+\((?=\s*[\w&*{\[])"),
    "result": re.compile(_RESULT.replace("<{", "<")),
    "bases": re.compile(r"\bclass \w+(?:\(| extends )(?=\w)"),
    "with": re.compile(r"\b(?:with|if|while|for|switch)\s+?(?:\w+)?\((?=\w)"),
    "arguments": re.compile(r"(?<![\w.])(?!def|func|fn|function|class|if|for|while|switch)\w+(?:\.\w+)*\((?=[\w\"'])"),
    "index": re.compile(r"\w\[(?=[\w\"'])"),
    "below": re.compile(r"\w\(\n[ \t]+(?=[\w\"'])"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the text of a file: where the cursor is and its line ends."""

    name: str
    form: str
    path: Path
    text: str
    start: int
    end: int


def places(paths: list[Path], language: str, form: str, rng: random.Random) -> Iterator[Place]:
    """Yield a place of each file, and then another one of each; in code, with three characters after it."""
    known = load_language(language)
    for path in [path for _ in range(5) for path in paths]:
        text = path.read_text(encoding="utf-8", errors="ignore").replace("\r\n", "\n")
        if not 1_000 < len(text) < _LARGEST or not text.isascii():
            continue
        if form == "rests":
            found = [m.start() for m in _WORD.finditer(text) if text[: m.start()].rpartition("\n")[2].strip()]
        else:
            found = [m.end() for m in HEADERS[form].finditer(text)]
        root = known.parse(text.encode()).root_node
        for at in rng.sample(found, len(found)):
            end = text.find("\n", at)
            node = root.descendant_for_byte_range(at, at + 1)
            is_code = node is not None and not any(part in node.type for part in _PROSE)
            if is_code and len(text[at:end].strip()) >= 3:
                yield Place(f"{path.name}:{text.count(chr(10), 0, at) + 1}", form, path, text, at, end)
                break


def closers(language: str, place: Place) -> str:
    """Return what an editor has put after the cursor: the closers of the brackets that its line has opened."""
    before = place.text[: place.start].encode()
    state = state_at(load_language(language), before, len(before))
    line = len(place.text[: place.text.rfind("\n", 0, place.start) + 1])
    if place.form == "below":
        line = len(place.text[: place.text.rfind("\n", 0, max(line - 1, 0)) + 1])
    found = [before[at : at + 1] for at in reversed(state.opened) if at >= line]
    return b"".join(PAIRS[one] for one in found if one in PAIRS and one != b"{").decode()


class Truth:
    """An engine that writes the true text, checked as those of a model are."""

    def __init__(self) -> None:
        self.text = ""

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield the text as a Fill."""
        fill = checked(request, Candidate(self.text, {"drafted": 0}))
        yield none_of([fill], fill.refusal) if fill.refusal else fill

    async def close(self) -> None:
        """End nothing."""


def true_text(language: str, place: Place, form: str) -> str:
    """Return what a model should write: the rest of the line; before a bracket that is closed, the text up to it."""
    text = place.text[place.start : place.end].rstrip()
    outer = unpaired(load_language(language), text.encode()).closers
    return text[: outer[0]] if form == "closed" and closers(language, place) and outer else text


def below(place: Place, given: argparse.Namespace) -> str:
    """Return the text below the line of `place` that is kept."""
    lines = place.text[place.end :].splitlines(keepends=True)
    own = place.text[place.text.rfind("\n", 0, place.start) + 1 : place.end]
    columns = len(own) - len(own.lstrip())

    def ends(line: str) -> bool:
        """Return whether `line` is no part of the statement."""
        bare = line.strip()
        return (
            bool(bare) and len(line) - len(line.lstrip()) <= columns and not bare.startswith((")", "]", "}"))
        )

    kept = {
        "nothing": len(lines),
        "all": 0,
        "items": next((n for n, line in enumerate(lines) if n and ends(line)), len(lines)),
    }[given.below]
    return "\n" * (0 < kept < len(lines)) + "".join(lines[kept:])


async def offer(engine: Engine, place: Place, form: str, given: argparse.Namespace) -> tuple[str, str, str]:
    """Return the line with what is offered at `place`, the true line, and why nothing is offered."""
    text, language = place.text, given.language
    first = text.rfind("\n", 0, place.start) + 1
    shut = closers(language, place) if form == "closed" else ""
    after = shut + (below(place, given) or "\n")
    if place.form == "below" and shut:
        after = "\n" + re.match(r"[ \t]*", text[text.rfind("\n", 0, first - 1) + 1 :])[0] + after  # type: ignore[index]
    document = Document(place.path.as_uri(), language, 1, (text[: place.start] + after).encode())
    truth = text[first : place.end].rstrip()
    try:
        gap = find_gap(document, place.start)
    except NoGap as error:
        return "", truth, str(error)
    if isinstance(engine, Truth):
        engine.text = true_text(language, place, form)
    settings = Settings(checkpoint=given.checkpoint, related=False)
    outcome = await fill_gap(engine, document, gap, settings)
    if outcome.edit is None:
        return "", truth, outcome.why
    return apply_edit(document, outcome.edit).text[first:].partition("\n")[0].rstrip(), truth, ""


def is_right(line: str, truth: str, begun: str) -> bool:
    """Return whether `line` is the true one, or its beginning up to where a word ends."""
    line = line.removesuffix(";").removesuffix(":").rstrip()
    return len(line) > len(begun) and truth.startswith(line) and not re.match(r"[\w.]", truth[len(line) :])


async def main() -> None:
    """Print each place as a line of JSON, and the shares in the end."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("language")
    parser.add_argument("--checkpoint", default="coder-0.5b")
    parser.add_argument("--places", choices=("rests", "headers"), default="rests")
    parser.add_argument("--count", type=int, default=60, help="places of each form")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--true", action="store_true", help="write the true text and load no model")
    parser.add_argument("--below", choices=("nothing", "items", "all"), default="nothing")
    given = parser.parse_args()
    suffixes = load_language(given.language).suffixes
    paths = sorted(
        p for p in given.folder.rglob("*") if p.suffix in suffixes and not p.name.endswith(".d.ts")
    )
    random.Random(given.seed).shuffle(paths)
    engine: Engine = Truth() if given.true else LocalEngine.open(Settings(checkpoint=given.checkpoint))
    counts: Counter[tuple[str, str, str]] = Counter()
    for kind in ("rests",) if given.places == "rests" else HEADERS:
        rng = random.Random(f"{kind} {given.seed}")
        chosen = zip(places(paths, given.language, kind, rng), range(given.count), strict=False)
        for place, _ in chosen:
            begun = place.text[place.text.rfind("\n", 0, place.start) + 1 : place.start]
            for form in ("typed", "closed"):
                line, truth, why = await offer(engine, place, form, given)
                shut = closers(given.language, place) if form == "closed" else ""
                right = bool(line) and (line == truth or is_right(line.removesuffix(shut), truth, begun))
                counts.update([(kind, form, "all"), (kind, form, "offered" if line else "empty")])
                counts[kind, form, "exact"] += line == truth
                counts[kind, form, "right"] += right
                print(json.dumps({"at": place.name, "form": [kind, form], "right": right, "begun": begun,
                                  "said": line[len(begun) :], "truth": truth[len(begun) :], "why": why}),
                      flush=True)  # fmt: skip
    await engine.close()
    for kind, form in dict.fromkeys((kind, form) for kind, form, _ in counts):
        own = [f"{counts[kind, form, name]} {name}" for name in ("all", "offered", "exact", "right")]
        print(f"{given.language} {kind} {form}: {', '.join(own)}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
