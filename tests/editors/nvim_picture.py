"""Draws docs/editors/neovim.svg from a real run: ghost text, and a fill while it settles.

usage: python -m tests.editors.nvim_picture [FILE]. Neovim is the one of `make editors`, the model the embedded one.
"""

import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from tests.editors.nvim import COLUMNS, ROWS, Editor
from tests.editors.sandbox import HERE, open_sandbox

FILE = HERE.parents[1] / "docs/editors/neovim.svg"
SHOP = '''class Cart:
    def __init__(self, items):
        self.items = items
        self.discount = 0

    def add(self, item):
        self.items.append(item)

    def count(self):
        """Return the number of items."""
        pass

    def remove(self, item):
{indent}
'''.format(indent=" " * 8)
WIDE, HIGH, COLUMNS_DRAWN, ROWS_DRAWN = 8.4, 18, 72, 16
PATIENCE = 90.0  # seconds: the model is loaded first
DRAFTED = """
local space = vim.api.nvim_get_namespaces()["dg_lsp.fill"]
return #vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {}) > 0
"""


class Screen:
    """The cells of the screen, kept from the events that Neovim sends to its user interface."""

    def __init__(self) -> None:
        self.cells = [[(" ", 0)] * COLUMNS for _ in range(ROWS)]
        self.looks: dict[int, dict[str, Any]] = {0: {}}
        self.default: tuple[int, int] = (0, 0xFFFFFF)

    def take(self, events: list[Any]) -> None:
        """Apply the events of one notification."""
        for name, *calls in events:
            for call in calls:
                if name == "grid_line":
                    self._line(*call[1:4])
                elif name == "grid_clear":
                    self.cells = [[(" ", 0)] * COLUMNS for _ in range(ROWS)]
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


def drain(editor: Editor, screen: Screen) -> None:
    """Apply all that Neovim has sent until now."""
    editor.rpc.exec_lua("vim.rpcnotify(..., 'mark')", editor.rpc.channel_id)
    while True:
        _, name, events = editor.rpc.next_message()
        if name == "mark":
            return
        if name == "redraw":
            screen.take(events)


def panel(screen: Screen, title: str, top: float) -> str:
    """The screen as SVG, with a title above it, `top` pixels from the top of the picture."""
    back, height = f"#{screen.default[1]:06x}", ROWS_DRAWN * HIGH + 16
    drawn = [
        f'<text x="4" y="{top + 15}" class="title">{escape(title)}</text>',
        f'<rect x="0" y="{top + 24}" width="{COLUMNS_DRAWN * WIDE + 16:.0f}" height="{height}" rx="6" fill="{back}"/>',
    ]
    for row in range(ROWS_DRAWN):
        y = top + 24 + 20 + row * HIGH
        for column, (text, look) in enumerate(screen.cells[row][:COLUMNS_DRAWN]):
            style = screen.looks.get(look, {})
            x = 8 + column * WIDE
            if (background := style.get("background")) is not None:
                drawn.append(
                    f'<rect x="{x:.1f}" y="{y - 14}" width="{WIDE}" height="{HIGH}" fill="#{background:06x}"/>'
                )
            if text.strip():
                color = f"#{style.get('foreground', screen.default[0]):06x}"
                slant = ' font-style="italic"' if style.get("italic") else ""
                drawn.append(f'<text x="{x:.1f}" y="{y}" fill="{color}"{slant}>{escape(text)}</text>')
    return "\n".join(drawn)


def main(name: str = str(FILE)) -> None:
    """Run Neovim, take the two screens and write the picture."""
    screen, panels = Screen(), []
    with tempfile.TemporaryDirectory() as folder, open_sandbox(Path(folder), "embedded") as sandbox:
        (sandbox.project / "shop.py").write_text(SHOP)
        with Editor(sandbox, before=["set background=dark"]) as editor:
            editor.open("shop.py")
            editor.keys("GA" + "self.items.rem")
            editor.wait(lambda: editor.sight().ghost, "no ghost text", PATIENCE)
            drain(editor, screen)
            panels.append(panel(screen, "Ghost text behind the cursor: Tab takes it", 0))
            editor.keys("<Tab><Esc>")
            editor.rpc.api.win_set_cursor(0, (11, 8))
            editor.rpc.command("DgLsp fill")
            editor.wait(lambda: editor.rpc.exec_lua(DRAFTED), "no draft", PATIENCE)
            settling: list[str] = []
            while editor.rpc.exec_lua(DRAFTED):
                drain(editor, screen)
                title = ":DgLsp fill while it settles: bright is sure"
                drawn = panel(screen, title, ROWS_DRAWN * HIGH + 60)
                settling += [drawn] if drawn not in settling else []
            panels.append(settling[len(settling) * 2 // 3])
    width, height = COLUMNS_DRAWN * WIDE + 16, 2 * (ROWS_DRAWN * HIGH + 60)
    style = "text{font:14px monospace;white-space:pre}.title{font:14px sans-serif;fill:#777}"
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}"><style>{style}</style>'
    Path(name).write_text(picture + "\n" + "\n".join(panels) + "\n</svg>\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
