"""The harm of a fill in a plain language: by its brackets and marks, and by its grammar where it has one."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice

from tree_sitter import Node, Tree

from dg_lsp.text.budget import attempt
from dg_lsp.text.fills.baseline import errors_of
from dg_lsp.text.fills.loose import loose_bracket, loose_literal, pairs_in
from dg_lsp.text.fills.site import Site
from dg_lsp.text.gaps.plain import REACH, open_at
from dg_lsp.text.languages.language import Language
from dg_lsp.text.reasons import TooDeep, Unreadable
from dg_lsp.text.syntax.brackets import PAIRS
from dg_lsp.text.syntax.lexer import line_start
from dg_lsp.text.syntax.misplaced import new_misplaced

# A longer text is not parsed: tokens must do.
PARSED = 200_000
# Neutral texts that are tried at most.
_TRIES = 500
# Names behind a gap that may be the one of its line.
_NAMES = 8
_LINE = re.compile(rb"[^\r\n]*\s*")


def harm_between(site: Site, fill: bytes) -> str:
    """Return why `fill` does harm in the gap of `site`, as words; empty where it does none.

    1. It has no loose end.  2. By the grammar there are no more errors than without it, or with a neutral text in its
    place, and no statement where none can be.
    """
    language, before, after = site.language, site.before, site.after
    # 1.
    if loose := loose_literal(site, fill) or loose_bracket(site, fill):
        return loose.what
    # 2.
    if not _is_parsed(language, before, after):
        return ""
    tree, first = _filled(language, before, fill, after), site.line
    last = len(before + fill) + _LINE.match(after).end()  # type: ignore[union-attr]  # it matches nothing, too
    faults = _faults(language, tree)
    # One in the line itself is none of damage elsewhere, unless brackets above are not closed yet.
    own = any(first <= node.start_byte < node.end_byte <= last for node in faults)
    own = own and not pairs_in(language, before[:first] + after[len(site.rest) :]).opened
    if own or len(faults) > _errors_without(language, before, after):
        return "a syntax error"
    new = tree.root_node, (len(before), len(before + fill))
    old = _tree(language, before, after).root_node, (len(before), len(before))
    return "a statement that cannot be here" if new_misplaced(language, new, old) else ""


def _is_parsed(language: Language, before: bytes, after: bytes) -> bool:
    """Return whether a grammar reads the text around a gap; where none does, tokens must do."""
    if language.tree is None or len(before) + len(after) > PARSED:
        return False
    try:
        _tree(language, before, after)
    except TooDeep:
        return False
    return True


@lru_cache(maxsize=2)
def _errors_without(language: Language, before: bytes, after: bytes) -> int:
    """The fewest errors with nothing in the gap, or, in a part of the time, with a text that may complete its line."""
    fewest = len(_faults(language, _tree(language, before, after)))
    with suppress(Unreadable), attempt():
        for text in islice(_neutral(language, before, after), _TRIES if fewest else 0):
            fewest = min(fewest, len(_faults(language, _filled(language, before, text, after))))
            if not fewest:
                break
    return fewest


@lru_cache(maxsize=2)
def _tree(language: Language, before: bytes, after: bytes) -> Tree:
    """The tree with nothing in the gap."""
    return language.parse(before + after)


def _filled(language: Language, before: bytes, text: bytes, after: bytes) -> Tree:
    """The tree with `text` in the gap."""
    tree, at = _tree(language, before, after), len(before)
    return language.reparse(tree, before + after, (at, at), text)


def _neutral(language: Language, before: bytes, after: bytes) -> Iterator[bytes]:
    """Texts that may complete the line of a gap: one of the language, what closes the line, what opens the next one."""
    state, here = open_at(language, before, len(before)), line_start(before, len(before))
    closers = state.closing(at for at in state.opened if at >= here)
    lacking = next(iter(pairs_in(language, before + after).lacking), b"")
    opener = lacking if lacking in PAIRS else b""
    names = dict.fromkeys(found[1] for found in language.plain.names.finditer(after, 0, REACH))
    texts = (
        state.string * quoted + text.replace(b"{0}", name) + closers * closed + opener * opened + end
        for name in list(names)[:_NAMES] or [b"_g_"]
        for end in language.words.ends
        for text in (b"", *language.plain.fillers)
        for opened in (1, 0)
        for closed in (1, 0)
        for quoted in (1, 0)
    )
    return iter(dict.fromkeys(texts))


def _faults(language: Language, tree: Tree) -> list[Node]:
    """The errors of `tree`, and what its query refuses."""
    return [*errors_of(tree.root_node), *language.captures(tree.root_node).get("refuse", ())]
