"""The real server with one method more, which tells a document's text. Run as a script.

    python -m tests.robustness.server [SILENCE]

SILENCE is how many seconds an engine may be silent, where a test cannot wait as long as a user.
"""

import logging
import sys
from typing import Any

from dg_lsp.engine import resident
from dg_lsp.engine.choice import resolve
from dg_lsp.server.app import make_server
from dg_lsp.server.rpc.protocol import Server
from dg_lsp.server.rpc.streams import serve
from dg_lsp.settings import from_environment


async def text(ls: Server, params: Any) -> dict[str, str | None]:
    document = ls.documents.snapshot(params["uri"])
    return {"text": document.text if document else None}


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR)
    if len(sys.argv) > 1:
        for name, seconds in (("SILENCE", 1.0), ("_LAST_WORD", 1 / 3)):
            setattr(resident, name, seconds * float(sys.argv[1]))
    server = make_server(resolve(from_environment()), resident.ResidentEngine)
    server.feature("test/text")(text)
    sys.exit(serve(server))
