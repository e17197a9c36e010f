"""The tiny server on plain pygls, to prove that the scenarios find its defects. Run as a script."""

import asyncio
import sys
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from tests.server.small import SECRET

server = LanguageServer("plain", "1")


@server.feature("test/sleep")
async def sleep(ls: LanguageServer, params: Any) -> str:
    await asyncio.sleep(float(params.seconds))
    return "slept"


@server.feature("test/text")
async def text(ls: LanguageServer, params: Any) -> dict[str, Any]:
    document = ls.workspace.get_text_document(params.uri)
    found = {"text": document.source, "version": document.version, "language": document.language_id}
    await asyncio.sleep(float(getattr(params, "seconds", 0)))
    return found


@server.feature("test/fail")
async def fail(ls: LanguageServer, params: Any) -> None:
    raise ValueError(f"cannot read {SECRET}")


@server.feature("test/leave")
async def leave(ls: LanguageServer, params: Any) -> None:
    sys.exit(3)


@server.feature("test/print")
async def stray_print(ls: LanguageServer, params: Any) -> str:
    print("a stray print", flush=True)
    return "printed"


@server.feature("test/notified")
async def fail_notification(ls: LanguageServer, params: Any) -> None:
    raise ValueError(f"cannot read {SECRET}")


@server.feature("test/big")
async def big(ls: LanguageServer, params: Any) -> dict[str, str]:
    return {"text": "x" * int(params.size)}


@server.feature("test/state")
async def state(ls: LanguageServer, params: Any) -> dict[str, int]:
    """What ours tells, as far as pygls has it; this request itself counts as live."""
    held = {"futures": len(ls.protocol._request_futures) - 1, "types": len(ls.protocol._result_types)}
    return {"live": 1, "tasks": 1, "workspace": len(ls.workspace.text_documents), "documents": 0, **held}


@server.feature("test/surrogate")
async def surrogate(ls: LanguageServer, params: Any) -> str:
    return "\ud83d|é|🙂"


@server.feature("test/odd")
async def odd(ls: LanguageServer, params: Any) -> object:
    return {"odd": {1, 2}, "worse": object()} if params else float("nan")


@server.command("test.add")
async def add(ls: LanguageServer, a: int, b: int) -> int:
    return a + b


@server.feature("test/askAndGiveUp")
async def ask_and_give_up(ls: LanguageServer, params: Any) -> str:
    items = [lsp.ConfigurationItem(section="test")]
    asking = asyncio.ensure_future(ls.workspace_configuration_async(lsp.ConfigurationParams(items)))
    await asyncio.sleep(0.05)
    asking.cancel()
    return "gave up"


@server.feature("test/block")
@server.thread()
def block(ls: LanguageServer, params: Any) -> None:
    # The way that pygls offers for work that blocks; the seconds fit the longest test.
    import time  # noqa: PLC0415

    time.sleep(float(params.seconds))


@server.feature(lsp.TEXT_DOCUMENT_HOVER)
async def hover(ls: LanguageServer, params: lsp.HoverParams) -> lsp.Hover:
    return lsp.Hover(contents=f"line {params.position.line}")


if __name__ == "__main__":
    server.start_io()
