"""`dg-lsp doctor`: check this installation step by step, and say how to fix it. Never ends in a traceback.

Each check is a function of the settings that returns a Finding; what it raises becomes one.
"""

import argparse
import asyncio
import importlib
import importlib.metadata
import json
import math
import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import dg_lsp
from dg_lsp.checkpoints import (
    EMBEDDED,
    FAST_ENOUGH,
    OFFERED,
    better_than,
    folder_of,
    is_hub_name,
    measured,
    named,
    pinned,
)
from dg_lsp.cli import plugins
from dg_lsp.cli.options import add_settings, explain, settings_of
from dg_lsp.cli.shown import show, shown
from dg_lsp.cli.waiting import Waiting
from dg_lsp.processes import find_program
from dg_lsp.settings import Settings, UsageError, is_foreign

State = Literal["ok", "warn", "fail"]
_LONG, _WIDTH = 240, 100  # characters of a finding that is folded, and of its lines
_PYTHON = (3, 11)
_TRIED = {("Linux", "x86_64")}  # the systems and machines whose tests somebody has run
_OLDEST = {"nvim": (0, 12), "vscode": (1, 91)}
_LITTLE = 2 << 30  # bytes of free memory below which loading the embedded checkpoint may fail
# Bytes of a GPU that the released checkpoint needs, by the bits of its experts' weights (docs/hardware.md).
_RELEASED_NEEDS = {16: 60_000_000_000, 4: 21_000_000_000}
_PRODUCT = 1.76e-3  # seconds that `_speed` measures on REFERENCE
_REINSTALL = "reinstall it: python -m pip install --force-reinstall dg-lsp"
_SAMPLE = (
    b'def add(first, second):\n    """Return the sum of two numbers."""\n    raise NotImplementedError\n'
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, in words. `fix`: how to fix it; empty where all is well."""

    check: str
    state: State
    found: str
    fix: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp doctor`."""
    explain(
        parser,
        "Check this installation step by step: system, Python, packages, device, memory, grammars, checkpoint, a fill "
        "by the shared engine and, if that fails, one in this process. Each line that is not ok says how to fix it.",
        "dg-lsp doctor --no-fill",
        "0 nothing failed (warnings are allowed), 1 a check failed",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON object")
    parser.add_argument(
        "--editor",
        type=plugins.editor_of,
        metavar="{" + ",".join(plugins.EDITORS) + "}",
        help="check the chain from this editor to the engine: its version, the plug-in, the server on PATH, a fill",
    )
    parser.add_argument(
        "--with", dest="program", metavar="PROGRAM", help="VS Code's program, as for dg-lsp editor"
    )
    parser.add_argument(
        "--hashes", action="store_true", help="read each file of the checkpoint again, also the large ones"
    )
    parser.add_argument(
        "--no-fill", action="store_true", help="leave out the last checks, which load the model"
    )
    add_settings(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each check; 1 if one failed."""
    checks: list[Callable[[Settings], Finding]]
    # The memory first: the engine takes some of it.
    checks = [check_memory, check_system, check_python, check_packages, check_device, check_grammars]
    checks += [partial(check_checkpoint, large=sys.maxsize) if arguments.hashes else check_checkpoint]
    checks += [] if arguments.no_fill else [check_auto]
    if arguments.editor:
        chain = (partial(check, arguments.editor, arguments.program) for check in EDITOR_CHECKS)
        checks = [*chain]
    checks += [] if arguments.no_fill else [check_engine]
    findings: list[Finding] = []

    def note(finding: Finding) -> None:
        findings.append(finding)
        if not arguments.json:
            show(_line(finding))

    try:
        settings = settings_of(arguments)
    except ValueError as error:
        note(Finding("settings", "fail", str(error), "correct the option or the variable"))
        checks = []
    for number, check in enumerate(checks):
        # Some take half a minute.
        with Waiting(_name_of(check)):
            finding = examine(check, settings)
            if number == 0 and not arguments.no_fill:
                _begin_engine(settings)
        note(finding)
        # Without the engine's process: is it the process that fails, or the model?
        if (finding.check, finding.state) == ("engine", "fail") and not settings.engine_url:
            checks.append(check_fill)
    ok = all(finding.state != "fail" for finding in findings)
    if arguments.json:
        show(json.dumps({"ok": ok, "checks": [asdict(finding) for finding in findings]}, indent=1))
    return 0 if ok else 1


def examine(check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    """Return the Finding of `check`, also where it raises."""
    try:
        return check(settings)
    except Exception as error:  # whatever a broken installation brings is a finding
        return Finding(_name_of(check), "fail", _first_line(error), _REINSTALL)


def _name_of(check: Callable[[Settings], Finding]) -> str:
    name: str = getattr(check, "func", check).__name__
    return name.removeprefix("check_")


def _begin_engine(settings: Settings) -> None:
    """Start the engine, so that it loads while other checks run; what it fails with is found by `check_engine`.

    Not before a measurement, which it would disturb, and which may choose another checkpoint.
    """
    from dg_lsp.checkpoints import CheckpointError
    from dg_lsp.cli.engine import begin
    from dg_lsp.filling.engine import EngineError

    if not _is_absent(settings.checkpoint) and next(_untimed(settings), None) is None:
        with suppress(EngineError, CheckpointError, UsageError, OSError):
            asyncio.run(begin(settings))


def check_python(_: Settings) -> Finding:
    """Check that this Python is new enough."""
    found = f"Python {sys.version.split()[0]} at {sys.executable}"
    if sys.version_info < _PYTHON:
        return Finding("python", "fail", found, "install Python 3.11 or newer and dg-lsp in it")
    return Finding("python", "ok", found)


def check_system(_: Settings) -> Finding:
    """Say which system and processor this is, and what to report from those that nobody has tried."""
    names = os.uname()
    found = f"{names.sysname} {names.release} on {names.machine}"
    if (names.sysname, names.machine) in _TRIED:
        return Finding("system", "ok", found)
    found += "; dg-lsp is built for macOS and arm64 as well, but has only been tried with Linux on x86_64"
    fix = "please report to the project what `dg-lsp doctor --json` prints here"
    return Finding("system", "warn", found, fix)


def check_packages(_: Settings) -> Finding:
    """Check that each required package can be imported, in a version of its range."""
    found = [(need, *_package(need)) for need in _requirements()]
    bad = [(need, said) for need, good, said in found if not good]
    if not bad:
        return Finding("packages", "ok", ", ".join(said for _, _, said in found))
    wanted = " ".join(f"'{need}'" for need, _ in bad)
    return Finding("packages", "fail", "; ".join(said for _, said in bad), f"python -m pip install {wanted}")


def check_device(settings: Settings) -> Finding:
    """Check that the device of the settings is there."""
    import torch

    if torch.cuda.is_available():
        first, count = settings.place.partition("+")[0], torch.cuda.device_count()
        wanted = first.removeprefix("cuda:") if first.startswith("cuda:") else "0"
        if not wanted.isdecimal() or int(wanted) >= count:
            fix = f"use cuda:0 to cuda:{count - 1}, or auto"
            return Finding("device", "fail", f"there is no {settings.device}", fix)
        free, total = torch.cuda.mem_get_info(int(wanted))
        name = torch.cuda.get_device_name(int(wanted))
        found = f"{name}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
        chosen = "CPU as asked for; there is also " if first == "cpu" else ""
        return Finding("device", "ok", chosen + found + _released(free))
    from dg_lsp.engine.memory import allowed

    found = f"CPU, {allowed()} cores"
    if settings.device.startswith("cuda"):
        fix = "use --device auto, or install a driver and a torch with CUDA"
        return Finding("device", "fail", f"torch sees no CUDA device ({found})", fix)
    if not folder_of(settings.checkpoint).is_dir() and named(settings.checkpoint) not in OFFERED:
        fix = (
            "the released checkpoint, untried, needs a GPU with 60 GB free, or 21 GB, also of main memory, with "
            f"--weight-bits 4; {EMBEDDED} and {', '.join(OFFERED)} run on a CPU"
        )
        return Finding("device", "warn", found, fix)
    return Finding("device", "ok", found)


def _released(free: int) -> str:
    """Return words about the released checkpoint if it fits `free` bytes of a GPU; else nothing."""
    bits = next((bits for bits, most in _RELEASED_NEEDS.items() if free >= most), None)
    if bits is None:
        return ""
    return f"; DiffusionGemma 26B fits in {bits} bits, untried: nobody has run its weights (docs/hardware.md)"


def check_memory(_: Settings) -> Finding:
    """Say how much main memory is free."""
    from dg_lsp.engine.memory import free

    left, where = free("cpu")
    found = f"{left / 2**30:.1f} GiB free in {where}"
    if left < _LITTLE:
        return Finding("memory", "warn", found, f"end other programs until {_LITTLE >> 30} GiB are free")
    return Finding("memory", "ok", found)


def check_grammars(_: Settings) -> Finding:
    """Check that every grammar and its query compile."""
    from dg_lsp.source.language import containers, known_languages, load_language, plain_languages

    names, plain = known_languages(), plain_languages()
    for language in map(load_language, (*names, *plain)):
        if language.tree is not None:
            language.parse(b"\n")
    if not names:
        return Finding("grammars", "fail", "there is no grammar at all", _REINSTALL)
    lines, code = f"lines and blocks only: {', '.join(plain)}", f"only the code in: {', '.join(containers())}"
    return Finding("grammars", "ok", f"{', '.join(names)}; {lines}; {code}")


def check_checkpoint(settings: Settings, large: int | None = None) -> Finding:
    """Check that the files of the checkpoint are those of its manifest or the lock file, and what they say.

    large: bytes of a file that is not read again if it did not change since the last time; None for the usual.
    """
    from dg_lsp.checkpoints import CheckpointError, find_directory
    from dg_lsp.model.checkpoint import inspect
    from dg_lsp.model.manifest import LARGE, verify

    name, pin = settings.checkpoint, pinned(settings.checkpoint)
    if _is_absent(name):
        return Finding("checkpoint", "warn", f"{name} is not here", f"run dg-lsp fetch {name}")
    try:
        path = find_directory(name)
        alone, here = path.is_file(), not is_foreign(settings.engine_url)
        if here and alone:
            inspect(name)  # what is no GGUF file may be of any size
        digest = verify(path, large or LARGE, pin.files if pin else None)
        if here and not alone:
            inspect(name)
        commit = f", commit {pin.commit}" if pin else ""
        return Finding("checkpoint", "ok", f"{name}: sha256 {digest[:12]}{commit}, {path}")
    except CheckpointError as error:
        fix = f"dg-lsp fetch {name} --again" if pin else "name another with --checkpoint, or reinstall dg-lsp"
        return Finding("checkpoint", "fail", str(error), fix)


def check_auto(settings: Settings) -> Finding:
    """Check that `auto` means the best fetched checkpoint that is fast enough and fits in memory.

    A line is measured with those of unknown speed, or too slow until now, as the machine may have been busy; the best
    first. `auto` uses these times from then on.
    """
    from dg_lsp.cli.fetch import is_current, measure
    from dg_lsp.engine.choice import choice, room_for, smaller_than

    room = partial(room_for, settings=settings)
    fetched = _fetched()
    if old := [name for name in fetched if not is_current(name)]:
        found = f"{' and '.join(old)} came with another version of dg-lsp"
        return Finding("auto", "warn", found, f"dg-lsp fetch {old[0]}")
    for name in _untimed(settings):
        try:
            if measure(name).seconds <= FAST_ENOUGH:
                break
        except UsageError as error:
            return Finding("auto", "warn", str(error), f"dg-lsp fetch {name} --again")
    chosen = choice(settings)
    found, better = f"auto is {chosen.name}: {chosen.why}", better_than(chosen.name, room, _speed())
    known = measured(chosen.name)
    if fetched and (known is None or known.seconds > FAST_ENOUGH):
        return Finding("auto", "warn", found, better or "run dg-lsp doctor again when the machine is idle")
    beside, quicker = "", smaller_than(replace(settings, checkpoint=chosen.name))
    if quicker:
        beside = (
            f"while it takes longer than {FAST_ENOUGH:.0f} s for ghost text, {quicker.name} ({quicker.seconds:.1f} s) "
            f"writes that{f', if it fits: it {quicker.too_large}' if quicker.too_large else ''}"
        )
    return Finding("auto", "ok", "; ".join(filter(None, [found, beside, better])))


def _fetched() -> list[str]:
    """Return the checkpoints of OFFERED that are here, the best first."""
    return [name for name in OFFERED if folder_of(name).is_dir()]


def _untimed(settings: Settings) -> Iterator[str]:
    """Yield the fetched checkpoints that fit and are not known to be fast enough, down to one that is known to be."""
    from dg_lsp.engine.choice import room_for

    for name in _fetched():
        before = measured(name)
        if room_for(name, settings=settings) < (before.memory if before else OFFERED[name].memory):
            continue
        if before and before.seconds <= FAST_ENOUGH:
            return
        yield name


def _speed() -> float:
    """Return the speed of this machine's processor as a multiple of that of the two cores of REFERENCE.

    It is the time of one thread for a product of matrices, times the cores that an engine may use, at most eight.
    """
    import torch

    from dg_lsp.engine.memory import allowed

    threads, best = torch.get_num_threads(), math.inf
    torch.set_num_threads(1)
    try:
        weights, states = torch.ones(2048, 2048), torch.ones(8, 2048)
        for _ in range(20):
            began = time.thread_time()
            states @ weights
            best = min(best, time.thread_time() - began)
    finally:
        torch.set_num_threads(threads)
    return _PRODUCT / max(best, 1e-6) * min(allowed(), 8) / 2


def check_fill(settings: Settings) -> Finding:
    """Fill a small function in this process."""
    from dg_lsp.cli.fill import fill_and_close
    from dg_lsp.engine.local import LocalEngine
    from dg_lsp.filling.engine import EngineError
    from dg_lsp.gaps import find_named
    from dg_lsp.source.document import Document

    if _is_absent(settings.checkpoint):
        return Finding("fill", "warn", "not tried without the checkpoint", "see the checkpoint's line")
    if is_foreign(settings.engine_url):
        return Finding("fill", "ok", "not tried in this process: a server has the weights")
    document, began = Document("sample.py", "python", 0, _SAMPLE), time.perf_counter()
    try:
        engine = LocalEngine.open(settings)
        loaded = time.perf_counter() - began
        outcome = asyncio.run(fill_and_close(engine, (document, find_named(document, "add")), settings))
    except EngineError as error:
        return Finding("fill", "fail", str(error), "see the checkpoint's and the device's line")
    times = f"loaded in {loaded:.1f} s, answered in {outcome.fill.milliseconds / 1000:.2f} s"
    if outcome.edit is None:
        fix = "the engine works; --effort high tries more"
        return Finding("fill", "warn", f"{times}; nothing offered: {outcome.why}", fix)
    return Finding("fill", "ok", f"{times}: {' '.join(outcome.fill.text.split())[:60]}")


def check_engine(settings: Settings) -> Finding:
    """Fill the same function by the engine that all windows share."""
    from dg_lsp.cli.fill import round_trip
    from dg_lsp.engine.choice import smaller_than
    from dg_lsp.engine.client import name_of_state, other_version
    from dg_lsp.filling.engine import EngineError
    from dg_lsp.source.document import Document

    if _is_absent(settings.checkpoint):
        return Finding("engine", "warn", "not tried without the checkpoint", "see the checkpoint's line")
    try:
        document = Document("sample.py", "python", 0, _SAMPLE)
        status, seconds = asyncio.run(round_trip(document, "add", settings))
    except EngineError as error:
        again = "dg-lsp engine stop, then dg-lsp engine start"
        return Finding("engine", "fail", str(error), "docs/team.md" if settings.engine_url else again)
    found = f"{name_of_state(status)} on {status.device}, {status.memory / 2**20:.0f} MiB, process {status.process}"
    found += f"; round trip in {seconds:.2f} s"
    if (said := other_version(status)) and not settings.engine_url:
        return Finding("engine", "warn", f"{found}; {said}", "dg-lsp engine stop")
    if status.state != "slow":
        return Finding("engine", "ok", found)
    quicker = smaller_than(settings)
    by_itself = "; with the checkpoint auto an editor does that by itself"
    return Finding(
        "engine", "warn", found, status.why + (by_itself if quicker and not quicker.too_large else "")
    )


def check_editor(editor: str, program: str | None, _: Settings) -> Finding:
    """Check that the editor is there, in a version that the plug-in is made for."""
    try:
        found = plugins.find_program(program) if editor == "vscode" else find_program("nvim")
        if found is None:
            return Finding("editor", "fail", "nvim is not on PATH", "install Neovim 0.12 or newer")
        version = _first_line(plugins.run(found, "--version"))
    except UsageError as error:
        return Finding("editor", "fail", str(error), "install it, or name its program with --with")
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    if numbers < _OLDEST[editor]:
        wanted = ".".join(map(str, _OLDEST[editor]))
        fix = f"the plug-in is made for {wanted} and newer; older ones show no ghost text"
        return Finding("editor", "warn", f"{version} at {found}", fix)
    return Finding("editor", "ok", f"{version} at {found}")


def check_plugin(editor: str, program: str | None, _: Settings) -> Finding:
    """Check that the plug-in is installed, in the version of this server."""
    fix = f"dg-lsp editor install {editor}"
    try:
        plugin = plugins.plugin_of(editor, program)
        version = plugin.version()
    except UsageError as error:
        return Finding("plugin", "fail", str(error), "see the editor's line")
    if not version:
        return Finding("plugin", "fail", f"dg-lsp has installed none by {plugin.place}", fix)
    if version != dg_lsp.__version__:
        said = f"the plug-in is of version {version}, this server of {dg_lsp.__version__}"
        return Finding("plugin", "warn", said, fix)
    return Finding("plugin", "ok", f"version {version}, as the server")


def check_server(editor: str, program: str | None, _: Settings) -> Finding:
    """Check that the editor finds the server, in the version of this one."""
    setting = "vim.g.dg_lsp.cmd" if editor == "nvim" else "the setting dg-lsp.path"
    here = Path(sys.executable).with_name("dg-lsp")
    try:
        found = plugins.plugin_of(editor, program).server()
        if found is None:
            fix = f"dg-lsp editor install {editor}, or set {setting} to {here}"
            return Finding("server", "fail", "dg-lsp is not on PATH", fix)
        version = _first_line(plugins.run(found, "--version")).removeprefix("dg-lsp ")
    except UsageError as error:
        return Finding("server", "fail", str(error), f"set {setting} to {here}")
    if version != dg_lsp.__version__:
        said = f"{found} is of version {version}, this one of {dg_lsp.__version__}"
        return Finding("server", "warn", said, f"set {setting} to {here}, or update the other")
    return Finding("server", "ok", f"{found}, version {version}")


EDITOR_CHECKS = (check_editor, check_plugin, check_server)


def _requirements() -> list[Any]:
    """Return the packages that the installed dg-lsp requires, without its extras."""
    from packaging.requirements import Requirement

    named = map(Requirement, importlib.metadata.requires("dg-lsp") or ())
    return [need for need in named if need.marker is None or need.marker.evaluate({"extra": ""})]


def _package(need: Any) -> tuple[bool, str]:
    """Return whether a required package can be imported in a version of its range, and words about it."""
    try:
        version = importlib.metadata.version(need.name)
        importlib.import_module(need.name.replace("-", "_"))
    except Exception as error:  # a broken shared library raises OSError, an old numpy ValueError, ...
        return False, f"{need.name} cannot be imported ({_first_line(error)})"
    if need.specifier.contains(version, prereleases=True):
        return True, f"{need.name} {version}"
    return False, f"{need.name} {version} is not {need.specifier}"


def _is_absent(name: str) -> bool:
    """Return whether `name` is a hub name that was not fetched, or whose files are gone."""
    return is_hub_name(name) and not folder_of(name).exists()


def _first_line(said: object) -> str:
    """Return the first line of a text or of an error, whose kind it is where that has no text."""
    kind = type(said).__name__ if isinstance(said, Exception) else ""
    return next(iter(str(said).strip().splitlines()), kind)


def _line(finding: Finding) -> str:
    fix = f"\n      fix: {shown(finding.fix)}" if finding.fix else ""
    said = f"{finding.state:<4}  {finding.check}: {shown(finding.found)}"
    if len(said) > _LONG:
        lines = textwrap.TextWrapper(_WIDTH, subsequent_indent=" " * 6, break_long_words=False)
        lines.break_on_hyphens = False
        said = lines.fill(said)
    return said + fix
