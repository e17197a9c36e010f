"""Who may use an engine's application: bearer tokens, as pure ASGI. Knows HTTP's headers; knows no engine.

Without a known token the answer is 401, the body is not read, and nothing behind is called.
"""

from collections.abc import Callable, Collection

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dg_lsp.engine import wire

CLIENT = "dg_lsp.client"  # the key of a scope under which the name of the token is found


class Bearer:
    """The application `app` for those whose token `find` knows the name of; anybody may ask for the paths `free`."""

    def __init__(
        self, app: ASGIApp, find: Callable[[str], str | None], free: Collection[str] = frozenset()
    ) -> None:
        self._app, self._find, self._free = app, find, frozenset(free)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with the token's name in the scope, or refuse it."""
        if scope["type"] != "http":
            return
        if scope["path"] not in self._free:
            scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
            name = self._find(token.strip()) if scheme.lower() == "bearer" and token else None
            if name is None:
                said = "its token is not known here" if token else "it has no token"
                await refusal(401, said)(scope, receive, send)
                return
            scope[CLIENT] = name
        await self._app(scope, receive, send)


def refusal(code: int, message: str, wait: float = 0.0) -> Response:
    """An answer with a reason that a client can show.

    wait: seconds after which another attempt makes sense; after 0, it never does, and the connection is closed.
    """
    headers = {"retry-after": str(max(round(wait), 1))} if wait else {"connection": "close"}
    if code == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse({"error": wire.pack(wire.Failure(message))}, code, headers)
