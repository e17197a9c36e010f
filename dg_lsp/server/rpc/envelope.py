"""Parsing of JSON-RPC messages: from bytes to a Message, and to typed params and results.

Knows JSON and a converter; knows no state, no handler and no stream.
"""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from json import scanner
from typing import Any

from lsprotocol.types import CodeActionKind, ErrorCodes, InlineCompletionItem, ProgressToken
from pygls.exceptions import JsonRpcException
from pygls.protocol import default_converter

from dg_lsp.source.shown import sentence

MsgId = int | str

_SHOWN_PATHS = 5
# The members of messages whose texts are compared, inserted or sent back; all others may be shown.
_EXACT = frozenset(
    (
        *("method", "id", "token", "capabilities", "registerOptions", "command", "arguments", "data"),
        *("uri", "files", "text", "newText", "insertText", "others", "further", "runs"),
    )
)
# Bytes that are read in one go, in which no other thread runs: some 20 ms.
_AT_ONCE = 1 << 20


class RequestError(Exception):
    """Raised by a handler to answer a request with the error `code` and `message`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Refusal(RequestError):
    """The bytes are not a valid message. id: the id of the message, if it has a valid one."""

    def __init__(self, code: int, message: str, msg_id: MsgId | None = None) -> None:
        super().__init__(code, message)
        self.id = msg_id


@dataclass(frozen=True, slots=True)
class Message:
    """A message: a request has an id and a method, a notification only a method, a reply only an id."""

    id: MsgId | None
    method: str | None
    body: dict[str, Any]


class GhostText(InlineCompletionItem):
    """An item, for a client that closes what an accepted beginning of it leaves open: see `Capabilities.pairs`.

    pairs: where each bracket and string of its text begins, and where its closer begins and ends, in UTF-16 code units.
    """

    pairs: list[list[int]] | None = None


def parse_message(data: bytes) -> Message:
    """Parse the message in `data`; raise Refusal if it is not JSON, not an object, or not JSON-RPC 2.0."""
    try:
        # Lone surrogates are not valid UTF-8; they are accepted, because losing a change of a document is worse.
        text = data.decode("utf-8", "surrogatepass")
        body = _decoder(in_pieces=len(data) > _AT_ONCE).decode(text)
    except (ValueError, RecursionError) as error:
        raise Refusal(ErrorCodes.ParseError, "the message is not valid JSON in UTF-8") from error
    if not isinstance(body, dict):
        raise Refusal(
            ErrorCodes.InvalidRequest, "the message is not an object; batches are not part of this protocol"
        )
    msg_id, method = body.get("id"), body.get("method")
    known = msg_id if _is_id(msg_id) else None
    if "id" in body and known is None:
        raise Refusal(ErrorCodes.InvalidRequest, "the id is neither an integer nor a string")
    if body.get("jsonrpc") != "2.0":
        raise Refusal(
            ErrorCodes.InvalidRequest, 'the message has no member "jsonrpc" with the value "2.0"', known
        )
    if "method" in body:
        if not isinstance(method, str):
            raise Refusal(ErrorCodes.InvalidRequest, "the method is not a string", known)
    elif known is None:
        raise Refusal(ErrorCodes.InvalidRequest, "the message has neither a method nor an id")
    return Message(known, method, body)


def readable(message: Any, name: str = "") -> Any:
    """Return a JSON value to be sent with each text that may be shown as one line, which controls nothing there.

    name: that of the member whose value it is.
    """
    if name in _EXACT:
        return message
    if isinstance(message, str):
        return sentence(message)
    if isinstance(message, dict):
        return {key: readable(one, key) for key, one in message.items()}
    return [readable(one, name) for one in message] if isinstance(message, list | tuple) else message


def read_params(converter: Any, message_type: type[Any] | None, body: dict[str, Any]) -> Any:
    """Return the params of a message in the type of its method; plain JSON values if `message_type` is None.

    Missing params are read as an empty object. If they do not fit, the converter raises an error for `misfit`.
    """
    if message_type is None:
        return body.get("params")
    given = body if body.get("params") is not None else {**body, "params": {}}
    return converter.structure(given, message_type).params


def without_nulls(value: Any, complete: Callable[[dict[str, Any]], None]) -> Any:
    """Return the JSON `value` without the members of objects that are null; `complete` may add others to an object.

    Clients with typed records send null for an optional member that they leave out.
    """
    if isinstance(value, list):
        return [without_nulls(one, complete) for one in value]
    if not isinstance(value, dict):
        return value
    found = {name: without_nulls(one, complete) for name, one in value.items() if one is not None}
    complete(found)
    return found


def read_result(converter: Any, result_type: type[Any] | None, body: dict[str, Any]) -> Any:
    """Return the result of the client's reply `body` as a `result_type`, a plain JSON value if that is None.

    Raise JsonRpcException if it is an error, or does not fit.
    """
    if (error := body.get("error")) is not None:
        fields = error if isinstance(error, dict) else {}
        code, message = fields.get("code"), fields.get("message")
        raise JsonRpcException(
            message if isinstance(message, str) else "the client answered with an error without a message",
            code if isinstance(code, int) else ErrorCodes.InternalError,
        )
    result = body.get("result")
    if result_type is None:
        return result
    try:
        return converter.structure({**body, "result": result}, result_type).result
    except Exception as problem:
        raise JsonRpcException(f"the client's answer: {misfit(problem)}") from problem


def misfit(error: BaseException) -> str:
    """Return a sentence that names the fields of wrong types, without their values, which may be source text."""
    paths = list(dict.fromkeys(_paths(error, "")))
    more = f" and {len(paths) - _SHOWN_PATHS} more" if len(paths) > _SHOWN_PATHS else ""
    return f"missing or not of the right type: {', '.join(paths[:_SHOWN_PATHS])}{more}"


def strict_converter() -> Any:
    """Return the converter of pygls, but with strings and tokens that accept no other type.

    pygls reads null as the string "None", a list as a token, and a number as the kind of a code action.
    """
    converter: Any = default_converter()  # type: ignore[no-untyped-call]
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(ProgressToken, _token)
    converter.register_structure_hook(
        ProgressToken | None, lambda value, kind: None if value is None else _token(value, kind)
    )
    converter.register_structure_hook(CodeActionKind | str, _text)
    plain = converter.get_unstructure_hook(InlineCompletionItem)

    def item(value: InlineCompletionItem) -> dict[str, Any]:
        members: dict[str, Any] = plain(value)
        if isinstance(value, GhostText) and value.pairs is not None:
            members["pairs"] = value.pairs
        return members

    converter.register_unstructure_hook(InlineCompletionItem, item)
    return converter


@cache
def _decoder(*, in_pieces: bool) -> json.JSONDecoder:
    """Return the decoder of messages, or one that lets other threads run between any two values."""
    decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_no_json)
    if in_pieces:
        # The scanner in C holds Python's lock until a message is read, 0.7 s for 27 MB of changes. This one takes five
        # times as long for them, and no longer for a large text, which both read as one string.
        decoder.scan_once = scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder


def _finite(text: str) -> float:
    """Return the number `text`, or the largest one of its sign: the reply must be JSON, which has no infinity."""
    return max(-sys.float_info.max, min(float(text), sys.float_info.max))


def _no_json(word: str) -> None:
    """Refuse NaN, Infinity and -Infinity, which Python would read."""
    raise ValueError(word)


def _is_id(value: object) -> bool:
    """Return whether `value` may be the id of a request."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def _text(value: object, _: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a string")
    return value


def _token(value: object, _: object) -> int | str:
    if not _is_id(value):
        raise TypeError("neither an integer nor a string")
    return value  # type: ignore[return-value]


def _paths(error: BaseException, path: str) -> list[str]:
    """Return the paths of the fields in an error of the converter; its notes hold names and indices."""
    for note in getattr(error, "__notes__", ()):
        if hasattr(note, "name"):
            path += "." + re.sub("_(.)", lambda found: found[1].upper(), note.name)
        elif hasattr(note, "index"):
            # The key of a mapping comes from the client and is not shown.
            path += f"[{note.index}]" if isinstance(note.index, int) else "[...]"
    if isinstance(error, BaseExceptionGroup):
        return [found for inner in error.exceptions for found in _paths(inner, path)]
    return [path.lstrip(".") or "the message"]
