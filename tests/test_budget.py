"""Law 11: texts that the third-party parser never ends with, or takes minutes for, cost no more than a budget."""

import asyncio
import inspect
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from dg_lsp import guard
from dg_lsp.budget import Budget, bounded, check, spending, unbilled, within
from dg_lsp.context import prompt
from dg_lsp.context.index import Index
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import find_function, find_gap, find_gaps, find_named
from dg_lsp.gaps.gap import Edit, Gap
from dg_lsp.gaps.words import endings
from dg_lsp.guard.baseline import complaint, not_compiled
from dg_lsp.guard.harm import harm_of
from dg_lsp.messages import Fill, Infill
from dg_lsp.reasons import NoGap, OutOfTime, Unreadable
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from dg_lsp.source.recovery import is_endless
from tests.guard.faulty import faults

# The parser of TSX never ends with these; some of them are the placeholder's doing.
HANGING = (
    "const a = <div style={{ color:>red: x(",
    "const a = <div style={{ color:>red: x(y ",
    "<A onClick={(e = (, x}/>",
    "function g(x = (, y}",
)
SOUND = "\nfunction sound(a) {\n  return a;\n}\n"
# Seconds of processor time that a call may take which is refused; several times the default, for a slow machine.
BOUND = 2.0


def tsx(text: str) -> Document:
    return Document("file:///w/a.tsx", "tsx", 1, text.encode())


@pytest.mark.parametrize("text", HANGING)
def test_a_gap_in_a_text_that_its_parser_never_ends_with_is_found_or_refused_with_a_reason(text: str) -> None:
    began, said = time.thread_time(), ""
    try:
        find_gap(tsx(text), len(text))
    except NoGap as error:
        said = str(error)
    assert not said or "takes too long" in said
    assert time.thread_time() - began < BOUND


@pytest.mark.parametrize("text", HANGING)
def test_all_that_reads_such_a_text_ends(text: str) -> None:
    document, began = tsx(SOUND + text + SOUND), time.thread_time()
    # Without a placeholder in them some are read.
    for ask in (find_function, find_gap):
        with suppress(NoGap):
            ask(document, len(SOUND) + len(text))
    with suppress(OutOfTime):
        find_gaps(document, 0, len(document.data))
    with suppress(OutOfTime):
        find_named(document, "sound")
    assert time.thread_time() - began < 4 * BOUND


@pytest.mark.parametrize("text", HANGING)
def test_the_guard_ends_with_an_edit_of_such_a_text(text: str) -> None:
    # With some edits in it the text can be read.
    document, began = tsx(SOUND + text), time.thread_time()
    gap = Gap(len(document.data), len(document.data), "rest_of_line", "")
    for why in (
        harm_of(document, gap, Edit(gap.start, gap.end, "y)")),
        finish(document, gap, Fill("y)")).why,
    ):
        assert not why or "takes too long" in why or "syntax error" in why
    with suppress(OutOfTime):
        faults("tsx", "expression", SOUND + text, "y)", "")
    assert time.thread_time() - began < 3 * BOUND


@pytest.mark.parametrize("text", HANGING)
def test_the_guard_refuses_an_edit_after_which_the_parser_never_ends(text: str) -> None:
    document = tsx(SOUND + text[:-1])
    gap = Gap(len(document.data), len(document.data), "rest_of_line", "")
    assert harm_of(document, gap, Edit(gap.start, gap.end, text[-1]))


def test_a_fill_that_would_make_the_parser_hang_is_refused() -> None:
    document = tsx("const a = ")
    gap = find_gap(document, len(document.data))
    assert finish(document, gap, Fill(HANGING[0].removeprefix("const a = "))).edit is None


def test_a_request_for_a_long_text_that_hangs_is_built_or_refused() -> None:
    text = HANGING[2] + SOUND * 400 + HANGING[2]
    gap = Gap(len(text), len(text), "rest_of_line", "")
    began = time.thread_time()
    with suppress(OutOfTime):
        prompt.build(tsx(text), gap, Settings(prefix_bytes=2_000))
    assert time.thread_time() - began < BOUND


def test_a_refusal_is_not_kept_as_an_answer() -> None:
    text = "let a = f(b, ) + g(c);\n" * 400
    document = Document("file:///w/a.ts", "typescript", 1, text.encode())
    with within(0.0), pytest.raises(OutOfTime):
        find_gap(document, 13)
    assert find_gap(document, 13).kind == "arguments"


def test_a_file_that_cannot_be_read_in_time_is_left_out_of_the_index() -> None:
    index = Index()
    with spending(Budget(1.0, cancelled=True)):
        assert index.put("file:///w/a.py", "python", b"def f():\n    pass\n")
    assert len(index) == 0
    assert index.put("file:///w/a.py", "python", b"def f():\n    pass\n")
    assert len(index) == 1


def test_threads_run_while_a_text_hangs() -> None:
    waits, ended = [], threading.Event()

    def tick() -> None:
        last = time.monotonic()
        while not ended.is_set():
            time.sleep(0.001)
            waits.append((now := time.monotonic()) - last)
            last = now

    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(OutOfTime):
        find_gap(tsx(HANGING[2]), len(HANGING[2]))
    ended.set()
    thread.join()
    # Without the callback it waits as long as the parse takes; on a busy machine others run in between.
    assert len(waits) > 10


def test_a_cancelled_request_ends_the_work_of_its_thread() -> None:
    async def ask() -> float:
        async def request() -> None:
            with within(60):
                await asyncio.to_thread(_endless)

        task = asyncio.create_task(request())
        await asyncio.sleep(0.1)
        task.cancel()
        began = time.monotonic()
        # The loop ends once its threads have.
        await asyncio.get_running_loop().shutdown_default_executor()
        return time.monotonic() - began

    assert asyncio.run(ask()) < 50


@bounded
def _endless() -> None:
    while True:
        check()


def test_one_budget_is_spent_by_all_the_work_of_a_request() -> None:
    budget = Budget(0.05)
    with spending(budget):
        spent = 0
        with pytest.raises(OutOfTime):
            while spent < 1_000:
                _some_work()
                spent += 1
    assert 0 < spent < 1_000
    assert budget.spent >= 0.05


@bounded
def _some_work() -> None:
    end = time.thread_time() + 0.005
    while time.thread_time() < end:
        check()


def test_sound_texts_parse_as_without_a_budget() -> None:
    language = load_language("tsx")
    text = (SOUND * 3_000).encode()
    assert language.parse(text).root_node.end_byte == len(text)
    tree = language.reparse(language.parse(text), text, (1, 9), b"function")
    assert not tree.root_node.has_error


# Long lines and many lines that open something again and again, by what a grammar takes for it.
_REPEATED = (
    'x = f("a", ',
    "[",
    '"a" ',
    "a = (1,\n",
    "/* ",
    "if (a) {\n",
    'f"{',
    "'\"",
    "${`",
    "#if a\n",
    "<a b='",
)
# The text work of an engine: it has a budget, and its passes between two calls do not spend it.
GUARD = {
    "closed_below": guard.closed_below,
    "end_of_item": lambda request, text: guard.end_of_item(guard.site_of(request), text),
    "end_of_next": lambda request, text: guard.end_of_next(guard.site_of(request), text, 1),
    "ended": guard.ended,
    "find_break": guard.find_break,
    "first_sentence": lambda request, text: guard.first_sentence(text),
    "fit": guard.fit.fit,
    "flaws_of": lambda request, text: guard.flaws_of(request)(text),
    "go_on": lambda request, text: guard.go_on(request, "", text),
    "goes_round": lambda request, text: guard.goes_round(text),
    "hint": lambda request, text: guard.hint(request),
    "is_in_header": lambda request, text: guard.is_in_header(guard.site_of(request), text.encode()),
    "is_last_of_span": lambda request, text: guard.is_last_of_span(guard.site_of(request)),
    "left_open": lambda request, text: guard.left_open(guard.site_of(request), text.encode()),
    "missing_name": lambda request, text: guard.missing_name(request),
    "opens_below": lambda request, text: guard.opens_below(guard.site_of(request), text),
    "shorten": guard.shorten,
    "sure_beginning": lambda request, text: guard.sure_beginning(request, text, len(text)),
    "without_round": lambda request, text: guard.without_round(text),
}


def test_each_function_of_the_guard_that_reads_the_text_of_a_request_is_tried() -> None:
    faces = {name: getattr(guard, name) for name in guard.__all__ if inspect.isroutine(getattr(guard, name))}
    reads = {
        name for name, face in faces.items() if {"site", "request"} & {*inspect.signature(face).parameters}
    }
    # They name line ends, and wrap a request.
    assert reads - {"newline_of", "site_of"} <= {*GUARD}


@pytest.mark.parametrize("language", ["python", "typescript", "html"])
def test_the_guard_spends_the_budget_of_an_engine_whichever_function_it_calls(language: str) -> None:
    late = []
    for repeated in _REPEATED:
        text = repeated * (10_000 // len(repeated))
        for above, written in ((text, "a"), ("x = 1\n", text)):
            request = Infill(above, "\n\n", language, "rest_of_line")
            for name, ask in GUARD.items():
                began = time.thread_time()
                with spending(Budget(0.05)), suppress(OutOfTime):
                    ask(request, written)
                if time.thread_time() - began > BOUND:
                    late.append((name, repeated, above == text, time.thread_time() - began))
    assert not late


@pytest.mark.parametrize("language", ["c", "lua", "rust", "shell"])
def test_words_in_sight_are_looked_for_within_a_budget_whatever_is_never_closed(language: str) -> None:
    for opened in ("/* ", "--[==[ ", 'r#"', "<<A "):
        text = f"{opened * (30_000 // len(opened))}zz"
        document = Document("file:///w/a", language, 1, text.encode())
        began = time.thread_time()
        with spending(Budget(0.05)), suppress(OutOfTime):
            endings(load_language(language), document, len(text), [])
        assert time.thread_time() - began < BOUND / 2


def test_an_edit_of_thousands_of_nested_labels_is_checked_within_a_budget() -> None:
    text = "a: " * 10_000
    document = Document("file:///w/a.ts", "typescript", 1, f"{text}\n\n".encode())
    gap, began = Gap(len(text), len(text), "rest_of_line", ""), time.thread_time()
    with spending(Budget(0.25)), suppress(OutOfTime):
        assert finish(document, gap, Fill("f(a, b)")).edit is None
    assert time.thread_time() - began < BOUND / 2


def test_thousands_of_bodies_are_found_within_a_budget() -> None:
    document = Document("file:///w/a.ts", "typescript", 1, b"function f() {}\n" * 2_000)
    began = time.thread_time()
    with spending(Budget(0.25)), suppress(OutOfTime):
        find_gaps(document, 0, len(document.data))
    assert time.thread_time() - began < BOUND


def labels(count: int, begun: str, brace: str) -> str:
    cases = "".join(f"    case {n}:\n" for n in range(count))
    return f"export function f(a: number) {{\n  {begun}\n  switch (a) {brace}\n{cases}      return 1;\n  }}\n}}\n"


SLOW = (
    ("typescript", labels(2_000, "let b = ", "{")),
    ("typescript", labels(2_000, "let b = ", "")),
    ("typescript", labels(8_000, "let b = ", "{")),
    ("javascript", "x = \n" + "->\n" * 4_000),
    ("go", "->\n" * 4_000),
    # Neither the parser nor another thread can be reached while it ends these, and they take gigabytes.
    ("java", "x => \n" * 4_000),
    ("c", "x => \n" * 4_000),
    ("cpp", "() => " * 4_000),
    ("rust", "% let =\n" * 4_000),
    ("csharp", "% let =\n" * 4_000),
    # Code in strings in code.
    ("typescript", "x = " + "`${" * 6_000),
    # An asterisk is half a comment, and the first whole one never ends.
    ("c", "/ * /* " * 1_000),
    # A query of a tree as deep as its text is long, and of an error with thousands of brackets.
    ("python", "()" * 15_000),
    ("java", "(" * 30_000),
    ("java", "{\n" * 10_000),
    # Names that may be there only once.
    ("html", "<html a" + " x" * 3_000 + ">\n"),
    ("html", "<p" + ' x="1"' * 3_000 + ">\n"),
    ("svelte", "<p" + ' x="1"' * 3_000 + ">\n"),
    ("tsx", "let a = <p" + ' x="1"' * 3_000 + " />\n"),
    ("python", "f(" + "a=1, " * 3_000 + ")\n"),
    ("javascript", "let a = {" + "b: 1, " * 3_000 + "}\n"),
)


@pytest.mark.parametrize("language, text", SLOW)
def test_a_text_that_takes_quadratic_time_is_answered_or_refused_soon(language: str, text: str) -> None:
    document = Document("file:///w/a", language, 1, text.encode())
    gap = Gap(len(text), len(text), "rest_of_line", "")
    for ask in (
        lambda: find_gap(document, 5),
        lambda: find_gap(document, len(text) // 2),
        lambda: find_gaps(document, 0, len(text)),
        lambda: harm_of(document, gap, Edit(len(text), len(text), "f(a)")),
        lambda: prompt.build(document, gap, Settings()),
        lambda: Index().put(document.uri, language, document.data),
    ):
        began = time.thread_time()
        with suppress(OutOfTime):
            ask()
        assert time.thread_time() - began < BOUND


# The parser takes seconds for its last step in these, without a call of its callback: no other thread runs meanwhile.
LAST_STEP = (
    ("java", "x => "),
    ("java", "=> fn\n"),
    ("c", "(x) => "),
    ("cpp", "% let = "),
    ("csharp", "% let = "),
    ("javascript", "% let = "),
    ("typescript", "% let = "),
    ("tsx", "% let = "),
    ("python", "^ *\n"),
)


@pytest.mark.parametrize("language, unit", LAST_STEP)
def test_the_last_step_of_a_parser_takes_no_seconds(language: str, unit: str) -> None:
    loaded = load_language(language)
    for count in (500, 4_000):
        began = time.thread_time()
        with spending(Budget(60)), suppress(OutOfTime):
            loaded.parse((unit * count).encode())
        assert time.thread_time() - began < BOUND


# A scanner looks ahead to the end of the text at each place in these, without a call of the parser's callback.
AHEAD = (("swift", "#"), ("scala", "`"), ("kotlin", "a="))


@pytest.mark.parametrize("language, unit", AHEAD)
def test_a_scanner_that_looks_ahead_at_each_place_is_stopped(language: str, unit: str) -> None:
    loaded = load_language(language)
    began = time.thread_time()
    with within(0.1), pytest.raises(OutOfTime):
        loaded.parse(unit.encode() * 50_000)
    assert time.thread_time() - began < BOUND


def test_the_own_parser_of_python_is_not_asked_for_a_second() -> None:
    text, began = b"@a\n" * 400_000, time.thread_time()
    assert complaint(text) is None and not not_compiled(text)
    assert complaint(b"@a\n" * 1_000) is not None
    assert time.thread_time() - began < BOUND / 2


DENSE = (
    ("javascript", "x = [" + "1,-2,'a'," * 20_000 + "0];\n"),
    ("typescript", "x = " + "a<b>(c)(d, e => f)\n  + " * 4_000 + "0;\n"),
    ("java", "class A { int[][] a = {" + "{1,-2},\n" * 10_000 + "}; }\n"),
    ("cpp", "int a[][2] = {" + "{f<x>(y), -2},\n" * 5_000 + "};\n"),
    (
        "csharp",
        "class A {\n" + "  List<A<B>> f(A<B> x) { return (A)(b) + c(d < e, f > (g)); }\n" * 2_000 + "}\n",
    ),
    ("python", "x = [" + "(1,-2),\n" * 10_000 + "]\n"),
)


@pytest.mark.parametrize("language, text", DENSE)
def test_a_long_text_of_short_tokens_is_read(language: str, text: str) -> None:
    with spending(Budget(60)):
        assert load_language(language).parse(text.encode()).root_node.end_byte == len(text)


def test_a_long_edited_text_is_parsed_with_its_log_as_without() -> None:
    language, messages = load_language("typescript"), list[str]()
    data = ("% let = " * 200).encode()
    tree = language.parse(data)
    again = language.reparse(tree, data, (0, 1), b"%", messages.append)
    assert messages
    assert str(again.root_node) == str(language.parse(data).root_node)


def test_a_long_switch_is_read_as_ever() -> None:
    text = labels(2_000, "let b = 1;", "{")
    assert (
        find_gap(Document("file:///w/a.ts", "typescript", 1, text.encode()), text.index("1;")).kind
        == "expression"
    )


@pytest.mark.parametrize("text", HANGING)
def test_a_parser_that_hangs_is_noticed_before_a_long_budget_is_spent(text: str) -> None:
    # Not told by its place alone: it may go back and forth.
    budget = Budget(5.0)
    with spending(budget), suppress(OutOfTime):
        find_gap(tsx(text), len(text))
    assert budget.spent < 2.5


def test_a_refused_request_has_been_cancelled() -> None:
    with spending(Budget(5.0, cancelled=True)), pytest.raises(OutOfTime, match="cancelled"):
        find_gap(tsx(SOUND), 5)


class Interrupted(bytes):
    """A text at whose chunk `at` the user interrupts."""

    at = read = 0

    def __getitem__(self, span: Any) -> Any:
        self.read += 1
        if self.read == self.at:
            raise KeyboardInterrupt
        return super().__getitem__(span)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_interrupt_while_the_parser_reads_is_an_interrupt(at: int) -> None:
    text = Interrupted(b"x = (1, 2)\n" * 20_000)
    text.at = at
    with pytest.raises(KeyboardInterrupt):
        load_language("python").parse(text)


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_grammar_that_is_loaded_in_a_request_spends_none_of_its_budget() -> None:
    inner = unbilled(lambda: burn(0.06))

    @unbilled
    def outer() -> None:
        burn(0.06)
        inner()

    @bounded
    def read(*loads: Any) -> None:
        for load in loads:
            load()
        check()

    with within(0.05) as budget:
        read(outer, inner)
    assert budget.spent < 0.05
    with within(0.05), pytest.raises(OutOfTime):
        read(lambda: burn(0.06))


def test_a_grammar_is_loaded_once_however_its_language_is_named() -> None:
    assert load_language("python").query is load_language("python", ()).query


@pytest.mark.parametrize("unit", ['\\"', "\\'", "\\\"'", '"', "'"])
def test_quotes_in_a_row_are_looked_at_once(unit: str) -> None:
    began = time.process_time()
    is_endless(f"int a = {unit * 75_000}\n;".encode())
    assert time.process_time() - began < 2


@pytest.mark.parametrize("unit", ["/*f", "/*_indent", "+*f", "a/**f "])
def test_an_endless_line_of_python_is_not_parsed(unit: str) -> None:
    """Its parser takes quadratic time and memory for these, seconds and gigabytes at 9 kB, and heeds no callback."""
    began = time.process_time()
    with pytest.raises(Unreadable):
        load_language("python").parse(unit.encode() * 3_000 + b"a")
    assert time.process_time() - began < 0.5


def test_long_lines_of_python_that_somebody_writes_are_parsed() -> None:
    python = load_language("python")
    lines = [
        "x = [" + "1, " * 3_000 + "]",
        'y = "' + "/*f" * 3_000 + '"',
        "z = " + " + ".join("ab" * 100),
        "# " + "/*f" * 3_000,
    ]
    assert not python.parse("\n".join(lines).encode()).root_node.has_error
    assert not is_endless(b"a\n" * 2_500_000, "")
