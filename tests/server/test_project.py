"""What other files say reaches the engine: open documents at once, the workspace's folders after the first answer."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.fill import FillOptions
from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import Fill
from dg_lsp.server.project import Project
from dg_lsp.server.session import Session
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

OPENED = "y = load(opened)\n"
OWN = Document("file:///p/own.py", "python", 1, b"x = load()\n")


def uris(project: Project) -> list[str]:
    return [Path(other.uri).name for other in project.index.beside("file:///p/own.py", "python")]


def read(project: Project, count: int) -> list[str]:
    """Begin to read the folders, and wait until so many files are read."""
    project.begin(OWN.uri, Settings())
    until = time.monotonic() + 30
    while len(project.index) < count and time.monotonic() < until:
        time.sleep(0.01)
    return uris(project)


def test_open_documents_are_searched_as_they_are_now_and_the_files_used_are_told() -> None:
    opened = Document("file:///p/other.py", "python", 1, b"")
    engine = ScriptedEngine(Fill("opened"))
    workspace = Workspace(Settings())
    session = Session(workspace, lambda *_: engine, lambda _: None)

    async def filled(text: str, settings: Settings) -> list[str]:
        workspace.project = Project(lambda _: [replace(opened, data=text.encode())], list)
        gap = find_gap(OWN, 9)
        await session.fill(OWN, gap, settings, FillOptions(priority="ghost"))
        return [found.text for found in engine.requests[-1].retrieved]

    assert asyncio.run(filled(OPENED, Settings())) == ["opened"]
    told = session.offers.shown(OWN.uri)
    assert told and told.files == ("file:///p/other.py",)
    assert asyncio.run(filled("y = load(changed)\n", Settings())) == ["changed"]
    assert asyncio.run(filled(OPENED, Settings(related=False))) == []


def test_definitions_are_sent_to_a_checkpoint_that_answers_in_a_chat_and_to_a_server_that_may_have_one() -> (
    None
):
    shapes = Document("file:///p/shapes.py", "python", 1, b"def area(shape):\n    return 1\n")
    user = Document(
        "file:///p/own.py", "python", 1, b"import shapes\n\n\ndef f(x):\n    shapes.area(x)\n    pass\n"
    )
    engine, files = ScriptedEngine(Fill("return x")), list[tuple[str, ...]]()
    workspace = Workspace(Settings())
    session = Session(workspace, lambda *_: engine, lambda _: None)

    async def sent(settings: Settings) -> list[str]:
        workspace.project = Project(lambda _: [shapes], list)
        gap = find_gap(user, len(user.data) - 1)
        files.append((await session.fill(user, gap, settings, FillOptions(priority="fill"))).files)
        return [piece.text for piece in engine.requests[-1].context]

    chat = Settings(checkpoint="google/diffusiongemma-26B-A4B-it")
    assert asyncio.run(sent(chat)) == ["def area(shape): ...\n"]
    assert files == [("file:///p/shapes.py",)]
    own = Settings(checkpoint="embedded")
    assert asyncio.run(sent(own)) == []
    # What a team's server has learned is not known; the tokenizer for vLLM is that of `checkpoint`.
    assert asyncio.run(sent(replace(own, engine_url="https://team.example"))) == ["def area(shape): ...\n"]
    assert asyncio.run(sent(replace(own, engine_url="vllm+https://gpu.example"))) == []
    assert asyncio.run(sent(replace(chat, related=False))) == []


def test_a_workspace_is_read_once_without_what_is_excluded(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "secrets.py"):
        (tmp_path / name).write_text(OPENED)
    project = Project(lambda _: [], lambda: [tmp_path])
    assert read(project, 2) == ["a.py", "b.py"]
    (tmp_path / "c.py").write_text(OPENED)
    project.begin(OWN.uri, Settings())
    assert uris(project) == ["a.py", "b.py"]
    project.forget()
    assert uris(project) == []


def test_the_text_of_an_open_document_is_not_replaced_by_its_file(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("y = load(saved)\n")
    opened = Document((tmp_path / "a.py").as_uri(), "python", 1, OPENED.encode())
    project = Project(lambda _: [opened], lambda: [tmp_path])
    asyncio.run(project.index_for(OWN))
    assert read(project, 2) == ["a.py", "b.py"]
    assert project.index.holds(opened.uri, OPENED.encode())
