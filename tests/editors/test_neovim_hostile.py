"""Neovim in a folder of strangers: the plug-in starts no program and no module of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.nvim import PLUGIN
from tests.editors.sandbox import NVIM, Sandbox, skip_without

pytestmark = skip_without(NVIM)

# Waits until the server runs, has said which process it is, and in which folder that is; then what else starts it.
LOOK = """
local started = vim.wait({patience}, function()
  local client = vim.lsp.get_clients({{ name = "dg_lsp" }})[1]
  return client and client.initialized
end, 20)
vim.cmd("checkhealth dg_lsp")
vim.cmd("DgLsp stats")
vim.wait(1000)
io.stdout:write(tostring(started))
"""


def opened(sandbox: Sandbox, options: str, patience: int) -> str:
    """What Neovim says that was started in the project with `vim.g.dg_lsp = options`."""
    script = sandbox.root / "look.lua"
    script.write_text(LOOK.format(patience=patience))
    # Without Neovim's own scripts for filetypes: that for Python runs the first python3 there is.
    own = ("let did_load_ftplugin = 1", f"set rtp^={PLUGIN}", f"let g:dg_lsp = {options}")
    command = [str(NVIM), "--headless", "--clean", *(word for line in own for word in ("--cmd", line))]
    environment = {**sandbox.environment, "PATH": f".:bin::{os.environ['PATH']}", "PYTHONPATH": "."}
    done = subprocess.run(
        [*command, "ghost.py", "-c", f"luafile {script}", "-c", "qa!"],
        cwd=sandbox.project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


@pytest.fixture
def mark(sandbox: Sandbox) -> Path:
    """A file that programs and modules of the project make when they are run."""
    mark = sandbox.root / "mark"
    for name in ("dg-lsp", "bin/dg-lsp", "git", "uv", "python3"):
        program = sandbox.project / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
        program.chmod(0o755)
    for name in ("json.py", "sitecustomize.py", "torch.py", "lsprotocol.py", "dg_lsp/__init__.py"):
        module = sandbox.project / name
        module.parent.mkdir(exist_ok=True)
        module.write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    return mark


@pytest.mark.parametrize("options", ["{}", '{"cmd": ["dg-lsp", "--stdio"]}'])
def test_no_program_of_the_folder_is_taken_for_the_server(options: str, sandbox: Sandbox, mark: Path) -> None:
    opened(sandbox, options, 500)
    assert not mark.exists()


def test_the_server_starts_elsewhere_and_takes_no_module_of_the_folder(sandbox: Sandbox, mark: Path) -> None:
    assert opened(sandbox, f'{{"cmd": ["{sys.executable}", "-m", "dg_lsp", "--stdio"]}}', 60_000) == "true"
    assert not mark.exists(), mark.read_text()
