"""What the C code of a grammar cannot hold is told before it parses: no text ends the process that reads it."""

import subprocess
import sys
import tracemalloc
from contextlib import suppress

import pytest

from dg_lsp.budget import Work, within
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import Fill
from dg_lsp.reasons import OutOfTime, TooDeep
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from dg_lsp.source.scanners import check_depth

DASHES = b"- " * 254 + b"a"
# What ended a process, or would by the code of the scanner.
DEEP: dict[str, tuple[str, bytes]] = {
    "dashes on a line": ("yaml", DASHES),
    "question marks": ("yaml", b"? " * 254 + b"a"),
    "colons": ("yaml", b": " * 254 + b"a"),
    "dashes and keys": ("yaml", b"- a: " * 254),
    "tabs between": ("yaml", b"- ? -\t" * 200 + b"a"),
    "behind a byte order mark": ("yaml", b"\xef\xbb\xbf" + DASHES),
    "behind the mark of a document": ("yaml", b"a: 1\n--- " + DASHES),
    "behind a block's head": ("yaml", b"- - - |" + DASHES),
    "keys on lines": ("yaml", b"".join(b" " * n + b"k:\n" for n in range(300))),
    "keys on lines of CRLF": ("yaml", b"".join(b" " * n + b"k:\r\n" for n in range(300))),
    "keys on lines of CR": ("yaml", b"".join(b" " * n + b"k:\r" for n in range(300))),
    "dashes on lines": ("yaml", b"".join(b"  " * n + b"-\n" for n in range(300))),
    "dashes below keys": ("yaml", b"".join(b"  " * n + b"k:\n" + b"  " * n + b"- a:\n" for n in range(150))),
    "more behind a bracket": ("yaml", b"a:\n  - [b, {c: d}]\n  " + DASHES),
    "many on few lines": ("yaml", b"".join(b" " * n * 140 + b"- " * 70 + b"a:\n" for n in range(4))),
    "indentation that wraps": ("yaml", b"a:\n" + b" " * 33_000 + b"b: c\n"),
    "32,768 lines": ("yaml", b"a: 1\n" * 32_768),
    "16,384 lines of CRLF": ("yaml", b"a: 1\r\n" * 16_384),
    "blocks around a string": (
        "python",
        b"".join(b" " * n + b"if x:\n" for n in range(512)) + b" " * 512 + b'y = "a"\n',
    ),
    "blocks around two strings": (
        "python",
        b"".join(b" " * n + b"if x:\n" for n in range(520)) + b" " * 520 + b"y = f\"a{f'b'}\"\n",
    ),
    "blocks of tabs": (
        "python",
        b"".join(b"\t" * n + b"if x:\n" for n in range(520)) + b"\t" * 520 + b"y = 'a'",
    ),
    "joined indentation": (
        "python",
        b"".join(b" " * (n // 2) + b"\\\n" + b" " * (n - n // 2) + b"if x:\n" for n in range(520))
        + b" " * 900
        + b"y = 'a'",
    ),
}
# The scanner of Kotlin looked for a blank after the `@` of each, and did not notice the end of the text.
ENDLESS = [
    b"class A\n@",
    b"val a: Int = 1\n@get",
    b"val a: Int\n  @get:A(b",
    b"class A {\n  val a = 1\n  @B(c, \xf0\x9f\x99\x82",
    b"class A<B>\n// c\n\n@C",
    b"class A\n@" + b"a" * 9_000 + b"\nb()\n",
]
# The scanner of Ruby holds these, with short names.
HELD = {
    "names of heredocs": b"f("
    + b", ".join(b"<<" + bytes([65 + n]) * (250 if n < 4 else 3) for n in range(5))
    + b")\n",
    "a heredoc in strings": b'"#{' * 203 + b"<<HTML" + b'}"' * 203,
    "a quoted one": b'"#{' * 203 + b'<<~"HTML"' + b'}"' * 203,
    "one with blanks": b'"#{' * 203 + b'<<"H M L"' + b'}"' * 203,
    "a long name": b"x = <<" + b"A" * 300 + b"\n" + b"A" * 300 + b"\n" + b"y = <<B\nB\n" * 9,
    "a name over lines": b"x = <<'" + b"A\n" * 300 + b"'\n",
}


@pytest.mark.parametrize("name", DEEP)
def test_a_text_that_its_scanner_cannot_hold_is_not_parsed(name: str) -> None:
    language, data = DEEP[name]
    loaded = load_language(language)
    with pytest.raises(TooDeep, match="the file cannot be read"), within(20):
        loaded.parse(data)
    # Nor after the edit that makes it so, with the tree of a sound text.
    sound = b"a: 1\n" if language == "yaml" else b"a = 1\n"
    tree = loaded.parse(sound)
    for reparse in (loaded.reparse, loaded.reparse_until_broken):
        with pytest.raises(TooDeep), within(20):
            reparse(tree, sound, (0, len(sound)), data)


def test_an_edit_that_makes_it_one_level_too_deep_is_not_parsed() -> None:
    loaded = load_language("yaml")
    data = b"- " * 124 + b"a\n"
    tree = loaded.parse(data)
    assert not tree.root_node.has_error
    assert not loaded.reparse(tree, data, (0, 2), b"  ").root_node.has_error
    with pytest.raises(TooDeep):
        loaded.reparse(tree, data, (0, 0), b"- ")


def test_code_that_somebody_wrote_is_not_too_deep() -> None:
    check = [
        ("yaml", b"".join(b"  " * n + b"- name: key\n" + b"  " * n + b"  of:\n" for n in range(30))),
        ("yaml", b"# a: b - c: d\n" * 500 + b"a:\n  b: |\n    x: y\n" * 500 + b"a:\n\t- b: c\n" * 20),
        ("yaml", b"a: " + b"x" * 50_000 + b"\nb: {c: 1, d: [2, 3]}\n" * 900),
        ("yaml", b"a: 1\n" * 32_767),
        ("python", b"".join(b" " * n + b"if x:\n" for n in range(99)) * 20 + b"\tx = 1\n"),
    ]
    for name, data in check:
        check_depth(load_language(name).scanner, data)


@pytest.mark.parametrize("name", HELD)
def test_names_of_heredocs_are_short_where_there_are_many(name: str) -> None:
    data, loaded = HELD[name], load_language("ruby")
    read = loaded.readable(data)
    assert read != data and len(read) == len(data) and read.count(b"\n") == data.count(b"\n")


def test_a_heredoc_with_a_short_name_is_read_as_before() -> None:
    text = b"x = f(<<~SQL.strip, <<-'AB', 1 << y)\n  a #{b}\n  SQLX\n  SQL\nSQL\nAB\ny = <<E\nE\n"
    loaded = load_language("ruby")
    assert loaded.readable(text) == text
    full = text + b"z = ['']\n" * 200
    assert loaded.readable(full) != full
    short, known = (loaded.parse(data).root_node for data in (full, text))
    assert not short.has_error
    kinds = [[n.type for n in loaded_body.children[:3]] for loaded_body in (short, known)]
    assert kinds[0] == kinds[1]


def ends(code: str, seconds: float) -> None:
    """Run Python's `code` in a process of its own, which must end well in time."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_no_deep_text_ends_the_process_that_reads_it() -> None:
    """All of them by a process of their own, also in a thread, whose stack is small."""
    code = (
        "import threading\n"
        "from tests.source.test_scanners import DEEP, HELD, read\n"
        "threading.stack_size(512 * 1024)\n"
        "texts = [*DEEP.values(), *(('ruby', data) for data in HELD.values())]\n"
        "work = lambda: [read(*text) for text in texts]\n"
        "work(), (thread := threading.Thread(target=work)).start(), thread.join()\n"
    )
    ends(code, 300)


def test_no_scanner_looks_forever_for_what_does_not_come() -> None:
    """Nor where the time is over after any number of looks at the clock, and the text ends for the parser."""
    code = (
        "from tests.source.test_scanners import ENDLESS, read, read_in_looks\n"
        "[read('kotlin', text) for text in ENDLESS]\n"
        "[read_in_looks(looks, 'kotlin', ENDLESS[-1]) for looks in range(30)]"
    )
    ends(code, 120)


def test_no_edit_that_makes_a_text_deep_ends_the_process() -> None:
    code = (
        "from tests.source.test_scanners import DEEP, edit\n"
        "[edit(*text) for text in DEEP.values() if text[1].count(b'\\n') < 1_000]"
    )
    ends(code, 300)


def read(name: str, data: bytes) -> None:
    """Parse `data`, and again after an edit at its end."""
    language = load_language(name)
    with suppress(OutOfTime), within(5):
        tree = language.parse(data)
        language.reparse(tree, data, (len(data), len(data)), b"\n")


def read_in_looks(looks: int, name: str, data: bytes) -> None:
    """Parse `data` in a time that is over at the look of that number."""
    left = iter(range(looks))
    with pytest.MonkeyPatch.context() as patch, suppress(OutOfTime):
        patch.setattr(Work, "is_over", lambda *_: next(left, None) is None)
        load_language(name).parse(data)


def edit(name: str, data: bytes) -> None:
    """Parse a short text, and again with `data` in front of it."""
    language = load_language(name)
    tree = language.parse(b"a\n")
    for reparse in (language.reparse, language.reparse_until_broken):
        with suppress(OutOfTime), within(5):
            reparse(tree, b"a\n", (0, 0), data)


@pytest.mark.parametrize(
    ("text", "fill", "is_shown"),
    [
        (DASHES + b"\nb: ", "c", True),
        (DASHES + b"\nb: ", "c}}", True),
        (b"a: 1\n" * 32_768 + b"b: ", "c", True),
        (DASHES + b"\nb: ", "c\0", False),
        (b"b: ", DASHES.decode(), False),
    ],
    ids=["deep", "deep and odd", "long", "refused by its tokens", "deep by the fill"],
)
def test_where_no_grammar_reads_a_text_its_tokens_are_judged(text: bytes, fill: str, is_shown: bool) -> None:
    document = Document("file:///w/a", "yaml", 0, text)
    outcome = finish(document, find_gap(document, len(text)), Fill(fill))
    assert (outcome.edit is not None) == is_shown
    assert is_shown or outcome.why


def test_a_parse_keeps_no_memory() -> None:
    """The parser's binding never lets go of the text that it is given."""
    loaded, text = load_language("python"), b"def f(a, b):\n    return a + b\n\n" * 2_000
    loaded.parse(text)
    tracemalloc.start()
    try:
        for _ in range(20):
            loaded.parse(text)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < len(text)


def test_a_node_gives_its_text_after_the_parse() -> None:
    loaded, text = load_language("c"), b'int a = f("' + b"x" * 9_000 + b'");\n'
    (string,) = loaded.captures(loaded.parse(text).root_node)["string"]
    assert string.text == text[10:-3]


def test_a_parse_that_is_given_up_keeps_no_memory() -> None:
    loaded, text = load_language("lua"), b". " * 75_000
    tracemalloc.start()
    try:
        for _ in range(5):
            with pytest.raises(OutOfTime), within(0.05):
                loaded.parse(text)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 * len(text)


@pytest.mark.parametrize("name", ["python", "javascript", "shell", "cpp"])
def test_a_text_whose_time_is_over_within_a_character_ends_no_process(name: str) -> None:
    """At each piece of the text in turn, whose end may cut a character."""
    code = (
        "from dg_lsp.budget import Work\n"
        "from dg_lsp.source.language import load_language\n"
        "from dg_lsp.reasons import OutOfTime\n"
        "def over(work, now):\n"
        "    global left\n"
        "    left -= 1\n"
        "    return left < 0\n"
        "Work.is_over = over\n"
        "for sign in ('\u00e4', '\u4f60', '\U0001f642'):\n"
        "    for first in 'a', 'ab', 'abc':\n"
        "        for most in range(1, 9):\n"
        "            left = most\n"
        "            try:\n"
        f"                load_language({name!r}).parse((first + '\"' + sign * 50_000).encode())\n"
        "            except Exception:\n"
        "                pass\n"
        "print('alive')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "alive\n", (done.returncode, done.stderr[-500:])
