"""The prompt for a line that edits may have changed, too: these edits as a unified diff, and the hunk of the line.

Networks that were trained on code have read many such diffs, whose format is that of git. After the name of a hunk's
lines comes the header of the function or class around them, as git writes it.
"""

from collections.abc import Sequence

from dg_lsp.messages import Hunk

KEPT, REMOVED, ADDED = " ", "-", "+"


def diff_of(hunks: Sequence[Hunk]) -> str:
    """Return `hunks` as a unified diff, with a header of the file before the first hunk of each."""
    text, path = list[str](), ""
    for hunk in hunks:
        text.append(opening_of(hunk, path))
        text += [_signed(REMOVED, hunk.removed), _signed(ADDED, hunk.added), _signed(KEPT, hunk.below)]
        path = hunk.path
    return "".join(text)


def opening_of(hunk: Hunk, path: str) -> str:
    """Return the beginning of `hunk`, up to its first changed line; `path` is that of the hunk before it.

    Where no line was added yet, it promises as many as were removed.
    """
    file = "" if hunk.path == path else f"--- a/{hunk.path}\n+++ b/{hunk.path}\n"
    counts = (_count(hunk.above + text + hunk.below) for text in (hunk.removed, hunk.added or hunk.removed))
    lines = " ".join(f"{sign}{hunk.line},{count}" for sign, count in zip("-+", counts, strict=True))
    scope = f" {hunk.scope}" if hunk.scope else ""
    return f"{file}@@ {lines} @@{scope}\n{_signed(KEPT, hunk.above)}"


def _signed(sign: str, lines: str) -> str:
    return "".join(f"{sign}{line}\n" for line in lines.split("\n")[:-1])


def _count(lines: str) -> int:
    return lines.count("\n")
