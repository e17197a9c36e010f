"""The Session with a client: settings, engine, running work of each document, recent fills. Knows no protocol message.

It runs on the event loop; slow work happens in the engine's process or in a thread.
"""

import asyncio
import logging
import math
import re
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeVar, runtime_checkable

from dg_lsp.checkpoints import EMBEDDED, languages_of, named
from dg_lsp.engine.choice import resolve
from dg_lsp.filling.engine import Engine, EngineError
from dg_lsp.filling.fill import FillOptions, Outcome, fill_gap, outcome_of
from dg_lsp.filling.offers import Offer, covered, cursor_key, still_good, used_up
from dg_lsp.server.project import Project
from dg_lsp.settings import Settings, SettingsError, name_of, of_machine, override
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.excluded import excluding_file, key_of, path_of, split_uri
from dg_lsp.text.documents.ignored import ignored
from dg_lsp.text.fills.confirm import doubt
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.gaps.gap import Edit, apply_edit
from dg_lsp.text.messages import Draft, Priority, Status

Result = TypeVar("Result")
Open = Callable[[Settings, Callable[[Status], None]], Engine]

_RECENT = 16  # offers that are kept
_DISMISSED = 100  # dismissed texts that are kept of each document
_KNOWN = 1_000  # files of which it is known whether git ignores them, and which glob excludes them
_GITS = 4  # processes of git at a time
# Globs that a workspace may add to `exclude`, and characters of one: more would take too long to read and to compare.
_GLOBS, _GLOB = 500, 1_000
_OF_THE_INDEX = ("exclude", "exclude_ignored", "include", "related")
_FOLLOW = 0.2  # seconds between two looks at an engine that loads
_WAITED = 0.25  # the share of the time of a fill that ghost text waits for the next key
_BACKQUOTED = re.compile(r"`(?!dg-lsp)[^`]+`")
_QUOTED = re.compile(r"(?<!\w)'[^']+'")
_log = logging.getLogger("dg_lsp.server")


@runtime_checkable
class Resident(Protocol):
    """An engine in a process that has to be started."""

    async def start(self) -> Status:
        """Start it if it does not run; its status."""
        ...

    async def status(self) -> Status | None:
        """Its status; None if it does not run."""
        ...

    def exclude(self, globs: tuple[str, ...]) -> None:
        """Keep the text of files that `globs` name on this machine from now on."""
        ...


class Superseded(Exception):
    """The work was cancelled, because a newer request or a change of the document replaced it."""


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Work on ghost text at `cursor` of a `document` that does not exist yet."""

    document: Document
    cursor: int
    task: asyncio.Future[list[Edit]]


class Session:
    """The session with one client.

    open_engine: makes an Engine from settings. tell: called with each Status of the engine. eager: the client debounces
    by itself, so `debounce` does not wait. covers: it shows ghost text that replaces closed brackets. project: the text
    of other files; None if nothing is known of them.
    """

    def __init__(self, settings: Settings, open_engine: Open, tell: Callable[[Status], None]) -> None:
        self._base, self.settings = settings, settings
        self._open_engine, self._tell = open_engine, tell
        self._engine: Engine | None = None
        self._live: dict[str, set[asyncio.Future[Any]]] = {}
        self._ghost: dict[str, asyncio.Future[Any]] = {}
        self._asked: dict[str, float] = {}
        self._took: deque[float] = deque(maxlen=_RECENT)
        self._offers: deque[Offer] = deque(maxlen=_RECENT)
        self._dismissed: dict[str, deque[tuple[bytes, str]]] = {}
        self._newest: dict[str, Offer] = {}
        self._ahead: _Ahead | None = None
        self._ignored: dict[str, asyncio.Future[bool]] = {}
        self._gits = asyncio.Semaphore(_GITS)
        self._excluded: dict[str, str] = {}
        self._background: set[asyncio.Future[Any]] = set()
        self.eager = False
        self.covers = False
        self.project: Project | None = None

    @property
    def engine(self) -> Engine:
        """The engine of the current settings."""
        if self._engine is None:
            self._engine = self._open_engine(self.settings, self._tell)
        return self._engine

    def configure(self, own: Mapping[str, Any], workspace: Mapping[str, Any]) -> list[str]:
        """Apply the client's settings on top of those of the command line; return a sentence for each error.

        own: the client's initialization options. workspace: its configuration, which may come from a file in the
        workspace, and so cannot change what runs on this machine. Wrong settings are left out.
        """
        settings, wrong = self._base, list[str]()
        for given, value in own.items():
            try:
                settings = resolve(override(settings, {given: value}))
            except SettingsError as error:
                wrong.append(str(error))
        user = settings.exclude
        for given, value in workspace.items():
            try:
                settings = _by_workspace(settings, given, value)
            except SettingsError as error:
                wrong.append(str(error))
        settings, more = _bounded(settings, user)
        wrong += more
        if self.settings != settings:
            index = any(getattr(self.settings, name) != getattr(settings, name) for name in _OF_THE_INDEX)
            self.settings = settings
            if isinstance(self._engine, Resident):
                self._engine.exclude(settings.exclude)
            self._offers.clear()
            self._newest.clear()
            if index:
                self.moved()
        return wrong

    def moved(self) -> None:
        """Forget what other files say, and end what is under way, since other files are excluded from now on."""
        self._excluded.clear()
        self.stop_ahead()
        for uri in list(self._live):
            self.changed(uri)
        if self.project is not None:
            self.project.forget()

    def refusal(self, uri: str, folders: Sequence[str], language: str = "") -> str:
        """Return why the document `uri` gets no fills, as a sentence; empty if it does. folders: the workspace's, as
        paths.
        """
        name = PurePosixPath(split_uri(uri)[1]).name
        if glob := self._excluding(uri, folders):
            return f"{name} is excluded by {glob} in the setting exclude, because it may hold secrets"
        if self.settings.exclude_ignored and (why := self._why_ignored(uri, name)):
            return why
        if language in self.settings.disabled_languages:
            return f"{language} is switched off by the setting disabledLanguages"
        return ""

    def _excluding(self, uri: str, folders: Sequence[str]) -> str:
        """The glob that excludes the document `uri`, empty if none does; looked for once, until it is closed."""
        if uri not in self._excluded:
            if len(self._excluded) >= _KNOWN:
                self._excluded.clear()
            path = path_of(uri) or split_uri(uri)[1]
            self._excluded[uri] = excluding_file(path, folders, self.settings.exclude)
        return self._excluded[uri]

    async def git_answered(self, uri: str) -> None:
        """Wait until it is known whether git ignores the file of the document `uri`, where that is asked."""
        if self.settings.exclude_ignored:
            await asyncio.shield(self._ask_git(uri))

    def _why_ignored(self, uri: str, name: str) -> str:
        """Return why the settings keep the document `uri` from the model because of git; empty if they do not.

        Until git has answered, the document counts as ignored.
        """
        asked = self._ask_git(uri)
        if not asked.done() or asked.cancelled():
            return f"git has not told yet whether it ignores {name}; ask again in a moment"
        if asked.result():
            return f"git ignores {name}, and the setting excludeIgnored keeps such files from the model"
        return ""

    def _ask_git(self, uri: str) -> asyncio.Future[bool]:
        """Return whether git ignores the file of the document `uri`: asked in a thread, once until it is closed."""
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
        async with self._gits:
            try:
                return bool(await in_thread(ignored, path.parent, [path]))
            except (OSError, ValueError):
                # No file can have such a name.
                return True

    def silence(self, language: str) -> str:
        """Return why documents of `language` get no ghost text while one types, as a sentence; empty if they do."""
        settings = self.settings
        if not settings.automatic:
            return "ghost text while one types is switched off by the setting automatic"
        # What a team's server has learned is not known here.
        known = () if settings.engine_url else languages_of(settings.checkpoint)
        if not known or language in known or {language, "*"} & {*settings.ghost_languages}:
            return ""
        name = "embedded checkpoint" if named(settings.checkpoint) == EMBEDDED else "checkpoint"
        return (
            f"the {name} has learned {' and '.join(map(str.capitalize, known))} only; "
            f"add {language} to the setting ghostLanguages to try it here"
        )

    def recent(self, document: Document, cursor: int) -> list[Edit]:
        """The edits at `cursor` from the newest fill that agrees with the text typed since; [] if there is none."""
        for offer in reversed(self._offers):
            edits = still_good(offer, document, cursor)
            if self.covers:
                # Of two edits that come to the same the first.
                edits = list({apply_edit(document, e).data: e for e in reversed(edits)}.values())[::-1]
            else:
                edits = [e for e in edits if not covered(document, cursor, e)]
            if edits:
                self._newest[document.uri] = offer
                return edits
        return []

    def taken(self, document: Document, cursor: int) -> bool:
        """Return whether a recent fill has been accepted or typed, and ends at `cursor`."""
        return any(used_up(offer, document, cursor) for offer in self._offers)

    def offered(self, uri: str) -> Offer | None:
        """The newest ghost text of the document `uri`."""
        return self._newest.get(uri)

    def begin_ahead(self, document: Document, cursor: int, work: Coroutine[Any, Any, list[Edit]]) -> None:
        """Begin `work`, ghost text at `cursor` for the text that `document` is likely to have next."""
        self.stop_ahead()
        task = asyncio.ensure_future(work)
        # Nobody may ever ask for its result.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._ahead = _Ahead(document, cursor, task)

    def stop_ahead(self) -> None:
        """Cancel the work that was begun ahead."""
        if self._ahead is not None:
            self._ahead.task.cancel()
            self._ahead = None

    def foresaw(self, document: Document) -> bool:
        """Return whether work was begun ahead for this very text of `document`."""
        ahead = self._ahead
        return ahead is not None and (ahead.document.uri, ahead.document.data) == (
            document.uri,
            document.data,
        )

    async def begun_ahead(self, document: Document, cursor: int) -> None:
        """Wait for the work that was begun ahead for this place, if there is any; its fill is a recent one then.

        Raises:
            NoGap, EngineError: it came to nothing.
        """
        ahead = self._ahead
        if ahead is not None and self.foresaw(document) and ahead.cursor == cursor:
            await asyncio.wait([ahead.task])
            if not ahead.task.cancelled():
                ahead.task.result()

    def dismiss(self, document: Document, cursor: int, text: str) -> None:
        """Keep that the user does not want `text` at `cursor`, until the document is closed."""
        known = self._dismissed.setdefault(document.uri, deque(maxlen=_DISMISSED))
        known.append((cursor_key(document, cursor), text))

    def was_dismissed(self, document: Document, cursor: int, text: str) -> bool:
        """Return whether the user has dismissed `text` at the place of `cursor`."""
        return (cursor_key(document, cursor), text) in self._dismissed.get(document.uri, ())

    async def fill(
        self,
        document: Document,
        gap: Gap,
        settings: Settings,
        show: Callable[[Draft], None],
        priority: Priority,
    ) -> Outcome:
        """Fill `gap`, and remember the fill; `show` is called with each Draft. Cancelling closes the engine's stream.

        Ghost text that `settings.confidence` keeps from being shown is not remembered.

        Raises:
            EngineError: the engine gives no answer.
        """
        if priority != "ahead":
            self.stop_ahead()
        options = await self.fill_options(document, settings.alternatives, priority)
        began = time.monotonic()
        outcome = await outcome_of(fill_gap(self.engine, document, gap, settings, options), show)
        if priority == "ghost":
            self._took.append(time.monotonic() - began)
        if options.index is not None and self.project is not None:
            # Not before the first answer, which should not wait for the disk.
            self.project.begin(document.uri, self.settings)
        is_ghost = priority in ("ghost", "ahead")
        if outcome.edit and not (is_ghost and doubt(outcome.fill, settings.confidence)):
            edits = (outcome.edit, *outcome.others)
            start, end = outcome.edit.start, outcome.edit.end
            texts = tuple(e.text for e in edits)
            offer = Offer(document.uri, document.data, start, end, texts, outcome.fill, outcome.files)
            self._offers.append(offer)
            if is_ghost:
                self._newest[document.uri] = offer
        return outcome

    async def fill_options(self, document: Document, alternatives: int, priority: Priority) -> FillOptions:
        """Return the options of a fill of `document`: with other files, unless the setting related is off."""
        if self.project is None or not self.settings.related:
            return FillOptions(alternatives, priority)
        return FillOptions(alternatives, priority, await self.project.index_for(document))

    def ghost_settings(self, *, automatic: bool) -> Settings:
        """The settings of a ghost text request: one sure fill if automatic, else several and twice the deadline."""
        deadline = self.settings.ghost_deadline
        if automatic:
            return replace(self.settings, deadline=deadline, alternatives=1)
        return replace(self.settings, deadline=2 * deadline, confidence=0.0)

    async def debounce(self, uri: str) -> None:
        """Wait for the next key while keys come faster than fills: the next one would overtake a fill begun now.

        That is a share of the median time of the recent fills, and at most `settings.debounce` milliseconds.
        """
        now = time.monotonic()
        last, self._asked[uri] = self._asked.get(uri, -math.inf), now
        usual = statistics.median(self._took) if self._took else 0.0
        if not self.eager and now - last < usual:
            await asyncio.sleep(min(_WAITED * usual, self.settings.debounce / 1000))

    async def newest(self, uri: str, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`, ghost text for the document `uri`; cancels older ghost text work on it.

        Raises:
            Superseded: newer ghost text work began, or the document changed or was closed.
        """
        if (old := self._ghost.get(uri)) is not None:
            self._overtake(uri, old)
        task = asyncio.ensure_future(work)
        self._ghost[uri] = task
        try:
            return await self.current(uri, task)
        finally:
            if self._ghost.get(uri) is task:
                del self._ghost[uri]

    async def current(self, uri: str, work: Coroutine[Any, Any, Result] | asyncio.Future[Result]) -> Result:
        """The result of `work`, which is cancelled when the document `uri` changes.

        Raises:
            Superseded: the document changed or was closed.
        """
        task = asyncio.ensure_future(work)
        self._live.setdefault(uri, set()).add(task)
        try:
            result = await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise Superseded from None
        finally:
            kept = task in self._live.get(uri, ())
            self._overtake(uri, task)
        # Work that ended just before it was overtaken could not be cancelled any more; its result is old all the same.
        if not kept:
            raise Superseded
        return result

    def _overtake(self, uri: str, task: asyncio.Future[Any]) -> None:
        """Cancel `task`, and forget it."""
        task.cancel()
        tasks = self._live.get(uri, set())
        tasks.discard(task)
        if not tasks:
            self._live.pop(uri, None)

    def warm(self) -> None:
        """Start the engine in the background, and tell its status until it is loaded."""
        if isinstance(self.engine, Resident):
            self._run_later(self._load(self.engine))

    async def _load(self, engine: Resident) -> None:
        status = await engine.start()
        while status.state in ("starting", "loading"):
            await asyncio.sleep(_FOLLOW)
            gone = Status("failed", mend="the engine ended while it loaded; the next request starts it again")
            status = await engine.status() or gone
            self._tell(status)

    async def status(self) -> Status | None:
        """The engine's status; None if no engine runs."""
        return await self.engine.status() if isinstance(self.engine, Resident) else None

    def watch_files(self) -> None:
        """Rely on the client, which tells which files of the workspace change."""
        if self.project is not None:
            self.project.watched = True

    def files_changed(self, deleted: Sequence[str], changed: Sequence[str]) -> None:
        """Drop the files `deleted`, and read those of `changed` that are there again."""
        # A link may lead elsewhere now.
        self._excluded.clear()
        if self.project is not None:
            self.project.deleted(deleted)
            self.project.changed(changed)

    def opened(self, uri: str) -> None:
        """Look anew which glob excludes the document `uri`, whose file may be another one now."""
        self._excluded.pop(uri, None)

    def changed(self, uri: str) -> None:
        """Cancel the work on the document `uri`, whose text has changed."""
        for task in list(self._live.get(uri, ())):
            self._overtake(uri, task)

    def closed(self, uri: str) -> None:
        """Cancel the work on the document `uri`, and drop its fills, its text, and what was found in it."""
        self.changed(uri)
        self.stop_ahead()
        if self.project is not None:
            self.project.closed(uri)
        self._asked.pop(uri, None)
        self._dismissed.pop(uri, None)
        self._newest.pop(uri, None)
        if (asked := self._ignored.pop(uri, None)) is not None:
            asked.cancel()
        self._excluded.pop(uri, None)
        gone = key_of(uri)
        used = [o for o in self._offers if o.uri == uri or gone in map(key_of, o.files)]
        self._offers = deque((o for o in self._offers if o not in used), _RECENT)
        self._newest = {name: offer for name, offer in self._newest.items() if offer not in used}

    def _run_later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run `work` in the background; its errors are logged."""

        async def guarded() -> None:
            try:
                await work
            except EngineError as error:
                _log.warning("%s", error)
            except Exception as error:
                _log.error("background work failed: %s", type(error).__name__)

        task = asyncio.ensure_future(guarded())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """Cancel all work and close the connections to the engine, whose process runs on."""
        self.stop_ahead()
        if self.project is not None:
            self.project.forget()
        for tasks in list(self._live.values()):
            for task in list(tasks):
                task.cancel()
        for task in (*self._background, *self._ignored.values()):
            task.cancel()
        if self._engine is not None:
            await self._engine.close()


async def in_thread(work: Callable[..., Result], *arguments: Any) -> Result:
    """Return the result of `work`, called in a thread of its own that the end of the process does not wait for.

    Work that may hang, such as another program's, must not fill the threads that requests are served by.
    """
    loop, done = asyncio.get_running_loop(), Future[Result]()
    # From now on nobody who gives up waiting can cancel it, so that the thread can always set it.
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work(*arguments)
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, name=work.__name__, daemon=True).start()
    return await asyncio.wrap_future(done, loop=loop)


def _by_workspace(settings: Settings, given: str, value: Any) -> Settings:
    """`settings` with the option that a workspace calls `given` set to `value`.

    Raises:
        SettingsError: the option has a wrong value, or changes what runs on this machine.
    """
    changed, name = resolve(override(settings, {given: value})), name_of(given)
    if name == "exclude_ignored":
        return replace(settings, exclude_ignored=settings.exclude_ignored or changed.exclude_ignored)
    if name in of_machine() and changed != settings:
        raise SettingsError(
            f"the workspace cannot set {given!r}; set it with --{name.replace('_', '-')}, with "
            f"DG_LSP_{name.upper()} or in the initialization options"
        )
    return changed


def _bounded(settings: Settings, user: Sequence[str]) -> tuple[Settings, list[str]]:
    """`settings` without the globs of `exclude` that are too many or too long, and a sentence for those.

    user: the globs that are not a workspace's, of which none is too many.
    """
    own = {*user}
    globs = [glob for glob in settings.exclude if glob not in own]
    kept = [glob for glob in globs if len(glob) <= _GLOB][:_GLOBS]
    if len(kept) == len(globs):
        return settings, []
    return replace(settings, exclude=(*user, *kept)), [
        f"the workspace names {len(globs):,} globs in 'exclude', of which the first {len(kept):,} hold: it may name "
        f"{_GLOBS} of at most {_GLOB:,} characters; name folders instead of files, or exclude them in the "
        "initialization options"
    ]


def short_name(uri: str) -> str:
    """The file name in `uri`, for the log."""
    return PurePosixPath(split_uri(uri)[1]).name or uri[:80]


def without_quotes(reason: str) -> str:
    """`reason` without what it quotes, which may be source text, for the log (law 8); commands of dg-lsp stay.

    "unexpected `total = (` at line 1" becomes "unexpected `…` at line 1".
    """
    before, error, message = _BACKQUOTED.sub("`…`", reason).partition("syntax error")
    # Python's own parser quotes names so.
    return before + error + _QUOTED.sub("'…'", message)
