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
_CALL = re.compile(rb"(?:operator *(?:\(\)|[^\s\w(]+)|[~\w$\x80-\xff:.#]+)[ ]*(?:<[^()]*>)?[ ]*\(\)")
# Type arguments that a name goes on behind, with others inside of them.
_ARGUMENTS = re.compile(rb"<(?:[^<>]|<[^<>]*>)*>(?=::)")
_VALUE = re.compile(rb"(?:[=(,\[?&|:]|\breturn)\Z")
_CASE = re.compile(rb"(?:case|default)\b")


@dataclass(frozen=True, slots=True)
class Head:
    """Whose body it is, where its header begins, and its text without what brackets hold."""

    owner: Owner
    start: int
    text: bytes


def head_of(language: Language, data: bytes, line: int, at: int) -> Head | None:
    """The head of the body that the brace at `at` opens, in the statement that begins at `line`; None for a value."""
    text, start, listed = _flat(language, data, max(line, at - LONGEST), at)
    found = [m[0] for m in _WORD.finditer(text)]
    owner = _owned(language, text, found)
    if owner is None and not (listed and not text):
        owner = _block(language, text, found) or _called(without_arguments(text))
    return Head(owner, start, text) if owner else None


def without_arguments(name: bytes) -> bytes:
    """`name` without the type arguments that it goes on behind: `Map::size` of `Map<Key<T>>::size`."""
    return _ARGUMENTS.sub(b"", name)


def _owned(language: Language, text: bytes, found: list[bytes]) -> Owner | None:
    """A function or class that a word says or, without a name, an arrow."""
    words = language.words
    if words.functions.intersection(found) or (words.lambdas.search(text) and not _CASE.match(text)):
        return "function"
    owned = words.classes.intersection(found)
    return "class" if owned and _is_class(text, owned) else None


def _block(language: Language, text: bytes, found: list[bytes]) -> Owner | None:
    """A block that a word says, or an arrow, nothing or a lone word such as `static` before it."""
    blocks = language.words.blocks
    inner = blocks.intersection(found) and not _VALUE.search(text)
    bare = (
        not text
        or text in language.words.alone
        or (_CASE.match(text) and not text.endswith(b")"))
        or text.endswith((b"=>", b"->"))
    )
    return "block" if bare or inner or (found and found[0] in blocks) else None


def _called(text: bytes) -> Owner | None:
    """A function, whose name stands before its parameters, or a class where something new is made."""
    call = None if _VALUE.search(text) else _CALL.search(text)
    if call is None:
        return None
    return "class" if re.search(rb"\bnew\b", text[: call.start()]) else "function"


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


def _is_class(text: bytes, words: frozenset[bytes]) -> bool:
    """Whether one of `words` says what the header is of, and is not only part of a function's type."""
    found = next(m for m in _WORD.finditer(text) if m[0] in words)
    owned = re.sub(rb"<[^{}]*?>(?=[ {]|\Z)", b"", text[found.end() :].strip())
    name = re.match(rb"[\w$:.\x80-\xff]+", owned.lstrip(b" <>*&"))
    if name is None or re.search(rb"\bfor (?:& *(?:mut )?)?[\w$:]+", owned):
        return True
    rest = owned[name.end() :].strip()
    return b"()" not in rest or rest.startswith((b"()", b":", b"extends", b"implements", b"where", b"final"))
