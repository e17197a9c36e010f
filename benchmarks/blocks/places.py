"""Places in real files: a statement, the body or the rest of a block, or the lines between two brackets is taken out.

The rest of the file stays. A body has 1 to 8 lines, all others 2 to 8; the rest of a block is several statements.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from tree_sitter import Node

from benchmarks.blocks.sources import is_new
from dg_lsp.reasons import OutOfTime
from dg_lsp.source.language import load_language

MOST = 8  # lines
_LONGEST = 800  # characters of a text
# Types of nodes that nobody expects as a statement at a cursor: definitions, and what is no code.
_OTHER = re.compile(
    r"function|method|class|decorated|import|interface|impl|struct|enum|mod_|module|type_|trait|comment|package"
    r"|constructor|record"
)
_CODE = re.compile(r"(?:expression|method_invocation)")
# The text that a person has typed with the first word: `if `, `return `, `self.`, `err := `.
_WORD = re.compile(r"\w+(?: (?=\S)|\.)?")
_CLOSERS = (")", "]", "}")


@dataclass(frozen=True, slots=True)
class Place:
    """A text that was taken out of a file.

    form: "statement", "block", "rest" or "brackets". above: the text up to the end of the line above. indent: the white
    space before the cursor. below: the text after the cursor's line, from its line end on.
    """

    name: str
    path: Path
    root: Path
    language: str
    form: str
    above: str
    indent: str
    truth: str
    below: str

    @property
    def word(self) -> str:
        """The first word of the truth with its blank or dot; empty if it begins with no word, or has nothing else."""
        found = _WORD.match(self.truth)
        return found[0] if found and self.truth[found.end() :].split("\n")[0].strip() else ""


@dataclass(frozen=True, slots=True)
class Span:
    """Whole lines of a file: those from the first up to the last one, which counts."""

    form: str
    first: int
    last: int


def spans(text: str, language: str) -> list[Span]:
    """Return the lines that may be taken out of `text`."""
    try:
        root = load_language(language).parse(text.encode()).root_node
    except OutOfTime:
        return []
    if root.has_error:
        return []
    lines = text.split("\n")
    captures = load_language(language).captures(root)
    found = [_statement(node, lines) for node in captures.get("statement", [])]
    found += [_rest(node, lines) for node in captures.get("statement", [])]
    found += [_block(node, lines) for node in captures.get("block.body", [])]
    for name in ("arguments", "collection"):
        found += [_brackets(node, lines) for node in captures.get(name, [])]
    unique = dict.fromkeys(one for one in found if one is not None)
    return [one for one in unique if _is_typed(lines[one.first : one.last + 1])]


def _statement(node: Node, lines: Sequence[str]) -> Span | None:
    """Return the Span of a statement of 2 to 8 lines that shares no line with other code and is indented."""
    first, last = node.start_point.row, node.end_point.row
    defines = _OTHER.search(node.type) and not _CODE.search(node.type)
    alone = not lines[first][: node.start_point.column].strip() and node.start_point.column
    rest = lines[last].encode()[node.end_point.column :].strip()
    if defines or not alone or rest not in (b"", b";") or not 2 <= last - first + 1 <= MOST:
        return None
    return Span("statement", first, last)


def _rest(node: Node, lines: Sequence[str]) -> Span | None:
    """Return the Span from a statement after another one up to the last one of their block."""
    last = node.parent.named_children[-1] if node.parent else node
    alone = not lines[node.start_point.row][: node.start_point.column].strip() and node.start_point.column
    if node.prev_named_sibling is None or last == node or not alone:
        return None
    if not 2 <= last.end_point.row - node.start_point.row + 1 <= MOST:
        return None
    return Span("rest", node.start_point.row, last.end_point.row)


def _block(node: Node, lines: Sequence[str]) -> Span | None:
    """Return the Span of the lines of a body, without its braces."""
    first, last = node.start_point.row, node.end_point.row
    if lines[first].encode()[node.start_point.column :].strip() in (b"{", b"("):
        return _within("block", node, lines, 1)
    # Without braces the header is above, and the lines are those of the body alone.
    begins = not lines[first].encode()[: node.start_point.column].strip()
    if not begins or not lines[first - 1].rstrip().endswith(":") or last - first + 1 > MOST:
        return None
    return Span("block", first, last)


def _brackets(node: Node, lines: Sequence[str]) -> Span | None:
    """Return the Span of the lines between two brackets that end and begin their lines."""
    return _within("brackets", node, lines, 2)


def _within(form: str, node: Node, lines: Sequence[str], least: int) -> Span | None:
    """Return the Span of the lines between the line where `node` opens and the one where it closes."""
    first, last = node.start_point.row + 1, node.end_point.row - 1
    opens = len(lines[first - 1].encode()[node.start_point.column :].strip()) == 1
    closes = lines[last + 1].lstrip().startswith(_CLOSERS)
    if not opens or not closes or not least <= last - first + 1 <= MOST:
        return None
    return Span(form, first, last)


def _is_typed(lines: Sequence[str]) -> bool:
    """Return whether `lines` are code of which the first line is the least indented, and not blank."""
    written = [line for line in lines if line.strip()]
    if not lines[0].strip() or not lines[-1].strip() or sum(map(len, lines)) > _LONGEST:
        return False
    columns = [len(line) - len(line.lstrip()) for line in written]
    prose = ('"""', "'''", '"', "'", "//", "/*", "#", "*", "`")
    return min(columns) == columns[0] > 0 and not lines[0].lstrip().startswith(prose)


def take_out(text: str, span: Span, about: tuple[Path, Path, str]) -> Place:
    """Return the Place where the lines of `span` are missing in `text`; `about` is the file, its root, its language."""
    path, root, language = about
    lines = text.split("\n")
    gone = "\n".join(lines[span.first : span.last + 1]).rstrip()
    truth = gone.lstrip()
    return Place(
        f"{path.relative_to(root)}:{span.first + 1}",
        path,
        root,
        language,
        span.form,
        "\n".join(lines[: span.first]),
        gone[: len(gone) - len(truth)],
        truth,
        "\n" + "\n".join(lines[span.last + 1 :]),
    )


def places(
    roots: Sequence[tuple[Path, list[Path]]], language: str, forms: Sequence[str], seed: int
) -> Iterator[Place]:
    """Yield places of `forms`, one of a file, one package after the other; `roots` are theirs, with files.

    1. The forms take turns.  2. Where a file has no place of the form whose turn it was, one of any form is taken.
    """
    chance = random.Random(f"{language} {'-'.join(forms)} {seed}")
    queues = [(root, chance.sample(paths, len(paths))) for root, paths in roots if paths]
    chance.shuffle(queues)
    used = set[Path]()
    turns: tuple[Iterator[Sequence[str]], ...] = (cycle((form,) for form in forms), cycle((forms,)))
    for turn in turns:
        waiting, wanted = [(root, [p for p in paths if p not in used]) for root, paths in queues], next(turn)
        while waiting := [(root, paths) for root, paths in waiting if paths]:
            for root, paths in waiting:
                place = _next(root, paths, (language, wanted), chance)
                if place is not None:
                    used.add(place.path)
                    wanted = next(turn)
                    yield place


def _next(
    root: Path, paths: list[Path], wanted: tuple[str, Sequence[str]], chance: random.Random
) -> Place | None:
    """Return a place in the next of `paths` that has one; these files are removed from `paths`."""
    language, forms = wanted
    while paths:
        path = paths.pop()
        text = path.read_text("utf-8", errors="replace").replace("\r\n", "\n")
        # A column counts the same in every encoding if the text is ASCII.
        if not text.isascii() or not is_new(text):
            continue
        found = [
            take_out(text, one, (path, root, language)) for one in spans(text, language) if one.form in forms
        ]
        found = [one for one in found if one.word or one.form != "statement"]
        if found:
            return chance.choice(found)
    return None
