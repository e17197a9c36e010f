"""Words: what language.toml says of a language's text: its words, its quotes, and the lines of a plain one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Words:
    """The words and patterns that broken text is read and repaired with.

    functions, classes, blocks: words of the headers of such bodies. alone: block headers of one word (`static`).
    operators: words that need an operand. starts: words that only begin a statement, where indentation holds bodies
    together. lambdas: the end of a header of a function without a name. lists: a header whose brace holds a list and
    no statements. parted: a bracket and its text up to a semicolon that ends no statement. bodied: the header of an
    owner whose functions all have bodies.

    items: the beginning of a line at column 0 that begins an item of the file; members: of one that begins a part of
    an item; above: of one that belongs to the item below it. labels: a label, which may be less deep than its block.
    directive: the beginning of a line of its own at any depth, such as a preprocessor's. directives: the words behind
    that, each with what follows it: the `path` of a file, `code`, or `prose`.

    operands: pairs of a pattern of the text before a cursor and the text that may be missing there. ends: the ends of
    a statement, the commonest first. headers: the end of a header with a body, and of one without. member: a text that
    may replace any member or statement.
    """

    functions: frozenset[bytes]
    classes: frozenset[bytes]
    blocks: frozenset[bytes]
    alone: frozenset[bytes]
    operators: frozenset[bytes]
    starts: frozenset[bytes]
    lambdas: re.Pattern[bytes]
    lists: tuple[re.Pattern[bytes], ...]
    parted: re.Pattern[bytes]
    bodied: re.Pattern[bytes]
    items: re.Pattern[bytes]
    members: re.Pattern[bytes]
    above: re.Pattern[bytes]
    labels: re.Pattern[bytes]
    directive: bytes
    directives: Mapping[bytes, str]
    operands: tuple[tuple[re.Pattern[bytes], bytes], ...]
    ends: tuple[bytes, ...]
    headers: tuple[bytes, ...]
    member: bytes


def read_words(facts: Mapping[str, Any]) -> Words:
    """The words of the table [repair]; what it leaves out is empty or what most languages have."""
    sets = ("functions", "classes", "blocks", "alone", "operators", "starts")
    return Words(
        **{name: frozenset(word.encode() for word in facts.get(name, ())) for name in sets},
        lambdas=_pattern(facts.get("lambdas", r"(?!)")),
        lists=tuple(_pattern(pattern) for pattern in facts.get("lists", ())),
        parted=_pattern(facts.get("parted", r"(?!)")),
        bodied=_pattern(facts.get("bodied", r"(?!)")),
        items=_pattern(facts.get("items", r"[\w$@#(\[\"'~!]")),
        members=_pattern(facts.get("members", r"[\w$@#~*&<\[\"'\x80-\xff]")),
        above=_pattern(facts.get("above", "@")),
        labels=_pattern(facts.get("labels", r"(?:case|default)\b|[\w$]+[ \t]*:(?![:=])")),
        directive=facts.get("directive", "").encode(),
        directives={
            word.encode(): use for use, words in facts.get("directives", {}).items() for word in words
        },
        operands=tuple((_pattern(pattern), text.encode()) for pattern, text in facts.get("operands", ())),
        ends=tuple(text.encode() for text in facts.get("ends", ("",))),
        headers=tuple(text.encode() for text in facts.get("headers", (" {", " {}"))),
        member=facts.get("member", "_g_;").encode(),
    )


@dataclass(frozen=True, slots=True)
class Quotes:
    """The quotes of a kind of string.

    escapes: a backslash takes the next character along. lines: it may go on over line ends. character: it is a string
    only where it ends after one character. hole: the beginning of code in it, up to the brace that closes that.
    doubled: its close, or a hole's beginning, written twice is text. begins: a pattern of its beginning, where that is
    not always `open`; the text of a group NAME in it replaces {NAME} in `close`. format: a pattern of the end of a
    hole's code, behind which text follows up to the brace.
    """

    open: bytes
    close: bytes
    escapes: bool = False
    lines: bool = False
    character: bool = False
    hole: bytes = b""
    doubled: bool = False
    begins: bytes = b""
    format: bytes = b""

    @property
    def opening(self) -> bytes:
        """The pattern of what it begins with."""
        return self.begins or re.escape(self.open)

    @property
    def varies(self) -> bool:
        """Return whether what closes it depends on what it begins with."""
        return b"{" in self.close

    def begun_by(self, begun: re.Match[bytes]) -> "Quotes":
        """These quotes with the very text that they begin with, a match of `opening`, and what closes that."""
        close = self.close
        for name, text in begun.groupdict(b"").items():
            close = close.replace(b"{%b}" % name.encode(), text)
        return replace(self, open=begun[0], close=close)


def read_quotes(facts: Mapping[str, Any]) -> Quotes:
    """The quotes of a table [[strings]]."""
    flags = {name: facts.get(name, False) for name in ("escapes", "lines", "character", "doubled")}
    texts = {name: facts.get(name, "").encode() for name in ("hole", "begins", "format")}
    return Quotes(facts["open"].encode(), facts["close"].encode(), **flags, **texts)


@dataclass(frozen=True, slots=True)
class Plain:
    """The facts of a plain language, whose gaps are lines and blocks.

    brackets: those that are in pairs. tags: a pattern of what begins and ends an element, but for the elements `alone`.
    opens: the end of a line below which an empty block may be. closings: words that close a block. fillers: texts that
    may complete a line; {0} is a name behind the gap, the first group of `names`.
    """

    brackets: bytes
    tags: re.Pattern[bytes]
    alone: frozenset[bytes]
    opens: re.Pattern[bytes]
    closings: tuple[str, ...]
    fillers: tuple[bytes, ...]
    names: re.Pattern[bytes]


def read_plain(facts: Mapping[str, Any]) -> Plain:
    """The facts of the table [plain]; what it leaves out is empty."""
    return Plain(
        brackets=facts.get("brackets", "()[]{}").encode(),
        tags=_pattern(facts.get("tags", "(?!)(?P<close>)(?P<name>)(?P<alone>)")),
        alone=frozenset(name.encode() for name in facts.get("alone", ())),
        opens=_pattern(rf"(?:{facts.get('opens', '(?!)')})\Z"),
        closings=tuple(facts.get("closings", ())),
        fillers=tuple(text.encode() for text in facts.get("fillers", ())),
        names=_pattern(facts.get("names", "(?!)()")),
    )


def _pattern(text: str) -> re.Pattern[bytes]:
    return re.compile(text.encode(), re.DOTALL)
