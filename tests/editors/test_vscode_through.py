"""Ghost text in a real VS Code stays while one types it or takes it word by word, in each painted frame.

DG_LSP_TEXTS says how many texts are typed, as many taken word by word, and as many by scripts of all three keys.
"""

import itertools
import os
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.editors.sandbox import CHROMIUM, NODE, open_sandbox, skip_without
from tests.editors.vscode import VSIX, VSCode, open_vscode

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

TEXTS = int(os.environ.get("DG_LSP_TEXTS", "4"))
ROW = 3  # where the text is offered
SLOW = "scripted:4:40"  # an engine that is asked again at a key leaves a hole in what is shown
PACES = (80, 120, 160, 200)  # ms from one key to the next
PRESSES = 40  # far more than a text has words
WORD, LINE, ALL = "Control+ArrowRight", "Control+ArrowDown", "Tab"
TAB = 4
FAST = (0, 0, 20, 60)  # ms from one press to the next

NAMES = ("first", "second", "values", "total", "hits", "sizes", "limit", "weights")
# With the words of a name or two, two to eight of them.
SHAPES = (
    "return {0}",
    "{2} = sorted({0}, key=len)[:{1}]",
    "{2} = dict(zip({0}, {1}))[limit]",
    "return {0} + {1}",
    "{2} = sum({0})",
    "return max({0}, {1})",
    "{2} = {0} is not None and {1} > 2",
    "return [{2} * 2 for {2} in {0}]",
    "return sum({2}.size for {2} in {0})",
    "return {0} if len({1}) > 2 else {1}",
    "assert {0}.get({1}) == {2}",
    "print(len({0}), max({1}))",
)


def texts(seed: int) -> list[tuple[str, random.Random]]:
    """The texts of a run, each with what its pace is drawn from."""
    chance = random.Random(seed)
    shapes = [SHAPES[number % len(SHAPES)] for number in range(TEXTS)]
    return [(shape.format(*chance.sample(NAMES, 3)), random.Random(n)) for n, shape in enumerate(shapes)]


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    """The session, whose engine has in mind what a comment says. The menu of words and the brackets are VS Code's."""
    brackets = {
        "editor.autoClosingBrackets": "languageDefined",
        "editor.autoClosingQuotes": "languageDefined",
    }
    with (
        open_sandbox(tmp_path_factory.mktemp("vscode"), SLOW) as sandbox,
        open_vscode(sandbox, user=brackets) as editor,
    ):
        editor.status("ready")
        yield editor


def offered(code: VSCode, name: str, text: str) -> str:
    """Open a file in which `text` is offered, and wait until it is; its whole row."""
    source = f"def known({', '.join(NAMES)}):\n    # says: {text}\n    print(limit)\n   \n\n\nlimit = 1\n"
    code.open(name, source, ROW + 1, 4)
    code.type(" ")
    code.until(f"s.whole === {('    ' + text)!r} && !s.misplaced")
    return f"    {text}"


def missing(events: Sequence[Mapping[str, Any]], whole: str) -> list[str]:
    """The frames, up to the one in which all of it is written, in which not all of `whole` can be read."""
    wrong = []
    for event in events:
        row = event["rows"][ROW]
        if row == whole:
            break
        if event["whole"] != whole:
            what = event.get("key", "painted")
            shown = f"ghost text {event['ghost']!r}, menu {event['menu'][:2]}"
            wrong.append(f"{event['time']:.0f} ms {what}: {row!r}, {shown}")
    return wrong


def test_what_is_typed_as_offered_is_read_in_each_frame(code: VSCode) -> None:
    wrong: dict[str, list[str]] = {}
    for number, (text, chance) in enumerate(texts(0)):
        whole = offered(code, f"typed-{number}.py", text)
        events = code.ask("play", keys=[(key, chance.choice(PACES)) for key in text])
        if lost := missing(events, whole):
            wrong[text] = lost
        assert events[-1]["rows"][ROW] == whole
    complaints = "\n".join(f"{text}: {len(lost)} frames, the first {lost[0]}" for text, lost in wrong.items())
    print(f"{TEXTS} texts typed, {len(wrong)} with frames without them\n{complaints}")
    assert not wrong, complaints


def test_each_press_takes_a_word_and_the_rest_is_read_in_each_frame(code: VSCode) -> None:
    wrong: dict[str, list[str]] = {}
    presses = 0
    for number, (text, chance) in enumerate(texts(1)):
        whole = offered(code, f"taken-{number}.py", text)
        keys = [("Control+ArrowRight", chance.choice(PACES)) for _ in range(PRESSES)]
        events = code.ask("play", keys=keys, done=whole)
        pressed = [event["rows"][ROW] for event in events if event.get("key") == "ArrowRight"]
        presses += len(pressed)
        lost = missing(events, whole)
        pairs = itertools.pairwise(pressed)
        lost += [f"a press at {before!r} was ignored" for before, after in pairs if before == after]
        if lost or events[-1]["rows"][ROW] != whole:
            wrong[text] = lost or [f"not all was taken: {events[-1]['rows'][ROW]!r}"]
    complaints = "\n".join(
        f"{text}: {len(lost)} complaints, the first {lost[0]}" for text, lost in wrong.items()
    )
    print(f"{TEXTS} texts taken by {presses} presses, {len(wrong)} with frames without them\n{complaints}")
    assert not wrong, complaints


def test_the_last_words_of_a_text_are_taken_before_the_next_answer_comes(code: VSCode) -> None:
    """VS Code then puts the text of the last answer in the place of what was taken since: nothing is closed twice."""
    text, last = "total = sorted(hits, key=len)[:first]", "first]"
    whole = offered(code, "last.py", text)
    for _ in range(PRESSES):
        if code.ask("screen")["rows"][ROW] == whole.removesuffix(last):
            break
        code.press(WORD)
        code.until(f"s.whole === {whole!r}")
        time.sleep(PACES[-1] / 1000)
    code.ask("lag", milliseconds=1000)
    code.ask("play", keys=[(WORD, PACES[0])] * 2)
    code.ask("lag", milliseconds=0)
    time.sleep(1)
    assert code.ask("screen")["rows"][ROW] == whole


# A word of VS Code, where a language says nothing else, as its acceptNextWord looks for it.
WORDS = re.compile(r"(-?\d*\.\d\w*)|([^`~!@#%^&*()\-=+\[{\]}\\|;:'\",.<>/?\s]+)")


def taken(rest: str, key: str) -> int:
    """Return how many characters of the ghost text `rest` a key takes. Tab at the beginning of a line indents it."""
    if key == ALL or not rest:
        return TAB if rest.startswith(" " * TAB) else len(rest)
    if key == LINE:
        return rest.find("\n") + 1 or len(rest)
    word = WORDS.search(rest)
    end = len(rest) if word is None else word.start() or word.end()
    blanks = re.search(r"\s+", rest)
    return min(end, blanks.end()) if blanks else end


def presses(whole: str, chance: random.Random) -> tuple[list[str], str]:
    """Some keys that take a part of `whole` or all of it, and that part; no key comes where nothing is left."""
    keys, text = [], ""
    for _ in range(chance.randint(2, 12)):
        if text == whole:
            break
        keys.append(chance.choice((WORD, WORD, WORD, LINE, ALL)))
        text += whole[len(text) :][: taken(whole[len(text) :], keys[-1])]
    return keys, text


def test_fast_presses_of_all_three_keys_take_just_what_they_say(code: VSCode) -> None:
    code.open("fast.py", "")
    wrong, count = [], 0
    for seed in range(TEXTS):
        chance = random.Random(seed)
        lines = [shape.format(*chance.sample(NAMES, 3)) for shape in chance.sample(SHAPES, 3)]
        head = f"# says: {'⏎'.join(lines)}\ndef known({', '.join(NAMES)}):\n"
        code.ask("rewrite", text=f"{head}   \n\n\nlimit = 1\n", line=3)
        code.type(" ")
        code.until(f"s.whole === {('    ' + lines[0])!r} && !s.misplaced && s.more")
        keys, part = presses("\n    ".join(lines), chance)
        count += len(keys)
        code.ask("play", keys=[(key, chance.choice(FAST)) for key in keys])
        saved = code.saved("fast.py").decode()
        if saved != f"{head}    {part}\n\n\nlimit = 1\n":
            wrong.append(f"script {seed}, {keys}: {saved.removeprefix(head)!r} instead of {part!r}")
    print(f"{TEXTS} scripts of {count} presses, {len(wrong)} wrong")
    assert not wrong, "\n".join(wrong)


GROWS = "# says: share = first\n    # then: hits = second⏎return share, hits"
GROWN = ["share = first", "    hits = second", "    return share, hits"]


def grows(code: VSCode, name: str) -> str:
    """Open a file with text that grows, with the cursor on the line to be written; all before the cursor."""
    head = f"def known({', '.join(NAMES)}):\n    {GROWS}\n    print(limit)\n"
    code.open(name, f"{head}   \n\n\nlimit = 1\n", 5, 4)
    return head


def shown(event: Mapping[str, Any]) -> str:
    """The ghost text of a screen, with its lines below."""
    lines = [event["ghost"], *(event["more"].split("\n") if event["more"] else [])]
    return "\n".join(line.replace("\xa0", " ").rstrip() for line in lines)


def test_shown_text_grows_and_no_frame_is_without_it(code: VSCode) -> None:
    grows(code, "grows.py")
    frames = [shown(event) for event in code.ask("play", keys=[(" ", 4000)])]
    begun = list(itertools.dropwhile(lambda text: not text, frames))
    assert begun and begun[-1] == "\n".join(GROWN), begun[-3:]
    wrong = [(before, text) for before, text in itertools.pairwise(begun) if not text.startswith(before)]
    assert not wrong, wrong
    assert {text.count("\n") for text in begun} >= {0, 2}


def test_all_that_has_grown_is_taken_by_one_key(code: VSCode) -> None:
    head = grows(code, "taken.py")
    code.ask("play", keys=[(" ", 0)])
    code.until(
        f"s.more.includes({'return share'!r}) || s.more.includes({'return share'.replace(' ', chr(160))!r})"
    )
    code.press("Tab")
    text = "\n".join(GROWN)
    assert code.saved("taken.py").decode() == f"{head}    {text}\n\n\nlimit = 1\n"


LAGGING = 700  # ms by which the editor lags its extensions


def test_text_that_grows_while_a_word_is_accepted_stays(code: VSCode) -> None:
    """The editor hears of the growth of a text when it has taken a word already, which the extension cannot know."""
    grows(code, "crossing.py")
    code.ask("lag", milliseconds=LAGGING)
    code.ask("play", keys=[(" ", 0)])
    code.until(f"s.ghost.replaceAll(String.fromCharCode(160), ' ').startsWith({GROWN[0]!r})")
    events = code.ask("play", keys=[(WORD, 4 * LAGGING)])
    code.ask("lag", milliseconds=0)
    words = [(event["rows"][GAP].strip(), shown(event)) for event in events]
    assert words[-1][0] == "share", words
    assert all(text for _, text in words), words
    assert words[-1][1].startswith(GROWN[0].removeprefix("share")), words


GAP = 4  # the row of the line that is written
ABOVE, BELOW = "    print(limit)", "limit = 1"  # what is around it
TAKES = (WORD, LINE, ALL)
DRAWN = 1  # frames since the key before; without one, a key meets a screen that nobody has seen
ATTEMPTS, LATE = 3, 20_000  # how often the first text is waited for, and for how many milliseconds


def written(event: Mapping[str, Any]) -> str:
    """The text of a screen from the beginning of the gap to what is below it."""
    rows = [row.replace("\xa0", " ").rstrip() for row in event["rows"]]
    # Where there is nothing to accept, the key for a line scrolls; and a frame may have no row below the gap yet.
    gap = itertools.takewhile(lambda row: row != BELOW, rows[rows.index(ABOVE) + 1 :])
    return "\n".join(gap).rstrip().removeprefix("    ")


def breaks(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether text that `before` shows has changed, or has gone though what was written since agrees with it."""
    first, then = written(before), written(after)
    whole, now = first.rstrip() + shown(before), then.rstrip() + shown(after)
    plain = ["".join(text.split()) for text in (first, then, whole, now)]
    agrees = plain[2].startswith(plain[1]) and len(plain[1]) >= len(plain[0])
    return bool(shown(before)) and agrees and not plain[3].startswith(plain[2])


def begin(code: VSCode) -> None:
    """Type the blank after which text is shown, once more if it was too late for the deadline of the server."""
    for _ in range(ATTEMPTS):
        code.ask("play", keys=[(" ", 0)])
        try:
            code.until(
                f"s.ghost.replaceAll(String.fromCharCode(160), ' ').startsWith({GROWN[0][:5]!r})", LATE
            )
        except AssertionError:
            print("no text yet:", code.why(""))
            code.press("Backspace")
        else:
            return
    pytest.fail("no text")


def test_whatever_the_keys_shown_text_only_grows_or_goes_and_no_key_is_lost(code: VSCode) -> None:
    wrong, lost, grown = list[str](), list[str](), 0
    for seed in range(TEXTS):
        chance = random.Random(seed)
        grows(code, f"keys-{seed}.py")
        begin(code)
        typed = GROWN[0][: chance.randint(0, 6)]
        keys = [(key, chance.choice(PACES)) for key in typed]
        keys += [(chance.choice(TAKES), chance.choice((0, 200, 900))) for _ in range(chance.randint(0, 3))]
        keys += [("x", 100)] * chance.randint(0, 2)
        events = code.ask("play", keys=[*keys, ("z", 600)])
        pairs = list(itertools.pairwise(one for one in events if one.get("frames", DRAWN) >= DRAWN))
        wrong += [
            f"script {seed}, {keys}: {shown(a)!r} became {shown(b)!r}" for a, b in pairs if breaks(a, b)
        ]
        grown += sum(
            bool(shown(a)) and len(written(b) + shown(b)) > len(written(a) + shown(a)) for a, b in pairs
        )
        others = "".join(key for key, _ in keys if key == "x") + "z"
        lines = code.saved(f"keys-{seed}.py").decode().split("\n")
        text = "\n".join(lines[GAP:]).removeprefix("    ")
        if not text.startswith(typed) or text.replace("\n", "").count(others) != 1:
            lost.append(f"script {seed}, {keys}: {text!r}")
    print(f"{TEXTS} scripts, {grown} times longer, {len(wrong)} changes of shown text, {len(lost)} keys lost")
    assert not wrong and not lost, "\n".join([*wrong, *lost])
