"""Drives a real Neovim over its own RPC, with a user interface attached, so that it draws what a user would see.

Knows ghost text as what stands on the screen and not in the buffer; knows nothing of the server.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

import pynvim

from tests.editors.sandbox import HERE, NVIM, Sandbox

ROWS, COLUMNS = 24, 100
PATIENCE = 15.0  # seconds: the first answer starts an engine, on a machine with other work

_SCREEN_LINE = """
local row, text = vim.fn.winline(), {}
for column = 1, vim.o.columns do text[column] = vim.fn.screenstring(row, column) end
return vim.fn.trim(table.concat(text), " ", 2)
"""

# Every 5 ms: the line in the buffer and the virtual text that is drawn behind it.
_WATCH = """
local space = vim.api.nvim_get_namespaces()["nvim.lsp.inline_completion"]
_G.seen = {}
_G.watch = vim.uv.new_timer()
_G.watch:start(0, 5, vim.schedule_wrap(function()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local marks = vim.api.nvim_buf_get_extmarks(0, space, { row, 0 }, { row, -1 }, { details = true })
  local ghost = ""
  for _, mark in ipairs(marks) do
    for _, chunk in ipairs(mark[4].virt_text or {}) do ghost = ghost .. chunk[1] end
  end
  local sight = { vim.api.nvim_get_current_line(), ghost }
  if not vim.deep_equal(sight, _G.seen[#_G.seen]) then table.insert(_G.seen, sight) end
end))
"""

_LATE = """
local channel, patience, wait = ...
vim.defer_fn(function() vim.rpcnotify(channel, "late", wait) end, patience)
"""


class Editor:
    """One running Neovim. Use it as a context manager."""

    def __init__(self, sandbox: Sandbox) -> None:
        pairs = [f"{name}={value}" for name, value in sandbox.environment.items()]
        command = json.dumps(sandbox.command)  # a list of JSON strings is one of Vim strings, too
        clean = ["env", "--ignore-environment", f"--chdir={sandbox.project}", *pairs]
        nvim = [str(NVIM), "--embed", "--headless", "--clean", "--cmd", f"let g:dg_lsp_command = {command}"]
        self.rpc = pynvim.attach("child", argv=[*clean, *nvim, "-u", str(HERE / "neovim/init.lua")])
        self._waits = 0
        self.rpc.ui_attach(COLUMNS, ROWS, rgb=True, ext_linegrid=True)

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
        self.wait(lambda: self.rpc.exec_lua("return #vim.lsp.get_clients({bufnr = 0}) > 0"), "no server")

    def keys(self, text: str) -> None:
        """Type; `<Esc>` and the like are keys."""
        self.rpc.input(text)

    def lines(self) -> list[str]:
        """The text of the buffer."""
        return list(self.rpc.current.buffer[:])

    def screen_line(self) -> str:
        """The cursor's line as it stands on the screen, ghost text included."""
        return str(self.rpc.exec_lua(_SCREEN_LINE))

    def wait(self, met: Callable[[], object], complaint: str) -> None:
        """Poll until `met`; complain with all that the user would see."""
        until = time.monotonic() + PATIENCE
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

    @contextmanager
    def watched(self) -> Iterator[list[tuple[str, str]]]:
        """Collect each (line in the buffer, ghost text behind it) that is seen until the block ends."""
        seen: list[tuple[str, str]] = []
        self.rpc.exec_lua(_WATCH)
        try:
            yield seen
        finally:
            seen += [(line, ghost) for line, ghost in self.rpc.exec_lua("_G.watch:stop() return _G.seen")]
