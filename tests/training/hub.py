"""A hub on this machine: the few addresses of its HTTP interface that a download by huggingface_hub asks for."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

LARGE = 1000  # bytes of a file that the hub knows by its sha256


class Hub:
    """One repository. commits: by the commit, its files by their names; the last commit is the newest one.

    served: what is sent for a file in place of its bytes. asked: the paths that were asked for.
    """

    def __init__(self, name: str) -> None:
        self.name, self.address = name, ""
        self.commits: dict[str, dict[str, bytes]] = {}
        self.served: dict[str, bytes] = {}
        self.asked: list[str] = []

    def commit(self, files: dict[str, bytes]) -> str:
        """A new commit with `files`; its id."""
        made = hashlib.sha1(repr(sorted(files.items())).encode(), usedforsecurity=False).hexdigest()
        self.commits[made] = files
        return made

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """The status, the headers and the body for `path`."""
        self.asked.append(path)
        api, newest = f"/api/models/{self.name}", next(reversed(self.commits), "")
        words = path.removeprefix(api).strip("/").split("/")
        if path in (api, f"{api}/revision/main"):
            return _json({"id": self.name, "sha": newest, "siblings": []})
        if path.startswith(f"{api}/revision/") and words[1] in self.commits:
            return _json({"id": self.name, "sha": words[1], "siblings": []})
        if path.startswith(f"{api}/tree/") and words[1] in self.commits:
            return _json([_entry(name, data) for name, data in self.commits[words[1]].items()])
        if path.startswith(f"/{self.name}/resolve/"):
            _, _, _, _, revision, name = path.split("/", 5)
            commit = newest if revision == "main" else revision
            data = self.commits[commit][name]
            sent = self.served.get(name, data)
            mark = _sha256(data) if len(data) >= LARGE else _git(data)
            return 200, {"ETag": f'"{mark}"', "X-Repo-Commit": commit}, sent
        return 404, {"X-Error-Code": "RepoNotFound"}, b""


@contextmanager
def serving(hub: Hub) -> Iterator[str]:
    """Serve `hub` at the address yielded."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, headers, body = hub.answer(urlsplit(self.path).path)
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _entry(name: str, data: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": name, "size": len(data), "oid": _git(data)}
    if len(data) >= LARGE:
        entry["lfs"] = {"oid": _sha256(data), "size": len(data), "pointerSize": 130}
    return entry


def _json(value: object) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _git(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
