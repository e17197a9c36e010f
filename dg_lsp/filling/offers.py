"""Offer: the fills found for one gap, which of them agree with the text typed since, and the line to fill next."""

from dataclasses import dataclass, replace

from dg_lsp.filling.fill import Outcome
from dg_lsp.filling.inside import place_inside
from dg_lsp.gaps import Edit, Gap
from dg_lsp.messages import Fill
from dg_lsp.source.document import LINE_END, Document
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import is_last, leading, line_start, newline_at

_DEEPER = (b"(", b"[", b"{")
_BLANKS, _CLOSING = b" \t\f", b")]}\"'`"


@dataclass(frozen=True, slots=True)
class Offer:
    """The texts, likeliest first, that may replace the bytes [start, end) of `data`, the text of the document `uri`.

    fill: that of the first text. files: the uris of the files that it was found in. gap: the one that was filled.
    model: the name of the one that wrote it; empty for that of the settings.
    Offers live long, so they keep no Document, whose history holds trees.
    """

    uri: str
    data: bytes
    start: int
    end: int
    texts: tuple[str, ...]
    fill: Fill | None = None
    files: tuple[str, ...] = ()
    gap: Gap | None = None
    model: str = ""


def offer_of(document: Document, outcome: Outcome, model: str = "") -> Offer | None:
    """Return the texts of `outcome`, which fills a gap of `document`, as an Offer; None if it has none.

    model: the name of the one that wrote them; empty for that of the settings.
    """
    if outcome.edit is None:
        return None
    texts = tuple(edit.text for edit in (outcome.edit, *outcome.others))
    place = outcome.edit.start, outcome.edit.end
    return Offer(document.uri, document.data, *place, texts, outcome.fill, outcome.files, outcome.gap, model)


@dataclass(frozen=True, slots=True)
class _Typed:
    """The content of an offer's gap now: `text` before the cursor, after it only `closers`. end: the gap's end now.

    closers: the brackets and quotes that an editor has closed by itself, such as `)` in `f(|)`; those of a block are on
    a line of their own.
    """

    text: bytes
    closers: bytes
    end: int


def still_good(offer: Offer, document: Document, cursor: int) -> list[Edit]:
    """Return the texts of `offer` that begin with the text typed since, as edits of `document`; [] if none does.

    After `return x` was offered and `re` typed, the edit still replaces the gap by `return x`. Closed brackets and
    quotes stay: in `f(|)`, of the offer `f(x)`, the edit writes `f(x` before the bracket. Where the offer continues
    after them, the edit covers them: in `f(|)`, of the offer `f(x)[0]`, it ends after the bracket. Where it closes
    them early and ends with the same ones, as `f(g(x), h(y))` does in `f(g(|))`, there are both edits, the one that
    covers them first: it still fits once they are typed.
    """
    typed = _typed(offer, document, cursor)
    if typed is None:
        return []
    edits, closers = list[Edit](), typed.closers.decode()
    below = LINE_END.search(closers)  # an edit covers nothing of another line
    for text in offer.texts:
        rest = text.encode("utf-8")[len(typed.text) :].removesuffix(typed.closers)
        if text.endswith(closers):
            if typed.closers and not below and _closes(rest, typed.closers):
                edits.append(Edit(offer.start, typed.end, text))
            edits.append(Edit(offer.start, cursor if closers else typed.end, text.removesuffix(closers)))
        elif not below and _holds_in_order(text.encode("utf-8")[len(typed.text) :], typed.closers):
            edits.append(Edit(offer.start, typed.end, text))
    return [edit for edit in edits if _goes_on(edit.text.encode("utf-8"), typed.text)]


def covered(document: Document, cursor: int, edit: Edit) -> bool:
    """Return whether `edit` replaces closed brackets or quotes after `cursor`, which its text then contains."""
    return bool(document.data[cursor : max(cursor, edit.end)].strip())


def used_up(offer: Offer, document: Document, cursor: int) -> bool:
    """Return whether one of the texts was accepted, or typed to its end, and nothing else changed.

    In the line for the cursor in an empty block the user continues.
    """
    typed = _typed(offer, document, cursor)
    return typed is not None and any(
        typed.text + typed.closers == text.encode("utf-8") and len(typed.text) != place_inside(text)
        for text in offer.texts
    )


def accepted_end(offer: Offer, document: Document) -> int | None:
    """Return where a text that was accepted, or typed to its end, ends; None if anything else changed, even blanks."""
    ends = (offer.start + len(text.encode("utf-8")) for text in offer.texts)
    after = len(offer.data) - offer.start
    return next((e for e in ends if len(document.data) - e == after and used_up(offer, document, e)), None)


def cursor_key(document: Document, cursor: int) -> bytes:
    """Return a key of the cursor that stays the same when lines above move: the line above, and its own up to it."""
    line = line_start(document.data, cursor)
    return document.data[line_start(document.data, line - 1) if line else 0 : cursor]


def next_place(offer: Offer, document: Document) -> tuple[Document, int] | None:
    """Return where the user is likely to continue in `document` after a text of `offer` was accepted; None if none was.

    It is the line in the empty block that the text ends with, else the next line, in the text that is expected there.
    """
    end = accepted_end(offer, document)
    if end is None:
        return None
    inside = place_inside(document.data[offer.start : end].decode("utf-8", "replace"))
    return next_line(document, end) if inside is None else (document, offer.start + inside)


def next_line(document: Document, cursor: int) -> tuple[Document, int] | None:
    """Return `document` with a new line after `cursor`, and the cursor on it; None if text follows on its line.

    The new line is indented like that of the cursor, deeper after a text that opens a body or a bracket, and less deep
    after a statement such as `return`. Example: after `    if x:` it begins with eight spaces.
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
    elif language.style == "indent" and is_last(language, line, 0):
        indent = indent.removesuffix(step)
    new = newline_at(data, cursor).encode() + indent
    return replace(document, data=data[:cursor] + new + data[cursor:]), cursor + len(new)


def _typed(offer: Offer, document: Document, cursor: int) -> _Typed | None:
    """Return the content of the gap now; None if anything else changed but blanks and closed brackets."""
    old, new = offer.data, document.data
    end = len(new) - (len(old) - offer.end)
    if offer.uri != document.uri or not offer.start <= cursor <= end:
        return None
    if old[: offer.start] != new[: offer.start] or old[offer.end :] != new[end:]:
        return None
    closers = new[cursor:end].strip(_BLANKS)
    return (
        None
        if closers.strip(_CLOSING + _BLANKS + b"\r\n")
        else _Typed(new[offer.start : cursor], closers, end)
    )


def _goes_on(text: bytes, beginning: bytes) -> bool:
    """Return whether `text` begins with `beginning` and is longer."""
    return text.startswith(beginning) and len(text) > len(beginning)


def _closes(text: bytes, closers: bytes) -> bool:
    """Return whether `text` closes the bracket or quote that the first of `closers` closes now."""
    depth = 0
    for byte in text:
        if byte == closers[0] and not depth:
            return True
        depth = max(depth + (byte in b"([{") - (byte in b")]}"), 0)
    return False


def _holds_in_order(text: bytes, pieces: bytes) -> bool:
    """Return whether each byte of `pieces` occurs in `text` after the one before it."""
    rest = iter(text)
    return all(piece in rest for piece in pieces)
