"""Records: what was found on this machine, by name, in JSON files.

A record that is missing or damaged is empty, and one that cannot be written is made again the next time.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dg_lsp.files.writing import write_whole


def read_record(file: Path) -> dict[str, Any]:
    """Return the values in the record `file`, by name; {} if it is missing or unreadable."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_record(file: Path, found: Mapping[str, Any]) -> None:
    """Write the values `found` as the record `file`, if that can be written."""
    with suppress(OSError, RuntimeError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(found).encode("ascii"), mode=0o600)


def note_in_record(file: Path, name: str, value: Any, most: int) -> None:
    """Put `value` under `name` into the record `file`, which holds the newest `most` names."""
    others = [(one, found) for one, found in read_record(file).items() if one != name]
    write_record(file, dict([*others, (name, value)][-most:]))
