"""The trigger: why ghost text would disturb the user now, and how long it waits, by the last changes and keys."""

import re
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dg_lsp.gaps import half_word
from dg_lsp.server.documents import Change, Documents, Position
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.source.document import LINE_END, UNITS, Encoding
from dg_lsp.source.lexer import line_start

# erased: by one key; deleted: more than that; taken: of ghost text; unknown: the client does not say where.
Action = Literal["typed", "erased", "deleted", "pasted", "taken", "undone", "unknown"]

# The most characters that one key inserts or erases, beside white space: an emoji, a pair of brackets.
_KEY = 2
_ENOUGH = 3  # erased characters after which the user is about to write something else
# Keys whose intervals are kept, the fewest that make a pace, and the seconds from which an interval is a break.
_KEYS, _FEW, _BREAK = 20, 5, 1.0
# Ghost text waits within a word as long as this multiple of the usual time from key to key, at most these seconds.
_SLOWER, _LONGEST = 1.5, 0.3
# Ghost text waits for the next key as long as this share of the usual time of a fill, of which this many are kept.
_SHARE, _FILLS = 0.25, 16
_SEEN = 500  # earlier texts of a document that are remembered, each by a hash
_WORD = re.compile(r"[\w.$@#!?:-]+(\(\))?")  # as a completion menu inserts it
# The beginning of a line after which text must follow.
_OPEN = re.compile(rb"(^|[(\[{,]|[^=!<>]=|\breturn)[ \t]*$")


@dataclass(slots=True)
class Behaviour:
    """The last actions of the user in a document. action: the newest one; None before the first change.

    spans: the texts that the last changes left. erased: how many characters were erased one after another. seen: the
    hashes of earlier texts. pace: seconds from one typed key to the next; typed: when the last one was. asked: where
    and when ghost text was asked for last.
    """

    action: Action | None = None
    spans: list[tuple[Position, Position]] = field(default_factory=list)
    erased: int = 0
    seen: deque[int] = field(default_factory=lambda: deque(maxlen=_SEEN))
    pace: deque[float] = field(default_factory=lambda: deque(maxlen=_KEYS))
    typed: float = 0.0
    asked: tuple[Position, float] | None = None

    def is_away(self, position: Position) -> bool:
        """Return whether `position` is not at the last change."""
        return self.action is not None and not any(start <= position <= end for start, end in self.spans)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A reason for silence. yields: it does not hold where text must follow, such as after an opening bracket."""

    holds: Callable[[Behaviour, Position], bool]
    why: str
    yields: bool = False


_RULES = (
    _Rule(lambda b, _: b.action is None, "nothing was typed in this file since it was opened"),
    _Rule(lambda b, _: b.action == "undone", "the last change was undone"),
    _Rule(lambda b, _: b.action == "pasted", "the last change was pasted"),
    _Rule(lambda b, _: b.action == "deleted", "the last change deleted text", yields=True),
    _Rule(lambda b, _: 0 < b.erased < _ENOUGH, "the last key erased something", yields=True),
    _Rule(Behaviour.is_away, "the cursor is not at the last change", yields=True),
)


class Trigger:
    """The behaviour of the user in all documents of one client. clock: returns the time in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of: dict[str, Behaviour] = {}
        self._heard = False
        self._took: deque[float] = deque(maxlen=_FILLS)

    def changed(
        self, uri: str, changes: Sequence[Change], documents: Documents, offered: Sequence[str] = ()
    ) -> None:
        """Note the `changes` that led to the text of the document `uri`; `offered` are the texts shown in it.

        A notification without changes is no action of the user.
        """
        if not changes:
            return
        self._heard = self._heard or any(span is not None for span, _ in changes)
        behaviour = self._of.setdefault(uri, Behaviour())
        behaviour.spans = [_span(change, documents.encoding) for change in changes if change[0] is not None]
        for change in changes:
            behaviour.action = _action_of(change, offered)
            behaviour.erased = behaviour.erased + 1 if behaviour.action == "erased" else 0
        now = documents.fingerprint(uri)
        if now in behaviour.seen and not _is_key(changes[-1]):
            behaviour.action, behaviour.erased = "undone", 0
        behaviour.seen.append(now)
        if behaviour.action == "typed":
            since, behaviour.typed = self._clock() - behaviour.typed, self._clock()
            behaviour.pace.extend([since / len(changes)] if since < _BREAK else [])

    def filled(self, seconds: float) -> None:
        """Note that a fill for ghost text took so many seconds."""
        self._took.append(seconds)

    def silence(self, snapshot: Snapshot, cursor: int) -> str:
        """Return why nothing is offered at `cursor` unless the user asks, as a sentence; empty if something may be.

        A client that never reports where its documents change is no editor in which somebody types.
        """
        document = snapshot.document
        behaviour = self._of.get(document.uri, Behaviour())
        if not self._heard or behaviour.action == "unknown" or not document.data or document.data.isspace():
            return ""
        is_open, position = opens(document.data, cursor), _position(snapshot, cursor)
        rules = (rule for rule in _RULES if not (rule.yields and is_open))
        why = next((rule.why for rule in rules if rule.holds(behaviour, position)), "")
        return f"{why}; type, or ask for ghost text" if why else ""

    def pause(self, snapshot: Snapshot, cursor: int) -> float:
        """Return the seconds that ghost text asked for at `cursor` waits for the next key, which would cancel it.

        1. Within a word for which it was asked before, a little longer than the user takes for a key, so that no letter
        of a word that is typed in one go costs a fill.  2. While keys come faster than fills, a share of the usual time
        of a fill, at most the setting debounce; none for a client that waits by itself.
        """
        most = snapshot.settings.debounce / 1000
        behaviour = self._of.setdefault(snapshot.document.uri, Behaviour())
        (line, column), now, last = _position(snapshot, cursor), self._clock(), behaviour.asked
        behaviour.asked = (line, column), now
        if last is None or not most:
            return 0.0
        # 1.
        (last_line, last_column), then = last
        half = half_word(snapshot.document.data, cursor).decode("utf-8", "replace")
        within = last_line == line and 0 < column - last_column < len(half)
        knows = len(behaviour.pace) >= _FEW
        pause = min(_SLOWER * statistics.median(behaviour.pace), _LONGEST) if within and knows else 0.0
        # 2.
        usual = statistics.median(self._took) if self._took else 0.0
        if not snapshot.client.debounces and now - then < usual:
            pause += min(_SHARE * usual, most)
        return pause

    def closed(self, uri: str) -> None:
        """Forget the document `uri`."""
        self._of.pop(uri, None)


def _position(snapshot: Snapshot, cursor: int) -> Position:
    position = snapshot.position(cursor)
    return position.line, position.character


def opens(data: bytes, cursor: int) -> bool:
    """Return whether text must follow at `cursor`: in an empty line, or after `(`, `=` or `return`."""
    return _OPEN.search(data[line_start(data, cursor) : cursor]) is not None


def _action_of(change: Change, offered: Sequence[str]) -> Action:
    """Return the action that makes `change`; `offered` are the texts shown as ghost text."""
    span, text = change
    if span is None:
        return "unknown"
    if not text:
        return "erased" if _is_key(change) else "deleted"
    if _is_key(change) or _WORD.fullmatch(text):
        return "typed"
    return "taken" if any(_plain(text) in _plain(one) for one in offered) else "pasted"


def _plain(text: str) -> str:
    """Return `text` with one kind of line end."""
    return text.replace("\r\n", "\n")


def _is_key(change: Change) -> bool:
    """Return whether `change` is made by one key: it inserts or erases at most a few characters."""
    span, text = change
    if span is None or len(text.strip()) > _KEY:
        return False
    (first, start), (last, end) = sorted(span)
    # The end of a line may go with the blanks of the next.
    return (end - start <= _KEY if first == last else last - first == 1) or bool(text)


def _span(change: Change, encoding: Encoding) -> tuple[Position, Position]:
    """Return the positions where the new text of a change begins and ends."""
    span, text = change
    assert span is not None, "its place is known"
    line, column = min(span)
    *above, last = LINE_END.split(text)
    codec, size = UNITS[encoding]
    units = len(last.encode(codec, "surrogatepass")) // size
    return (line, column), (line + len(above), units if above else column + units)
