"""Next edits in scenarios: how many are right where one is wanted, silent where none is, and how many are wrong.

    python -m benchmarks.next_edit [FOLDER] [--checkpoint NAME]

A scenario is played key by key through the server's own documents: its edits are typed, the places that are offered are
taken one after the other until there is none. It is right if the files are then as they are wanted, and silent if
nothing was offered. With a checkpoint its model writes the lines that follow where the rules have found nothing.
`--lines N` puts N lines of other code after each file, for the times.
"""

import argparse
import asyncio
import difflib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from dg_lsp.edits.next_edit import is_sound, nearest, next_edits
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.rewrites import Rewrite, rewrites_for, written
from dg_lsp.gaps.gap import Edit
from dg_lsp.server.documents import Change, Documents
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.language import language_of, load_language

SCENARIOS = Path(__file__).resolve().parents[1] / "tests/edits/next_edit"
_MOST = 40  # places that are taken before a scenario counts as endless
_LONG = 600.0  # seconds that a line may take on a slow machine
_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_WHERE = re.compile(r"([^:\s]+)(?::(\d+))?(?::(\d+))?")


Way = Literal["keys", "lines", "whole"]
Write = Callable[[Rewrite], str]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of a file that become others. line: the number of the first, from 1; 0 where the text is looked for."""

    name: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Files, the edits made in them, the cursor where it is not after the last edit, and the edits wanted."""

    title: str
    files: dict[str, str]
    edits: tuple[Hunk, ...]
    cursor: tuple[str, int, int] | None
    wanted: tuple[Hunk, ...]


@dataclass(slots=True)
class Result:
    """The end of a scenario. offered: the edits shown; wrong: those not wanted; seconds: those of each search."""

    right: bool
    offered: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def read_scenarios(folder: Path = SCENARIOS) -> list[Scenario]:
    """Return the scenarios of all text files in `folder`."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt")))
    return [_scenario(part) for text in texts for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]]


def _scenario(text: str) -> Scenario:
    title, _, rest = text.partition("\n")
    files, edits, wanted, cursor = {}, list[Hunk](), list[Hunk](), None
    for part in re.split(r"^--- ", rest, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        kind, _, where = head.partition(" ")
        found = _WHERE.fullmatch(where)
        if kind in ("edit", "want") and found:
            lines = body.rstrip("\n").split("\n")
            old, new = (tuple(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
            (edits if kind == "edit" else wanted).append(Hunk(found[1], int(found[2] or 0), old, new))
        elif kind == "cursor" and found:
            cursor = found[1], int(found[2]), int(found[3])
        elif kind != "silence":
            files[head] = body.rstrip("\n") + "\n"
    return Scenario(title, files, tuple(edits), cursor, tuple(wanted))


class Player:
    """The open documents of a scenario, edited as a user does it. cursors: where each was left.

    way: what the client sends of an edit, the keys, the changed lines, or the whole text.
    """

    def __init__(self, scenario: Scenario, lines: int = 0, way: Way = "keys") -> None:
        self.way: Way = way
        self.documents, self.cursors = Documents("utf-8"), dict[str, int]()
        is_cpp = any(name.endswith(".cpp") for name in scenario.files)
        for name, text in scenario.files.items():
            # A header is C or C++, as the client says.
            language = "cpp" if is_cpp and name.endswith(".h") else language_of(name)
            self.documents.open(_uri(name), language, 0, text + _filler(language, lines))
            self.now(name)

    def now(self, name: str) -> Document:
        """Return the file as it is now."""
        found = self.documents.snapshot(_uri(name))
        assert found is not None
        return found

    def type(self, hunk: Hunk) -> None:
        """Make the change of `hunk` with the keys that a user needs."""
        document = self.now(hunk.name)
        old, new = ("".join(f"{line}\n" for line in lines) for lines in (hunk.old, hunk.new))
        start = (
            document.line_starts[hunk.line - 1] if hunk.line else document.text.encode().index(old.encode())
        )
        if self.way != "keys":
            self.replace(hunk.name, start, start + len(old.encode()), new)
        before, after = _PIECE.findall(old), _PIECE.findall(new)
        shift = 0
        for tag, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if tag != "equal":
                self.cursors[hunk.name] = start + len("".join(after[:m]).encode())
            if tag != "equal" and self.way == "keys":
                at = start + len("".join(before[:i]).encode()) + shift
                gone, come = "".join(before[i:j]), "".join(after[k:m])
                self.replace(hunk.name, at, at + len(gone.encode()), "")
                for number, letter in enumerate(come):
                    to = at + len(come[:number].encode())
                    self.replace(hunk.name, to, to, letter)
                shift += len(come.encode()) - len(gone.encode())

    def replace(self, name: str, start: int, end: int, text: str) -> None:
        """Replace the bytes [start, end) of a file, as one change."""
        document = self.now(name)
        span = document.position(start), document.position(end)
        change: Change = (span, text)
        if self.way == "whole":
            data = document.data
            change = None, (data[:start] + text.encode() + data[end:]).decode()
        self.documents.change(_uri(name), document.version + 1, [change])
        self.cursors[name] = start + len(text.encode())


def play(scenario: Scenario, lines: int = 0, way: Way = "keys", write: Write | None = None) -> Result:
    """Play `scenario`, with so many `lines` of other code below each file, and compare the end with the wanted one.

    write: writes what takes the place of a line; without it the rules are alone.
    """
    player, result = Player(scenario, lines, way), Result(False)
    current = scenario.edits[-1].name
    for hunk in scenario.edits:
        player.type(hunk)
    if scenario.cursor:
        current, line, column = scenario.cursor
        player.cursors[current] = player.now(current).line_starts[line - 1] + column
    wanted, ruled = [line for hunk in scenario.wanted for line in _lines_of(hunk)], False
    for _ in range(_MOST):
        began = time.process_time()
        place = _offered(player, current)
        result.seconds.append(time.process_time() - began)
        ruled = ruled or place is not None
        if place is None and not ruled and write is not None:
            place = _written(player, current, write)
        if place is None:
            break
        document, edit = place
        shown = _shown(document, edit)
        result.offered.append(f"{shown[0]}: {shown[1].strip()} -> {shown[2].strip()}")
        name, old, new = shown
        hit = next((one for one in wanted if one[:2] == (name, old) and new in _towards(old, one[2])), None)
        if hit is None:
            result.wrong.append(result.offered[-1])
            break
        wanted.remove(hit)
        wanted += [] if new == hit[2] else [(name, new, hit[2])]
        count = player.documents.bursts(document.uri).count
        player.replace(name, edit.start, edit.end, edit.text)
        if name == current and player.documents.bursts(document.uri).count > count:
            player.documents.absorb(document.uri)
    result.right = not wanted and not result.wrong
    return result


def _lines_of(hunk: Hunk) -> list[tuple[str, str, str]]:
    """Return the file, the old and the new text of each line that a wanted `hunk` changes; of all if it adds some."""
    if len(hunk.old) != len(hunk.new):
        return [(hunk.name, "\n".join(hunk.old), "\n".join(hunk.new))]
    return [(hunk.name, old, new) for old, new in zip(hunk.old, hunk.new, strict=True) if old != new]


def _towards(old: str, new: str) -> set[str]:
    """Return the texts that some of the changes from `old` to `new` lead to, as an edit of one of two names does."""
    texts = _PIECE.findall(old), _PIECE.findall(new)
    ways = {""}
    for tag, i, j, k, m in difflib.SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        parts = (
            {"".join(texts[0][i:j]), "".join(texts[1][k:m])} if tag != "equal" else {"".join(texts[0][i:j])}
        )
        ways = {way + part for way in ways for part in parts}
    return {new, *ways} - {old}


def _offered(player: Player, current: str) -> tuple[Document, Edit] | None:
    document = player.now(current)
    cursor = player.cursors[current]
    found = next_edits(document, player.documents.bursts(document.uri), cursor, _others(player, document))
    places = nearest(found, document.uri, cursor)
    return next(((d, e) for d, e in places if is_sound(d, e)), None)


def _written(player: Player, current: str, write: Write) -> tuple[Document, Edit] | None:
    document, cursor = player.now(current), player.cursors[current]
    found = rewrites_for(document, player.documents.bursts(document.uri), cursor, _others(player, document))
    places = (p for one in found for p in nearest(one.places(write(one)), document.uri, cursor))
    return next((place for place in places if is_sound(*place)), None)


def _others(player: Player, document: Document) -> list[Document]:
    uris = [uri for uri in player.documents.uris() if uri != document.uri]
    return [one for uri in uris if (one := player.documents.snapshot(uri)) is not None]


def _shown(document: Document, edit: Edit) -> tuple[str, str, str]:
    data = document.data
    start = document.line_starts[document.line_at(edit.start)]
    end = document.line_end(document.line_at(edit.end))
    new = data[start : edit.start] + edit.text.encode() + data[edit.end : end]
    return document.uri.removeprefix(_uri("")), data[start:end].decode(), new.decode()


def _uri(name: str) -> str:
    return f"file:///project/{name}"


def _filler(name: str, lines: int) -> str:
    """Return about so many `lines` of functions in the language `name`, for the times."""
    if not lines:
        return ""
    language = load_language(name)
    header = language.rooms["function"].decode()
    end = "    pass\n\n" if language.style == "indent" else "}\n\n"
    return "".join(header.replace("_g_", f"filler{number}") + "\n" + end for number in range(lines // 3))


def report(
    scenarios: list[Scenario], lines: int = 0, way: Way = "keys", write: Write | None = None
) -> Iterator[str]:
    """Yield a line for each scenario that is not as it should be, and last the shares."""
    results = [(s, play(s, lines, way, write)) for s in scenarios]
    for scenario, result in results:
        if not result.right:
            missing = "" if result.wrong or not scenario.wanted else f" wanted {scenario.wanted[0].new}"
            yield f"{scenario.title}: offered {result.offered}{missing}"
    wants = [r for s, r in results if s.wanted]
    silences = [r for s, r in results if not s.wanted]
    times = sorted(t for _, r in results for t in r.seconds)
    yield (
        f"right {sum(r.right for r in wants)}/{len(wants)}, "
        f"silent {sum(not r.offered for r in silences)}/{len(silences)}, "
        f"wrong edits {sum(len(r.wrong) for _, r in results)}, "
        f"p95 {1000 * times[int(0.95 * (len(times) - 1))]:.1f} ms"
    )


def main() -> None:
    """Play all scenarios and print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=SCENARIOS)
    parser.add_argument("--lines", type=int, default=0)
    parser.add_argument("--way", choices=get_args(Way), default="keys")
    parser.add_argument("--checkpoint", default="")
    given = parser.parse_args()
    write: Write | None = None
    if given.checkpoint:
        engine = LocalEngine.open(Settings(checkpoint=given.checkpoint))

        def write(rewrite: Rewrite) -> str:
            return asyncio.run(written(engine, rewrite, _LONG)) or ""

    for line in report(read_scenarios(given.folder), given.lines, given.way, write):
        print(line)


if __name__ == "__main__":
    main()
