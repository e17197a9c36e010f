"""What a broken line of an offside language (Python) may lack at the cursor: small insertions, the likeliest first.

Knows what is open at the cursor; knows no tree.
"""

import re
from collections.abc import Iterator
from itertools import islice

from dg_lsp.text.documents.lines import line_end, line_start, width
from dg_lsp.text.syntax.indented import tokens
from dg_lsp.text.syntax.tokens import State, closers

# A tree that so many insertions do not mend is damaged elsewhere too, and indentation serves better.
TRIED = 40
# Behind so many closed brackets of a list it may go on below.
MOST_CLOSED = 8
_COMPOUND = re.compile(rb"(?:async|def|class|if|elif|else|for|while|with|try|except|finally|match|case)\b")
_DEF = re.compile(rb"(?:async[ \t]+)?def\b|class\b")
_DANGLING = re.compile(
    rb"(?:(?<!\.\.)\.|[=+\-*/%&|^<>~,@]|\b(?:and|or|not|in|is|if|else|lambda|return|import|from|as|await|yield|for|assert|raise|del))"
    rb"[ \t]*\Z"
)
_FILLER = b"_g_"


def candidates(data: bytes, offset: int, state: State) -> Iterator[tuple[int, int, bytes]]:
    """Replacements (start, end, text) at the cursor, where `state` is open, cheapest first."""
    # What a parser takes for sound although it dangles is not mended by nothing.
    for text in islice(filter(None, insertions(data, offset, state)), TRIED):
        yield offset, offset, text
    eol = line_end(data, offset)
    if state.brackets:
        yield eol, eol, closers(state.brackets)
    # Last of all the whole line gives way, so that what is round it can be read.
    first = min(state.line + len(data[state.line : offset]) - len(data[state.line : offset].lstrip()), offset)
    if not _DEF.match(data[first:eol]):
        yield first, eol, b"if _g_:" if _deeper(data, first, eol) else _FILLER


def dangles(data: bytes, offset: int, state: State) -> bool:
    """Whether the line ends at `offset` with something that wants an operand, which a parser then takes from below."""
    if state.brackets or state.string or state.comment or data[offset : line_end(data, offset)].strip():
        return False
    return _DANGLING.search(data, state.line, offset) is not None


def insertions(data: bytes, offset: int, state: State) -> Iterator[bytes]:
    """What may be inserted at `offset`, where `state` is open, without touching any other byte."""
    eol = line_end(data, offset)
    rest = data[offset:eol]
    closed = max(_surplus(rest), 0)
    shut = closers(state.brackets)
    close = closers(state.brackets[: max(len(state.brackets) - closed, 0)])
    header = bool(_COMPOUND.match(data[state.line : offset].lstrip() or rest.lstrip()))
    colons = ([b":", b": pass"] if _deeper(data, state.line, eol) else [b": pass", b":"]) if header else []
    # A list may go on below, after some of its brackets, with an item or an operand.
    joints = (b"", b",", b" +") if shut else ()
    further = [shut[:count] + joint for count in range(min(len(shut), MOST_CLOSED) + 1) for joint in joints]
    ends = (b"", close, *(close + colon for colon in colons), *further)
    operands = _operands(data, offset, state)
    if state.string:
        operands = [state.string, b"}" + state.string, b"_g_}" + state.string]
    yield from dict.fromkeys(text for operand in operands for end in ends if (text := operand + end))


def _operands(data: bytes, offset: int, state: State) -> list[bytes]:
    """What may stand between a half-written line and what closes it."""
    # The last ones stand for a bracket or string that was opened on the rest of the line.
    opened = [prefix + bracket for bracket in (b"(", b"[", b"{") for prefix in (b"", _FILLER)]
    operands = [
        b"",
        _FILLER,
        b" in _g_",
        b" else _g_",
        b": _g_",
        b" and _g_",
        b"= _g_",
        b" + _g_",
        b" as _g_",
    ]
    if _DEF.match(data[state.line : offset].lstrip()):
        operands.append(b"_g_()" if data[:offset].endswith((b" ", b"\t")) else b"()")
    return operands + opened + [b'"""', b"'''", b'""']


def _surplus(rest: bytes) -> int:
    """How many brackets `rest` closes that it does not open."""
    depth = surplus = 0
    for token in tokens(rest, 0, len(rest)):
        depth += (token.kind == "open") - (token.kind == "close")
        surplus = max(surplus, -depth)
    return surplus


def _deeper(data: bytes, line: int, eol: int) -> bool:
    """Whether the next line with text is deeper than the one at `line`."""
    below = re.compile(rb"[\r\n]+(?:[ \t\f]*[\r\n]+)*([ \t\f]*)[^\s]").match(data, eol)
    start = line_start(data, line)
    here = re.compile(rb"[ \t\f]*").match(data, start)
    assert here is not None
    return below is not None and width(below[1]) > width(here[0])
