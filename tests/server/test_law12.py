"""Law 12 in random sessions: of all bytes that an engine gets, none are of a text that may not leave.

Each session plants words: in files that the user, the workspace or git excludes, after links, in cells of an excluded
notebook, in views, in text that is removed, in names of files. Beside that zero stands the share of requests about
plain files that get a fill, which is what it is where nothing is planted. LAW12_SESSIONS=2000 runs as many.
"""

import asyncio
import json
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.server.handlers import next_edit as next_edit_module
from dg_lsp.settings import Settings
from tests.server.editor import Editor

SESSIONS = int(os.environ.get("LAW12_SESSIONS", "60"))
STEPS = 24
REPOSITORY = {
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/config": "",
    ".git/objects/x": "",
    ".git/refs/x": "",
}
FAR = "# nothing to see here\n" * 80


class Planted:
    """One session of an editor. Words are planted, and protected, if `guarded`; `team`: the engine is a server.

    asked, filled: the requests about plain files, and those of them that got a fill.
    """

    def __init__(self, seed: int, folder: Path, *, guarded: bool) -> None:
        self.random, self.folder, self.guarded = random.Random(seed), folder, guarded
        self.team = self.random.random() < 0.5
        self.settings: dict[str, Any] = {}
        self.words = 0
        self.secret: dict[bytes, str] = {}
        self.leaks: list[str] = []
        self.texts: dict[str, tuple[int, str]] = {}
        self.asked = self.filled = 0
        self.user: dict[str, Any] = {"exclude": ["*.internal.py"]} if guarded else {}
        self.workspace: dict[str, Any] = {"exclude": ["early/", "hidden.ipynb"]} if guarded else {}
        self.random.choice((self.user, self.workspace))["excludeIgnored"] = guarded
        self.actions: list[Callable[[], Awaitable[None]]] = [
            *(self.plain, self.plain, self.plain, self.command, self.excluded, self.view, self.ignore),
            *(self.settle, self.refuse, self.rename, self.notebook, self.remove, self.remove, self.close_one),
        ]

    # -- words

    def word(self, kind: str) -> str:
        """A word that no other text has, and that may not leave from now on."""
        self.words += 1
        name = f"zq{kind}{self.words}x"
        self.secret[name.encode()] = kind
        return name

    def heard(self, sent: bytes) -> None:
        if self.guarded:
            self.leaks += [f"{kind}: {word!r}" for word, kind in self.secret.items() if word in sent]

    # -- a session

    async def run(self) -> None:
        for name, text in REPOSITORY.items():
            self.write(name, text)
        for number in range(3):
            self.write(f"more/part{number}.py", f"y = load(part{number})\n")
        self.write("early/first.py", f"y = load({self.word('early')})\n")
        self.write("late.internal.py", f"y = load({self.word('disk')})\n")
        self.write(".env.py", f"y = load({self.word('env')})\n")
        self.write(f"{self.name()}/shapes.py", "def area(shape):\n    return 1\n")
        (self.folder / "link.py").symlink_to(self.folder / ".env.py")
        (self.folder / "dg_lsp.json").write_text(json.dumps({"prompt": self.random.choice(("fim", "chat"))}))
        url = "http://127.0.0.1:9" if self.team else ""
        self.editor = editor = Editor(Settings(checkpoint=str(self.folder), engine_url=url))
        editor.engine.heard = self.heard
        editor.settings = {"dg-lsp": self.workspace, "dg-lsp-user": self.user}
        apart = self.random.random() < 0.5
        own = {} if apart else self.user
        folders = (self.folder.as_uri(),) if self.random.random() < 0.8 else ()
        await editor.start(own, folders=folders, experimental={"dgLsp": {"apart": apart}})
        await self.open(self.folder / "early/first.py")
        await self.ghost(self.folder / "early/first.py")
        await self.open(
            self.folder / "own.py", "import shapes\nx = load()\n\n\ndef f(a=shapes.area):\n    pass\n"
        )
        await self.open(next(self.folder.glob("*/shapes.py")))
        for _ in range(STEPS):
            await self.random.choice(self.actions)()
            await self.plain()
        editor.refuses = None
        await editor.close()

    def name(self) -> str:
        """A folder's name that a server may not learn."""
        return self.word("name") if self.team else "folder"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    # -- what an editor does

    async def open(self, path: Path | str, text: str | None = None, language: str = "python") -> str:
        uri = path if isinstance(path, str) else path.as_uri()
        text = Path(path).read_text() if text is None else text
        if uri in self.texts:
            await self.close(uri)
        self.texts[uri] = 1, text
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        await self.editor.tell("textDocument/didOpen", {"textDocument": item})
        return uri

    async def close(self, uri: str) -> None:
        del self.texts[uri]
        await self.editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def ghost(self, place: Path | str, line: int = 0, column: int = 9) -> bool:
        uri = place if isinstance(place, str) else place.as_uri()
        return bool(await self.editor.ghost(uri, line, column))

    async def plain(self) -> None:
        """Ask in a file that nothing protects."""
        self.asked += 1
        self.filled += await self.ghost(self.folder / "own.py", 1, 9)

    async def command(self) -> None:
        """Fill a function of a file that is open, on disk, or excluded."""
        name = self.random.choice(("own.py", "late.internal.py", "early/first.py", "link.py"))
        target = {"uri": (self.folder / name).as_uri(), "name": "f"}
        await self.editor.ask("workspace/executeCommand", {"command": "dg-lsp.fill", "arguments": [target]})

    async def excluded(self) -> None:
        """Open, and ask in, a file that a glob or a link excludes."""
        text = f"x = load()\ny = load({self.word('glob')})\n"
        name = self.random.choice(("a.internal.py", "early/more.py", "link.py", ".env.py", "EARLY/x.py"))
        await self.ghost(await self.open(self.folder / name, text))

    async def view(self) -> None:
        """Open the left side of a diff, whose text the file may not have any more."""
        scheme = self.random.choice(("git", "gitlens", "review", "output"))
        text = f"x = load()\ny = load({self.word('view')})\n"
        await self.ghost(await self.open(f"{scheme}:{self.folder}/own.py?ref=HEAD", text))

    async def ignore(self) -> None:
        """Have git ignore a file that was open, and one that was indexed."""
        word, kind = f"zqign{self.words}x", f"local{self.words}"
        self.words += 1
        path = self.write(f"{kind}/seen.py", f"x = load()\ny = load({word})\n")
        disk = self.write(f"{kind}/disk.py", f"y = load({word}b)\n")
        await self.open(path)
        await self.ghost(path)
        await self.editor.tell(
            "workspace/didChangeWatchedFiles", {"changes": [{"uri": disk.as_uri(), "type": 1}]}
        )
        for _ in range(5):
            await self.ghost(self.folder / "own.py", 1, 9)
            await asyncio.sleep(0.01)
        place = self.random.choice((".gitignore", f"{kind}/.gitignore", ".git/info/exclude"))
        before = (self.folder / place).read_text() if (self.folder / place).exists() else ""
        self.write(place, before + ("*.py\n" if place.startswith("local") else f"{kind}/\n"))
        self.secret[word.encode()] = "ignored"
        if self.random.random() < 0.5:
            event = {"uri": (self.folder / place).as_uri(), "type": 2}
            await self.editor.tell("workspace/didChangeWatchedFiles", {"changes": [event]})
        await asyncio.sleep(0.012)
        await self.ghost(path)

    async def settle(self) -> None:
        """Exclude another file by new settings, which replace the old ones, while a request is under way."""
        name, word = f"open{self.words}.py", f"zqset{self.words}x"
        self.words += 1
        path = self.folder / name
        await self.open(path, f"x = load()\ny = load({word})\n")
        await self.ghost(path)
        asked = self.editor.begin_ghost(path.as_uri(), 0, 9)
        who, other = self.random.sample((self.user, self.workspace), 2)
        if self.guarded:
            who["exclude"] = [*who.get("exclude", ()), name]
            # The other one cannot take it away.
            other.update(excludeIgnored=other.get("excludeIgnored", False), include=["*"])
        self.editor.settings = {"dg-lsp": {**self.workspace}, "dg-lsp-user": {**self.user}}
        await self.editor.tell("workspace/didChangeConfiguration", {"settings": None})
        await self.editor.ended(asked)
        if who is self.workspace or self._apart():
            self.secret[word.encode()] = "settings"
        await self.ghost(path)

    def _apart(self) -> bool:
        asked = [one for one in self.editor.heard if one.get("method") == "workspace/configuration"]
        return len(asked[-1]["params"]["items"]) == 2

    async def refuse(self) -> None:
        """Answer wrongly when the settings are asked for."""
        wrong: Any = self.random.choice(
            ({"error": {"code": -1, "message": ""}}, {"result": None}, {"result": []})
        )
        self.editor.refuses = wrong
        await self.editor.tell(
            "workspace/didChangeConfiguration", {"settings": self.random.choice((None, {}, 5))}
        )
        self.editor.refuses = None
        kept, self.editor.settings = self.editor.settings, {"dg-lsp": None, "dg-lsp-user": None}
        await self.editor.tell("workspace/didChangeConfiguration", {"settings": None})
        self.editor.settings = kept

    async def rename(self) -> None:
        """Close a file, and open it under a name that is excluded."""
        word = f"zqmoved{self.words}x"
        self.words += 1
        text = f"x = load()\ny = load({word})\n"
        uri = await self.open(self.folder / f"moved{self.words}.py", text)
        await self.ghost(uri)
        await self.close(uri)
        self.secret[word.encode()] = "renamed"
        await self.ghost(await self.open(self.folder / f"moved{self.words}.internal.py", text))

    async def notebook(self) -> None:
        """Open a notebook that is excluded, and move its cells in two notifications, in any order."""
        self.words += 1
        book = (self.folder / "hidden.ipynb").as_uri()
        cells: list[dict[str, Any]] = [
            {
                "uri": f"vscode-notebook-cell:/cells/{self.words}{name}",
                "languageId": "python",
                "version": 1,
                "text": text,
            }
            for name, text in (
                ("a", f"y = load({self.word('cell')})\n"),
                ("b", f"x = load()\n# {self.word('cell')}\n"),
            )
        ]
        listed = [{"kind": 2, "document": one["uri"]} for one in cells]
        given = {"uri": book, "notebookType": "jupyter-notebook", "version": 1, "cells": listed}
        await self.editor.tell(
            "notebookDocument/didOpen", {"notebookDocument": given, "cellTextDocuments": cells}
        )
        steps = [{"start": 2, "deleteCount": 0, "cells": [listed[0]]}, {"start": 0, "deleteCount": 1}]
        if self.random.random() < 0.5:
            steps = [{"start": 0, "deleteCount": 1}, {"start": 1, "deleteCount": 0, "cells": [listed[0]]}]
        for step in steps:
            change = {"cells": {"structure": {"array": step}}}
            about = {"notebookDocument": {"uri": book, "version": 2}, "change": change}
            await self.editor.tell("notebookDocument/didChange", about)
            for one in cells:
                await self.ghost(one["uri"])
            await self.plain()
        if self.random.random() < 0.5:
            about = {"notebookDocument": {"uri": book}, "cellTextDocuments": cells}
            await self.editor.tell("notebookDocument/didClose", about)

    async def remove(self) -> None:
        """Replace a text, which no model may learn from then on."""
        self.words += 1
        word = f"zqold{self.words}x"
        old = f'conn = connect(host, "{word}")'
        like = "".join(f'link{n} = connect(port{n}, "plain{n}")\n' for n in range(3))
        uri = await self.open(self.folder / "acq.py", f"{old}\n{FAR}{like}")
        self.secret[word.encode()] = "removed"
        self.texts[uri] = 2, ""
        span = {"start": {"line": 0, "character": 7}, "end": {"line": 0, "character": len(old)}}
        change = {"range": span, "text": "pool.acquire(host)"}
        item = {"uri": uri, "version": 2}
        await self.editor.tell("textDocument/didChange", {"textDocument": item, "contentChanges": [change]})
        at = {"line": 0, "character": 25}
        await self.editor.ask("dg-lsp/nextEdit", {"textDocument": {"uri": uri}, "position": at})

    async def close_one(self) -> None:
        """Close a document whose unsaved text was never on disk."""
        word = f"zqshut{self.words}x"
        self.words += 1
        uri = await self.open(f"untitled:{word[2:]}", f"x = load()\ny = load({word})\n")
        await self.plain()
        await self.close(uri)
        self.secret[word.encode()] = "closed"


@pytest.mark.slow
@pytest.mark.timeout(900 + 30 * SESSIONS)  # for a machine with many other tasks
@pytest.mark.parametrize("part", range(10))
def test_no_planted_word_leaves_and_the_same_requests_are_filled(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_edit_module, "_PAUSE", 0.0)
    asked, sent, leaks = 0, 0, list[str]()
    for seed in range(part, SESSIONS, 10):
        shares = set[tuple[int, int]]()
        for guarded in (True, False) if seed % 3 == 0 else (True,):
            session = Planted(seed, tmp_path / f"{seed}-{guarded}", guarded=guarded)
            asyncio.run(session.run())
            leaks += [f"session {seed}: {leak}" for leak in session.leaks]
            shares.add((session.asked, session.filled))
            asked, sent = asked + session.asked, sent + len(session.editor.engine.requests)
        assert len(shares) == 1, (
            f"session {seed}: what protects has kept a plain file from its fills: {shares}"
        )
    assert not leaks, leaks[:20]
    assert asked and sent > asked / 2
