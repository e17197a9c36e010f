"""What a brace opens, guessed from the text before it: a function, a class, a block, or no body at all.

Knows tokens and the words of a language; knows no tree.
"""

import re
from dataclasses import dataclass

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.body import Owner
from dg_lsp.text.syntax.lexer import tokens

# A header is no longer than this.
LONGEST = 4_000
_WORD = re.compile(rb"[A-Za-z_$@\x80-\xff][\w$\x80-\xff]*")
# A name and its parameters, of which only the brackets are left.
_CALL = re.compile(rb"(?:operator *(?:\(\)|[^\s\w(]+)|[~\w$\x80-\xff:.#]+) *(?:<[^()]*>)? *\(\)")
# Type arguments that a name goes on behind, with others inside of them.
_ARGUMENTS = re.compile(rb"<(?:[^<>]|<[^<>]*>)*>(?=::)")
_VALUE = re.compile(rb"(?:[=(,\[?&|:]|\breturn)\Z")
_CASE = re.compile(rb"(?:case|default)\b")
_NEW = re.compile(rb"\bnew\b")
# What stands behind the word of a class: its name, and what may follow that before parameters.
_NAME = re.compile(rb"[ <>*&]*[\w$:.\x80-\xff]*")
_HERITAGE = (b"()", b":", b"extends", b"implements", b"where", b"final")


@dataclass(frozen=True, slots=True)
class Head:
    """Whose body it is, where its header begins, and its text without what brackets hold."""

    owner: Owner
    start: int
    text: bytes


def head_of(language: Language, data: bytes, line: int, at: int) -> Head | None:
    """The head of the body that the brace at `at` opens, in the statement that begins at `line`; None for a value."""
    text, start, listed = _flat(language, data, max(line, at - LONGEST), at)
    owner = _owner(language, text, listed=listed)
    return Head(owner, start, text) if owner else None


def without_arguments(name: bytes) -> bytes:
    """`name` without the type arguments that it goes on behind: `Map::size` of `Map<Key<T>>::size`."""
    return _ARGUMENTS.sub(b"", name)


def _owner(language: Language, text: bytes, *, listed: bool) -> Owner | None:
    """What a header of this `text` owns; `listed`: it stands in brackets that are still open.

    1. A word or an arrow says that it is a function or a class.  2. A word, an arrow, nothing or a lone word such as
    `static` says that it is a block.  3. A name with parameters is a function, or a class where something is made.
    """
    words, found = language.words, [m[0] for m in _WORD.finditer(text)]
    # 1.
    if words.functions.intersection(found) or (words.lambdas.search(text) and not _CASE.match(text)):
        return "function"
    if _is_class(text, words.classes):
        return "class"
    if listed and not text:
        return None
    # 2.
    value = _VALUE.search(text) is not None
    bare = not text or text in words.alone or text.endswith((b"=>", b"->"))
    bare = bare or (_CASE.match(text) is not None and not text.endswith(b")"))
    if bare or (words.blocks.intersection(found) and not value) or (found and found[0] in words.blocks):
        return "block"
    # 3.
    call = None if value else _CALL.search(without_arguments(text))
    if call is None:
        return None
    return "class" if _NEW.search(text, 0, call.start()) else "function"


def _is_class(text: bytes, words: frozenset[bytes]) -> bool:
    """Whether one of `words` says that it is a class, and not of what type a function's value is."""
    found = next((m for m in _WORD.finditer(text) if m[0] in words), None)
    if found is None:
        return False
    behind = re.sub(rb"<[^{}]*?>(?=[ {]|\Z)", b"", text[found.end() :].strip())
    name = _NAME.match(behind)
    rest = behind[name.end() :].strip() if name else behind
    return b"()" not in rest or rest.startswith(_HERITAGE)


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
