"""What a client's settings may change."""

import asyncio

import pytest

from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.scripted import open_scripted
from dg_lsp.filling.offers import Offer, covered
from dg_lsp.messages import Status
from dg_lsp.reasons import NoGap
from dg_lsp.server.capabilities import Capabilities
from dg_lsp.server.handlers.context import without_quotes
from dg_lsp.server.offers import Offers
from dg_lsp.server.session import Session
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import SECRETS, Settings
from dg_lsp.source.document import Document
from tests.waiting import until


class Configured(Session):
    """A session whose settings are looked at."""

    def __init__(self) -> None:
        self.workspace = Workspace(Settings())
        super().__init__(self.workspace, lambda *_: open_scripted("scripted"), lambda _: None)

    @property
    def settings(self) -> Settings:
        return self.workspace.settings


def session() -> Configured:
    return Configured()


@pytest.mark.parametrize("globs", [[], ["*.sql"], ["*.pem", "*.sql"]])
def test_a_workspace_adds_to_what_is_excluded_and_takes_nothing_away(globs: list[str]) -> None:
    one = session()
    assert one.configure({}, {"exclude": globs}) == []
    assert len(one.settings.exclude) == len(set(one.settings.exclude))
    assert set(one.settings.exclude) == {*SECRETS, *globs}


def test_a_user_may_say_what_is_excluded() -> None:
    one = session()
    assert one.configure({"exclude": ["*.sql"]}, {}) == []
    assert one.settings.exclude == (*SECRETS, "*.sql")
    one.configure({"exclude": ["*.sql"]}, {"exclude": []})
    assert one.settings.exclude == (*SECRETS, "*.sql")


@pytest.mark.parametrize("own", [{"include": ["*.pem", "*.key"]}, {"include": "*.pem,*.key"}])
def test_a_user_may_take_default_globs_away_and_a_workspace_may_not(own: dict[str, object]) -> None:
    one = session()
    assert one.configure({"exclude": ["*.sql"], **own}, {}) == []
    assert set(one.settings.exclude) == {*SECRETS, "*.sql"} - {"*.pem", "*.key"}
    # A workspace may hide them all the same.
    assert one.configure(own, {"exclude": ["*.pem"]}) == []
    assert set(one.settings.exclude) == {*SECRETS} - {"*.key"}
    (wrong,) = one.configure({}, {"include": ["*.pem"]})
    assert "the workspace cannot set 'include'" in wrong and set(one.settings.exclude) == {*SECRETS}
    assert one.configure({"include": ["*"], "exclude": ["*.sql"]}, {}) == []
    assert one.settings.exclude == ("*.sql",)
    (wrong,) = one.configure({"include": ["*.pme"]}, {})
    assert "'*.pme' is none of them" in wrong and set(one.settings.exclude) == {*SECRETS}


def test_a_workspace_names_a_bounded_number_of_globs() -> None:
    one = session()
    (wrong,) = one.configure({"exclude": ["*.sql"]}, {"exclude": [f"gen/*{n}.py" for n in range(5_000)]})
    assert "names 5,000 globs" in wrong and "only the first 500 are used" in wrong
    assert len(one.settings.exclude) == len(SECRETS) + 501 and "*.sql" in one.settings.exclude
    (wrong,) = one.configure({}, {"exclude": ["[a]" * 100_000, "*.sql"]})
    assert "of at most 1,000 characters" in wrong and one.settings.exclude == (*SECRETS, "*.sql")
    # What the user names is no workspace's.
    many = {"exclude": [f"{n}" for n in range(600)]}
    assert one.configure(many, many) == []


@pytest.mark.parametrize("user", [False, True])
def test_a_workspace_hides_what_git_ignores_and_does_not_show_it(user: bool) -> None:
    one = session()
    for workspace in (False, True):
        assert one.configure({"excludeIgnored": user}, {"excludeIgnored": workspace}) == []
        assert one.settings.exclude_ignored is (user or workspace)


def test_only_settings_that_concern_other_files_drop_what_was_read_of_them() -> None:
    one, dropped = session(), []
    one.workspace.project.forget = lambda: dropped.append(True)  # type: ignore[method-assign]
    one.configure({"effort": "low"}, {})
    assert dropped == []
    one.configure({"effort": "low", "exclude": ["*.sql"]}, {})
    assert dropped == [True]


@pytest.mark.parametrize(
    ("reason", "logged"),
    [
        ("unexpected `key = (` at line 1", "unexpected `…` at line 1"),
        ("unexpected `key = 'secret` at line 1", "unexpected `…` at line 1"),
        ("a syntax error: name 'password' is global", "a syntax error: name '…' is global"),
        ("'klingon' is no language that is known", "'klingon' is no language that is known"),
        ("the engine's answer; the file's language", "the engine's answer; the file's language"),
        ("see `dg-lsp doctor`", "see `dg-lsp doctor`"),
        ("the fill would delete `a` and `b`", "the fill would delete `…` and `…`"),
    ],
)
def test_the_log_tells_reasons_without_the_text_that_they_quote(reason: str, logged: str) -> None:
    assert without_quotes(reason) == logged


def test_a_client_gets_one_of_two_edits_that_come_to_the_same() -> None:
    old = Document("file:///a.py", "python", 1, b"x = \n")
    document = Document("file:///a.py", "python", 2, b"x = print(len(a))\n")
    offer, cursor = Offer(old.uri, old.data, 4, 4, ("print(len(a), max(b))",)), len(b"x = print(len(a")
    offers = Offers()
    offers.keep(offer)
    for covers in (False, True):
        snapshot = Snapshot(document, Settings(), client=Capabilities(covers=covers))
        assert [covered(document, cursor, e) for e in offers.edits_at(snapshot, cursor)] == [covers]


def test_a_document_that_changes_while_git_is_asked_is_not_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "file:///w/shop.py"
    monkeypatch.setattr("dg_lsp.server.refusals.ignored", lambda *_: set())

    async def work() -> None:
        workspace = Workspace(Settings(exclude_ignored=True))
        workspace.documents.open(uri, "python", 1, "x = 1\n")
        asked = asyncio.create_task(workspace.permitted(uri))
        # It waits for git's answer then, which the event loop has not got yet.
        await asyncio.sleep(0)
        workspace.documents.change(uri, 2, [(None, "x = 2\n")])
        with pytest.raises(NoGap, match="the document changed"):
            await asked
        assert (await workspace.permitted(uri)).data == b"x = 2\n"
        workspace.refusals.close()

    asyncio.run(work())


def test_an_engine_that_loads_is_followed_though_the_request_that_started_it_has_ended() -> None:
    """The status said `loading 83 %` until the next request, which may come minutes later."""

    class Loads(ResidentEngine):
        async def start(self) -> Status:
            return Status("loading", 0.8)

        async def status(self) -> Status | None:
            return Status("ready", 1.0)

    async def work() -> None:
        statuses = list[Status]()
        one = Session(Workspace(Settings()), Loads, statuses.append)
        assert isinstance(one.engine, Loads)
        one.engine._tell(Status("loading", 0.8))
        await until(lambda: statuses[-1].state == "ready")
        assert one._loading is not None
        await one._loading[1]

    asyncio.run(work())


class Loading(ResidentEngine):
    """An engine that loads until it is told that it is ready; it counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self.asked, self.state = 0, "loading"

    async def start(self) -> Status:
        return Status("loading")

    async def status(self) -> Status:
        self.asked += 1
        return Status("loading" if self.state == "loading" else "ready")


def test_one_task_follows_an_engine_that_loads_however_many_documents_are_opened() -> None:
    async def scenario() -> tuple[int, list[str]]:
        engine, told = Loading(), list[str]()
        one = Session(Workspace(Settings()), lambda *_: engine, lambda status: told.append(status.state))
        for _ in range(150):
            one.warm()
            await asyncio.sleep(0)
        await asyncio.sleep(0.5)
        asked = engine.asked
        engine.state = "ready"
        await until(lambda: "ready" in told)
        # Another document may be opened later, when the engine has ended.
        engine.state, known = "loading", engine.asked
        one.warm()
        await until(lambda: engine.asked > known)
        await one.close()
        return asked, told

    asked, told = asyncio.run(scenario())
    assert 0 < asked < 10 and told.count("ready") == 1
