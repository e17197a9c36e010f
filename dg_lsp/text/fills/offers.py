"""Offer: the fills that were found for one place, and what is left of them after some typing; how sure a fill is.

And where the next place is, once a fill was accepted.
"""

from dataclasses import dataclass, replace

from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import Fill, Source
from dg_lsp.text.syntax.lexer import leading, line_start, newline_at

_ORIGINS: dict[Source, str] = {
    "denoised": "denoised from noise",
    "retrieved": "found in the project",
    "drafted": "written from left to right",
}

_DEEPER = (b"(", b"[", b"{")
_CLOSING = b")]}\"'`"


@dataclass(frozen=True, slots=True)
class Offer:
    """`texts`, the surest first, may replace the bytes [start, end) of `data`, the text of the document `uri`.

    fill: the one of the first text. files: the uris of the files that it was found in. Offers live long, so they keep
    no Document, whose history holds trees.
    """

    uri: str
    data: bytes
    start: int
    end: int
    texts: tuple[str, ...]
    fill: Fill | None = None
    files: tuple[str, ...] = ()


def doubt(fill: Fill, confidence: float) -> str:
    """Why `fill` is not shown unless it is asked for, as a sentence; empty if it is sure enough."""
    if fill.chance is None or fill.chance >= confidence:
        return ""
    return (
        f"the best fill is right with a probability of {percent(fill.chance)}, less than confidence "
        f"({percent(confidence)})"
    )


def note_of(fill: Fill) -> str:
    """How sure `fill` is and where it comes from, such as `right with 62 %, found in the project`; may be empty."""
    if fill.chance is None:
        return "" if fill.source == "denoised" else _ORIGINS[fill.source]
    right = "begins right" if fill.partial else "right"
    return f"{right} with {percent(fill.chance)}, {_ORIGINS[fill.source]}"


def percent(share: float) -> str:
    """Return a share from 0 to 1 as a text such as `12 %`, rounded down: 39.9 % is not said to be below 40 %."""
    return f"{int(share * 100 + 1e-9)} %"


def still_good(offer: Offer, document: Document, cursor: int) -> list[Edit]:
    """Return the offer as edits of `document`, if what was typed since is the beginning of its texts; else none.

    After `return x` was offered and `re` typed, the edit still replaces the gap by `return x`. Brackets and quotes that
    an editor closes by itself stay: in `f(|)`, of the offer `f(x)`, the edit writes `f(x` before the bracket. Where the
    offer goes on behind them, the edit covers them: in `f(|)`, of the offer `f(x)[0]`, it ends behind the bracket.
    """
    typed = _typed(offer, document, cursor)
    if typed is None:
        return []
    end, closers = _end(offer, document), _closers(offer, document, cursor)
    edits = []
    for text in offer.texts:
        if text.endswith(closers):
            edits.append(Edit(offer.start, cursor if closers else end, text.removesuffix(closers)))
        elif _holds_in_order(text.encode("utf-8")[len(typed) :], closers.encode("utf-8")):
            edits.append(Edit(offer.start, end, text))
    return [
        e
        for e in edits
        if e.text.encode("utf-8").startswith(typed) and len(e.text.encode("utf-8")) > len(typed)
    ]


def covered(document: Document, cursor: int, edit: Edit) -> bool:
    """Return whether `edit` replaces brackets or quotes behind `cursor`, which stand in its text, too."""
    return bool(document.data[cursor : max(cursor, edit.end)].strip())


def used_up(offer: Offer, document: Document, cursor: int) -> bool:
    """Whether one of the fills was accepted, or typed out, and nothing else changed."""
    typed = _typed(offer, document, cursor)
    closers = _closers(offer, document, cursor).encode("utf-8")
    return typed is not None and typed + closers in (text.encode("utf-8") for text in offer.texts)


def accepted_end(offer: Offer, document: Document) -> int | None:
    """Return where a fill ends that was accepted or typed out, if nothing else changed, not even blanks; else None."""
    ends = (offer.start + len(text.encode("utf-8")) for text in offer.texts)
    behind = len(offer.data) - offer.start
    return next((e for e in ends if len(document.data) - e == behind and used_up(offer, document, e)), None)


def place_of(document: Document, cursor: int) -> bytes:
    """Return what tells the place of `cursor` however the lines above move: the line above, and its own up to it."""
    line = line_start(document.data, cursor)
    return document.data[line_start(document.data, line - 1) if line else 0 : cursor]


def next_line(document: Document, cursor: int) -> tuple[Document, int] | None:
    """Return `document` with a new line behind `cursor`, and the cursor on it; None if text follows on its line.

    The new line is indented like that of the cursor, deeper behind what opens a body or a bracket, and less deep behind
    a statement that leaves its body. Example: behind `    if x:` it begins with eight spaces.
    """
    data, eol = document.data, document.line_end(document.line_at(cursor))
    if data[cursor:eol].strip():
        return None
    language = load_language(document.language, document.macros)
    line = data[line_start(data, cursor) : cursor].strip()
    indent = leading(data, cursor)
    step = b"\t" if b"\t" in indent else language.indent.encode()
    if line.endswith(_DEEPER) or (language.style == "indent" and line.endswith(b":")):
        indent += step
    elif line.split(b" ")[0] in language.leaves:
        indent = indent.removesuffix(step)
    new = newline_at(data, cursor).encode() + indent
    return replace(document, data=data[:cursor] + new + data[cursor:]), cursor + len(new)


def _typed(offer: Offer, document: Document, cursor: int) -> bytes | None:
    """Return what is in the gap before the cursor; None if anything else but blanks and closed brackets changed."""
    old, new, end = offer.data, document.data, _end(offer, document)
    if offer.uri != document.uri or not offer.start <= cursor <= end:
        return None
    if old[: offer.start] != new[: offer.start] or old[offer.end :] != new[end:]:
        return None
    return None if new[cursor:end].strip(_CLOSING + b" \t\f") else new[offer.start : cursor]


def _closers(offer: Offer, document: Document, cursor: int) -> str:
    """Return the brackets and quotes in the gap behind the cursor, which an editor closes by itself; may be empty."""
    return (
        document.data[cursor : max(cursor, _end(offer, document))].strip(b" \t\f").decode("utf-8", "replace")
    )


def _holds_in_order(text: bytes, pieces: bytes) -> bool:
    """Return whether each byte of `pieces` occurs in `text` behind the one before it."""
    rest = iter(text)
    return all(piece in rest for piece in pieces)


def _end(offer: Offer, document: Document) -> int:
    """Return where the gap ends in `document`, a later version of the offer's."""
    return len(document.data) - (len(offer.data) - offer.end)
