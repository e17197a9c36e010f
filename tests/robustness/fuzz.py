"""Messages and frames that hypothesis makes up, sent to the real server: it lives, and answers what is well-formed."""

import json
import os
import re
import time
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.processes import own_runtime
from tests.robustness.row import Row, complaint, missed
from tests.robustness.window import Window
from tests.server.wire import NoMessage, frame, notification, request

URI = "file:///w/a.py"
PLACE = {"line": 1, "character": 4}
SPAN = {"start": {"line": 0, "character": 0}, "end": PLACE}
DOCUMENT = {"uri": URI}
REQUESTS: tuple[tuple[str, Any], ...] = (
    (
        "textDocument/inlineCompletion",
        {"textDocument": DOCUMENT, "position": PLACE, "context": {"triggerKind": 1}},
    ),
    (
        "textDocument/codeAction",
        {"textDocument": DOCUMENT, "range": SPAN, "context": {"diagnostics": [], "only": ["refactor"]}},
    ),
    ("codeAction/resolve", {"title": "x", "data": {"uri": URI, "version": 1, "position": PLACE}}),
    (
        "workspace/executeCommand",
        {"command": "dg-lsp.fill", "arguments": [{"uri": URI, "name": "f", "apply": False}]},
    ),
    (
        "workspace/executeCommand",
        {"command": "dg-lsp.fillAll", "arguments": [{"uri": URI, "version": 1, "seed": 3}]},
    ),
    ("dg-lsp/status", {"uri": URI}),
    ("dg-lsp/models", {}),
    ("workspace/executeCommand", {"command": "dg-lsp.useModel", "arguments": ["none"]}),
    ("textDocument/hover", {"textDocument": DOCUMENT, "position": PLACE}),
    ("initialize", {"processId": None, "rootUri": None, "capabilities": {}}),
    ("no/such/method", None),
)
NOTIFICATIONS: tuple[tuple[str, Any], ...] = (
    (
        "textDocument/didOpen",
        {"textDocument": {**DOCUMENT, "languageId": "python", "version": 1, "text": "f("}},
    ),
    (
        "textDocument/didChange",
        {
            "textDocument": {**DOCUMENT, "version": 2},
            "contentChanges": [{"range": SPAN, "text": "def f():\n"}],
        },
    ),
    ("textDocument/didClose", {"textDocument": DOCUMENT}),
    ("workspace/didChangeConfiguration", {"settings": {"dg-lsp": {"effort": "low", "automatic": False}}}),
    ("window/workDoneProgress/cancel", {"token": 1}),
    ("dg-lsp/dismissed", {"uri": URI, "position": PLACE, "text": "x"}),
    ("dg-lsp/used", {"textDocument": DOCUMENT, "kind": "tab", "characters": 3}),
    ("$/cancelRequest", {"id": 3}),
    ("$/setTrace", {"value": "off"}),
)
TEXTS = st.text(st.sampled_from("a_x(){}[]\":,'\n\r\t\x00é🙂\ud83d\u2028#="), max_size=12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FLOATS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)
_AT_ONCE = 50  # messages of one example


def paths(value: Any) -> list[tuple[Any, ...]]:
    """The ways to each part of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *path) for key, inner in items for path in paths(inner))]


def with_part(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    """`value` with `part` at `path`."""
    if not path:
        return part
    items = list(value) if isinstance(value, list) else dict(value)
    items[path[0]] = with_part(value[path[0]], path[1:], part)
    return items


@st.composite
def params(draw: st.DrawFn, template: Any) -> Any:
    """`template`, often with one part of it made something else."""
    if draw(st.integers(0, 3)) == 0:
        return template
    return with_part(template, draw(st.sampled_from(paths(template))), draw(VALUES))


def calls(known: tuple[tuple[str, Any], ...]) -> st.SearchStrategy[tuple[str, Any]]:
    """A method of `known` and params for it."""
    return st.sampled_from(known).flatmap(lambda one: st.tuples(st.just(one[0]), params(one[1])))


def broken(text: bytes, at: int, cut: int) -> bytes:
    """`text` without up to four bytes in its middle."""
    at %= len(text)
    return text[:at] + text[at + cut :]


JUNK = (
    st.binary(max_size=60).map(frame)  # a body that is no JSON
    | st.sampled_from(
        [frame(b'{"jsonrpc":"2.0","id":1,"method":"m","params":%s}' % w) for w in (b"NaN", b"[-Infinity]")]
    )
    | VALUES.map(lambda value: frame(json.dumps(value).encode("ascii")))  # a body that is no message
    | st.builds(
        lambda call, at, cut: frame(broken(json.dumps(request("junk", *call)).encode("ascii"), at, cut)),
        calls(REQUESTS),
        st.integers(0, 500),
        st.integers(1, 4),
    ).filter(lambda whole: b'"method"' not in whole or not whole.endswith(b"}"))
    | st.binary(max_size=40).map(lambda odd: odd.replace(b"Content", b"") + b"\r\n\r\n")  # a broken header
    | st.sampled_from([b"Content-Length: x\r\n\r\n", b"Content-Length: -5\r\n\r\n", b"\r\n\r\n"])
)
MESSAGES = (
    st.tuples(st.just("request"), calls(REQUESTS))
    | st.tuples(st.just("notification"), calls(NOTIFICATIONS))
    | st.tuples(st.just("junk"), JUNK)
)


def fuzz(messages: int, seconds: float = 10) -> Row:
    """At least `messages` messages; a request that is not answered within `seconds` hangs."""
    os.environ["DG_LSP_CHECKPOINT"] = "scripted"
    asked = unanswered = sent = 0
    deaths: list[str] = []

    @settings(
        max_examples=-(-messages // _AT_ONCE),
        deadline=None,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(st.lists(MESSAGES, min_size=_AT_ONCE, max_size=_AT_ONCE))
    def play(some: list[tuple[str, Any]]) -> None:
        nonlocal asked, unanswered, sent
        sent += len(some)
        for kind, what in some:
            if kind == "request":
                window.ask(*what)
            else:
                window.wire.send(what if kind == "junk" else notification(*what))
        asked = len(window.sent)
        try:
            assert "result" in window.wait(window.ask("dg-lsp/status", {}), seconds)
        except NoMessage as silence:
            deaths.append(f"{silence}; exit code {window.wire.process.poll()}: {window.wire.stderr[-500:]}")
            raise

    with own_runtime():
        window = Window()
        try:
            play()
        except NoMessage:
            pass
        else:
            end = time.monotonic() + 30
            while (unanswered := window.not_once()) and time.monotonic() < end:
                time.sleep(0.1)
        # A change that cannot be read puts its document aside, which the log says as an error.
        noise = complaint(
            re.sub("^ERROR.* is out of step with .*", "", window.wire.stderr, flags=re.MULTILINE)
        )
        window.wire.__exit__()
    return Row(
        "framing and JSON fuzz (hypothesis)",
        "0 deaths, 0 hangs, each well-formed request answered once",
        f"{sent:,} messages, {asked:,} of them well-formed requests: {len(deaths)} deaths or hangs, "
        f"{unanswered} not answered once",
        missed(
            (bool(deaths), "; ".join(deaths)),
            (unanswered > 0, f"{unanswered} not answered once"),
            (bool(noise), noise),
        ),
    )
