"""The plug-in's Lua: formatted by StyLua, and without a warning of luacheck."""

import os
import subprocess
from pathlib import Path

from tests.editors.nvim import PLUGIN
from tests.editors.sandbox import EDITORS, HERE, NODE, NVIM, skip_without

FILES = sorted([*PLUGIN.rglob("*.lua"), *(HERE / "neovim").glob("*.lua")])
STYLUA = EDITORS / "npm/node_modules/@johnnymorganz/stylua"
LUACHECK = EDITORS / "luacheck/usr"


@skip_without(NODE, STYLUA)
def test_stylua_would_change_nothing() -> None:
    command = [str(NODE), str(HERE / "neovim/stylua.mjs"), str(EDITORS / "npm"), "--check", *map(str, FILES)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr


@skip_without(NVIM, LUACHECK)
def test_luacheck_warns_of_nothing() -> None:
    lua, native = LUACHECK / "share/lua/5.1", next(Path(LUACHECK).rglob("lua/5.1/lfs.so")).parent
    paths = {"LUA_PATH": f"{lua}/?.lua;{lua}/?/init.lua", "LUA_CPATH": f"{native}/?.so"}
    command = [str(NVIM), "-l", str(HERE / "neovim/luacheck.lua"), "--no-cache", "--no-color"]
    own = ["--config", str(PLUGIN / ".luacheckrc")]
    found = subprocess.run(
        [*command, *own, *map(str, FILES)],
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
