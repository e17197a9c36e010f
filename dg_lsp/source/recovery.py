"""Recovery: one parse within the budget of its request, stopped where the parser hangs or keeps too many readings.

In errors with many readings the parser's last step takes quadratic time and memory, can't be stopped, and lets no other
thread run; so such a text is noticed before its end.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, thread_time

import tree_sitter
from tree_sitter import Tree

from dg_lsp.budget import Work, working
from dg_lsp.reasons import Unreadable

Reader = Callable[[tree_sitter.LogType, str], None]
_CHUNK = 1 << 12  # bytes that a parser is given at once
_END = 200  # bytes at the end of a text in which the other readings may be broken once one has ended well
# A parser that gets no farther for twice so many seconds hangs.
_STALLED = 0.1
# Of so many calls of the callback, each after 100 steps of the parser, one looks at what the parser does.
_EVERY = 4
# With several readings a token takes about three steps or more; in most code it takes fewer. A block is what is read
# from one look to this many later, and is dense if it has fewer tokens and fewer bytes than this.
_LOOKS, _FEW_TOKENS, _MOST_BYTES = 4, 560, 4_096
# Ambiguous code is dense, too, but has few errors. The parser's messages report errors, and are slow to read: some are
# read after so many tokens in dense blocks, after more tokens where those report none, and the messages of a few calls
# where they do. A text with more errors than this, as estimated, is refused.
_TOKENS, _LATER, _SOME, _LOOK, _MOST_ERRORS = 1_100, 2_200, 130, 4, 390
_SAMPLE = 400  # bytes of a block in which tokens are counted
# What ends a statement, a label or an element of a list somewhere in any code, and a semicolon for all of it; and the
# same with the ends of lines, where these end statements, too.
_SAME = bytes(59 if byte in b";{},:" else byte for byte in range(256))
_SAME_OR_LINE = bytes(59 if byte in b";{},:\r\n" else byte for byte in range(256))
# Nobody writes so many words and signs, or bytes, without any of them.
_STATEMENT_TOKENS, _STATEMENT = 700, 1_400
# Comments that end, directives and strings do not count. Most files have no directives, and then not to look is faster.
# An escape outside of a string begins none, or each of many `\\"` would be looked at up to the end of its line.
_COMMENT_OR_STRING = (
    rb"\\.|//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/"
    rb"|\"[^\"\\\r\n]*+(?:\\.[^\"\\\r\n]*+)*+\"|'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+'"
)
_APART = re.compile(_COMMENT_OR_STRING, re.DOTALL)
_APART_OR_DIRECTIVE = re.compile(
    rb"^[ \t]*#(?:[^\r\n\\]|\\(?:\r\n|.))*|" + _COMMENT_OR_STRING, re.DOTALL | re.MULTILINE
)
_BLANKS = b" \t\r\n\f\v"
# Words as runs of one letter, and all that is in one or between two.
_WORDS = bytes(119 if c >= 128 or c in b"$_" or chr(c).isalnum() else 32 for c in range(256))
_NO_SIGNS = bytes(c for c in range(256) if _WORDS[c] == 119 or c in _BLANKS)
_ERROR = "resume version"  # what a message of the parser about an error begins with


def is_endless(data: bytes, end: str = ";") -> bool:
    """Return whether a statement of `data` is longer than anybody writes, such as 300 times `x =>` in Java.

    end: what ends statements; if it is not a semicolon, the ends of lines do.
    """
    same = _SAME if end == ";" else _SAME_OR_LINE
    marked, half = data.translate(same), _STATEMENT // 2
    # Each part of that length has a whole block of half of it, without a mark.
    if all(b";" in marked[at : at + half] for at in range(0, len(marked) - half + 1, half)):
        return False
    parts = marked.split(b";")
    # What is far from a cursor is blank.
    if all(
        len(part) < _STATEMENT or len(part.translate(None, _BLANKS)) <= _STATEMENT_TOKENS for part in parts
    ):
        return False
    apart = _APART_OR_DIRECTIVE if b"#" in data else _APART
    # Each comment that is never closed would be looked at up to the end of the text.
    last = data.rfind(b"*/") + 1
    code = apart.sub(b" ", data[:last] + data[last:].replace(b"/*", b"/ ")).translate(same)
    long = (part for part in code.split(b";") if len(part) > _STATEMENT_TOKENS)
    return any(count_tokens(part) > _STATEMENT_TOKENS for part in long)


def count_tokens(text: bytes) -> int:
    """Return the number of words and signs in `text`, whatever its language: 4 for `f(a)`."""
    return len(text.translate(_WORDS).split()) + len(text.translate(None, _NO_SIGNS))


class _Broken(Exception):
    """Every reading of a text has an error."""


def parse(parser: tree_sitter.Parser, data: bytes, *old: Tree, last: bytes = b"") -> Tree:
    """Return the tree of `data`, parsed from the `old` one if any; Unreadable if the parser hangs or errs a lot.

    last: what the parser reads after `data`, or after the part of it for which there is time.
    """
    return _parsed(parser, data, old, last, 0)


def parse_until_broken(parser: tree_sitter.Parser, data: bytes, old: Tree, last: bytes = b"") -> Tree | None:
    """Return the tree of `data` as `parse` does; None once every reading of the text is known to have an error."""
    try:
        return _parsed(parser, data, (old,), last, len(data) - _END)
    except _Broken:
        return None


def _parsed(parser: tree_sitter.Parser, data: bytes, old: tuple[Tree, ...], added: bytes, sound: int) -> Tree:
    """Return the tree of `data`; raise _Broken where every reading has an error before the offset `sound`."""

    # The parser heeds a callback only where it is also called for its text, and between two calls other threads run.
    # The parser never lets go of what it is given, so that is one object, which is empty in the end. A node takes its
    # text from here, too, and reads bytes only.
    # A scanner that looks ahead at each place is not stopped by a callback; where the time is over, its text ends.
    chunk, parsing, over, last = bytearray(), True, False, 0

    def read(at: int, _: object) -> bytes | bytearray:
        nonlocal over, last
        if not parsing:
            return data[at : at + _CHUNK]
        over = over or work.is_over(monotonic())
        # A character that the last piece has cut is read again, and crashes the parser where nothing comes.
        size = _CHUNK if not over else _width(data[at]) if at < last else 0
        ends = at == (last if over and not size else len(data))
        last = min(at + size, len(data))
        chunk[:] = added if ends else data[at:last]
        return chunk

    errors = _Errors(parser, data)
    with working() as work:
        go_on = _progress(work, errors, sound)
        try:
            # The binding's types know neither the callback nor its two arguments.
            tree: Tree = parser.parse(read, *old, progress_callback=go_on)  # type: ignore[call-overload]
            if over:
                work.check(monotonic())
        except SystemError as error:
            # Where `read` raises, as on Ctrl+C, the binding continues, and its next call fails for that.
            cause: BaseException = error
            while isinstance(cause, SystemError) and cause.__cause__ is not None:
                cause = cause.__cause__
            raise cause from None
        finally:
            errors.close()
            parsing = False
            chunk.clear()
    return tree


def _width(lead: int) -> int:
    """Return the number of bytes of the character in UTF-8 that begins with `lead`."""
    return 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)


def _progress(work: Work, errors: "_Errors", sound: int) -> Callable[[int, object], bool]:
    """Return the callback of one parse, called every few microseconds: it lets the parser continue, or raises."""
    budget, began, attempt = work.budget, work.began, work.attempt
    # The farthest place, since when it is the farthest, and the processor time once it stalls.
    at, since = -1, 0.0
    stuck: float | None = None
    calls = looks = 0

    def go_on(offset: int, broken: object) -> bool:
        nonlocal at, since, stuck, calls, looks
        calls += 1
        if errors.look:
            errors.read_on()
        if calls % _EVERY:
            return False
        now = monotonic()
        if budget.cancelled or now - began > min(budget.seconds - budget.spent, attempt):
            work.check(now)
        if broken and offset < sound:
            raise _Broken
        # Several readings of one place take turns, so a parser that hangs may go back and forth.
        if offset > at:
            at, since, stuck = offset, now, None
            # The steps after the last token do not count.
            looks += 1
            if looks % _LOOKS == 0:
                errors.end_block(at)
        elif now - since > _STALLED:
            clock = thread_time()
            if stuck is None:
                stuck = clock
            elif clock - stuck > _STALLED:
                raise Unreadable
        return False

    return go_on


@dataclass(slots=True, eq=False)
class _Errors:
    """The number of errors in the dense blocks of one parse of `data`, estimated from some of the parser's messages.

    block: where the current block began. blocks, tokens: the number of dense blocks since the last look, and of tokens
    in them. wait: the tokens before the next look. look: the calls for which messages are still read by `reader`;
    messages: those of this look; seen: the errors in them; errors: the estimate.
    """

    parser: tree_sitter.Parser
    data: bytes
    block: int = 0
    blocks: int = 0
    tokens: int = 0
    wait: int = _TOKENS
    look: int = 0
    reader: Reader | None = None
    messages: int = 0
    seen: int = 0
    errors: int = 0

    def end_block(self, at: int) -> None:
        """End the current block at `at`, and begin to read messages after enough dense ones."""
        start, self.block = self.block, at
        tokens = _tokens(self.data, start, at) if at - start < _MOST_BYTES else _FEW_TOKENS
        if tokens >= _FEW_TOKENS:
            self.blocks = self.tokens = self.errors = 0
            self.wait = _TOKENS
            return
        self.blocks += 1
        self.tokens += tokens
        # Somebody else may read the messages.
        if self.tokens >= self.wait and not self.look and self.parser.logger is None:
            self.look, self.messages, self.seen = _LOOK, 0, 0
            # The parser drops its reference when the logger is removed, which may be while it is called.
            self.reader = self.parser.logger = self._read

    def read_on(self) -> None:
        """End one call for which messages are read; Unreadable is raised for too many errors."""
        self.look -= 1
        if self.look == 0:
            self._end_look()
            if self.errors > _MOST_ERRORS:
                raise Unreadable

    def close(self) -> None:
        """Let go of the parser, which holds what reads its messages."""
        if self.look:
            self.parser.logger = None  # type: ignore[assignment]

    def _read(self, _: tree_sitter.LogType, message: str) -> None:
        self.messages += 1
        self.seen += message.startswith(_ERROR)
        if self.messages == _SOME and not self.seen:
            self._end_look()

    def _end_look(self) -> None:
        self.parser.logger = None  # type: ignore[assignment]
        self.errors += self.seen * self.blocks * _EVERY * _LOOKS // max(_LOOK - self.look, 1)
        self.blocks = self.tokens = self.look = 0
        self.wait = _TOKENS if self.seen else _LATER


def _tokens(data: bytes, start: int, end: int) -> int:
    """Return the number of tokens in data[start:end], estimated from its beginning."""
    looked = min(end - start, _SAMPLE)
    return count_tokens(data[start : start + looked]) * (end - start) // looked
