"""Refusals: the reasons why a document gets no fills, from the settings, and from git where they ask for it."""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath

from dg_lsp.files.excluded import excluding_file, path_of, split_uri
from dg_lsp.files.ignored import ignored
from dg_lsp.files.ignoring import rules_stamp
from dg_lsp.settings import Settings

_KNOWN = 1_000  # files for which the answers of git and of the globs are kept
_THREADS = 4  # threads that follow links and ask for git's rules
_FRESH = 0.01  # seconds that a look at the files of git's rules holds, so that each folder is looked at once a request
# The schemes of the addresses of what a person edits: a file, a text that has no file yet (as VS Code, Sublime Text and
# Monaco call it), a cell of a notebook, and VS Code's interactive window. Others are views, such as `git:` for the left
# side of a diff, logs, and settings. A path without a scheme counts as a file.
SERVED = (
    *("file", "untitled", "buffer", "inmemory"),
    *("vscode-notebook-cell", "vscode-interactive", "vscode-interactive-input"),
)
# A letter alone is a drive.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?=:)")


class Refusals:
    """The reasons why documents get no fills.

    Answers about a document are kept until it is closed, those of git until a file changes that says what it ignores.
    """

    def __init__(self) -> None:
        self._excluded: dict[str, str] = {}
        self._ignored: dict[str, tuple[int, asyncio.Future[bool]]] = {}
        self._stamps: dict[Path, tuple[float, int]] = {}
        self._turns = defaultdict[str, asyncio.Lock](asyncio.Lock)
        # The number of changes of what is read from the disk, that of the last one of all of it, and of each document.
        self._changes = self._of_all = 0
        self._of_each: dict[str, int] = {}
        # Own threads: a disk may hang, and must not block the threads that serve requests.
        self._threads = ThreadPoolExecutor(_THREADS, "disk")

    def reason(self, uri: str, language: str, settings: Settings, folders: Sequence[str]) -> str:
        """Return why the document `uri` gets no fills, as a sentence; empty if it does.

        folders: the workspace's, as paths. Until git has answered, a document counts as ignored.
        """
        name = PurePosixPath(split_uri(uri)[1]).name
        if uri not in self._excluded:
            self._keep_globs({uri: _excluding_glob(uri, settings.exclude, folders)})
        if glob := self._excluded[uri]:
            return f"{name} is excluded by {glob} in the setting exclude, because it may hold secrets"
        if settings.exclude_ignored:
            asked = self._ask_git(uri)
            if not asked.done() or asked.cancelled():
                return f"git has not answered yet whether it ignores {name}; try again in a moment"
            if asked.result():
                return f"git ignores {name}, and the setting excludeIgnored keeps such files from the model"
        if language in settings.disabled_languages:
            return f"{language} is switched off by the setting disabledLanguages"
        return ""

    def turn(self, uri: str) -> asyncio.Lock:
        """Return the lock in which the disk is looked at for the document `uri`, so that requests stay in order."""
        if len(self._turns) >= _KNOWN:
            self._turns.clear()
        return self._turns[uri]

    async def git_answered(self, uri: str, settings: Settings) -> None:
        """Wait until git has said whether it ignores the file of the document `uri`, if `settings` ask for that."""
        if settings.exclude_ignored:
            await asyncio.shield(self._ask_git(uri))

    async def look(self, uris: Iterable[str], settings: Settings, folders: Sequence[str]) -> None:
        """Read in a thread what `reason` has to know from the disk about the documents `uris`.

        That is where links in their names lead, and the state of git's rules if `settings` ask for git. What changes
        meanwhile `reason` reads by itself.
        """
        globs, changes = settings.exclude, self._changes
        new = [uri for uri in uris if uri not in self._excluded]
        places = {_path(uri).parent for uri in uris} if settings.exclude_ignored else set()
        old = [folder for folder in places if folder.is_absolute() and not self._is_fresh(folder)]
        if not new and not old:
            return
        run = partial(asyncio.get_running_loop().run_in_executor, self._threads)
        found = await run(lambda: {uri: _excluding_glob(uri, globs, folders) for uri in new})
        stamps = await run(lambda: {folder: rules_stamp(folder) for folder in old})
        if changes < self._of_all:
            return
        self._keep_globs({uri: glob for uri, glob in found.items() if changes >= self._of_each.get(uri, 0)})
        # From now on, since a slow disk would otherwise be read again by `reason`, on the event loop.
        now = time.monotonic()
        for folder, stamp in stamps.items():
            self._keep_stamp(folder, now, stamp)

    def forget(self) -> None:
        """Compare all names with the globs again, and look at git's rules: settings, folders or files have changed."""
        self._excluded.clear()
        self._stamps.clear()
        self._of_each.clear()
        self._changes = self._of_all = self._changes + 1

    def opened(self, uri: str) -> None:
        """Compare the document `uri` with the globs again: its file may be a different one now."""
        self._excluded.pop(uri, None)
        self._changes += 1
        if len(self._of_each) >= _KNOWN:
            self._of_each.clear()
            self._of_all = self._changes
        self._of_each[uri] = self._changes

    def closed(self, uri: str) -> None:
        """Drop the answers about the document `uri`."""
        self.opened(uri)
        self._turns.pop(uri, None)
        if (known := self._ignored.pop(uri, None)) is not None:
            known[1].cancel()

    def close(self) -> None:
        """Stop waiting for git."""
        for _, asked in self._ignored.values():
            asked.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _keep_globs(self, found: Mapping[str, str]) -> None:
        if len(self._excluded) >= _KNOWN:
            self._excluded.clear()
        self._excluded |= found

    def _ask_git(self, uri: str) -> asyncio.Future[bool]:
        """Return whether git ignores the file of the document `uri`; that is found out in a thread.

        It is once in each state of the rules.
        """
        path = _path(uri)
        if not path.is_absolute():
            answer = asyncio.get_running_loop().create_future()
            answer.set_result(False)
            return answer
        stamp = self._stamp(path.parent)
        known = self._ignored.get(uri)
        if known is None or known[0] != stamp:
            if len(self._ignored) >= _KNOWN:
                self._ignored.clear()
            known = self._ignored[uri] = stamp, asyncio.ensure_future(self._is_ignored(path))
        return known[1]

    def _stamp(self, folder: Path) -> int:
        """Return the state of git's rules for the files of `folder` as `look` has found it."""
        if folder not in self._stamps:
            self._keep_stamp(folder, time.monotonic(), rules_stamp(folder))
        return self._stamps[folder][1]

    def _is_fresh(self, folder: Path) -> bool:
        return folder in self._stamps and time.monotonic() - self._stamps[folder][0] <= _FRESH

    def _keep_stamp(self, folder: Path, at: float, stamp: int) -> None:
        if len(self._stamps) >= _KNOWN:
            self._stamps.clear()
        self._stamps[folder] = at, stamp

    async def _is_ignored(self, path: Path) -> bool:
        work = asyncio.get_running_loop().run_in_executor(self._threads, ignored, path.parent, [path])
        try:
            return bool(await work)
        except (OSError, ValueError):
            # No file can have such a name.
            return True


def _path(uri: str) -> Path:
    """Return the path of the document `uri`; of a cell, that of its notebook."""
    return Path(path_of(uri) or split_uri(uri)[1])


def _excluding_glob(uri: str, globs: Sequence[str], folders: Sequence[str]) -> str:
    """Return the first of `globs` that excludes the document `uri`; empty if none does. It reads links on the disk."""
    return excluding_file(path_of(uri) or split_uri(uri)[1], folders, globs)


def no_file(uri: str) -> str:
    """Return why the document `uri`, which is in no notebook, or a notebook, is not served as a file is; else empty."""
    found = _SCHEME.match(uri)
    if found is None or found[0].lower() in SERVED:
        return ""
    name = PurePosixPath(split_uri(uri)[1]).name
    return f"{name[:80]} is a view at `{found[0][:40]}:` and no file that is edited; open the file itself"
