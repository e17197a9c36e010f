"""Imports: the uses of names that an import has bound, where that was replaced by an import of others."""

import re
from collections.abc import Iterator

from dg_lsp.text.documents.bursts import Burst, Bursts
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.repeats.classes import Place, Source
from dg_lsp.text.repeats.lines import NAME
from dg_lsp.text.repeats.renames import is_import, words_like
from dg_lsp.text.syntax.lexer import line_end, line_start
from dg_lsp.text.syntax.names import receiver_of

# The newest bursts in which an import is looked for.
_RECENT = 3
_STATEMENT = re.compile(rb"\s*(?:import|from|use|using)\b")
# A line of a list of packages, with the name that the file gives to one.
_PACKAGE = re.compile(rb"\s*(?:import\s+)?(?:(\w+)\s+)?\"(?:[^\"]*/)?(\w+)\"\s*")
_MEMBERS = re.compile(rb"from\s+[\w.]+\s+import\s+(.*)|[^{]*{([^}]*)}")
_FROM = re.compile(rb"\bfrom\s*[\"'].*|[#;].*|//.*")
_WORDS = re.compile(rb"^\s*(?:import|from|use|using)(?:\s+(?:static|type))?\b")


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
    words, others = ({word for word, _ in found} for found in (gone, come))
    kinds = [{whole for _, whole in found} for found in (gone, come)]
    if len(words) == len(others) == 1 and words != others and kinds[0] == kinds[1]:
        yield from _replaced(source, bursts, words.pop(), others.pop())


def _replaced(source: Source, bursts: Bursts, old: bytes, new: bytes) -> Iterator[Place]:
    """Yield the edits that put in the `new` name for the `old` one, which nothing binds any more.

    Only lines that were changed have the new one.
    """
    data = source.document.data
    spans = [span for burst in bursts.recent for span in (*burst.spans(data), *burst.later.spans)]
    mine = {line_start(data, span.now) for span in spans}
    lines = [line for line in mine if words_like(new, data[line : line_end(data, line)])]
    used = sum(words_like(new, data[line : line_end(data, line)]) for line in lines)
    names = source.names(old)
    if words_like(new, data) > used or any(n.scope is not None for n in names):
        return
    for name in names:
        if name.role in ("variable", "type") and not is_import(name.place):
            yield source.document, Edit(name.start, name.end, new.decode())


def _bound(burst: Burst, data: bytes) -> tuple[list[tuple[bytes, bool]], list[tuple[bytes, bool]]]:
    """Return the names that the imports among the changed lines bind, before the `burst` and now."""
    spans = burst.spans(data)
    if not spans:
        return [], []
    texts = (
        (burst.before, spans[0].start, spans[-1].end),
        (data, spans[0].now, spans[-1].stop),
    )
    lines = [text[line_start(text, start) : line_end(text, end)].splitlines() for text, start, end in texts]
    kept = {*lines[0]} & {*lines[1]}
    old, new = ([b for line in some if line not in kept for b in names_bound(line)] for some in lines)
    return old, new


def names_bound(line: bytes) -> list[tuple[bytes, bool]]:
    """Return the names that the import in `line` binds, and for each if it is a module or another whole.

    `import a.b` binds `a`, and `from a import b, c as d` binds `b` and `d`, which are members.
    """
    if package := _PACKAGE.fullmatch(line):
        return [(package[1] or package[2], True)]
    if not _STATEMENT.match(line):
        return []
    text, found = _FROM.sub(b"", line), list[tuple[bytes, bool]]()
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
