"""The project of a hole, as an index of its other files, without copies of the hole's own file.

Knows files and holes; knows no engine.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

from dg_lsp.bench.files import installed_path
from dg_lsp.bench.holes import Case, whole_of
from dg_lsp.context import Index, Other, read_other
from dg_lsp.files.excluded import path_of
from dg_lsp.filling.project import Rules, files_near, root_of
from dg_lsp.settings import SECRETS
from dg_lsp.source.document import DocumentError, read_document
from dg_lsp.source.language import has_language

# The share of its lines that makes a file a copy of another one; the files that a project has at most.
ALIKE = 0.3
MOST = 2_000


def project_of(case: Case) -> Index:
    """Return the index of the other files of the package or project that the document of `case` is in."""
    return _index(case.document.uri, whole_of(case))


def is_alike(one: bytes, other: bytes) -> bool:
    """Return whether one text has at least the share ALIKE of the other's lines; blank lines do not count."""
    lines = [[line.strip() for line in text.splitlines() if line.strip()] for text in (one, other)]
    pairs = ((lines[0], set(lines[1])), (lines[1], set(lines[0])))
    return any(sum(line in there for line in here) >= ALIKE * len(here) > 0 for here, there in pairs)


@lru_cache(maxsize=4)
def _index(uri: str, data: bytes) -> Index:
    index = Index()
    for other in _others(uri.partition(":")[0], _folder_of(uri)):
        if other.uri != uri and not is_alike(other.rows.data, data):
            index.take(other)
    return index


def _folder_of(uri: str) -> Path | None:
    """The folder of the package, or of the file, that `uri` names."""
    scheme, _, name = uri.partition(":")
    if scheme == "file":
        return Path(path_of(uri)).parent
    own = installed_path(uri) if scheme in ("package", "stdlib") else None
    up = len(Path(name).parts) - 2 if scheme == "package" else 0
    return own and own.parents[max(up, 0)]


@lru_cache(maxsize=8)
def _others(scheme: str, folder: Path | None) -> tuple[Other, ...]:
    """Return the files of known languages of the project around `folder`, at most MOST."""
    if folder is None:
        return ()
    names = {"package": f"package:{folder.name}/", "stdlib": "stdlib:"}
    found = []
    for path in islice(_paths(scheme, folder), MOST):
        if not has_language(path.name):
            continue
        with suppress(DocumentError, OSError):
            document = read_document(path)
            uri = names[scheme] + path.relative_to(folder).as_posix() if scheme in names else document.uri
            found.append(read_other(uri, document.language, document.data))
    return tuple(found)


def _paths(scheme: str, folder: Path) -> Iterable[Path]:
    """Return the files of a package, of one folder of the standard library, or those that a command reads here."""
    if scheme != "file":
        return sorted(folder.rglob("*") if scheme == "package" else folder.glob("*"))
    root = root_of(folder / "_")
    found = files_near(folder, Rules((root or folder,), SECRETS))
    return found if root else (path for path in found if path.parent == folder)
