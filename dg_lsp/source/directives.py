"""Directives: the lines of a preprocessor, of which trees show little. Knows tokens and the words of a language."""

import re
from collections.abc import Sequence

from dg_lsp.source.brackets import state_at, unpaired
from dg_lsp.source.jsx import Mark
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import Span, is_closed_comment, line_below, line_end, line_start, marks, tokens

_LITERALS = ("directive", "string", "open_string", "open_text", "comment")
_DIGITS = re.compile(rb"\b[0-9][\w']*\Z")
_WORD = re.compile(rb"[ \t]*([A-Za-z_]\w*)?")
# A file in quotes or angle brackets, or the name of a macro.
_FILE = rb"[^\"<>'`(){}\[\];*?|#]+"
_PATH = re.compile(rb"\s*(?:\"%b\"|<%b>|[A-Za-z_]\w*)" % (_FILE, _FILE))


def directive_start(language: Language, data: bytes, offset: int) -> int:
    """Return where the directive around `offset` begins, in lines that backslashes join; -1 if there is none."""
    start = line_start(data, offset)
    while start and data[:start].rstrip(b"\r\n").endswith(b"\\"):
        start = line_start(data, start - 1)
    sign = language.words.directive
    return start if sign and data[start:offset].lstrip().startswith(sign) else -1


def flaw_of_directives(language: Language, before: bytes, fill: bytes, after: bytes) -> str:
    """Return why `fill` leaves a directive that no preprocessor can read, as in `#i|nclude`; empty if it does not.

    1. Read the directives that the fill is in, or that are in it; in a comment there is none.  2. Each can be read by
    itself, and leaves no comment open.  3. No more brackets are unmatched than without the fill, code holds no sign of
    a directive, and no line joins the one below.
    """
    # 1.
    if not _has_directive(language, before, fill):
        return ""
    sign, begun = language.words.directive, directive_start(language, before, len(before))
    start = begun if begun >= 0 else line_start(before, len(before))
    head, rest = before[start:], after[: _end_of_joined(after)]
    line, end = head + fill + rest, len(head + fill)
    unmatched = -_unmatched(language, (head + rest).lstrip()[len(sign) :]) if begun >= 0 else 0
    found = list(marks(language, line, 0, len(line)))
    for kind, first, last in found:
        if kind == "directive" and first <= end:
            # 2.
            text = line[first + len(sign) : last]
            if flaw := _flaw(language, text, len(head) - first - len(sign)):
                return flaw
            unmatched += _unmatched(language, text)
    # 3.
    if wrong := _stray(sign, line, (len(head), end), found):
        return wrong
    if line.endswith(b"\\") and not rest.endswith(b"\\") and not _continues(sign, after):
        return "a directive that continues in the line below"
    return "an unmatched bracket in a directive" if unmatched > 0 else ""


def flaw_of_conditions(language: Language, before: bytes, fill: bytes, after: bytes) -> str:
    """Return why the conditions of `fill` are not those that are missing in the file around it; empty if they are."""
    if not _has_directive(language, before, fill):
        return ""
    sign = language.words.directive
    old, new = (_conditions(sign, before + text + after) for text in (b"", fill))
    if new[0] > old[0]:
        return f"`{sign.decode()}endif` or the like without a condition"
    if new[1] > old[1]:
        return f"a branch below `{sign.decode()}else`"
    return f"a missing `{sign.decode()}endif`" if new[2] > old[2] else ""


def _has_directive(language: Language, before: bytes, fill: bytes) -> bool:
    """Return whether `fill` is in a directive or may hold one: in no comment, nor in a string of several lines."""
    sign, begun = language.words.directive, directive_start(language, before, len(before))
    if not sign or (begun < 0 and sign not in fill):
        return False
    state = state_at(language, before, len(before))
    start = begun if begun >= 0 else line_start(before, len(before))
    return not (state.comment or 0 <= state.begins < start)


def _opens_comment(language: Language, text: bytes, written: int) -> bool:
    """Return whether the fill of `text`, a directive after its sign, leaves a comment open.

    written: where the fill begins.
    """
    begins = tuple(begin for begin, _ in language.block_comments)
    comments = (token for token in tokens(language, text, 0, len(text)) if token.kind == "comment")
    return any(
        one.start >= written
        and text.startswith(begins, one.start)
        and not is_closed_comment(language, text[one.start : one.end])
        for one in comments
    )


def _foreign(language: Language, text: bytes, written: int) -> str:
    """Return what the fill of `text`, a directive after its sign, may not hold in code: as words, else empty.

    That is a sign of `foreign`, or another directive, as `A #else` has one. written: where the fill begins.
    """
    words = b"|".join(sorted(map(re.escape, language.words.directives), reverse=True))
    another = re.compile(rb"%b[ \t]*(?:%b)(?!\w)" % (re.escape(language.words.directive), words))
    spans = [(one.start, one.end) for one in tokens(language, text, 0, len(text)) if one.kind in _LITERALS]
    for sign in (language.words.foreign, another):
        for one in sign.finditer(text, max(written, 0)):
            if not any(start <= one.start() < end for start, end in spans):
                return "a directive" if sign is another else f"`{one[0].decode()}`"
    return ""


def _continues(sign: bytes, after: bytes) -> bool:
    """Return whether the line below is one of several that backslashes join, and not the first of them."""
    below = line_below(after, line_end(after, 0))
    text = after[below : line_end(after, below)]
    return text.endswith(b"\\") and not text.lstrip().startswith(sign)


def _flaw(language: Language, text: bytes, written: int) -> str:
    """Return why no preprocessor can read `text`, a directive after its sign, with its fill from `written` on."""
    word = _WORD.match(text)
    assert word is not None, "it matches nothing, too"
    name = (language.words.directive + (word[1] or b"")).decode()
    use = language.words.directives.get(word[1] or b"", "")
    if word[1] and not use and word.end() >= written:
        return f"the unknown directive `{name}`"
    if use == "path" and not _PATH.match(text, word.end()):
        return f"no name of a file after `{name}`"
    if use == "prose":
        return ""
    if _is_unclosed(language, text[word.end() :]):
        return f"an unclosed string after `{name}`"
    if _opens_comment(language, text, written):
        return f"an unclosed comment after `{name}`"
    what = _foreign(language, text, written)
    return f"{what} after `{name}`" if what else ""


def _is_unclosed(language: Language, text: bytes) -> bool:
    """Return whether `text` leaves a string open, or a character in quotes; one in a number parts its digits."""
    quotes = [quotes.open for quotes in language.strings if quotes.character]
    content = tokens(language, text, 0, len(text))
    return any(
        token.kind == "open_string"
        or (
            token.kind == "other"
            and text[token.start : token.end] in quotes
            and not _DIGITS.search(text[: token.start])
        )
        for token in content
    )


def _conditions(sign: bytes, data: bytes) -> tuple[int, int, int]:
    """Return how many directives of `data` continue or end no condition, follow an `else`, and have no end."""
    lacking = late = 0
    # For each open condition, whether it has its `else`.
    opened = list[bool]()
    for found in re.finditer(rb"^[ \t]*%b[ \t]*(if|elif|else|endif)" % re.escape(sign), data, re.MULTILINE):
        word = found[1]
        if word == b"if":
            opened.append(False)
        elif not opened:
            lacking += 1
        elif word == b"endif":
            opened.pop()
        else:
            late += opened[-1]
            opened[-1] = opened[-1] or word == b"else"
    return lacking, late, len(opened)


def _stray(sign: bytes, line: bytes, fill: Span, found: Sequence[Mark]) -> str:
    """Return that a `sign` in the `fill` of `line` is in code, by the marks `found` there; empty if none is."""
    spans = [(first, last) for kind, first, last in found if kind in _LITERALS]
    signs = (sign_at.start() for sign_at in re.compile(re.escape(sign)).finditer(line, *fill))
    is_stray = any(not any(first <= at < last for first, last in spans) for at in signs)
    return f"`{sign.decode()}` in code" if is_stray else ""


def _end_of_joined(data: bytes) -> int:
    """Return where the first line of `data` ends, with the lines that backslashes join to it."""
    end = line_end(data, 0)
    while data.endswith(b"\\", 0, end) and end < len(data):
        end = line_end(data, line_below(data, end))
    return end


def _unmatched(language: Language, text: bytes) -> int:
    """Count the brackets of `text` that have no other half in it."""
    found = unpaired(language, text)
    return len(found.closers) + len(found.openers)
