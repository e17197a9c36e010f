"""Room: a fill judged alone, for a gap in code that no parser can read: modern syntax, a template, a macro.

A room is a small text of a header and the gap's own statement. The tokens of a fill show what it leaves open. Knows
tokens, brackets and rooms; compares no files.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from dg_lsp.text.fills.baseline import Fault, Text, fault_at, searched
from dg_lsp.text.languages.language import Language
from dg_lsp.text.messages import BODIES
from dg_lsp.text.syntax.brackets import State, closers, read, state_at, unpaired
from dg_lsp.text.syntax.items import head_of
from dg_lsp.text.syntax.lexer import leading, line_end, line_start, tokens

# So many bytes behind a gap are looked at for brackets that close what a fill has opened.
REACH = 20_000


@lru_cache(maxsize=2)
def room_of(language: Language, kind: str, before: bytes, after: bytes) -> Text | None:
    """Return a neutral filler in a small text like that around the gap, which parses; None if none does.

    For a statement in a method that no parser can read it is that method's header, the filler and what closes both.
    The last answers are kept, since all candidates of one request ask for the same.
    """
    state = state_at(language, before, len(before))
    if state.string or state.comment:
        return None
    here = line_start(before, len(before))
    line = here if kind in BODIES else min(max(state.line, 0), here)
    rest = b"" if kind in BODIES else after[: line_end(after, 0)]
    rooms = (
        room
        for header in _headers(language, before, state, line)
        for below in _below(language, kind, after)
        for room in _rooms(language, kind, (header, before[line:], rest, below))
    )
    return next((room for room in rooms if room.clean), None)


def left_open(language: Language, kind: str, parts: tuple[bytes, bytes, bytes]) -> tuple[Fault, ...]:
    """Return a fault if the fill of `parts` closes or opens brackets, or begins a string or comment, for others to end.

    It may close what its own statement or line has opened: in `f(a|` the fill `, b)` does. What it opens may be closed
    on the rest of its line, as `g(` in `f(|))` is, or below it, if that closes something that nothing else has opened.
    """
    before, fill, after = parts
    state = state_at(language, before, len(before))
    if state.string or state.comment:
        if not is_misread(before, state):
            return ()
        state = replace(state, brackets=b"", opened=(), string=b"", comment=False)
    first = min(state.line, line_start(before, len(before)))
    pairs = zip(state.brackets, state.opened, strict=True)
    own = b"" if kind in BODIES else bytes(bracket for bracket, at in pairs if at >= first)
    rest = b"" if kind in BODIES else after[: line_end(after, 0)]
    left = bytearray(own)
    if wrong := _wrong_token(language, fill, left):
        return wrong
    if comment := open_comment(language, fill, rest):
        return comment
    opened = unpaired(language, rest, bytes(left)).outer - unpaired(language, rest, own).outer
    if opened > len(unpaired(language, after[:REACH], state.brackets).closers):
        return (fault_at(fill, len(fill), len(fill), f"a missing `{closers(bytes(left[-1:])).decode()}`"),)
    return ()


def is_complete(language: Language, kind: str, parts: tuple[bytes, bytes, bytes]) -> bool:
    """Return whether the fill of `parts` is code that leaves nothing for others to end."""
    state = state_at(language, parts[0], len(parts[0]))
    quoted = state.string or state.comment or state.text or parts[1].endswith(b"\\")
    return not (quoted or left_open(language, kind, parts))


def _wrong_token(language: Language, fill: bytes, opened: bytearray) -> tuple[Fault, ...]:
    """Return a fault at the first token of `fill` that no text before it explains.

    `opened` are the brackets that are open before the fill, the innermost last, and then those behind it.
    """
    word = b""
    for token in tokens(language, fill, 0, len(fill)):
        text, what = fill[token.start : token.end], ""
        if text == b":" and word in language.words.blocks and language.style == "brace":
            what = f"unexpected `{word.decode()}:`"
        elif token.kind == "close" and (not opened or closers(bytes([opened.pop()])) != text):
            what = "an unmatched closing bracket"
        elif token.kind == "open_string":
            what = "an unclosed string"
        if what:
            return (fault_at(fill, token.start, len(fill), what),)
        opened += text if token.kind == "open" else b""
        word = word if token.kind == "space" else text
    return ()


def is_misread(before: bytes, state: State) -> bool:
    """Return whether `state`, of a gap in code behind `before`, is in a string or comment that began lines above.

    The quotes above are broken then, and a fill has to be complete by itself.
    """
    return 0 <= state.begins < line_start(before, len(before))


def is_closed(language: Language, fill: bytes) -> bool:
    """Return whether `fill` closes all brackets that it opens, and no others, and is no header whose body is to
    follow.
    """
    found = unpaired(language, fill)
    headed = language.style == "indent" and fill.rstrip().endswith(b":")
    return not (found.closers or found.openers or headed)


def closes_more(language: Language, before: bytes, text: bytes, after: bytes) -> bool:
    """Return whether with `text` between `before` and `after` more brackets are closed than opened than without."""
    state = state_at(language, before, len(before))
    if state.string or state.comment:
        return False
    with_text, without = (
        unpaired(language, t, state.brackets) for t in (text + after[:REACH], after[:REACH])
    )
    return len(with_text.closers) > len(without.closers)


def ended_comment(language: Language, fill: bytes) -> tuple[Fault, ...]:
    """Return a fault if `fill`, which is code, ends a comment that it has not begun.

    No tree of a text with errors shows that: `*/` may be read as two operators.
    """
    ends = [end.encode() for _, end in language.block_comments]
    if not any(end in fill for end in ends):
        return ()
    for token in tokens(language, fill, 0, len(fill)):
        if token.kind == "other" and (end := next((e for e in ends if fill.startswith(e, token.start)), b"")):
            return (
                fault_at(fill, token.start, token.start + len(end), "the end of a comment that never began"),
            )
    return ()


def open_comment(language: Language, fill: bytes, rest: bytes) -> tuple[Fault, ...]:
    """Return a fault if `fill` ends in a comment that takes in the `rest` of its line or what is below it.

    The trees of some grammars do not show it: for one of Go `f() /* x` is a division.
    """
    found = [
        token for token in tokens(language, fill, 0, len(fill)) if token.kind not in ("space", "newline")
    ]
    if not found or found[-1].kind != "comment":
        return ()
    comment = fill[found[-1].start : found[-1].end]
    pairs = [(begin.encode(), end.encode()) for begin, end in language.block_comments]
    shut = next(
        (comment.endswith(end, len(begin)) for begin, end in pairs if comment.startswith(begin)), None
    )
    if shut or (shut is None and not rest.strip()):
        return ()
    return (fault_at(fill, found[-1].start, len(fill), "an unclosed comment"),)


def _headers(language: Language, before: bytes, state: State, line: int) -> Iterator[bytes]:
    """Yield headers of bodies that may contain the statement that begins at `line`, the likeliest first."""
    if language.style == "indent":
        yield language.room("function") + b"\n" if before[line : line + 1].isspace() else b""
        return
    opened = [
        o for o in read(language, before, state.start, len(before)).stack if o.at < line and o.bracket == b"{"
    ]
    heads = [(o.at, head) for o in opened if (head := head_of(language, before, o.line, o.at))]
    if not heads:
        yield b""
        return
    at, head = heads[-1]
    own = before[head.start : at + 1] + b"\n"
    inside = {"function": b"class", "block": b"function"}.get(head.owner)
    if inside != b"function":
        yield own
    if inside is not None:
        yield language.room("class" if inside == b"class" else "function") + b"\n" + own
    yield language.room(head.owner) + b"\n"


def _below(language: Language, kind: str, after: bytes) -> Iterator[bytes]:
    """Yield texts that may follow the gap's line: some statement where there is one, then nothing."""
    below = after[line_end(after, 0) :].lstrip()
    if below.startswith(b"{") and kind not in BODIES:
        yield b"{}\n"
    # The indentation of the gap's line may not be the block's.
    if (
        language.style == "brace"
        and kind not in BODIES
        and below
        and not below.startswith((b"}", b")", b"]"))
    ):
        yield language.words.member + b"\n"
    yield b""


def _rooms(language: Language, kind: str, parts: tuple[bytes, bytes, bytes, bytes]) -> Iterator[Text]:
    """Yield the best filler between a header with the beginning of a statement, and its rest and what is below it.

    The rest of `f(a|` is `)`, what a statement may end with, and what closes the header.
    """
    header, begun, rest, below = parts
    before = header + begun
    state = state_at(language, before + rest, len(before + rest), 0)
    own = [at for at in state.opened if at >= len(header)]
    outer = (
        b"\n"
        + leading(begun, 0)
        + below
        + state.closing(at for at in state.opened if at < len(header))
        + b"\n"
    )
    for end in dict.fromkeys((b"", *language.words.ends)) if own else (b"",):
        yield searched(language, kind, before, rest + state.closing(own) + end + outer)
