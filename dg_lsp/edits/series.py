"""Series: the missing lines of an element that was put in after others of the same form, and of a kept parameter."""

import re
from collections.abc import Iterator, Mapping, Sequence

from dg_lsp.budget import check
from dg_lsp.edits.classes import class_name
from dg_lsp.edits.functions import parameter_names
from dg_lsp.edits.places import Place, Source, source_of, words_like
from dg_lsp.edits.sharing import may_share
from dg_lsp.edits.spans import LONGEST, NAME, TOKENS
from dg_lsp.gaps import Edit
from dg_lsp.source.bursts import Bursts
from dg_lsp.source.document import Document
from dg_lsp.source.lexer import is_last, line_end, line_start
from dg_lsp.source.names import binding, whole

_PART = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# Lines of an element at most.
_LINES = 3
# A line that keeps a parameter as a member: its indentation, the receiver, the name, the end.
_KEPT = re.compile(rb"([ \t]*)((?:self|this)(?:\.|->))(\w+) = \3(;?)")


def series_places(document: Document, bursts: Bursts, others: Sequence[Document]) -> Iterator[Place]:
    """Yield the edits that put in the missing lines of an element that the newest of the `bursts` has put in.

    They follow the lines of the element before it, which are as those of an earlier one, where its words are defined.
    """
    data, words, near = document.data, dict[bytes, bytes](), set[bytes]()
    for burst in reversed(bursts.recent):
        for span in burst.spans(data):
            if span.stop - span.now <= 2 * LONGEST and not burst.before[span.start : span.end].strip():
                words = _words_of(data, span.now, span.stop) | words
                near.update(NAME.findall(data, max(0, span.now - 2 * LONGEST), span.now))
        if not words:
            return
    words, near = _with_forms(data, words, near)
    count = max([1, *(data.count(b"\n", span.now, span.stop) for span in bursts.recent[-1].spans(data))])
    found = {document.line_at(m.start()) for word in words for m in whole(word).finditer(data)}
    starts, source = (*document.line_starts, len(data)), source_of(document)
    sources = [source, *(source_of(o) for o in others if any(may_share(source, o, word) for word in words))]
    # Elsewhere an element may have more lines, such as an arm of a `switch`.
    for lines in sorted({count, *range(1, _LINES + 1)}):
        places = {line - up for line in found for up in range(lines)} & {*range(len(starts) - lines)}
        for at in sorted(places):
            check()
            parts = [(starts[n], document.line_end(n + lines - 1)) for n in range(at, -1, -lines)[:4]]
            done = TOKENS.findall(
                data, starts[max(at - lines, 0)], starts[min(at + 3 * lines, len(starts) - 1)]
            )
            used = [token for token in TOKENS.finditer(data, *parts[0]) if token[0] in words]
            edits = (_continued(data, parts[0], above, words, near) for above in parts[1:])
            edit = next(filter(None, edits), None) if {*done}.isdisjoint(words[t[0]] for t in used) else None
            if edit is None or not _is_whole(source, parts[0]):
                continue
            if _are_defined(sources, [token.span() for token in used], words):
                yield document, edit


def _with_forms(
    data: bytes, words: Mapping[bytes, bytes], near: set[bytes]
) -> tuple[dict[bytes, bytes], set[bytes]]:
    """Return `words` with longer names of which each is a part, and `near` with such names of its words.

    Where `SMS` leads to `PUSH`, `send_sms` leads to `send_push` if that is in `data`.
    """
    names, parts = {*NAME.findall(data)}, {one.lower(): other for one, other in words.items()}
    known = {word.lower() for word in near}

    def other(part: re.Match[bytes]) -> bytes:
        new = parts.get(part[0].lower(), part[0])
        if part[0].isupper():
            return new.upper()
        return new.lower() if part[0].islower() else new[:1].upper() + new[1:]

    found = {name: _PART.sub(other, name) for name in names}
    forms = {one: new for one, new in found.items() if new != one and new in names}
    others = {name for name in names if known & {part.lower() for part in _PART.findall(name)}}
    return forms | dict(words), near | others


def _is_whole(source: Source, lines: tuple[int, int]) -> bool:
    """Return whether the text of `lines` is a whole element, after which another one may come.

    `case RED:` is not without its body, and after `return RED` nothing is reached.
    """
    data = source.document.data
    tokens = [token.span() for token in TOKENS.finditer(data, *lines)]
    start, end = tokens[0][0], tokens[-1][1]
    node = source.root.descendant_for_byte_range(start, end)
    if node is None or (node.start_byte == start and data[end : node.end_byte].strip()):
        return False
    return b"\n" in data[start:end] or not is_last(source.language, data, start)


def _words_of(data: bytes, now: int, stop: int) -> dict[bytes, bytes]:
    """Return the words of the element at the bytes [now, stop) by those of the one before it, in the same form."""
    # It is the same edit one byte further where the first byte is as the next one, or the last as the one before.
    while data[now : now + 1] not in b"\r\n" and data[now : now + 1] == data[stop : stop + 1]:
        now, stop = now + 1, stop + 1
    while now and data[now - 1] == data[stop - 1] and NAME.match(data, stop - 1):
        now, stop = now - 1, stop - 1
    new = TOKENS.findall(data, now, stop)
    old = TOKENS.findall(data, max(0, now - 3 * (stop - now) - 2 * LONGEST), now)[-len(new) :]
    pairs = dict(zip(old, new, strict=False))
    if not new or [pairs.get(token) for token in old] != new:
        return {}
    changed = {one: other for one, other in pairs.items() if one != other}
    # A word at the end that is nowhere else, not even after `_`, may be half of one.
    half = new[-1] in changed.values() and len(re.findall(rb"\b_?%b\b" % re.escape(new[-1]), data)) < 2
    return changed if not half and all(NAME.fullmatch(w) for pair in changed.items() for w in pair) else {}


def _continued(
    data: bytes, at: tuple[int, int], above: tuple[int, int], words: Mapping[bytes, bytes], near: set[bytes]
) -> Edit | None:
    """Return the edit that puts in the new element after the lines `at`; None if they are not as those `above` them.

    Those have other words, of an element `near` by. Punctuation at the end may differ, as `;` for `&&`.
    """
    mine, yours = (list(TOKENS.finditer(data, *span)) for span in (above, at))
    rest = max((n + 1 for n, token in enumerate(yours) if token[0] in words), default=0)
    tails = [b"".join(token[0] for token in tokens[rest:]) for tokens in (mine, yours)]
    if not 0 < rest <= len(mine) or (tails[0] != tails[1] and re.search(rb"\w|\W{4}", b" ".join(tails))):
        return None
    for one, other in ((one[0], other[0]) for one, other in zip(mine[:rest], yours, strict=False)):
        if (one not in near or one == other) if other in words else one != other:
            return None
    new = TOKENS.sub(lambda token: words.get(token[0], token[0]), data[slice(*at)])
    # Lines that are there already, but for the punctuation at their end, are not missing.
    if new.strip().rstrip(b",;&|)}]") in data:
        return None
    new = (b"\r\n" if data.startswith(b"\r\n", above[1]) else b"\n") + new
    new = data[mine[rest - 1].end() : above[1]] + new
    return Edit(yours[rest - 1].end(), at[1], new.decode("utf-8", "replace"))


def _are_defined(sources: list[Source], used: list[tuple[int, int]], words: Mapping[bytes, bytes]) -> bool:
    """Return whether the new `words` are defined in each scope and class where those `used` are, and one at all."""
    source, known = sources[0], False
    for span in used:
        old, name = source.document.data[slice(*span)], source.name_at(*span)
        mine, yours = ([n for s in sources for n in s.names(word) if n.scope] for word in (old, words[old]))
        scopes = ({n.scope: n for n in names if n.role == "member"} for names in (mine, yours))
        classes = [{*map(class_name, found.values())} for found in scopes]
        if classes[0] - classes[1]:
            return False
        if name is not None and name.role in ("variable", "type"):
            scope = binding(source.language, name, (*mine, *yours))
            if name.scope is not None or (scope and scope not in [n.scope for n in yours]):
                return False
        known = known or bool(yours)
    return known


def kept_places(source: Source, before: bytes, cursor: int) -> Iterator[Place]:
    """Yield the line that does for the next parameter what the new line in front of the `cursor` does for one.

    That is `self.name = name`, which must be new, and the next parameter must not be used yet.
    """
    data = source.document.data
    start, end = line_start(data, cursor), line_end(data, cursor)
    line = _KEPT.fullmatch(data[start:end])
    if line is None or cursor != end or line[0] in before.splitlines():
        return
    last = end - len(line[4])
    scope = source.scope_at(last - len(line[3]), last)
    body = scope.child_by_field_name("body") if scope is not None else None
    if scope is None or body is None:
        return
    names = [name for name in parameter_names(source, scope.child_by_field_name("parameters")) if name]
    if line[3] not in names[:-1]:
        return
    after = names[names.index(line[3]) + 1]
    if not words_like(after, data[body.start_byte : body.end_byte]):
        end_of_line = b"\r\n" if data.endswith(b"\r\n", 0, start) else b"\n"
        text = end_of_line + line[1] + line[2] + after + b" = " + after + line[4]
        yield source.document, Edit(end, end, text.decode())
