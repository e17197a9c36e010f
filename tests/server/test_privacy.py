"""Law 12: text reaches an engine only from files that are open now or on disk now, and never from an excluded one."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from dg_lsp.context.index import Index
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.files import excluded, ignoring
from dg_lsp.files.excluded import excluding_file, key_of
from dg_lsp.filling.fill import FillOptions
from dg_lsp.filling.project import Rules, index_near, may_be_read
from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.messages import Draft, Fill
from dg_lsp.server.app import make_context
from dg_lsp.server.handlers import documents as handler
from dg_lsp.server.handlers.code_action import code_action
from dg_lsp.server.handlers.feedback import left, yanked
from dg_lsp.server.handlers.inline_completion import inline_completion
from dg_lsp.server.rpc.protocol import Server
from dg_lsp.settings import SECRETS, Settings
from dg_lsp.source.document import Document

OWN = "x = load()\n"


class Window:
    """A server of one window with an engine that keeps its requests; the handlers are called without a wire."""

    def __init__(self, folders: Sequence[Path], settings: Settings | None = None) -> None:
        self.engine = ScriptedEngine(Fill("1"))
        self.server = server = Server("dg-lsp", "1")
        self.context = make_context(server, settings or Settings(), lambda *_: self.engine)
        self.workspace, self.session = self.context.workspace, self.context.session
        capabilities = types.ClientCapabilities()
        named = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders]
        params = types.InitializeParams(capabilities, workspace_folders=named)
        list(server.protocol.lsp_initialize(params))

    def open(self, path: Path | str, text: str) -> None:
        uri = path if isinstance(path, str) else path.as_uri()
        self.workspace.documents.open(uri, "python", 1, text)
        self.workspace.refusals.opened(uri)

    def close(self, path: Path | str) -> None:
        uri = path if isinstance(path, str) else path.as_uri()
        self.workspace.documents.close(uri)
        self.session.closed(uri)

    async def sent(self, path: Path) -> list[str]:
        """The candidates in a request for a gap after `x = load(` in the open document `path`."""
        document = self.workspace.document(path.as_uri())
        gap = find_gap(document, 9)
        await self.session.fill(document, gap, self.workspace.settings, FillOptions(priority="fill"))
        return [one.text for one in self.engine.requests[-1].retrieved]

    async def read(self, *names: str) -> None:
        """Wait until just the files with these names are read."""
        project, until = self.workspace.project, time.monotonic() + 30
        while time.monotonic() < until:
            found = sorted(Path(other.uri).name for other in project.index.others())
            if found == sorted(names) and not project._reading:
                return
            await asyncio.sleep(0.01)
        assert found == sorted(names)


def run(work: Callable[[], Any]) -> None:
    asyncio.run(work())


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_text_of_a_document_that_was_closed_unsaved_is_sent_no_more(tmp_path: Path) -> None:
    async def work() -> None:
        window, own = Window([tmp_path]), write(tmp_path / "own.py", OWN)
        scratch = write(tmp_path / "scratch.py", "y = load(saved)\n")
        window.open(own, OWN)
        window.open(scratch, "y = load(pasted)\n")
        assert await window.sent(own) == ["pasted"]
        await window.read("scratch.py")
        window.close(scratch)
        await window.read("scratch.py")
        assert await window.sent(own) == ["saved"]
        # Nor is that of one which was never saved.
        window.open("untitled:1", "y = load(unsaved)\n")
        assert "unsaved" in await window.sent(own)
        window.close("untitled:1")
        assert await window.sent(own) == ["saved"]

    run(work)


def test_an_offer_that_was_found_in_a_closed_document_is_gone(tmp_path: Path) -> None:
    async def work() -> None:
        window, own = Window([tmp_path]), tmp_path / "own.py"
        window.open(own, OWN)
        window.open(tmp_path / "scratch.py", "y = load(pasted)\n")
        await window.sent(own)
        document = window.workspace.document(own.as_uri())
        assert window.session.offers.edits_at(window.context.around(document), 9)
        window.close(tmp_path / "scratch.py")
        offers = window.session.offers
        assert not offers.edits_at(window.context.around(document), 9) and offers.shown(own.as_uri()) is None

    run(work)


def test_ghost_text_that_a_closed_document_was_read_for_is_written_again(tmp_path: Path) -> None:
    async def work() -> None:
        window, own = Window([tmp_path]), tmp_path / "own.py"
        window.open(own, OWN)
        window.open("untitled:1", "y = load(unsaved)\n")
        window.engine = ScriptedEngine(Fill("1"), [Draft(0, (), 0.0)] * 20, 0.02)
        at, automatic = (
            types.Position(0, 9),
            types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
        )
        asked = types.InlineCompletionParams(automatic, types.TextDocumentIdentifier(own.as_uri()), at)
        asking = asyncio.ensure_future(inline_completion(window.context, asked))
        while not window.engine.requests:
            await asyncio.sleep(0.01)
        window.close("untitled:1")
        assert (await asking).items
        assert [[one.text for one in sent.retrieved] for sent in window.engine.requests] == [["unsaved"], []]

    run(work)


def test_a_text_that_is_being_read_while_its_document_is_closed_is_not_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        window, own = Window([tmp_path]), tmp_path / "own.py"
        window.open(own, OWN)
        window.open("untitled:1", "y = load(unsaved)\n")
        reading = Index.read

        def closed_meanwhile(*args: Any) -> Any:
            other = reading(*args)
            loop.call_soon_threadsafe(window.close, "untitled:1")
            time.sleep(0.2)
            return other

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(Index, "read", closed_meanwhile)
        assert await window.sent(own) == []

    run(work)


@pytest.mark.parametrize("told", [False, True])
def test_a_file_that_changed_or_is_gone_is_sent_as_it_is_now(tmp_path: Path, told: bool) -> None:
    async def work() -> None:
        window, own = Window([tmp_path]), write(tmp_path / "own.py", OWN)
        names = ("a.py", "b.py", "sub/c.py")
        for name in names:
            write(tmp_path / name, "y = load(first)\n")
        window.open(own, OWN)
        await window.sent(own)
        await window.read("a.py", "b.py", "c.py")
        assert await window.sent(own) == ["first"]
        # As `git switch` does: one file changes, another one goes, a third one comes.
        write(tmp_path / "a.py", "y = load(later)\n")
        (tmp_path / "b.py").unlink()
        (tmp_path / "sub").rename(tmp_path / "gone")
        write(tmp_path / "gone/c.py", "y = load(moved)\n")
        if told:
            gone = [(tmp_path / "b.py").as_uri(), (tmp_path / "sub").as_uri()]
            here = [(tmp_path / "a.py").as_uri(), (tmp_path / "gone/c.py").as_uri()]
            changes = [types.FileEvent(uri, types.FileChangeType.Deleted) for uri in gone]
            changes += [types.FileEvent(uri, types.FileChangeType.Created) for uri in here]
            await handler.did_change_files(window.context, types.DidChangeWatchedFilesParams(changes))
            await window.read("a.py", "c.py")
        else:
            assert "first" not in await window.sent(own)
        await window.read("a.py", "c.py")
        assert sorted(await window.sent(own)) == ["later", "moved"]

    run(work)


def test_a_file_that_is_replaced_by_another_of_the_same_size_and_time_is_noticed(tmp_path: Path) -> None:
    async def work() -> None:
        window, own = Window([tmp_path]), write(tmp_path / "own.py", OWN)
        other = write(tmp_path / "a.py", "y = load(first)\n")
        window.open(own, OWN)
        await window.sent(own)
        await window.read("a.py")
        times = other.stat()
        other.write_text("y = load(later)\n")
        os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert "first" not in await window.sent(own)

    run(work)


def test_documents_that_a_change_of_the_settings_excludes_leave(tmp_path: Path) -> None:
    async def work() -> None:
        window, own = Window([tmp_path]), tmp_path / "own.py"
        window.open(own, OWN)
        window.open(tmp_path / "plan.py", "y = load(planned)\n")
        assert await window.sent(own) == ["planned"]
        window.session.configure({}, {"exclude": ["plan.*"]})
        assert await window.sent(own) == []
        window.session.configure({}, {})
        assert await window.sent(own) == ["planned"]

    run(work)


def test_recent_edits_of_other_documents_are_sent_as_long_as_these_are_open_and_not_excluded(
    tmp_path: Path,
) -> None:
    (tmp_path / "dg_lsp.json").write_text('{"prompt": "fim"}')

    async def work() -> None:
        window = Window([tmp_path], Settings(checkpoint=str(tmp_path)))
        own, plan = tmp_path / "own.py", tmp_path / "plan.py"
        documents, session = window.workspace.documents, window.session
        window.open(own, OWN)
        window.open(plan, "z = 1\n")

        async def sent() -> list[str]:
            document, settings = window.workspace.document(own.as_uri()), window.workspace.settings
            outcome = await session.fill(
                document, find_gap(document, 9), settings, FillOptions(priority="fill")
            )
            context = window.engine.requests[-1].context
            # A fill with text of another document is dropped once that is closed.
            assert (plan.as_uri() in outcome.files) == bool(context)
            return [piece.text for piece in context]

        assert await sent() == [], "nothing was edited"
        start, named = types.Position(0, 0), types.TextDocumentIdentifier(plan.as_uri())
        asked = types.CodeActionParams(named, types.Range(start, start), types.CodeActionContext([]))
        await code_action(window.context, asked)
        assert await sent() == ["z = 1\n\n"], "the cursor was there"
        documents.change(plan.as_uri(), 2, [(((1, 0), (1, 0)), "def planned(): ...")])
        for column, key in enumerate("len("):
            # Whoever types in one line sends the same pieces at each key.
            assert await sent() == ["z = 1\ndef planned(): ...\n"]
            documents.change(own.as_uri(), 2, [(((0, 9 + column), (0, 9 + column)), key)])
        session.configure({}, {"exclude": ["plan.*"]})
        assert await sent() == []
        session.configure({}, {})
        assert await sent() == ["z = 1\ndef planned(): ...\n"]
        for other in (
            {"checkpoint": "embedded"},
            {"related": False},
            {"engine_url": "llama+http://127.0.0.1:1"},
        ):
            before = window.workspace.settings
            window.workspace.settings = replace(before, **other)
            assert await sent() == []
            window.workspace.settings = before
        window.close(plan)
        assert await sent() == []

    run(work)


def test_copied_lines_and_places_left_are_sent_once_a_client_reports_them(tmp_path: Path) -> None:
    (tmp_path / "dg_lsp.json").write_text('{"prompt": "fim"}')
    lines = [f"x{n} = {n}" for n in range(60)]

    def around(*spans: tuple[int, int]) -> list[str]:
        return ["".join(f"{line}\n" for first, last in spans for line in lines[first:last])]

    async def work() -> None:
        window = Window([tmp_path], Settings(checkpoint=str(tmp_path)))
        own, plan = tmp_path / "own.py", tmp_path / "plan.py"
        window.open(own, OWN)
        window.open(plan, "\n".join(lines))
        about = {"textDocument": {"uri": plan.as_uri()}}

        async def sent() -> list[str]:
            document, settings = window.workspace.document(own.as_uri()), window.workspace.settings
            await window.session.fill(document, find_gap(document, 9), settings, FillOptions(priority="fill"))
            return [piece.text for piece in window.engine.requests[-1].context]

        async def tell(handler: Callable[..., Any], **params: Any) -> None:
            await handler(window.context, about | params)

        def span(first: int, last: int) -> dict[str, Any]:
            return {name: {"line": n, "character": 0} for name, n in (("start", first), ("end", last))}

        await tell(yanked, range=span(30, 32))
        assert await sent() == around((28, 40))
        await tell(left, position={"line": 4, "character": 1})
        assert await sent() == around((2, 14), (30, 32))
        # The lines of a range that goes backwards, of none, and of one beyond the end.
        for given, copied in (((52, 50), (50, 52)), ((20, 20), (20, 21)), ((59, 99), (59, 60))):
            await tell(yanked, range=span(*given))
            assert await sent() == around((2, 14), copied)
        window.session.configure({}, {"exclude": ["plan.*"]})
        assert await sent() == []
        wrong: tuple[Any, ...] = (None, [], {"line": "a"}, {"line": 9, "character": 0})
        for place in wrong:
            await tell(yanked, range={"start": place, "end": place})
            await tell(left, position=place)
        await tell(yanked)
        await yanked(window.context, [])
        window.session.configure({}, {})
        assert await sent() == around((2, 14), (59, 60)), "of an excluded document nothing is noted"

    run(work)


GLOBS = ("private/**", "private/", "private", "**/private/**", "**/private", "{root}/private/**", "PRIVATE/")


@pytest.mark.parametrize("glob", GLOBS)
@pytest.mark.parametrize("nested", [False, True])
def test_a_glob_of_a_folder_holds_for_a_whole_folder_of_the_workspace(
    tmp_path: Path, glob: str, nested: bool
) -> None:
    async def work() -> None:
        own = write(tmp_path / "app/own.py", OWN)
        for name in ("private/p.py", "private/deep/q.py"):
            write(tmp_path / name, "y = load(hidden)\n")
        write(tmp_path / "app/seen.py", "y = load(seen)\n")
        exclude = (*SECRETS, glob.format(root=tmp_path))
        folders = [tmp_path] if nested else []
        window = Window(
            [*folders, tmp_path / "app", tmp_path / "private"], replace(Settings(), exclude=exclude)
        )
        window.open(own, OWN)
        await window.sent(own)
        await window.read("seen.py")
        assert await window.sent(own) == ["seen"]
        window.open(tmp_path / "private/deep/q.py", OWN)
        with pytest.raises(NoGap, match="excluded by"):
            window.workspace.document((tmp_path / "private/deep/q.py").as_uri())
        assert await window.sent(own) == ["seen"]

    run(work)


def test_a_link_is_excluded_as_what_it_names_is_and_as_it_is_called(tmp_path: Path) -> None:
    root = tmp_path / "w"
    write(root / "secret/.env.py", "k = 1\n")
    write(root / ".ssh/keys.py", "k = 1\n")
    write(root / "plain/a.py", "k = 1\n")
    write(tmp_path / "outside/.aws/b.py", "k = 1\n")
    links = {
        "conf.py": "secret/.env.py",
        "keys": ".ssh",
        "secrets.py": "plain/a.py",
        "way": "../outside/.aws",
        "first.py": "second_secret.py",
        "second_secret.py": "plain/a.py",
        "loop.py": "loop.py",
        "fine.py": "plain/a.py",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    (tmp_path / "v").symlink_to(root)
    for folder in (root, tmp_path / "v"):
        for name in ("conf.py", "keys/keys.py", "secrets.py", "way/b.py", "first.py", "plain/../conf.py"):
            assert excluding_file(f"{folder}/{name}", [str(root)], SECRETS), name
        for name in ("fine.py", "plain/a.py", "loop.py"):
            assert not excluding_file(f"{folder}/{name}", [str(root)], SECRETS), name
        assert excluding_file(f"{folder}/fine.py", [str(folder)], ["plain/"])
    window = Window([root])
    for name in ("conf.py", "keys/keys.py"):
        window.open(root / name, OWN)
        with pytest.raises(NoGap, match="excluded by"):
            window.workspace.document((root / name).as_uri())
    # No walk follows a link.
    index = index_near(root / "own.py", Settings())
    assert [Path(other.uri).name for other in index.others()] == ["a.py"] or len(index) == 0
    rules = Rules((root,), SECRETS)
    assert may_be_read(root / "plain/a.py", rules)
    assert not may_be_read(root / "fine.py", rules)
    assert not may_be_read(root / "way/b.py", rules)


@pytest.mark.parametrize(
    "spelled",
    [
        "file:///w/app%20%28x%29/%40scope/page%2B1.py",
        "file:///w/app%20(x)/@scope/page+1.py",
        "file://localhost/w/app%20(x)/@scope/page+1.py",
        "file:///w/./app%20(x)/y/../@scope/page%2b1.py",
        "FILE:///w//app%20(x)/%40scope/page+1.py",
        "file:/w/app%20(x)/@scope/page+1.py",
    ],
)
def test_addresses_of_the_same_file_are_one(spelled: str, tmp_path: Path) -> None:
    path = Path("/w/app (x)/@scope/page+1.py")
    assert key_of(spelled) == key_of(path.as_uri())
    index = Index()
    index.put(path.as_uri(), "python", b"y = load(a)\n")
    assert index.beside(spelled, "python") == [] and index.holds(spelled, b"y = load(a)\n")
    index.drop(spelled)
    assert len(index) == 0 == index.bytes
    assert key_of("file:///C%3A/a.py") == key_of("file:///c:/a.py") != key_of("file:///d:/a.py")
    assert key_of("untitled:a") != key_of("untitled:b") and key_of("file:///a%2Fb.py") == key_of(
        "file:///a/b.py"
    )


def test_an_open_document_is_not_read_from_disk_under_another_spelling(tmp_path: Path) -> None:
    async def work() -> None:
        window, own = Window([tmp_path]), write(tmp_path / "own.py", OWN)
        page = write(tmp_path / "app (x)/@scope/page.py", "y = load(deleted)\n")
        spelled = page.as_uri().replace("%40", "@").replace("%28", "(").replace("%29", ")")
        assert spelled != page.as_uri()
        window.open(own, OWN)
        window.open(spelled, "y = 1\n")
        await window.sent(own)
        await window.read("page.py")
        assert await window.sent(own) == []
        # A bot may spell it in its own way, and gets the document that is open.
        assert window.workspace.document(page.as_uri()).data == b"y = 1\n"

    run(work)


def test_the_files_told_are_those_of_the_documents_own_offer(tmp_path: Path) -> None:
    async def work() -> None:
        window = Window([tmp_path])
        for name, text in (("a.py", "x = load()\n"), ("b.py", "x = save()\n")):
            window.open(tmp_path / name, text)
        window.open(tmp_path / "loads.py", "y = load(one)\n")
        window.open(tmp_path / "saves.py", "y = save(two)\n")
        for name in ("a.py", "b.py"):
            await window.sent(tmp_path / name)
        document = window.workspace.document((tmp_path / "a.py").as_uri())
        offers = window.session.offers
        assert offers.edits_at(window.context.around(document), 9)
        offer = offers.shown(document.uri)
        assert offer and Path(offer.files[0]).name == "loads.py"

    run(work)


def test_many_globs_and_documents_do_not_hold_the_loop_up(tmp_path: Path) -> None:
    async def work() -> None:
        window = Window([tmp_path])
        for number in range(20):
            window.open(tmp_path / f"f{number}.py", OWN)
        warned = window.session.configure({}, {"exclude": [f"gen_{n}/*/v{n}*.py" for n in range(5_000)]})
        assert "only the first 500 are used" in warned[0]
        own = window.workspace.documents.snapshot((tmp_path / "f0.py").as_uri())
        assert own is not None and len(window.workspace.beside(own)) == 19
        began = time.process_time()
        for _ in range(100):
            window.workspace.beside(own)
        assert time.process_time() - began < 2

    run(work)


def test_nothing_is_remembered_of_a_document_under_another_name() -> None:
    document = Document("file:///w/own.py", "python", 1, OWN.encode())
    index = Index(is_current=lambda _: False)
    index.put("file:///w/other.py", "python", b"y = load(old)\n")
    (other,) = index.beside(document.uri, "python")
    assert not index.still_has(other) and len(index) == 0


@pytest.mark.parametrize("git", [False, True])
def test_the_event_loop_reads_no_link_and_no_rule_of_git(
    git: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder may be on a disk that has gone away: then a thread waits for it."""
    mine, seen = threading.get_ident(), list[bool]()

    def told(real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def read(path: Any) -> Any:
            seen.append(threading.get_ident() == mine)
            return real(path)

        return read

    monkeypatch.setattr("dg_lsp.files.excluded._target", told(excluded._target))
    monkeypatch.setattr("dg_lsp.files.ignoring._stamp", told(ignoring._stamp))
    monkeypatch.setattr("dg_lsp.server.refusals._FRESH", 60.0)

    async def work() -> None:
        window = Window([tmp_path], Settings(exclude_ignored=git))
        for name in ("own.py", "other.py", "more/third.py"):
            path = write(tmp_path / name, OWN)
            window.workspace.documents.open(path.as_uri(), "python", 1, OWN)
            item = types.TextDocumentItem(path.as_uri(), "python", 1, OWN)
            await handler.did_open(window.context, types.DidOpenTextDocumentParams(item))
        uri = (tmp_path / "own.py").as_uri()
        for forget in (lambda: None, window.workspace.refusals.forget):
            forget()
            assert window.workspace.beside(await window.workspace.permitted(uri))
        await window.session.close()

    run(work)
    assert seen and not any(seen)
