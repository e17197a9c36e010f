"""Where something is still to be written, and where a line is finished. In the samples `|` is the cursor."""

import pytest

from dg_lsp.gaps.find import find_gap
from dg_lsp.gaps.open import finished
from dg_lsp.source.document import Document

FINISHED = {
    "python": """
match = |LINE.match(x)
self.hits.|append(x)
hit = par|se_line(x)
report = |read_log(x)
method, |path = 1, 2
f(a, |b)
f(a|)
f(|a)
return x|
if x|:
def f(x):|\\n    return 1
x = "a|b"
x = 'ab|'
x = 1  # so | more
|x = 1
foo|(a)
x = f(|\\n    a,\\n)
def f():\\n    x = |g(1)\\n    y = (\\n\\n\\nz = 1
""",
    "typescript": "const a = |b;\nif (a) {|\\n  x();\\n}\na.|b();\nfo|o(a);\nreturn a|;",
    "rust": "let a = |b();\na.|b();\nfn f() {|\\n    g();\\n}",
    "go": "a := |b()\na.|b()\nif a |{\\n\\tb()\\n}",
    "java": "class A { int f() { return |b(); } }\nclass A { int f() { a.|b(); } }",
    "c": "int a = |b();\nint f() { g(a, |b); }",
}
OPEN = {
    "python": """
f(|)
f(a, |)
x = |
x = f(|
x = f(a, |
return |
if |:
for x in |:
def f(x)|
def f(x):|
[1, |]
x = {|}
x = "|"
x = 1  # so |
x = a + |
x = a.|
    |
import |
class A(|):\\n    x = 1
x = f(a, g(|
with open(|) as f:\\n    pass
@|\\ndef f():\\n    return 1
x = f(\\n    a,\\n    |\\n)
while True:\\n    x = |\\n    y = 2
# TODO: write it|
def f():\\n    pa|ss
def f(x):\\n    x = 1\\n    .|..\\n    return x
""",
    "typescript": "const a = |\\nfoo();\nfoo(|);\nfoo(a, |);\nif (|) {\\n  x();\\n}\na.|\nreturn |;\nfunction f() {|}",
    "rust": "let a = |;\nf(|);\nfn f() { to|do!() }",
    "go": "a := |\nf(|)\nreturn |",
    "java": "class A { int f() { return |; } }\nclass A { int f() { g(|); } }",
    "c": "int a = |;\nint f() { g(a, |); }",
}


def samples(table: dict[str, str]) -> list[tuple[str, str]]:
    found = [(language, line) for language, lines in table.items() for line in lines.split("\n") if line]
    return [(language, line.replace("\\n", "\n").replace("\\t", "\t")) for language, line in found]


def reason(language: str, text: str) -> str:
    document = Document("file:///m", language, 1, text.replace("|", "", 1).encode())
    cursor = len(text[: text.index("|")].encode())
    return finished(document, find_gap(document, cursor), cursor)


@pytest.mark.parametrize(("language", "text"), samples(FINISHED))
def test_where_a_line_is_finished_nothing_is_open(language: str, text: str) -> None:
    assert reason(language, text) in ("this line is finished", "the cursor is in the middle of a word")


@pytest.mark.parametrize(("language", "text"), samples(OPEN))
def test_what_lacks_something_at_the_cursor_is_open(language: str, text: str) -> None:
    assert reason(language, text) == ""
