"""Language: the parser, the compiled query and the facts of language.toml of one language, a folder of grammars/."""

import importlib
import importlib.util
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePath
from typing import Any, Literal, get_args

import tree_sitter
from tree_sitter import Node, Tree

from dg_lsp.budget import check, unbilled
from dg_lsp.messages import KINDS
from dg_lsp.reasons import Unreadable
from dg_lsp.source.macros import Macros, blanked, read_macros, with_names
from dg_lsp.source.recovery import is_endless, parse, parse_until_broken
from dg_lsp.source.scanners import Scanner, check_depth, with_short_names
from dg_lsp.source.words import Imports, Injections, Plain, Quotes, Words, read_facts

Log = Callable[[str], None]
# A name as all languages write it.
WORD = re.compile(r"[^\W\d]\w*")
# Deeper trees than of any written code, and more tokens than an error in one has; and the depth down to which a query
# looks, whose time is quadratic in it.
_DEEPEST, _MOST_IN_ERROR, _LOOKED = 1_000, 4_000, 400
# Comments that nothing closes, beyond which only the first is read as one.
_MANY = 8
# What begins a comment where nothing does: no text holds it.
_NEVER = b"\0"
_LONE_CR = re.compile(rb"\r(?!\n)")
_INHERITS = re.compile(r"; inherits: (.+)")
# The closed list: gaps.scm may capture nothing else, so a misspelt capture is an error and not a silence.
Owner = Literal["function", "class", "block"]
OWNERS: tuple[Owner, ...] = get_args(Owner)
_OUTERS: dict[str, Owner] = {f"{owner}.outer": owner for owner in OWNERS}
# What a statement may have to be in.
ROOMS = (
    *("function", "loop", "switch", "choice", "handler", "generator", "async", "ambient", "file"),
    *("block", "forward"),
)
CAPTURES = (
    *(f"{owner}.{part}" for owner in OWNERS[:2] for part in ("outer", "name", "colon", "body")),
    *("function.owner", "block.outer", "block.colon", "block.body"),
    *("arguments", "parameters", "collection", "expression", "statement"),
    *("string", "docstring", "comment"),
    *("stub", "stub.skip", "import", "refuse", "once", "wall", "misplaced", "misplaced.after"),
    *(f"{what}.{room}" for what in ("misplaced", "room") for room in ROOMS),
)


class UnknownLanguage(ValueError):
    """No grammar is there for a name or a file; the message lists the known ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """One language: its grammar, its compiled gaps.scm, and what language.toml says. There is one object for each.

    ids: what editors call it. style: `indent` or `brace`, by what bodies are held together; `plain` where gaps are
    lines and blocks, found without a tree. indent: one step of indentation where a file shows none. comment: the mark
    of a comment that ends with its line. placeholders: the neutral text of each kind of gap. regex: a slash may begin a
    regular expression. jsx: elements with text between tags may be values. nested: block comments may hold others.
    joined: a backslash at the end of a line comment takes the next line along. words: for reading and repairing broken
    text. builtins: the names that every file may use. last: the first words of statements below which nothing of their
    block is reached. macros: the text that the parser reads as blanks. rooms: the header of some function, which a
    block has, too, and of some class. names: where names are written, by the keys of the table [names]. imports: how
    names are imported. plain: the facts of a plain language. scanner: what the grammar's scanner can hold.
    load_tree: returns the tree.
    """

    name: str
    ids: tuple[str, ...]
    suffixes: tuple[str, ...]
    style: str
    indent: str
    comment: bytes
    block_comments: tuple[tuple[bytes, bytes], ...]
    strings: tuple[Quotes, ...]
    regex: bool
    jsx: bool
    nested: bool
    joined: bool
    placeholders: Mapping[str, str]
    words: Words
    builtins: tuple[bytes, ...]
    last: tuple[bytes, ...]
    macros: Macros
    rooms: Mapping[Owner, bytes]
    names: Mapping[str, frozenset[str]]
    imports: Imports
    plain: Plain
    scanner: Scanner
    load_tree: Callable[[], tuple[tree_sitter.Language, tree_sitter.Query] | None]

    @property
    def is_plain(self) -> bool:
        """Return whether gaps are lines and blocks, found without a tree."""
        return self.style == "plain"

    @property
    def has_comments(self) -> bool:
        """Return whether a mark begins a comment that ends with its line."""
        return self.comment != _NEVER

    def commented(self, text: str) -> str:
        """`text`, a line, as a comment; as it is in a language without comments."""
        begin, end = (self.comment, b"") if self.has_comments else next(iter(self.block_comments), (b"", b""))
        return f"{begin.decode()} {text} {end.decode()}".strip()

    @property
    def tree(self) -> tuple[tree_sitter.Language, tree_sitter.Query] | None:
        """The grammar and the query, which is compiled when it is first needed; None where no grammar is installed.

        Raises:
            ValueError: the query captures something outside CAPTURES (QueryError if it does not compile).
        """
        return self.load_tree()

    @property
    def grammar(self) -> tree_sitter.Language:
        """The grammar; Unreadable is raised in a plain language that has none."""
        if self.tree is None:
            raise Unreadable
        return self.tree[0]

    @property
    def query(self) -> tree_sitter.Query:
        """The compiled gaps.scm; Unreadable is raised where there is no grammar."""
        if self.tree is None:
            raise Unreadable
        return self.tree[1]

    @property
    def keywords(self) -> tuple[bytes, ...]:
        """The words that the grammar itself holds."""
        return _keywords(self.grammar) if self.tree else ()

    @property
    def own_words(self) -> frozenset[str]:
        """The words that every file may use: the builtins and the keywords."""
        return frozenset(word.decode() for word in (*self.builtins, *self.keywords))

    def parse(self, data: bytes) -> Tree:
        """Return the tree of `data`.

        Raises:
            OutOfTime: that takes longer than the budget allows (Unreadable: than this text may take).
            TooDeep: the parser cannot hold what is open in it.
        """
        text = self.readable(data)
        check_depth(self.scanner, text)
        end = self.words.ends[0].decode()
        if (end == ";" or self.style == "indent") and is_endless(text, end):
            raise Unreadable
        # A parser holds state, so each call has its own and threads cannot meet in one.
        return parse(tree_sitter.Parser(self.grammar), text, last=self.scanner.last)

    def readable(self, data: bytes) -> bytes:
        """Return `data` as the parser reads it, and of the same length.

        It has blanks for macros, most open comments and, in a large text, the names of heredocs; and LF for a CR
        without LF.
        """
        text = blanked(self.macros, data) if self.macros.kinds else data
        text = with_short_names(self.scanner, text)
        return _few_open(self.block_comments, _rows(text))

    def reparse(
        self, tree: Tree, data: bytes, span: tuple[int, int], text: bytes, log: Log | None = None
    ) -> Tree:
        """The tree of `data` with `text` for `span`; `tree`, that of `data`, stays. `log` gets the parser's words."""
        new, moved = self._edited(tree, data, span, text)
        parser = tree_sitter.Parser(self.grammar)
        if log is not None:
            parser.logger = lambda _, words: log(words)
        return parse(parser, new, moved, last=self.scanner.last)

    def reparse_until_broken(
        self, tree: Tree, data: bytes, span: tuple[int, int], text: bytes
    ) -> Tree | None:
        """As `reparse`; mostly None if the new tree has an error, which takes less time to find."""
        new, moved = self._edited(tree, data, span, text)
        return parse_until_broken(tree_sitter.Parser(self.grammar), new, moved, self.scanner.last)

    def changed(
        self, tree: Tree, data: bytes, span: tuple[int, int], text: bytes, new: Tree
    ) -> tuple[int, int]:
        """Return the span of `new` with `text` and all that is read otherwise than in `tree`, that of `data`.

        Raises:
            Unreadable: the text is nested so deep there that the comparison would take seconds.
        """
        _check_nesting(new, span[0])
        _, moved = self._edited(tree, data, span, text)
        ranges = moved.changed_ranges(new)
        start, end = span[0], span[0] + len(text)
        return min([start, *(r.start_byte for r in ranges)]), max([end, *(r.end_byte for r in ranges)])

    def _edited(self, tree: Tree, data: bytes, span: tuple[int, int], text: bytes) -> tuple[bytes, Tree]:
        """Return the parser's view of `data` with `text` for `span`, and the tree of `data` moved accordingly."""
        start, end = span
        stop = start + len(text)
        whole = data[:start] + text + data[end:]
        old, new = self.readable(data), self.readable(whole)
        check_depth(self.scanner, new)
        if old[:start] != new[:start] or old[end:] != new[stop:]:
            # Text outside of the span is a macro now, or none any more.
            start, end, stop = 0, len(old), len(new)
        moved = tree.copy()
        moved.edit(start, end, stop, _point(old, start), _point(old, end), _point(new, stop))
        return new, moved

    def captures(self, node: Node, span: tuple[int, int] | None = None) -> dict[str, list[Node]]:
        """Every capture below `node`, each list in the order of the text; with a `span` of bytes those that meet it."""
        check_shape(node)
        found = query_cursor(self.query, span).captures(node)
        # The binding gives them in an order that changes from process to process.
        return {
            name: sorted(nodes, key=lambda n: (n.start_byte, -n.end_byte)) for name, nodes in found.items()
        }

    def records(self, node: Node, span: tuple[int, int] | None = None) -> dict[Owner, list[dict[str, Node]]]:
        """By owner (function, class, block) one record of captures for each of its bodies below `node`, in order."""
        check_shape(node)
        found: dict[Owner, dict[int, dict[str, Node]]] = {owner: {} for owner in OWNERS}
        for _, match in query_cursor(self.query, span).matches(node):
            # Most matches are of no body, and there are many.
            for outer in _OUTERS.keys() & match.keys():
                owner = _OUTERS[outer]
                record = {name: nodes[0] for name, nodes in match.items()}
                # Two patterns may match one body; the one with more captures counts, its owner's name above all.
                known = found[owner].get(record[f"{owner}.body"].id, {})
                found[owner][record[f"{owner}.body"].id] = max(known, record, key=len)
        return {owner: sorted(records.values(), key=_place) for owner, records in found.items()}


@lru_cache(maxsize=64)
@unbilled
def load_language(name: str, macros: tuple[str, ...] = ()) -> Language:
    """The language called `name`, by its own name or an editor's, whose parser reads `macros`, such as `MY_*`, as
    blanks.

    Raises:
        UnknownLanguage: there is no such folder.
    """
    if macros:
        plain = load_language(name)
        named = with_names(plain.macros, macros)
        return replace(plain, macros=named) if plain.macros.kinds else plain
    folder = _folders().get(name)
    if folder is None:
        known = ", ".join(known_languages())
        raise UnknownLanguage(f"no grammar for the language {name!r}; known are {known}")
    facts = _facts(folder)
    rooms = {name: facts.get("rooms", {}).get(name, "").encode() for name in ("function", "class")}
    return Language(
        name=facts["name"],
        ids=tuple(facts["ids"]),
        suffixes=tuple(facts["suffixes"]),
        style=facts["style"],
        indent=facts["indent"],
        comment=facts["comment"].encode() if "comment" in facts else _NEVER,
        block_comments=tuple((a.encode(), b.encode()) for a, b in facts.get("block_comments", ())),
        strings=tuple(read_facts(Quotes, quotes) for quotes in facts.get("strings", ())),
        regex=facts.get("regex", False),
        jsx=facts.get("jsx", False),
        nested=facts.get("nested", False),
        joined=facts.get("joined", False),
        placeholders=facts.get("placeholders", dict.fromkeys(KINDS, "")),
        words=read_facts(Words, _inherited(facts, "repair")),
        builtins=tuple(name.encode() for name in facts.get("builtins", "").split()),
        last=tuple(word.encode() for word in facts.get("last", ())),
        macros=_macros(facts),
        rooms=dict(zip(OWNERS, (rooms["function"], rooms["class"], rooms["function"]), strict=True)),
        names={key: frozenset(str(text).split()) for key, text in _inherited(facts, "names").items()},
        imports=read_facts(Imports, _inherited(facts, "imports")),
        plain=read_facts(Plain, facts.get("plain", {})),
        scanner=read_facts(Scanner, facts.get("scanner", {})),
        load_tree=partial(_tree, folder),
    )


def query_of(grammar: tree_sitter.Language, text: str) -> tree_sitter.Query:
    """Compile a query.

    Raises:
        QueryError: `text` is no query of `grammar`.
        KeyboardInterrupt: Ctrl+C came while a regular expression of it was compiled, which tree-sitter calls an error.
    """
    try:
        return tree_sitter.Query(grammar, text)
    except tree_sitter.QueryError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


@cache
@unbilled
def _tree(folder: str) -> tuple[tree_sitter.Language, tree_sitter.Query] | None:
    """The grammar of a language and its gaps.scm; None for a plain one whose wheel is not named or not installed."""
    facts = _facts(folder)
    if facts["style"] == "plain" and importlib.util.find_spec(facts.get("wheel", "-")) is None:
        return None
    grammar = tree_sitter.Language(getattr(importlib.import_module(facts["wheel"]), facts["function"])())
    query = query_of(grammar, _query(facts["name"]))
    stray = [c for c in capture_names(query) if c not in CAPTURES and not c.startswith("_")]
    if stray:
        raise ValueError(
            f"grammars/{facts['name']}/gaps.scm captures {', '.join(stray)}; known are {', '.join(CAPTURES)}"
        )
    return grammar, query


def language_of(path: PurePath | str) -> str:
    """The name of the language of files like `path`; UnknownLanguage where none claims its suffix or its name."""
    name, claims = PurePath(path).name, _suffixes()
    found = claims.get(PurePath(path).suffix.lower()) or _files().get(name.partition(".")[0].lower())
    if found is None:
        raise UnknownLanguage(f"no language is known for {name}; known are {', '.join(sorted(claims))}")
    return found


def has_language(name: str) -> bool:
    """Return whether the suffix of the file `name` is that of a language that is not plain; for many files."""
    stem, dot, suffix = name.rpartition(".")
    return bool(stem) and (dot + suffix).lower() in suffixes()


@cache
def suffixes() -> tuple[str, ...]:
    """Return the suffixes of the languages that are not plain, such as ".py"."""
    return tuple(sorted(suffix for name in known_languages() for suffix in _facts(name)["suffixes"]))


@cache
def known_languages() -> tuple[str, ...]:
    """The names of the languages that are not plain."""
    return tuple(name for name in _names() if _facts(name)["style"] != "plain")


@cache
def plain_languages() -> tuple[str, ...]:
    """The names of the plain languages, without `containers`."""
    return tuple(n for n in _names() if _facts(n)["style"] == "plain" and n not in containers())


@cache
def containers() -> tuple[str, ...]:
    """The names of the languages that are filled only in the code that they hold, such as Markdown."""
    return tuple(n for n in _names() if (found := injections_of(n)) and found.rest != n)


def language_ids() -> tuple[str, ...]:
    """The names by which editors call the languages that have a folder."""
    return tuple(sorted({called for name in _names() for called in _facts(name)["ids"]}))


def is_plain(language: str) -> bool:
    """Return whether `language`, by its own name or an editor's, is a plain one."""
    return _folders().get(language) in {*plain_languages(), *containers()}


def knows(language: str) -> bool:
    """Return whether `language`, by its own name or an editor's, has a folder."""
    return language in _folders()


def own_name(language: str) -> str:
    """Return the name of the folder of `language`, which an editor may call otherwise."""
    return _folders()[language]


def line_comment_of(language: str) -> bytes:
    """Return the mark of a comment that ends with its line in `language`; empty if it has none. Nothing is compiled."""
    return str(_facts(_folders()[language]).get("comment", "")).encode()


@cache
def injections_of(language: str) -> Injections | None:
    """Return where files of `language` hold code in other languages; None if they hold none. Nothing is compiled."""
    folder = _folders().get(language)
    facts = _facts(folder).get("injections") if folder else None
    return read_facts(Injections, facts) if facts else None


def query_cursor(query: tree_sitter.Query, span: tuple[int, int] | None = None) -> tree_sitter.QueryCursor:
    """Return a cursor of `query`, with a `span` for what meets it; matches begin at most _LOOKED nodes deep."""
    cursor = tree_sitter.QueryCursor(query)
    cursor.set_max_start_depth(_LOOKED)
    if span is not None:
        cursor.set_byte_range(*span)
    return cursor


def check_shape(root: Node) -> None:
    """Raise Unreadable where a query of `root` may take quadratic time, as in an error of thousands of nodes."""
    check()
    if root.has_error and root.descendant_count > _MOST_IN_ERROR:
        errors = [root, *root.children] if root.child_count <= _MOST_IN_ERROR else [root]
        if any(node.is_error and node.child_count > _MOST_IN_ERROR for node in errors):
            raise Unreadable


def _check_nesting(tree: Tree, at: int) -> None:
    """Raise Unreadable where over _DEEPEST nodes are around the byte `at`: comparing trees is quadratic in them."""
    cursor, depth = tree.walk(), 0
    while cursor.goto_first_child_for_byte(at) is not None:
        depth += 1
        if depth > _DEEPEST:
            raise Unreadable


def capture_names(query: tree_sitter.Query) -> tuple[str, ...]:
    """The names of all captures of `query`."""
    return tuple(query.capture_name(i) for i in range(query.capture_count))


def _grammars() -> Traversable | Path:
    """The folder of languages: inside the installed package, or beside it in a checkout."""
    installed = files("dg_lsp") / "grammars"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / "grammars"


@cache
def _names() -> tuple[str, ...]:
    """The names of all languages that have a folder."""
    return tuple(sorted(f.name for f in _grammars().iterdir() if f.joinpath("language.toml").is_file()))


@cache
def _folders() -> dict[str, str]:
    """The name of each language's folder, by its own name and by what editors call it."""
    folders: dict[str, str] = {}
    for name in _names():
        folders |= dict.fromkeys((*_facts(name)["ids"], name), name)
    return folders


@cache
def _suffixes() -> dict[str, str]:
    """The language of each suffix, such as "python" for ".pyi"."""
    return {s: name for name in _names() for s in _facts(name)["suffixes"]}


@cache
def _files() -> dict[str, str]:
    """The language of each name of files without a suffix, or with any other one, such as "dockerfile"."""
    return {file: name for name in _names() for file in _facts(name).get("files", ())}


@cache
def _facts(name: str) -> dict[str, Any]:
    """The facts in language.toml of the folder `name`; nobody may change them."""
    return tomllib.loads((_grammars() / name / "language.toml").read_text(encoding="utf-8"))


def _query(folder: str) -> str:
    """The text of a folder's gaps.scm, if it has one, after those of the folders that its first line inherits."""
    file = _grammars() / folder / "gaps.scm"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    below = _INHERITS.match(text)
    return "\n".join((*map(_query, below[1].split(", ") if below else ()), text))


def _inherited(facts: dict[str, Any], table: str) -> dict[str, Any]:
    """A table of language.toml, after that of the language that it extends."""
    below = _facts(_folders()[facts["extends"]]) if "extends" in facts else {}
    return {**below.get(table, {}), **facts.get(table, {})}


def _macros(facts: dict[str, Any]) -> Macros:
    """The macros of a language, and before them those of the language that it extends."""
    below = _facts(_folders()[facts["extends"]]) if "extends" in facts else {}
    return read_macros((*below.get("macros", ()), *facts.get("macros", ())), _inherited(facts, "parts"))


def _place(record: dict[str, Node]) -> tuple[int, int]:
    outer = next(node for name, node in record.items() if name.endswith(".outer"))
    return outer.start_byte, -outer.end_byte


@cache
def _keywords(grammar: tree_sitter.Language) -> tuple[bytes, ...]:
    """The words among the grammar's visible symbols without a name of their own."""
    symbols = range(grammar.node_kind_count)
    plain = (n for n in symbols if grammar.node_kind_is_visible(n) and not grammar.node_kind_is_named(n))
    texts = {grammar.node_kind_for_id(n) or "" for n in plain}
    return tuple(sorted(text.encode() for text in texts if text.isidentifier()))


def _rows(data: bytes) -> bytes:
    """`data` with LF for each CR without LF, because tree-sitter knows rows only by LF."""
    # Counting is many times faster than the pattern.
    alone = b"\r" in data and data.count(b"\r") > data.count(b"\r\n")
    return _LONE_CR.sub(b"\n", data) if alone else data


def _few_open(comments: tuple[tuple[bytes, bytes], ...], data: bytes) -> bytes:
    """`data` without the beginnings of comments, but the first, where many are open: each is read to the end."""
    for begin, end in comments:
        first = data.find(begin, max(data.rfind(end), 0)) + len(begin)
        if first >= len(begin) and data.count(begin, first) >= _MANY:
            data = data[:first] + data[first:].replace(begin, b" " * len(begin))
    return data


def _point(data: bytes, offset: int) -> tuple[int, int]:
    return data.count(b"\n", 0, offset), offset - data.rfind(b"\n", 0, offset) - 1
