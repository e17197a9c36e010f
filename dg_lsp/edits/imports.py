"""Imports: the uses of a name in place of which another one is imported, or called, now."""

import re
from collections.abc import Iterator, Sequence

from dg_lsp.edits.calls import call_of
from dg_lsp.edits.classes import receiver_text
from dg_lsp.edits.places import Place, Source, is_import, words_like
from dg_lsp.edits.renames import Renamed, rename_places
from dg_lsp.edits.spans import NAME
from dg_lsp.gaps import Edit
from dg_lsp.source.bursts import Burst, Bursts
from dg_lsp.source.document import Document
from dg_lsp.source.history import Change
from dg_lsp.source.lexer import line_end, line_start
from dg_lsp.source.names import Name, receiver_of

# The newest bursts in which an import is looked for.
_RECENT = 3
_STATEMENT = re.compile(rb"\s*(?:import|from|use|using)\b")
# A line of a list of packages, with the name that the file gives to one.
_PACKAGE = re.compile(rb"\s*(?:import\s+)?(?:(\w+)\s+)?\"(?:[^\"]*/)?(\w+)\"\s*")
_MEMBERS = re.compile(rb"from\s+[\w.]+\s+import\s+(.*)|[^{]*{([^}]*)}")
_FROM = re.compile(rb"\bfrom\s*[\"'].*|[#;].*|//.*")
_WORDS = re.compile(rb"^\s*(?:import|from|use|using)(?:\s+(?:static|type))?\b")

# A name that an import binds; True if it is a module or another whole, False for a member of one.
Bound = tuple[bytes, bool]


def imported_places(source: Source, bursts: Bursts) -> Iterator[Place]:
    """Yield the edits of the uses of a name that one of the newest `bursts` has removed from the imports.

    1. Members of a module that is not imported whole any more are used alone: `sleep()` for `time.sleep()`.  2. A name
    that nothing binds any more becomes the only one that was put in, if nothing else uses that.
    """
    bound = [_bound(burst, source.document.data) for burst in bursts.recent[-_RECENT:]]
    old, new = ({one for found in bound for one in found[side]} for side in (0, 1))
    gone, come = old - new, new - old
    # 1.
    members = sorted(word for word, whole in come if not whole)
    for module in (word for word, whole in gone if whole):
        for name in (n for member in members for n in source.names(member)):
            receiver = receiver_of(name) if name.role == "member" else None
            if receiver is not None and receiver.text == module:
                text = (name.node.text or b"").decode()
                yield source.document, Edit(receiver.start_byte, name.end, text)
    # 2.
    if len(gone) == len(come) == 1:
        (one, was_whole), (other, is_whole) = *gone, *come
        if one != other and was_whole == is_whole:
            yield from _uses_replaced(source, bursts, one, other)


def _bound(burst: Burst, data: bytes) -> tuple[list[Bound], list[Bound]]:
    """Return the names that the imports among the changed lines bind, before the `burst` and now."""
    spans = burst.spans(data)
    if not spans:
        return [], []
    texts = ((burst.before, spans[0].start, spans[-1].end), (data, spans[0].now, spans[-1].stop))
    lines = [text[line_start(text, start) : line_end(text, end)].splitlines() for text, start, end in texts]
    kept = {*lines[0]} & {*lines[1]}
    old, new = ([b for line in some if line not in kept for b in names_bound(line)] for some in lines)
    return old, new


def _uses_replaced(source: Source, bursts: Bursts, old: bytes, new: bytes) -> Iterator[Place]:
    """Yield the edits that put in the `new` name for the `old` one, which nothing binds any more.

    Only lines that were changed have the new one.
    """
    data = source.document.data
    spans = [span for burst in bursts.recent for span in (*burst.spans(data), *burst.later.spans)]
    mine = {line_start(data, span.now) for span in spans}
    used = sum(words_like(new, data[line : line_end(data, line)]) for line in mine)
    names = source.names(old)
    if words_like(new, data) > used or any(n.scope is not None for n in names):
        return
    for name in names:
        if name.role in ("variable", "type") and not is_import(name.place):
            yield source.document, Edit(name.start, name.end, new.decode())


def names_bound(line: bytes) -> list[Bound]:
    """Return the names that the import in `line` binds.

    `import a.b` binds `a`, and `from a import b, c as d` binds `b` and `d`, which are members.
    """
    if package := _PACKAGE.fullmatch(line):
        return [(package[1] or package[2], True)]
    if not _STATEMENT.match(line):
        return []
    text, found = _FROM.sub(b"", line), list[Bound]()
    members = _MEMBERS.search(text)
    inside = (members[1] or members[2] or b"") if members is not None else b""
    for part in inside.split(b","):
        found += [(word, False) for word in NAME.findall(part)[-1:]]
    text = text[: members.start()] if members is not None and members[1] is not None else text.split(b"{")[0]
    for part in _WORDS.sub(b"", text).rstrip(b"; ").split(b","):
        words = NAME.findall(part)
        # A path in front of braces binds nothing.
        if words and not part.rstrip().endswith((b"::", b".")):
            first = words[0] if b"import " in line and b" as " not in part and b";" not in line else words[-1]
            found.append((first, True))
    return found


def reimported_places(
    source: Source, before: bytes, span: Change, others: Sequence[Document]
) -> Iterator[Place]:
    """Yield the places of the name that the import at `span` has had, if it has another one now, as without `as np`."""
    data = source.document.data
    old, line = (
        text[line_start(text, at) : line_end(text, at)]
        for text, at in ((before, span.start), (data, span.now))
    )
    if b"," in line or line.split()[:1] not in ([b"import"], [b"from"], [b"use"], [b"using"]):
        return
    first, last = (NAME.findall(_FROM.sub(b"", text)) for text in (old, line))
    if first and last and first[-1] != last[-1]:
        end = line_start(data, span.now) + len(_FROM.sub(b"", line).rstrip().rstrip(b";\"'"))
        count = max(words_like(last[-1], data) - words_like(last[-1], before), 0) + 1
        renamed = Renamed(first[-1], last[-1], (end - len(last[-1]), end), count)
        yield from rename_places(source, renamed, others)


def replaced_places(source: Source, renamed: Renamed, lines: set[int], *, twice: bool) -> Iterator[Place]:
    """Yield the edits that put in another name wherever one is used that `source` does not define itself.

    The old name is not defined any more, and the new one is in one of the `lines` that were changed, by their offsets:
    those of `import numpy`; or it is the imported one, as in `use std::collections::BTreeMap`. Or a call was changed in
    this way `twice`: then it is done in the other calls.
    """
    edited, old = source.name_at(*renamed.at), source.names(renamed.old)
    if edited is None or edited.scope is not None or edited.role == "keyword":
        return
    if any(n.scope is not None and not is_import(n.place) for n in old):
        return
    imported = _is_imported(source, renamed, edited)
    if edited.role == "other" and not imported:
        return
    if not any(n.scope is not None for n in old) and (
        imported or _is_defined_in(source, renamed.new, lines, edited)
    ):
        found = [n for n in old if n.role in ("variable", "type")]
    elif twice and call_of(edited) is not None:
        found = [n for n in old if n.role == edited.role and call_of(n) is not None]
        found = [n for n in found if n.role != "member" or receiver_text(n) == receiver_text(edited)]
    else:
        return
    yield from ((source.document, Edit(n.start, n.end, renamed.new.decode())) for n in found)


def _is_imported(source: Source, renamed: Renamed, edited: Name) -> bool:
    """Return whether the new name is what an import binds now, and is nowhere else.

    That is the last name of its path; the others are none of the file's.
    """
    data = source.document.data
    is_last = data[edited.end : edited.end + 1] not in (b".", b":", b"/")
    return is_last and is_import(edited.place) and words_like(renamed.new, data) == renamed.count


def _is_defined_in(source: Source, new: bytes, lines: set[int], edited: Name) -> bool:
    """Return whether one of the `lines` defines the `new` name; of a member none does."""
    data = source.document.data
    places = (n.start for n in source.names(new) if n.scope is not None)
    return edited.role != "member" and any(line_start(data, at) in lines for at in places)
