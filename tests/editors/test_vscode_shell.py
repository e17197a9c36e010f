"""The programs that the extension for VS Code starts in a terminal. Node is needed, and no editor."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.cli.main import main
from tests.editors.sandbox import HERE, NODE, skip_without

pytestmark = skip_without(NODE)

MODULE = HERE.parents[1] / "editors/vscode/src/shell.ts"
SET = {
    "checkpoint": "small",
    "device": "cpu",
    "weightBits": 4,
    "threads": 2,
    "effort": "high",
    "seed": 7,
    "deadline": 1.5,
    "engineUrl": "https://team.example:8765",
    "engineTokenFile": "/home/it's me/token",
    "engineCa": "/etc/ca; rm -rf $HOME/x.pem",
    "engineFallback": True,
}
AWKWARD = [
    "plain",
    "two words",
    "it's",
    "$HOME",
    "a;b",
    "`x`",
    '"',
    "",
    "a&b",
    "(x)",
    "@x",
    "a,b",
    "C:\\x y\\z",
]
CONTROLS = [chr(code) for code in (*range(32), *range(127, 160), 0x202E, 0x061C, 0x200F, 0x2066, 0x2028)]


def call(name: str, *arguments: Any) -> Any:
    """The result of a function of the module."""
    given = ", ".join(map(json.dumps, arguments))
    script = f"import {{ {name} }} from '{MODULE}'; console.log(JSON.stringify({name}({given})))"
    command = [str(NODE), "--no-warnings", "--input-type=module", "--eval", script]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout)


def test_the_doctor_and_the_trace_get_all_that_is_set_of_the_engine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = call("flagsFrom", {**SET, "confidence": 0.5, "exclude": ["x"], "related": None})
    assert dict(zip(flags[::2], flags[1::2], strict=True)) == {
        "--checkpoint": "small",
        "--device": "cpu",
        "--weight-bits": "4",
        "--threads": "2",
        "--effort": "high",
        "--seed": "7",
        "--deadline": "1.5",
        "--engine-url": "https://team.example:8765",
        "--engine-token-file": "/home/it's me/token",
        "--engine-ca": "/etc/ca; rm -rf $HOME/x.pem",
        "--engine-fallback": "true",
    }
    for command in ("doctor", "trace"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        said = capsys.readouterr().out
        assert all(flag in said for flag in flags[::2]), command
    assert call("flagsFrom", {}) == []


def test_a_command_that_is_shown_can_be_copied_and_controls_nothing() -> None:
    assert shlex.split(call("commandLine", AWKWARD)) == AWKWARD
    said = call("visible", "".join(CONTROLS) + "é日")
    assert not {*said} & {*CONTROLS} and said.endswith("é日")
    assert not {*call("commandLine", CONTROLS)} & {*CONTROLS}


@pytest.mark.parametrize("value", ["\x15touch x #", "--html=x", "LOW", "", ["low"], {"a": 1}])
def test_no_other_value_of_an_enumeration_gets_to_a_program(value: object) -> None:
    assert call("flagsFrom", {"effort": value}) == []


@pytest.mark.parametrize("control", ["\x15", "\n", "\x9b", "\x7f"])
def test_no_setting_with_a_control_character_gets_to_a_program(control: str) -> None:
    assert call("flagsFrom", dict.fromkeys(SET, f"a{control}b")) == []


def test_programs_get_no_relative_folder_and_none_of_the_editors_variables() -> None:
    given = {"PATH": ".::/usr/bin:bin:/bin", "PYTHONPATH": ".", "HOME": "/h", "ELECTRON_RUN_AS_NODE": "1"}
    assert call("environment", given) == {"PATH": "/usr/bin:/bin", "HOME": "/h"}


# Calls a command of the extension with a stub of the editor that notes what is asked of it.
ACTING = """
import { registerHooks } from 'node:module';
const [folder, user, workspaceSettings, file] = process.argv.slice(1);
globalThis.__dirname = folder;
globalThis.asked = [];
globalThis.chosen = (process.env.CHOSEN ?? '').split(',').filter(Boolean);
globalThis.own = [JSON.parse(user), JSON.parse(workspaceSettings)];
const stub = `
const note = (kind) => (...given) => { globalThis.asked.push([kind, ...given]); return nothing; };
const nothing = { show: note('show'), sendText: note('sendText'), dispose: note('dispose'), name: 'x',
  exitStatus: { code: 1 } };
const [own, theirs] = globalThis.own;
export const workspace = { isTrusted: true, workspaceFolders: [], getConfiguration: () => ({
  inspect: (name) => ({ globalValue: own[name], workspaceValue: theirs[name] }),
  get: (name) => theirs[name] ?? own[name],
}) };
export const window = { terminals: [], createTerminal: note('terminal'),
  onDidCloseTerminal: (told) => { globalThis.told = () => told(nothing); return nothing; },
  showInformationMessage: note('said'), showErrorMessage: async (...words) => {
    globalThis.asked.push(['said', ...words]); return globalThis.chosen.shift(); },
  showOpenDialog: async () => [{ fsPath: globalThis.file }] };
export const commands = {}, extensions = {}, ConfigurationTarget = {};
export class Uri {} export class Range {}
export class Disposable { static from() { return new Disposable(); } }`;
globalThis.file = file;
registerHooks({
  resolve: (name, context, next) =>
    name === 'vscode'
      ? { url: `data:text/javascript,${encodeURIComponent(stub)}`, shortCircuit: true }
      : next(name.startsWith('./') ? `${name}.ts` : name, context),
});
const { doctor, install, trace } = await import(`${folder}/install.ts`);
const server = { program: '/bin/dg-lsp', running: true };
const document = { isDirty: false, uri: { scheme: 'file', fsPath: file }, getText: () => '' };
doctor(server);
trace(server, document, { line: 0, character: 0 });
await install(server);
for (let fails = 0; process.env.CHOSEN && fails < 3; fails++) {
  globalThis.told();
  await new Promise((done) => setTimeout(done, 50));
}
console.log(JSON.stringify(globalThis.asked));
process.exit(0);
"""


def asked_of_the_editor(
    user: dict[str, Any], theirs: dict[str, Any], file: str, path: Path, chosen: str = ""
) -> list[list[Any]]:
    """What doctor, trace and install ask of the editor, with settings of the user and of the workspace.

    chosen: the buttons that the user presses where the installation fails.
    """
    command = [str(NODE), "--no-warnings", "--input-type=module", "--eval", ACTING, str(MODULE.parent)]
    command += [json.dumps(user), json.dumps(theirs), file]
    environment = {"PATH": f".:{path}", "HOME": "/nowhere", "PYTHONPATH": ".", "CHOSEN": chosen}
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60, env=environment)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "file", ["/w/a\x15touch x #.py", "/w/a\n; touch x.py", "/w/$(x) `y`.py", "/w/\x1b]0;x\x07.py"]
)
def test_a_workspace_types_nothing_and_chooses_nothing(file: str, tmp_path: Path) -> None:
    (tmp_path / "uv").touch(mode=0o755)
    theirs = {"effort": "\x15touch PWNED #", "seed": "\x15touch PWNED #", "deadline": 5, "device": "theirs"}
    asked = asked_of_the_editor({"effort": "high", "seed": 7}, theirs, file, tmp_path)
    assert "sendText" not in {kind for kind, *_ in asked}
    made = [given[0] for kind, *given in asked if kind == "terminal"]
    own = ["--effort", "high", "--seed", "7"]
    assert [[one["shellPath"], *one["shellArgs"]] for one in made] == [
        ["/bin/dg-lsp", "doctor", *own],
        ["/bin/dg-lsp", "trace", *own, "--", f"{file}:1:1"],
        [f"{tmp_path}/uv", "tool", "install", "--torch-backend", "auto", "--", file],
    ]
    for one in made:
        # Neither the folder nor the variables are a workspace's.
        assert one["cwd"] == "/" and one["strictEnv"] and one["env"]["PATH"] == str(tmp_path)
        assert "PYTHONPATH" not in one["env"] and one["name"].isprintable()


def installing(file: str, path: Path, chosen: str) -> tuple[list[list[str]], list[list[str]]]:
    """The commands that run in a terminal to install `file`, and what is said, with buttons."""
    for name in ("uv", "sh"):
        (path / name).touch(mode=0o755)
    asked = asked_of_the_editor({}, {}, file, path, chosen)
    made = [given[0] for kind, *given in asked if kind == "terminal"][2:]
    return [one["shellArgs"] for one in made], [given for kind, *given in asked if kind == "said"]


def test_an_installation_that_fails_is_offered_again_and_in_the_second_way(tmp_path: Path) -> None:
    first, second = "Try again", "Try without torch's own index"
    ran, said = installing("/w/a.whl", tmp_path, f"{first},{second},{first}")
    own, other = "tool install --torch-backend auto -- /w/a.whl", "tool install --find-links /w -- /w/a.whl"
    assert [" ".join(words) for words in ran] == [own, own, other, other]
    assert [words[1:] for words in said] == [[first, second], [first, second], [first]]
    assert all("it was not installed" in words[0] for words in said)


def test_the_script_beside_what_is_installed_is_run(tmp_path: Path) -> None:
    script, wheel = tmp_path / "install.sh", tmp_path / "dg_lsp.whl"
    script.touch()
    wheel.touch()
    assert installing(str(wheel), tmp_path, "")[0] == [[str(script), str(wheel)]]
    assert installing(str(tmp_path), tmp_path, "")[0] == [[str(script)]]


# Calls the extension's own search and message on another platform. `vscode` is a stub that keeps the messages.
ELSEWHERE = """
import { registerHooks } from 'node:module';
const [platform, folder] = process.argv.slice(1);
Object.defineProperty(process, 'platform', { value: platform });
globalThis.__dirname = folder;
globalThis.said = [];
const stub = `const nothing = { getConfiguration: () => ({ inspect: () => undefined }), isTrusted: true };
export const workspace = nothing, extensions = { getExtension: () => undefined }, commands = {};
export const window = { showErrorMessage: async (...words) => void globalThis.said.push(words) };
export class Uri {} export class Range {} export class Disposable {} export const ConfigurationTarget = {};`;
registerHooks({
  resolve: (name, context, next) =>
    name === 'vscode'
      ? { url: `data:text/javascript,${encodeURIComponent(stub)}`, shortCircuit: true }
      : next(name.startsWith('./') ? `${name}.ts` : name, context),
});
const { findServer } = await import(`${folder}/server.ts`);
const { sayMissing } = await import(`${folder}/install.ts`);
const found = await findServer();
if (!found.program) await sayMissing(found.why);
console.log(JSON.stringify([found, globalThis.said]));
"""


def found_on(platform: str, path: Path, home: Path = Path("/nowhere")) -> Any:
    """The program that the extension finds on `platform` with this PATH and home, and its messages."""
    command = [
        str(NODE),
        "--no-warnings",
        "--input-type=module",
        "--eval",
        ELSEWHERE,
        platform,
        str(MODULE.parent),
    ]
    environment = {"PATH": str(path), "HOME": str(home)}
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60, env=environment)
    return json.loads(done.stdout)


def test_on_windows_itself_the_extension_points_to_wsl_and_starts_no_program(tmp_path: Path) -> None:
    for name in ("dg-lsp", "dg-lsp.exe"):
        (tmp_path / name).touch(mode=0o755)
    found, said = found_on("win32", tmp_path)
    assert "program" not in found
    assert said == [[found["why"]]]
    assert (
        "Windows" in said[0][0] and "wsl --install" in said[0][0] and "WSL: Open Folder in WSL" in said[0][0]
    )
    # In WSL the extension runs on Linux.
    found, said = found_on("linux", tmp_path)
    assert found["program"] == str(tmp_path / "dg-lsp") and said == []
    found, said = found_on("linux", tmp_path / "empty")
    assert "Install it" in said[0][0] and "WSL" not in said[0][0]


def test_a_program_in_the_users_own_folder_is_found_without_a_path(tmp_path: Path) -> None:
    program = tmp_path / ".local/bin/dg-lsp"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    found, said = found_on("linux", tmp_path / "empty", tmp_path)
    assert found == {"program": str(program), "origin": "~/.local/bin"} and said == []
