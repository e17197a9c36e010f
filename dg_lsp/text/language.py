"""Language: a name to a parser, a compiled query and the few facts of language.toml.

Languages are data: a folder each under grammars/. Knows tree-sitter; knows no document.
"""

import importlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePath

import tree_sitter
from tree_sitter import Node, Tree

_LONE_CR = re.compile(rb"\r(?!\n)")
# The closed list: gaps.scm may capture nothing else, so a misspelt capture is an error and not a silence.
CAPTURES = (
    "function.outer",
    "function.name",
    "function.colon",
    "function.body",
    "docstring",
    "stub",
    "stub.skip",
)


class UnknownLanguage(ValueError):
    """No grammar is there for a name or a file; the message lists the known ones."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language: its grammar, its compiled gaps.scm, and what language.toml says."""

    name: str
    suffixes: tuple[str, ...]
    style: str
    indent: str
    comment: str
    placeholders: tuple[tuple[str, str], ...]
    grammar: tree_sitter.Language
    query: tree_sitter.Query

    def parse(self, data: bytes) -> Tree:
        """The tree of `data`."""
        # A parser holds state, so each call has its own and threads cannot meet in one.
        return tree_sitter.Parser(self.grammar).parse(_rows(data))

    def reparse(self, tree: Tree, data: bytes, span: tuple[int, int], text: bytes) -> Tree:
        """The tree of `data` with `text` in the place of `span`; `tree`, that of `data`, stays as it is."""
        start, end = span
        old, new = _rows(data), _rows(data[:start] + text + data[end:])
        stop = start + len(text)
        edited = tree.copy()
        edited.edit(start, end, stop, _point(old, start), _point(old, end), _point(new, stop))
        return tree_sitter.Parser(self.grammar).parse(new, edited)

    def placeholder(self, kind: str) -> str:
        """The neutral text of a gap's kind."""
        return dict(self.placeholders)[kind]

    def captures(self, node: Node) -> dict[str, list[Node]]:
        """Every capture below `node`, each list in the order of the text."""
        found = tree_sitter.QueryCursor(self.query).captures(node)
        # The binding gives them in an order that changes from process to process.
        return {
            name: sorted(nodes, key=lambda n: (n.start_byte, -n.end_byte)) for name, nodes in found.items()
        }

    def functions(self, node: Node) -> list[dict[str, Node]]:
        """One record of captures for each function below `node`, in the order of the text."""
        matches = tree_sitter.QueryCursor(self.query).matches(node)
        records = [{k: v[0] for k, v in match.items()} for _, match in matches if "function.outer" in match]
        return sorted(records, key=lambda r: r["function.outer"].start_byte)


@cache
def load_language(name: str) -> Language:
    """The language called `name`, from its folder under grammars/.

    Raises:
        UnknownLanguage: there is no such folder.
        ValueError: its query captures something outside CAPTURES (QueryError where it does not compile).
    """
    if name not in known_languages():
        raise UnknownLanguage(
            f"no grammar for the language {name!r}; known are {', '.join(known_languages())}"
        )
    folder = _grammars() / name
    facts = tomllib.loads((folder / "language.toml").read_text(encoding="utf-8"))
    grammar = tree_sitter.Language(getattr(importlib.import_module(facts["wheel"]), facts["function"])())
    query = tree_sitter.Query(grammar, (folder / "gaps.scm").read_text(encoding="utf-8"))
    stray = [c for c in capture_names(query) if c not in CAPTURES and not c.startswith("_")]
    if stray:
        raise ValueError(
            f"grammars/{name}/gaps.scm captures {', '.join(stray)}; known are {', '.join(CAPTURES)}"
        )
    return Language(
        name=facts["name"],
        suffixes=tuple(facts["suffixes"]),
        style=facts["style"],
        indent=facts["indent"],
        comment=facts["comment"],
        placeholders=tuple(facts["placeholders"].items()),
        grammar=grammar,
        query=query,
    )


def language_of(path: PurePath | str) -> str:
    """The name of the language that files like `path` are written in.

    Raises:
        UnknownLanguage: no language claims the file's suffix.
    """
    suffix = PurePath(path).suffix.lower()
    claims = {s: name for name in known_languages() for s in load_language(name).suffixes}
    if suffix not in claims:
        raise UnknownLanguage(
            f"no language is known for {PurePath(path).name}; known are {', '.join(sorted(claims))}"
        )
    return claims[suffix]


@cache
def known_languages() -> tuple[str, ...]:
    """The names of all languages that have a folder."""
    return tuple(sorted(f.name for f in _grammars().iterdir() if f.joinpath("language.toml").is_file()))


def capture_names(query: tree_sitter.Query) -> tuple[str, ...]:
    """The names of all captures of `query`."""
    return tuple(query.capture_name(i) for i in range(query.capture_count))


def _grammars() -> Traversable | Path:
    """The folder of languages: inside the installed package, or beside it in a checkout."""
    installed = files("dg_lsp") / "grammars"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / "grammars"


def _rows(data: bytes) -> bytes:
    """`data` with LF for each CR that stands alone, because tree-sitter knows rows only by LF."""
    return _LONE_CR.sub(b"\n", data) if b"\r" in data else data


def _point(data: bytes, offset: int) -> tuple[int, int]:
    return data.count(b"\n", 0, offset), offset - data.rfind(b"\n", 0, offset) - 1
