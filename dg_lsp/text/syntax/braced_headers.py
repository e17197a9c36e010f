"""What a brace opens, guessed from the text before it: a function, a class, a block, or no body at all.

Knows tokens and the words of a language; knows no tree.
"""

import re
from dataclasses import dataclass

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.body import Owner
from dg_lsp.text.syntax.braced_tokens import tokens

# A header is no longer than this.
LONGEST = 4_000
_WORD = re.compile(rb"[A-Za-z_$@\x80-\xff][\w$\x80-\xff]*")
_CALL = re.compile(
    rb"((?:[\w$]+::)*operator *(?:\(\)|[^\s\w(]+)|[~\w$\x80-\xff:.#]+)[ ]*(?:<[^()]*>)?[ ]*\(\)"
)
# Type arguments that a name goes on behind, with others inside of them.
_ARGUMENTS = re.compile(rb"<(?:[^<>]|<[^<>]*>)*>(?=::)")
# A function's word, a receiver, a name: `func (s *Stack[T]) Push(`.
_METHOD = re.compile(rb"(\w+)\s*\(([^()]*)\)\s*([\w\x80-\xff]+)\s*\(")
_VALUE = re.compile(rb"(?:[=(,\[?&|:]|\breturn)\Z")
_CASE = re.compile(rb"(?:case|default)\b")
_ASSIGNED = re.compile(rb"([\w$]+) *(?::[^=]*)?[:=] *(?![=>])")
_RECEIVER = re.compile(rb"\A\(\) *(?=[\w\x80-\xff]+ *\(\))")


@dataclass(frozen=True, slots=True)
class Head:
    """Whose body it is, where its header begins, its name if it has one, and its text without what brackets hold."""

    owner: Owner
    start: int
    name: str
    text: bytes


def head_of(language: Language, data: bytes, line: int, at: int) -> Head | None:
    """The head of the body that the brace at `at` opens, in the statement that begins at `line`; None for a value."""
    text, start, listed = _flat(language, data, max(line, at - LONGEST), at)
    found = [m[0] for m in _WORD.finditer(text)]
    head = _owned(language, text, found)
    if head is None and not (listed and not text):
        head = _block(language, text, found) or _called(without_arguments(text))
    if head is None:
        return None
    receiver = _receiver(language, data[start:at]) if head[0] == "function" else ""
    return Head(head[0], start, f"{receiver}.{head[1]}" if receiver else head[1], text)


def without_arguments(name: bytes) -> bytes:
    """`name` without the type arguments that it goes on behind: `Map::size` of `Map<Key<T>>::size`."""
    return _ARGUMENTS.sub(b"", name)


def _owned(language: Language, text: bytes, found: list[bytes]) -> tuple[Owner, str] | None:
    """A function or class that a word says or, without a name, an arrow."""
    words = language.words
    if words.functions.intersection(found):
        return "function", _named_after(text, words.functions) or _assigned(text)
    if words.lambdas.search(text) and not _CASE.match(text):
        return "function", _assigned(text)
    owned = words.classes.intersection(found)
    name = _class_name(text, owned) if owned else None
    return ("class", name) if name is not None else None


def _block(language: Language, text: bytes, found: list[bytes]) -> tuple[Owner, str] | None:
    """A block that a word says, or an arrow, nothing or a lone word such as `static` before it."""
    blocks = language.words.blocks
    inner = blocks.intersection(found) and not _VALUE.search(text)
    bare = (
        not text
        or text in language.words.alone
        or (_CASE.match(text) and not text.endswith(b")"))
        or text.endswith((b"=>", b"->"))
    )
    return ("block", "") if bare or inner or (found and found[0] in blocks) else None


def _called(text: bytes) -> tuple[Owner, str] | None:
    """A function whose name stands before its parameters, or a class where something new is made."""
    call = None if _VALUE.search(text) else _CALL.search(text)
    if call is None:
        return None
    if re.search(rb"\bnew\b", text[: call.start()]):
        return "class", ""
    return "function", _plain(call[1])


def _flat(language: Language, data: bytes, line: int, at: int) -> tuple[bytes, int, bool]:
    """The header's text without what is inside brackets, where it begins, and whether it is inside one.

    Inside a bracket that is still open it begins behind that or the last comma; else behind the last closed brace,
    unless nothing follows that.
    """
    parts: list[list[tuple[bytes, int]]] = [[]]
    for token in tokens(language, data, line, at):
        text = data[token.start : token.end]
        if token.kind == "open":
            parts[-1].append((text, token.start))
            parts.append([])
        elif token.kind == "close":
            if len(parts) > 1:
                parts.pop()
            parts[-1].append((text, token.start))
        elif len(parts) > 1 and text == b",":
            parts[-1].clear()
        elif token.kind in ("space", "newline"):
            parts[-1].append((b" ", -1))
        elif token.kind != "comment":
            parts[-1].append((b'""' if "string" in token.kind else text, token.start))
    pieces = parts[-1]
    shut = max((n for n, (text, _) in enumerate(pieces) if text == b"}"), default=-1)
    if any(place >= 0 for _, place in pieces[shut + 1 :]):
        pieces = pieces[shut + 1 :]
    start = next((place for _, place in pieces if place >= 0), at)
    return re.sub(rb" +", b" ", b"".join(text for text, _ in pieces)).strip(), start, len(parts) > 1


def _named_after(text: bytes, words: frozenset[bytes]) -> str:
    """The name behind the first of `words`, or behind a receiver there."""
    for found in _WORD.finditer(text):
        if found[0] in words:
            behind = _RECEIVER.sub(b"", text[found.end() :].lstrip(b" *"))
            name = _WORD.match(behind)
            return _plain(name[0]) if name else ""
    return ""


def _receiver(language: Language, header: bytes) -> str:
    """The type that stands as a receiver before a method's name: `Stack` of `func (s *Stack[T]) Push(x T)`."""
    found = _METHOD.match(header)
    functions = language.words.functions
    # `func (a int) func(b int)` is a function without a name that gives another one.
    if found is None or found[1] not in functions or found[3] in functions:
        return ""
    names = _WORD.findall(found[2].partition(b"[")[0])
    return _plain(names[-1]) if names else ""


def _assigned(text: bytes) -> str:
    """The name of what a function without one is assigned to."""
    found = _ASSIGNED.search(text)
    return _plain(found[1]) if found else ""


def _class_name(text: bytes, words: frozenset[bytes]) -> str | None:
    """The name behind or before one of `words`; None where the word is only part of a function's type."""
    found = next(m for m in _WORD.finditer(text) if m[0] in words)
    before, behind = text[: found.start()].strip(), text[found.end() :].strip()
    if not behind:
        names = _WORD.findall(before)
        return _plain(names[-1]) if names else ""
    owned = re.sub(rb"<[^{}]*?>(?=[ {]|\Z)", b"", behind)
    if (made := re.search(rb"\bfor (?:& *(?:mut )?)?([\w$:]+)", owned)) is not None:
        return _plain(made[1].rpartition(b"::")[2])
    name = re.match(rb"[\w$:.\x80-\xff]+", owned.lstrip(b" <>*&"))
    rest = owned[name.end() :].strip() if name else owned
    if (
        name
        and b"()" in rest
        and not rest.startswith((b"()", b":", b"extends", b"implements", b"where", b"final"))
    ):
        return None
    return _plain(name[0]) if name else ""


def _plain(name: bytes) -> str:
    return name.decode("utf-8", "replace").replace("::", ".").strip(".:")
