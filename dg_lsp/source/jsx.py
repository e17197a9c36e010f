"""JSX: the marks of code that has elements with tags and text between them. Knows tags; knows no language."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

Span = tuple[int, int]
# A token that is more than plain text: its kind and its half-open span. `end` is a semicolon.
Mark = tuple[str, int, int]
# The marks of code between two offsets, with each `<` that may begin a tag.
Reader = Callable[[int, int], Iterator[Mark]]

# What JSX is made of: a tag's beginning, and the text in tags and between them.
_TAG = re.compile(rb"<(?:/\s*)?([A-Za-z_$\x80-\xff][\w$.:\x80-\xff-]*)?")
_IN_TAG = re.compile(
    rb"(?P<newline>[\r\n](?:[ \t\f]*[\r\n]+)*)|(?P<string>\"[^\"]*\"|'[^']*')|(?P<hole>\{)|(?P<end>/?>)"
    rb"|(?P<comment>/\*.*?\*/|//[^\r\n]*)|(?P<arguments><[\w$.,\[\] |]*>)|(?P<quote>[\"'])|(?P<lost>[;)\]}<])",
    re.DOTALL,
)
_BETWEEN_TAGS = re.compile(rb"(?P<newline>[\r\n](?:[ \t\f]*[\r\n]+)*)|(?P<tag><)|(?P<hole>\{)|(?P<lost>\})")
_BEFORE_TAG = re.compile(
    rb"(?:=>|[(,=?:&|{\[;!]|(?<![\w$.])(?:return|default|yield|await|case|else))\s*\Z|\A\s*\Z"
)
_GENERIC = re.compile(rb"\s*(?:,|extends\b|=)")
_NEWLINE = re.compile(rb"[\r\n]")
# The beginning of an attribute's value, and of the tag that it is in.
_ATTRIBUTE = re.compile(rb"<[A-Za-z](?:=>|[^<>;])*\s[\w:.-]+=(?:\"[^\"\r\n]*|'[^'\r\n]*)\Z")
_TAG_BYTES = 2_000  # bytes before a place in such a value in which its tag begins
_FAR = 20_000  # bytes in which a tag is looked for that closes an element


def marks(read: Reader, data: bytes, start: int, stop: int) -> Iterator[Mark]:
    """The marks of data[start:stop], of which `read` gives those of code; the text between tags is a string."""
    return (mark for mark, _ in _steps(read, data, (start, stop), [_Mode("code")]) if mark is not None)


def element_end(read: Reader, data: bytes) -> int:
    """Return where the tag begins that closes the element in whose text `data` begins; its length where none does."""
    modes = [_Mode("code"), _Mode("text", 1)]
    for _, end in _steps(read, data, (0, len(data)), modes):
        if len(modes) == 3 and modes[1].depth == 1 and modes[2].kind == "closing tag":
            return data.rfind(b"<", 0, end)
    return len(data)


def _steps(read: Reader, data: bytes, span: Span, modes: list["_Mode"]) -> "_Steps":
    """The marks of `span` and where to go on after each. `modes`: what is read, innermost last; they change."""
    # Of code it says how many braces are open in it, or what of an element.
    steps: dict[str, Callable[..., _Steps]] = {"code": partial(_in_code, read), "text": _between_tags}
    at, stop = span
    while at < stop:
        before, mode = at, modes[-1]
        for mark, end in steps.get(mode.kind, _in_tag)(data, (at, stop), modes):
            yield mark, end
            at = end
        if at == before and modes[-1] == mode:
            return


def is_attribute(data: bytes, offset: int) -> bool:
    """Return whether `offset` is in the value of an attribute, as in `<p className="a |`."""
    return _ATTRIBUTE.search(data[max(0, offset - _TAG_BYTES) : offset]) is not None


@dataclass(slots=True)
class _Mode:
    """A part of JSX that is being read: code, a tag, a closing tag, or text. depth: braces open in code, elements open
    around text."""

    kind: str
    depth: int = 0


_Steps = Iterator[tuple[Mark | None, int]]


def _in_code(read: Reader, data: bytes, span: Span, modes: list[_Mode]) -> _Steps:
    """The marks of code up to a tag, or to the brace that ends it, each with where to go on; changes `modes`."""
    at, stop = span
    mode = modes[-1]
    for mark in read(at, stop):
        kind, first, end = mark
        if kind == "tag":
            if _begins_element(data, first):
                modes.append(_Mode("text"))
                modes.append(_Mode("tag"))
                yield None, _TAG.match(data, first, stop).end()  # type: ignore[union-attr]
                return
            continue
        if data[first:end] == b"}" and len(modes) > 1 and mode.depth == 0:
            modes.pop()
            yield mark, end
            return
        mode.depth += (data[first:end] == b"{") - (data[first:end] == b"}" and mode.depth > 0)
        yield mark, end
    yield None, stop


def _in_tag(data: bytes, span: Span, modes: list[_Mode]) -> _Steps:
    """The marks of a tag, from after its name up to its end or to the code in it."""
    at, stop = span
    closing = modes[-1].kind == "closing tag"
    for found in _IN_TAG.finditer(data, at, stop):
        kind, first, end = found.lastgroup or "", found.start(), found.end()
        if kind in ("newline", "string", "comment"):
            yield (kind, first, end), end
        elif kind == "hole":
            modes.append(_Mode("code"))
            yield ("open", first, end), end
            return
        elif kind == "quote":
            # What is being typed; else the rest of the tag is read as if the quote were not there.
            if not _NEWLINE.search(data, first, stop):
                yield ("open_string", first, stop), stop
                return
        elif kind == "end":
            modes.pop()
            modes[-1].depth += -1 if closing else found[0] == b">"
            if modes[-1].depth <= 0:
                modes.pop()
            yield None, end
            return
        elif kind == "lost":
            # This was no tag, or one that is being typed.
            modes.pop()
            if found[0] != b"<" or modes[-1].depth == 0:
                _leave_element(modes)
            yield None, first
            return
    yield None, stop


def _between_tags(data: bytes, span: Span, modes: list[_Mode]) -> _Steps:
    """The marks of the text between tags, up to a tag or to the code in it."""
    at, stop = span
    while at < stop:
        found = _BETWEEN_TAGS.search(data, at, stop)
        end = found.start() if found else stop
        text = data[at:end]
        if text.strip():
            first = end - len(text.lstrip())
            yield ("string" if found else "open_text", first, end), end
        if found is None:
            yield None, stop
            return
        at = found.end()
        if found.lastgroup == "newline":
            yield ("newline", end, at), at
        elif found.lastgroup == "hole":
            modes.append(_Mode("code"))
            yield ("open", end, at), at
            return
        elif found.lastgroup == "tag":
            modes.append(_Mode("closing tag" if data.startswith(b"</", end) else "tag"))
            name = _TAG.match(data, end, stop)
            yield None, name.end() if name else at
            return
        else:
            # No brace closes in text: an element above has lost its end.
            _leave_element(modes)
            yield None, end
            return


def _leave_element(modes: list[_Mode]) -> None:
    """Continue with the code that the element at the end of `modes` is in."""
    while modes[-1].kind != "code":
        modes.pop()


def _begins_element(data: bytes, at: int) -> bool:
    """Return whether the `<` at `at` begins a tag, and neither compares nor begins type parameters."""
    if not _BEFORE_TAG.search(data, max(at - 200, 0), at):
        return False
    found = _TAG.match(data, at)
    assert found is not None
    name, end = found[1] or b"", found.end()
    if not name:
        return data.startswith(b">", end)
    if _GENERIC.match(data, end):
        return False
    # `<T>(a: T) => a` looks like an element, but for what closes one.
    return (
        not (data.startswith(b">(", end) and name[:1].isupper())
        or data.find(b"</" + name, end, end + _FAR) >= 0
    )
