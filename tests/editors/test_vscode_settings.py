"""VS Code sends the user's settings apart from those of a workspace, which take nothing of these away."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.server.settings import Sources, derived
from dg_lsp.settings import Settings
from tests.editors.sandbox import NODE, skip_without
from tests.editors.vscode import VSIX

FOLDER = VSIX.parent
ESBUILD = FOLDER / "node_modules/.bin/esbuild"

pytestmark = skip_without(NODE, ESBUILD)

# In the place of the editor: the values of each setting by the name that `inspect` gives them, and those of folders.
SCRIPT = """
const { settings, folders } = JSON.parse(process.argv[2]);
const configuration = (_, place) => ({
  inspect: (name) => ({ ...settings[name], ...(place && folders[place]?.[name]) }),
  get: (name) => settings[name]?.workspaceValue ?? settings[name]?.globalValue,
});
const uris = Object.keys(folders).map((uri) => ({ uri }));
const editor = { ConfigurationTarget: {}, workspace: { getConfiguration: configuration, workspaceFolders: uris } };
const modules = require("module"), load = modules._load;
modules._load = (name, ...rest) => (name === "vscode" ? editor : load(name, ...rest));
const { ofUser, ofWorkspace, isOn } = require(process.argv[1]);
const manifest = JSON.parse(process.argv[3]);
console.log(JSON.stringify([ofUser(manifest), ofWorkspace(manifest), isOn("automatic")]));
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the settings as one file for node."""
    out = tmp_path_factory.mktemp("settings") / "settings.js"
    options = ["--bundle", "--platform=node", "--external:vscode", f"--outfile={out}", "--log-level=warning"]
    path = f"{NODE.parent}:{os.environ['PATH']}"
    command = [str(ESBUILD), "src/settings.ts", *options]
    subprocess.run(command, cwd=FOLDER, env=os.environ | {"PATH": path}, check=True)
    return out


def sent(module: Path, settings: Any, folders: Any = None) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """What is sent of the user's and of the workspace's settings, and whether ghost text is on."""
    manifest = (FOLDER / "package.json").read_text()
    given = json.dumps({"settings": settings, "folders": folders or {}})
    command = [str(NODE), "-e", SCRIPT, str(module), given, manifest]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    user, workspace, on = json.loads(run.stdout)
    return user, workspace, on


PROTECTING = {
    "exclude": (["*.internal.py"], []),
    "excludeIgnored": (True, False),
    "disabledLanguages": (["sql"], []),
    "automatic": (False, True),
    "related": (False, True),
    "nextEdit": (False, True),
}


def test_a_workspace_lifts_no_setting_of_the_user(module: Path) -> None:
    both = {name: {"globalValue": user, "workspaceValue": its} for name, (user, its) in PROTECTING.items()}
    user, workspace, on = sent(module, both)
    assert user == {name: value for name, (value, _) in PROTECTING.items()}
    assert workspace == {name: value for name, (_, value) in PROTECTING.items()} and not on
    # With a server that asks for both, and with one that knows the initialization options only.
    for sources in (
        Sources(Settings(), own=user, user=user, workspace=workspace),
        Sources(Settings(), own=user, workspace=workspace),
    ):
        settings, _ = derived(sources)
        assert "*.internal.py" in settings.exclude and settings.disabled_languages == ("sql",)
        assert settings.exclude_ignored and not (settings.automatic or settings.related or settings.next_edit)


def test_what_folders_protect_is_joined(module: Path) -> None:
    folders = {
        "file:///a": {
            "exclude": {"workspaceFolderValue": ["a"]},
            "excludeIgnored": {"workspaceFolderValue": False},
        },
        "file:///b": {
            "exclude": {"workspaceFolderValue": ["b"]},
            "excludeIgnored": {"workspaceFolderValue": True},
            "related": {"workspaceFolderLanguageValue": False},
        },
    }
    settings = {"exclude": {"workspaceValue": ["w"]}, "related": {"workspaceValue": True}}
    user, workspace, on = sent(module, settings, folders)
    assert user == {} and on
    assert workspace == {"exclude": ["w", "a", "b"], "excludeIgnored": True, "related": False}


def test_what_belongs_to_the_machine_comes_from_the_user_alone(module: Path) -> None:
    both = {"globalValue": "https://mine.example", "workspaceValue": "https://theirs.example"}
    settings = {"engineUrl": both, "include": {"workspaceValue": ["*"]}, "path": {"globalValue": "/x"}}
    assert sent(module, settings) == ({"engineUrl": "https://mine.example"}, {}, True)
