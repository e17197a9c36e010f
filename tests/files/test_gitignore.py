"""What git ignores and tracks, read from a repository's files: the same as git itself says, for random repositories."""

import gc
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.files.gitignore import read_patterns
from dg_lsp.files.ignored import TRACKED, UNIGNORED, ignored, listed
from dg_lsp.files.ignoring import _configured, rules_stamp
from dg_lsp.files.repository import SECONDS, _tracked

ROUNDS = int(os.environ.get("ROUNDS", "60"))  # random repositories; thousands for a long run
NAMES = [
    "a",
    "b",
    "ab",
    "a.py",
    "b.py",
    "a b.py",
    "ä.py",
    "A.py",
    "[x].py",
    "x!.py",
    "#c.py",
    "build",
    ".hid",
]
PIECES = [
    *(
        "a",
        "b",
        "ab",
        "a.py",
        "b.py",
        ".py",
        "*",
        "*.py",
        "?",
        "**",
        "a*",
        "*b",
        "build",
        "[ab]",
        "[!a]",
        "[a-c].py",
    ),
    *(
        "[[:alpha:]]*",
        "[]x]",
        "\\*",
        "\\#c.py",
        "a\\b",
        "a ",
        "\\ ",
        "a\\ b.py",
        "[x",
        "x!.py",
        "***",
        "*.p[yz]",
        "ä*",
    ),
    *("a**b", "[^b]*", "[[:nope:]]", "\\[x\\].py", "A.py", "*a*.*y", "[\\]]", "[a-]", "\\"),
]


def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, input=given, capture_output=True, env=own, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def pattern(rng: random.Random) -> str:
    """A line of a .gitignore."""
    parts = [
        "".join(rng.choices(PIECES, k=rng.choice([1, 1, 1, 2]))) for _ in range(rng.choice([1, 1, 2, 3]))
    ]
    # git itself says now this, now that of stars beside other characters: it compares addresses of two texts.
    parts = [part if not part.strip("*") else re.sub(r"\*+", "*", part) for part in parts]
    line = rng.choice(["", "", "", "!"]) + rng.choice(["", "", "/"]) + "/".join(parts)
    return line + rng.choice(["", "", "", "/", " ", "\r"])


def patterns(rng: random.Random) -> str:
    return "".join(pattern(rng) + "\n" for _ in range(rng.randint(0, 5))) + rng.choice(
        ["", "# x\n", "\n", "*.py"]
    )


def make(root: Path, rng: random.Random) -> list[Path]:
    """A random repository with random rules; its files."""
    git(root, "init", "-q")
    files = list[Path]()
    for _ in range(rng.randint(4, 12)):
        parts = [rng.choice(NAMES) for _ in range(rng.randint(1, 4))]
        path = root.joinpath(*parts)
        if any(parent.is_file() for parent in path.parents) or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
        files.append(path)
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and ".git" not in path.parts)]
    for folder in rng.sample(folders, min(len(folders), rng.randint(1, 3))):
        (folder / ".gitignore").write_bytes(patterns(rng).encode())
        files.append(folder / ".gitignore")
    if rng.random() < 0.4:
        (root / ".git/info/exclude").write_text(patterns(rng))
    if rng.random() < 0.5:
        git(root, "config", "index.version", rng.choice(["2", "4"]))
        chosen = rng.sample(files, rng.randint(0, len(files)))
        listing = b"\0".join(os.fsencode(path.relative_to(root)) for path in chosen)
        git(root, "add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul", given=listing)
        if rng.random() < 0.3:
            git(root, "update-index", "--split-index")
    return files


def said(root: Path, output: bytes) -> set[Path]:
    return {root / os.fsdecode(name) for name in output.split(b"\0") if name}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/git").mkdir(parents=True)
    return tmp_path


def test_git_says_the_same_of_random_repositories(home: Path) -> None:
    some = 0
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        (home / "config/git/ignore").write_text(patterns(rng) if rng.random() < 0.3 else "")
        root = home / str(seed)
        root.mkdir()
        files = make(root, rng)
        given = b"\0".join(map(os.fsencode, files))
        wanted = said(root, git(root, "check-ignore", "-z", "--stdin", given=given))
        assert ignored(root, files) == wanted, (seed, root)
        some += len(wanted)
        inside = rng.choice([root, *{path.parent for path in files}])
        for which, words in (
            (TRACKED, ["--cached"]),
            (UNIGNORED, ["--cached", "--others", "--exclude-standard"]),
        ):
            wanted = said(inside, git(inside, "ls-files", "-z", *words))
            assert {*listed(inside, which)} == wanted, (seed, inside, which)
    assert some > ROUNDS


def one_file(home: Path, name: str = "local.py") -> Path:
    git(home, "init", "-q")
    (home / name).touch()
    return home / name


@pytest.mark.parametrize(
    "config",
    [
        "[core]\n\texcludesFile = ~/mine\n",
        '[core] excludesfile = "~/mi\\\nne" ; so\n',
        "[include]\n\tpath = more\n",
        '[includeIf "gitdir:~/"]\n\tpath = ~/more\n',
        '[user]\n\tname = "A # B"\n[CORE]\n\tExcludesFile=~/mine#\n',
    ],
)
def test_the_users_own_rules_hold(home: Path, config: str) -> None:
    file = one_file(home)
    (home / "mine").write_text("local.py\n")
    (home / "more").write_text("[core]\n\texcludesFile = ~/mine\n")
    assert ignored(home, [file]) == set()
    (home / ".gitconfig").write_text(config)
    assert git(home, "check-ignore", "local.py") == b"local.py\n"
    assert ignored(home, [file]) == {file}
    # A repository that is given away with its configuration does not take them away.
    (home / "none").touch()
    git(home, "config", "core.excludesFile", str(home / "none"))
    assert ignored(home, [file]) == {file}


def test_the_rules_of_a_worktree_and_of_a_submodule_are_their_own(home: Path) -> None:
    main = home / "main"
    main.mkdir()
    file = one_file(main)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    git(main, *who, "commit", "-q", "--allow-empty", "-m", "a")
    git(main, "worktree", "add", "-q", str(home / "tree"))
    (home / "tree/local.py").touch()
    (main / ".git/info/exclude").write_text("local.py\n")
    assert ignored(main, [file]) == {file}
    assert ignored(home / "tree", [home / "tree/local.py"]) == {home / "tree/local.py"}
    inner = main / "inner"
    inner.mkdir()
    own = one_file(inner)
    assert ignored(inner, [own]) == set()
    assert inner / "local.py" not in listed(main, UNIGNORED)


def test_a_file_is_ignored_by_its_real_folder(home: Path) -> None:
    file = one_file(home)
    (home / ".gitignore").write_text("local.py\n")
    (home / "deep").mkdir()
    (home / "link").symlink_to(home)
    assert ignored(home / "link", [home / "link/local.py"]) == {home / "link/local.py"}
    assert ignored(home, [file, home / ".git/config"]) == {file, home / ".git/config"}


def test_where_case_does_not_matter_it_does_not_here(home: Path) -> None:
    file = one_file(home, "LOCAL.py")
    (home / ".gitignore").write_text("local.PY\n")
    assert ignored(home, [file]) == set()
    git(home, "config", "core.ignoreCase", "true")
    assert ignored(home, [file]) == {file}


def test_what_a_sparse_checkout_leaves_out_is_ignored_as_any_file(home: Path) -> None:
    file = one_file(home)
    git(home, "add", "local.py")
    (home / ".gitignore").write_text("local.py\n")
    assert ignored(home, [file]) == set()
    git(home, "update-index", "--skip-worktree", "local.py")
    assert ignored(home, [file]) == {file}


def damage(home: Path, how: str) -> Sequence[str]:
    """Make the rules of a repository unreadable."""
    match how:
        case "config":
            (home / ".git/config").write_text("[core\n")
        case "link":
            (home / ".git/config").unlink()
            (home / ".git/config").symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(home / "pipe")
            git(home, "config", "core.excludesFile", str(home / "pipe"))
        case "no repository":
            (home / ".git/HEAD").unlink()
        case "huge":
            (home / ".gitignore").write_bytes(b"*a*b*c\n" * 30_000)
        case "sum":
            for depth in range(3):
                (home / ("d/" * depth)).mkdir(exist_ok=True)
                (home / ("d/" * depth) / ".gitignore").write_bytes(b"*a*b*c\n" * 15_000)
            return ("d/d/",)
        case "index":
            (home / ".gitignore").write_text("*.py\n")
            (home / ".git/index").write_bytes(b"DIRC\0\0\0\4\xff\xff\xff\xff" + b"\x80" * 200)
        case "deep":
            return ("e/" * 1000,)
    return ("",)


@pytest.mark.parametrize("how", ["config", "link", "pipe", "no repository", "huge", "sum", "index", "deep"])
def test_where_the_rules_cannot_be_read_all_is_ignored_and_nothing_waits(home: Path, how: str) -> None:
    one_file(home)
    (folder,) = damage(home, how)
    path = home / folder / "a.py"
    assert ignored(path.parent, [path]) == {path}


# What takes long to read, or would be read without an end.
ENTRY = b"\0" * 60 + b"\0\4abcd" + b"\0" * 6
SLOW = {
    "stars": (".gitignore", b"*a" * 500_000),
    "many patterns": (".gitignore", b"*a*b*c*d*e*f\n" * 19_000),
    "long patterns": (".gitignore", (b"*a" * 25 + b"\n") * 19_000),
    "patterns of folders": (".gitignore", b"**/a/" * 200_000),
    "patterns of a deep folder": (".gitignore", b"**/a/**/b*\n" * 19_000),
    "sets": (".gitignore", b"[[:alpha:]]" * 90_000),
    "a file that includes itself": (".git/config", b"[core]\n" + b"[include]\npath=config\n" * 9_000),
    "a file that includes itself by other names": (
        ".git/config",
        b"[core]\n" + b"".join(b"[include]\npath=%sconfig\n" % (b"./" * n) for n in range(400)),
    ),
    "a long value": (".git/config", b"[core]\nx = " + b"a" * 1_000_000),
    "backslashes": (".git/config", b"[core]\nx = " + b"\\" * 1_000_000),
    "a continued line": (".git/config", b"[core]\nx = " + b"a\\\n" * 300_000),
    "quotes": (".git/config", b"[core]\nx = " + b'"a"' * 300_000),
    "many settings": (".git/config", b"[core]\n" + b"a=1\n" * 250_000),
    "a long section": (".git/config", b'[core "' + b"a" * 1_000_000),
    "many files of patterns": (
        ".git/config",
        b"[core]\n" + b"".join(b"excludesfile=%d\n" % n for n in range(50_000)),
    ),
    "many tracked files": (".git/index", b"DIRC\0\0\0\2" + (300_000).to_bytes(4, "big") + ENTRY * 300_000),
    "a long number": (
        ".git/index",
        b"DIRC\0\0\0\4" + (1).to_bytes(4, "big") + b"\0" * 62 + b"\x80" * (1 << 24) + b"\0",
    ),
    "long names": (
        ".git/index",
        b"DIRC\0\0\0\4" + (5_000).to_bytes(4, "big") + (b"\0" * 63 + b"a" * 8_000 + b"\0") * 5_000,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SLOW)
def test_no_repository_takes_long_or_holds_other_threads_up(what: str, home: Path) -> None:
    one_file(home)
    (home / ".gitignore").write_text("*.py\n")
    name, data = SLOW[what]
    (home / name).write_bytes(data)
    folder = home / ("a/" * 100 if "deep" in what else "")
    folder.mkdir(parents=True, exist_ok=True)
    began = time.thread_time()
    rules_stamp(folder)
    ignored(folder, [folder / "a.py"])
    assert time.thread_time() - began < 2 * SECONDS + 0.5
    # Another thread gets its turn between two calls of a function, but not within one that is written in C.
    # A call that holds the others up does so in each run. A virtual machine counts the time that its host takes, too.
    spent = [
        longest_call(lambda: (rules_stamp(folder), ignored(folder, [folder / "a.py"]))) for _ in range(3)
    ]
    print(f"{what}: {spent}")
    assert min(spent)[0] < 0.01


def longest_call(run: Callable[[], object]) -> tuple[float, str]:
    """Return the processor time of the longest call of a function in C within `run` that calls no other, and its name.

    Reading a file lets other threads run meanwhile. Garbage is not collected: its time would be that of any call.
    """
    began, longest = 0.0, (0.0, "")

    def note(_: object, event: str, about: Any) -> None:
        nonlocal began, longest
        if event == "c_call":
            began = time.thread_time()
        elif event == "c_return" and began and about.__name__ != "read":
            longest = max(longest, (time.thread_time() - began, about.__qualname__))
        if event != "c_call":
            began = 0.0

    for cache in (read_patterns, _configured, _tracked):
        cache.cache_clear()
    gc.disable()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        gc.enable()
    return longest
