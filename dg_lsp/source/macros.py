"""Macros: text that no grammar knows, such as `API_EXPORT`, read as blanks so that the rest of the file parses."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from zlib import crc32

# So many bytes above a piece are searched for the text before a macro.
BEFORE = 120
# Blanks for each character that ends no line.
BLANKS = bytes(c if c in b"\r\n" else 32 for c in range(256))
# The arguments of a macro on one line; brackets in them nest once.
_ARGUMENTS = rb"\((?:[^()\"'\r\n]|\"(?:[^\"\\\r\n]|\\.)*+\"|\((?:[^()\"'\r\n]|\"[^\"\r\n]*+\")*+\))*+\)"


@dataclass(frozen=True, slots=True)
class Macro:
    """One kind of macro. near: texts of which a file must contain at least one, so that most files are never searched.

    pattern: the macro; its groups are read as blanks, or all of it where it has none. after: the end of the text before
    it, None for any. instead: the beginning of the blanks.
    """

    near: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    after: re.Pattern[bytes] | None
    instead: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Macros:
    """The kinds of macros of a language, as they are looked for. loops: a call before a brace may be a loop, too."""

    kinds: tuple[Macro, ...] = ()
    loops: bool = False


def read_macros(tables: Sequence[Mapping[str, Any]], parts: Mapping[str, str]) -> Macros:
    """The macros of the tables [[macros]] of a language.toml, one for each of `words`; `{NAME}` is that of `parts`."""
    found = list[Macro]()
    for table in tables:
        for word in table.get("words", [""]):
            near = [word] if word else table.get("near", ())
            after = rf"(?:{table['after']})\Z" if "after" in table else ""
            blank, after = (_expanded(text, {**parts, "WORD": word}) for text in (table["blank"], after))
            found.append(
                Macro(
                    near=tuple(text.encode() for text in near),
                    pattern=_compiled(blank),
                    after=_compiled(after) if after else None,
                    instead=table.get("instead", "").encode(),
                )
            )
    return Macros(tuple(found), any(macro.instead.startswith(b"for") for macro in found))


def with_names(macros: Macros, names: Sequence[str]) -> Macros:
    """`macros`, and before them those called `names`, which may end in `*`; with arguments before a brace a loop."""
    found = list[Macro]()
    for name in names:
        word = re.escape(name.removesuffix("*"))
        whole = rf"{word} (?<! \w{word} ) " + (r"\w*+" if name.endswith("*") else r"(?!\w)")
        near = (name.removesuffix("*").encode(),)
        loop = _expanded(whole + r" [ \t]*+ {ARGUMENTS} (?= \s*+ \{ )", {})
        found.append(Macro(near, _compiled(loop), _compiled(r"(?: [;{})] | \*/ ) \s* \Z"), b"for(;;)"))
        found.append(Macro(near, _compiled(_expanded(whole + r" (?: {ARGUMENTS} )?", {})), None, b""))
    return Macros((*found, *macros.kinds), macros.loops)


@lru_cache(maxsize=16)
def blanked(macros: Macros, data: bytes) -> bytes:
    """`data` with blanks for what `macros` match: `int WINAPI f()` becomes `int        f()`. Its pieces are kept."""
    if not macros.kinds:
        return data
    # One character is found much faster than three.
    blank_line = b"\n\r\n" if b"\r" in data and b"\n\r\n" in data else b"\n\n"
    above, at, texts = b"", 0, list[bytes]()
    while at <= len(data):
        piece = data[at : _piece_end(data, at, blank_line)]
        texts.append(_piece(macros, above, piece))
        above, at = piece[-BEFORE:] or above, at + len(piece) + len(blank_line)
    return blank_line.join(texts)


def _piece_end(data: bytes, start: int, blank_line: bytes) -> int:
    """Return where the piece at `start` ends; that depends on no text far away, so an edit changes few."""
    while (end := data.find(blank_line, start)) >= 0:
        if crc32(data[start:end]) % 2 == 0:
            return end
        start = end + len(blank_line)
    return len(data)


@lru_cache(maxsize=2048)
def _piece(macros: Macros, above: bytes, piece: bytes) -> bytes:
    """`blanked` of one piece; `above` is the end of the text above it."""
    # Most patterns begin with a line end, which is found fastest.
    text = above + b"\n" + piece
    for macro in macros.kinds:
        if not macro.near or any(word in text for word in macro.near):
            text = _without(text, _spans(macro, text, len(above)), macro.instead)
    return text[len(above) + 1 :]


def _spans(macro: Macro, data: bytes, begin: int) -> Iterable[tuple[int, int]]:
    """The spans of `data`, from `begin` on, that `macro` blanks, in their order."""
    for match in macro.pattern.finditer(data, begin):
        start = match.start()
        if macro.after is None or macro.after.search(data[max(start - BEFORE, 0) : start]):
            least = max(len(macro.instead), 1)
            yield from (span for span in match.regs[1:] or match.regs if span[1] - span[0] >= least)


def _without(data: bytes, spans: Iterable[tuple[int, int]], instead: bytes) -> bytes:
    """`data` with `instead` and blanks for `spans`, each of which is longer than that."""
    parts, at = list[bytes](), 0
    for start, end in spans:
        parts += [data[at:start], instead, data[start + len(instead) : end].translate(BLANKS)]
        at = end
    return b"".join((*parts, data[at:])) if parts else data


def _expanded(text: str, parts: Mapping[str, str]) -> str:
    # A part may be used by those below it.
    for name, meant in (*reversed(list(parts.items())), ("ARGUMENTS", _ARGUMENTS.decode())):
        text = text.replace("{" + name + "}", meant)
    return text


def _compiled(text: str) -> re.Pattern[bytes]:
    return re.compile(text.encode(), re.VERBOSE | re.MULTILINE)
