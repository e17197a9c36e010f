"""Counts of how ghost text was used, by language and model: in a file of this user, which never leaves the machine.

They hold no text and no path. All servers of a user add to the same file.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs
from filelock import FileLock

from dg_lsp.files.writing import write_whole

# The kinds of use that a client reports: shown; taken whole, by a word, by a line; typed to its end; dismissed.
REPORTED = ("shown", "tab", "word", "line", "typed", "dismissed")
# Derived from these: taken by a key, and its characters; kept or changed after a while; saved or changed before saving;
# of the texts with an estimated chance, by its bin, "shown 7", and "taken 7", which counts those that were typed, too.
BINS = 20
_WAIT = 5.0  # seconds for another server that writes
_MOST = 1 << 53
_ENOUGH = 100  # texts with a chance from which a fit is worth something


class Key(NamedTuple):
    """A counter: its language, its model and its kind."""

    language: str
    model: str
    kind: str


Counts = Counter[Key]


def path() -> Path:
    """Return the path of the file, which need not exist."""
    return platformdirs.user_state_path("dg-lsp", appauthor=False) / "use.json"


def read() -> tuple[Counts, str]:
    """Read the counts, and the day since which they are counted; none and "" if there is no such file."""
    try:
        content = json.loads(path().read_text(encoding="utf-8"))
        rows = {Key(language, model, kind): n for language, model, kind, n in _rows(content["counts"])}
        return Counter(rows), str(content["since"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Counter(), ""


def add(more: Counts) -> Counts:
    """Add `more` to the file, and return the sum; raise OSError if it cannot be written."""
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock"), timeout=_WAIT):
        counts, since = read()
        counts += more
        content = {"since": since or date.today().isoformat(), "counts": nested(counts)}
        write_whole(file, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode("utf-8"), mode=0o600)
    return counts


def nested(counts: Counts) -> dict[str, dict[str, dict[str, int]]]:
    """Return the counts as the file holds them: by language, then by model, then by kind."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for key, n in counts.items():
        found.setdefault(key.language, {}).setdefault(key.model, {})[key.kind] = n
    return found


def by(counts: Counts, *fields: str) -> dict[tuple[str, ...], Counter[str]]:
    """Return the sums of each kind by some fields of Key; example: `by(counts, "model")`."""
    found: dict[tuple[str, ...], Counter[str]] = {}
    for key, n in counts.items():
        found.setdefault(tuple(getattr(key, name) for name in fields), Counter())[key.kind] += n
    return found


def sentence(counts: Counts, model: str) -> str:
    """Say how ghost text of `model` was used, for the status; empty if none was shown."""
    of = by(counts, "model").get((model,), Counter[str]())
    if not of["shown"]:
        return ""
    taken, known = of["taken"] + of["typed"], of["kept"] + of["changed"]
    kept = f"; {share(of['kept'], known)} kept" if known else ""
    return (
        f"{of['shown']} shown, {taken} taken ({share(taken, of['shown'])}), {of['dismissed']} dismissed{kept}"
    )


def share(part: int, whole: int) -> str:
    """Return a share as a text such as "37 %"; "-" of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def fit(counts: Counts, least: float) -> tuple[float, str] | None:
    """Propose a value for the setting confidence, and say why; None if too few texts were shown.

    It is the lowest chance from which texts were taken with a probability of `least` or more. 1. Sum the bins.  2. Pool
    neighbouring bins until the share that was taken grows with the chance.  3. Where even the lowest bin has enough
    of it, propose one bin less, so that it can be seen how texts there are taken.
    """
    # 1.
    kinds = Counter[str]()
    for of in by(counts).values():
        kinds += of
    bins = [(n, kinds[f"shown {n}"], kinds[f"taken {n}"]) for n in range(BINS) if kinds[f"shown {n}"]]
    if sum(shown for _, shown, _ in bins) < _ENOUGH:
        return None
    # 2.
    pools: list[tuple[int, int, int]] = []
    for pool in bins:
        pools.append(pool)
        while len(pools) > 1 and pools[-2][2] * pools[-1][1] >= pools[-1][2] * pools[-2][1]:
            (_, shown, taken), (first, more, others) = pools.pop(), pools.pop()
            pools.append((first, shown + more, taken + others))
    # 3.
    good = next((pool for pool in pools if pool[2] >= least * pool[1]), None)
    if good is None:
        return 0.95, f"at no chance were {least:.0%} of the texts taken"
    if good is pools[0]:
        lower = max(bins[0][0] - 1, 0) / BINS
        return lower, f"{share(good[2], good[1])} of the texts were taken where the chance was lowest"
    below = [pool for pool in pools if pool[0] < good[0]]
    shown, taken = sum(one[1] for one in below), sum(one[2] for one in below)
    return good[0] / BINS, f"of the {shown} texts with a lower chance {share(taken, shown)} were taken"


def _rows(content: Mapping[str, Any]) -> Iterable[tuple[str, str, str, int]]:
    for language, models in content.items():
        for model, kinds in models.items():
            yield from ((language, model, kind, n) for kind, n in kinds.items() if 0 < int(n) < _MOST)
