"""Ghost text in a real VS Code stays while one types it or takes it word by word, in each painted frame.

DG_LSP_TEXTS says how many texts are typed, and as many taken word by word.
"""

import itertools
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.editors.sandbox import CHROMIUM, NODE, open_sandbox, skip_without
from tests.editors.vscode import VSIX, VSCode, open_vscode

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

TEXTS = int(os.environ.get("DG_LSP_TEXTS", "6"))
ROW = 3  # where the text is offered
SLOW = "scripted:4:40"  # an engine that is asked again at a key leaves a hole in what is shown
PACES = (80, 120, 160, 200)  # ms from one key to the next
PRESSES = 40  # far more than a text has words

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
    told = "\n".join(f"{text}: {len(lost)} frames, the first {lost[0]}" for text, lost in wrong.items())
    print(f"{TEXTS} texts typed, {len(wrong)} with frames that lack them\n{told}")
    assert not wrong, told


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
    told = "\n".join(f"{text}: {len(lost)} complaints, the first {lost[0]}" for text, lost in wrong.items())
    print(f"{TEXTS} texts taken by {presses} presses, {len(wrong)} with frames that lack them\n{told}")
    assert not wrong, told
