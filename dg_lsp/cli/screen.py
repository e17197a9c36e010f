"""The steps of a fill: the canvas in its context, repainted in a terminal, written below each other, or as one page."""

import io
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.style import Style
from rich.text import Text

from dg_lsp.gaps import Gap
from dg_lsp.messages import Draft, Run
from dg_lsp.source.document import Document

_UNSURE = 3.0  # nats at which the shade is full
_ABOVE, _BELOW = 4, 3  # lines of context that are shown, unless the terminal is too low for them
# Categories of characters that control a terminal, change the direction of text, join others, or have no fixed width.
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Context:
    """The text right before the canvas and right after it."""

    before: str
    after: str


def around(draft: Draft, prefix: str, suffix: str) -> Context:
    """Return the lines around a canvas: `prefix` and `suffix` without the anchors at the two ends of the canvas."""
    free = [number for number, run in enumerate(draft.runs) if not run.anchored] or [len(draft.runs)]
    head = "".join(run.text for run in draft.runs[: free[0]])
    tail = "".join(run.text for run in draft.runs[free[-1] + 1 :])
    before, after = prefix.removesuffix(head).splitlines(True), suffix.removeprefix(tail).splitlines(True)
    return Context("".join(before[-_ABOVE:]), "".join(after[:_BELOW]))


def mean_entropy(draft: Draft) -> float:
    """Return the mean entropy of the free runs in nats, weighted by their characters; 0 if none was denoised."""
    free = [(len(run.text) or 1, run.entropy) for run in draft.runs if not run.anchored]
    return sum(n * e for n, e in free) / sum(n for n, _ in free) if free else 0.0


def visible(text: str, newline: str = "↵\n") -> str:
    """Return `text` with line ends as `newline`, tabs expanded, and characters replaced that control a terminal."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return "".join(newline if c == "\n" else _harmless(c) for c in text)


def picture(draft: Draft, context: Context, *, colours: bool, height: int = 10_000) -> Text:
    """Return the canvas in its context, between a legend and a line of progress.

    Without `colours` free text is between ⟦ and ⟧. Of more than `height` lines those around the first free one stay.
    """
    text = Text.assemble((visible(context.before, "\n"), "dim"), overflow="fold")
    gap = None
    for free, runs in groupby(draft.runs, lambda run: not run.anchored):
        gap = len(text) if free and gap is None else gap
        marks = ("⟦", "⟧") if free and not colours else ("", "")
        text.append(marks[0])
        for run in runs:
            shown = visible(run.text) if free else visible(run.text, "\n")
            text.append(shown, _style(run) if colours else None)
        text.append(marks[1])
    text.append(visible(context.after, "\n"), "dim")
    lines = text.split("\n", allow_blank=True)
    room = max(height - 3, 3)
    at = text.plain.count("\n", 0, gap or 0)
    first = max(min(at - min(6, room // 3), len(lines) - room), 0)
    return Text("\n", overflow="fold").join(
        [_legend(colours=colours), *lines[first : first + room], Text(_progress(draft))]
    )


class Screen:
    """Shows Drafts on `stream`: a terminal is repainted, elsewhere steps 1, 2, 4, 8 ... and the last are written.

    `sides` is the text before and after the gap. Nothing is slowed down, so that the times shown are real. Close it to
    restore the terminal's cursor.
    """

    def __init__(self, stream: TextIO, sides: tuple[str, str]) -> None:
        self.drafts: list[Draft] = []
        self.context = Context("", "")
        self._console, self._sides = Console(file=stream, highlight=False), sides
        self._live: Live | None = None
        self._written = 0

    @property
    def moves(self) -> bool:
        """Return whether the stream is a terminal that can be repainted."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def show(self, draft: Draft) -> None:
        """Show one Draft with a canvas."""
        self.context = around(draft, *self._sides)
        self.drafts.append(draft)
        if self.moves:
            if self._live is None:
                self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
                self._live.start()
            self._live.update(self._picture(draft), refresh=True)
        elif (number := len(self.drafts)) & (number - 1) == 0:
            self._write(draft)

    def close(self) -> None:
        """Leave the terminal as it was, or write the last picture if it was left out so far."""
        if self._live is not None:
            self._live.stop()
        elif self.drafts and self._written != len(self.drafts):
            self._write(self.drafts[-1])

    def _write(self, draft: Draft) -> None:
        self._written = len(self.drafts)
        self._console.print(self._picture(draft), end="\n\n")

    def _picture(self, draft: Draft) -> Text:
        colours = self._console.color_system is not None and not self._console.no_color
        return picture(draft, self.context, colours=colours, height=self._console.size.height)


def screen_of(document: Document, gap: Gap) -> Screen:
    """Return a Screen on stdout for the canvases of `gap`."""
    before = document.data[: gap.start].decode("utf-8") + gap.insert_before
    after = gap.parts[-1].insert_after + document.data[gap.span[1] :].decode("utf-8")
    return Screen(sys.stdout, (before, after))


def page(drafts: Sequence[Draft], context: Context, title: str) -> str:
    """Return an HTML page with the pictures of all `drafts` below each other; it loads nothing from elsewhere."""
    console = Console(file=io.StringIO(), record=True, width=120, color_system="truecolor", highlight=False)
    console.print(Text(visible(title), "bold"), end="\n\n")
    if not drafts:
        console.print("No step was denoised, so there is nothing to show.")
    for draft in drafts:
        console.print(picture(draft, context, colours=True), end="\n\n")
    return console.export_html(inline_styles=True)


def _style(run: Run) -> Style:
    """Return the colours of a run; both are set, so that it is legible in any theme."""
    if run.anchored:
        return Style.parse("bold #e4e4e4 on #444444")
    level = min(max(run.entropy / _UNSURE, 0.0), 1.0)
    # Dark teal to bright amber: the brightness grows too, for readers who cannot distinguish these hues.
    back = f"rgb({round(255 * level)},{round(95 + 95 * level)},{round(95 * (1 - level))})"
    front = "#000000" if level > 0.4 else "#ffffff"
    return Style.parse(f"{'underline ' if run.accepted else ''}{front} on {back}")


def _legend(*, colours: bool) -> Text:
    if not colours:
        return Text("between ⟦ and ⟧: being filled; ↵ is a line end there; all else is fixed")
    samples = (
        ("fixed", True, 0.0),
        ("sure", False, 0.0),
        ("to", False, _UNSURE / 2),
        ("unsure", False, _UNSURE),
    )
    parts = [
        Text(name, _style(Run("", fixed, accepted=False, entropy=nats))) for name, fixed, nats in samples
    ]
    accepted = Text("accepted", _style(Run("", anchored=False, accepted=True, entropy=0.0)))
    return Text(" ").join([*parts, accepted, Text("↵ line end")])


def _progress(draft: Draft) -> str:
    # A text that was written from left to right has no entropy, and a noisy canvas always has some.
    entropy = mean_entropy(draft)
    return f"step {draft.step}  {draft.milliseconds:.0f} ms" + (
        f"  mean entropy {entropy:.2f}" if entropy else ""
    )


def _harmless(character: str) -> str:
    if ord(character) < 0x20:
        return chr(0x2400 + ord(character))  # Unicode has a picture of each control character
    return "\ufffd" if unicodedata.category(character) in _UNSAFE else character
