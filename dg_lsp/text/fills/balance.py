"""Balance: the brackets of a line with a fill in it. Knows tokens and what is open at a gap; knows no tree."""

from collections.abc import Sequence

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.brackets import PAIRS, state_at
from dg_lsp.text.syntax.lexer import line_end, line_start, tokens


def doubled(language: Language, before: bytes, fill: bytes, after: bytes) -> int | None:
    """Return where `fill` closes a bracket that is closed behind the gap; None if it does not.

    For the gap in `f(a[|])` and the fill `0])` it is 1. Told by the brackets alone, however broken the text is.

    1. Only a fill that closes what it has not opened, before a rest of the line that does so too, is looked at.
    2. The longest beginning of the fill stays with which the line closes no more than with nothing in the gap.
    """
    # 1.
    rest = after[: line_end(after, 0)]
    own = _surplus(language, fill) if _surplus(language, rest) else ()
    if not own:
        return None
    state = state_at(language, before, len(before))
    if state.string or state.comment:
        return None
    # 2.
    here = line_start(before, len(before))
    earlier = sum(at < here for at in state.opened)
    most = _excess(language, state.brackets, earlier, rest)
    shorter = [fill, *(fill[:at] for at in reversed(own))]
    found = (f for f in shorter if _excess(language, state.brackets, earlier, f + rest) <= most)
    kept = next(found, shorter[-1])
    return len(kept) if len(kept) < len(fill) else None


def _surplus(language: Language, text: bytes) -> Sequence[int]:
    """Return where `text` closes brackets that it has not opened."""
    depth, found = 0, []
    for token in tokens(language, text, 0, len(text)):
        if token.kind == "close" and depth == 0:
            found.append(token.start)
        depth += (token.kind == "open") - (token.kind == "close" and depth > 0)
    return found


def _excess(language: Language, opened: bytes, earlier: int, text: bytes) -> int:
    """Count the brackets that `text` closes though none is open, or only one of the first `earlier` of `opened`."""
    stack, lowest, count = [opened[at : at + 1] for at in range(len(opened))], earlier, 0
    for token in tokens(language, text, 0, len(text)):
        bracket = text[token.start : token.end]
        if token.kind == "open":
            stack.append(bracket)
        elif token.kind == "close" and stack and PAIRS[stack[-1]] == bracket:
            stack.pop()
            lowest = min(lowest, len(stack))
        elif token.kind == "close":
            count += 1
    return count + earlier - lowest
