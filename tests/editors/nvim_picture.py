"""Draws docs/images/neovim.svg, a moving picture of a real run: ghost text, then a function body being filled.

usage: python -m tests.editors.nvim_picture [FILE]. Neovim is the one of `make editors`; the model is `small` where it
is fetched, else the embedded one. Each frame is a screen that Neovim has drawn; waits are shortened.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from dg_lsp.checkpoints import EMBEDDED, SMALL, folder_of
from tests.editors.nvim import COLUMNS, ROWS, Editor
from tests.editors.sandbox import HERE, open_sandbox

Rows = tuple[str, ...]  # the elements of each row of the screen, and of the cursor
FILE = HERE.parents[1] / "docs/images/neovim.svg"
SHOP = '''\
class Item:
    def __init__(self, name, price, count=1):
        self.name = name
        self.price = price
        self.count = count


class Cart:
    def __init__(self):
        self.items = []

    def add(self, item):
        """Add an item."""
        self.items.append(item)

    def total(self):
        """Return the sum of price times count of all items."""
        pass

'''
WIDE, HIGH, COLUMNS_DRAWN, ROWS_DRAWN = 8.4, 18, 72, 23
PATIENCE = 90.0  # seconds: the model is loaded first
LONGEST, LAST = 1.2, 3.0  # seconds that a frame is shown at most, and that the last one is
DRAFTED = """
local space = vim.api.nvim_get_namespaces()["dg_lsp.fill"]
return #vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {}) > 0
"""
STYLE = """
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }
.frame { opacity: 0; animation-duration: %(seconds).2fs; animation-iteration-count: infinite;
  animation-timing-function: step-end; }
.last { opacity: 1; }
@media (prefers-reduced-motion: reduce) { .frame { animation: none !important; } }
"""


class Screen:
    """The cells of the screen and the cursor, kept from the events that Neovim sends to its user interface."""

    def __init__(self) -> None:
        self.cells = [[(" ", 0)] * COLUMNS for _ in range(ROWS)]
        self.looks: dict[int, dict[str, Any]] = {0: {}}
        self.default: tuple[int, int] = (0, 0xFFFFFF)
        self.cursor = (0, 0)

    def take(self, events: list[Any]) -> None:
        """Apply the events of one notification."""
        for name, *calls in events:
            for call in calls:
                if name == "grid_line":
                    self._line(*call[1:4])
                elif name == "grid_clear":
                    self.cells = [[(" ", 0)] * COLUMNS for _ in range(ROWS)]
                elif name == "grid_cursor_goto":
                    self.cursor = (call[1], call[2])
                elif name == "grid_scroll":
                    self._scroll(call[1], call[2], call[5])
                elif name == "hl_attr_define":
                    self.looks[call[0]] = call[1]
                elif name == "default_colors_set":
                    self.default = (call[0], call[1])

    def _line(self, row: int, column: int, cells: list[Any]) -> None:
        look = 0
        for text, *rest in cells:
            look = rest[0] if rest else look
            for _ in range(rest[1] if len(rest) > 1 else 1):
                self.cells[row][column] = (text, look)
                column += 1

    def _scroll(self, top: int, bottom: int, rows: int) -> None:
        part = self.cells[top:bottom]
        empty = [[(" ", 0)] * COLUMNS for _ in range(abs(rows))]
        self.cells[top:bottom] = part[rows:] + empty if rows > 0 else empty + part[:rows]


class Recorder:
    """The frames of a run: each screen that differs from the one before, and the time at which it was drawn."""

    def __init__(self, editor: Editor) -> None:
        self.editor, self.screen = editor, Screen()
        self.frames: list[tuple[float, Rows]] = []

    def take(self) -> None:
        """Apply all that Neovim has sent until now, and keep the screen if it is a new one."""
        self.editor.rpc.exec_lua("vim.rpcnotify(..., 'mark')", self.editor.rpc.channel_id)
        while (message := self.editor.rpc.next_message())[1] != "mark":
            if message[1] == "redraw":
                self.screen.take(message[2])
        drawn = drawing(self.screen)
        if not self.frames or self.frames[-1][1] != drawn:
            self.frames.append((time.monotonic(), drawn))

    def until(self, met: Callable[[], object]) -> None:
        """Record until `met`, and then for as long as a reader needs to see it."""
        end = time.monotonic() + PATIENCE
        while not met():
            assert time.monotonic() < end, self.editor.screen_line()
            self.take()
        until = time.monotonic() + LONGEST
        while time.monotonic() < until:
            self.take()

    def type(self, text: str) -> None:
        """Type as a person does, key by key."""
        for key in text:
            self.editor.keys(key)
            time.sleep(0.07)
            self.take()


def drawing(screen: Screen) -> Rows:
    """The rows of the screen as elements of an SVG, and the cursor; a text for each run of characters of one look."""
    drawn = [_row(screen, row) for row in range(ROWS_DRAWN)]
    row, column = screen.cursor
    x, y = 8 + column * WIDE, 12 + row * HIGH
    cursor = f'<rect x="{x:.1f}" y="{y}" width="2" height="{HIGH}" fill="#{screen.default[0]:06x}"/>'
    return (*drawn, cursor)


def _row(screen: Screen, row: int) -> str:
    y, column, drawn, cells = 26 + row * HIGH, 0, [], screen.cells[row][:COLUMNS_DRAWN]
    while column < len(cells):
        look, end = cells[column][1], column
        while end < len(cells) and cells[end][1] == look:
            end += 1
        text, style = "".join(cell[0] or " " for cell in cells[column:end]), screen.looks.get(look, {})
        x, wide = 8 + column * WIDE, (end - column) * WIDE
        if (ground := style.get("background")) is not None:
            box = f'x="{x:.1f}" y="{y - 14}" width="{wide:.1f}" height="{HIGH}"'
            drawn.append(f'<rect {box} fill="#{ground:06x}"/>')
        if bare := text.strip():
            x += (len(text) - len(text.lstrip())) * WIDE
            color = f"#{style.get('foreground', screen.default[0]):06x}"
            slant = ' font-style="italic"' if style.get("italic") else ""
            length = f'textLength="{len(bare) * WIDE:.1f}"'
            drawn.append(f'<text x="{x:.1f}" y="{y}" {length} fill="{color}"{slant}>{escape(bare)}</text>')
        column = end
    return "".join(drawn)


def moments(frames: list[tuple[float, Rows]]) -> list[float]:
    """The seconds at which each frame begins in the picture, and the end of the last one."""
    found = [0.0]
    for (here, _), (there, _) in pairwise(frames):
        found.append(found[-1] + min(there - here, LONGEST))
    return [*found, found[-1] + LAST]


def spans(frames: list[tuple[float, Rows]]) -> Iterator[tuple[int, int, str]]:
    """(first frame, frame after the last, elements) of each row for as long as it stays the same."""
    for row in range(ROWS_DRAWN + 1):
        at = 0
        for drawn, group in groupby(rows[row] for _, rows in frames):
            count = len(list(group))
            yield at, at + count, drawn
            at += count


def picture(frames: list[tuple[float, Rows]], ground: int, title: str) -> str:
    """The frames as one SVG, shown one after the other; where nothing moves, the last one."""
    times, keys, groups = moments(frames), {}, []
    for first, end, drawn in spans(frames):
        if not drawn:
            continue
        if (first, end) == (0, len(frames)):
            groups.append(drawn)
            continue
        name, last = f"f{first}-{end}", " last" if end == len(frames) else ""
        start, stop = times[first] / times[-1], times[end] / times[-1]
        before = "0%{opacity:0}" if first else ""
        keys[name] = f"@keyframes {name}{{{before}{start:.2%}{{opacity:1}}{stop:.2%}{{opacity:0}}}}"
        groups.append(f'<g class="frame{last}" style="animation-name:{name}">{drawn}</g>')
    width, height = COLUMNS_DRAWN * WIDE + 16, ROWS_DRAWN * HIGH + 22
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img" '
        f'aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE % {'seconds': times[-1]}}{''.join(keys.values())}</style>\n"
        f'<rect width="{width:.0f}" height="{height}" rx="6" fill="#{ground:06x}"/>\n'
        + "\n".join(groups)
        + "\n</svg>\n"
    )


def main(name: str = str(FILE)) -> None:
    """Run Neovim, record the screens and write the picture."""
    folder = folder_of(SMALL)
    checkpoint = str(folder) if folder.is_dir() else EMBEDDED
    with tempfile.TemporaryDirectory() as root, open_sandbox(Path(root), checkpoint) as sandbox:
        (sandbox.project / "shop.py").write_text(SHOP)
        with Editor(sandbox, before=["set background=dark noruler"]) as editor:
            editor.open("shop.py")
            # The first request loads the model, which the picture leaves out.
            editor.keys("Go    def __len__(self):<CR>return ")
            editor.wait(lambda: editor.sight().ghost, "no ghost text", PATIENCE)
            editor.keys("<Esc>u")
            recorder = Recorder(editor)
            editor.keys("Go")
            recorder.type("    def __len__(self):\nreturn ")
            recorder.until(lambda: editor.sight().ghost)
            editor.keys("<Tab>")
            recorder.until(lambda: True)
            editor.keys("<Esc>")
            editor.rpc.api.win_set_cursor(0, (18, 8))
            recorder.type(":DgLsp fill")
            editor.keys("<CR>")
            recorder.until(lambda: editor.rpc.exec_lua(DRAFTED))
            recorder.until(lambda: not editor.rpc.exec_lua(DRAFTED))
            recorder.take()
    model = SMALL if folder.is_dir() else EMBEDDED
    title = f"dg-lsp with the model {model} in Neovim: ghost text, then a function body; a real run, waits shortened"
    Path(name).write_text(picture(recorder.frames, recorder.screen.default[1], title), encoding="utf-8")
    print(f"{name}: {len(recorder.frames)} frames, {Path(name).stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
