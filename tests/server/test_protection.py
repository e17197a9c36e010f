"""Laws 12 and 14: settings that protect are known before text is read, are never lost, and no workspace lifts one."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.engine.choice import Model
from dg_lsp.engine.scripted import open_scripted
from dg_lsp.files.ignoring import rules_stamp
from dg_lsp.server import refusals
from dg_lsp.server import session as session_module
from dg_lsp.server import workspace as workspace_module
from dg_lsp.server.handlers import lifecycle
from dg_lsp.server.handlers import next_edit as next_edit_module
from dg_lsp.server.session import Session
from dg_lsp.server.settings import Sources, configured, derived
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import Settings
from tests.server.editor import HANGS, Editor
from tests.waiting import until

APART = {"dgLsp": {"apart": True}}
TEAM = "http://127.0.0.1:9"
OWN = "x = load()\n"
REFUSALS: tuple[dict[str, Any], ...] = (
    {"error": {"code": -32603, "message": "no"}},
    {"result": None},
    {"result": {}},
    {"result": []},
)
JUNK: tuple[Any, ...] = (None, 5, [], {}, {"dg-lsp": None}, {"dg-lsp": 5}, {"python": {}})


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def opened(editor: Editor, uri: str, text: str = OWN) -> None:
    item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    await editor.tell("textDocument/didOpen", {"textDocument": item})


def begin_open(editor: Editor, uri: str, text: str = OWN) -> None:
    item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    note = {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": item}}
    editor.send(note)


@pytest.mark.parametrize(
    ("own", "workspace", "name", "expected"),
    [
        ({"automatic": False}, {"automatic": True}, "automatic", False),
        ({"related": False}, {"related": True}, "related", False),
        ({"nextEdit": False}, {"nextEdit": True}, "next_edit", False),
        ({"next_edit": False}, {"nextEdit": True}, "next_edit", False),
        ({"prefetch": False}, {"prefetch": True}, "prefetch", False),
        ({}, {"related": False}, "related", False),
        ({"excludeIgnored": True}, {"excludeIgnored": False}, "exclude_ignored", True),
        ({"excludeIgnored": True}, {"exclude_ignored": "off", "excludeIgnored": 0}, "exclude_ignored", True),
        ({"disabledLanguages": ["sql"]}, {"disabledLanguages": []}, "disabled_languages", ("sql",)),
        (
            {"disabledLanguages": ["sql"]},
            {"disabledLanguages": ["lua", "sql"]},
            "disabled_languages",
            ("sql", "lua"),
        ),
        ({"prefixBytes": 1000}, {"prefixBytes": 9000}, "prefix_bytes", 1000),
        ({"prefixBytes": 1000}, {"prefixBytes": 900}, "prefix_bytes", 900),
        ({}, {"prefixBytes": 30000}, "prefix_bytes", 30000),
        ({"definitionBytes": 0}, {"definitionBytes": 4000}, "definition_bytes", 0),
    ],
)
def test_a_workspace_adds_protection_and_lifts_none(
    own: dict[str, Any], workspace: dict[str, Any], name: str, expected: object
) -> None:
    for where in ("own", "user", "command line"):
        base = configured(Settings(), own, {})[0] if where == "command line" else Settings()
        sources = Sources(base, workspace=workspace)
        if where != "command line":
            sources = replace(sources, **{where: own})  # type: ignore[arg-type]
        assert getattr(derived(sources)[0], name) == expected, where


def test_what_a_user_changes_replaces_what_was_told_at_the_start() -> None:
    sources = Sources(Settings(), own={"exclude": ["a"], "effort": "low", "threads": 2})
    settings, wrong = derived(
        replace(sources, user={"exclude": ["b"], "threads": 64}, workspace={"exclude": ["c"]})
    )
    assert settings.exclude[-2:] == ("b", "c") and settings.effort == "low" and not wrong
    assert settings.threads == 2, "what belongs to the machine is told once"


@pytest.mark.parametrize("junk", [None, 5, [], "x", {"python": {"a": 1}}, {"exclude": 5}, {"exclude": [1]}])
def test_an_answer_that_says_nothing_takes_nothing_back(junk: Any) -> None:
    async def work() -> None:
        editor = Editor(Settings(checkpoint="scripted"))
        editor.settings = {"dg-lsp": {"exclude": ["own.py"]}}
        await editor.start()
        await opened(editor, "file:///w/own.py")
        assert await editor.ghost("file:///w/own.py", 0, 9) == []
        editor.settings = {"dg-lsp": junk}
        await editor.tell("workspace/didChangeConfiguration", {"settings": junk})
        assert await editor.ghost("file:///w/own.py", 0, 9) == []
        for refusal in REFUSALS:
            editor.refuses = refusal
            await editor.tell("workspace/didChangeConfiguration", {"settings": None})
            assert await editor.ghost("file:///w/own.py", 0, 9) == [], refusal
        editor.refuses, editor.settings = None, {"dg-lsp": {}}
        await editor.tell("workspace/didChangeConfiguration", {"settings": None})
        assert await editor.ghost("file:///w/own.py", 0, 9)
        assert len(editor.engine.bytes) == 1
        await editor.close()

    run(work)


def test_a_client_that_only_sends_its_settings_takes_none_back_by_junk() -> None:
    async def work() -> None:
        editor = Editor(Settings(checkpoint="scripted"))
        await editor.start(workspace={"configuration": False})
        await opened(editor, "file:///w/own.py")
        change = "workspace/didChangeConfiguration"
        await editor.tell(change, {"settings": {"dg-lsp": {"exclude": ["own.py"]}}})
        for junk in JUNK:
            await editor.tell(change, {"settings": junk})
            assert await editor.ghost("file:///w/own.py", 0, 9) == [], junk
        await editor.tell(change, {"settings": {"dg-lsp": {}}})
        assert await editor.ghost("file:///w/own.py", 0, 9)
        await editor.close()

    run(work)


def test_the_users_part_is_read_of_clients_alone_that_tell_it_apart() -> None:
    async def work() -> None:
        for apart, answered in ((True, 0), (False, 1)):
            editor = Editor(Settings(checkpoint="scripted"))
            editor.settings = {"dg-lsp": {"exclude": []}, "dg-lsp-user": {"exclude": ["own.py"]}}
            await editor.start(experimental=APART if apart else {})
            await opened(editor, "file:///w/own.py")
            assert len(await editor.ghost("file:///w/own.py", 0, 9)) == answered
            if apart:
                editor.settings = {"dg-lsp": {"exclude": []}, "dg-lsp-user": {}}
                await editor.tell("workspace/didChangeConfiguration", {"settings": None})
                assert await editor.ghost("file:///w/own.py", 0, 9)
            await editor.close()

    run(work)


@pytest.mark.parametrize("kind", ["ghost", "fill", "file", "next edit", "resolve"])
def test_nothing_is_read_before_the_settings_are_known(kind: str, tmp_path: Path) -> None:
    async def work() -> None:
        editor, path = (
            Editor(Settings(checkpoint="scripted")),
            write(tmp_path / "own.py", "def f():\n    ...\n"),
        )
        uri = path.as_uri()
        editor.settings = {"dg-lsp": HANGS}
        await editor.start()
        if kind != "file":
            begin_open(editor, uri, path.read_text())
        at = {"line": 1, "character": 4}
        about = {"uri": uri, "version": 1, "position": at, "kind": "function_body", "name": "f"}
        command = {"command": "dg-lsp.fill", "arguments": [{"uri": uri, "name": "f"}]}
        asked = {
            "ghost": lambda: editor.begin_ghost(uri, 1, 4),
            "fill": lambda: editor.begin("workspace/executeCommand", command),
            "file": lambda: editor.begin("workspace/executeCommand", command),
            "next edit": lambda: editor.begin(
                "dg-lsp/nextEdit", {"textDocument": {"uri": uri}, "position": at}
            ),
            "resolve": lambda: editor.begin("codeAction/resolve", {"title": "x", "data": about}),
        }[kind]()
        await asyncio.sleep(0.1)
        assert asked not in editor.answers and not editor.engine.bytes
        (question,) = [one for one in editor.heard if one.get("method") == "workspace/configuration"]
        editor.send({"jsonrpc": "2.0", "id": question["id"], "result": [{"exclude": ["own.py"]}]})
        answer = str(await editor.ended(asked))
        assert not editor.engine.bytes
        assert "own.py is excluded" in answer or kind in ("ghost", "resolve")
        editor.settings = {}
        await editor.close()

    run(work)


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("team", [False, True])
def test_without_an_answer_only_a_model_of_this_machine_is_used(
    team: bool, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_module, "PATIENCE", 0.2)
    monkeypatch.setattr(lifecycle, "PATIENCE", 0.2)

    async def work() -> None:
        editor = Editor(Settings(checkpoint="scripted", engine_url=TEAM if team else ""))
        editor.settings = {"dg-lsp": {} if refused else HANGS}
        editor.refuses = {"error": {"code": -32603, "message": "no"}} if refused else None
        able = {"didChangeWatchedFiles": {"dynamicRegistration": True}}
        await editor.start({"exclude": ["kept.py"]}, workspace=able)
        for name in ("own", "kept"):
            begin_open(editor, f"file:///w/{name}.py")
        items = await editor.ghost("file:///w/own.py", 0, 9)
        assert bool(items) is not team and bool(editor.engine.bytes) is not team
        assert await editor.ghost("file:///w/kept.py", 0, 9) == []
        await until(lambda: "client/registerCapability" in [one.get("method") for one in editor.heard])
        (said,) = [
            one["params"]["message"] for one in editor.heard if one.get("method") == "window/showMessage"
        ]
        assert "engineUrl" in said
        status = await editor.ask("dg-lsp/status", {"uri": "file:///w/own.py"})
        assert ("nothing is sent to the server" in status["why"]) is team
        # What is told late is used.
        question = next(one for one in editor.heard if one.get("method") == "workspace/configuration")
        if not refused:
            editor.send({"jsonrpc": "2.0", "id": question["id"], "result": [{"exclude": ["other.py"]}]})
            editor.settings = {"dg-lsp": {}}
            await editor.quiet()
            assert await editor.ghost("file:///w/own.py", 0, 9)
        await editor.close()

    run(work)


def test_a_setting_that_changes_while_a_model_is_chosen_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        workspace = Workspace(Settings())
        session = Session(workspace, lambda *_: open_scripted("scripted"), lambda _: None)

        def pick(_: str) -> None:
            loop.call_soon_threadsafe(session.configure, {}, {"exclude": ["meanwhile.py"]})
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()

        async def models() -> list[Model]:
            return [Model("small", 0, 0, None, None, (), "fetched", "")]

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(session_module, "pick", pick)
        monkeypatch.setattr(session, "models", models)
        await session.use("small")
        assert workspace.settings.checkpoint == "small" and "meanwhile.py" in workspace.settings.exclude
        session.configure({"checkpoint": "embedded"}, {})
        assert workspace.settings.checkpoint == "small" and "meanwhile.py" not in workspace.settings.exclude

    run(work)


def test_a_request_under_way_is_not_sent_once_its_file_is_excluded() -> None:
    async def work() -> None:
        editor = Editor(Settings(checkpoint="scripted"))
        await editor.start()
        await opened(editor, "file:///w/own.py")
        asked = editor.begin_ghost("file:///w/own.py", 0, 9)
        await asyncio.sleep(0)
        editor.settings = {"dg-lsp": {"exclude": ["own.py"]}}
        await editor.tell("workspace/didChangeConfiguration", {"settings": None})
        sent = len(editor.engine.bytes)
        await editor.ended(asked)
        assert len(editor.engine.bytes) == sent
        await editor.close()

    run(work)


VIEWS = (
    "git:/w/own.py?ref=HEAD",
    "git://[w/own.py",
    "GIT:/w/own.py",
    "gitlens://x/own.py",
    "review:/w/own.py",
)


@pytest.mark.parametrize(
    "uri", [*VIEWS, "output:own.py", "vscode-userdata:/own.py", "fugitive:///w/.git//0/own.py"]
)
def test_a_view_gets_nothing_and_its_text_is_in_no_request(uri: str) -> None:
    async def work() -> None:
        editor = Editor(Settings(checkpoint="scripted"))
        await editor.start()
        await opened(editor, "file:///w/other.py")
        await opened(editor, uri, OWN + "y = load(removed)\n")
        assert await editor.ghost(uri, 0, 9) == []
        off = (await editor.ask("dg-lsp/status", {"uri": uri}))["why"]
        assert "no file that is edited" in off
        assert await editor.ghost("file:///w/other.py", 0, 9)
        assert b"removed" not in b"".join(editor.engine.bytes)
        await editor.close()

    run(work)


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "buffer:7", "file:///w/a.py", "/w/a.py", "inmemory://model/1"]
)
def test_what_a_person_edits_is_served(uri: str) -> None:
    async def work() -> None:
        editor = Editor(Settings(checkpoint="scripted"))
        await editor.start()
        await opened(editor, uri)
        assert await editor.ghost(uri, 0, 9)
        await editor.close()

    run(work)


SECRET = 'conn = connect(host, password="hunter2-Old-Passw0rd")\n'
LIKE = "".join(f'link{n} = connect(port{n}, "plain{n}")\n' for n in range(3))


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize("old", [SECRET, 'conn = connect(host, "wordly")\n'])
def test_a_text_that_was_removed_reaches_no_model(
    team: bool, old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_edit_module, "_PAUSE", 0.0)

    async def work() -> None:
        editor = Editor(Settings(checkpoint="scripted", engine_url=TEAM if team else ""))
        await editor.start()
        far = "# nothing to see here\n" * 100
        await opened(editor, "file:///w/acq.py", old + far + LIKE)
        item = {"uri": "file:///w/acq.py", "version": 2}
        span = {"start": {"line": 0, "character": 7}, "end": {"line": 0, "character": len(old) - 1}}
        change = {"range": span, "text": "pool.acquire(host)"}
        await editor.tell("textDocument/didChange", {"textDocument": item, "contentChanges": [change]})
        at = {"line": 0, "character": 25}
        about = {"textDocument": {"uri": "file:///w/acq.py"}, "position": at}
        await editor.ask("dg-lsp/nextEdit", about)
        whole = b"".join(editor.engine.bytes)
        assert b"plain0" in whole, "lines like it are asked for"
        assert not any(word in whole for word in (b"hunter2", b"Passw0rd", b"password", b"wordly"))
        assert b"pool.acquire(host)" in whole, "the line as it is now"
        assert (b"acq.py" in whole) is not team
        await editor.close()

    run(work)


def test_a_server_learns_no_name_of_a_file_and_a_model_of_this_machine_does(tmp_path: Path) -> None:
    async def work() -> None:
        for url in (TEAM, "vllm+http://127.0.0.1:9", "llama+http://127.0.0.1:9", ""):
            (tmp_path / "dg_lsp.json").write_text('{"prompt": "chat"}')
            editor = Editor(Settings(checkpoint=str(tmp_path), engine_url=url))
            await editor.start()
            shapes = "file:///w/hidden-name/shapes.py"
            await opened(editor, shapes, "def area(shape):\n    return 1\n")
            user = "import shapes\n\n\ndef f(x=shapes.area):\n    pass\n"
            await opened(editor, "file:///w/own.py", user)
            target = {"command": "dg-lsp.fill", "arguments": [{"uri": "file:///w/own.py", "name": "f"}]}
            await editor.ask("workspace/executeCommand", target)
            whole = b"".join(editor.engine.bytes)
            assert b"def area(shape): ..." in whole and b"own.py" not in whole, url
            assert (b"hidden-name" in whole) is not bool(url), url
            await editor.close()

    run(work)


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("by", ["user", "workspace"])
@pytest.mark.parametrize("place", [".gitignore", "sub/.gitignore", ".git/info/exclude"])
def test_what_git_ignores_later_is_sent_no_more(by: str, place: str, told: bool, tmp_path: Path) -> None:
    for name in ("HEAD", "config", "objects/x", "refs/x"):
        write(tmp_path / ".git" / name, "ref: refs/heads/main\n" if name == "HEAD" else "")
    files = {
        "own.py": OWN,
        "sub/local_keys.py": "y = load(opened)\n",
        "sub/local_notes.py": "y = load(indexed)\n",
    }
    for name, text in files.items():
        write(tmp_path / name, text)

    async def work() -> None:
        editor, asked = Editor(Settings(checkpoint="scripted")), {"excludeIgnored": True}
        editor.settings = {"dg-lsp": asked if by == "workspace" else {}}
        await editor.start(asked if by == "user" else {}, folders=(tmp_path.as_uri(),))
        own, keys = ((tmp_path / name).as_uri() for name in ("own.py", "sub/local_keys.py"))
        await opened(editor, own)
        await opened(editor, keys, OWN + files["sub/local_keys.py"])

        async def sent() -> bytes:
            before = len(editor.engine.bytes)
            await editor.ghost(own, 0, 9)
            return b"".join(editor.engine.bytes[before:])

        for _ in range(200):
            if b"indexed" in (found := await sent()):
                break
            await asyncio.sleep(0.05)
        assert b"indexed" in found and b"opened" in found and await editor.ghost(keys, 0, 9)
        write(tmp_path / place, "*local_*.py\n")
        if told:
            event = {"uri": (tmp_path / place).as_uri(), "type": 1}
            await editor.tell("workspace/didChangeWatchedFiles", {"changes": [event]})
        else:
            await asyncio.sleep(0.02)
        for _ in range(3):
            found = await sent()
            assert found and b"indexed" not in found and b"opened" not in found
            assert await editor.ghost(keys, 0, 9) == []
            await asyncio.sleep(0.05)
        (tmp_path / place).unlink()
        await asyncio.sleep(0.02)
        assert await editor.ghost(keys, 0, 9), "what is ignored no longer is served again"
        await editor.close()

    run(work)


def test_the_files_of_gits_rules_are_never_read_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may be slow, and the loop must not wait for it."""
    read = list[str]()

    def slowly(folder: Path) -> int:
        read.append(threading.current_thread().name)
        time.sleep(0.03)
        return rules_stamp(folder)

    monkeypatch.setattr(refusals, "rules_stamp", slowly)
    write(tmp_path / "own.py", OWN)

    async def work() -> None:
        editor = Editor(Settings(checkpoint="scripted"))
        await editor.start({"excludeIgnored": True}, folders=(tmp_path.as_uri(),))
        own = (tmp_path / "own.py").as_uri()
        await opened(editor, own)
        for version in range(2, 5):
            assert await editor.ghost(own, version - 2, 9)
            await asyncio.sleep(0.02)
            about, at = {"uri": own, "version": version}, {"line": 0, "character": 0}
            change = {"range": {"start": at, "end": at}, "text": "y = 1\n"}
            await editor.tell("textDocument/didChange", {"textDocument": about, "contentChanges": [change]})
            await asyncio.sleep(0.02)
            place = {"textDocument": {"uri": own}, "range": {"start": at, "end": at}}
            await editor.ask("textDocument/codeAction", {**place, "context": {"diagnostics": []}})
            await asyncio.sleep(0.02)
            await editor.ask("dg-lsp/nextEdit", {"textDocument": {"uri": own}, "position": at})
            target = {"command": "dg-lsp.fill", "arguments": [{"uri": own, "position": at}]}
            await editor.ask("workspace/executeCommand", target)
            await editor.ask("dg-lsp/status", {"uri": own})
        await editor.close()

    run(work)
    assert len(read) > 5 and threading.main_thread().name not in read, read


def test_each_file_that_says_what_git_ignores_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "w/sub"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    write(folder / "a.py", "")
    write(tmp_path / "w/.git/HEAD", "ref: refs/heads/main\n")
    places = ("w/.gitignore", "w/sub/.gitignore", "w/.git/HEAD", "w/.git/index", "w/.git/info/exclude")
    for place in (*places, "w/.git/config", "home/.gitconfig", "home/.config/git/ignore"):
        before = rules_stamp(folder)
        assert before == rules_stamp(folder)
        write(tmp_path / place, f"# {place}\n")
        assert rules_stamp(folder) != before, place
    write(home / ".gitconfig", "[core]\n\texcludesFile = ~/mine\n")
    before = rules_stamp(folder)
    write(home / "mine", "*.py\n")
    assert rules_stamp(folder) != before, "what a configuration names"
    before = rules_stamp(folder)
    write(tmp_path / "w/sub/.git/HEAD", "ref: refs/heads/main\n")
    assert rules_stamp(folder) != before, "a repository within the repository"
    (tmp_path / "link").symlink_to(folder)
    assert rules_stamp(tmp_path / "link") == rules_stamp(folder)
