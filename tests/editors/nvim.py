"""Drives a real Neovim over its own RPC, with a user interface attached, so that it draws what a user would see.

Ghost text is the text on the screen that is not in the buffer; nothing here knows the server.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pynvim

from tests.editors.sandbox import HERE, NVIM, Sandbox

PLUGIN = HERE.parents[1] / "editors/nvim"
ROWS, COLUMNS = 24, 100
PATIENCE = 60.0  # seconds: the first answer starts an engine, on a machine with other work

_SCREEN_LINE = """
local row, text = vim.fn.winline(), {}
for column = 1, vim.o.columns do text[column] = vim.fn.screenstring(row, column) end
return vim.fn.trim(table.concat(text), " ", 2)
"""

# All that one sight of the editor tells: the rows of the screen, and the buffer at the same moment.
_SIGHT = """
vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace("tests.sight"), {
  on_win = function(_, _, buf) _G.drawn = vim.api.nvim_buf_get_changedtick(buf) end,
})
function _G.sight(whole)
  local rows = {}
  for row = 1, vim.o.lines - (whole and 0 or 2) do
    local cells = {}
    for column = 1, vim.o.columns do cells[column] = vim.fn.screenstring(row, column) end
    rows[row] = vim.fn.trim(table.concat(cells), " ", 2)
  end
  local cursor = vim.api.nvim_win_get_cursor(0)
  return {
    rows = rows, lines = vim.api.nvim_buf_get_lines(0, 0, -1, false), row = cursor[1] - 1, col = cursor[2],
    fresh = _G.drawn == vim.b.changedtick, mode = vim.api.nvim_get_mode().mode, menu = vim.fn.pumvisible() == 1,
    time = vim.uv.hrtime() / 1e9,
  }
end
"""

_SAMPLE = """
local every = ...
_G.samples = {}
_G.sampler = vim.uv.new_timer()
_G.sampler:start(0, every, vim.schedule_wrap(function() table.insert(_G.samples, _G.sight()) end))
"""

_LATE = """
local channel, patience, wait = ...
vim.defer_fn(function() vim.rpcnotify(channel, "late", wait) end, patience)
"""


@dataclass(frozen=True, slots=True)
class Sight:
    """The editor at one moment. rows: the screen, without what is right of the text. row, col: the cursor, in bytes.

    fresh: the screen was drawn since the last change of the buffer; it is not while more keys wait.
    """

    rows: list[str]
    lines: list[str]
    row: int
    col: int
    fresh: bool
    mode: str
    menu: bool
    time: float

    @property
    def before(self) -> str:
        """The text before the cursor in its line."""
        return self.lines[self.row].encode()[: self.col].decode()

    @property
    def after(self) -> str:
        """The text after the cursor in its line."""
        return self.lines[self.row].encode()[self.col :].decode()

    @property
    def ghost(self) -> str | None:
        """The text on the screen at the cursor that is not in the buffer; None if the rest disagrees.

        None also if the screen is not drawn yet. The file must begin at the top of the screen, have no tabs and no
        lines that wrap.
        """
        if not self.fresh:
            return None
        head, tail = self.before, self.after
        above, row = self.rows[: self.row], self.rows[self.row].ljust(len(head + tail.rstrip()))
        if above != [line.rstrip() for line in self.lines[: self.row]] or not row.startswith(head):
            return None
        below = [line.rstrip() for line in self.lines[self.row + 1 :]]
        rest = self.rows[self.row + 1 :]
        extra = next((n for n in range(len(rest)) if rest[n : n + len(below) + 1] == [*below, "~"]), None)
        if extra is None or not row.endswith(tail.rstrip()):
            return None
        first = row[len(head) : len(row) - len(tail.rstrip())].partition("  dg-lsp: ")[
            0
        ]  # the sign of a start
        return "\n".join([first.rstrip(), *rest[:extra]]).rstrip()


class Editor:
    """One running Neovim with the plug-in. Use it as a context manager.

    options: what `vim.g.dg_lsp` holds besides the server's command. fake: take tests/editors/neovim/server.lua for it.
    before: commands that run first, as those of a user's init.vim. installed: the plug-in is where Neovim finds it.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        options: Mapping[str, Any] | None = None,
        before: Sequence[str] = (),
        *,
        fake: bool = False,
        installed: bool = False,
        nvim: Path = NVIM,
    ) -> None:
        pairs = [f"{name}={value}" for name, value in sandbox.environment.items()]
        clean = ["env", "--ignore-environment", f"--chdir={sandbox.project}", *pairs]
        given = {"cmd": ["sh"] if fake else sandbox.command, **(options or {})}
        found = [] if installed else [f"set runtimepath^={PLUGIN}"]
        first = [*found, "set noswapfile", f"let g:dg_lsp = {_vim(given)}", *before]
        if fake:
            first.append(f"luafile {HERE / 'neovim/server.lua'}")
        commands = [word for command in first for word in ("--cmd", command)]
        run = [*clean, str(nvim), "--embed", "--headless", *([] if installed else ["--clean"])]
        self.rpc = pynvim.attach("child", argv=[*run, *commands])
        self._waits = 0
        self.project = sandbox.project
        self.rpc.ui_attach(COLUMNS, ROWS, rgb=True, ext_linegrid=True)
        self.rpc.exec_lua(_SIGHT)

    def __enter__(self) -> "Editor":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # The end of the process comes as the end of the answer.
        with suppress(EOFError, OSError):
            self.rpc.command("qall!")
        self.rpc.close()

    def open(self, name: str) -> None:
        """Edit the file and wait until the server has attached to it."""
        self.rpc.command(f"edit {name}")
        self.wait(self.attached, "no server")

    def attached(self) -> bool:
        """Return whether the server serves the current buffer."""
        return bool(self.rpc.exec_lua("return #vim.lsp.get_clients({bufnr = 0}) > 0"))

    def keys(self, text: str) -> None:
        """Type; `<Esc>` and the like are keys."""
        self.rpc.input(text)

    def lines(self) -> list[str]:
        """The text of the buffer."""
        return list(self.rpc.current.buffer[:])

    def screen_line(self) -> str:
        """The cursor's line as it is on the screen, ghost text included."""
        return str(self.rpc.exec_lua(_SCREEN_LINE))

    def wait(self, met: Callable[[], object], complaint: str, patience: float = PATIENCE) -> None:
        """Poll until `met`; complain with all that the user would see."""
        until = time.monotonic() + patience
        while not met():
            if time.monotonic() > until:
                messages = self.rpc.command_output("messages")
                raise AssertionError(
                    f"{complaint}; on the screen: {self.screen_line()!r}; messages: {messages}"
                )
            time.sleep(0.01)

    def mark(self) -> None:
        """Forget what was drawn until now."""
        self.rpc.exec_lua("vim.rpcnotify(..., 'mark')", self.rpc.channel_id)
        while self.rpc.next_message()[1] != "mark":
            pass

    def wait_drawn(self, text: str) -> None:
        """Wait until the user interface is told, since the mark, to draw `text`; no polling, so it can be timed."""
        self._waits += 1
        self.rpc.exec_lua(_LATE, self.rpc.channel_id, int(PATIENCE * 1000), self._waits)
        while True:
            _, name, events = self.rpc.next_message()
            if name == "late":
                assert events != [self._waits], f"{text!r} was not drawn; screen: {self.screen_line()!r}"
                continue  # the timer of a wait that has ended
            for kind, *calls in events:
                if kind == "grid_line" and any(text in "".join(c[0] for c in call[3]) for call in calls):
                    return

    def sight(self) -> "Sight":
        """The screen and the buffer at this moment."""
        return Sight(**self.rpc.exec_lua("return _G.sight()"))

    @contextmanager
    def sampled(self, every: int = 20) -> Iterator[list["Sight"]]:
        """Collect a sight each `every` milliseconds until the block ends."""
        seen: list[Sight] = []
        self.rpc.exec_lua(_SAMPLE, every)
        try:
            yield seen
        finally:
            seen += [Sight(**found) for found in self.rpc.exec_lua("_G.sampler:stop() return _G.samples")]


def _vim(value: Any) -> str:
    """`value` as a Vim expression, which JSON is but for its true and false."""
    return json.dumps(value).replace("true", "v:true").replace("false", "v:false")
