"""One session of a real VS Code in a real browser, driven by `vscode.mjs`, with the extension from its built package.

It knows where its parts are and what the server needs; the tests know the keys and the screen.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from dg_lsp.settings import of_machine
from tests.configuration import camel
from tests.editors.sandbox import CHROMIUM, EDITORS, HERE, NODE, Sandbox

VSIX = HERE.parents[1] / "editors/vscode/dg-lsp.vsix"
YARDSTICK = HERE / "yardstick"
STATUS = "#dg-lsp\\.dg-lsp\\.dg-lsp\\.status"  # publisher, extension, our name of the item
MESSAGES = ".notifications-toasts .notification-list-item-message"
# The tab of a change that is to be taken or left, and the buttons of its message.
QUESTION, TAKE, LEAVE = "now ↔ changed", "Take the change", "Leave the code as it is"
_PATIENCE = 200  # seconds for one request, far above the driver's own
_EMPTY = 5.0  # seconds after which a saved file that is empty is meant to be


@dataclass
class VSCode:
    """The running session; each method is a request to the driver.

    sandbox: the world it runs in. shots: the folder of its screenshots and of its log. own: our settings.
    """

    sandbox: Sandbox
    shots: Path
    own: Mapping[str, Any]
    _driver: "subprocess.Popen[str]"

    def ask(self, what: str, **needs: Any) -> Any:
        """Have the driver do something; its answer.

        Raises:
            AssertionError: it could not be done; names the folder with a picture of the screen.
        """
        assert self._driver.stdin is not None and self._driver.stdout is not None
        watch = threading.Timer(_PATIENCE + needs.get("patience", 0) / 1000, self._driver.kill)
        watch.start()
        try:
            self._driver.stdin.write(json.dumps({"do": what, **needs}) + "\n")
            self._driver.stdin.flush()
            line = self._driver.stdout.readline()
        finally:
            watch.cancel()
        assert line, f"the driver ended in {what}; pictures and logs: {self.shots}"
        answer = json.loads(line)
        assert answer["ok"], f"{what} {needs}: {answer['error']}; pictures and logs: {self.shots}"
        return answer["value"]

    def open(self, name: str, text: str | bytes, line: int = 1, column: int = 1, **needs: Any) -> None:
        """Write a file of the project and open it there, with the cursor at line:column as the editor counts them."""
        data = text.encode() if isinstance(text, str) else text
        (self.sandbox.project / name).write_bytes(data)
        self.ask("goto", place=f"{name}:{line}:{column}", **needs)

    def type(self, text: str, delay: int = 20) -> None:
        """Type a text, `delay` milliseconds a key."""
        self.ask("type", text=text, delay=delay)

    def press(self, key: str, wait: int = 0) -> dict[str, Any]:
        """Press a key; the screen as the key met it and as it is now."""
        pressed: dict[str, Any] = self.ask("press", key=key, wait=wait)
        return pressed

    def until(self, test: str, patience: int = 60_000) -> dict[str, Any]:
        """Wait until a JavaScript expression of the screen `s` holds; the screen."""
        seen: dict[str, Any] = self.ask("until", test=test, patience=patience)
        return seen

    def ghost(self, text: str) -> dict[str, Any]:
        """Wait for the ghost text `text` at the cursor; the screen."""
        return self.until(f"s.ghost === {json.dumps(text)} && !s.misplaced")

    def status(self, word: str, patience: int = 60_000) -> str:
        """Wait for `word` in the status item; all that it says."""
        return str(self.ask("text", selector=f"{STATUS}, {STATUS} a", wanted=word, patience=patience))

    def why(self, part: str) -> str:
        """Hover over the status item until it says `part`; all that it says."""
        return str(self.ask("hover", selector=STATUS, wanted=part))

    def message(self, part: str) -> str:
        """Wait for a message with `part` in it; all of it."""
        return str(self.ask("text", selector=MESSAGES, wanted=part))

    def command(self, title: str) -> None:
        """Run a command of the palette."""
        self.ask("command", title=title)

    def settings(self, **changed: Any) -> None:
        """Set our settings `changed` and no others, and wait until the server ends where that starts it again.

        A name with a dot is the editor's own.
        """
        before, self.own = self.own, {**own_settings(self.sandbox), **changed}
        self.ask("settings", settings=_full(self.own))
        if any(before.get(name) != self.own.get(name) for name in ("path", *map(camel, of_machine()))):
            self.ask("gone", selector=f"{STATUS}, {STATUS} a", text="ready")

    def at(self, line: int, column: int) -> None:
        """Wait until the cursor is there."""
        self.ask("at", line=line, column=column)

    def drawn(self, text: str, row: int | None = None) -> None:
        """Wait until a draft or a next edit with `text` is drawn, in that row of the window if one is given."""
        self.ask("drawn", text=text, row=row)

    def rows(self, part: str) -> list[str]:
        """Wait for a quick pick that has a row with `part` in it; all its rows."""
        found: list[str] = self.ask("rows", text=part)
        return found

    def saved(self, name: str) -> bytes:
        """Save, and read the file on the disk.

        The editor empties the file before it writes, and shows that only for a text with changes.
        """
        self.ask("save")
        path, end = self.sandbox.project / name, time.monotonic() + _EMPTY
        while not (data := path.read_bytes()) and time.monotonic() < end:
            time.sleep(0.05)
        return data

    def shot(self, name: str) -> Path:
        """Take a picture of the window; where it lies."""
        self.ask("shot", name=name)
        return self.shots / f"{name}.png"


def press_button(code: VSCode, text: str) -> None:
    """Press a button of a message."""
    code.ask("click", selector=".notifications-toasts .monaco-button", text=text)


def answer(code: VSCode, text: str) -> None:
    """Answer the question whether a change is taken by its button `text`, and wait until the two sides are gone."""
    code.ask("text", selector=".tab.active", wanted=QUESTION)
    press_button(code, text)
    code.ask("gone", selector=".tab", text=QUESTION)


def own_settings(sandbox: Sandbox) -> dict[str, Any]:
    """The settings that make the extension run this checkout's server."""
    return {"path": str(server_program(sandbox))}


def _full(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings by their full names."""
    return {name if "." in name else f"dg-lsp.{name}": value for name, value in settings.items()}


def own_extension(sandbox: Sandbox) -> Path:
    """The folder of the extension, from its package."""
    with ZipFile(VSIX) as package:
        package.extractall(sandbox.root / "vsix")
    return sandbox.root / "vsix/extension"


def server_program(sandbox: Sandbox) -> Path:
    """A program `dg-lsp` that runs this checkout; made where it is missing."""
    program = sandbox.root / "bin/dg-lsp"
    return program if program.exists() else write_program(program)


def write_program(program: Path, script: str = f'exec {sys.executable} -m dg_lsp "$@"') -> Path:
    """Write a shell script that can be run; by default one that runs this checkout."""
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@contextmanager
def open_vscode(
    sandbox: Sandbox,
    file: str = "ghost.py",
    settings: Mapping[str, Any] | None = None,
    extensions: Sequence[Path] | None = (),
    **job: Any,
) -> Iterator[VSCode]:
    """A session with `file` open; `settings` replace those that name the server; `job` is for the driver.

    extensions: those beside our own; None leaves our own out, too.

    Raises:
        AssertionError: it does not start.
    """
    shots = sandbox.root / "shots"
    shots.mkdir(exist_ok=True)
    driver = subprocess.Popen(
        [str(NODE), str(HERE / "vscode.mjs")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(shots / "driver.log").open("w"),
        env=sandbox.environment,
        cwd=sandbox.project,
        text=True,
    )
    own = own_settings(sandbox) if settings is None else settings
    editor = VSCode(sandbox, shots, own, driver)
    needs = {
        "editors": str(EDITORS),
        "chromium": str(CHROMIUM),
        "extensions": [] if extensions is None else [str(own_extension(sandbox)), *map(str, extensions)],
        "home": str(sandbox.root / "home"),
        "project": str(sandbox.project),
        "shots": str(shots),
        "environment": sandbox.environment,
        "settings": _full(own),
        "file": file,
    }
    try:
        editor.ask("start", **{**needs, **job})
        yield editor
    finally:
        assert driver.stdin is not None
        try:
            # At the end of its input the driver closes browser and editor.
            driver.stdin.close()
            driver.wait(60)
        except subprocess.TimeoutExpired:
            driver.kill()
