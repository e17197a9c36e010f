"""The doctor's findings: right on a healthy machine, and never a traceback on a sick one."""

import importlib.metadata
import itertools
import json
import os
import re
import sys
from dataclasses import replace

import pytest

import dg_lsp
from dg_lsp.checkpoints import Measured, note_measured
from dg_lsp.cli import doctor, engine
from dg_lsp.cli.fetch import line_of
from dg_lsp.cli.main import main
from dg_lsp.engine.choice import choice
from dg_lsp.engine.local import LocalEngine
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Fill, Status
from dg_lsp.settings import Settings
from tests.scripts import install

SETTINGS = Settings()


def test_this_python_and_its_packages_are_fine():
    assert doctor.check_python(SETTINGS).state == "ok"
    finding = doctor.check_packages(SETTINGS)
    assert finding.state == "ok" and "torch 2." in finding.found


def test_a_long_list_is_folded_and_no_name_in_it_is_broken():
    finding = doctor.check_packages(SETTINGS)
    lines = doctor._line(finding).splitlines()
    assert len(lines) > 5 and max(map(len, lines)) <= 100
    assert " ".join(line.strip() for line in lines) == f"ok packages: {finding.found}".replace(
        "ok", "ok   ", 1
    )
    assert "\n" not in doctor._line(doctor.Finding("device", "ok", "x " * 100))


@pytest.mark.parametrize(
    ("system", "machine", "state"),
    [
        ("Linux", "x86_64", "ok"),
        ("Linux", "aarch64", "warn"),
        ("Darwin", "arm64", "warn"),
        ("Darwin", "x86_64", "warn"),
    ],
)
def test_a_system_that_nobody_has_tried_says_what_to_report(
    system: str, machine: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = os.uname_result((system, "host", "25.1", "a version", machine))
    monkeypatch.setattr("os.uname", lambda: names)
    finding = doctor.check_system(SETTINGS)
    assert finding.state == state and f"{system} " in finding.found and machine in finding.found
    assert ("dg-lsp doctor --json" in finding.fix) is (state == "warn")


def test_an_old_python_is_a_failure(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 9))
    finding = doctor.check_python(SETTINGS)
    assert finding.state == "fail" and "3.11" in finding.fix


@pytest.mark.parametrize(
    ("version", "state"),
    [("5.16.9", "fail"), ("5.17.0", "ok"), ("5.99", "ok"), ("6", "fail"), ("6.0.0", "fail")],
)
def test_a_version_outside_of_its_range_is_a_failure(monkeypatch, version, state):
    real, required = importlib.metadata.version, ["torch>=2", "transformers<6,>=5.17"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: required)
    monkeypatch.setattr(importlib.metadata, "version", lambda n: version if n == "transformers" else real(n))
    finding = doctor.check_packages(SETTINGS)
    assert finding.state == state
    assert (state == "ok") == (finding.fix == "")
    if state == "fail":
        assert f"transformers {version}" in finding.found
        assert finding.fix == "python -m pip install 'transformers<6,>=5.17'"


def test_what_only_an_extra_or_another_python_needs_is_not_asked_for(monkeypatch):
    required = ["numpy>=1", 'no-such-package>=1; extra == "lora"', 'other-package>=1; python_version < "3"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: required)
    finding = doctor.check_packages(SETTINGS)
    assert finding.state == "ok" and finding.found.startswith("numpy ") and "," not in finding.found


def test_a_package_that_breaks_at_import_is_a_failure(monkeypatch):
    real = doctor.importlib.import_module

    def broken(name):
        if name == "torch":
            raise OSError("libcudart.so: cannot open shared object file")
        return real(name)

    monkeypatch.setattr(doctor.importlib, "import_module", broken)
    finding = doctor.check_packages(SETTINGS)
    assert finding.state == "fail" and "libcudart" in finding.found and "'torch" in finding.fix


def test_a_device_that_is_not_there_is_a_failure(monkeypatch):
    import torch  # noqa: PLC0415

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert doctor.check_device(Settings(device="cuda")).state == "fail"
    assert doctor.check_device(Settings(device="auto")).state == "ok"
    assert doctor.check_device(Settings(checkpoint="owner/name")).state == "warn"


@pytest.mark.parametrize(
    ("free", "said"),
    [(79e9, "in 16 bits, untried"), (23e9, "in 4 bits, untried"), (20e9, None)],
)
def test_a_gpu_that_holds_the_released_checkpoint_says_so_and_advises_no_download(monkeypatch, free, said):
    import torch  # noqa: PLC0415

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (int(free), int(80e9)))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "A card")
    finding = doctor.check_device(Settings(device="auto"))
    assert finding.state == "ok" and (said or "GiB free") in finding.found
    assert ("DiffusionGemma" in finding.found) == bool(said) and "fetch" not in finding.found


def test_a_processor_is_not_advised_the_released_checkpoint(monkeypatch):
    import torch  # noqa: PLC0415

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("dg_lsp.engine.memory.free", lambda _: (int(70e9), "main memory"))
    assert "DiffusionGemma" not in doctor.check_device(Settings(device="auto")).found


@pytest.mark.parametrize(("free", "state"), [(8 << 30, "ok"), (1 << 20, "warn")])
def test_little_memory_is_a_warning(monkeypatch, free, state):
    monkeypatch.setattr("dg_lsp.engine.memory.free", lambda _: (free, "this machine"))
    assert doctor.check_memory(SETTINGS).state == state


def test_the_grammars_compile():
    finding = doctor.check_grammars(SETTINGS)
    assert finding.state == "ok" and "python" in finding.found


def test_a_missing_or_damaged_checkpoint_is_a_failure(tmp_path):
    for name in (str(tmp_path / "none"), str(tmp_path)):
        finding = doctor.check_checkpoint(Settings(checkpoint=name))
        assert finding.state == "fail" and finding.fix
    (tmp_path / "config.json").write_text("{}")
    finding = doctor.check_checkpoint(Settings(checkpoint=str(tmp_path)))
    assert finding.state == "fail" and "holds a None model" in finding.found
    wrong = {"files": {"config.json": {"bytes": 2, "sha256": "0" * 64}}}
    (tmp_path / "manifest.json").write_text(json.dumps(wrong))
    finding = doctor.check_checkpoint(Settings(checkpoint=str(tmp_path)))
    assert finding.state == "fail" and "damaged" in finding.found


def test_a_checkpoint_of_the_hub_is_not_fetched():
    settings = Settings(checkpoint="owner/name")
    assert doctor.check_checkpoint(settings).state == "warn"
    assert doctor.check_fill(settings).state == "warn"


@pytest.mark.parametrize(
    ("answer", "state"),
    [("return first + second", "ok"), (Fill("", refusal="nothing came"), "warn"), ("return (", "warn")],
)
def test_the_round_trip_is_judged_by_what_is_offered(monkeypatch, answer, state):
    install(monkeypatch, answer)
    finding = doctor.check_fill(SETTINGS)
    assert finding.state == state and (finding.fix == "") == (state == "ok")


@pytest.mark.parametrize("folder", ["a file", "a link", "x" * 120])
def test_a_folder_that_engines_cannot_meet_in_is_a_failure(folder, tmp_path, monkeypatch):
    (tmp_path / "a file").touch()
    (tmp_path / "a link").symlink_to(tmp_path)
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path / folder))
    finding = doctor.check_engine(Settings(checkpoint="scripted"))
    assert finding.state == "fail" and "DG_LSP_RUNTIME_DIR" in finding.found


def test_an_engine_that_cannot_start_is_a_failure(monkeypatch):
    def fail(settings, progress=None):
        raise EngineError("the weights are damaged")

    monkeypatch.setattr(LocalEngine, "open", staticmethod(fail))
    assert doctor.check_fill(SETTINGS).found == "the weights are damaged"


def test_whatever_a_check_raises_is_a_finding():
    def check_moon(settings):
        raise RuntimeError("first line\nsecond line")

    finding = doctor.examine(check_moon, SETTINGS)
    assert (finding.check, finding.state, finding.found) == ("moon", "fail", "first line")
    assert finding.fix


def test_one_failure_makes_the_exit_code_one_and_each_line_tells_its_fix(monkeypatch, capsys):
    monkeypatch.setattr(
        doctor, "check_checkpoint", lambda s: doctor.Finding("checkpoint", "fail", "gone", "get it")
    )
    assert main(["doctor", "--no-fill"]) == 1
    out = capsys.readouterr().out
    assert "fail  checkpoint: gone\n      fix: get it\n" in out
    assert len(re.findall(r"^(ok|warn|fail) ", out, re.MULTILINE)) == 7


def test_a_terminal_names_the_check_that_runs(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["doctor", "--no-fill", "--seed", "0"]) == 0
    said = capsys.readouterr().err
    # The cursor is shown again after each, and the last line is empty.
    assert "packages" in said and said.count("\x1b[?25l") == 7
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l")


@pytest.mark.slow
def test_json_holds_every_finding(monkeypatch, capsys, runtime):
    monkeypatch.setattr(
        doctor, "check_checkpoint", lambda s: doctor.Finding("checkpoint", "warn", "far", "wait")
    )
    install(monkeypatch, "return first + second")
    assert main(["doctor", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert all(check.keys() == {"check", "state", "found", "fix"} for check in reported["checks"])
    assert reported["ok"] and [check["check"] for check in reported["checks"]][-3:] == [
        "checkpoint",
        "auto",
        "engine",
    ]


def test_a_fill_in_this_process_is_tried_only_where_the_engine_fails(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "check_auto", lambda _: doctor.Finding("auto", "ok", "x"))
    monkeypatch.setattr(doctor, "_begin_engine", lambda _: None)
    opened = []

    def local(*_):
        opened.append(1)
        return ScriptedEngine(Fill("return first + second"))

    monkeypatch.setattr(LocalEngine, "open", local)
    for state, names in (("ok", ["auto", "engine"]), ("fail", ["auto", "engine", "fill"])):
        monkeypatch.setattr(
            doctor, "check_engine", lambda _, state=state: doctor.Finding("engine", state, "said", "")
        )
        assert main(["doctor", "--json"]) == (state == "fail")
        reported = json.loads(capsys.readouterr().out)
        assert [check["check"] for check in reported["checks"]][7:] == names
    assert opened == [1]


@pytest.mark.parametrize(("package", "state"), [("0.0.1", "warn"), (dg_lsp.__version__, "ok"), ("", "ok")])
def test_an_engine_of_another_version_is_named_with_the_fix(monkeypatch, package, state):
    status = Status("ready", package=package, device="cpu", process=7)

    async def found(*_):
        return status, 0.1

    monkeypatch.setattr("dg_lsp.cli.fill.round_trip", found)
    said = doctor.check_engine(SETTINGS)
    assert said.state == state
    assert (said.fix == "dg-lsp engine stop" and "dg-lsp 0.0.1" in said.found) is (state == "warn")
    assert ("dg-lsp engine stop" in engine._words(status)) is (state == "warn")
    # A team's server is restarted by others.
    assert doctor.check_engine(replace(SETTINGS, engine_url="https://team.example")).state == "ok"


@pytest.mark.parametrize(("needs", "itself"), [(1_000_000_000, True), (9_000_000_000, False)])
def test_a_slow_engine_is_a_warning_and_an_editor_may_help_itself(monkeypatch, tmp_path, needs, itself):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("dg_lsp.engine.memory.free", lambda _: (4_000_000_000, "this machine"))
    for name, seconds in (("coder", 1.5), ("coder-0.5b", 0.7)):
        (tmp_path / "dg-lsp" / name).mkdir(parents=True)
        note_measured(name, Measured(seconds, needs))

    async def found(*_):
        return Status("slow", 1.0, "take coder-0.5b", device="cpu", process=7), 0.1

    monkeypatch.setattr("dg_lsp.cli.fill.round_trip", found)
    said = doctor.check_engine(replace(SETTINGS, checkpoint="coder"))
    assert said.state == "warn" and said.fix.startswith("take coder-0.5b")
    assert ("with the checkpoint auto an editor does that by itself" in said.fix) is itself
    monkeypatch.setattr(doctor, "_speed", lambda: 1.0)
    monkeypatch.setattr("dg_lsp.cli.fetch.is_current", lambda _: True)
    auto = "while it takes longer than 2 s for ghost text, coder-0.5b (0.7 s) writes that"
    assert (auto in doctor.check_auto(SETTINGS).found) is itself


def test_the_engine_loads_while_the_checks_run_unless_a_checkpoint_is_to_be_measured(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    order = []

    async def begin(_):
        order.append("begin")
        raise EngineError("no memory")

    def noting(name):
        def check(_):
            order.append(name)
            return doctor.Finding(name, "ok", "")

        return check

    monkeypatch.setattr("dg_lsp.cli.engine.begin", begin)
    for name in (
        "memory",
        "system",
        "python",
        "packages",
        "device",
        "grammars",
        "checkpoint",
        "auto",
        "engine",
    ):
        monkeypatch.setattr(doctor, f"check_{name}", noting(name))
    assert main(["doctor"]) == 0
    assert order[:3] == ["memory", "begin", "system"] and order[-1] == "engine"
    # Neither where nothing is to be filled, nor beside a measurement.
    order.clear()
    assert main(["doctor", "--no-fill"]) == 0
    (tmp_path / "dg-lsp" / "small").mkdir(parents=True)
    assert main(["doctor"]) == 0 and "begin" not in order


def test_a_bad_setting_is_a_finding_too(monkeypatch, capsys):
    monkeypatch.setenv("DG_LSP_SEED", "many")
    assert main(["doctor"]) == 1
    assert "seed" in capsys.readouterr().out


def test_the_speed_of_this_machine_is_a_number():
    assert 0.01 < doctor._speed() < 100


def test_what_was_slow_is_timed_again_the_best_that_fits_first(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("dg_lsp.engine.memory.free", lambda _: (4_000_000_000, "this machine"))
    monkeypatch.setattr(doctor, "_speed", lambda: 1.0)
    assert "dg-lsp fetch coder gets" in doctor.check_auto(SETTINGS).found
    # On a machine as slow as that it would be too slow for typing.
    monkeypatch.setattr(doctor, "_speed", lambda: 0.5)
    assert "dg-lsp fetch coder-0.5b gets" in doctor.check_auto(SETTINGS).found
    for name in ("coder", "coder-0.5b", "small"):
        (tmp_path / "dg-lsp" / name).mkdir(parents=True)
    note_measured("coder", Measured(0.1, 5_000_000_000))
    older = doctor.check_auto(SETTINGS)
    assert older.state == "warn" and older.fix == "dg-lsp fetch coder"
    monkeypatch.setattr("dg_lsp.cli.fetch.is_current", lambda _: True)
    measures = []

    def refuse(*_):
        raise EngineError("its weights are damaged")

    for little, small, state, taken in (
        (5.0, 5.0, "warn", "coder-0.5b"),
        (5.0, 0.8, "ok", "small"),
        (0.5, 0.4, "ok", "coder-0.5b"),
    ):
        seconds = {"coder-0.5b": little, "small": small}

        def line(name, _, seconds=seconds):
            measures.append(name)
            return Measured(seconds[name], 1_000_000_000)

        monkeypatch.setattr("dg_lsp.cli.fetch.line_of", line)
        finding = doctor.check_auto(SETTINGS)
        assert (finding.state, choice(SETTINGS).name) == (state, taken)
        assert f"auto is {taken}: " in finding.found and "coder needs 5.0 GB" in finding.found
    # A time that is known to be good is not measured again.
    monkeypatch.setattr("dg_lsp.cli.fetch.line_of", refuse)
    assert doctor.check_auto(SETTINGS).state == "ok"
    note_measured("coder-0.5b", Measured(5.0, 1_000_000_000))
    broken = doctor.check_auto(SETTINGS)
    assert (broken.state, broken.fix) == ("warn", "dg-lsp fetch coder-0.5b --again")
    # Of those that do not fit none is loaded, nor one that is after a better one.
    assert measures == [*2 * ["coder-0.5b", "small"], "coder-0.5b"]


def test_a_line_is_timed_in_a_file_whose_beginning_is_encoded(monkeypatch):
    encoded, now = set(), 0.0

    def encode(request):
        nonlocal now
        now += 1.0 if request.prefix in encoded else 300.0
        encoded.add(request.prefix)
        return Fill("document")

    monkeypatch.setattr("dg_lsp.cli.fetch.time.perf_counter", lambda: now)

    monkeypatch.setattr(LocalEngine, "open", lambda *_: ScriptedEngine(encode))
    monkeypatch.setattr("dg_lsp.cli.fetch.time.process_time", itertools.count(0, 1000).__next__)
    assert line_of("embedded").seconds == 1.0
    # Reading what nobody has encoded takes longest, so it is done once.
    (prefix,) = encoded
    assert (
        prefix.startswith("def line_of(")
        and prefix.endswith("    await fill_gap(")
        and prefix.count("\n") > 20
    )


def test_a_line_is_timed_by_the_processor_where_the_machine_is_busy(monkeypatch):
    monkeypatch.setattr(LocalEngine, "open", lambda *_: ScriptedEngine(Fill("document")))
    monkeypatch.setattr("dg_lsp.cli.fetch.time.process_time", itertools.count(0, 1000).__next__)
    assert 0 < line_of("embedded").seconds < 60
    # The processor did other work while the clock went on.
    monkeypatch.setattr("dg_lsp.cli.fetch.time.process_time", itertools.count(0, 0).__next__)
    assert line_of("embedded").seconds == 0
