"""The records between the editor's process and the engine's: frozen data, text only, no tokens, no line numbers."""

from dataclasses import dataclass
from typing import Literal, get_args

Effort = Literal["low", "normal", "high"]
Kind = Literal[
    "function_body",
    "class_body",
    "block",
    "arguments",
    "parameters",
    "collection",
    "expression",
    "statement",
    "string",
    "docstring",
    "comment",
    "rest_of_line",
    "span",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
# What can be asked for at a cursor: a kind, or all holes of the function there. A span needs two places.
Wanted = Kind | Literal["holes"]
WANTED: tuple[Wanted, ...] = (*(kind for kind in KINDS if kind != "span"), "holes")
# Kinds that are the body of a header, the text between brackets, and the text between quotes.
BODIES: tuple[Kind, ...] = ("function_body", "class_body", "block")
LISTS: tuple[Kind, ...] = ("arguments", "parameters", "collection")
STRINGS: tuple[Kind, ...] = ("string", "docstring")
# Kinds whose fill is a part of a line; the others are lines of their own, but for a span, the text between any two
# places of one function.
PARTS: tuple[Kind, ...] = (*LISTS, *("expression", "statement"), *("string", "comment", "rest_of_line"))
# Who is served first: ghost text, a fill that a person has asked for, a bot's, one that nobody has asked for yet.
Priority = Literal["ghost", "fill", "bot", "ahead"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
# How a refusal begins which says that ghost text cannot come in time on this machine.
OFF = "ghost text is off:"
Reason = Literal["stable", "steps", "deadline"]
State = Literal["starting", "loading", "ready", "busy", "slow", "failed"]
# Where a candidate comes from: denoised from noise, found elsewhere in the project, written by the encoder from left to
# right.
Source = Literal["denoised", "retrieved", "drafted"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of another file that bears on a gap: the file's path in the project, and the text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A text that may belong in a gap, since it follows the same words elsewhere.

    `before`, `behind`: how many words and signs agree with those before and after the gap. `count`: how often it was
    found; `near`: how near the nearest place is, 1 on the next line, towards 0 in other files.
    """

    text: str
    before: int = 0
    behind: int = 0
    count: int = 1
    near: float = 0.0


@dataclass(frozen=True, slots=True)
class Hunk:
    """A place of a file that was edited, as whole lines: those `removed` from it and those `added`.

    path: the file's path in the project. line: the number of the first line of `above`, from 1. scope: the header of
    the function or class around the place, "" if there is none. above, below: lines that were not changed.
    """

    path: str
    line: int
    scope: str
    above: str
    removed: str
    added: str
    below: str


@dataclass(frozen=True, slots=True)
class Infill:
    """One request: the text before and after a gap, and how hard to try.

    `prefix` + fill + `suffix` is the file, or a part of it. `prefix` ends exactly where the gap begins, which may be in
    the middle of a line. `indent` is the white space of a body's lines. `alternatives`: the number of different fills.
    `like`: a text with as many tokens as the gap, the oracle of measurements. `deadline`: seconds after a loaded engine
    gets the request, waiting counted; None is no limit (bots). `window` names the client, so that each gets its share
    of the steps; `session` names the document. `between`, for several gaps of one kind: the text between each and the
    next; `suffix` is after the last. `endings`, where `prefix` ends with half a word: the texts that complete it to a
    word in sight; else None. A network that does not see both sides of the gap writes no other word. `context` is from
    other files, the most stable first. `retrieved`: candidates from the project, best first. `start`: a text that the
    free slots start from, of which the share `noised` is noise. `macros`: names that the parser reads as blanks.
    `confidence`: where the best text is right with a lower probability, its beginning that is surer is wanted instead.
    `edits`: what was edited lately, and last the place of a line that may follow from it, its `removed` one; the Fill
    has the lines that take its place, and there is no other gap. If there are `added` ones already, these are rated:
    `score` is how much unlikelier they are than the `removed` ones. `unimported`, for a gap in an import: names that
    the file uses and nothing defines or imports, of which the text probably has one. `shown`: a text for the gap that
    is shown already and right with the probability `chance`; the Fill begins with it, and has the item below it.
    `soon`: the first lines of a text are wanted as soon as they can be shown and grow; what belongs below them is
    requested afterwards.
    """

    prefix: str
    suffix: str
    language: str
    kind: Kind
    indent: str = ""
    seed: int = 0
    effort: Effort = "normal"
    deadline: float | None = None
    session: str = ""
    like: str | None = None
    alternatives: int = 1
    between: tuple[str, ...] = ()
    priority: Priority = "bot"
    window: str = ""
    endings: tuple[str, ...] | None = None
    context: tuple[Piece, ...] = ()
    retrieved: tuple[Retrieved, ...] = ()
    start: str | None = None
    noised: float = 1.0
    confidence: float = 0.0
    macros: tuple[str, ...] = ()
    edits: tuple[Hunk, ...] = ()
    unimported: tuple[str, ...] = ()
    shown: str = ""
    chance: float = 1.0
    soon: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring slots of one canvas that share their state, as text.

    `entropy`: their mean in nats (0 for anchors). `accepted`: by the sampler in this step, as anchors always are.
    """

    text: str
    anchored: bool
    accepted: bool
    entropy: float


@dataclass(frozen=True, slots=True)
class Draft:
    """One denoising step as text. `step` counts from 1; `milliseconds` since the request was taken up.

    `pause`: the text before the gap is being read, and this is a place between two layers of the network.
    """

    step: int
    runs: tuple[Run, ...]
    milliseconds: float
    pause: bool = False

    @property
    def progress(self) -> str:
        """Return how far the fill is, in words for the user."""
        return f"step {self.step}" if self.step else "reading the file, trying lengths"


@dataclass(frozen=True, slots=True)
class Fill:
    """The end of an infill. An empty `text` has its reason in `refusal`, a sentence for the user.

    `score`: how unlikely the network finds the text, read from left to right into the suffix, in nats. `steps`:
    denoising steps of the shown candidate; `searched`: those of the length search. `parses` is False where every
    candidate added a syntax error. `others`: further texts for the gap, the likeliest first. `further`: the texts of
    the gaps after the first, empty for one that got none. `shortened`: the candidate was broken, and this is its
    longest beginning of whole statements that is not. `source`: where the text is from. `chance`: the estimated
    probability that it is exactly right, None where nobody has estimated it. `partial`: the text is the beginning of a
    candidate, and `chance` is that of the beginning. `grows`: the network could write the item below
    the text, if it is asked with the text as `shown`.
    """

    text: str
    score: float = 0.0
    steps: int = 0
    searched: int = 0
    reason: Reason = "steps"
    parses: bool = True
    repairs: int = 0
    milliseconds: float = 0.0
    refusal: str = ""
    others: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    shortened: bool = False
    source: Source = "denoised"
    chance: float | None = None
    partial: bool = False
    grows: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """The status of an engine, for people and programs.

    done: the share of the loading that is done, 0 to 1. `why`: why it failed, or is slow, and the fix. memory: bytes
    held, of the device where it says. milliseconds, steps: of the last infill. queue: infills that wait. passes:
    denoising steps, encoded chunks and tokens written since the start. fills: infills answered. hits: infills whose
    document was still encoded from before.
    """

    state: State
    done: float = 0.0
    why: str = ""
    checkpoint: str = ""
    digest: str = ""
    device: str = ""
    memory: int = 0
    milliseconds: float = 0.0
    steps: int = 0
    queue: int = 0
    passes: int = 0
    fills: int = 0
    hits: int = 0
    wire: int = 0
    package: str = ""
    python: str = ""
    torch: str = ""
    process: int = 0
    seconds: float = 0.0
