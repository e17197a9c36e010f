"""The tables of fills in `bench --gaps`: what was shown, what is wrong with it, what was refused and why.

Knows what was measured; measures nothing.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.gaps.fills import Fills
from benchmarks.gaps.shown import Shown
from benchmarks.gaps.tables import cursor_told, percent, table


def fills_table(title: str, fills: Sequence[Fills]) -> str:
    """What was shown of the fills, and what is wrong with those: counts, not shares."""
    head = ("kind", "of", "n", "shown %", "real %", "add an error", "escape", "doubled")
    rows = []
    for f in fills:
        told = summary(f)
        counts = (str(told[name]) for name in ("add_an_error", "escape", "doubled"))
        rows.append(
            (f.kind, f.language, str(f.count), percent(told["shown"]), percent(told["real"]), *counts)
        )
    notes = "shown: offered, perhaps after cutting; real: and no stub; add an error: the file does not parse with it"
    more = "escape: its body ends elsewhere; doubled: it ends with what follows it"
    return f"{title}\n{table(head, rows)}\n{notes}\n{more}"


def true_table(title: str, fills: Sequence[Fills]) -> str:
    """How often what stood in a hole is refused or changed."""
    rows = []
    for f in fills:
        changed = sum(s.text.strip() != s.case.text.strip() for s in f.shown)
        rows.append((f.kind, f.language, str(f.count), str(len(f.refused)), str(changed)))
    return f"{title}\n{table(('kind', 'of', 'n', 'refused', 'changed'), rows)}"


def summary(fills: Fills) -> dict[str, Any]:
    """The counts of one kind as data."""
    shown = fills.shown
    return {
        "language": fills.language,
        "kind": fills.kind,
        "count": fills.count,
        "shown": len(shown) / fills.count if fills.count else None,
        "real": sum(s.real for s in shown) / fills.count if fills.count else None,
        "add_an_error": sum(s.faulty for s in shown),
        "escape": sum(s.escapes for s in shown),
        "doubled": sum(s.doubled for s in shown),
        "by_damage": dict(Counter(s.name for s in shown if s.faulty or s.escapes or s.doubled)),
        "reasons": dict(Counter(_reason(why) for _, _, why in fills.refused).most_common(10)),
    }


def shown_told(fills: Sequence[Fills], count: int) -> str:
    """The first `count` wrong ones among the shown fills of each kind and fault."""
    parts = []
    for f in fills:
        for fault in ("faulty", "escapes", "doubled"):
            wrong = [s for s in f.shown if getattr(s, fault)]
            parts += [f"{f.language} {f.kind}, {fault}, {_shown(s)}" for s in wrong[:count]]
    return "\n".join(parts)


def refused_told(fills: Sequence[Fills], count: int) -> str:
    """The first `count` true texts of each kind that were refused or changed."""
    parts = []
    for f in fills:
        for case, _, why in f.refused[:count]:
            parts.append(
                f"{f.language} {f.kind}, refused: {why}; the text {_short(case.text)}; {cursor_told(case)}"
            )
        changed = [s for s in f.shown if s.text.strip() != s.case.text.strip()]
        parts += [
            f"{f.language} {f.kind}, changed from {_short(s.case.text)}, {_shown(s)}" for s in changed[:count]
        ]
    return "\n".join(parts)


def judged_told(language: str, judge: str, asked: int, refused: Sequence[Shown]) -> str:
    """What an outside judge says of the fills shown."""
    share = percent(len(refused) / asked if asked else None)
    told = ", ".join(f"{name} {count}" for name, count in Counter(s.name for s in refused).most_common())
    line = f"{language}: {judge} refuses {len(refused)} of {asked} fills shown whose true files it takes: {share} %"
    return f"{line} ({told})" if told else line


def _shown(shown: Shown) -> str:
    return f"{shown.name}: {_short(shown.text)}; {cursor_told(shown.case)}"


def _short(text: str) -> str:
    return repr(text if len(text) < 300 else f"{text[:140]} … {text[-140:]}")


def _reason(why: str) -> str:
    """A reason without the words that differ from fill to fill."""
    return re.sub(r"`[^`]*`|\d+", "…", why)
