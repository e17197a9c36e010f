"""The extension's manifest is the one that the code gives, and its lock file names no host."""

import json
import re

from dg_lsp.settings import Settings, of_machine
from tests.configuration import camel
from tests.editors.manifest import MANIFEST, languages, manifest, text

FOLDER = MANIFEST.parent


def read() -> dict:
    return json.loads(MANIFEST.read_text(encoding="utf-8"))


def test_the_manifest_is_the_one_that_the_code_gives():
    written = MANIFEST.read_text(encoding="utf-8")
    assert written == text(manifest(json.loads(written))), "write it again: python -m tests.editors.manifest"


def test_no_default_of_a_server_setting_is_sent_and_a_workspace_sets_nothing_of_the_machine():
    properties = read()["contributes"]["configuration"]["properties"]
    for name in Settings.__dataclass_fields__:
        assert properties[f"dg-lsp.{camel(name)}"]["default"] is None
    machine = {key for key, schema in properties.items() if schema["scope"] == "machine"}
    assert machine == {"dg-lsp.path", *(f"dg-lsp.{camel(name)}" for name in of_machine())}
    restricted = read()["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert set(restricted) == machine


def test_the_extension_starts_for_each_language():
    assert read()["activationEvents"] == [f"onLanguage:{name}" for name in languages()]
    assert {"python", "typescriptreact", "csharp", "rust"} <= set(languages())


def test_each_command_that_a_key_or_a_page_names_is_there_and_has_code():
    contributed = read()["contributes"]
    commands = {command["command"] for command in contributed["commands"]}
    bound = {key["command"] for key in contributed["keybindings"]}
    assert {name for name in bound if name.startswith("dg-lsp.")} <= commands
    assert set(re.findall(r"command:(dg-lsp\.\w+)", MANIFEST.read_text(encoding="utf-8"))) <= commands
    code = (FOLDER / "src/extension.ts").read_text(encoding="utf-8")
    table = set(re.findall(r"^    (\w+)(?::|,$)", code.partition("const table")[2], re.MULTILINE))
    assert {command.removeprefix("dg-lsp.") for command in commands} == table


def test_no_key_is_bound_to_two_commands_in_the_same_place():
    keys = [(key["key"], key["when"]) for key in read()["contributes"]["keybindings"]]
    assert len(set(keys)) == len(keys)
    assert all("editorTextFocus" in when for _, when in keys)


def test_the_first_of_two_keys_is_taken_in_each_file():
    # Else the second one is typed where no fill is to be had.
    keys = [key for key in read()["contributes"]["keybindings"] if " " in key["key"]]
    assert len({key["key"].split()[0] for key in keys}) == 1
    assert "editorTextFocus" in {key["when"] for key in keys}


def test_the_lock_file_names_no_host():
    lock = (FOLDER / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert json.loads(lock)["packages"][""]["devDependencies"] == read()["devDependencies"]
