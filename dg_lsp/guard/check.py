"""Check: the syntax errors that a fill adds to the text around its gap, which are reasons to refuse it (law 5).

By the grammar and, for Python, by its own parser. Nothing here raises on a strange text.
"""

import re
from functools import lru_cache, partial
from itertools import accumulate

from dg_lsp.budget import bounded, tried
from dg_lsp.gaps import Edit, Gap
from dg_lsp.guard import room
from dg_lsp.guard.baseline import (
    WHOLE,
    Text,
    alone,
    complaint,
    ended,
    filled_in,
    is_sound,
    is_sound_but_for_its_gap,
    neutral_text,
    parsed,
)
from dg_lsp.guard.compare import added, changed
from dg_lsp.guard.loose import Loose, loose_bracket, loose_literal
from dg_lsp.guard.mixed import holds_next, mixed
from dg_lsp.guard.plain import harm_between
from dg_lsp.guard.site import Fault, Site, fault_at, site_of, site_of_edit, to_bytes
from dg_lsp.messages import BODIES, STRINGS, Infill
from dg_lsp.source.bodies import Body, bodies_of, item_at
from dg_lsp.source.directives import flaw_of_conditions, flaw_of_directives
from dg_lsp.source.document import Document
from dg_lsp.source.history import splits_character
from dg_lsp.source.items import top_level_item
from dg_lsp.source.lexer import first_token, line_end, line_start

# Deeper nesting could overflow a parser's stack; no real body comes near it.
DEEPEST = 90
# A line that only marks what is below it: a decorator, an annotation, an attribute, the parameters of a template.
_MARK = re.compile(rb"(?:@[\w.:]+|#?!?\[.*\]|\w+(?=\s*[<(]))\s*(?:\(.*\)|<.*>)?")
_NEAR = 2_000  # bytes after a gap in a string that may hold the end of the string


def faults_of(request: Infill, fill: str) -> tuple[Fault, ...]:
    """The syntax errors that `fill` adds in the gap of `request`, which a neutral filler of its kind does not have.

    1. Parse both.  2. Errors that are new and touch the fill or come after it are faults.  3. A body must end where its
    gap ends, and text that the grammar lets pass must be sense.  4. So says Python's parser.

    Text that is nested too deep to be checked is a fault; OutOfTime is raised where it takes too long to read. The last
    answers are kept, since a text is fitted, judged and perhaps repaired.
    """
    return _faults(site_of(request), to_bytes(fill))


@bounded
def faults_of_edit(document: Document, gap: Gap, edit: Edit) -> tuple[Fault, ...]:
    """Return the syntax errors that `edit`, made for `gap`, adds to `document`; spans count after insert_before.

    The conditions of a preprocessor, such as that around a header, may end far beyond the text of a request.
    """
    # The grammar's binding does not survive a character that is cut in two.
    if any(splits_character(document.data, at) for at in (edit.start, edit.end)):
        return (fault_at(to_bytes(edit.text), 0, 0, "half a character"),)
    site, fill = site_of_edit(document, gap, edit)
    if _ends_its_code(document, edit):
        return _whole(fill, "what ends the code in this file")
    if flaw := flaw_of_conditions(site.language, site.before, fill, site.after):
        return _whole(fill, flaw)
    return _faults(site, fill)


def _ends_its_code(document: Document, edit: Edit) -> bool:
    """Return whether `document`, if it is code in a file of another language, would end in the lines of `edit`."""
    start, end = line_start(document.data, edit.start), line_end(document.data, edit.end)
    lines = document.data[start : edit.start] + to_bytes(edit.text) + document.data[edit.end : end]
    return any(ends.search(lines) for ends in document.ends)


@bounded
def takes_in_next(request: Infill, fill: str) -> bool:
    """Return whether `fill` ends with what the next line is a part of, such as `@property`, or `if (a)` in C."""
    site, data = site_of(request), to_bytes(fill).rstrip()
    line = data[line_start(data, len(data)) :].lstrip()
    if _MARK.fullmatch(line) and site.language.words.above.match(line):
        return True
    neutral = neutral_text(site)
    return holds_next(neutral, filled_in(neutral, data))


@bounded
def is_stub(request: Infill, fill: str) -> bool:
    """Return whether the body of the gap is still a stub with `fill` in it, as with `pass`."""
    site = site_of(request)
    if site.kind not in BODIES or site.language.is_plain:
        return False
    body = _around(neutral_text(site).filled(to_bytes(fill)), site.kind)
    return body is not None and body.stub


@bounded
@lru_cache(maxsize=16)
def _faults(site: Site, fill: bytes) -> tuple[Fault, ...]:
    if site.language.is_plain:
        harm = harm_between(site, fill)
        return _whole(fill, harm) if harm else ()
    if wrong := _wrong_by_itself(site, fill):
        return wrong
    # 1. The neutral text may be a part of the whole, or have more at its ends: what makes it parse.
    read = neutral_text(site)
    if site.kind in STRINGS and not read.clean:
        close = site.state.string
        if close and not any(sign in fill for sign in (close, b"\n", b"\r", b"\\", b"{", b"}")):
            # It neither ends the string nor holds code: another error is the parser's, which recovers otherwise.
            return ()
        if _ends_elsewhere(site, fill):
            return _whole(fill, "a string that would end elsewhere")
    blind = is_blind(site, read)
    opened = room.left_open(site, fill) if blind else ()
    neutral = undisturbed(site, read, fill) if blind and not opened else read
    filled = filled_in(neutral, fill)
    # 2. Where both have something to say, the interpreter's own words and place are the better ones.
    wrong = opened or _refused(neutral, filled) + added(neutral, filled)
    # The neutral text has guessed what the fill itself may say: what a bracket before the gap needs after it.
    if wrong and not _parses_afresh(site, fill, read):
        return wrong
    return (
        () if opened else _changed(site, (read, neutral), filled) or _loose(loose_bracket(site, fill), fill)
    )


def _whole(fill: bytes, what: str) -> tuple[Fault, ...]:
    """Return the fault that all of `fill` is `what`."""
    return (fault_at(fill, 0, len(fill), what),)


def _wrong_by_itself(site: Site, fill: bytes) -> tuple[Fault, ...]:
    """Faults of a fill whatever its tree says, such as what takes in the text after it."""
    nested = ((byte in b"([{") - (byte in b")]}") for byte in fill)
    if max(accumulate(nested), default=0) > DEEPEST:
        return _whole(fill, "nesting that is too deep")
    if site.is_part and (twice := room.doubled(site, fill)) is not None:
        return (fault_at(fill, twice, len(fill), "a bracket that is already closed"),)
    if flaw := flaw_of_directives(site.language, site.before, fill, site.after):
        return _whole(fill, flaw)
    return _loose(loose_literal(site, fill), fill)


def _loose(found: Loose | None, fill: bytes) -> tuple[Fault, ...]:
    """Return the loose end `found` of `fill` as faults."""
    return (fault_at(fill, found.start, found.end, found.what),) if found else ()


def _ends_elsewhere(site: Site, fill: bytes) -> bool:
    """Return whether the string around `fill` ends elsewhere than without it, as that in `'\\'` does."""
    # Directly after the quote of a character no string is open yet.
    begins = site.state.begins if site.state.string else len(site.before) - 1
    if not any(site.before.startswith(quotes.open, begins) for quotes in site.language.strings):
        return False
    head, rest = site.before[begins:], site.after[:_NEAR]
    old, new = (first_token(site.language, head + text + rest, 0) for text in (b"_", fill))
    return old.kind == "string" and new.end - old.end != len(fill) - 1


def _changed(site: Site, without: tuple[Text, Text], filled: Text) -> tuple[Fault, ...]:
    """Return what `filled` reads otherwise than the neutral text: the whole one, and the one that it is a reading of.

    Where the whole text parses with the fill, as with `throws E;` below a method's header, a room says less than it.
    """
    read, neutral = without
    found = changed(neutral, filled)
    if not found and (neutral is read or not _may_continue(site)):
        found = mixed(neutral, filled)
    if not found and not neutral.site.before.startswith(site.before) and site.is_part:
        # A part of the file may show no import, nor what else a part of a function has not.
        own = room.room_of_file(site)
        found = changed(own, own.filled(filled.fill)) if own else ()
    whole = _afresh(site, filled.fill, read) if found and neutral is not read else None
    return changed(read, whole) or mixed(read, whole) if whole is not None else found


def _may_continue(site: Site) -> bool:
    """Return whether the gap may continue the line above, which a room leaves out, as a name continues a type."""
    above = site.before[: site.line].rstrip()
    return not above.endswith((b";", b"{", b"}"))


def _parses_afresh(site: Site, fill: bytes, neutral: Text) -> bool:
    """Return whether the text with `fill`, read afresh, has no error; a text that is too long is not read."""
    return _afresh(site, fill, neutral) is not None


def _afresh(site: Site, fill: bytes, neutral: Text) -> Text | None:
    """Return the text with `fill`, read afresh; None if it has an error, or is too long to be read.

    Where the `neutral` text has errors, what the `fill` opens may be closed after the end of a text that is cut there.
    """
    closed = None if neutral.clean else ended(site, fill)
    size = len(site.before) + len(fill) + len(site.after)
    text = tried(partial(parsed, closed or site, fill)) if size <= WHOLE else None
    return text if text is not None and is_sound(text) else None


def is_blind(site: Site, neutral: Text) -> bool:
    """Return whether the tree of `neutral` shows little of a fill: it has errors anyway, or broken quotes above."""
    if site.is_prose or site.kind == "span":
        return False
    if room.is_misread(site):
        return True
    return not (neutral.clean or (site.kind == "rest_of_line" and is_sound_but_for_its_gap(neutral)))


def undisturbed(site: Site, neutral: Text, fill: bytes) -> Text:
    """Return the gap of `site` in a room, else alone in its body, whichever parses first; else `neutral`."""
    # What a fill closes for others, a room has closed already.
    closed = room.closed_by(site, fill)
    if closed is not None and (own := room.room_of(site, closed)) is not None:
        return own
    if site.kind not in (*BODIES, "statement"):
        return neutral
    body = _around(neutral, site.kind if site.kind in BODIES else "function_body")
    if body is None:
        return neutral
    own = alone(neutral.site, neutral.data[line_start(neutral.data, body.header.define) : body.header.opens])
    return own if own.clean else neutral


def _bodies(text: Text, kind: str) -> list[Body]:
    """Return the bodies of `kind` in the top-level item that holds the fill."""
    item, owner = item_at(text.tree.root_node, text.start), kind.removesuffix("_body")
    near = (max(text.start - 1, 0), text.end + 1)
    return [b for b in bodies_of(text.language, item, text.data, near) if b.header.owner == owner]


def _around(text: Text, kind: str) -> Body | None:
    """Return the innermost body of `kind` that holds the fill."""
    holds = [f for f in _bodies(text, kind) if f.header.opens <= text.start <= max(f.end, f.closes)]
    return max(holds, key=lambda f: f.header.define, default=None)


def _refused(neutral: Text, filled: Text) -> tuple[Fault, ...]:
    """Return errors of Python's parser, not its compiler, in the enclosing function or item, that the fill adds."""
    if neutral.language.name != "python":
        return ()
    data, function = neutral.data, _around(neutral, "function_body")
    start = function.header.define if function else top_level_item(neutral.language, data, neutral.start)[0]
    stop = line_end(data, max(function.end, neutral.end) if function else len(data))
    before, following = data[line_start(data, start) : neutral.start], len(data) - stop
    after = neutral.site.after[: len(neutral.site.after) - following]
    # Only another named argument may follow a named one, or none.
    if all(complaint(before + text + after) is not None for text in (neutral.fill, b"_g_=_g_", b"")):
        return ()
    error = complaint(before + filled.fill + filled.site.after[: len(after)])
    if error is None:
        return ()
    message, line, column = error
    text = before + filled.fill
    starts = [0, *(m.end() for m in re.finditer(rb"\r\n|\n|\r", text))]
    at = starts[line] + column if 0 <= line < len(starts) else len(text)
    at = min(max(at - len(before), 0), len(filled.fill))
    return (fault_at(filled.fill, at, line_end(filled.fill, at), message),)
