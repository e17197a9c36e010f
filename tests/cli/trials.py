"""Bots that are killed, that find no space on the disk, and whose file a person saves, each at a random moment.

    python -m tests.cli.trials --kills 200 --disks 200 --saves 100

What a person wrote must be in the file, or in a copy that a message names, and no untested fill may stay there without
a word. `tests/cli/test_trials.py` runs a few.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
# What the scripted engine writes first into each stub.
FILL, STUB = "return None", "raise NotImplementedError"
STUBS = "".join(
    f'def stub_{n}(a):\n    """Return a."""\n    raise NotImplementedError\n\n\n' for n in range(3)
)
TEXT = "# the top\n" + STUBS + "".join(f"NUMBER_{n} = {n}\n" for n in range(600))
# Two tests of each stub, of which its fill passes one: it is partial, and stays until the end.
TESTS = """import sys, time
sys.path.insert(0, ".")
sys.dont_write_bytecode = True
import shop
cases = []
for name in ("stub_0", "stub_1", "stub_2"):
    for wanted in (None, 1):
        how = ""
        try:
            if getattr(shop, name)(1) != wanted:
                how = "<failure>another value</failure>"
        except Exception as error:
            how = f"<failure>{type(error).__name__}</failure>"
        cases.append(f'<testcase classname="shop" name="test_{name}[{wanted}]">{how}</testcase>')
with open(sys.argv[1], "w") as file:
    file.write(f"<testsuite>{''.join(cases)}</testsuite>")
time.sleep(0.1)
sys.exit(1)
"""


@dataclass(frozen=True, slots=True)
class Bot:
    """A running bot on `path`, whose messages go to `log`."""

    path: Path
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def in_time(self) -> int:
        return self.process.wait(120)


@contextmanager
def bot(folder: Path, command: str, *more: str, limit: int = 0) -> Iterator[Bot]:
    """Start a bot on the file shop.py of `folder`. limit: bytes that it may write to one file, 0 for any."""
    log, name = folder.parent / f"{folder.name}.log", "shop.py"
    start = [sys.executable, "-m", "dg_lsp", "bot", name, "--tries", "1", "--keep-if", command, *more]
    if limit:
        code = (
            "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2); "
        )
        start = [sys.executable, "-c", code + "os.execvp(sys.argv[2], sys.argv[2:])", str(limit), *start]
    with log.open("wb") as stream:
        process = subprocess.Popen(start, cwd=folder, stdout=stream, stderr=stream, start_new_session=True)
    try:
        yield Bot(folder / name, log, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def killed(folder: Path, choose: random.Random) -> list[str]:
    """Kill a bot at a random moment; return what is wrong then."""
    path, how = folder / "shop.py", choose.choice(SIGNALS)
    path.write_text(TEXT)
    pids = folder.parent / f"{folder.name}.pids"
    pids.touch()
    # In every second run the fills of earlier stubs stay while later ones are tried.
    command, more, runs, longest = "sleep 0.2; false", list[str](), 0, 2.2
    if choose.random() < 0.5:
        run, report = (folder.parent / f"{folder.name}.{ending}" for ending in ("py", "xml"))
        run.write_text(TESTS)
        command, more = f"{sys.executable} {run} {report}", ["--report", str(report)]
        runs, longest = choose.randrange(1, 8), 0.7
    with bot(folder, f"echo $$ >> {pids}; {command}", *more) as one:
        while one.process.poll() is None and len(pids.read_text().split()) < runs:
            time.sleep(0.005)
        time.sleep(choose.uniform(0 if runs else 0.3, longest))
        one.process.send_signal(how)
        if choose.random() < 0.3:
            time.sleep(choose.uniform(0, 0.02))
            one.process.send_signal(how)
        one.in_time()
    wrong = []
    if how is not signal.SIGKILL:
        time.sleep(0.02)
        if path.read_text() != TEXT or {*folder.iterdir()} != {path}:
            wrong.append(f"{how.name}: the file is not as before, or something is beside it")
        wrong += [f"{how.name}: the command goes on" for pid in pids.read_text().split() if _lives(int(pid))]
    return wrong + _explained(folder, path, how.name)


def full(folder: Path, choose: random.Random) -> list[str]:
    """Let a bot write fewer bytes than it wants to, to one or two names of a file; return what is wrong then."""
    path = folder / "shop.py"
    path.write_text(TEXT)
    if choose.random() < 0.5:
        (folder / "other.py").hardlink_to(path)
    limit = choose.choice(
        (choose.randrange(1_500, len(TEXT) + 200), choose.randrange(len(TEXT) - 60, len(TEXT) + 60))
    )
    with bot(folder, "false", limit=limit) as one:
        one.in_time()
    wrong = [] if path.read_text() == TEXT else _explained(folder, path, f"limit {limit}")
    if "Traceback" in one.said or (limit < len(TEXT) and "no space" not in one.said):
        wrong.append(f"limit {limit}: {one.said}")
    return wrong


def crowded(folder: Path, choose: random.Random) -> list[str]:
    """Fill the disk of a bot while it tries a fill; return what is wrong then. The folder is a small disk."""
    path = folder / "shop.py"
    path.write_text(TEXT)
    if choose.random() < 0.5:
        (folder / "other.py").hardlink_to(path)
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    if choose.random() < 0.7:
        (folder / "ballast").write_bytes(bytes(choose.randrange(max(free, 1))))
    with bot(folder, "cat /dev/zero > more; sleep 0.05; false") as one:
        one.in_time()
    wrong = [] if path.read_text() == TEXT else _explained(folder, path, "full")
    if "Traceback" in one.said:
        wrong.append(one.said)
    for file in folder.iterdir():
        file.unlink()
    return wrong


def saved(folder: Path, choose: random.Random) -> list[str]:
    """Save the file of a bot at a random moment as a person does; return what is wrong then."""
    path = folder / "shop.py"
    path.write_text(TEXT)
    way = choose.choice((_append, _on_top, _old_buffer, _at_the_fill, _moved))
    with bot(folder, "sleep 0.2; false") as one:
        time.sleep(choose.uniform(0.3, 2.0))
        wanted = way(path.read_text())
        in_place = choose.random() < 0.5
        _save(path, wanted, in_place=in_place)
        one.in_time()
    words = f"{way.__name__}, {'in place' if in_place else 'by a new file'}"
    now = path.read_text()
    wrong = []
    for line in wanted.splitlines():
        if line.strip() and FILL not in line and "NotImplemented" not in line and line not in now:
            wrong.append(f"{words}: {line!r} is gone")
    places = [n for n, line in enumerate(now.splitlines(), 1) if FILL in line]
    if places and not (str(path) in one.said and re.search(r"untested fill", one.said)):
        wrong.append(f"{words}: a fill is in lines {places} without a word: {one.said}")
    copies = [other for other in folder.iterdir() if other != path]
    wrong += [
        f"{words}: nobody names {other.name}: {one.said}" for other in copies if str(other) not in one.said
    ]
    if not copies and now.count("NotImplementedError") < wanted.count("NotImplementedError"):
        wrong.append(f"{words}: a stub is gone")
    return wrong


def _append(text: str) -> str:
    return text + "# mine\n"


def _on_top(text: str) -> str:
    return text.replace("# the top", "# mine", 1).replace("NUMBER_599 = 599", "MINE = 1")


def _old_buffer(_: str) -> str:
    return TEXT.replace("# the top", "# mine", 1)


def _at_the_fill(text: str) -> str:
    return text.replace(FILL, f"{FILL} or a  # mine")


def _moved(text: str) -> str:
    """Move the first function to the end, and write a comment into the second."""
    head, *functions = text.partition("NUMBER_0")[0].split("def ")
    rest = "NUMBER_0" + text.partition("NUMBER_0")[2]
    return head + "".join(f"def {one}" for one in functions[1:]) + rest + f"\n\ndef {functions[0]}# mine\n"


def _save(path: Path, text: str, *, in_place: bool) -> None:
    if in_place:
        path.write_text(text)
        return
    part = path.with_name("part")
    part.write_text(text)
    part.replace(path)


def _explained(folder: Path, path: Path, words: str) -> list[str]:
    """Return what is wrong if neither the file has its text, nor a copy that a next run names.

    Somebody does what the messages say until there is no copy: puts the text from before back, or compares.
    """
    wrong = [
        f"{words}: {copy.name} is cut" for copy in _copies(folder) if _unfilled(copy.read_text()) != TEXT
    ]
    for _ in range(3):
        copies = _copies(folder)
        if not copies:
            break
        now = path.read_text()
        with bot(folder, "false") as one:
            one.in_time()
        named = [copy for copy in copies if str(copy) in one.said]
        if not named:
            return [*wrong, f"{words}: nobody names {copies}: {one.said}"]
        if now != TEXT and "untested fill" not in one.said and named[0].read_text() != now:
            wrong.append(f"{words}: a fill without a word: {one.said}")
        named[0].replace(path)
    if path.read_text() != TEXT:
        wrong.append(f"{words}: the text is gone")
    return wrong


def _copies(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.dg-lsp-*"))


def _unfilled(text: str) -> str:
    return text.replace(FILL, STUB)


def _lives(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


Scenario = Callable[[Path, random.Random], list[str]]


def repeat(scenario: Scenario, times: int, place: Path, seed: int = 0) -> list[str]:
    """Run `scenario` so many times in folders of `place`; return what was wrong."""
    wrong = []
    for number in range(times):
        folder = place / f"{scenario.__name__}-{number}"
        folder.mkdir()
        try:
            found = scenario(folder, random.Random(f"{seed} {number}"))
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        wrong += [f"{scenario.__name__} {number}: {one}" for one in found]
    return wrong


@contextmanager
def small_disk(place: Path, size: str = "96k") -> Iterator[Path]:
    """Mount a disk of `size`, where that is allowed; else raise OSError."""
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], capture_output=True, check=False
    )
    if done.returncode:
        raise OSError(done.stderr.decode())
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("kills", "disks", "saves", "seed"):
        parser.add_argument(f"--{name}", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"DG_LSP_CHECKPOINT": "scripted", "DG_LSP_RUNTIME_DIR": f"{folder}/run"}
        place, seed, wrong = Path(folder), arguments.seed, list[str]()
        wrong += repeat(killed, arguments.kills, place, seed)
        print(f"{arguments.kills} kills, {len(wrong)} wrong", flush=True)
        wrong += repeat(full, arguments.disks // 2, place, seed)
        with small_disk(place / "disk") as disk:
            wrong += repeat(crowded, arguments.disks - arguments.disks // 2, disk, seed)
        print(f"{arguments.disks} full disks, {len(wrong)} wrong so far", flush=True)
        wrong += repeat(saved, arguments.saves, place, seed)
        print(f"{arguments.saves} saves, {len(wrong)} wrong so far", *wrong, sep="\n")
        subprocess.run([sys.executable, "-m", "dg_lsp", "engine", "stop"], check=False)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
