"""The guard: the last look at an edit, which compares the file before and after it and refuses what does harm.

It is told the gap and the edit, and knows nothing of how either was found (laws 5 and 10).
"""

import re
from functools import lru_cache

import tree_sitter
from tree_sitter import Node, Tree

from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills.baseline import WHOLE, Text, complaint, errors_of
from dg_lsp.text.fills.check import compared, faults_of_edit
from dg_lsp.text.fills.edit import Edit
from dg_lsp.text.gaps.gap import Gap
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.syntax.bodies import MARKER
from dg_lsp.text.syntax.items import window
from dg_lsp.text.syntax.lexer import Span, line_end

# How many bytes behind a gap strings and brackets are compared; a quote too many shows at the next one.
REACH = 20_000
_OTHERWISE = "the fill would change how the text behind it is read: a string or a bracket ends elsewhere"
_BRACKETS = '["(" ")" "[" "]" "{" "}"] @bracket'


def harm_of(document: Document, gap: Gap, edit: Edit) -> str:
    """Why `edit`, made for `gap` of `document`, must not be applied, as a sentence; empty where it does no harm.

    1. It replaces the gap and nothing else.  2. What was typed there stays, unless the gap was asked for by name; so do
    comments in a stub.  3. It adds no syntax error: what parsed before parses afterwards.  4. What stands behind the
    gap is read as before: the same strings, comments and brackets, in the same bodies.
    """
    if (edit.start, edit.end) != (gap.start, gap.end):
        return "the fill would change text outside of its gap"
    language = load_language(document.language)
    if lost := _lost(language, document, gap):
        return f"the fill would delete `{lost}`"
    # A fill of which its place leaves nothing would only delete what is in the gap.
    if not edit.text.removeprefix(gap.insert_before).removesuffix(gap.insert_after).strip():
        return "nothing of the fill fits into the gap"
    scope = _scope(language, document.data, edit.start)
    if edit.end > scope[1]:
        return "the gap goes on beyond the code that can be checked; fill a smaller one"
    if faults := faults_of_edit(document, gap, edit):
        return f"the fill would add a syntax error: {faults[0].message}"
    return _misread(language, document, gap, edit, scope)


def _lost(language: Language, document: Document, gap: Gap) -> str:
    """What begins with the first word in the gap that the edit would delete and may not.

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


def _misread(language: Language, document: Document, gap: Gap, edit: Edit, scope: Span) -> str:
    """Steps 3 and 4 of `harm_of`, in the `scope` of the document."""
    start, stop = scope
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
    # The file is broken as it stands, so it is compared as it would be with a filler that means nothing.
    neutral, filled = compared(document, gap, edit)
    is_sound, is_whole = _is_sound(language, new), _is_whole(gap, old, neutral)
    if _is_sound(language, neutral) and (filled.clean or not is_sound):
        changed = _changed(language, gap, neutral, filled)
        # What was read in a part of the file, or with guessed ends, may be read otherwise in the file itself.
        if is_whole or (changed and not is_sound):
            return changed
    return _worse(language, gap, old, text)


def _is_whole(gap: Gap, old: Text, neutral: Text) -> bool:
    """Whether `neutral` is `old` with another fill, and neither a part of it nor longer at its ends."""
    around = len(old.before + old.after) + len((gap.insert_before + gap.insert_after).encode())
    return len(neutral.before + neutral.after) == around


def _worse(language: Language, gap: Gap, old: Text, fill: bytes) -> str:
    """What is worse in a broken file with `fill` in its gap than in the file as it stands, `old`."""
    # A parser that goes on from an older tree recovers otherwise than one that begins anew.
    new, filler = (_parsed(language, old, text) for text in (fill, _filler(language, gap)))
    # A line that was asked for may open the string that the text behind it closes.
    if _is_sound(language, new) and (_is_asked_line(gap) or not _may_quote(language, fill)):
        return ""
    # One quote too many may turn all errors into a single one; a span may begin what its last line ends.
    if gap.kind != "span" and _marks(language, new) not in (_marks(language, old), _marks(language, filler)):
        return _OTHERWISE
    most = (0, 0) if filler.clean else _error_counts(old)
    if any(count > limit for count, limit in zip(_error_counts(new), most, strict=True)):
        return "the fill would add a syntax error to a file that has some"
    return ""


def _error_counts(text: Text) -> tuple[int, int]:
    """How many different errors the tree of `text` has, and how many of them it shows as a node of their own.

    A parser may show what it has hidden before, or miss the same twice in one place.
    """
    found = {
        (n.type, n.start_byte, n.end_byte, n.is_error or n.is_missing) for n in errors_of(text.tree.root_node)
    }
    return len(found), sum(shown for *_, shown in found)


def _is_asked_line(gap: Gap) -> bool:
    """Whether a line or a span was asked for by name, which may begin what ends behind it."""
    return gap.asked and gap.kind in ("rest_of_line", "span")


def _may_quote(language: Language, fill: bytes) -> bool:
    """Whether `fill` holds what can begin or end a string or a comment."""
    marks = (language.comment, *(mark for pair in language.block_comments for mark in pair))
    quotes = (mark for string in language.strings for mark in (string.open, string.close))
    return any(mark in fill for mark in (*quotes, *(mark.encode() for mark in marks)))


def _filler(language: Language, gap: Gap) -> bytes:
    """What means nothing in `gap`, with what is inserted round it."""
    return f"{gap.insert_before}{language.placeholder(gap.kind)}{gap.insert_after}".encode()


def _parsed(language: Language, text: Text, fill: bytes) -> Text:
    """`text` with another fill, parsed from its beginning."""
    return Text(text.before, fill, text.after, language.parse(text.before + fill + text.after))


def _is_sound(language: Language, text: Text) -> bool:
    """Whether `text` has no error; tree-sitter also takes Python whose indentation is wrong."""
    return text.clean and (language.name != "python" or complaint(text.data) is None)


def _changed(language: Language, gap: Gap, old: Text, new: Text) -> str:
    """What of the text behind the gap is read otherwise in `new` than in `old`.

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
    cursor = tree_sitter.QueryCursor(_brackets(language))
    cursor.set_byte_range(end, end + REACH)
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


@lru_cache(maxsize=2)
def _tree(language: Language, data: bytes) -> Tree:
    """The tree of a text; the last ones are kept, since each candidate of one request asks for it."""
    return language.parse(data)


@lru_cache
def _brackets(language: Language) -> tree_sitter.Query:
    return tree_sitter.Query(language.grammar, _BRACKETS)
