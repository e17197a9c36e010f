"""Project: an index of the client's workspace, of open documents and files in its folders.

The folders are read by a thread of low priority that is begun after the first answer. Files that change are read again:
when the client tells of it, when a change is noticed as their text is about to be used, and where the client cannot
tell, by looking at all of them now and then.
"""

import asyncio
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from dg_lsp.context import Index, Other
from dg_lsp.files.excluded import key_of, path_of
from dg_lsp.filling.project import STAMP, Rules, files_near, is_on_disk, may_be_read, read_file
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.language import knows

_PAUSE = 0.005  # seconds between two files, in which other threads run
_NICE = 15
# Seconds from one look at all files to the next, where the client tells of changes and where it does not; and how much
# longer that is than such a look took.
_SELDOM, _OFTEN, _TIMES = 600.0, 30.0, 20.0


class Project:
    """The index of a workspace.

    beside: the open documents that may be read, but for one. folders: the workspace's. watched: the client tells which
    files change.
    """

    def __init__(
        self, beside: Callable[[Document], list[Document]], folders: Callable[[], list[Path]]
    ) -> None:
        self._beside, self._folders = beside, folders
        self.watched = False
        self._open: frozenset[str] = frozenset()
        # Held while a text is taken in, so that none is once its document was closed.
        self._lock = threading.Lock()
        self._changed: deque[str] = deque()
        self._rules: Rules | None = None
        self._due, self._reading = 0.0, False
        self._stop = threading.Event()
        self.index = self._new()

    async def index_for(self, document: Document) -> Index:
        """Return the index with the open documents beside `document` as they are now."""
        opened = [other for other in self._beside(document) if knows(other.language)]
        self._open = frozenset(map(key_of, (document.uri, *(other.uri for other in opened))))
        if missing := [other for other in opened if not self.index.holds(other.uri, other.data)]:
            await asyncio.to_thread(self._take, self.index, missing)
        return self.index

    def begin(self, uri: str, settings: Settings) -> None:
        """Begin to read the files of the folders, those nearest to `uri` first, unless they were read recently."""
        if time.monotonic() >= self._due and not self._reading:
            self._rules = Rules(tuple(self._folders()), settings.exclude, settings.exclude_ignored)
            self._due = math.inf
            self._start(self._all(Path(path_of(uri) or "/").parent, self._rules, self._stop))

    def forget(self) -> None:
        """Drop everything, such as files that the settings now exclude; stop reading."""
        with self._lock:
            self._stop.set()
            self._changed.clear()
            self._stop, self._reading = threading.Event(), False
            self.index, self._rules, self._due = self._new(), None, 0.0

    def closed(self, uri: str) -> None:
        """Drop the text of the document `uri`, and read its file again if it is one of the workspace."""
        with self._lock:
            self._open -= {key_of(uri)}
            self.index.drop(uri)
        self.changed([uri])

    def changed(self, uris: Iterable[str], deleted: Iterable[str] = ()) -> None:
        """Read the files `uris` again, or for the first time, if they may be read.

        Drop the files `deleted`, and those in folders of these names; open documents stay. Any thread may call this.
        """
        self.index.drop_below(deleted)
        if self._rules is None:
            return
        for uri in uris:
            if key_of(uri) not in self._open:
                self.index.drop(uri)
                self._changed.append(uri)
        with self._lock:
            if self._changed and not self._reading:
                self._start(iter(()))

    def _new(self) -> Index:
        return Index(is_current=self._is_current)

    def _is_current(self, other: Other) -> bool:
        """Return whether the text of `other` is that of a document that is open now, or of a file as it is on disk
        now.
        """
        if other.stamp is None:
            return key_of(other.uri) in self._open
        rules = self._rules
        if rules is not None and is_on_disk(other, rules):
            return True
        # Others may have changed with it.
        self._changed.append(other.uri)
        self._due = 0.0
        return False

    def _take(self, index: Index, documents: Sequence[Document]) -> None:
        for document in documents:
            other = index.read(document.uri, document.language, document.data)
            with self._lock:
                if other is not None and key_of(document.uri) in self._open:
                    index.take(other)

    def _start(self, files: Iterator[Path]) -> None:
        """Start the thread that reads `files`, and what has changed."""
        self._reading = True
        arguments = (self.index, files, self._stop)
        threading.Thread(target=self._read, args=arguments, name="related", daemon=True).start()

    def _all(self, start: Path, rules: Rules, stop: threading.Event) -> Iterator[Path]:
        """Yield the files of the folders, those near `start` first; files of the index that changed are read before.

        Where only the rules of git have changed, the walk finds those that may still be read.
        """
        for other in self.index.others():
            now = rules.stamp(Path(path_of(other.uri))) if other.stamp else None
            if other.stamp and now != other.stamp:
                self.index.drop(other.uri)
                if now is None or now[:STAMP] != other.stamp[:STAMP]:
                    self._changed.append(other.uri)
        yield from files_near(start, rules, stop.is_set)

    def _read(self, index: Index, files: Iterator[Path], stop: threading.Event) -> None:
        """Add `files`, and the changed files, to `index` until it is full or `stop` is set."""
        with suppress(OSError):
            # Linux knows a priority of each thread; elsewhere it would be that of the server.
            if sys.platform == "linux":
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        began = time.monotonic()
        while not stop.is_set():
            if self._changed:
                with suppress(IndexError):  # cleared meanwhile
                    self._put_changed(index, self._changed.popleft(), stop)
            elif (path := next(files, None)) is not None:
                files = files if self._put(index, path, stop) else iter(())
            elif self._has_ended(began, stop):
                return

    def _has_ended(self, began: float, stop: threading.Event) -> bool:
        """Return whether the thread that reads has nothing more to do, and ends; it has begun at `began`."""
        with self._lock:
            if stop.is_set():
                return True
            if self._changed:
                return False
            self._reading = False
            if self._due == math.inf:
                now = time.monotonic()
                self._due = now + max(_SELDOM if self.watched else _OFTEN, _TIMES * (now - began))
            return True

    def _put_changed(self, index: Index, uri: str, stop: threading.Event) -> None:
        """Add the changed file `uri` to `index` if it may be read; else drop it."""
        path, rules = Path(path_of(uri)), self._rules
        if rules is not None and may_be_read(path, rules):
            self._put(index, path, stop)
        elif key_of(uri) not in self._open:
            index.drop(uri)

    def _put(self, index: Index, path: Path, stop: threading.Event) -> bool:
        """Add the file at `path` to `index` unless it contains it; return whether there is room for more."""
        uri, rules = path.as_uri(), self._rules
        # The text of an open document is newer than its file.
        if rules is None or key_of(uri) in self._open or index.stamp(uri) == (rules.stamp(path) or ()):
            return True
        other = read_file(index, path, rules)
        with self._lock:
            if stop.is_set() or key_of(uri) in self._open or other is None:
                return True
            room = index.take(other)
        time.sleep(_PAUSE)
        return room
