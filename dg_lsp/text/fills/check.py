"""Check: reasons to refuse a fill. `faults` are the syntax errors that it adds to the text that an engine sees;
`harm_of` is the last look at an edit, which compares the whole file before and after it (laws 5 and 10).

By the grammar and, for Python, by its own parser. Nothing here raises on a strange text.
"""

import re
from dataclasses import replace
from functools import lru_cache, partial

import tree_sitter
from tree_sitter import Node, Tree

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
    errors_of,
    fault_at,
    filled_in,
    filler,
    function_of_span,
    is_sound_but_for_its_gap,
    neutral_text,
    unexpected,
)
from dg_lsp.text.fills.room import closes_more, ended_comment, is_closed, left_open, open_comment, room_of
from dg_lsp.text.gaps.find import reach
from dg_lsp.text.gaps.gap import Edit, Gap
from dg_lsp.text.languages.language import Language, check_shape, load_language, query_cursor
from dg_lsp.text.messages import BODIES, LISTS, PARTS, STRINGS, Infill
from dg_lsp.text.reasons import OutOfTime, Unreadable
from dg_lsp.text.syntax.bodies import MARKER, Body, bodies_of, item_at
from dg_lsp.text.syntax.directives import flaw_of_directives
from dg_lsp.text.syntax.items import window
from dg_lsp.text.syntax.lexer import Span, line_end, line_start
from dg_lsp.text.syntax.near import readings

# How many bytes behind a gap strings and brackets are compared; a quote too many shows at the next one.
REACH = 20_000
# Bytes of a top-level item that is checked, which takes about ten parses of it.
LARGEST = 1_000_000
_OTHERWISE = "the fill would change how the text behind it is read: a string or a bracket ends elsewhere"
_BRACKETS = '["(" ")" "[" "]" "{" "}"] @bracket'
# Deeper nesting could overflow a parser's stack; no real body comes near it.
DEEPEST = 90


def faults_of(request: Infill, fill: str) -> tuple[Fault, ...]:
    """The `faults` of `fill` in the gap of `request`.

    Raises:
        OutOfTime: the text takes too long to read.
    """
    language = load_language(request.language, request.macros)
    return _faults_between(language, request.kind, request.prefix, fill, request.suffix)


def faults(language: str, kind: str, before: str, fill: str, after: str) -> tuple[Fault, ...]:
    """The syntax errors of before + fill + after that a neutral filler of the gap's kind does not have.

    1. Parse both.  2. Errors that are new and touch the fill or come after it are faults.
    3. A body must end where its gap ends, and what the grammar lets pass must be sense.  4. So says Python's parser.

    Never raises on a strange text: what is nested too deep to be checked is a fault. The last answers are kept, since
    a text is fitted, judged and perhaps mended, and each asks.

    Raises:
        OutOfTime: the text takes too long to read.
    """
    return _faults_between(load_language(language), kind, before, fill, after)


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
    return _faults(load_language(document.language, document.macros), gap.kind, _parts(document, gap, edit))


@bounded
def harm_of(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why `edit`, made for `gap` of `document`, must not be applied, as a sentence; empty where it does no harm.

    1. It replaces the gap and nothing else.  2. What was typed there stays, unless the gap was asked for by name; so do
    comments in a stub.  3. It adds no syntax error: what parsed before parses afterwards.  4. What stands behind the
    gap is read as before: the same strings, comments and brackets, in the same bodies.
    """
    if (edit.start, edit.end) != (gap.start, gap.end):
        return "the fill would change text outside of its gap"
    language = load_language(document.language, document.macros)
    try:
        return _harm_of(language, document, gap, edit)
    except OutOfTime as error:
        # What cannot be checked is not offered.
        return str(error)
    except RecursionError:
        return "the code round the gap is nested too deep for a fill to be checked"


def _harm_of(language: Language, document: Document, gap: Gap, edit: Edit) -> str:
    """Steps 2 to 4 of `harm_of`, in the part of the document that the parser can read."""
    document, gap, edit = _readable(language, document, gap, edit)
    if lost := _lost(language, document, gap):
        return f"the fill would delete `{lost}`"
    # A fill of which its place leaves nothing would only delete what is in the gap.
    if not edit.text.removeprefix(gap.insert_before).removesuffix(gap.insert_after).strip():
        return "nothing of the fill fits into the gap"
    if reason := unchecked(document, gap):
        return reason
    if faults := faults_of_edit(document, gap, edit):
        return f"the fill would add a syntax error: {faults[0].message}"
    return _harm_in(language, document, gap, edit)


def unchecked(document: Document, gap: Gap) -> str:
    """Return why no fill of `gap` can be checked, as a sentence; empty where one can.

    In a line or a nesting that nobody writes, or a top-level item of megabytes, it would take minutes.
    """
    data = document.data
    if reach(data, gap.start) != (0, len(data)):
        return "the line is too long, or too many brackets are open, for a fill to be checked here"
    start, stop = _scope(load_language(document.language, document.macros), data, gap.start)
    if gap.end > stop or stop - start > LARGEST:
        return "the gap goes on beyond the code that can be checked; fill a smaller one"
    return ""


def _readable(language: Language, document: Document, gap: Gap, edit: Edit) -> tuple[Document, Gap, Edit]:
    """The largest part of `document` round `gap` that the parser can read in time, and the gap and the edit in it.

    Raises:
        Unreadable: the parser cannot even read the surroundings of the gap.
    """
    at, data = _readable_part(language, document.data, gap.start)
    if data is document.data:
        return document, gap, edit
    moved = replace(gap, start=gap.start - at, end=gap.end - at)
    part = replace(document, data=data, history=None)
    return part, moved, replace(edit, start=edit.start - at, end=edit.end - at)


@lru_cache(maxsize=2)
def _readable_part(language: Language, data: bytes, at: int) -> tuple[int, bytes]:
    """Return the start of the largest part of `data` around `at` that the parser can read in time, and the part."""
    for start, part in readings(language, data, at):
        if tried(partial(_tree, language, part)):
            return start, part
    raise Unreadable


@bounded
def is_stub(request: Infill, fill: str) -> bool:
    """Return whether the body of the gap is still a stub with `fill` in it, as with `pass`."""
    if request.kind not in BODIES:
        return False
    language = load_language(request.language, request.macros)
    neutral = neutral_text(language, request.kind, _bytes(request.prefix), _bytes(request.suffix))
    body = _around(language, neutral.filled(language, _bytes(fill)), request.kind)
    return body is not None and body.stub


def _parts(document: Document, gap: Gap, edit: Edit) -> tuple[bytes, bytes, bytes]:
    """Split the text after `edit` into the text before the fill, the fill itself, and the rest."""
    inner = edit.text.removeprefix(gap.insert_before)
    fill = inner.removesuffix(gap.insert_after) if gap.insert_after else inner
    before = document.data[: edit.start] + _bytes(gap.insert_before)
    return before, _bytes(fill), _bytes(gap.insert_after) + document.data[edit.end :]


def _faults(language: Language, kind: str, parts: tuple[bytes, bytes, bytes]) -> tuple[Fault, ...]:
    before, fill, after = parts
    if wrong := _wrong_by_itself(language, kind, parts):
        return wrong
    # 1. The neutral text may be a part of the whole, or have more at its ends: what makes it parse.
    read = neutral_text(language, kind, before, after)
    blind = _is_blind(language, kind, read)
    if blind and (open_ends := left_open(language, kind, parts)):
        return () if _parses_afresh(language, before + fill + after) else open_ends
    neutral = _undisturbed(language, read, kind, parts) if blind else read
    filled = filled_in(language, kind, neutral, fill)
    # 2. and 3. A text with new errors need not end anywhere.
    wrong = added(language, kind, neutral, filled)
    # Where both have something to say, the interpreter's own words and place are the better ones.
    wrong = _refused(language, neutral, filled) + wrong
    # The neutral text has guessed what the fill itself may say: what a bracket before the gap needs behind it.
    if wrong and not _parses_afresh(language, before + fill + after):
        return wrong
    found: tuple[Fault, ...] = ()
    if not filled.tree.root_node.has_error:
        found = _misread(language, neutral, filled)
    if not found and kind in BODIES:
        found = _misplaced(language, neutral, filled, kind)
    if not found and kind == "span":
        found = _outside(language, filled)
    if not found and (kind in LISTS or (kind in BODIES and language.style != "indent")):
        found = _left(language, neutral, filled)
    return found


def _wrong_by_itself(language: Language, kind: str, parts: tuple[bytes, bytes, bytes]) -> tuple[Fault, ...]:
    """Faults of a fill whatever its tree says: what no text holds, or what takes in the text behind it."""
    before, fill, after = parts
    if b"\0" in fill:
        at = fill.index(b"\0")
        return (fault_at(fill, at, at + 1, "a null byte"),)
    if _depth(fill) > DEEPEST:
        return (fault_at(fill, 0, len(fill), "too deep nesting"),)
    if kind in PARTS and kind not in (*STRINGS, "comment"):
        twice = doubled(language, before, fill, after)
        if twice is not None:
            return (fault_at(fill, twice, len(fill), "a bracket that is closed already"),)
    if flaw := flaw_of_directives(language, before, fill, after):
        return (fault_at(fill, 0, len(fill), flaw),)
    if kind not in (*STRINGS, "comment", "span") and (ended := ended_comment(language, fill)):
        return ended
    return open_comment(language, fill, b"") if kind in (*BODIES, "statement", "expression") else ()


def _parses_afresh(language: Language, data: bytes) -> bool:
    """Return whether `data`, read afresh, has no error; a text that is too long is not read."""
    tree = tried(partial(language.parse, data)) if len(data) <= WHOLE else None
    if tree is None or tree.root_node.has_error:
        return False
    return language.name != "python" or complaint(data) is None


def _is_blind(language: Language, kind: str, neutral: Text) -> bool:
    """Return whether the text round the gap has errors that no filler removes, so that its tree shows little of a
    fill.
    """
    if neutral.clean or kind in (*STRINGS, "comment", "span"):
        return False
    return kind != "rest_of_line" or not is_sound_but_for_its_gap(language, kind, neutral)


def _undisturbed(language: Language, neutral: Text, kind: str, parts: tuple[bytes, bytes, bytes]) -> Text:
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
    """Return a fault if the brackets round the gap close elsewhere than before."""
    old, new = container_of(language, neutral), container_of(language, filled)
    if old is None or (new is not None and len(neutral.data) - old[1] == len(filled.data) - new[1]):
        return ()
    length = len(filled.fill)
    at = length if new is None else min(max(new[1] - len(filled.before), 0), length)
    return (fault_at(filled.fill, at, length, "an end that does not fit the brackets round the gap"),)


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
        return (fault_at(filled.fill, 0, length, f"its {what} no longer being one"),)
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
    start = function.header.define if function else window(language, neutral.data, len(neutral.before))[0]
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


def _lost(language: Language, document: Document, gap: Gap) -> str:
    """Return the first words in the gap that the edit would delete and must keep; empty if there are none.

    `pass` goes when a body is filled; `# reads a file` above it stays, as insert_before if anywhere in the gap.
    """
    old = document.data[gap.start : gap.end]
    if not old.strip():
        return ""
    found = language.captures(_tree(language, document.data).root_node, (gap.start, gap.end))
    stubs = [
        _cut(n, gap) for n in found.get("stub", ()) if gap.start <= n.start_byte and n.end_byte <= gap.end
    ]
    comments = [_cut(n, gap) for n in found.get("comment", ()) if gap.start <= n.start_byte]
    markers = [span for span in comments if MARKER.fullmatch(old, *span)]
    left = _blanked(old, [*stubs, *markers])
    is_stub = not _blanked(left, comments).strip(b" \t\f\r\n;")
    if gap.asked and not is_stub:
        return ""
    kept, at = (gap.insert_before + gap.insert_after).encode(), 0
    for word in re.finditer(rb"[^\s;]+", left):
        at = kept.find(word[0], at)
        if at < 0:
            return left[word.start() : line_end(left, word.start())].decode("utf-8", "replace").rstrip()[:40]
        at += len(word[0])
    return ""


def _harm_in(language: Language, document: Document, gap: Gap, edit: Edit) -> str:
    """Steps 3 and 4 of `harm_of`, in the scope of the gap."""
    start, stop = _scope(language, document.data, edit.start)
    text = edit.text.encode("utf-8", "replace")
    data = document.data[start:stop]
    first, last = edit.start - start, edit.end - start
    old = Text(data[:first], data[first:last], data[last:], _tree(language, data))
    new = old.filled(language, text)
    if language.name == "python" and complaint(old.data) is None and (said := complaint(new.data)):
        return f"the fill would add a syntax error: {said[0]}"
    if _is_sound(language, old):
        if not new.clean:
            return "the fill would add a syntax error: the file would no longer parse"
        return _changed(language, gap, old, new)
    # The file is broken already, so it is compared with itself with a neutral filler.
    neutral, filled = _compared(language, document, gap, edit)
    is_sound, is_whole = _is_sound(language, new), _is_whole(gap, old, neutral)
    if _is_sound(language, neutral) and (filled.clean or not is_sound):
        changed = _changed(language, gap, neutral, filled)
        # What was read in a part of the file, or with guessed ends, may be read otherwise in the file itself.
        if is_whole or (changed and not is_sound):
            return changed
    if _is_blind(language, gap.kind, neutral):
        return _harm_unread(language, gap, neutral, old, _parts(document, gap, edit))
    return _worse(language, gap, _ended(language, gap, old, neutral), text)


def _harm_unread(
    language: Language, gap: Gap, neutral: Text, old: Text, parts: tuple[bytes, bytes, bytes]
) -> str:
    """Return why the fill of `parts` does harm in code whose tree shows little of it, such as `neutral`, or "".

    1. The text inserted round it may be a guess at what is missing in the file.  2. A fill that is right by itself and
    leaves nothing open changes nothing that could be read.
    """
    # 1.
    text = _bytes(gap.insert_before) + parts[1] + _bytes(gap.insert_after)
    if closes_more(language, old.before, text, old.after):
        return _OTHERWISE
    # 2.
    if _undisturbed(language, neutral, gap.kind, parts).clean:
        return ""
    return _worse(language, gap, _ended(language, gap, old, neutral), text)


def _compared(language: Language, document: Document, gap: Gap, edit: Edit) -> tuple[Text, Text]:
    """The text round `gap` with a neutral filler in it, and the same text with the fill of `edit`."""
    before, fill, after = _parts(document, gap, edit)
    neutral = neutral_text(language, gap.kind, before, after)
    return neutral, filled_in(language, gap.kind, neutral, fill)


def _ended(language: Language, gap: Gap, old: Text, neutral: Text) -> Text:
    """`old` with the same end of its line as `neutral`."""
    at, tail = neutral.tail
    at -= len(gap.insert_after.encode())
    if not tail or not 0 <= at <= len(old.after):
        return old
    return _parsed(language, replace(old, after=old.after[:at] + tail + old.after[at:]), old.fill)


def _is_whole(gap: Gap, old: Text, neutral: Text) -> bool:
    """Return whether `neutral` is `old` with another fill and line end: no part of it, nor longer at its ends."""
    around = (
        len(neutral.tail[1])
        + len(old.before + old.after)
        + len((gap.insert_before + gap.insert_after).encode())
    )
    return len(neutral.before + neutral.after) == around


def _worse(language: Language, gap: Gap, old: Text, fill: bytes) -> str:
    """Return the harm that `fill` does to a broken file, compared with the file as it is, `old`; empty if none."""
    # A parser that goes on from an older tree recovers otherwise than one that begins anew.
    lead = gap.insert_before.encode()
    neutral = lead + filler(language, gap.kind, old.before + lead) + gap.insert_after.encode()
    new, plain = (_parsed(language, old, text) for text in (fill, neutral))
    # A line that was asked for may open the string that the text behind it closes.
    if _is_sound(language, new) and (_is_asked_line(gap) or not _may_quote(language, fill)):
        return ""
    # One quote too many may turn all errors into a single one; a span may begin what its last line ends.
    if gap.kind != "span" and _marks(language, new) not in (_marks(language, old), _marks(language, plain)):
        return _OTHERWISE
    most: tuple[int, ...] = (0, 0) if plain.clean else _error_counts(old)
    # The text of a string adds none, but what ends the string may.
    most = tuple(map(max, most, _error_counts(plain))) if gap.kind in STRINGS else most
    if any(count > limit for count, limit in zip(_error_counts(new), most, strict=True)):
        return "the fill would add a syntax error to a file that has some"
    return ""


def _error_counts(text: Text) -> tuple[int, int]:
    """Return how many different errors the tree of `text` has, and how many of them it shows as a node of their own.

    A parser may show what it has hidden before, or miss the same twice in one place.
    """
    found = {
        (n.type, n.start_byte, n.end_byte, n.is_error or n.is_missing) for n in errors_of(text.tree.root_node)
    }
    return len(found), sum(shown for *_, shown in found)


def _is_asked_line(gap: Gap) -> bool:
    """Return whether a line or a span was asked for by name, which may begin what ends behind it."""
    return gap.asked and gap.kind in ("rest_of_line", "span")


def _may_quote(language: Language, fill: bytes) -> bool:
    """Return whether `fill` holds what can begin or end a string or a comment."""
    marks = (language.comment, *(mark for pair in language.block_comments for mark in pair))
    quotes = (mark for string in language.strings for mark in (string.open, string.close))
    return any(mark in fill for mark in (*quotes, *(mark.encode() for mark in marks)))


def _parsed(language: Language, text: Text, fill: bytes) -> Text:
    """`text` with another fill, parsed from its beginning."""
    return Text(text.before, fill, text.after, language.parse(text.before + fill + text.after))


def _is_sound(language: Language, text: Text) -> bool:
    """Return whether `text` has no error; tree-sitter also takes Python whose indentation is wrong."""
    return text.clean and (language.name != "python" or complaint(text.data) is None)


def _changed(language: Language, gap: Gap, old: Text, new: Text) -> str:
    """Return the text behind the gap that is read differently in `new` than in `old`; empty if none is.

    A line or a span that was asked for may end a block, such as `else:`, and what is defined within the outermost
    function, but not that function. A span may also begin what the rest of its last line ends.
    """
    line = line_end(old.data, old.end) - old.end if gap.kind == "span" else -1
    if [m for m in _marks(language, old) if m[1] >= line] != [
        m for m in _marks(language, new) if m[1] >= line
    ]:
        return _OTHERWISE
    held = _holders(language, old, old)
    if _is_asked_line(gap):
        outermost = min((at for name, at, _ in held if name == "function.outer"), default=len(old.before))
        held = {holder for holder in held if holder[1] <= outermost and not holder[0].startswith("block")}
    if not held <= _holders(language, new, old):
        return "the fill would end what it stands in, and the text behind it would belong to something else"
    return ""


def _marks(language: Language, text: Text) -> list[tuple[str, int, int]]:
    """The strings, comments and brackets behind the gap, counted from where the text behind it begins.

    What begins before and takes in text behind the gap begins at -1: in C, `// a\\` takes in the next line.
    """
    root, end = text.tree.root_node, text.end
    check_shape(root)
    cursor = query_cursor(_brackets(language), (end, end + REACH))
    found = [(n.type, n) for n in cursor.captures(root).get("bracket", ())]
    captured = language.captures(root, (end, end + REACH))
    found += [(name, n) for name in ("string", "comment") for n in captured.get(name, ())]
    behind = [(name, n) for name, n in found if n.end_byte > end and text.data[end : n.end_byte].strip()]
    marks = {(name, max(n.start_byte - end, -1), n.end_byte - end) for name, n in behind}
    return sorted(mark for mark in marks if mark[1] < REACH)


def _holders(language: Language, text: Text, old: Text) -> set[tuple[str, int, int]]:
    """The functions, classes, blocks and their bodies that begin before the gap and go on behind it.

    Each by what it is, its beginning, and its end counted from the end of the text.
    """
    span = (max(len(text.before) - 1, 0), text.end + 1)
    # White space behind the gap may belong to what ends there or not.
    first, rest = len(text.before.rstrip()), len(old.after.lstrip())
    found = language.captures(text.tree.root_node, span)
    return {
        (name, node.start_byte, len(text.data) - node.end_byte)
        for name, nodes in found.items()
        for node in nodes
        if name.endswith((".outer", ".body"))
        and node.start_byte < first
        and len(text.data) - node.end_byte < rest
    }


def _scope(language: Language, data: bytes, at: int) -> Span:
    """The whole file, or of a large one the top-level item at the offset `at`, as far as one is looked for."""
    return (0, len(data)) if len(data) <= WHOLE else window(language, data, at)


def _cut(node: Node, gap: Gap) -> Span:
    """The span of `node` within the gap, counted from where the gap begins."""
    return node.start_byte - gap.start, min(node.end_byte, gap.end) - gap.start


def _blanked(text: bytes, spans: list[Span]) -> bytes:
    """`text` with blanks for the bytes of `spans`."""
    for start, end in spans:
        text = text[:start] + b" " * (end - start) + text[end:]
    return text


@lru_cache(maxsize=1)
def _tree(language: Language, data: bytes) -> Tree:
    """The tree of a text; the last one is kept, since each candidate of one request asks for it."""
    return language.parse(data)


@lru_cache
def _brackets(language: Language) -> tree_sitter.Query:
    return tree_sitter.Query(language.grammar, _BRACKETS)
