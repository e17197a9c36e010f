"""Top-level items and their members: the item around an offset, and the kind of body that a brace opens.

By the lines at column 0 and their first words; a string over several lines can mislead it. Bounded in any file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from dg_lsp.budget import check
from dg_lsp.source import lexer
from dg_lsp.source.language import Language, Owner
from dg_lsp.source.macros import BLANKS

# A header is no longer than this.
LONGEST = 4_000
_WORD = re.compile(rb"[A-Za-z_$@\x80-\xff][\w$\x80-\xff]*")
# A name and its parameters, of which only the brackets are left.
_CALL = re.compile(rb"(?:operator *(?:\(\)|[^\s\w(]+)|[~\w$\x80-\xff:.#]+) *(?:<[^()]*>)? *\(\)")
# The name in front of parameters, and that of a value which is a function.
_CALLED = re.compile(rb"([~\w$\x80-\xff:.#]+) *(?:<[^()]*>)? *\(\)")
_ASSIGNED = re.compile(rb"([\w$\x80-\xff.]+) *(?::[^=]*)?=(?!>)")
# The name after the word of a class, or of the type that an implementation is for.
_CLASSED = re.compile(rb"(?:<[^{}]*?>)? +(?:[^{}:]*? for +)?([\w$.:\x80-\xff]+)")
_TYPE = re.compile(rb"type +([\w\x80-\xff]+)")
_VALUE = re.compile(rb"(?:[=(,\[?&|:]|\breturn)\Z")
_CASE = re.compile(rb"(?:case|default)\b")
_NEW = re.compile(rb"\bnew\b")
# The text after the word of a class: its name, and what may follow that before parameters.
_NAME = re.compile(rb"[ <>*&]*[\w$:.\x80-\xff]*")
_HERITAGE = (b"()", b":", b"extends", b"implements", b"where", b"final")
# A top-level item is looked for so many bytes above and below; where none is, so many are read.
FARTHEST = 64_000
LINES = 4_000  # lines that are looked at on each side; usual ones are longer than FARTHEST before
UNKNOWN = 2_500
# Blanking less than this saves nothing.
LONG = 4_000
_OPENS = re.compile(rb"\{[ \t]*(?://[^\r\n]*)?(?=[\r\n])")
_INNER = re.compile(rb"\s*?[\r\n]([ \t]*)(?=[^\s])")
_TEXT = re.compile(rb"[^\s]")
_CLASS = re.compile(rb"([ \t]*)(?:@[^\r\n]*(?:\r\n|\n|\r)[ \t]*)*class[ \t]+\w")
_APART = re.compile(rb"[#/*]|[\w$]+[ \t]*:|case\b")
# How many bytes are looked at in one go on the way up.
STRIDE = 4_096
# How many lines above an item may belong to it.
MOST_ABOVE = 100
_CLOSER = re.compile(rb"[)\]}]")
_LABEL = re.compile(rb"(?:case|default|public|private|protected)\b[^;({]*:|[\w$]+[ \t]*:(?![:=])")
# An item is over where its closing line holds little else and opens nothing again.
_ENDS = re.compile(
    rb"(?:[)\]};,(\[ \t]*[)\]};]|[)\]}][^\r\n{]*;)[ \t]*(?://[^\r\n]*|/\*[^\r\n]*)?(?![^\r\n])"
)
_ENDED = re.compile(rb"[;}{,)][ \t]*\Z")
_COMMENT = re.compile(rb"//|/\*| ?\*")
# Type arguments that a name continues after, with others inside of them.
_ARGUMENTS = re.compile(rb"<(?:[^<>]|<[^<>]*>)*>(?=::)")
_GOES_ON = re.compile(rb"(?:else|catch|finally|where|throws|extends|implements)\b")


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a body: its owner, the start of its header, and the header without the text in brackets."""

    owner: Owner
    start: int
    text: bytes


def head_of(language: Language, data: bytes, line: int, at: int) -> Head | None:
    """The head of the body that the brace at `at` opens, in the statement that begins at `line`; None for a value."""
    text, start, listed = _flat(language, data, max(line, at - LONGEST), at)
    owner = _owner(language, text, listed=listed)
    return Head(owner, start, text) if owner else None


def name_of(language: Language, head: Head) -> str:
    """Return the name that `head` gives its body, with dots between its parts; empty where it gives none."""
    text, words = without_arguments(head.text), language.words
    if head.owner == "function":
        called = (m for m in _CALLED.finditer(text) if m[1] not in (*words.functions, *language.keywords))
        name = next(called, None) or _ASSIGNED.search(text)
    else:
        word = next((m for m in _WORD.finditer(text) if m[0] in words.classes and m[0] != b"new"), None)
        name = (
            (_CLASSED.match(text, word.end()) or _TYPE.match(text))
            if word and head.owner == "class"
            else None
        )
    found: bytes = name[1] if name else b""
    return found.decode("utf-8", "replace").replace("::", ".").strip(".:")


def without_arguments(name: bytes) -> bytes:
    """`name` without the type arguments that it continues after: `Map::size` of `Map<Key<T>>::size`."""
    return _ARGUMENTS.sub(b"", name)


def _owner(language: Language, text: bytes, *, listed: bool) -> Owner | None:
    """Return the owner that a header of this `text` opens. listed: it is in brackets that are still open."""
    words, found = language.words, [m[0] for m in _WORD.finditer(text)]
    # A word or an arrow says that it is a function or a class.
    if words.functions.intersection(found) or (words.lambdas.search(text) and not _CASE.match(text)):
        return "function"
    if _is_class(text, words.classes):
        return "class"
    if listed and not text:
        return None
    # A word, an arrow, nothing or a lone word such as `static` says that it is a block.
    value = _VALUE.search(text) is not None
    bare = not text or text in words.alone or text.endswith((b"=>", b"->"))
    bare = bare or (_CASE.match(text) is not None and not text.endswith(b")"))
    if bare or (words.blocks.intersection(found) and not value) or (found and found[0] in words.blocks):
        return "block"
    # A name with parameters is a function, or a class where something is made.
    call = None if value else _CALL.search(without_arguments(text))
    if call is None:
        return None
    return "class" if _NEW.search(text, 0, call.start()) else "function"


def _is_class(text: bytes, words: frozenset[bytes]) -> bool:
    """Return whether one of `words` says that it is a class, and not of what type a function's value is."""
    found = next((m for m in _WORD.finditer(text) if m[0] in words), None)
    if found is None:
        return False
    after = re.sub(rb"<[^{}]*?>(?=[ {]|\Z)", b"", text[found.end() :].strip())
    name = _NAME.match(after)
    rest = after[name.end() :].strip() if name else after
    return b"()" not in rest or rest.startswith(_HERITAGE)


def _flat(language: Language, data: bytes, line: int, at: int) -> tuple[bytes, int, bool]:
    """The header's text without the text in brackets, where it begins, and whether it is inside of one.

    It begins after a bracket that is still open or the last comma in that; else after the last closed brace, unless
    nothing follows that.
    """
    parts: list[list[tuple[bytes, int]]] = [[]]
    for token in lexer.tokens(language, data, line, at):
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


@lru_cache(maxsize=8)
def top_level_item(language: Language, data: bytes, offset: int) -> lexer.Span:
    """The top-level item around `offset`, with its comments and decorators, else the text between two; kept."""
    return item_above(language, data, offset, b""), item_below(language, data, offset, b"")


def texts_at(data: bytes, space: bytes, low: int, high: int) -> Iterator[int]:
    """Return where the text begins of the lines of data[low:high] that are indented by `space` and no more."""
    if low == 0 and data.startswith(space) and not data[len(space) : len(space) + 1].isspace():
        yield len(space)
    # A pattern that begins with a character is looked for quickly.
    for match in _lines(space).finditer(data, max(low - 1, 0), high):
        yield match.end()


@lru_cache(maxsize=64)
def _lines(space: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"[\r\n]" + space + rb"(?=[^\s])")


def item_above(language: Language, data: bytes, offset: int, space: bytes) -> int:
    """Return where the item around `offset` begins, or the one above it ends; items are indented by `space`."""
    line = lexer.line_at(data, offset)
    here, high = line.start, line.end
    lowest = max(here - FARTHEST, 0)
    left = LINES
    while high > lowest and left > 0:
        check()
        low = lexer.line_start(data, max(high - STRIDE, 0))
        texts = list(texts_at(data, space, low, high))
        left -= len(texts)
        for found in reversed(texts):
            if found < here and _ends_item(language, data, found):
                return lexer.line_below(data, found)
            if _begins_item(language, data, found, space):
                return _with_above(language, data, found - len(space), space)
        high = low if low < high else 0
    # An item is looked for no further: then what is near must do.
    return lexer.line_start(data, max(here - UNKNOWN, 0)) if lowest or left <= 0 else 0


def item_below(language: Language, data: bytes, offset: int, space: bytes) -> int:
    """Return where the item ends that `offset` is in, or where the next one begins; items are indented by `space`."""
    end = lexer.line_end(data, offset)
    high = min(end + FARTHEST, len(data))
    for looked, at in enumerate(texts_at(data, space, lexer.line_start(data, offset), high)):
        check()
        if looked == LINES:
            return lexer.line_start(data, min(end + UNKNOWN, len(data)))
        if _ends_item(language, data, at):
            return lexer.line_below(data, at)
        line = at - len(space)
        if line > offset and _begins_item(language, data, at, space):
            # The place may be on what belongs to the item below it.
            above = _with_above(language, data, line, space)
            if above > offset:
                return above
    return len(data) if high == len(data) else lexer.line_start(data, end + UNKNOWN)


def _begins_item(language: Language, data: bytes, at: int, space: bytes) -> bool:
    """Return whether the text at `at`, the first of its line, begins an item."""
    words = language.words
    if words.directive and data.startswith(words.directive, at):
        return False
    looks = words.members if space else words.items
    if not (looks.match(data, at) or words.above.match(data, at)) or _GOES_ON.match(data, at):
        return False
    return not _LABEL.match(data, at, lexer.line_end(data, at))


def _ends_item(language: Language, data: bytes, at: int) -> bool:
    """Return whether the text at `at`, the first of its line, closes an item."""
    return (
        language.style == "brace"
        and _CLOSER.match(data, at) is not None
        and _ENDS.match(data, at) is not None
    )


def _with_above(language: Language, data: bytes, line: int, space: bytes) -> int:
    """`line`, moved up to the comments, attributes and the beginning of the header right above it."""
    words = language.words
    for _ in range(MOST_ABOVE):
        if line <= 0:
            break
        above = lexer.line_start(data, line - 1 - data.endswith(b"\r\n", 0, line))
        text = data[above : lexer.line_end(data, above)]
        if not text.startswith(space) or (words.directive and text.startswith(words.directive)):
            return line
        text = text[len(space) :]
        attached = _COMMENT.match(text) or words.above.match(text)
        begun = (words.members if space else words.items).match(text) and not _ENDED.search(text)
        header = begun and language.style == "brace"
        if not attached and not header:
            return line
        line = above
    return line


@lru_cache(maxsize=4)
def focus(language: Language, data: bytes, offset: int, longest: int = LONG) -> bytes:
    """`data`, one item of a file, in which only the member around `offset` is left; all of it up to `longest` bytes.

    The others become blanks of the same length, so that offsets stay: in a long class a cursor in its third method
    leaves the class's head, that method and its end.
    """
    item = 0, len(data)
    while item[1] - item[0] > longest and (inside := _inside(language, data, item, offset)):
        check()
        start, stop, space = inside
        above = max(item_above(language, data, offset, space), start)
        while above > start and _is_quoted(language, data, start, above):
            above = max(item_above(language, data, above - 1, space), start)
        below = max(min(item_below(language, data, offset, space), stop), above)
        while below < stop and _is_quoted(language, data, start, below):
            below = min(item_below(language, data, below, space), stop)
        if below - above >= item[1] - item[0]:
            break
        data = _blanked(language, data, (start, above), space)
        data = _blanked(language, data, (below, stop), space)
        item = above, below
    return data


def member_around(language: Language, item: bytes, offset: int) -> bytes:
    """`focus` of an `item` that is too long to read, where nothing below the line of `offset` continues that line."""
    kept = focus(language, item[:offset] + b";" + item[offset:], offset)
    return kept[:offset] + kept[offset + 1 :]


def member_alone(language: Language, data: bytes, offset: int) -> bytes:
    """`data`, a file, in which only the member around `offset` is left, or the top-level item where it is in no class.

    All else becomes blanks, so that offsets stay, and nothing that is broken there is read.
    """
    start, stop = top_level_item(language, data, offset)
    item = focus(language, data[start:stop], offset - start, 0)
    return data[:start].translate(BLANKS) + item + data[stop:].translate(BLANKS)


def _inside(language: Language, data: bytes, item: lexer.Span, offset: int) -> tuple[int, int, bytes] | None:
    """The lines between the header of `item` and what closes it, if `offset` is on one; and their indentation."""
    start, stop = item
    if language.style == "indent":
        return _in_class(language, data, item, offset)
    found = lexer.marks(language, data, start, min(offset, stop))
    braces = (first for kind, first, _ in found if kind == "open" and data[first] in b"{")
    opens = next((m for m in (_OPENS.match(data, at) for at in braces) if m), None)
    if opens is None or head_of(language, data, start, opens.start()) is None:
        return None
    last = lexer.line_start(data, start + len(data[start:stop].rstrip()))
    text = _TEXT.search(data, last, stop)
    if text is None or data[text.start()] not in b")]}" or not opens.end() < offset < last:
        return None
    # Only where the members are deeper, all of them, do their lines tell them apart.
    first, outer = _INNER.match(data, opens.end(), last), lexer.leading(data, text.start())
    if first is None or len(first[1]) <= len(outer):
        return None
    if not all(_APART.match(data, at) for at in texts_at(data, outer, opens.end(), last)):
        return None
    return opens.end(), last, first[1]


def _in_class(
    language: Language, data: bytes, item: lexer.Span, offset: int
) -> tuple[int, int, bytes] | None:
    """The same for the members of a class that indentation holds together, from the first function on."""
    head = _CLASS.match(data, *item)
    if head is None:
        return None
    columns = len(head[1])
    outside = re.compile(rb"[\r\n](?=[ \t]{0,%d}[^\s#)\]}\"'])" % columns).search(data, head.end(), item[1])
    stop = outside.end() if outside else item[1]
    member = rb"(?<![^\r\n])([ \t]{%d,})(?:%b)" % (columns + 1, language.words.members.pattern)
    first = re.compile(member).search(data, head.end(), stop)
    if first is None or not first.start() <= offset < stop or _is_quoted(language, data, item[0], stop):
        return None
    return first.start(), stop, first[1]


def _is_quoted(language: Language, data: bytes, start: int, at: int) -> bool:
    """Return whether `at` is in a string over lines that begins after `start`, by the number of such quotes."""
    quotes = {q.close for q in language.strings if q.open == q.close and len(q.close) == 3}
    return any(data.count(quote, start, at) % 2 for quote in quotes)


def _blanked(language: Language, data: bytes, span: lexer.Span, space: bytes) -> bytes:
    """`data` with `span` blanked, but for a member of no meaning on one of its lines and a comment at its end."""
    start, stop = span
    filler = language.words.member
    blank = bytearray(data[start:stop].translate(BLANKS))
    last = len(data[start:stop].rstrip())
    mark = language.comment
    if last >= len(mark) and not re.search(rb"[\r\n]", data[start + last - len(mark) : start + last]):
        blank[last - len(mark) : last] = mark
    # Without it a class would look empty, and a bracket left open before it as if nothing followed.
    line = re.compile(rb"[\r\n]" + space + rb"(?=[^\s][^\r\n]{%d})" % len(filler))
    if found := line.search(data, max(start - 1, 0), stop):
        at = found.end() - start
        blank[at : at + len(filler)] = filler
    return data[:start] + bytes(blank) + data[stop:]
