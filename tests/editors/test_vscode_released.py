"""Ghost text in VS Code keeps nothing of a request that has ended, of which there is one for each key."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.editors.sandbox import NODE, skip_without
from tests.editors.vscode import VSIX

FOLDER = VSIX.parent
ESBUILD = FOLDER / "node_modules/.bin/esbuild"

pytestmark = skip_without(NODE, ESBUILD)

# In the place of the editor: counts what is made and not released.
SCRIPT = """
const held = new Set();
const holding = (thing) => (held.add(thing), Object.assign(thing, { dispose: () => held.delete(thing) }));
class CancellationTokenSource {
  constructor() { holding(this).token = {}; }
  cancel() {}
}
let provider;
const languages = { registerInlineCompletionItemProvider: (_, made) => ((provider = made), { dispose: () => {} }) };
const editor = {
  CancellationTokenSource, InlineCompletionTriggerKind: {}, commands: {}, languages, window: {}, Range: class {},
};
const modules = require("module"), load = modules._load;
modules._load = (name, ...rest) => (name === "vscode" ? editor : load(name, ...rest));
const { Ghost } = require(process.argv[1]);
const token = { onCancellationRequested: () => holding({}) };
const fails = async () => { throw new Error("no server"); };
(async () => {
  const seen = [];
  for (const next of [async () => [], async () => [{}], fails]) {
    const ask = () => (seen.push(held.size), next());
    new Ghost({ ask, occupied: () => false, answered: () => {} }).offer(true);
    await provider.provideInlineCompletionItems({ version: 1 }, {}, {}, token).catch(() => undefined);
    seen.push(held.size);
  }
  console.log(JSON.stringify(seen));
})();
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of ghost text as one file for node."""
    out = tmp_path_factory.mktemp("ghost") / "ghost.js"
    command = [
        str(ESBUILD),
        "src/ghost.ts",
        "--bundle",
        "--platform=node",
        "--external:vscode",
        f"--outfile={out}",
    ]
    path = f"{NODE.parent}:{os.environ['PATH']}"
    subprocess.run([*command, "--log-level=warning"], cwd=FOLDER, env=os.environ | {"PATH": path}, check=True)
    return out


def test_a_request_that_has_ended_holds_nothing(module: Path) -> None:
    run = subprocess.run([str(NODE), "-e", SCRIPT, str(module)], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [2, 0, 2, 0, 2, 0]
