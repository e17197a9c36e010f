"""A tiny server on our classes, with a few handlers for tests. Run as a script."""

import asyncio
import os
import sys
import time
from typing import Any

from lsprotocol import types as lsp

from dg_lsp.server.rpc.protocol import RequestError, Server
from dg_lsp.server.rpc.streams import serve

SECRET = "/home/someone/secret/path.py"


def make_server() -> Server:
    server = Server("small", "1")
    server.feature("test/sleep")(sleep)
    server.feature("test/text")(text)
    server.feature("test/fail")(fail)
    server.feature("test/leave")(leave)
    server.feature("test/error")(error)
    server.feature("test/state")(state)
    server.feature("test/stubborn")(stubborn)
    server.feature("test/block")(block)
    server.feature("test/thread")(in_thread)
    server.feature("test/busy")(busy)
    server.feature("test/print")(stray_print)
    server.feature("test/odd")(odd)
    server.feature("test/big")(big)
    server.feature("test/surrogate")(surrogate)
    server.feature("test/askClient")(ask_client)
    server.feature("test/askAndGiveUp")(ask_and_give_up)
    server.feature("test/notified")(fail_notification)
    server.feature(lsp.INITIALIZE)(initialize)
    server.feature(lsp.TEXT_DOCUMENT_HOVER)(hover)
    server.feature(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, lsp.InlineCompletionOptions())(inline)
    server.command("test.add")(add)
    return server


async def initialize(ls: Server, params: lsp.InitializeParams) -> None:
    if params.initialization_options == "fail":
        raise ValueError("told to fail")


async def sleep(ls: Server, params: Any) -> str:
    await asyncio.sleep(float(params["seconds"]))
    return "slept"


async def text(ls: Server, params: Any) -> dict[str, Any] | None:
    """The document as it is when the handler begins, told only after a while."""
    document = ls.documents.snapshot(params["uri"])
    await asyncio.sleep(float(params.get("seconds", 0)))
    if document is None:
        return None
    return {"text": document.text, "version": document.version, "language": document.language}


async def fail(ls: Server, params: Any) -> None:
    raise ValueError(f"cannot read {SECRET}")


async def leave(ls: Server, params: Any) -> None:
    sys.exit(3)


async def error(ls: Server, params: Any) -> None:
    raise RequestError(params["code"], params["message"])


async def state(ls: Server, params: Any) -> dict[str, int]:
    """How much is held for requests, and how many tasks there are; this request itself counts."""
    protocol = ls.protocol
    return {
        "live": len(protocol._live),
        "futures": len(protocol._request_futures),
        "types": len(protocol._result_types),
        "tasks": len(protocol._tasks),
        "workspace": len(protocol.workspace.text_documents),
        "documents": len(ls.documents.uris()),
    }


async def stubborn(ls: Server, params: Any) -> str:
    """Does not let itself be cancelled."""
    for _ in range(100):
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            if params and params.get("raise"):
                raise ValueError("the clean-up failed") from None
    return "too late"


async def block(ls: Server, params: Any) -> None:
    """What a handler must never do."""
    time.sleep(float(params["seconds"]))


async def in_thread(ls: Server, params: Any) -> None:
    await asyncio.to_thread(time.sleep, float(params["seconds"]))


async def busy(ls: Server, params: Any) -> None:
    """A thread that computes, and gives Python's lock away only when it has to."""
    end = time.monotonic() + float(params["seconds"])

    def compute() -> None:
        while time.monotonic() < end:
            sum(range(1_000))

    await asyncio.to_thread(compute)


async def stray_print(ls: Server, params: Any) -> str:
    print("a stray print")
    os.write(1, b"a stray write\n")
    os.system("echo a stray child; cat")
    return "printed"


async def odd(ls: Server, params: Any) -> object:
    return {"odd": {1, 2}, "worse": object()} if params else float("nan")


async def big(ls: Server, params: Any) -> dict[str, str]:
    return {"text": "x" * int(params["size"])}


async def surrogate(ls: Server, params: Any) -> dict[str, str]:
    return {"text": "\ud83d|é|🙂"}


async def ask_client(ls: Server, params: Any) -> Any:
    items = [lsp.ConfigurationItem(section="test")]
    return await ls.workspace_configuration_async(lsp.ConfigurationParams(items))


async def ask_and_give_up(ls: Server, params: Any) -> str:
    items = [lsp.ConfigurationItem(section="test")]
    asking = asyncio.ensure_future(ls.workspace_configuration_async(lsp.ConfigurationParams(items)))
    await asyncio.sleep(0.05)
    asking.cancel()
    return "gave up"


async def fail_notification(ls: Server, params: Any) -> None:
    raise ValueError(f"cannot read {SECRET}")


async def hover(ls: Server, params: lsp.HoverParams) -> lsp.Hover:
    return lsp.Hover(contents=f"line {params.position.line}")


async def inline(ls: Server, params: lsp.InlineCompletionParams) -> lsp.InlineCompletionList:
    return lsp.InlineCompletionList([lsp.InlineCompletionItem(insert_text="x")])


async def add(ls: Server, a: int, b: int) -> int:
    return a + b


if __name__ == "__main__":
    sys.exit(serve(make_server(), *map(int, sys.argv[1:])))
