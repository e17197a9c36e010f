"""Words: what language.toml says of a language's text: its words, its quotes, and the lines of a plain one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


NEVER = re.compile(rb"\A(?!)")  # not tried at each byte of a long text


@dataclass(frozen=True, slots=True)
class Words:
    """The words and patterns that broken text is read and repaired with.

    functions, classes, blocks: words of the headers of such bodies. alone: block headers of one word (`static`).
    operators: words that need an operand. starts: words that only begin a statement, where indentation holds bodies
    together. lambdas: the end of a header of a function without a name. lists: a header whose brace holds a list and
    no statements. parted: a bracket and its text up to a semicolon that ends no statement. bodied: the header of an
    owner whose functions all have bodies. returns: the end of parameters in front of the type that is returned, where
    that may be left out.

    items: the beginning of a line at column 0 that begins an item of the file; members: of one that begins a part of
    an item; above: of one that belongs to the item below it. labels: a label, which may be less deep than its block.
    directive: the beginning of a line of its own at any depth, such as a preprocessor's. directives: the words after
    that, each with what follows it: the `path` of a file, `code`, or `prose`. foreign: what no code after them holds.

    operands: pairs of a pattern of the text before a cursor and the text that may be missing there. ends: the ends of
    a statement, the commonest first. headers: the end of a header with a body, and of one without. member: a text that
    may replace any member or statement. last_comma: the last element of a list has a comma where the bracket is on a
    line below. follows: a line before which a part of a block is ended.
    """

    functions: frozenset[bytes] = frozenset()
    classes: frozenset[bytes] = frozenset()
    blocks: frozenset[bytes] = frozenset()
    alone: frozenset[bytes] = frozenset()
    operators: frozenset[bytes] = frozenset()
    starts: frozenset[bytes] = frozenset()
    lambdas: re.Pattern[bytes] = NEVER
    lists: tuple[re.Pattern[bytes], ...] = ()
    parted: re.Pattern[bytes] = NEVER
    bodied: re.Pattern[bytes] = NEVER
    returns: re.Pattern[bytes] = NEVER
    items: re.Pattern[bytes] = re.compile(rb"[\w$@#(\[\"'~!]")
    members: re.Pattern[bytes] = re.compile(rb"[\w$@#~*&<\[\"'\x80-\xff]")
    above: re.Pattern[bytes] = re.compile(rb"@")
    labels: re.Pattern[bytes] = re.compile(rb"(?:case|default)\b|[\w$]+[ \t]*:(?![:=])")
    directive: bytes = b""
    directives: Mapping[bytes, str] = field(default_factory=dict)
    foreign: re.Pattern[bytes] = NEVER
    operands: tuple[tuple[re.Pattern[bytes], bytes], ...] = ()
    ends: tuple[bytes, ...] = (b"",)
    headers: tuple[bytes, ...] = (b" {", b" {}")
    member: bytes = b"_g_;"
    last_comma: bool = False
    follows: re.Pattern[bytes] = NEVER


@dataclass(frozen=True, slots=True)
class Quotes:
    """The quotes of a kind of string.

    escapes: a backslash takes the next character along. lines: it may go on over line ends. character: it is a string
    only where it ends after one character. hole: the beginning of code in it, up to the brace that closes that.
    doubled: its close, or a hole's beginning, written twice is text. begins: a pattern of its beginning, where that is
    not always `open`; the text of a group NAME in it replaces {NAME} in `close`. format: a pattern of the end of a
    hole's code, after which text follows up to the brace.
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


@dataclass(frozen=True, slots=True)
class Plain:
    """The facts of a plain language, whose gaps are lines and blocks.

    brackets: those that are in pairs. tags: a pattern of what begins and ends an element, but for the elements `alone`.
    opens: the end of a line below which an empty block may be. closings: words that close a block. fillers: texts that
    may complete a line; {0} is a name after the gap, the first group of `names`. data: its strings are keys and
    values. twins: quotes around code, which a file has in pairs. sections: what begins code in a text, the group
    `opens`, or ends it. rooms: headers below which a line is read alone. begins: what a statement begins with, if a
    semicolon ends each. never: what no code holds; of data, the signs of templates.

    Of the code between `twins`: blocks: what is before a statement, with the groups `value`, an expression, `opens` and
    `closes` of a block, `declares`, below which are declarations, and `body`, which ends those. declares: a
    declaration, with the `value` that it may have. steps: the word before an expression in a statement of its own; the
    group `using`: more may follow it, after `USING`.
    """

    brackets: bytes = b"()[]{}"
    tags: re.Pattern[bytes] = re.compile(rb"(?!)(?P<close>)(?P<name>)(?P<alone>)")
    alone: frozenset[bytes] = frozenset()
    opens: re.Pattern[bytes] = NEVER
    closings: tuple[str, ...] = ()
    fillers: tuple[bytes, ...] = ()
    names: re.Pattern[bytes] = re.compile(rb"(?!)()")
    data: bool = False
    twins: re.Pattern[bytes] = NEVER
    sections: re.Pattern[bytes] = NEVER
    rooms: tuple[bytes, ...] = ()
    begins: re.Pattern[bytes] = NEVER
    never: re.Pattern[bytes] = NEVER
    blocks: re.Pattern[bytes] = NEVER
    declares: re.Pattern[bytes] = NEVER
    steps: re.Pattern[bytes] = NEVER

    @property
    def has_tags(self) -> bool:
        """Return whether the language has elements with tags."""
        return not self.tags.pattern.startswith(b"(?!)")


@dataclass(frozen=True, slots=True)
class Imports:
    """The imports of a language, and what is often imported from its standard library; without them none is offered.

    member: a statement that imports $names from $module; whole: one that imports a $module; empty if there is none.
    brackets: those around several names; bare: several may be without. exported: the node around what other files may
    import, if not all is for them. modules: those imported whole, whose last part is their name. members: the module of
    each name.
    """

    member: str = ""
    whole: str = ""
    brackets: str = ""
    bare: bool = False
    exported: str = ""
    modules: tuple[str, ...] = ()
    members: Mapping[bytes, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Injections:
    """Code in other languages in a file. title, filled: what the file is called, and what of it is filled, in words.

    fences: in the fences of Markdown. elements: between the tags of these elements, in this language if they name none.
    front: between lines of `---` at the beginning, in this language. rest: the language in which all else is filled.
    """

    title: str
    filled: str = ""
    fences: bool = False
    elements: Mapping[bytes, str] = field(default_factory=dict)
    front: str = ""
    rest: str = ""


def read_facts(record: Callable[..., Record], facts: Mapping[str, Any]) -> Record:
    """The table `facts` as a `record`: texts as bytes, patterns compiled; what the table leaves out has its default."""
    kinds = get_type_hints(record)
    return record(**{name: _value(kind, facts[name]) for name, kind in kinds.items() if name in facts})


def _value(kind: Any, value: Any) -> Any:
    """The `value` of a table as a field of the type `kind` holds it."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is bytes:
        return value.encode()
    if origin is re.Pattern:
        return re.compile(value.encode(), re.DOTALL)
    if origin is Mapping:
        return {word.encode(): use for use, words in value.items() for word in words}
    if origin is tuple and inner[-1] is not ...:
        return tuple(map(_value, inner, value))
    return origin(_value(inner[0], one) for one in value) if origin else value
