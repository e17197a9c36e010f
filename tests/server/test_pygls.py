"""The overrides of pygls: each is listed with the defect that it fixes, and with a test that plain pygls fails."""

import re
from pathlib import Path

from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from dg_lsp.server import rpc
from dg_lsp.server.rpc.conversation import Conversation
from dg_lsp.server.rpc.protocol import Protocol, Server

HERE, PACKAGE = Path(__file__).parent, Path(rpc.__file__).parent
LISTED = re.compile(r"^(\w+)  ? *\S.* (test_\w+)$", re.MULTILINE)


def test_each_override_is_listed_with_its_defect_and_a_test_that_pygls_fails() -> None:
    pairs = (
        (Conversation, LanguageServerProtocol),
        (Protocol, LanguageServerProtocol),
        (Server, LanguageServer),
    )
    overridden = {
        name
        for ours, theirs in pairs
        for name in vars(ours)
        if hasattr(theirs, name) and not name.startswith("__")
    }
    above, _, below = (rpc.__doc__ or "").partition("never called")
    listed, replaced = (dict(LISTED.findall(part)) for part in (above, below))
    assert listed.keys() == overridden and len(replaced) >= 5
    assert all(hasattr(LanguageServerProtocol, name) or hasattr(LanguageServer, name) for name in replaced)
    source = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    failing = {*re.findall(r"both\(.*\)\n(?:@.*\n)*def (test_\w+)", source)}
    assert {*listed.values(), *replaced.values()} <= failing


def test_nothing_else_knows_the_insides_of_pygls() -> None:
    inside = re.compile(r"import pygls|from pygls|protocol\._|\.fm\b")
    others = [path for path in PACKAGE.parents[1].rglob("*.py") if PACKAGE not in path.parents]
    assert not [path.name for path in others if inside.search(path.read_text(encoding="utf-8"))]
