"""Recovery: notice a text in whose errors the parser keeps too many readings, before it reaches the end.

Its last step then takes quadratic time and memory, can't be stopped, and lets no other thread run. Knows no grammar.
"""

from dataclasses import dataclass

import tree_sitter

from dg_lsp.text.budget import SLOW
from dg_lsp.text.languages.shape import TOKEN
from dg_lsp.text.reasons import OutOfTime

# With several readings a token takes about three steps or more; in most code it takes fewer. A block is this many calls
# of the callback, each after 100 steps, and is dense if it has fewer tokens and fewer bytes than this.
_CALLS, _FEW_TOKENS, _MOST_BYTES = 16, 560, 4_096
# After this many dense blocks in a row the parser's messages are read for this many calls, and a text with more errors
# in them than this, in dense blocks in a row, is refused. Ambiguous code is dense too, but it has no errors.
_DENSE_BLOCKS, _LOOK, _MOST_ERRORS = 2, 4, 49
_ERROR = "resume version"  # what a message of the parser about an error begins with


@dataclass(slots=True, eq=False)
class Recovery:
    """The steps of one parse of `data`.

    at: the farthest place. calls: how often that has changed. block: the place where the current block began. dense:
    the number of dense blocks in a row. look: the number of calls for which messages are still read. errors: the number
    of errors in the messages.
    """

    parser: tree_sitter.Parser
    data: bytes
    at: int = -1
    calls: int = 0
    block: int = 0
    dense: int = 0
    look: int = 0
    errors: int = 0

    def step(self, offset: int) -> None:
        """Let the parser go on from `offset`.

        Raises:
            OutOfTime: the text has too many errors where the parser keeps several readings.
        """
        if self.look:
            self._end_look()
        # The steps behind the last token do not count.
        if offset <= self.at:
            return
        self.at = offset
        self.calls += 1
        if self.calls % _CALLS == 0:
            self._end_block()

    def end(self) -> None:
        """Let go of the parser, which holds what reads its messages."""
        if self.look:
            self.parser.logger = None  # type: ignore[assignment]

    def _end_block(self) -> None:
        start, self.block = self.block, self.at
        few = self.at - start < _MOST_BYTES and len(TOKEN.findall(self.data, start, self.at)) < _FEW_TOKENS
        if not few:
            self.dense = self.errors = 0
            return
        self.dense += 1
        # Messages are slow, and somebody else may read them.
        if self.dense % _DENSE_BLOCKS == 0 and not self.look and self.parser.logger is None:
            self.look = _LOOK
            self.parser.logger = self._read

    def _end_look(self) -> None:
        self.look -= 1
        if self.look == 0:
            self.parser.logger = None  # type: ignore[assignment]
            if self.errors > _MOST_ERRORS:
                raise OutOfTime(SLOW)

    def _read(self, _: tree_sitter.LogType, message: str) -> None:
        self.errors += message.startswith(_ERROR)
