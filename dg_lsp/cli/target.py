"""Targets on the command line (FILE:LINE, FILE::name): find the gap, and write the changed file back.

Knows files and the text layer; knows no engine and prints nothing.
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from dg_lsp.files.ignored import ignored
from dg_lsp.files.writing import check_free, kept_of, replace_text, why_unwritten
from dg_lsp.filling.project import excluding_path
from dg_lsp.gaps import Edit, Gap, code_with, find_gap
from dg_lsp.messages import Wanted
from dg_lsp.settings import SECRETS, Settings, UsageError
from dg_lsp.source.document import Document, read_document
from dg_lsp.source.injections import injected
from dg_lsp.source.language import language_of

# A name may hold `::` as well as a path may: the path ends at the first one after a suffix, else at the last one.
_NAMED = re.compile(r"(?P<path>.+?\.\w+|.+)::(?P<name>.+)", re.DOTALL)
# The path may hold colons (a drive letter), so the numbers are taken from the end.
_PLACE = re.compile(r"(?P<path>.+?):(?P<line>[0-9]{1,9})(?::(?P<column>[0-9]{1,9}))?", re.DOTALL)
# The write permissions of owner, group and others.
_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_CHANGED = "{} has changed meanwhile, so it was left alone; run the command again"
_FORMS = "name the gap as FILE:LINE, FILE:LINE:COLUMN or FILE::function"


@dataclass(frozen=True, slots=True)
class Target:
    """A place in a file: a function's qualified `name`, or a `line` and perhaps a `column`, from 1."""

    path: Path
    line: int = 0
    column: int | None = None
    name: str = ""


def parse_target(text: str) -> Target:
    """Read `FILE:LINE`, `FILE:LINE:COLUMN` or `FILE::name`."""
    if named := _NAMED.fullmatch(text):
        return Target(Path(named["path"]), name=named["name"])
    place = _PLACE.fullmatch(text)
    if place is None:
        raise UsageError(f"{text!r} does not say where the gap is; {_FORMS}")
    line, column = int(place["line"]), place["column"]
    if line == 0 or (column is not None and int(column) == 0):
        raise UsageError(f"{text!r}: lines and columns count from 1")
    return Target(Path(place["path"]), line, None if column is None else int(column))


def locate(target: Target, kind: Wanted | None = None, macros: tuple[str, ...] = ()) -> tuple[Document, Gap]:
    """Read the file of `target`, which may hold `macros`, and find its gap; without a column, at the line's end."""
    document = read_document(target.path, macros)
    if target.name:
        if kind not in (None, "function_body", "holes"):
            raise UsageError(f"a function's name means its body; for --kind {kind} give FILE:LINE:COLUMN")
        return code_with(document, target.name, kind)
    part, cursor = injected(document, cursor_of(target, document))
    return part, find_gap(part, cursor, kind)


def in_file(path: Path, part: Document, edit: Edit) -> tuple[Document, Edit]:
    """Return the document of the whole file at `path`, and `edit`, which is of `part`, moved to it.

    Example: a line of a code fence begins at another byte of the Markdown file than of the document of its code.

    Raises:
        UsageError: the file has changed since `part` was read.
    """
    if part.language == language_of(path):
        return part, edit
    whole, line = read_document(path), part.line_at(edit.start)
    moved = whole.line_starts[line] - part.line_starts[line] if line < len(whole.line_starts) else 0
    kept = slice(part.line_starts[line], edit.end)
    if whole.data[kept.start + moved : kept.stop + moved] != part.data[kept]:
        raise UsageError(_CHANGED.format(path))
    return whole, Edit(edit.start + moved, edit.end + moved, edit.text)


def cursor_of(target: Target, document: Document) -> int:
    """Return the offset in `document` of a `target` that is no function's name; without a column, the line's end."""
    if target.line > len(document.line_starts):
        raise UsageError(
            f"{target.path} ends at line {len(document.line_starts)}, so there is no line {target.line}"
        )
    end = document.line_end(target.line - 1)
    if target.column is None:
        return end
    if target.column - 1 > (last := document.position(end, "utf-32")[1]):
        raise UsageError(
            f"line {target.line} of {target.path} ends at column {last + 1}, so there is no column {target.column}"
        )
    return document.offset(target.line - 1, target.column - 1, "utf-32")


def check_wanted(path: Path, settings: Settings) -> None:
    """Raise UsageError if the settings keep the file at `path` from being filled; it is not read."""
    if why := why_excluded(path, settings):
        raise UsageError(f"{path} is {why}")


def why_excluded(path: Path, settings: Settings) -> str:
    """Return why the settings keep the file at `path` from the model, such as "excluded by ..."; empty if they do
    not.
    """
    if glob := excluding_path(path, settings.exclude):
        how = f"take it away with --include '{glob}'" if glob in SECRETS else "take it out of that setting"
        return (
            f"excluded by {glob} in the setting exclude, because it may hold secrets; if it holds none, {how}"
        )
    if settings.exclude_ignored and ignored(path.absolute().parent, [path.absolute()]):
        return (
            "ignored by git, and the setting exclude_ignored keeps such files from the model; switch it off"
        )
    return ""


def check_writable(path: Path) -> None:
    """Raise UsageError if the file at `path`, or the folder that holds it, is read-only, or a change of it is tried.

    A mode without any write permission counts even for root, whom no permission stops: version control and generators
    protect files that way.
    """
    file = Path(os.path.realpath(path))
    for place, what in ((file, "is read-only"), (file.parent, "is a read-only folder")):
        try:
            writable = place.stat().st_mode & _ANY_WRITE and os.access(place, os.W_OK)
        except OSError as error:
            raise UsageError(why_unwritten(file, error)) from error
        if not writable:
            raise UsageError(
                f"{place} {what}, so {path.name} was left alone; make it writable (chmod u+w, or check the file out) "
                "and run the command again"
            )
    check_free(kept_of(path))


def replace_file(path: Path, old: bytes, new: bytes) -> None:
    """Replace the text `old` of the file at `path` by `new`; raise UsageError if it holds another text.

    Mode, owner, attributes and links stay.
    """
    check_writable(path)
    replace_text(path, old, new)
