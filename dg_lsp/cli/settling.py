"""Terminal frames of a settling canvas: pure functions from Drafts to text. `page.py` makes the HTML.

Knows the records and a terminal's size and colours; reads and writes nothing.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from dg_lsp.text.messages import Draft, Run

UNSURE = 3.0  # nats at which the shade is full
Size = tuple[int, int]  # columns, rows


class Color(Enum):
    """The colours of a terminal."""

    NONE = "plain text; free text is enclosed by ⟦ and ⟧"
    ANSI256 = "the 256 colours of xterm"
    TRUE = "24-bit colour"


@dataclass(frozen=True, slots=True)
class Context:
    """The text right before the canvas and right after it."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class _Span:
    """A piece of one line; `run` is None for context."""

    text: str
    run: Run | None


def around(draft: Draft, prefix: str, suffix: str) -> Context:
    """The lines around a canvas: `prefix` and `suffix` less what the canvas shows of them as anchors."""
    first = next((n for n, run in enumerate(draft.runs) if not run.anchored), len(draft.runs))
    last = next((n for n, run in reversed(list(enumerate(draft.runs))) if not run.anchored), -1)
    head = "".join(run.text for run in draft.runs[:first])
    tail = "".join(run.text for run in draft.runs[last + 1 :]) if last >= 0 else ""
    before, after = prefix.removesuffix(head).splitlines(True), suffix.removeprefix(tail).splitlines(True)
    return Context("".join(before[-8:]), "".join(after[:8]))


def mean_entropy(draft: Draft) -> float:
    """Mean entropy of the free runs in nats, each weighed by its characters; 0 where nothing is free."""
    free = [(len(run.text) or 1, run.entropy) for run in draft.runs if not run.anchored]
    return sum(n * e for n, e in free) / sum(n for n, _ in free) if free else 0.0


def shade(entropy: float) -> float:
    """Return the shade of a slot of `entropy` nats: 0 is sure, 1 is UNSURE nats or more."""
    return min(max(entropy / UNSURE, 0.0), 1.0)


def visible(text: str, newline: str = "↵\n") -> str:
    """`text` with its line ends as `newline`, tabs widened, and what could steer a terminal made harmless."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return "".join(newline if c == "\n" else _harmless(c) for c in text)


def columns(text: str) -> int:
    """Columns that `text` takes in a terminal; where terminals differ, the largest count."""
    return sum(_columns_of(c) for c in text)


def frame(draft: Draft, context: Context, color: Color, size: Size = (80, 24)) -> str:
    """One picture of the canvas: a legend, the canvas in its context, a progress line. Ends with a line feed.

    No row is wider than `size` allows and there are fewer rows than `size` has, so that `repaint` can go back
    to the first.

    1. Lay the text out as rows of spans.  2. Keep the rows around the first free one.  3. Paint them.
    """
    # 1. The last column stays empty: terminals differ in what they do after it.
    width, height = max(size[0] - 1, 8), max(size[1] - 1, 5)
    rows = _rows(draft, context, color, width)
    # 2. The legend and the progress take two rows.
    gap = next((n for n, row in enumerate(rows) if any(_is_free(s) for s in row)), len(rows) // 2)
    room = min(len(rows), height - 2)
    start = min(max(gap - min(6, room // 3), 0), len(rows) - room)
    # 3.
    shown = [_fit(_legend(color), width), *rows[start : start + room], _fit(_progress(draft), width)]
    return "".join("".join(_paint(s, color) for s in row) + "\n" for row in shown)


def repaint(previous: str, following: str) -> str:
    """Return the text that makes a terminal show `following` in place of `previous` (empty at first)."""
    rows = previous.count("\n")
    return (f"\x1b[{rows}F\x1b[J" if rows else "") + following


def _rows(draft: Draft, context: Context, color: Color, width: int) -> list[list[_Span]]:
    """The canvas between a few lines of context, folded at `width` columns."""
    before = visible("\n".join(_lines(context.before)[-4:]), "\n")
    spans = [_Span(before, None)]
    for run in draft.runs:
        spans.append(_Span(visible(run.text, "\n" if run.anchored else "↵\n"), run))
    spans.append(_Span(visible("\n".join(_lines(context.after)[:3]), "\n"), None))
    if color is Color.NONE:
        spans = list(_marked(spans))
    rows: list[list[_Span]] = [[]]
    used = 0
    for span in spans:
        for number, line in enumerate(span.text.split("\n")):
            if number:
                rows.append([])
                used = 0
            for piece, folded in _folded(line, width, used):
                if folded:
                    rows.append([])
                    used = 0
                rows[-1].append(_Span(piece, span.run))
                used += columns(piece)
    return rows


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _marked(spans: list[_Span]) -> Iterator[_Span]:
    """Neighbouring free spans as one, between marks: the picture without colours."""
    for free, group in groupby(spans, _is_free):
        members = list(group)
        if not free:
            yield from members
        else:
            yield _Span("⟦" + "".join(s.text for s in members) + "⟧", members[0].run)


def _folded(line: str, width: int, used: int) -> Iterator[tuple[str, bool]]:
    """Cut `line` so that each piece fits; the flag says that the piece begins a new row."""
    piece, folded = "", False
    for character in line:
        wide = _columns_of(character)
        if used + wide > width:
            yield piece, folded
            piece, folded, used = "", True, 0
        piece += character
        used += wide
    yield piece, folded


def _is_free(span: _Span) -> bool:
    return span.run is not None and not span.run.anchored


def _paint(span: _Span, color: Color) -> str:
    if color is Color.NONE or not span.text:
        return span.text
    return f"\x1b[{_style(span.run, color)}m{span.text}\x1b[0m"


def _style(run: Run | None, color: Color) -> str:
    """The SGR parameters of a run; both grounds are set together, so that it is legible in any theme."""
    if run is None:
        return "2"
    if run.anchored:
        return "1;" + _rgb(38, (228, 228, 228), color) + ";" + _rgb(48, (68, 68, 68), color)
    level = shade(run.entropy)
    # Dark teal to bright amber: the brightness grows too, for readers who cannot distinguish these hues.
    back = (round(255 * level), round(95 + 95 * level), round(95 * (1 - level)))
    front = (0, 0, 0) if level > 0.4 else (255, 255, 255)
    return ("4;" if run.accepted else "") + _rgb(38, front, color) + ";" + _rgb(48, back, color)


def _rgb(ground: int, rgb: tuple[int, int, int], color: Color) -> str:
    if color is Color.TRUE:
        return f"{ground};2;{rgb[0]};{rgb[1]};{rgb[2]}"
    # The 256 colours hold 24 greys and a cube of six shades of each.
    if len(set(rgb)) == 1 and 8 <= rgb[0] <= 238:
        return f"{ground};5;{232 + round((rgb[0] - 8) / 10)}"
    red, green, blue = (min(max(round((value - 55) / 40), 0), 5) for value in rgb)
    return f"{ground};5;{16 + 36 * red + 6 * green + blue}"


def _legend(color: Color) -> list[_Span]:
    if color is Color.NONE:
        return [_Span("between ⟦ and ⟧: being filled; ↵ is a line end there; all else is fixed", None)]
    levels = (("sure ", 0.0), ("to ", UNSURE / 2), ("unsure", UNSURE))
    return [
        _Span("fixed", Run("", anchored=True, accepted=True, entropy=0.0)),
        _Span(" ", None),
        *(_Span(name, Run("", anchored=False, accepted=False, entropy=level)) for name, level in levels),
        _Span(" ", None),
        _Span("accepted", Run("", anchored=False, accepted=True, entropy=0.0)),
        _Span(" ↵ line end", None),
    ]


def _progress(draft: Draft) -> list[_Span]:
    if not draft.runs:
        return [_Span(f"encoding, searching the length  {draft.milliseconds:.0f} ms", None)]
    state = f"step {draft.step}  {draft.milliseconds:.0f} ms  mean entropy {mean_entropy(draft):.2f}"
    return [_Span(state, None)]


def _fit(spans: list[_Span], width: int) -> list[_Span]:
    """`spans` cut at `width` columns; only the rows that hold no code are cut rather than folded."""
    kept = []
    for span in spans:
        text, _ = next(_folded(span.text, max(width, 0), 0))
        width -= columns(text)
        kept.append(_Span(text, span.run))
        if text != span.text:
            break
    return kept


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F", "A"} else 1


def _harmless(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode has a picture of each control character
    # These turn the direction of writing, join others, or have no width to count on.
    return (
        "\ufffd"
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        else character
    )
