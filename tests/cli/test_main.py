"""The command line with a scripted engine: targets, exit codes, what is printed and what is written."""

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.checkpoints import OFFERED, CheckpointError, find_directory
from dg_lsp.cli import engine
from dg_lsp.cli.main import COMMANDS, main
from dg_lsp.cli.target import Target, cursor_of, parse_target, replace_file
from dg_lsp.engine import team
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Fill, Infill, Status
from dg_lsp.settings import UsageError
from dg_lsp.source.document import read_document
from dg_lsp.training.packages import pinned_network
from tests import scripts

SOURCE = '''\
import math


def add(a, b):
    """Return the sum."""
    pass


class Circle:
    def area(self):
        raise NotImplementedError


total = add(1, 2)
'''


def install(patch, answer):
    """Put a scripted engine in the place of the local one and of the one that all windows share."""
    installed = scripts.install(patch, answer)

    def reach(settings, tell):
        installed.settings.append(settings)
        return installed.engine

    patch.setattr(team, "ResidentEngine", reach)
    return installed


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "sums.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("a.py:3", Target(Path("a.py"), 3)),
        ("a.py:3:5", Target(Path("a.py"), 3, 5)),
        ("a.py::Circle.area", Target(Path("a.py"), name="Circle.area")),
        (r"C:\src\a.py:12", Target(Path(r"C:\src\a.py"), 12)),
        (r"C:\src\a.py:12:7", Target(Path(r"C:\src\a.py"), 12, 7)),
        (r"C:\src\a.py::f", Target(Path(r"C:\src\a.py"), name="f")),
        ("odd::name.py::f", Target(Path("odd::name.py"), name="f")),
        ("odd:1:2:3", Target(Path("odd:1"), 2, 3)),
        ("a.cpp::Cart::total", Target(Path("a.cpp"), name="Cart::total")),
        ("src/a.cpp::v1.shop::Cart::total", Target(Path("src/a.cpp"), name="v1.shop::Cart::total")),
        ("odd::name.rs::Cart::total", Target(Path("odd::name.rs"), name="Cart::total")),
        ("noend::f", Target(Path("noend"), name="f")),
    ],
)
def test_a_target_is_a_path_and_a_place(text, target):
    assert parse_target(text) == target


@pytest.mark.parametrize(
    "text", ["a.py", "", ":3", "::f", "a.py::", "a.py:0", "a.py:1:0", "a.py:x", "a.py:9999999999"]
)
def test_what_is_no_target_is_refused(text):
    with pytest.raises(UsageError):
        parse_target(text)


@pytest.mark.parametrize(
    "words", [["fill", "FILE::add"], ["trace", "FILE::add"], ["demo"], ["engine", "start"]]
)
def test_no_engine_is_started_for_a_checkpoint_that_is_not_there(capsys, monkeypatch, file, words):
    monkeypatch.setattr("dg_lsp.engine.resident._spawn", lambda *_: pytest.fail("it was started"))
    words = [word.replace("FILE", str(file)) for word in words]
    assert main([*words, "--checkpoint", "codr"]) == 2
    err = capsys.readouterr().err
    assert "did you mean coder?" in err and "starting" not in err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_that_names_untried_weights_says_so(capsys, name):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert ("26B" in words or "released checkpoint" in words) <= ("untried" in words)


def test_the_help_of_fetch_names_whom_it_asks_for_what(capsys):
    with pytest.raises(SystemExit):
        main(["fetch", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    for name in OFFERED:
        pinned = pinned_network(name)
        package = pinned.parts[0].requirement.partition("==")[0]
        asked = f"{package} to {len(pinned.parts)}" if len(pinned.parts) > 1 else package
        assert f"{asked} ({name})" in words and pinned.hub in words
    assert "packages of other people" in words and "nothing of yours is sent" in words


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_a_column_after_the_end_of_its_line_is_an_error(capsys, tmp_path, ending):
    file = tmp_path / "a.py"
    file.write_bytes(f"# größe\nx = 1\ny = 𝔘{ending}".encode())
    for place, last in (("1", 8), ("2", 6), ("3", 6)):
        for column in (last + 1, 999):
            assert main(["fill", f"{file}:{place}:{column}"]) == 2
            said = f"line {place} of {file} ends at column {last}, so there is no column {column}"
            assert said in capsys.readouterr().err
        document = read_document(file)
        assert cursor_of(Target(file, int(place), last), document) == document.line_end(int(place) - 1)
        assert cursor_of(Target(file, int(place)), document) == document.line_end(int(place) - 1)


@pytest.mark.parametrize("words", [["editor", "install", "emacs"], ["doctor", "--editor", "helix"]])
def test_an_editor_without_a_plug_in_is_told_its_page(capsys, words):
    with pytest.raises(SystemExit) as end:
        main(words)
    err = capsys.readouterr().err
    assert end.value.code == 2 and f"no plug-in for '{words[-1]}', only for vscode and nvim" in err
    assert "docs/editors" in err


@pytest.mark.parametrize("place", ["::add", ":4", ":6", ":6:7"])
def test_fill_prints_a_diff_and_one_status_line(monkeypatch, capsys, file, place):
    install(monkeypatch, "return a + b")
    assert main(["fill", f"{file}{place}"]) == 0
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}] == [
        "-    pass",
        "+    return a + b",
    ]
    assert err.splitlines()[-1] == (
        "dg-lsp: filled in 2.31 s, 14 steps after 22 of length search; stopped because the text no longer changed"
    )
    assert file.read_text() == SOURCE


def test_fill_says_how_sure_the_fill_is_and_where_it_comes_from(monkeypatch, capsys, file):
    install(monkeypatch, Fill("return a + b", chance=0.623, source="retrieved"))
    assert main(["fill", f"{file}::add"]) == 0
    assert "right with 62 %, found in the project" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("command", ["fill", "trace"])
def test_at_a_finished_line_a_most_likely_wrong_text_is_not_offered(monkeypatch, capsys, file, command):
    install(monkeypatch, Fill("; equivalent", chance=0.004, source="drafted"))
    assert main([command, f"{file}:14"]) == 1
    out, err = capsys.readouterr()
    assert "equivalent" not in out + err
    reason = "this line is finished, and the best text is right with 0 %, written from left to right"
    assert err.endswith(f": {reason}\n")


# Places, fills there, and what is said of them.
ASKED = {
    ":14": (
        Fill("  # three", chance=0.5),
        "right with 50 %, denoised from noise; this line is finished",
    ),
    ":14:3": (Fill("x", chance=0.5), "denoised from noise; the cursor is in the middle of a word"),
    ":6": (Fill("return a + b", chance=0.04), "unsure: right with 4 %, denoised from noise"),
}


@pytest.mark.parametrize("place", ASKED)
def test_a_change_that_an_editor_would_ask_about_is_printed_and_not_written(monkeypatch, capsys, file, place):
    fill, said = ASKED[place]

    def run(*options):
        install(monkeypatch, fill)
        return main(["fill", f"{file}{place}", *options])

    assert run("--json") == 0
    out, err = capsys.readouterr()
    assert err.endswith(f"{said}\n") and json.loads(out)["confirm"] in f"{said} unsure: right with 4 %"
    assert run("--write") == 1
    out, err = capsys.readouterr()
    assert out.startswith("--- ") and f"{file} was left as it is; apply the diff" in err
    assert file.read_text() == SOURCE


def test_an_unsure_body_is_said_to_be_so_and_written_where_its_function_is_named(monkeypatch, capsys, file):
    install(monkeypatch, Fill("return a + b", chance=0.04))
    assert main(["fill", f"{file}::add", "--write"]) == 0
    assert "unsure: right with 4 %" in capsys.readouterr().err
    assert file.read_text() == SOURCE.replace("    pass", "    return a + b")


def test_a_fill_without_steps_tells_of_none(monkeypatch, capsys, file):
    install(monkeypatch, Fill("return a + b", source="drafted", reason="stable", milliseconds=360))
    assert main(["fill", f"{file}::add"]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == (
        "dg-lsp: filled in 0.36 s; written from left to right"
    )


def test_the_diff_can_be_applied(monkeypatch, capsys, file):
    install(monkeypatch, "return a + b")
    monkeypatch.chdir(file.parent)
    main(["fill", "sums.py::add"])
    diff = capsys.readouterr().out
    subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=file.parent, check=True)
    assert file.read_text() == SOURCE.replace("    pass", "    return a + b")


@pytest.mark.parametrize("options", [[], ["--alone"]])
def test_fill_closes_its_engine(monkeypatch, file, options):
    installed = install(monkeypatch, "return a + b")
    main(["fill", f"{file}::add", *options])
    assert installed.engine.closed


def test_the_kind_can_be_chosen(monkeypatch, file):
    installed = install(monkeypatch, " + 1")
    main(["fill", f"{file}:14", "--kind", "rest_of_line"])
    assert installed.requests[0].kind == "rest_of_line"
    assert installed.requests[0].prefix.endswith("total = add(1, 2)")


def test_columns_count_characters_and_not_bytes(monkeypatch, tmp_path):
    installed = install(monkeypatch, "x")
    path = tmp_path / "a.py"
    path.write_text("name = '字字' + other\n", encoding="utf-8")
    main(["fill", f"{path}:1:12"])
    assert installed.requests[0].prefix == "name = '字字'"


def test_options_come_before_the_environment(monkeypatch, file):
    installed = install(monkeypatch, "return a + b")
    monkeypatch.setenv("DG_LSP_SEED", "5")
    monkeypatch.setenv("DG_LSP_EFFORT", "low")
    main(["fill", f"{file}::add", "--effort", "high", "--deadline", "2.5"])
    settings = installed.settings[0]
    assert (settings.seed, settings.effort, settings.deadline) == (5, "high", 2.5)


def test_a_variable_that_is_no_setting_is_warned_of_once(monkeypatch, capsys, file):
    install(monkeypatch, "return a + b")
    monkeypatch.setenv("DG_LSP_EFORT", "high")
    assert main(["fill", f"{file}::add"]) == 0
    said = capsys.readouterr()
    assert said.err.count("DG_LSP_EFORT has no effect; did you mean DG_LSP_EFFORT?") == 1
    assert "EFORT" not in said.out


def test_json_is_one_object_with_everything(monkeypatch, capsys, file):
    install(monkeypatch, "return a + b")
    assert main(["fill", f"{file}::add", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["fill"]["text"] == "return a + b"
    assert result["edit"]["text"] == "return a + b"
    assert SOURCE.encode()[result["edit"]["start"] : result["edit"]["end"]] == b"pass"
    assert result["diff"].startswith("--- ") and result["why"] == ""


def test_nothing_offered_is_exit_one_with_the_reason(monkeypatch, capsys, file):
    install(monkeypatch, Fill("", refusal="the deadline passed before a candidate was ready"))
    assert main(["fill", f"{file}::add", "--write"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "the deadline passed before" in err
    assert file.read_text() == SOURCE


WRITTEN = "def add(a, b):\n    total = a + b\n    return total\n"


@pytest.mark.parametrize("how", [{"shortened": True}, {"reason": "deadline"}])
def test_a_text_that_was_cut_off_replaces_no_written_lines(monkeypatch, capsys, tmp_path, how):
    path = tmp_path / "a.py"
    path.write_text(WRITTEN)
    for words in ([f"{path}::add"], [f"{path}:2", "--kind", "function_body"]):
        install(monkeypatch, Fill("return a", **how))
        assert main(["fill", *words, "--write"]) == 1
        out, err = capsys.readouterr()
        assert path.read_text() == WRITTEN and "+    return a" in out
        assert "left as it is, because the text was cut off" in err and "--deadline" in err
    # What is not written yet may begin so, and a whole text may replace what is.
    path.write_text("def add(a, b):\n    pass\n")
    install(monkeypatch, Fill("return a", **how))
    assert main(["fill", f"{path}::add", "--write"]) == 0 and "return a" in path.read_text()
    path.write_text(WRITTEN)
    install(monkeypatch, Fill("return a", reason="steps"))
    assert main(["fill", f"{path}::add", "--write"]) == 0 and "total" not in path.read_text()


def test_what_would_break_the_file_is_not_offered(monkeypatch, capsys, file):
    install(monkeypatch, "return (a + b")
    assert main(["fill", f"{file}::add", "--write"]) == 1
    assert "syntax error" in capsys.readouterr().err
    assert file.read_text() == SOURCE


def test_write_changes_only_the_gap_and_keeps_the_mode(monkeypatch, file):
    install(monkeypatch, "return a + b")
    file.chmod(0o640)
    assert main(["fill", f"{file}::add", "--write"]) == 0
    assert file.read_text() == SOURCE.replace("    pass", "    return a + b")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("command", [["fill"], ["trace"], ["bot", "--dry-run"]])
def test_a_language_that_the_checkpoint_has_not_learned_is_named(monkeypatch, capsys, tmp_path, command):
    install(monkeypatch, "return 0")
    file = tmp_path / "sums.go"
    file.write_text("package sums\n\nfunc add(a, b int) int {\n}\n")
    place = "" if "bot" in command else "::add"
    assert main([*command, f"{file}{place}", "--checkpoint", "embedded"]) == 0
    assert (
        "the embedded checkpoint was trained on Python only, so expect little in go"
        in capsys.readouterr().err
    )
    main(["fill", f"{file}::add", "--checkpoint", "scripted"])
    assert "trained" not in capsys.readouterr().err


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_code_fence_of_markdown_is_filled_where_it_is(monkeypatch, capsys, tmp_path, line_end):
    text = "# Größe\n\nSome words.\n\n```python\ndef add(a, b):\n    pass\n```\n\nMore.\n".replace(
        "\n", line_end
    )
    file = tmp_path / "notes.md"
    file.write_bytes(text.encode())
    installed = install(monkeypatch, "return a + b")
    assert main(["trace", f"{file}:7"]) == 0
    assert installed.requests[0].language == "python" and "-    pass" in capsys.readouterr().out
    install(monkeypatch, "return a + b")
    assert main(["fill", f"{file}:7", "--write"]) == 0
    assert file.read_bytes() == text.replace("pass", "return a + b").encode()
    assert main(["fill", f"{file}:3"]) == 2
    assert "only the code fences are filled" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["::area", "::Shape.area", ":8"])
def test_a_body_in_a_script_is_filled_where_it_is_by_name_or_line(monkeypatch, capsys, tmp_path, place):
    above = "<style>\np { margin: 0 }\n</style>\n<p>ä</p>\n"
    text = f"{above}<script lang='ts'>\nclass Shape {{\n  area() {{\n  }}\n}}\n</script>\n"
    text = text if "Shape" in place else text.replace("class Shape {\n  area", "{\n  function area")
    file = tmp_path / "Shape.vue"
    file.write_text(text)
    installed = install(monkeypatch, "return 1")
    assert main(["fill", f"{file}{place}", "--write"]) == 0
    assert installed.requests[0].language == "typescript"
    assert file.read_text() == text.replace("{\n  }", "{\n    return 1\n  }")
    assert main(["fill", f"{file}::volume"]) == 2
    assert "no function volume" in capsys.readouterr().err


def test_write_refuses_a_file_that_changed_meanwhile(monkeypatch, capsys, file):
    def answer(request):
        file.write_text(SOURCE + "# typed meanwhile\n")
        return Fill("return a + b")

    install(monkeypatch, answer)
    assert main(["fill", f"{file}::add", "--write"]) == 2
    assert "changed meanwhile" in capsys.readouterr().err
    assert file.read_text() == SOURCE + "# typed meanwhile\n"
    assert list(file.parent.iterdir()) == [file]


def test_write_follows_a_link(tmp_path, file):
    link = tmp_path / "link.py"
    link.symlink_to(file)
    replace_file(link, SOURCE.encode(), b"new\n")
    assert link.is_symlink() and file.read_bytes() == b"new\n"


@pytest.fixture(params=["file", "folder", "link"])
def read_only(request, tmp_path, file):
    """A file that may not be replaced, because of its own mode or its folder's, or after a link."""
    inner = tmp_path / "inner"
    inner.mkdir()
    path = file.rename(inner / "shop.py")
    (inner if request.param == "folder" else path).chmod(0o555 if request.param == "folder" else 0o444)
    if request.param == "link":
        (tmp_path / "link.py").symlink_to(path)
        yield tmp_path / "link.py"
    else:
        yield path
    inner.chmod(0o755)


def test_write_refuses_what_is_read_only_and_says_how_to_go_on(monkeypatch, capsys, read_only):
    install(monkeypatch, "return a + b")
    mode = read_only.stat().st_mode
    assert main(["fill", f"{read_only}::add"]) == 0
    capsys.readouterr()
    assert main(["fill", f"{read_only}::add", "--write"]) == 2
    reported = capsys.readouterr()
    assert "read-only" in reported.err and "chmod u+w" in reported.err and not reported.out
    assert read_only.read_text() == SOURCE and read_only.stat().st_mode == mode
    assert len(list(read_only.resolve().parent.iterdir())) == 1


@pytest.mark.parametrize("options", [[], ["--keep-if", "true"]])
def test_the_bot_leaves_what_is_read_only_and_says_so(monkeypatch, capsys, read_only, options):
    installed = install(monkeypatch, "return a + b")
    assert main(["bot", str(read_only), "--json", "-", *options]) == 1
    reported = capsys.readouterr()
    report = json.loads(reported.out)
    ((path, why),) = report["skipped"]
    assert path == str(read_only) and "read-only" in why and "kept" not in why
    assert report["stubs"] == [] and report["summary"]["kept"] == 0 and not installed.requests
    assert read_only.read_text() == SOURCE
    assert len(list(read_only.resolve().parent.iterdir())) == 1


def test_what_could_not_be_written_is_not_said_to_be_kept(monkeypatch, capsys, file):
    def answer(request):
        file.write_text(SOURCE + "# typed meanwhile\n")
        return Fill("return a + b")

    install(monkeypatch, answer)
    assert main(["bot", str(file), "--json", "-"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not any(report["summary"].values()) and report["stubs"] == []
    assert "changed meanwhile" in report["skipped"][0][1]
    assert file.read_text() == SOURCE + "# typed meanwhile\n"


def test_replacing_keeps_mode_and_owner(file):
    file.chmod(0o640)
    wanted = file.stat()
    if os.geteuid() == 0:
        os.chown(file, 12345, 23456)
        wanted = file.stat()
    replace_file(file, SOURCE.encode(), b"new\n")
    found = file.stat()
    assert (found.st_mode, found.st_uid, found.st_gid) == (wanted.st_mode, wanted.st_uid, wanted.st_gid)
    assert file.read_bytes() == b"new\n"


def test_replacing_keeps_hard_links(tmp_path, file):
    other = tmp_path / "other.py"
    other.hardlink_to(file)
    replace_file(file, SOURCE.encode(), b"new\n")
    assert other.read_bytes() == file.read_bytes() == b"new\n" and file.samefile(other)
    with pytest.raises(UsageError, match="changed meanwhile"):
        replace_file(file, SOURCE.encode(), b"newer\n")
    assert other.read_bytes() == b"new\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{file}"], "FILE:LINE"),
        (["{file}:99"], "no line 99"),
        (["{file}::missing"], "the file has no function missing; close to it are Circle.area, add"),
        (["{folder}/none.py:1"], "none.py"),
        (["{folder}:1"], "is a directory"),
        (["{folder}/folder.py:1"], "is a directory"),
        (["{folder}/notes.unknown:1"], "notes.unknown"),
        (["{folder}/bytes.py:1"], "bytes.py"),
        (["{file}:14", "--kind", "function_body"], "in no function"),
        (["{file}::add", "--kind", "rest_of_line"], "FILE:LINE:COLUMN"),
        (["{file}::add", "--seed", "many"], "seed"),
        (["{file}::add", "--deadline", "-1"], "deadline"),
        (["{file}::add", "--effort", "huge"], "low, normal, high"),
        (["{file}::add", "--unknown"], "--unknown"),
    ],
)
def test_bad_input_is_exit_two_and_one_line(monkeypatch, capsys, file, arguments, said):
    install(monkeypatch, "return a + b")
    (file.parent / "notes.unknown").write_text("x")
    (file.parent / "folder.py").mkdir()
    (file.parent / "bytes.py").write_bytes(b"x = '\xff'\n")
    given = [a.replace("{file}", str(file)).replace("{folder}", str(file.parent)) for a in arguments]
    assert main(["fill", *given]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if "loading" not in line]
    assert len(lines) == 1 and lines[0].startswith("dg-lsp: error: ") and said in lines[0]


UNREADABLE = {
    "none.py": "none.py",
    "circle.py": "leads back to itself",
    "one/circle.py": "leads back to itself",
    "shop.py/none.py": "there is no ",
    "x" * 300 + ".py": "File name too long",
}


@pytest.mark.parametrize(
    "words", [["fill", "{}::add"], ["bot", "{}", "--dry-run"]], ids=lambda words: words[0]
)
@pytest.mark.parametrize("name", UNREADABLE, ids=lambda name: name[:20])
def test_the_true_reason_is_given_why_a_file_cannot_be_read(monkeypatch, capsys, tmp_path, words, name):
    (tmp_path / "shop.py").write_text("def add(a, b):\n    raise NotImplementedError\n")
    (tmp_path / "circle.py").symlink_to("circle.py")
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    monkeypatch.chdir(tmp_path)
    assert main([word.format(name) for word in words]) == 2
    error = capsys.readouterr().err
    assert UNREADABLE[name] in error and "permissions" not in error and len(error.splitlines()) == 1


def test_an_engine_that_cannot_start_is_exit_two(monkeypatch, capsys, file):
    def fail(settings, progress=None):
        raise EngineError("no checkpoint 'x': name another")

    monkeypatch.setattr(LocalEngine, "open", staticmethod(fail))
    assert main(["fill", f"{file}::add", "--alone"]) == 2
    assert capsys.readouterr().err == "dg-lsp: error: no checkpoint 'x': name another\n"


def test_an_interrupt_is_exit_130_and_closes_the_engine(monkeypatch, file):
    def answer(request):
        raise KeyboardInterrupt

    installed = install(monkeypatch, answer)
    assert main(["fill", f"{file}::add"]) == 130
    assert installed.engine.closed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fetch", "medium"], "there are coder, coder-0.5b, small, and OWNER/NAME"),
        (["fetch", "embedded"], "is part of dg-lsp"),
        (["fetch", "small", "--revision", "main"], "one version"),
        (["fetch", "small", "--file", "nowhere.whl"], "there is no file nowhere.whl; check the path"),
        (["import", "nowhere", "--out", "made"], "there is no file or folder nowhere"),
        (
            ["fill", f"{__file__}:1", "--checkpoint", "medium", "--alone"],
            "no checkpoint 'medium': it is neither",
        ),
        (["import", ".", "--out", __file__], "is a file; name a folder with --out"),
    ],
)
def test_a_wrong_name_is_reported_before_torch_is_imported(arguments, said):
    program = (
        f"import sys; from dg_lsp.cli.main import main; print(main({arguments!r}), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "2 False\n" and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_our_own_mistakes_are_not_hidden(monkeypatch, file):
    def answer(request):
        raise ZeroDivisionError

    install(monkeypatch, answer)
    with pytest.raises(ZeroDivisionError):
        main(["fill", f"{file}::add"])


def test_trace_shows_the_steps_and_writes_the_page(monkeypatch, capsys, file):
    install(monkeypatch, "return a + b")
    html = file.parent / "trace.html"
    assert main(["trace", f"{file}::add", "--html", str(html)]) == 0
    out = capsys.readouterr().out
    assert out.index("⟦return zzz⟧") < out.index("⟦return a + b⟧") < out.index("+    return a + b")
    assert "\x1b" not in out
    assert html.read_text(encoding="utf-8").count("mean entropy") == 2


@pytest.mark.parametrize(("page", "why"), [("no/t.html", "there is no folder"), ("", "it is a folder")])
def test_a_page_that_cannot_be_written_is_reported_before_the_gap_is_filled(
    monkeypatch, capsys, file, page, why
):
    installed = install(monkeypatch, "return a + b")
    html = file.parent / page
    assert main(["trace", f"{file}::add", "--html", str(html)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"dg-lsp: error: {html} cannot be written: {why}") and len(err.splitlines()) == 1
    assert not out and not installed.requests


def test_the_systems_errors_are_reported_without_pythons_number(monkeypatch, capsys, file):
    def fail(request):
        raise FileNotFoundError(2, "No such file or directory", "/lost")

    install(monkeypatch, fail)
    assert main(["fill", f"{file}::add"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "dg-lsp: error: /lost: No such file or directory"


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--stdio"], ["--log-level", "debug", "--stdio"], ["serve"]])
def test_without_a_command_it_is_a_server(options):
    params: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
    sent = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    done = subprocess.run(
        [sys.executable, "-m", "dg_lsp", *options], input=sent, capture_output=True, timeout=300, check=False
    )
    assert b'"inlineCompletionProvider"' in done.stdout
    # The input ended without a goodbye.
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("fil", "did you mean fill?"),
        ("docter", "did you mean doctor?"),
        ("fill.py", "did you mean fill?"),
        ("xyzzy", "dg-lsp --help lists the commands"),
        ("", "dg-lsp --help lists the commands"),
    ],
)
def test_an_unknown_command_is_exit_two_and_one_line(capsys, word, advice):
    assert main([word]) == 2
    assert capsys.readouterr().err == f"dg-lsp: error: there is no command {word!r}; {advice}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_help_explains_itself(capsys, command):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    page = capsys.readouterr().out
    assert ".0, or what" not in page
    usage, description, *rest = page.split("\n\n")
    assert usage.startswith(f"usage: dg-lsp {command} ") and len(description) > 80
    assert f"Example: dg-lsp {'' if command == 'serve' else command}" in rest[-2]
    assert rest[-1].startswith("Exit codes: 0 ")


def test_the_help_lists_each_command(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    page = capsys.readouterr().out
    assert re.findall(r"^    ([\w-]+)", page, re.MULTILINE) == list(COMMANDS)
    assert "a diffusion model or another" in " ".join(page.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_exit_two_and_one_line(capsys, command):
    needed = {"fill": ["a.py:1"], "trace": ["a.py:1"], "train": ["--out", "x"], "engine": ["status"]} | {
        "bot": ["a.py"],
        "editor": ["list"],
        "fetch": ["small"],
        "import": ["source", "--out", "x"],
        "pack": ["source"],
        "serve-engine": ["--tokens", "x"],
    }
    assert main([command, *needed.get(command, []), "--nonsense"]) == 2
    assert capsys.readouterr().err == (
        f"dg-lsp: error: unknown argument '--nonsense'; see dg-lsp {command} --help\n"
    )


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("--stido", "did you mean --stdio?"),
        ("--versoin", "did you mean --version?"),
        ("--xyz", "options come after a command; see dg-lsp --help"),
    ],
)
def test_an_option_without_a_command_is_an_error_that_names_the_fix(capsys, option, advice):
    assert main([option]) == 2
    assert capsys.readouterr().err == f"dg-lsp: error: there is no option {option!r}; {advice}\n"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("codr", "coder"),
        ("Coder", "coder"),
        ("embeded", "embedded"),
        ("https://a.example/Some/Net-3B", "Some/Net-3B"),
    ],
)
def test_a_misspelt_checkpoint_is_answered_with_the_one_that_is_meant(capsys, name, near):
    assert main(["fetch", name]) == 2
    assert capsys.readouterr().err.endswith(f"; did you mean {near}?\n")
    with pytest.raises(CheckpointError, match=f"did you mean {near}"):
        find_directory(name)


def test_the_end_of_a_process_looks_through_no_objects() -> None:
    # Those of torch take a second, in which a terminal shows nothing.
    program = (
        "import atexit, gc, dg_lsp.cli.main as cli; cli.main = lambda: 3; "
        "atexit.register(lambda: print(gc.get_freeze_count() > 1000)); cli.run_process()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 3 and done.stdout == "True\n"


def test_version_is_the_package_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("dg-lsp 0.")


@pytest.mark.slow
@pytest.mark.parametrize("command", [*COMMANDS])
def test_no_help_imports_torch(command):
    code = "import sys; from dg_lsp.cli.main import main\ntry: main([sys.argv[1], '--help'])\nexcept SystemExit: pass\n"
    code += "assert not {'torch', 'transformers', 'tokenizers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code, command], check=True, stdout=subprocess.DEVNULL)


def test_windows_is_refused_in_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr("dg_lsp.cli.main.POSIX", False)
    assert main(["fill", "a.py:1"]) == 2
    reported = capsys.readouterr().err
    assert "Windows" in reported and "WSL" in reported and len(reported.splitlines()) == 1


def test_the_list_of_commands_imports_none_of_them():
    code = "import sys; from dg_lsp.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "ours = {name for name in sys.modules if name.startswith('dg_lsp')}\n"
    code += "assert ours == {'dg_lsp', 'dg_lsp.cli', 'dg_lsp.cli.main'}, ours"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def without(package, *arguments):
    """Run `dg-lsp` in a process in which `package` is not installed."""
    code = f"import sys; sys.modules[{package!r}] = None\nfrom dg_lsp.cli.main import main\n"
    code += f"sys.exit(main({list(arguments)!r}))"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("tree_sitter", "fill", "a.py:1"), ("torch", "demo", "--alone")])
def test_a_missing_package_sends_to_the_doctor(arguments):
    done = without(*arguments)
    assert done.returncode == 2 and "run dg-lsp doctor" in done.stderr


@pytest.mark.slow
def test_the_doctor_names_a_missing_package_and_its_fix():
    done = without("torch", "doctor", "--no-fill")
    assert done.returncode == 1
    assert re.search(r"fix: python -m pip install .*'torch[<>]", done.stdout)


def test_the_scripted_engine_answers_nothing_after_close(monkeypatch):
    engine = install(monkeypatch, "x").engine
    asyncio.run(engine.close())
    with pytest.raises(EngineError):
        asyncio.run(anext(engine.infill(Infill("", "", "python", "statement"))))


@pytest.mark.parametrize("command", ["fill", "trace"])
@pytest.mark.parametrize("name", ["secrets.py", ".ssh/sums.py", "link.py", "way/sums.py"])
def test_an_excluded_file_is_not_read_under_any_of_its_names(command, name, tmp_path, monkeypatch, capsys):
    installed = install(monkeypatch, Fill("return a + b"))
    for file in ("secrets.py", ".ssh/sums.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(SOURCE)
    (tmp_path / "link.py").symlink_to("secrets.py")
    (tmp_path / "way").symlink_to(".ssh")
    assert main([command, f"{tmp_path / name}::add"]) == 2
    said = capsys.readouterr().err
    assert "is excluded by" in said and "take it away with --include" in said
    assert installed.settings == []
    assert main([command, f"{tmp_path / name}::add", "--include", "*"]) == 0
    assert main([command, f"{tmp_path / name}::add", "--include", "*", "--exclude", "*.py"]) == 2
    assert "take it out of that setting" in capsys.readouterr().err


def test_the_status_of_a_server_that_does_not_answer_is_its_reason_alone():
    status = Status("failed", why="no connection; check engineUrl")
    assert engine._words(status) == "engine      failed: no connection; check engineUrl"
    assert "process     7" in engine._words(replace(status, process=7))


@pytest.mark.parametrize("action", ["status", "stop"])
@pytest.mark.parametrize("others", [[], [Status("ready", checkpoint="coder-0.5b", process=7)]])
def test_an_engine_of_other_settings_is_named_if_that_of_these_does_not_run(
    action: str,
    others: list[Status],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("dg_lsp.cli.engine.running", lambda: others)
    monkeypatch.setattr("dg_lsp.cli.engine.ResidentEngine", SilentEngine)
    monkeypatch.setattr("dg_lsp.cli.engine.open_engine", SilentEngine)
    assert main(["engine", action, "--checkpoint", "embedded"]) == 1
    said = "".join(capsys.readouterr())
    assert ("coder-0.5b is (process 7)" in said and "--all" in said) == bool(others)
    assert ("no engine is running" in said) != bool(others)


class SilentEngine:
    """An engine whose process does not run."""

    def __init__(self, _: object) -> None: ...

    async def status(self) -> None:
        """Return that there is none."""

    async def stop(self) -> bool:
        """Return that none was ended."""
        return False

    async def close(self) -> None:
        """Do nothing."""
