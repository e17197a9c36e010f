"""The project of a hole as an index, for lists whose files lie below a folder, one project a subfolder."""

from dataclasses import replace
from pathlib import Path

from dg_lsp.bench.files import installed_path
from dg_lsp.bench.holes import Case
from dg_lsp.bench.projects import is_alike
from dg_lsp.context.index import Index
from dg_lsp.context.retrieve import search
from dg_lsp.context.unimported import unimported
from dg_lsp.files.excluded import path_of
from dg_lsp.messages import Infill


class Projects:
    """The index of the project of the last hole; holes should come file by file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._path = Path()
        self._index = Index()

    def request(self, case: Case, request: Infill) -> Infill:
        """`request` with candidates from the project; the hole's own file and its copies are left out."""
        request = replace(request, unimported=unimported(case.document, case.gap))
        index = self.index(_path_of(case.document.uri))
        return replace(request, retrieved=search(case.document, case.gap, index).texts)

    def index(self, path: Path) -> Index:
        """The index of the other files of the project of the file `path`."""
        if path != self._path:
            self._path, self._index = path, Index()  # one at a time: memory
            for other in others(path, self._root_of(path)):
                self._index.put(other.as_uri(), "python", other.read_bytes())
        return self._index

    def _root_of(self, path: Path) -> Path:
        """The first folder below the given one, or the installed package."""
        if path.is_relative_to(self._folder):
            return self._folder / path.relative_to(self._folder).parts[0]
        root = path.parent
        while (root.parent / "__init__.py").exists():
            root = root.parent
        return root


def others(path: Path, root: Path) -> list[Path]:
    """The Python files below `root` that may be looked up for a hole in the file `path`: all but it and its copies."""
    files = (one for one in sorted(root.rglob("*.py")) if one.resolve() != path.resolve())
    return [one for one in files if not is_alike(path.read_bytes(), one.read_bytes())]


def key_of(case: Case) -> str:
    """The name of a hole that is the same in every commit: its kind, file and place."""
    return f"{case.kind} {case.document.uri} {case.gap.start}"


def _path_of(uri: str) -> Path:
    """The file that `uri` names, installed or on disk."""
    if path := path_of(uri):
        return Path(path)
    found = installed_path(uri)
    assert found is not None  # the list's reader has found it
    return found.resolve()
