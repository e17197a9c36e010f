"""Project: what other files of the client's workspace say, as an index: open documents and the workspace's folders.

The folders are read once, by a thread of low priority that is begun after the first answer.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.excluded import split_uri
from dg_lsp.text.languages.language import knows
from dg_lsp.text.related.folders import files_near, read
from dg_lsp.text.related.index import Index

_PAUSE = 0.005  # seconds between two files, in which other threads run
_NICE = 15


class Project:
    """The index of a workspace.

    beside: the open documents that may be read, but for one. folders: the workspace's.
    """

    def __init__(
        self, beside: Callable[[Document], list[Document]], folders: Callable[[], list[Path]]
    ) -> None:
        self.index = Index()
        self._beside, self._folders = beside, folders
        self._stop: threading.Event | None = None
        self._open: set[str] = set()

    async def index_for(self, document: Document) -> Index:
        """The index with the open documents beside `document` as they are now."""
        opened = [other for other in self._beside(document) if knows(other.language)]
        self._open |= {document.uri, *(other.uri for other in opened)}
        if lacking := [other for other in opened if not self.index.holds(other.uri, other.data)]:
            await asyncio.to_thread(self._take, lacking)
        return self.index

    def begin(self, uri: str, exclude: Sequence[str], *, git: bool = False) -> None:
        """Begin to read the files of the folders, unless that was begun before, those nearest to `uri` first.

        git: none that git ignores.
        """
        if self._stop is None:
            self._stop = threading.Event()
            start, stop = PurePosixPath(split_uri(uri)[1]).parent, self._stop.is_set
            found = files_near(Path(start), self._folders(), exclude, stop, git=git)
            arguments = (self.index, found, self._stop)
            threading.Thread(target=self._read, args=arguments, name="related", daemon=True).start()

    def forget(self) -> None:
        """Drop everything, such as files that the settings now exclude; stop reading."""
        if self._stop is not None:
            self._stop.set()
        self.index, self._stop = Index(), None

    def _take(self, documents: Sequence[Document]) -> None:
        for document in documents:
            self.index.put(document.uri, document.language, document.data)

    def _read(self, index: Index, files: Iterable[Path], stop: threading.Event) -> None:
        """Put `files` into `index` until it is full or `stop` is set."""
        with suppress(AttributeError, OSError):
            # Linux knows a priority of each thread; elsewhere it would be that of the server.
            os.sched_getaffinity(0)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        for path in files:
            if stop.is_set():
                return
            # The text of an open document is newer than its file.
            if path.as_uri() in self._open or (document := read(path)) is None:
                continue
            if not index.put(document.uri, document.language, document.data):
                return
            time.sleep(_PAUSE)
