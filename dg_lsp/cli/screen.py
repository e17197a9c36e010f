"""The screen that shows a settling canvas: a repainted terminal, or plain text.

Writes to the stream that it is given; what it writes is made by `settling`.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

from dg_lsp.cli.settling import Color, Context, around, frame, repaint
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Gap
from dg_lsp.text.messages import Draft


def color_of(stream: TextIO, environment: Mapping[str, str] = os.environ) -> Color:
    """The colours that `stream` shows; NO_COLOR (no-color.org) and `TERM=dumb` are heeded."""
    if not stream.isatty() or environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return Color.NONE
    return Color.TRUE if environment.get("COLORTERM") in {"truecolor", "24bit"} else Color.ANSI256


class Screen:
    """Shows Drafts on `stream`: a terminal is repainted in place, elsewhere steps 1, 2, 4, 8 ... and the
    last are written below each other.

    `sides` is the text before and after the gap. Nothing is slowed down, so that the times shown are true.
    """

    def __init__(self, stream: TextIO, sides: tuple[str, str]) -> None:
        self.drafts: list[Draft] = []
        self.context = Context("", "")
        self._stream, self._sides = stream, sides
        self._color = color_of(stream)
        self._moves = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._shown, self._written = "", -1

    def show(self, draft: Draft) -> None:
        """Show one Draft; those without a canvas (encoding, search) only where the picture is repainted."""
        if draft.runs:
            self.context = around(draft, *self._sides)
            self.drafts.append(draft)
        elif not self._moves or self.drafts:
            return
        if self._moves:
            picture = self._picture(draft)
            self._stream.write(repaint(self._shown, picture))
            self._shown = picture
            self._stream.flush()
        elif (number := len(self.drafts)) & (number - 1) == 0:
            self._write_plain(draft)

    def close(self) -> None:
        """Write the last picture where it was left out so far."""
        if self.drafts and not self._moves and self._written != len(self.drafts):
            self._write_plain(self.drafts[-1])

    def _write_plain(self, draft: Draft) -> None:
        self._written = len(self.drafts)
        self._stream.write(self._picture(draft) + "\n")
        self._stream.flush()

    def _picture(self, draft: Draft) -> str:
        size = shutil.get_terminal_size()
        return frame(draft, self.context, self._color, (size.columns, size.lines))


def screen_of(document: Document, gap: Gap) -> Screen:
    """A Screen on stdout for the canvases of `gap`."""
    before = document.data[: gap.start].decode("utf-8") + gap.insert_before
    after = gap.parts[-1].insert_after + document.data[gap.span[1] :].decode("utf-8")
    return Screen(sys.stdout, (before, after))
