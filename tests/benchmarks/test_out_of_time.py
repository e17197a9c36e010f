"""A text that takes too long to read is counted and named by the measurements, and never ends one."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.gaps.user_judge import judged
from benchmarks.guarantee.__main__ import main, report
from benchmarks.guarantee.answers import TEXTS, TRUTH, ask, opened
from benchmarks.guarantee.judge import Claim, code_of, is_unbalanced, judge, read
from benchmarks.guarantee.measure import Counts, Portion, measure
from benchmarks.guarantee.places import Place
from dg_lsp.reasons import SLOW, OutOfTime
from dg_lsp.source.language import Language, load_language
from tests.benchmarks.test_gaps import PYTHON
from tests.benchmarks.test_table import CUT, TEXT

# The parser never ends at this one, and is stopped.
ENDLESS = b"<A onClick={(e = (, x}/>"
Slow = Callable[[Callable[[bytes], bool]], None]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """Stop each parse of a text of which the given function is true."""
    parse, reparse = Language.parse, Language.reparse

    def choose(is_slow: Callable[[bytes], bool]) -> None:
        def stopped(language: Language, data: bytes):  # type: ignore[no-untyped-def]
            if is_slow(data):
                raise OutOfTime(SLOW)
            return parse(language, data)

        def stopped_again(language: Language, tree, data, span, *texts):  # type: ignore[no-untyped-def]
            if is_slow(data[: span[0]] + texts[0] + data[span[1] :]):
                raise OutOfTime(SLOW)
            return reparse(language, tree, data, span, *texts)

        monkeypatch.setattr(Language, "parse", stopped)
        monkeypatch.setattr(Language, "reparse", stopped_again)

    return choose


def test_a_frozen_place_whose_check_is_stopped_is_named(slow: Slow) -> None:
    assert judged(CUT, TEXT, ["typing"])[0].right
    slow(lambda data: data == TEXT.encode())
    assert judged(CUT, TEXT, ["typing"])[0].how == "out of time"


def test_a_file_that_the_judge_cannot_read_is_no_place() -> None:
    language = load_language("tsx")
    with pytest.raises(OutOfTime):
        opened(Place(language, ENDLESS, len(ENDLESS), len(ENDLESS), "code"))


def test_an_edit_that_the_judge_cannot_read_is_no_harm_and_is_counted(slow: Slow) -> None:
    at = PYTHON.index(b"total = 0")
    place = Place(load_language("python"), PYTHON, at, at + len(b"total = 0"), "code")
    found = opened(place)
    assert ask(found, TRUTH).right
    slow(lambda data: data == PYTHON)
    answer = ask(found, TRUTH)
    assert answer.stopped and not answer.harms


def test_the_guarantee_survives_parses_that_are_stopped(slow: Slow, tmp_path: Path) -> None:
    (tmp_path / "shape.py").write_bytes(PYTHON * 2)
    portion = Portion("python", "valid", 0, 20, TEXTS, len(TEXTS), 0, {"python": tmp_path})
    whole = measure(portion)
    count = 0

    def every_third(_: bytes) -> bool:
        nonlocal count
        count += 1
        return count > 10 and count % 3 == 0

    slow(every_third)
    stopped = measure(portion)
    assert total(whole, "places") == total(stopped, "places") == 20
    assert total(whole, "out of time") == 0 < total(stopped, "out of time")
    assert "out of time" in {cause[1] for cause in stopped.causes}
    assert str(total(stopped, "out of time")) in report(stopped).splitlines()[-1]


def total(counts: Counts, what: str) -> int:
    return sum(number for key, number in counts.numbers.items() if key[3] == what)


def test_odd_places_are_in_files_that_the_grammar_cannot_parse(tmp_path: Path) -> None:
    source = "class A {\n  void F(A? a) {\n    a = (ref b, out c) => b;\n    G();\n  }\n}\n"
    (tmp_path / "shape.cs").write_text(source * 12)
    (tmp_path / "odd.py").write_bytes(PYTHON * 2 + b"x = = 1\n")
    counts = measure(Portion("csharp", "odd", 0, 5, TEXTS, 2, 0, {"csharp": tmp_path}))
    assert total(counts, "places") == 5 and total(counts, "broken") == 0
    # What the interpreter refuses is no odd file but a broken one.
    assert total(measure(Portion("python", "odd", 0, 10, TEXTS, 2, 0, {"python": tmp_path})), "places") == 0


def test_an_unbalanced_edit_of_an_odd_file_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"class A {\n  void F(A? a) {\n    a = (ref b, out c) => b;\n    \n  }\n}\n"
    at = data.index(b"\n  }")
    place = Place(load_language("csharp"), data, at, at, "code")
    assert not ask(opened(place), "}").harms
    monkeypatch.setattr("dg_lsp.filling.fill.harm_of", lambda *_: "")
    assert "broken" in ask(opened(place), "foo(a;").harms


def test_between_tags_only_braces_are_code() -> None:
    reading = read(load_language("tsx"), b"const a = (\n  <b>\n    {c} d\n  </b>\n);\n")
    inside = reading.data.index(b" d")
    assert code_of(reading, inside, b"e) (f} [") == b"e f} "
    assert code_of(reading, 4, b"e) [") == b"e) ["


def test_after_a_line_comment_nothing_is_code() -> None:
    reading = read(load_language("go"), b"// a b\nfunc f() {\n}\n/* c */\n")
    assert code_of(reading, 6, b")") == b""
    assert [code_of(reading, at, b")") for at in (0, 7, len(reading.data) - 1)] == [b")"] * 3


def test_the_judge_knows_a_string_that_was_asked_for_by_its_line_where_the_tree_does_not() -> None:
    language = load_language("java")
    data = b'A( {\n  return "one = " + c + ", two = " + f;\n'
    start, end = data.index(b"one"), data.index(b'" + c')
    before = read(language, data)
    other = Claim((start, end), "string", (0, 1))
    assert judge(before, read(language, data[:start] + b"*/" + data[end:]), other).harms == ()
    start, end = data.index(b" + c"), data.index(b' + c + "') + 7
    assert judge(before, read(language, data[:start] + data[end:]), other).lost


@pytest.mark.parametrize(
    ("text", "unbalanced"),
    [
        ("foo(a[1], {});", False),
        ('foo(")"); // (', False),
        ("x = '}'", False),
        ("x = '''(\n'''", False),
        ("`${a}`", False),
        ("/* ( */", False),
        ("foo(a", True),
        ("foo(a))", True),
        ("foo(a]", True),
        ("}", True),
        ('"""', True),
        ("*/", True),
        ("/*", True),
    ],
)
def test_the_judge_balances_text_by_itself(text: str, unbalanced: bool) -> None:
    assert is_unbalanced(text.encode()) == unbalanced


def test_a_guarantee_of_the_texts_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "shape.py").write_bytes(PYTHON * 2)
    written = tmp_path / "records.jsonl"
    options = ["--languages", "python", "--source", f"python={tmp_path}", "--forms", "valid", "--places", "4"]
    written.write_text('{"texts": ["total", "None"]}\n{"texts": ["None"]}\n')
    assert main([*options, "--written", str(written)]) == 0
    assert re.search(r"^all +4 +8 ", capsys.readouterr().out, re.MULTILINE)
    written.write_text("{}\n")
    with pytest.raises(SystemExit):
        main([*options, "--written", str(written)])
    assert "benchmarks.judge collect" in capsys.readouterr().err
