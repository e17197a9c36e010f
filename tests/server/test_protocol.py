"""One answer to each request, whatever comes: scenarios over a real process, most of which plain pygls fails."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Optional

import pytest
from lsprotocol.types import CodeActionKind, ProgressToken
from pygls.protocol import default_converter

from dg_lsp.server.rpc.conversation import log_failure
from dg_lsp.server.rpc.envelope import Refusal, parse_message, strict_converter
from tests.server.small import SECRET
from tests.server.wire import Wire, both, frame, notification, plain, request, small
from tests.waiting import wait_until

URI = "file:///c%3A/m.py"
NOW = {"seconds": 0}
HOVER = {"textDocument": {"uri": URI}, "position": {"line": 7, "character": 0}}
Start = Callable[[], Wire]


def code_of(answer: dict[str, Any]) -> int:
    error = answer.get("error")
    assert error is not None, f"no error: {answer}"
    assert "data" not in error or error["data"] is None
    return int(error["code"])


def alive(wire: Wire) -> None:
    """The server still answers, and has shown the user nothing."""
    assert wire.ask("alive", "test/sleep", NOW)["result"] == "slept"
    assert not [m for m in wire.messages if m.get("method") == "window/showMessage"]


def opened(text: str, version: int = 1, uri: str = URI) -> dict[str, Any]:
    document = {"uri": uri, "languageId": "python", "version": version, "text": text}
    return notification("textDocument/didOpen", {"textDocument": document})


def changed(version: int, *changes: Any, uri: str = URI) -> dict[str, Any]:
    events = [
        {"text": text}
        if span is None
        else {"range": {"start": at(*span[0]), "end": at(*span[1])}, "text": text}
        for span, text in changes
    ]
    return notification(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": version}, "contentChanges": events},
    )


def at(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


@pytest.mark.parametrize("start", [small, plain])
def test_both_servers_do_the_simple_things(start: Start) -> None:
    """So that a scenario which plain pygls fails is failed for the reason that it names."""
    with start() as wire:
        wire.initialize()
        wire.send(opened("one\ntwo\n"), changed(2, (((1, 0), (1, 3)), "2")))
        found = wire.ask(1, "test/text", {"uri": URI})["result"]
        assert found == {"text": "one\n2\n", "version": 2, "language": "python"}
        assert wire.ask(2, "textDocument/hover", HOVER)["result"] == {"contents": "line 7"}
        assert code_of(wire.ask(3, "test/unknown")) == -32601
        alive(wire)


# -- what is no message, and params that do not fit


NO_MESSAGES: list[tuple[bytes, Any, int]] = [
    (b"{", None, -32700),
    (b"", None, -32700),
    (b"\xff{}", None, -32700),
    (b"[" * 100_000, None, -32700),
    (b"9" * 10_000, None, -32700),
    (b'[{"jsonrpc":"2.0","id":1,"method":"test/sleep"}]', None, -32600),
    (b"null", None, -32600),
    (b"{}", None, -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"test/sleep"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"test/sleep"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"test/sleep"}', None, -32600),
    (b'{"jsonrpc":"1.0","id":5,"method":"test/sleep"}', 5, -32600),
    (b'{"id":"x","method":"test/sleep"}', "x", -32600),
    (b'{"jsonrpc":"2.0","id":6,"method":7}', 6, -32600),
    (b'{"jsonrpc":"2.0","id":8}', 8, -32600),
]


@pytest.mark.parametrize("start", both("a bad message is a pop-up for the user, and not answered (6)"))
def test_what_is_no_message(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        for body, msg_id, code in NO_MESSAGES:
            wire.send(frame(body))
            assert code_of(wire.answer(msg_id)) == code, body[:80]
        alive(wire)


@pytest.mark.parametrize("start", both("a request whose params do not fit has no answer at all (3)"))
def test_params_that_do_not_fit(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        for params, paths in (
            (None, "params.textDocument, params.position"),
            ([1, 2], "params.textDocument, params.position"),
            ({**HOVER, "position": {"line": "a secret", "character": 0}}, "params.position.line"),
            ({**HOVER, "position": {"line": -1, "character": 0}}, "params.position"),
            ({**HOVER, "textDocument": {"uri": None}}, "params.textDocument.uri"),
        ):
            answer = wire.ask(1, "textDocument/hover", params)
            assert code_of(answer) == -32602
            assert answer["error"]["message"].endswith(f": {paths}")
            assert "secret" not in answer["error"]["message"] + wire.stderr
        alive(wire)


@pytest.mark.parametrize("start", both("a member named jsonrpc makes a message of any object (3)"))
def test_a_nested_jsonrpc_is_plain_data(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        inner = {"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover"}
        assert wire.ask(1, "textDocument/hover", {**HOVER, "extra": inner})["result"]
        alive(wire)


@pytest.mark.parametrize("start", both("notifications that do not fit are pop-ups (6)"))
def test_notifications_that_do_not_fit_are_logged_without_their_text(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(
            opened("text"), notification("textDocument/didOpen", {"textDocument": {"text": "a secret"}})
        )
        wire.send(changed(3, (None, "a secret"), uri="file:///unopened"), notification("test/unknown", {}))
        wire.send(notification("textDocument/didClose", {"textDocument": {"uri": "file:///unopened"}}))
        alive(wire)
        assert wire.logged("params.textDocument.uri")
        assert wire.logged("file:///unopened was closed")
        assert "secret" not in wire.stderr
        assert "Traceback" not in wire.stderr


@pytest.mark.parametrize("start", both('null where a text belongs becomes the text "None"'))
def test_a_change_that_is_lost_puts_the_document_aside(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(opened("text"), changed(2, (None, None)), changed(3, (((0, 0), (0, 0)), "x")))
        # Nobody may go on with a text that is not the client's; opened again, it is in step again.
        assert wire.ask(1, "test/text", {"uri": URI}).get("result", "") is None
        wire.send(opened("text", 4))
        assert wire.ask(2, "test/text", {"uri": URI})["result"]["version"] == 4
        assert wire.logged("out of step")


def test_a_request_as_a_notification_and_the_other_way_round() -> None:
    with small() as wire:
        wire.initialize()
        wire.send(notification("textDocument/hover", HOVER))
        assert code_of(wire.ask(1, "textDocument/didOpen", opened("x")["params"])) == -32601
        assert code_of(wire.ask(2, "$/cancelRequest", {"id": 1})) == -32601
        alive(wire)


# -- states


@pytest.mark.parametrize("start", both("it has no states (12)"))
def test_before_initialize(start: Start) -> None:
    with start() as wire:
        wire.send(opened("too early"))
        assert code_of(wire.ask(1, "test/sleep", NOW)) == -32002
        wire.initialize()
        assert wire.ask(2, "test/text", {"uri": URI}).get("result", "") is None


@pytest.mark.parametrize("start", both("it has no states (12)"))
def test_a_second_initialize(start: Start) -> None:
    with start() as wire:
        wire.initialize(capabilities={"general": {"positionEncodings": ["utf-32"]}})
        assert (
            code_of(wire.ask(1, "initialize", {"processId": None, "rootUri": None, "capabilities": {}}))
            == -32600
        )
        alive(wire)


@pytest.mark.parametrize("start", both("it drops requests after shutdown (12)"))
def test_after_shutdown(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        assert wire.ask(1, "shutdown")["result"] is None
        assert code_of(wire.ask(2, "test/sleep", NOW)) == -32600


def test_an_initialize_that_fails_may_be_repeated() -> None:
    with small() as wire:
        assert code_of(wire.ask(1, "initialize", {"capabilities": 5})) == -32602
        assert code_of(wire.ask(2, "test/sleep", NOW)) == -32002
        failing: dict[str, Any] = {
            "processId": None,
            "rootUri": None,
            "capabilities": {},
            "initializationOptions": "fail",
        }
        assert code_of(wire.ask(3, "initialize", failing)) == -32603
        assert code_of(wire.ask(4, "test/sleep", NOW)) == -32002
        assert wire.initialize()["result"]
        alive(wire)


def test_shutdown_answers_what_is_in_flight() -> None:
    with small() as wire:
        wire.initialize()
        wire.send(
            request(1, "test/sleep", {"seconds": 9}), request(2, "test/stubborn"), request(3, "shutdown")
        )
        assert code_of(wire.answer(1)) == -32800
        assert code_of(wire.answer(2)) == -32800
        assert wire.answer(3)["result"] is None
        assert wire.rest() == []


# -- exactly one answer


def test_cancelling_is_answered_at_once_whatever_the_handler_does() -> None:
    with small() as wire:
        wire.initialize()
        for msg_id, params in enumerate([None, {"raise": True}] * 5):
            wire.send(request(msg_id, "test/stubborn", params))
            time.sleep(0.02)
            began = time.monotonic()
            wire.send(notification("$/cancelRequest", {"id": msg_id}))
            assert code_of(wire.answer(msg_id)) == -32800
            # The handler itself goes on for half a minute.
            assert time.monotonic() - began < 20
        assert wire.rest(0.5) == []
        # The id of a cancelled request is free again at once, also while its handler still cleans up.
        assert wire.ask(0, "test/sleep", NOW)["result"] == "slept"
        assert "Traceback" not in wire.stderr


def test_cancelling_what_is_not_there_is_ignored() -> None:
    with small() as wire:
        wire.initialize()
        wire.ask(1, "test/sleep", NOW)
        given: tuple[Any, ...] = (
            {"id": 1},
            {"id": 99},
            {"id": "x"},
            {"id": None},
            {"id": [1]},
            {"id": {}},
            {},
            [],
            None,
            5,
        )
        for params in given:
            wire.send(notification("$/cancelRequest", params))
        alive(wire)
        assert wire.rest() == []
        assert wire.stderr == ""


@pytest.mark.parametrize("start", both("the second request takes the first one's place (16)"))
def test_an_id_that_is_in_flight_already(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(request(1, "test/sleep", {"seconds": 0.3}), request(1, "test/sleep", NOW))
        assert code_of(wire.answer(1)) == -32600
        assert wire.answer(1)["result"] == "slept"
        assert wire.rest() == []


@pytest.mark.parametrize("start", both("it keeps a future of each notification (2.1.1: _request_futures)"))
def test_thousands_of_requests_and_cancels(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        pairs = [
            message
            for n in range(2000)
            for message in (
                request(n, "test/sleep", {"seconds": 5}),
                notification("$/cancelRequest", {"id": n}),
            )
        ]
        began = time.monotonic()
        wire.send(*pairs)
        answers = [wire.read() for _ in range(2000)]
        print(f"2000 requests and cancels in {time.monotonic() - began:.2f} s")
        assert sorted(answer["id"] for answer in answers) == list(range(2000))
        assert {code_of(answer) for answer in answers} == {-32800}
        wire.send(*[notification("test/sleep", NOW)] * 100)
        nothing = {"live": 1, "futures": 0, "types": 0, "tasks": 1, "workspace": 0, "documents": 0}
        wait_until(lambda: wire.ask("state", "test/state")["result"] == nothing, min(wire.patience, 20))
        assert wire.rest() == []


# -- handlers that fail


@pytest.mark.parametrize("start", both("it sends the traceback to the client (7)"))
def test_what_an_exception_says_stays_here(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        answer = wire.ask(1, "test/fail")
        assert answer["error"]["code"] == -32603
        assert "ValueError" in answer["error"]["message"]
        assert not answer["error"].keys() - {"code", "message"}
        assert SECRET not in json.dumps(answer)
        assert wire.logged("the handler of test/fail failed: ValueError") and wire.logged("small.py")
        alive(wire)
        assert SECRET not in wire.stderr


def test_no_level_of_the_log_holds_what_an_exception_says(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "dg_lsp")
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        log_failure("test/fail", error)
    assert "test/fail failed: ValueError" in caplog.text and SECRET not in caplog.text


@pytest.mark.parametrize("start", both("a notification's handler that fails is a pop-up (6)"))
def test_a_notification_whose_handler_fails(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(notification("test/notified", {}))
        alive(wire)
        assert wire.logged("the handler of test/notified failed: ValueError")
        assert SECRET not in wire.stderr


@pytest.mark.parametrize("start", both("it exits (10)"))
def test_a_handler_that_leaves_does_not_end_the_server(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        assert code_of(wire.ask(1, "test/leave")) == -32603
        alive(wire)


def test_a_handler_chooses_its_error() -> None:
    with small() as wire:
        wire.initialize()
        answer = wire.ask(1, "test/error", {"code": -32801, "message": "the document has changed"})
        assert answer["error"] == {"code": -32801, "message": "the document has changed"}
        assert wire.stderr == ""


@pytest.mark.parametrize("start", both("it sends NaN, and nothing for what it cannot serialise"))
def test_a_result_that_is_no_json_is_an_error(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        assert code_of(wire.ask(1, "test/odd")) == -32603
        assert code_of(wire.ask(2, "test/odd", {"x": 1})) == -32603
        alive(wire)


def test_lone_surrogates_and_other_text_go_out_and_come_in() -> None:
    with small() as wire:
        wire.initialize()
        assert wire.ask(1, "test/surrogate")["result"]["text"] == "\ud83d|é|🙂"
        raw = json.dumps(opened("\ud83dé🙂"), ensure_ascii=False).encode("utf-8", "surrogatepass")
        wire.send(frame(raw))
        assert wire.ask(2, "test/text", {"uri": URI})["result"]["text"] == "\ufffdé🙂"


@pytest.mark.parametrize("start", both("it quotes the arguments in its error"))
def test_commands(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        add = {"command": "test.add", "arguments": [1, 2]}
        assert wire.ask(1, "workspace/executeCommand", add)["result"] == 3
        for wrong in (
            {**add, "arguments": [1]},
            {**add, "arguments": ["a secret", 2]},
            {"command": "test.none"},
        ):
            answer = wire.ask(2, "workspace/executeCommand", wrong)
            assert code_of(answer) == -32602
            assert "secret" not in answer["error"]["message"]


# -- requests to the client


@pytest.mark.parametrize("start", both("the late reply is an InvalidStateError and a pop-up (9)"))
def test_a_reply_that_nobody_waits_for(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(request(1, "test/askAndGiveUp"))
        asked = wire.until("workspace/configuration")
        assert wire.answer(1)["result"] == "gave up"
        wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": [1]})
        wire.send({"jsonrpc": "2.0", "id": "never asked", "result": 1})
        alive(wire)
        assert "InvalidState" not in wire.stderr
        held = wire.ask(2, "test/state")["result"]
        assert (held["futures"], held["types"]) == (0, 0)


def test_a_request_to_the_client_that_is_given_up_is_forgotten() -> None:
    """Also when the client never replies."""
    with small() as wire:
        wire.initialize()
        assert wire.ask(1, "test/askAndGiveUp")["result"] == "gave up"
        held = wire.ask(2, "test/state")["result"]
        assert (held["futures"], held["types"]) == (0, 0)


def test_what_the_client_may_reply() -> None:
    nested = [{"a": [1, {"jsonrpc": "2.0"}]}]
    with small() as wire:
        wire.initialize()
        for reply, result, code in (
            ({"result": nested}, nested, None),
            ({"result": [None]}, [None], None),
            ({"result": 5}, None, -32603),
            ({"error": {"code": -32601, "message": "no"}}, None, -32603),
            ({"error": "garbage"}, None, -32603),
            ({}, None, -32603),
        ):
            wire.send(request(1, "test/askClient"))
            asked = wire.until("workspace/configuration")
            wire.send({"jsonrpc": "2.0", "id": asked["id"], **reply})
            answer = wire.answer(1)
            assert answer.get("result") == result
            assert (code_of(answer) if code else None) == code
        alive(wire)


def test_shutdown_cancels_what_the_client_was_asked() -> None:
    with small() as wire:
        wire.initialize()
        wire.send(request(1, "test/askClient"))
        wire.until("workspace/configuration")
        wire.send(request(2, "shutdown"), notification("exit"))
        assert code_of(wire.answer(1)) == -32800
        assert wire.wait() == 0
        assert wire.stderr == ""


# -- documents, capabilities, logs


@pytest.mark.parametrize("start", both("str.splitlines ends lines that the protocol does not end (1)"))
def test_a_form_feed_ends_no_line(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(opened("a\fb\nsecond"), changed(2, (((1, 0), (1, 0)), "X")))
        assert wire.ask(1, "test/text", {"uri": URI})["result"]["text"] == "a\fb\nXsecond"


@pytest.mark.parametrize("start", both("a column past the end of the last line is its last character (5)"))
def test_a_column_past_the_end(start: Start) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(opened("ab\ncd"), changed(2, (((1, 9), (1, 9)), "X")))
        assert wire.ask(1, "test/text", {"uri": URI})["result"]["text"] == "ab\ncdX"


@pytest.mark.parametrize(
    ("offered", "chosen", "column"),
    [
        (None, "utf-16", 2),
        ([], "utf-16", 2),
        (["utf-16"], "utf-16", 2),
        (["utf-7", "utf-8", "utf-16"], "utf-8", 4),
        (["utf-32", "utf-8"], "utf-32", 1),
        (["utf-7"], "utf-16", 2),
    ],
)
def test_the_position_encoding_is_the_clients_first_that_is_known(
    offered: Any, chosen: str, column: int
) -> None:
    with small() as wire:
        capabilities = {"general": {"positionEncodings": offered}} if offered is not None else {}
        result = wire.initialize(capabilities=capabilities)["result"]["capabilities"]
        assert result["positionEncoding"] == chosen
        assert result["inlineCompletionProvider"] == {}
        assert result["textDocumentSync"]["change"] == 2
        wire.send(opened("🙂b"), changed(2, (((0, column), (0, column)), "X")))
        assert wire.ask(1, "test/text", {"uri": URI})["result"]["text"] == "🙂Xb"
        held = wire.ask(2, "test/state")["result"]
        assert (held["workspace"], held["documents"]) == (0, 1)
        wire.send(notification("textDocument/didClose", {"textDocument": {"uri": URI}}))
        assert wire.ask(3, "test/text", {"uri": URI})["result"] is None


def test_nothing_of_the_text_is_logged_at_any_level() -> None:
    """pygls' defect 8: it logs each message; not even asked for everything does it do so here."""
    code = "import logging; logging.basicConfig(level=1); import tests.server.small as s; s.serve(s.make_server())"
    with Wire([sys.executable, "-c", code]) as wire:
        wire.initialize(initializationOptions={"token": "a secret"})
        wire.send(
            opened("a secret"), changed(2, (None, "a secret")), changed(1, (((0, 0), (0, 1)), "a secret"))
        )
        assert "secret" in wire.ask(1, "test/text", {"uri": URI})["result"]["text"]
        wire.ask(2, "textDocument/hover", {**HOVER, "position": "a secret"})
        wire.send(frame(b"a secret"), {"jsonrpc": "2.0", "id": 7, "result": "a secret"})
        alive(wire)
        assert wire.logged("went back")
        assert "secret" not in wire.stderr


def test_the_strict_converter_takes_only_texts_for_texts() -> None:
    with pytest.raises(TypeError, match="not a string"):
        strict_converter().structure(None, str)
    assert default_converter().structure(None, str) == "None"


@pytest.mark.parametrize("kind", [ProgressToken, Optional[ProgressToken], CodeActionKind | str])  # noqa: UP045
def test_the_strict_converter_takes_only_tokens_for_tokens_and_kinds_for_kinds(kind: Any) -> None:
    assert default_converter().structure(1.5, kind) == 1.5
    odd: Any
    for odd in ([1], {}, 1.5, True):
        with pytest.raises(TypeError, match=r"not a string|neither an integer nor a string"):
            strict_converter().structure(odd, kind)
    assert strict_converter().structure("refactor", kind) == "refactor"


def test_params_of_another_type_are_refused_and_no_handler_fails() -> None:
    with small() as wire:
        wire.initialize()
        for arguments in ([], [1], [1, 2, 3], None):
            answer = wire.ask(
                str(arguments), "workspace/executeCommand", {"command": "test.add", "arguments": arguments}
            )
            assert code_of(answer) == -32602
        wire.send(notification("window/workDoneProgress/cancel", {"token": [1]}))
        alive(wire)
        assert "failed" not in wire.stderr


def test_numbers_without_a_place_in_json_never_come_back() -> None:
    # A code action's data are sent back as they came, and a reply with Infinity failed (found by the fuzz).
    body = parse_message(b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1e400,-1e400,1.5]}').body
    assert json.loads(json.dumps(body["params"], allow_nan=False)) == [
        1.7976931348623157e308,
        -1.7976931348623157e308,
        1.5,
    ]
    for word in (b"NaN", b"Infinity", b"-Infinity"):
        with pytest.raises(Refusal, match="not valid JSON"):
            parse_message(b'{"jsonrpc":"2.0","id":1,"method":"m","params":[%s]}' % word)


def test_parse_message_tells_what_is_wrong() -> None:
    assert parse_message(b'{"jsonrpc":"2.0","method":"m"}').method == "m"
    with pytest.raises(Refusal, match="batches"):
        parse_message(b"[]")


def test_null_for_an_optional_member_is_none() -> None:
    """Clients with typed records send null for what they leave out."""
    with small() as wire:
        wire.initialize()
        wire.send(opened("one"))
        about = {"uri": URI, "version": 2}
        whole = {"range": None, "rangeLength": None, "text": "two"}
        wire.send(notification("textDocument/didChange", {"textDocument": about, "contentChanges": [whole]}))
        assert wire.ask(1, "test/text", {"uri": URI})["result"]["text"] == "two"
        part = {"range": {"start": at(0, 0), "end": at(0, 1)}, "rangeLength": None, "text": "T"}
        for version in ({"version": None}, {}):
            params = {"textDocument": {"uri": URI, **version}, "contentChanges": [part]}
            wire.send(notification("textDocument/didChange", params))
        found = wire.ask(2, "test/text", {"uri": URI})["result"]
        assert found == {"text": "Two", "version": 4, "language": "python"}
        new = {"uri": "file:///other", "languageId": "python", "version": None, "text": "x"}
        wire.send(notification("textDocument/didOpen", {"textDocument": new}))
        assert wire.ask(3, "test/text", {"uri": "file:///other"})["result"]["version"] == 0
        assert "out of step" not in wire.stderr and "ignored a notification" not in wire.stderr
