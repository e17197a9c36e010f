"""What somebody types: real changes of this project's own history, or made-up ones of the standard library, as keys."""

import builtins
import difflib
import keyword
import random
import re
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LARGEST = 30_000  # characters of a file
_TYPED = 600  # characters of a change that is typed; a larger one was not typed by anybody
_WORD = re.compile(r"\b[a-z_]{4,}\b")
_KEYS = re.compile(r"\n[ \t]*|\w{1,3}|.", re.DOTALL)  # indentation comes with the line end, as in an editor


@dataclass(frozen=True, slots=True)
class Key:
    """One change: the characters [start, end) become `text`."""

    start: int
    end: int
    text: str


def changes(seed: int) -> Iterator[tuple[str, str]]:
    """Pairs of an old and a new text of one Python file, without end."""
    rng = random.Random(seed)
    commits = _git("rev-list", "--no-merges", "-n", "500", "HEAD", "--", "*.py").split()
    while True:
        pair = _of_history(rng.choice(commits), rng) if commits else _made_up(rng)
        if pair and max(map(len, pair)) < _LARGEST and pair[0] != pair[1]:
            yield pair


def large(seed: int) -> Iterator[str]:
    """Files as large as any that is typed in, made of several, without end."""
    texts = (new for _, new in changes(seed))
    while True:
        text = ""
        while len(text) < _LARGEST * 0.9:
            text = (text + next(texts))[:_LARGEST]
        yield text[: text.rindex("\n") + 1]


def keys(old: str, new: str) -> Iterator[Key]:
    """The keys that make `new` of `old`, from top to bottom; a large hunk comes at once, as if it were pasted."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for name, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if name == "equal":
            continue
        start, typed = len("".join(after[:k])), "".join(after[k:m])
        gone = len("".join(before[i:j]))
        if gone or len(typed) > _TYPED:
            yield Key(start, start + gone, "" if len(typed) <= _TYPED else typed)
        if len(typed) <= _TYPED:
            for key in _KEYS.findall(typed):
                yield Key(start, start, key)
                start += len(key)


def marked(text: str, words: frozenset[str], mark: str) -> str:
    """`text` with `mark` after each of `words`, so that one sees where a piece of it comes from."""
    return _WORD.sub(lambda found: found[0] + (mark if found[0] in words else ""), text)


def frequent(text: str) -> frozenset[str]:
    """The words of `text` that it holds most often, keywords and builtins left out."""
    counts = Counter(w for w in _WORD.findall(text) if not keyword.iskeyword(w) and w not in dir(builtins))
    return frozenset(word for word, _ in counts.most_common(40))


def _git(*words: str) -> str:
    """What git says of this project; empty where there is no history."""
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _of_history(commit: str, rng: random.Random) -> tuple[str, str] | None:
    """A file that `commit` changed, before and after it."""
    names = _git(
        "diff-tree", "--no-commit-id", "--name-only", "--diff-filter=M", "-r", commit, "--", "*.py"
    ).split()
    if not names:
        return None
    name = rng.choice(names)
    return _git("show", f"{commit}^:{name}"), _git("show", f"{commit}:{name}")


def _made_up(rng: random.Random) -> tuple[str, str] | None:
    """A file of the standard library without ten of its lines, and the file."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    new = rng.choice(files).read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    lines = new.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return "".join(lines[:at] + lines[at + 10 :]), new
