"""Harm: the last look at an edit, which compares the whole file before and after it (laws 5 and 10)."""

import re
from dataclasses import replace
from functools import lru_cache, partial

from tree_sitter import Node, Tree

from dg_lsp.budget import bounded, tried
from dg_lsp.gaps import Edit, Gap, reach
from dg_lsp.guard.baseline import (
    WHOLE,
    Text,
    complaint,
    filled_in,
    filler,
    is_sound,
    neutral_text,
    not_compiled,
    parsed,
)
from dg_lsp.guard.check import faults_of_edit, is_blind, undisturbed
from dg_lsp.guard.compare import changed, errors_of, marks
from dg_lsp.guard.mixed import mixed
from dg_lsp.guard.room import closes_more, is_complete
from dg_lsp.guard.site import Site, site_of_edit, to_bytes
from dg_lsp.messages import STRINGS
from dg_lsp.reasons import OutOfTime, Unreadable
from dg_lsp.source.bodies import MARKER
from dg_lsp.source.document import Document
from dg_lsp.source.items import member_around, top_level_item
from dg_lsp.source.language import Language, load_language
from dg_lsp.source.lexer import Span, line_end

# Bytes of a top-level item that is checked, which takes about ten parses of it.
LARGEST = 1_000_000
_OTHERWISE = "the fill would change how the text after it is read: a string or bracket would end elsewhere"
# What the compiler may refuse and the parser takes: names that are bound, and values in a wrong place.
_COMPILED = re.compile(
    rb"\b(?:nonlocal|global|def|lambda|class|return|yield|await|async|break|continue)\b|[=*]"
)


@bounded
def harm_of(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why `edit`, made for `gap` of `document`, must not be applied, as a sentence; empty where it does no harm.

    1. It replaces the gap and nothing else.  2. Typed text stays, unless the gap was asked for by name; so do
    comments in a stub.  3. It adds no syntax error: what parsed before parses afterwards.  4. The text after the
    gap is read as before: the same strings, comments and brackets, in the same bodies.
    """
    if (edit.start, edit.end) != (gap.start, gap.end):
        return "the fill would change text outside of its gap"
    language = load_language(document.language, document.macros)
    try:
        if language.is_plain:
            return _refusal(document, gap, edit)
        # Steps 2 to 4, in the part of the document that the parser can read.
        document, gap, edit = _readable(language, document, gap, edit)
        if lost := _lost(language, document, gap):
            return f"the fill would delete `{lost}`"
        return _refusal(document, gap, edit) or _harm_in(language, document, gap, edit)
    except OutOfTime as error:
        # What cannot be checked is not offered.
        return str(error)
    except RecursionError:
        return "the code around the gap is nested too deeply for a fill to be checked"


def _refusal(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why nothing is left of a fill, it cannot be checked, or has faults, as a sentence; empty otherwise."""
    # A fill of which its place leaves nothing would only delete what is in the gap.
    if not edit.text.removeprefix(gap.insert_before).removesuffix(gap.insert_after).strip():
        return "no part of the fill fits into the gap"
    if reason := unchecked(document, gap):
        return reason
    if faults := faults_of_edit(document, gap, edit):
        return f"the fill would add a syntax error: {faults[0].message}"
    return ""


def unchecked(document: Document, gap: Gap) -> str:
    """Return why no fill of `gap` can be checked, such as a line that nobody writes; empty where one can."""
    data = document.data
    if reach(data, gap.start) != (0, len(data)):
        return "the line is too long, or too many brackets are open, for a fill to be checked here"
    language = load_language(document.language, document.macros)
    if language.is_plain:
        return ""
    start, stop = _scope(language, data, gap.start)
    if gap.end > stop or stop - start > LARGEST:
        return "the gap extends beyond the code that can be checked; fill a smaller one"
    return ""


def _readable(language: Language, document: Document, gap: Gap, edit: Edit) -> tuple[Document, Gap, Edit]:
    """The largest part of `document` around `gap` that can be read, and the gap and edit in it; or Unreadable."""
    at, data = _readable_part(language, document.data, gap.start)
    if data is document.data:
        return document, gap, edit
    part = replace(document, data=data, history=None)
    return part, gap.moved(-at), replace(edit, start=edit.start - at, end=edit.end - at)


@lru_cache(maxsize=2)
def _readable_part(language: Language, data: bytes, at: int) -> tuple[int, bytes]:
    """Return the start of the largest part of `data` around `at` that the parser can read in time, and the part."""
    if tried(partial(_tree, language, data)):
        return 0, data
    start, stop = top_level_item(language, data, at)
    item = data[start:stop]
    for part in (item, member_around(language, item, at - start)):
        if tried(partial(_tree, language, part)):
            return start, part
    raise Unreadable


def _lost(language: Language, document: Document, gap: Gap) -> str:
    """Return the first words in the gap that the edit would delete and must keep, such as a stub's comments."""
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
    """Steps 3 and 4 of `harm_of`, in the scope of the gap. "Sound" means without an error.

    | the file  | the whole file with a neutral text | the fill is refused if                               |
    | --------- | ---------------------------------- | ---------------------------------------------------- |
    | sound     |                                    | the file with it is not sound                        |
    |           | sound                              | the text after it is read otherwise (`faults_of`)    |
    | sound     | not sound                          | the text after it is read otherwise than in the file |
    | not sound | not sound, blind                   | it closes brackets for others, or is wrong by itself |
    | not sound | not sound                          | there are more errors, or other pairs after it       |
    """
    start, stop = _scope(language, document.data, edit.start)
    data = document.data[start:stop]
    first, last = edit.start - start, edit.end - start
    around = Site(language, gap.kind, data[:first], data[last:], gap.asked)
    old = Text(around, data[first:last], _tree(language, data))
    new = old.filled(to_bytes(edit.text))
    if said := _said_by_python(old, new):
        return f"the fill would add a syntax error: {said}"
    sound = is_sound(old)
    if sound and not new.clean:
        return "the fill would add a syntax error: the file would no longer parse"
    site, fill = site_of_edit(document, gap, edit)
    neutral = neutral_text(site)
    compared = is_sound(neutral) and (filled_in(neutral, fill).clean or not is_sound(new))
    if compared and _is_whole(gap, old, neutral):
        return ""
    if sound:
        faults = changed(old, new) or mixed(old, new)
        return f"the fill would change the code around it: {faults[0].message}" if faults else ""
    # A fill that is right by itself and leaves nothing open changes nothing that could be read; the text that the gap
    # inserts around it may be a guess at what is missing in the file.
    blind = not neutral.clean and is_blind(site, neutral)
    more = blind and closes_more(old.site, edit.text.encode())
    if more or (blind and undisturbed(site, neutral, fill).clean):
        return _OTHERWISE if more else ""
    return _worse(old, new.fill, (gap.insert_before.encode(), gap.insert_after.encode()))


def _said_by_python(old: Text, new: Text) -> str:
    """Return what Python says of the syntax and the names of `new`, and not of `old`; empty if nothing."""
    if new.language.name != "python":
        return ""
    if complaint(old.data) is None and (said := complaint(new.data)):
        return said[0]
    parsed_only = new.site.kind == "parameters" or _COMPILED.search(new.fill)
    refused = not_compiled(new.data) if parsed_only else ""
    return refused if refused and not not_compiled(old.data) else ""


def _is_whole(gap: Gap, old: Text, neutral: Text) -> bool:
    """Return whether `neutral` is `old` with another fill and line end: no part of it, nor longer at its ends."""
    inserted = len((gap.insert_before + gap.insert_after).encode()) + len(neutral.tail[1])
    return len(neutral.data) - len(neutral.fill) == len(old.data) - len(old.fill) + inserted


def _worse(old: Text, fill: bytes, inserted: tuple[bytes, bytes]) -> str:
    """Return the harm that `fill` does to a broken file, compared with the file as it is, `old`; empty if none."""
    site, lead = old.site, inserted[0]
    text = lead + filler(site.between(site.before + lead, site.after))
    text += inserted[1] or (site.closers + site.language.words.ends[0] if site.closers else b"")
    # A parser that continues an older tree recovers otherwise than one that begins again.
    new, plain = parsed(site, fill), parsed(site, text)
    complete = is_complete(site, fill)
    # A line that was asked for may open the string that the text after it closes.
    if is_sound(new) and (complete or site.may_end_blocks or not _may_quote(site.language, fill)):
        return ""
    # One quote too many may turn all errors into a single one; a span may begin what its last line ends.
    guarded = site.kind != "span" and not complete
    if guarded and marks(new) not in (marks(old), marks(plain)):
        return _OTHERWISE
    most = 0 if plain.clean else _count_errors(old)
    # The text of a string adds none, but what ends the string may.
    most = max(most, _count_errors(plain)) if site.kind in STRINGS or site.state.string else most
    return (
        "the fill would add a syntax error to a file that already has some"
        if _count_errors(new) > most
        else ""
    )


def _count_errors(text: Text) -> int:
    """Return how many different errors the tree of `text` has; a parser may miss the same twice in one place."""
    return len({(n.type, n.start_byte, n.end_byte) for n in errors_of(text.tree.root_node)})


def _may_quote(language: Language, fill: bytes) -> bool:
    """Return whether `fill` holds what can begin or end a string or a comment."""
    comments = (language.comment, *(mark for pair in language.block_comments for mark in pair))
    quotes = (mark for string in language.strings for mark in (string.open, string.close))
    return any(mark in fill for mark in (*quotes, *comments))


def _scope(language: Language, data: bytes, at: int) -> Span:
    """The whole file, or of a large one the top-level item at the offset `at`, as far as one is looked for."""
    return (0, len(data)) if len(data) <= WHOLE else top_level_item(language, data, at)


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
