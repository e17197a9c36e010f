"""The unwritten functions of a document, filled one after another."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.fill import FillOptions
from dg_lsp.filling.stubs import StubEnded, StubStarted, fill_stubs, mark_partial, meant_of, stubs_of
from dg_lsp.gaps.gap import Edit, apply_edit
from dg_lsp.messages import Fill, Infill
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

SOURCE = "def one():\n    pass\n\n\ndef two():\n    return 2\n\n\ndef three():\n    ...\n"
DOCUMENT = Document("file:///m.py", "python", 1, SOURCE.encode())


def fills(request: Infill) -> Fill:
    return (
        Fill("a = 1\n    return a", others=("return 1",)) if "three" in request.suffix else Fill("return 3")
    )


def run(engine: ScriptedEngine, **more: object) -> list[StubStarted | StubEnded]:
    async def work() -> list[StubStarted | StubEnded]:
        return [event async for event in fill_stubs(engine, DOCUMENT, Settings(), **more)]  # type: ignore[arg-type]

    return asyncio.run(work())


def test_each_stub_is_filled_in_the_text_that_the_earlier_fills_have_left() -> None:
    assert [stub.name for stub in stubs_of(DOCUMENT)] == ["one", "three"]
    engine = ScriptedEngine(fills)
    first, ended, second, last = run(engine)
    assert isinstance(first, StubStarted) and isinstance(ended, StubEnded) and ended.started is first
    assert isinstance(second, StubStarted) and isinstance(last, StubEnded)
    assert (first.number, first.gap.name, second.number, second.gap.name) == (1, "one", 2, "three")
    assert second.document == ended.document
    filled = SOURCE.replace("pass", "a = 1\n    return a").replace("...", "return 3")
    assert last.document.text == filled
    assert engine.requests[1].prefix in filled


def test_the_fill_that_is_chosen_is_kept_and_without_one_the_stub_stays() -> None:
    seen: list[list[str]] = []

    async def choose(stub: StubStarted, documents: Sequence[Document]) -> tuple[int | None, str]:
        seen.append([document.text for document in documents])
        return (1, "shorter") if len(documents) > 1 else (None, "too short")

    ended = [
        e
        for e in run(ScriptedEngine(fills), choose=choose, options=FillOptions(2))
        if isinstance(e, StubEnded)
    ]
    assert [(e.edit is not None, e.why) for e in ended] == [(True, "shorter"), (False, "too short")]
    assert ended[-1].document.text == SOURCE.replace("pass", "return 1")
    assert [len(texts) for texts in seen] == [2, 1]


def test_a_marked_body_is_a_stub_until_somebody_changes_it() -> None:
    written = "def f(a):\n    return 1\n\n\ndef g(a):\n    return 2\n"
    marked = mark_partial(Document("file:///a.py", "python", 0, written.encode()), "g")
    assert [gap.name for gap in stubs_of(marked)] == ["g"]
    assert (
        marked.data.startswith(written[:-13].encode())
        and b"    # dg-lsp: partial, its tests do not all pass (" in marked.data
    )
    for old, new in ((b"return 2", b"return 3"), (b"partial", b"")):
        assert stubs_of(replace(marked, data=marked.data.replace(old, new))) == []
    # The next fill takes the mark away with the body.
    (gap,) = stubs_of(marked)
    filled = apply_edit(marked, Edit(gap.start, gap.end, "return 4"))
    assert filled.data.decode() == written.replace("return 2", "return 4")
    for language, text in (("typescript", "function f() {\r\n  return 1;\r\n}\r\n"), ("json", "{}")):
        document = Document("file:///a", language, 0, text.encode())
        assert len(stubs_of(mark_partial(document, "f"))) == (language == "typescript")


PYTHON = '''
class Shape(ABC):
    @abstractmethod
    def area(self): ...
    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name."""
    def want_describe(self):
        raise NotImplementedError
class Reader(Protocol[T]):
    async def read(self): ...
    if sys.version_info > (3, 12):
        def seek(self): ...
    elif TYPE_CHECKING:
        def tell(self): ...
class Named(zope.interface.Interface):
    def name(): "The name."
@typing.overload
def parse(x: int) -> int: ...
@overload
async def parse(x: str) -> str: ...
def want_parse(x):
    raise NotImplementedError
if typing.TYPE_CHECKING:
    def checked(x: int) -> int: ...
class Base:
    def run(self):
        raise NotImplementedError
    def want_stop(self):
        raise NotImplementedError
class Server(mixins.Base):
    def run(self):
        return 1
    def want_stop2(self):
        pass
'''
# Of each language a text whose unwritten functions are called `want...`, and the number of those that are to stay so.
MEANT = {
    "python": (PYTHON, 10),
    "javascript": (
        "class Base { run() { throw new Error('not implemented'); } wantStop() {} }\n"
        "class Server extends Base { run() { return 1; } }\n",
        1,
    ),
    "typescript": (
        "interface A { a(): void }\nabstract class B<T> { abstract b(): void; constructor(private a: T) {}\n"
        "  run(): void { throw new Error('not implemented'); } want(): void {} }\n"
        "class C extends B<number> { b() { return; } run(): void { return; } }\n"
        "function o(a: string): void;\nfunction o(a: number): void;\nfunction o(a: any) { return; }\n"
        "declare function d(): void;\n",
        2,
    ),
    "java": (
        "interface A { void a(); default void b() {} default int c() { throw new UnsupportedOperationException(); }\n"
        '  default int want1() { throw new UnsupportedOperationException("TODO"); } }\n'
        "abstract class B { abstract void d(); void e() { throw new UnsupportedOperationException(); }\n"
        "  void want2() {} }\n"
        "class C extends B implements A { @Override void e() { return; } }\n",
        3,
    ),
    "csharp": (
        "interface A { void B(); void C() {} }\n"
        "abstract class D { abstract void E(); public virtual void F() {} partial void G();\n"
        "  public virtual void H() { throw new NotImplementedException(); }\n"
        "  public virtual void Want() { throw new NotImplementedException(); } }\n"
        "class I : D { public override void H() { return; } }\n",
        3,
    ),
    "cpp": (
        'struct A { virtual int a() = 0; virtual void b() {} virtual void c() { throw std::logic_error("TODO"); }\n'
        "  A() = default; virtual ~A() {} };\n"
        "struct B : public A { void c() override { return; } virtual void want() override {} };\nint d(int);\n",
        3,
    ),
    "c": ("int f(int);\nextern void g(void);\nint want(void) { /* TODO */ }\n", 0),
    "go": (
        "package a\n\ntype A interface { B() }\n\nfunc asm(x int) int\n\nfunc (C) isNode() {}\n\n"
        'func (c *C) want() { panic("not implemented") }\n',
        1,
    ),
    "rust": (
        "trait A { fn a(&self); fn b(&self) {} fn c(&self) -> u8 { unimplemented!() } fn d(&self) { todo!() }\n"
        '  fn want(&self) -> u8 { todo!() } }\nimpl A for B { fn d(&self) { return; } }\nextern "C" { fn f(); }\n',
        3,
    ),
}
MEANT["tsx"] = MEANT["typescript"]


@pytest.mark.parametrize("language", MEANT)
def test_what_is_abstract_overloaded_or_of_an_interface_is_no_stub(language: str) -> None:
    text, count = MEANT[language]
    document = Document("file:///m", language, 1, text.encode())
    stubs = [stub.name.rpartition(".")[2] for stub in stubs_of(document)]
    assert (
        stubs and len(stubs) == text.lower().count("want") and all("want" in name.lower() for name in stubs)
    )
    meant = [gap.name for gap in meant_of(document)]
    assert len(meant) == count and not any("want" in name.lower() for name in meant)


def test_in_a_broken_file_an_abstract_method_is_no_stub_either() -> None:
    text = "def broken(:\n\n" + PYTHON[: PYTHON.index("class Base")].replace(
        "if sys.version_info > (3, 12)", "if TYPE_CHECKING"
    )
    document = Document("file:///m.py", "python", 1, text.encode())
    assert {"want_describe", "want_parse"} <= (
        names := {stub.name.rpartition(".")[2] for stub in stubs_of(document)}
    )
    assert names <= {"want_describe", "want_parse", "broken"}
