"""Refuses each connection that would leave this machine, in every Python process that has this folder on its path.

What was refused, and who has loaded this, is written to the file that CONNECTIONS names.
"""

import os
import sys
from pathlib import Path

HERE = {"localhost", "127.0.0.1", "::1", "", None}


def note(what: str) -> None:
    with Path(os.environ["CONNECTIONS"]).open("a", encoding="utf-8") as file:
        file.write(what + "\n")


def look(event: str, details: tuple) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = details[1]
        host = address[0] if isinstance(address, tuple) else None  # the others are Unix sockets
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = details[0]
    else:
        return
    if host not in HERE:
        note(f"refused {host} {sys.argv[1:]}")
        raise PermissionError(f"{host} is outside of this machine")


note(f"loaded {sys.orig_argv[1:]}")
sys.addaudithook(look)
