"""The flaws of a body: parameters that it leaves out, and in Python names that nothing defines."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from dg_lsp.guard.baseline import complaint
from dg_lsp.guard.flaws import flaws_of, missing_name, undefined
from dg_lsp.messages import Infill, Kind
from dg_lsp.source.python import ignore_warnings

PREFIX = """from json import dumps
import os.path as path

LIMIT = 3


def reset():
    global count
    count = 0
    hidden = 1


class Shop:
    price = 1

    def remove(self, item, *rest):
        \"""Take an item away.\"""
        """
SUFFIX = "\n    def add(self, other):\n        later = other\n\n\ndef behind(unseen):\n    pass\n"


@pytest.mark.parametrize(
    "body",
    [
        "return dumps(item)",
        "return path.join(*rest)",
        "return LIMIT + count",
        "for one, (two, three) in rest:\n            print(one, two, three)",
        "with open(item) as file:\n            return file.read()",
        "try:\n            pass\n        except OSError as error:\n            raise error",
        "return [a for a in rest if (b := a)] or b",
        "return sorted(rest, key=lambda one: one.place)",
        "def inner(x):\n            return x + item\n        return inner(1)",
        "return super().remove(item, __class__)",
        "return behind(item)",
        "import re\n        return re.escape(item)",
        "return self.missing.method(keyword=item)",
        "return Shop(item)",
    ],
)
def test_what_is_defined_in_sight_is_no_flaw(body: str) -> None:
    assert not undefined(PREFIX, body, SUFFIX)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("return known.pop(item)", "known"),
        ("return hidden", "hidden"),
        ("return price", "price"),
        ("later.add(item)", "later"),
        ("return [other for one in rest]", "other"),
        ("return lambda: nothing + never", "nothing never"),
        ("known.pop([one for one in rest])", "known"),
        ("return known(lambda: 1)", "known"),
        ("def inner():\n            pass\n        return known", "known"),
    ],
)
def test_what_nothing_defines_is_one(body: str, names: str) -> None:
    assert undefined(PREFIX, body, SUFFIX) == set(names.split())


def test_a_header_on_the_same_line_is_found() -> None:
    assert undefined("def f(rest, key=lambda one: one): ", "return known([key(x) for x in rest])", "\n") == {
        "known"
    }


def test_where_names_cannot_be_known_there_is_no_flaw() -> None:
    assert not undefined("from os import *\n" + PREFIX, "return known", SUFFIX)
    assert not undefined("x = (\n" + PREFIX, "return known", SUFFIX)
    assert not undefined(PREFIX, "return known(", SUFFIX)
    assert not undefined("", "known()", "")
    assert not undefined(PREFIX, "return known\0", SUFFIX)


@pytest.mark.parametrize(
    ("language", "body", "count"),
    [
        ("python", "a = item\n        ...\n        return rest", 1),
        ("python", "raise NotImplementedError(item, rest)", 1),
        ("python", "return item, rest, ...  # the ellipsis is one", 0),
        ("python", "# TODO: item\n        return rest", 1),
        ("rust", "todo!()", 1),
        ("typescript", 'throw new Error("Not implemented");', 1),
        ("typescript", "// Your code here\n  return a;", 1),
        ("typescript", "return [...a]; // all of them", 0),
        ("go", 'panic("not yet implemented")', 1),
        ("java", "return todo;", 0),
    ],
)
def test_a_part_left_out_is_a_flaw(language: str, body: str, count: int) -> None:
    prefix = PREFIX if language == "python" else ""
    flaws = flaws_of(Infill(prefix, "", language, "function_body", indent="        "))
    assert flaws(body) - flaws("return item, rest") == count
    assert flaws_of(Infill(prefix, "", language, "docstring"))(body) == 0


def test_flaws_are_counted_of_both_kinds_and_of_bodies_of_functions_only() -> None:
    def flaws(body: str, kind: Kind = "function_body", language: str = "python") -> int:
        return flaws_of(Infill(PREFIX, SUFFIX, language, kind))(body)

    assert flaws("return self.pop(item, rest)") == 0
    assert flaws("return known.pop(item)") == 2
    assert flaws("return known.pop(item)", "docstring") == 0
    assert flaws("return known.pop(item)", language="go") == 0


ODD = 'def f():\n    return "\\d" is 1\n'


def checked() -> None:
    assert complaint(ODD.encode()) is None
    assert undefined("def f():\n", '    return "\\d" is 1 and g()\n', "") == {"g"}


def test_a_check_in_a_thread_leaves_the_filters_of_warnings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`catch_warnings` in two threads at a time can leave the filters of one for ever."""

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("the filters are those of all threads")

    ignore_warnings()
    before = list(warnings.filters)
    monkeypatch.setattr(warnings, "catch_warnings", forbidden)
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(checked) for _ in range(50)]:
            done.result()
    assert list(warnings.filters) == before


def test_what_is_checked_warns_nobody_once_the_filter_is_set() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ignore_warnings()
        checked()
        compile(ODD, "other.py", "exec")
    assert {warning.filename for warning in found} == {"other.py"}


@pytest.mark.parametrize(
    ("above", "after", "name"),
    [
        ("    ", "\n    return total(rows, count)\n", "count"),
        ("    count = 0\n    ", "\n    return count\n\n\ndef g():\n    return total\n", ""),
        ("    ", "\n    if not count:\n        return size\n", "count"),
        ("    ", "\n    return later(rows) + LATER\n\n\nLATER = 1\n", ""),
        ("    x = ", "\n    return count\n", ""),
        ("    ", "  # first\n    return count\n", ""),
        ("    ", "\n    return (count\n", ""),
        ("    ", "\r\n    return rows, count\r\n", "count"),
    ],
)  # fmt: skip
def test_a_name_that_the_lines_after_an_empty_one_use_is_missing(above: str, after: str, name: str) -> None:
    prefix = f"import os\n\n\ndef f(rows):\n{above}"
    assert missing_name(Infill(prefix, after, "python", "statement")) == name
    assert not missing_name(Infill(prefix, after, "go", "statement"))
    assert not missing_name(Infill(prefix, after, "python", "string"))


def test_functions_within_functions_may_be_deeper_than_python_calls_itself() -> None:
    deep = "known = " + "lambda a: " * 1_500 + "a\n"
    assert undefined(deep + PREFIX, "return known(unknown)", SUFFIX) <= {"unknown"}
