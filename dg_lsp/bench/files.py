"""Files to make holes in: the files that a list names, and the user's own.

Knows files and installed packages; knows no holes.
"""

import hashlib
import importlib.util
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dg_lsp.filling.project import excluding_path, project_files
from dg_lsp.settings import SECRETS
from dg_lsp.source.document import Document, DocumentError, read_document


@dataclass(frozen=True, slots=True)
class Located:
    """The files that were found, and the reasons why others were skipped."""

    documents: tuple[Document, ...]
    skipped: tuple[str, ...]


def read_listed(name: str, digest: str) -> Document:
    """The file that a list calls `name`: a path, or a name for `installed_path`. Its sha256 must be `digest`.

    Raises:
        ValueError: it is not here, or differs. DocumentError: it cannot be read.
    """
    installed = name.startswith(("stdlib:", "package:"))
    path = installed_path(name) if installed else Path(name)
    if path is None or not path.is_file():
        raise ValueError("not installed")
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise ValueError("another version")
    document = read_document(path)
    return replace(document, uri=name) if installed else document


def installed_path(name: str) -> Path | None:
    """The path of a name such as `stdlib:textwrap.py` or `package:jinja2/loaders.py`; None if it is not installed.

    Raises:
        ValueError: `name` begins with neither `stdlib:` nor `package:`.
    """
    where, _, inside = name.partition(":")
    if where == "stdlib":
        return Path(sysconfig.get_path("stdlib")) / inside
    if where != "package":
        raise ValueError(f"{name!r} must begin with stdlib: or package:")
    top, _, rest = inside.partition("/")
    spec = importlib.util.find_spec(top.removesuffix(".py"))
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin else None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0]) / rest if folders else None


def read_files(paths: Sequence[str], exclude: Sequence[str] = SECRETS) -> Located:
    """The files at `paths`, and the Python files in folders; files that cannot be read are skipped, with the reason.

    exclude: globs of files that are not read.
    """
    documents, skipped = [], []
    for path in (file for given in paths for file in _files_at(Path(given))):
        if glob := excluding_path(path, exclude):
            skipped.append(f"{path} is excluded by {glob} in the setting exclude")
            continue
        try:
            documents.append(read_document(path))
        except (DocumentError, ValueError) as error:
            skipped.append(str(error))
    return Located(tuple(documents), tuple(skipped))


def _files_at(path: Path) -> list[Path]:
    """Return `path`, or if it is a folder the project's Python files below it."""
    return [file for file in project_files(path) if file.suffix == ".py"] if path.is_dir() else [path]
