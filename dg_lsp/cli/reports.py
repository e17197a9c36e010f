"""Reports of test runners: how a command is made to write one, and how each test ended by it."""

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from junitparser import Skipped, TestCase

# The tests that a run has reported, by name, and how each failed: "" if it passed. Skipped ones are not in it.
Results = Mapping[str, str]
# What differs between two runs of one test whatever the code does: addresses, durations, folders, numbers of lines.
_VARIES = re.compile(r"0x[0-9a-f]+|\d+")
# What may come before the name of a program that a shell starts.
_BEFORE = (
    r"(?:^|[;&|(]\s*|\b(?:npx|bunx|yarn|pnpm|exec|dlx|run|time|nice|env)\s+|\s-m\s+|\w=\S*\s+|(?<=[\w.])/)"
)
_TEST = re.compile(
    r"^test (.+?) \.\.\. (ok|FAILED)$|^ +(PASS|FAIL) \[[^\]]*\] +(?:\([^)]*\) +)?(\S.*)$", re.MULTILINE
)
# The place of a parameter in the name of a test: `value3-` or `value3]`.
_PLACE = re.compile(r"(?<=[A-Za-z_])\d+(?=[-\]])")
_LINE = re.compile(r"\(line \d+\)")
_PANIC = re.compile(r"^---- (.+?) (?:stdout )?----\n(.*?)(?=^----|^failures:|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """A command that reports its tests.

    files: where the reports will be, each with its reader. environment: variables that the command needs for that.
    named: a report that the user's command writes by itself, and its state before the run.
    """

    command: str
    environment: Mapping[str, str]
    files: tuple[tuple[Path, Callable[[Path], Results]], ...]
    named: tuple[Path, tuple[int, ...]] | None = None


def ask(command: str, folder: Path, named: Path | None = None) -> Asked:
    """Return `command` made to write its reports into `folder`, which is empty.

    pytest, jest, vitest, `node --test` and `go test` get options where the command starts them, and a pytest that the
    command starts indirectly (make, a script) is asked by PYTEST_ADDOPTS. named: a junit XML that the command writes.
    """
    files, started = list[tuple[Path, Callable[[Path], Results]]](), list[_Runner]()
    for runner in _RUNNERS:

        def with_options(found: re.Match[str], runner: _Runner = runner) -> str:
            path = folder / f"{len(files)}.report"
            started.append(runner)
            files.append((path, runner.read))
            return found[0] + runner.options.replace("{path}", shlex.quote(str(path)))

        command = re.sub(f"{_BEFORE}{runner.started}(?=\\s|$)", with_options, command)
    environment = dict[str, str]()
    # Started directly, it may start others of its own, which are none of the command's tests.
    if not any(runner is _PYTEST for runner in started):
        path = folder / "pytest.report"
        files.append((path, read_junit))
        options = _PYTEST.options.replace("{path}", shlex.quote(str(path)))
        environment["PYTEST_ADDOPTS"] = f"{os.environ.get('PYTEST_ADDOPTS', '')}{options}".strip()
    return Asked(command, environment, tuple(files), (named, _state(named)) if named else None)


def with_names_of(names: Collection[str], results: Results) -> Results:
    """Return `results` with the `names` that their tests had in earlier runs.

    pytest calls a parameter without a name by its place, such as `value3`, and the order of a set changes.
    """
    lost = _by_form(name for name in names if name not in results)
    new = _by_form(name for name in results if name not in names)
    earlier = {new[form][0]: lost[form][0] for form in new if len(new[form]) == len(lost.get(form, ())) == 1}
    return {earlier.get(name, name): how for name, how in results.items()}


def _by_form(names: Iterable[str]) -> dict[str, list[str]]:
    """Return `names` by what they are without the places of their parameters."""
    found = dict[str, list[str]]()
    for name in names:
        found.setdefault(_unnumbered(name), []).append(name)
    return found


def _unnumbered(name: str) -> str:
    """Return the name of a test without the places of its parameters."""
    function, bracket, parameters = name.partition("[")
    return function + bracket + _PLACE.sub("", parameters)


def read(asked: Asked, output: str) -> tuple[Results, str]:
    """Return the results of a run of `asked` that has printed `output`, and the output as a person reads it."""
    found, text = read_go(output)
    found |= read_cargo(text)
    files = [one for one in asked.files if one[0].is_file()]
    if asked.named and asked.named[1] != _state(asked.named[0]):
        files.append((asked.named[0], read_junit))
    for path, reader in files:
        # A report that was cut, because the command was killed, tells nothing.
        with suppress(OSError, ValueError, ElementTree.ParseError, KeyError, TypeError):
            found |= reader(path)
    return {name: _VARIES.sub("#", how) for name, how in found.items()}, text


def read_junit(path: Path) -> dict[str, str]:
    """Return the results in a junit XML."""
    found = dict[str, str]()
    # Suites may be in suites, and tests outside of any.
    for element in ElementTree.parse(path).iter("testcase"):
        case = TestCase.fromelem(element)  # type: ignore[no-untyped-call]
        results = case.result
        if any(isinstance(one, Skipped) for one in results):
            continue
        name = "::".join(filter(None, (case.classname, case.name)))
        how = "\n".join(f"{one.message or ''}\n{one.text or ''}" for one in results)
        # The teardown of a test has an entry of its own, and two tests may have one name.
        found[name] = found.get(name, "") + (how.strip() or "failed" if results else "")
    return found


def read_jest(path: Path) -> dict[str, str]:
    """Return the results in what `jest --json` writes."""
    found = dict[str, str]()
    for file in json.loads(path.read_bytes())["testResults"]:
        for test in file["assertionResults"]:
            if test["status"] in ("passed", "failed"):
                how = "\n".join(test["failureMessages"]) or "failed"
                found[test["fullName"]] = how if test["status"] == "failed" else ""
        if file["status"] == "failed" and not file["assertionResults"]:
            found[file["name"]] = file["message"] or "failed"
    return found


def read_go(output: str) -> tuple[dict[str, str], str]:
    """Return the results in what `go test -json` prints, and the text without JSON."""
    found, said, text = dict[str, str](), dict[str, str](), list[str]()
    for line in output.splitlines(keepends=True):
        event = _event(line)
        if event is None:
            text.append(line)
            continue
        package, action = event.get("Package", ""), event["Action"]
        name = f"{package}::{event['Test']}" if "Test" in event else package
        text.append(event.get("Output", ""))
        said[name] = said.get(name, "") + event.get("Output", "")
        if action == "fail" or (action == "pass" and "Test" in event):
            found[name] = said[name].strip() or "failed" if action == "fail" else ""
    # A package fails if one of its tests does, and alone if it does not compile or panics.
    failed = {name.partition("::")[0] for name, how in found.items() if how and "::" in name}
    return {name: how for name, how in found.items() if "::" in name or name not in failed}, "".join(text)


def _event(line: str) -> dict[str, str] | None:
    if not line.startswith('{"'):
        return None
    with suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict) and isinstance(event.get("Action"), str):
            return event
    return None


def read_cargo(output: str) -> dict[str, str]:
    """Return the results in the lines of `cargo test` and `cargo nextest`, whose JSON is not stable."""
    panics = {found[1]: found[2].strip() for found in _PANIC.finditer(output)}
    found = dict[str, str]()
    for test, ended, marked, name in _TEST.findall(output):
        how = (panics.get(test) or "failed") if "FAIL" in ended + marked else ""
        # A test in a comment is called after its line, which a fill above it moves.
        plain = _LINE.sub("(line)", test or name)
        found[plain] = found.get(plain, "") + how
    return found


def _state(path: Path) -> tuple[int, ...]:
    """Return what changes where the file at `path` is written; nothing if there is none."""
    with suppress(OSError):
        state = path.stat()
        return state.st_ino, state.st_mtime_ns, state.st_size
    return ()


@dataclass(frozen=True, slots=True)
class _Runner:
    """A test runner: how it is started, the options that make it report, and the reader of the file at {path}."""

    started: str
    options: str
    read: Callable[[Path], Results] = field(default=read_junit)


def _nothing(_: Path) -> Results:
    return {}


# One file of tests that cannot be loaded hides no other.
_PYTEST = _Runner(r"pytest", " --junitxml={path} --continue-on-collection-errors")
_RUNNERS = (
    _PYTEST,
    _Runner(r"jest", " --json --outputFile={path}", read_jest),
    _Runner(r"vitest(?: run)?", " --reporter=default --reporter=junit --outputFile.junit={path}"),
    _Runner(
        r"node --test",
        " --test-reporter=spec --test-reporter-destination=stdout --test-reporter=junit"
        " --test-reporter-destination={path}",
    ),
    _Runner(r"go test", " -json", _nothing),
    _Runner(r"cargo test", " --no-fail-fast", _nothing),
)
