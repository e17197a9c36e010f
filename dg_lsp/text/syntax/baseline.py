"""The text round a gap with a neutral filler in it: what a fill is compared with, and as free of errors as can be.

Knows repairs, and what a cut at either end of a text may have taken away; knows no fill.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from tree_sitter import Tree

from dg_lsp.text.documents.lines import line_end, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.messages import PARTS, STRINGS
from dg_lsp.text.syntax.brackets import closers, state_at
from dg_lsp.text.syntax.items import block, window
from dg_lsp.text.syntax.repair import cost_of, insertions, out_of_reach

# What may have stood before a text whose beginning was cut off: a block, a string, a bracket, several.
LEADS = {
    "indent": (b"", b"if 1:\n", b'"""\n', b"'''\n", b"(\n", b"[\n", b"{\n", b"if 1:\n ((\n", b"if 1:\n {(\n"),
    "brace": (b"", b"{\n", b"{{\n", b"/*\n", b"(\n", b"[\n"),
}
# A longer text that is broken elsewhere is searched only round its gap.
SEARCHED = 50_000
# How many bytes are parsed at most to find a filler.
EFFORT = 1_000_000
# Of a text longer than this only the top-level item round the gap is parsed.
WHOLE = 400_000


@dataclass(frozen=True, slots=True)
class Text:
    """before + fill + after as bytes, and its tree."""

    before: bytes
    fill: bytes
    after: bytes
    tree: Tree

    @property
    def data(self) -> bytes:
        """The whole text."""
        return self.before + self.fill + self.after

    @property
    def end(self) -> int:
        """Where the fill ends."""
        return len(self.before) + len(self.fill)

    @property
    def clean(self) -> bool:
        """Whether the tree has no error."""
        return not self.tree.root_node.has_error

    def filled(self, language: Language, fill: bytes) -> "Text":
        """The same text with another fill, parsed incrementally."""
        tree = language.reparse(self.tree, self.data, (len(self.before), self.end), fill)
        return Text(self.before, fill, self.after, tree)


@lru_cache(maxsize=4)
def neutral_text(language: Language, kind: str, before: bytes, after: bytes) -> Text:
    """before + filler + after, or the part of it round the gap that parses cleanly, or the best there is.

    1. The whole with the kind's placeholder, and a span always.  2. The top-level item round the gap, or its block,
    any filler.  3. The whole with any filler.  4. The whole with what cuts at its ends may have taken.

    The last few answers are kept, since the candidates of one request all ask for the same.
    """
    # 1. Nearly every body ends here.
    data = before + language.placeholder(kind).encode() + after
    whole = _placed(language, kind, before, after) if len(data) <= WHOLE else None
    if whole is not None and (whole.clean or kind == "span"):
        # No filler is neutral where the fill may begin and end in the middle of anything.
        return whole
    # What is open at the end of a cut text is closed behind it, and not by a filler.
    if len(data) <= SEARCHED and (after_ended := _ended(language, kind, before, after)) is not None:
        ended = _searched(language, kind, before, after_ended)
        if ended.clean:
            return ended
    # 2. Damage elsewhere in the file must not drown the comparison.
    part = whole
    for start, stop in (window(language, data, len(before)), block(language, data, len(before))):
        behind = len(data) - stop
        if start <= len(before) and behind <= len(after) and not (part and part.clean):
            part = _searched(language, kind, before[start:], after[: len(after) - behind])
    part = part or _placed(language, kind, before, after)
    if whole is not None and part.clean and (mended := whole.filled(language, part.fill)).clean:
        # The item alone would not show what a fill does to the next one.
        return mended
    # 3. The item may have been found wrongly, for a string can look like a def.
    if not part.clean and len(data) <= SEARCHED:
        part = _searched(language, kind, before, after)
    # 4. What an engine sees of a file is cut at both ends.
    return part if part.clean else _completed(language, kind, part)


@lru_cache(maxsize=4)
def alone(language: Language, kind: str, header: bytes, line: bytes) -> Text:
    """A neutral filler in a body of nothing else: behind its `header` and what its `line` has before the gap."""
    return _completed(language, kind, _placed(language, kind, header.rstrip() + b"\n" + line, b"\n"))


def _ended(language: Language, kind: str, before: bytes, after: bytes) -> bytes | None:
    """`after` without the statement that its end cuts, and with the brackets closed that are open there."""
    text = before + after
    state = state_at(language, text, len(text))
    if not (state.brackets or state.string or state.comment):
        return None
    stop = state.begins if state.comment else state.line
    whole = stop <= line_end(text, len(before))
    stop = len(text) if whole else stop
    # What the gap's own line opens the fill may close.
    here = range(line_start(before, len(before)), len(before))
    brackets = bytes(text[at] for at in state.opened if at < stop and at not in here)
    string = state.string if whole and (kind in STRINGS or state.begins not in here) else b""
    return text[len(before) : stop] + string + closers(brackets)


def _placed(language: Language, kind: str, before: bytes, after: bytes) -> Text:
    filler = language.placeholder(kind).encode()
    return Text(before, filler, after, language.parse(before + filler + after))


def _searched(language: Language, kind: str, before: bytes, after: bytes) -> Text:
    """The text with the filler that parses best; a body has one filler, a line may want brackets closed."""
    best = _placed(language, kind, before, after)
    if kind not in PARTS or best.clean:
        return best
    data = before + after
    state = state_at(language, data, len(before))
    first, lowest = best, cost_of(best.tree)
    # Parsing costs by the byte, and what is broken above the line no filler mends.
    tries = 1 if out_of_reach(best.tree, state.line) else max(EFFORT // (len(data) + 1), 1)
    for text in islice((b"", *insertions(language, data, len(before), state)), tries):
        candidate = first.filled(language, text)
        cost = cost_of(candidate.tree)
        if cost < lowest:
            best, lowest = candidate, cost
        if cost == 0:
            break
    return best


def _completed(language: Language, kind: str, broken: Text) -> Text:
    """`broken` with an opening before it and what closes it behind it, where that parses cleanly."""
    if len(broken.data) > SEARCHED:
        return broken
    for lead in LEADS[language.style]:
        before = state_at(language, lead + broken.before, len(lead + broken.before), 0)
        if (before.string or before.comment) and kind not in (*STRINGS, "comment"):
            # Within a string everything is clean.
            continue
        data = lead + broken.data
        state = state_at(language, data, len(data), 0)
        trail = state.string + closers(state.brackets)
        text = _searched(language, kind, lead + broken.before, broken.after + trail)
        if text.clean:
            return text
    return broken
