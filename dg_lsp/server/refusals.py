"""Refusals: the reasons why a document gets no fills, from the settings, and from git where they ask for it."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from dg_lsp.settings import Settings
from dg_lsp.text.documents.excluded import excluding_file, path_of, split_uri
from dg_lsp.text.documents.ignored import ignored

_KNOWN = 1_000  # files for which the answers of git and of the globs are kept
_GITS = 4  # processes of git at a time


class Refusals:
    """The reasons why documents get no fills. Answers about a document are kept until it is closed."""

    def __init__(self) -> None:
        self._excluded: dict[str, str] = {}
        self._ignored: dict[str, asyncio.Future[bool]] = {}
        # Own threads: git may hang, and must not block the threads that serve requests.
        self._gits = ThreadPoolExecutor(_GITS, "git")

    def reason(self, uri: str, language: str, settings: Settings, folders: Sequence[str]) -> str:
        """Return why the document `uri` gets no fills, as a sentence; empty if it does.

        folders: the workspace's, as paths. Until git has answered, a document counts as ignored.
        """
        name = PurePosixPath(split_uri(uri)[1]).name
        if glob := self._excluding_glob(uri, settings, folders):
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

    async def git_answered(self, uri: str, settings: Settings) -> None:
        """Wait until git has said whether it ignores the file of the document `uri`, if `settings` ask for that."""
        if settings.exclude_ignored:
            await asyncio.shield(self._ask_git(uri))

    def forget_globs(self) -> None:
        """Compare all names with the globs again: settings, folders or links have changed."""
        self._excluded.clear()

    def opened(self, uri: str) -> None:
        """Compare the document `uri` with the globs again: its file may be a different one now."""
        self._excluded.pop(uri, None)

    def closed(self, uri: str) -> None:
        """Drop the answers about the document `uri`."""
        self.opened(uri)
        if (asked := self._ignored.pop(uri, None)) is not None:
            asked.cancel()

    def close(self) -> None:
        """Stop waiting for git."""
        for asked in self._ignored.values():
            asked.cancel()
        self._gits.shutdown(wait=False, cancel_futures=True)

    def _excluding_glob(self, uri: str, settings: Settings, folders: Sequence[str]) -> str:
        """Return the glob that excludes the document `uri`; empty if there is none."""
        if uri not in self._excluded:
            if len(self._excluded) >= _KNOWN:
                self._excluded.clear()
            path = path_of(uri) or split_uri(uri)[1]
            self._excluded[uri] = excluding_file(path, folders, settings.exclude)
        return self._excluded[uri]

    def _ask_git(self, uri: str) -> asyncio.Future[bool]:
        """Return whether git ignores the file of the document `uri`; git is asked in a thread, once."""
        scheme, name = split_uri(uri)
        if uri not in self._ignored:
            if len(self._ignored) >= _KNOWN:
                self._ignored.clear()
            if scheme == "file":
                self._ignored[uri] = asyncio.ensure_future(self._is_ignored(Path(name)))
            else:
                self._ignored[uri] = asyncio.get_running_loop().create_future()
                self._ignored[uri].set_result(False)
        return self._ignored[uri]

    async def _is_ignored(self, path: Path) -> bool:
        work = asyncio.get_running_loop().run_in_executor(self._gits, ignored, path.parent, [path])
        try:
            return bool(await work)
        except (OSError, ValueError):
            # No file can have such a name.
            return True
