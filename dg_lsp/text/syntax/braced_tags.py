"""Tags: which elements of markup inside code are open at the end of a text, and what closes them.

Knows how tags look; knows no language and no tree.
"""

import re

_TAG = re.compile(rb"=>|<(?P<shut>/?)(?P<name>[A-Za-z][\w$.:-]*|(?=>))|(?P<end>/?>)")
_WORD = re.compile(rb"[\w$)\]]")


def closing_tags(text: bytes) -> bytes:
    """What ends the tag and closes the elements that are open at the end of `text`; empty where none is."""
    opened: list[bytes] = []
    inside = False
    for match in _TAG.finditer(text):
        name = match["name"]
        if match["end"] is not None:
            if inside and match["end"] == b"/>" and opened:
                opened.pop()
            inside = False
        elif name is not None and match["shut"]:
            if name in opened:
                del opened[len(opened) - 1 - opened[::-1].index(name) :]
        elif name is not None and (opened or not _WORD.match(text, match.start() - 1)):
            # Outside of elements a sign right behind a name compares, or begins the parameters of a type.
            opened.append(name)
            inside = True
    if inside and opened:
        return b" />" + _shut(opened[:-1])
    return _shut(opened)


def _shut(opened: list[bytes]) -> bytes:
    return b"".join(b"</%b>" % name for name in reversed(opened))
