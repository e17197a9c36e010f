"""Check: the syntax errors that a fill adds to the text around its gap, which are reasons to refuse it (law 5).

By the grammar and, for Python, by its own parser. Nothing here raises on a strange text.
"""

import re
from functools import lru_cache, partial

from tree_sitter import Node

from dg_lsp.text.budget import bounded, tried
from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills.balance import doubled
from dg_lsp.text.fills.baseline import (
    WHOLE,
    Fault,
    Text,
    added,
    alone,
    complaint,
    container_of,
    fault_at,
    filled_in,
    function_of_span,
    is_sound_but_for_its_gap,
    neutral_text,
    unexpected,
)
from dg_lsp.text.fills.plain import harm_between
from dg_lsp.text.fills.room import ended_comment, is_closed, is_misread, left_open, open_comment, room_of
from dg_lsp.text.gaps.gap import Edit, Gap
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.messages import BODIES, LISTS, PARTS, STRINGS, Infill
from dg_lsp.text.syntax.bodies import Body, bodies_of, item_at
from dg_lsp.text.syntax.brackets import state_at
from dg_lsp.text.syntax.directives import flaw_of_directives
from dg_lsp.text.syntax.items import top_level_item
from dg_lsp.text.syntax.lexer import first_token, line_end, line_start

# Deeper nesting could overflow a parser's stack; no real body comes near it.
DEEPEST = 90
_NEAR = 2_000  # bytes behind a gap in a string that may hold the end of the string


def faults_of(request: Infill, fill: str) -> tuple[Fault, ...]:
    """The syntax errors that `fill` adds in the gap of `request`, which a neutral filler of its kind does not have.

    1. Parse both.  2. Errors that are new and touch the fill or come after it are faults.
    3. A body must end where its gap ends, and what the grammar lets pass must be sense.  4. So says Python's parser.

    Never raises on a strange text: what is nested too deep to be checked is a fault. The last answers are kept, since
    a text is fitted, judged and perhaps repaired, and each asks.

    Raises:
        OutOfTime: the text takes too long to read.
    """
    language = load_language(request.language, request.macros)
    return _faults_between(language, request.kind, request.prefix, fill, request.suffix)


@bounded
@lru_cache(maxsize=16)
def _faults_between(language: Language, kind: str, before: str, fill: str, after: str) -> tuple[Fault, ...]:
    return _faults(language, kind, (_bytes(before), _bytes(fill), _bytes(after)))


@bounded
def faults_of_edit(document: Document, gap: Gap, edit: Edit) -> tuple[Fault, ...]:
    """Return the syntax errors that `edit`, made for `gap`, adds to `document`.

    Their spans count from the beginning of the fill, behind the gap's insert_before.
    """
    # The grammar's binding does not survive a character that is cut in two.
    if any(0x80 <= byte < 0xC0 for at in (edit.start, edit.end) for byte in document.data[at : at + 1]):
        return (fault_at(_bytes(edit.text), 0, 0, "half a character"),)
    return _faults(load_language(document.language, document.macros), gap.kind, parts_of(document, gap, edit))


@bounded
def is_stub(request: Infill, fill: str) -> bool:
    """Return whether the body of the gap is still a stub with `fill` in it, as with `pass`."""
    if request.kind not in BODIES:
        return False
    language = load_language(request.language, request.macros)
    if language.is_plain:
        return False
    neutral = neutral_text(language, request.kind, _bytes(request.prefix), _bytes(request.suffix))
    body = _around(language, neutral.filled(language, _bytes(fill)), request.kind)
    return body is not None and body.stub


def parts_of(document: Document, gap: Gap, edit: Edit) -> tuple[bytes, bytes, bytes]:
    """Split the text after `edit` into the text before the fill, the fill itself, and the rest."""
    inner = edit.text.removeprefix(gap.insert_before)
    fill = inner.removesuffix(gap.insert_after) if gap.insert_after else inner
    before = document.data[: edit.start] + _bytes(gap.insert_before)
    return before, _bytes(fill), _bytes(gap.insert_after) + document.data[edit.end :]


def _faults(language: Language, kind: str, parts: tuple[bytes, bytes, bytes]) -> tuple[Fault, ...]:
    before, fill, after = parts
    if language.is_plain:
        harm = harm_between(language, parts)
        return (fault_at(fill, 0, len(fill), harm),) if harm else ()
    if wrong := _wrong_by_itself(language, kind, parts):
        return wrong
    # 1. The neutral text may be a part of the whole, or have more at its ends: what makes it parse.
    read = neutral_text(language, kind, before, after)
    if kind in STRINGS and not read.clean:
        if _is_text(language, before, fill):
            # An error that comes or goes elsewhere is the parser's, which recovers otherwise behind other bytes.
            return ()
        if _ends_elsewhere(language, parts):
            return (fault_at(fill, 0, len(fill), "a string that would end elsewhere"),)
    blind = is_blind(language, kind, before, read)
    opened = left_open(language, kind, parts) if blind else ()
    neutral = undisturbed(language, read, kind, parts) if blind and not opened else read
    filled = filled_in(language, kind, neutral, fill)
    # 2. Where both have something to say, the interpreter's own words and place are the better ones.
    wrong = opened or _refused(language, neutral, filled) + added(language, kind, neutral, filled)
    # The neutral text has guessed what the fill itself may say: what a bracket before the gap needs behind it.
    if wrong and not _parses_afresh(language, before + fill + after):
        return wrong
    return () if opened else _senseless(language, kind, neutral, filled)


def _senseless(language: Language, kind: str, neutral: Text, filled: Text) -> tuple[Fault, ...]:
    """Faults of a fill that parses: it is no code, or it ends elsewhere than its gap."""
    found: tuple[Fault, ...] = ()
    if not filled.tree.root_node.has_error:
        found = _misread(language, neutral, filled)
    if not found and kind in BODIES:
        found = _misplaced(language, neutral, filled, kind)
    if not found and kind == "span":
        found = _outside(language, filled)
    # Where the neutral text has errors, its brackets may pair otherwise.
    listed = kind in LISTS or (kind in BODIES and language.style != "indent")
    if not found and listed and (neutral.clean or not filled.clean):
        found = _left(language, neutral, filled)
    return found


def _wrong_by_itself(language: Language, kind: str, parts: tuple[bytes, bytes, bytes]) -> tuple[Fault, ...]:
    """Faults of a fill whatever its tree says: what no text holds, or what takes in the text behind it."""
    before, fill, after = parts
    if b"\0" in fill:
        at = fill.index(b"\0")
        return (fault_at(fill, at, at + 1, "a null byte"),)
    if _depth(fill) > DEEPEST:
        return (fault_at(fill, 0, len(fill), "nesting that is too deep"),)
    if kind in PARTS and kind not in (*STRINGS, "comment"):
        twice = doubled(language, before, fill, after)
        if twice is not None:
            return (fault_at(fill, twice, len(fill), "a bracket that is already closed"),)
    if flaw := flaw_of_directives(language, before, fill, after):
        return (fault_at(fill, 0, len(fill), flaw),)
    if kind not in (*STRINGS, "comment", "span") and (ended := ended_comment(language, fill)):
        return ended
    return open_comment(language, fill, b"") if kind in (*BODIES, "statement", "expression") else ()


def _is_text(language: Language, before: bytes, fill: bytes) -> bool:
    """Return whether `fill`, in the string that is open behind `before`, can neither end it nor hold code."""
    close = state_at(language, before, len(before)).string
    return bool(close) and not any(sign in fill for sign in (close, b"\n", b"\r", b"\\", b"{", b"}"))


def _ends_elsewhere(language: Language, parts: tuple[bytes, bytes, bytes]) -> bool:
    """Return whether the string around the fill of `parts` ends elsewhere than without it, as that in `'\\'` does."""
    before, fill, after = parts
    state = state_at(language, before, len(before))
    # Directly behind the quote of a character no string is open yet.
    begins = state.begins if state.string else len(before) - 1
    if not any(before.startswith(quotes.open, begins) for quotes in language.strings):
        return False
    old, new = (first_token(language, before[begins:] + text + after[:_NEAR], 0) for text in (b"_", fill))
    return old.kind == "string" and new.end - old.end != len(fill) - 1


def _parses_afresh(language: Language, data: bytes) -> bool:
    """Return whether `data`, read afresh, has no error; a text that is too long is not read."""
    tree = tried(partial(language.parse, data)) if len(data) <= WHOLE else None
    if tree is None or tree.root_node.has_error:
        return False
    return language.name != "python" or complaint(data) is None


def is_blind(language: Language, kind: str, before: bytes, neutral: Text) -> bool:
    """Return whether the tree of `neutral`, a text around a gap behind `before`, shows little of a fill.

    It has errors that no filler removes, or quotes above the gap are broken, so that its code is read as a string.
    """
    if kind in (*STRINGS, "comment", "span"):
        return False
    if is_misread(before, state_at(language, before, len(before))):
        return True
    return not (
        neutral.clean or (kind == "rest_of_line" and is_sound_but_for_its_gap(language, kind, neutral))
    )


def undisturbed(language: Language, neutral: Text, kind: str, parts: tuple[bytes, bytes, bytes]) -> Text:
    """Return the gap of `parts` in a room, else alone in its body, whichever parses first; else `neutral`."""
    before, fill, after = parts
    # What a fill closes for others, a room has closed already.
    if is_closed(language, fill) and (room := room_of(language, kind, before, after)) is not None:
        return room
    if kind not in (*BODIES, "statement"):
        return neutral
    body = _around(language, neutral, kind if kind in BODIES else "function_body")
    if body is None:
        return neutral
    header = neutral.data[line_start(neutral.data, body.header.define) : body.header.opens]
    line = neutral.before[line_start(neutral.before, len(neutral.before)) :]
    own = alone(language, kind, header, line)
    return own if own.clean else neutral


def _left(language: Language, neutral: Text, filled: Text) -> tuple[Fault, ...]:
    """Return a fault if the brackets around the gap close elsewhere than before."""
    old, new = container_of(language, neutral), container_of(language, filled)
    if old is None or (new is not None and len(neutral.data) - old[1] == len(filled.data) - new[1]):
        return ()
    length = len(filled.fill)
    at = length if new is None else min(max(new[1] - len(filled.before), 0), length)
    return (fault_at(filled.fill, at, length, "an end that does not match the brackets around the gap"),)


def _misread(language: Language, neutral: Text, filled: Text) -> tuple[Fault, ...]:
    """Return parts of the fill that the grammar accepts and the language does not, such as a keyword as a name.

    What is refused with the neutral filler as well was typed so: `name: f(|)` may get arguments.
    """
    start = len(filled.before)
    typed = {(n.type, n.start_byte) for n in _refusals(language, neutral) if n.start_byte < start}
    inside = [n for n in _refusals(language, filled) if n.start_byte < filled.end and n.end_byte > start]
    inside = [n for n in inside if (n.type, n.start_byte) not in typed]
    places = [(max(n.start_byte - start, 0), min(n.end_byte, filled.end) - start) for n in inside]
    return tuple(fault_at(filled.fill, a, b, unexpected(filled.fill[a:b])) for a, b in places)


def _refusals(language: Language, text: Text) -> list[Node]:
    """Return the nodes in the fill of `text` that are code for the grammar only."""
    span = len(text.before), max(text.end, len(text.before) + 1)
    return language.captures(text.tree.root_node, span).get("refuse", [])


def _misplaced(language: Language, neutral: Text, filled: Text, kind: str) -> tuple[Fault, ...]:
    """A fault where the body that holds the gap is none any more: `() => {'a': 1}` reads like an object.

    Where indentation holds bodies together also where it does not end where the fill ends, though it should.
    """
    body = _around(language, neutral, kind)
    if body is None:
        return ()
    what, length = kind.removesuffix("_body"), len(filled.fill)
    found = (b for b in _bodies(language, filled, kind) if b.header.define == body.header.define)
    same = next(found, None)
    if same is None:
        return (fault_at(filled.fill, 0, length, f"code that is no longer in a {what}"),)
    if language.style != "indent":
        return ()
    end = same.end
    wanted = len(filled.before) + len(filled.fill.rstrip())
    if end < wanted:
        at = end - len(filled.before)
        at += len(filled.fill[max(at, 0) :]) - len(filled.fill[max(at, 0) :].lstrip()) if at >= 0 else -at
        return (fault_at(filled.fill, at, length, f"text outside of the {what}"),)
    # A gap that ends in the middle of a body has the rest of it behind; that is nothing new.
    if end > line_end(filled.data, filled.end) and body.end <= line_end(neutral.data, neutral.end):
        return (fault_at(filled.fill, length, length, "an end that takes in what follows"),)
    return ()


def _outside(language: Language, filled: Text) -> tuple[Fault, ...]:
    """A fault where the function that a span is in ends before the fill does."""
    header = function_of_span(language, filled.before)
    if header is None:
        return ()
    same = (b for b in _bodies(language, filled, "function_body") if b.header.define == header.start)
    function, length = next(same, None), len(filled.fill)
    if function is None and filled.tree.root_node.has_error:
        return ()
    end = function.end - len(filled.before) if function else 0
    if end < len(filled.fill.rstrip()):
        return (fault_at(filled.fill, max(end, 0), length, "text outside of the function"),)
    return ()


def _bodies(language: Language, text: Text, kind: str) -> list[Body]:
    """Return the bodies of `kind` in the top-level item that holds the fill."""
    item, owner = item_at(text.tree.root_node, len(text.before)), kind.removesuffix("_body")
    near = (max(len(text.before) - 1, 0), text.end + 1)
    return [b for b in bodies_of(language, item, text.data, near) if b.header.owner == owner]


def _around(language: Language, text: Text, kind: str) -> Body | None:
    """Return the innermost body of `kind` that holds the fill."""
    at = len(text.before)
    holds = [f for f in _bodies(language, text, kind) if f.header.opens <= at <= max(f.end, f.closes)]
    return max(holds, key=lambda f: f.header.define, default=None)


def _refused(language: Language, neutral: Text, filled: Text) -> tuple[Fault, ...]:
    """Return errors of Python's parser in the enclosing function or top-level item, if a neutral fill has none.

    The parser and not the compiler: a part of the file does not show whether a name may be nonlocal.
    """
    if language.name != "python":
        return ()
    function = _around(language, neutral, "function_body")
    start = (
        function.header.define if function else top_level_item(language, neutral.data, len(neutral.before))[0]
    )
    behind = line_end(neutral.data, max(function.end, neutral.end) if function else len(neutral.data))
    start = line_start(neutral.data, start)
    tail = len(neutral.data) - behind
    before, stop = neutral.before[start:], len(neutral.after) - tail
    # Only another named argument may follow a named one, or none.
    fills = (neutral.fill, b"_g_=_g_", b"")
    if all(complaint(before + text + neutral.after[:stop]) is not None for text in fills):
        return ()
    error = complaint(before + filled.fill + filled.after[:stop])
    if error is None:
        return ()
    message, line, column = error
    text = before + filled.fill
    starts = [0, *(m.end() for m in re.finditer(rb"\r\n|\n|\r", text))]
    at = starts[line] + column if 0 <= line < len(starts) else len(text)
    at = min(max(at - len(before), 0), len(filled.fill))
    return (fault_at(filled.fill, at, line_end(filled.fill, at), message),)


def _depth(fill: bytes) -> int:
    """Return how deep the brackets of `fill` nest, those in strings included."""
    depth = deepest = 0
    for byte in fill:
        depth += (byte in b"([{") - (byte in b")]}")
        deepest = max(deepest, depth)
    return deepest


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
