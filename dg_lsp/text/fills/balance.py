"""Balance: the brackets of a line with a fill in it. Knows tokens and what is open at a gap; knows no tree."""

import re

from dg_lsp.text.fills.site import Site
from dg_lsp.text.syntax.brackets import unpaired

# An open list of types on a line, such as `Map<String, `; an angle bracket that is no part of an arrow or comparison.
_TYPES = re.compile(rb"[\w$] ?<[^<>;(){}]*\Z")
_ANGLE = re.compile(rb"<(?!=)|(?<![-=])>(?!=)")
_NEAR = 2_000  # bytes behind a gap that may close what the line of the gap has opened


def doubled(site: Site, fill: bytes) -> int | None:
    """Return where `fill` closes a bracket that is closed behind the gap of `site`; None if it does not.

    For the gap in `f(a[|])` and the fill `0])` it is 1. It counts the brackets alone, however broken the text is.

    1. A fill that closes an angle bracket of types before one that closes it ends there.  2. Of brackets only a fill
    that closes what it has not opened, before a rest of the line that does so too, is looked at.  3. The longest
    beginning of the fill stays with which the text near behind it closes no more than with nothing in the gap.
    """
    language, state = site.language, site.state
    # 1.
    if site.rest.lstrip().startswith(b">") and _TYPES.search(site.before, site.line):
        angled = _surplus_angle(fill)
        if angled is not None:
            return angled
    # 2.
    own = unpaired(language, fill).closers
    if not own or not unpaired(language, site.rest).closers or state.string or state.comment:
        return None
    # 3.
    earlier = sum(at < site.line for at in state.opened)
    behind = site.after[: max(len(site.rest), _NEAR)]

    def excess(text: bytes) -> int:
        found = unpaired(language, text, state.brackets)
        return len(found.closers) + max(earlier - found.outer, 0)

    most = excess(behind)
    shorter = [fill, *(fill[:at] for at in reversed(own))]
    found = (beginning for beginning in shorter if excess(beginning + behind) <= most)
    kept = next(found, shorter[-1])
    return len(kept) if len(kept) < len(fill) else None


def _surplus_angle(fill: bytes) -> int | None:
    """Return where `fill` closes an angle bracket that it has not opened; None if it does not."""
    depth = 0
    for found in _ANGLE.finditer(fill):
        depth += 1 if found[0] == b"<" else -1
        if depth < 0:
            return found.start()
    return None
