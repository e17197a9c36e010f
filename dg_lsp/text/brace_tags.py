"""Tags: which elements of markup inside code are open at the end of a text, and what closes them.

Knows how tags look; knows no language and no tree.
"""

import re

_TAG = re.compile(rb"=>|(?<![\w$)\]])<(?P<shut>/?)(?P<name>[A-Za-z][\w$.:-]*|(?=>))|(?P<end>/?>)")


def closing_tags(text: bytes) -> bytes:
    """What ends the tag and closes the elements that are open at the end of `text`; empty where none is."""
    opened: list[bytes] = []
    inside = False
    for match in _TAG.finditer(text):
        if match["end"] is not None:
            if inside and match["end"] == b"/>" and opened:
                opened.pop()
            inside = False
        elif match["name"] is not None and match["shut"]:
            if match["name"] in opened:
                del opened[len(opened) - 1 - opened[::-1].index(match["name"]) :]
            inside = True
        elif match["name"] is not None:
            opened.append(match["name"])
            inside = True
    if inside and opened and not text.rstrip().endswith(b"/"):
        return b" />" + _shut(opened[:-1])
    return _shut(opened)


def _shut(opened: list[bytes]) -> bytes:
    return b"".join(b"</%b>" % name for name in reversed(opened))
