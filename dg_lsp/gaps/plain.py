"""Gaps in plain languages, of which no tree is read: the rest of a line, or an empty block by its indentation."""

from dg_lsp.gaps.gap import Gap
from dg_lsp.messages import Kind, Wanted
from dg_lsp.reasons import NoGap
from dg_lsp.source.brackets import State, state_from
from dg_lsp.source.document import Document
from dg_lsp.source.injections import outside
from dg_lsp.source.language import Language, containers
from dg_lsp.source.lexer import Line, indentation, leading, line_at, line_start, width

# Bytes before a cursor that are read for what is open there.
REACH = 8_000
_KINDS: tuple[Kind, ...] = ("rest_of_line", "block", "string", "comment")
_LONGEST = 1_000  # bytes of a line that opens a block


def plain_gap(language: Language, document: Document, offset: int, kind: Wanted | None) -> Gap:
    """Return the gap at `offset`: an open comment or string, an empty block, else the rest of the line; or NoGap."""
    if language.name in containers():
        raise NoGap(outside(language.name))
    data, line = document.data, line_at(document.data, offset)
    state = open_at(language, data, offset)
    block = None if state.comment or state.string else _block(language, data, offset, line)
    # A string that its line has opened and does not close is a part of the line.
    quoted = state.string and (state.string in line.after or state.begins < line.start)
    here: Kind = "comment" if state.comment else "string" if quoted else "rest_of_line"
    if kind is None and block is not None:
        return block
    if kind not in (None, here, "rest_of_line") and (kind != "block" or block is None):
        raise NoGap(f"{language.name} is read by lines, so a fill there is one of {', '.join(_KINDS)}")
    if kind == "block" and block is not None:
        return block
    found: Kind = "rest_of_line" if kind == "rest_of_line" else here
    end = offset if line.after.strip() else line.end
    return Gap(offset, end, found, leading(data, offset).decode(), asked=kind is not None)


def open_at(language: Language, data: bytes, offset: int) -> State:
    """Return the brackets, the string and the comment that are open at `offset`."""
    return state_from(language, data, offset, line_start(data, max(offset - REACH, 0)))


def _block(language: Language, data: bytes, offset: int, line: Line) -> Gap | None:
    """Return the empty block that a blank line is in: the line above opens one, and none below is deeper than that."""
    near = data[max(line.start - REACH, 0) : line.start].rstrip()
    above = near[line_start(near, len(near)) :]
    if (line.before + line.after).strip() or len(above) > _LONGEST or not language.plain.opens.search(above):
        return None
    outer = leading(above, 0)
    below = data[line.end : line.end + REACH]
    first = line.end + len(below) - len(below.lstrip())
    if first < line.end + len(below) and indentation(data, first) > width(outer):
        return None
    wanted = outer + (b"\t" if outer.startswith(b"\t") else language.indent.encode())
    if width(line.before) > width(outer):
        wanted = line.before
    missing = wanted[len(line.before) :] if wanted.startswith(line.before) else b""
    indent = (line.before + missing).decode()
    return Gap(offset, line.end, "block", indent, insert_before=missing.decode())
