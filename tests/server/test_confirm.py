"""Written code at many places of real files: no command and no code action of the real server replaces it unseen."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

import dg_lsp
from dg_lsp.gaps.find import find_gaps
from dg_lsp.source.document import Document
from tests.server.test_app import (
    ANNOTATES,
    APPLIES,
    ASKS,
    RESOLVES,
    URI,
    Start,
    actions,
    changed,
    fill,
    quick,
    start,
)
from tests.server.wire import Wire

__all__ = ["quick", "start"]
FILES = ("gaps/gap.py", "server/handlers/target.py", "guard/confirm.py")
CLIENTS = {
    "asks": {**RESOLVES, **APPLIES, **ASKS},
    "annotates": {**RESOLVES, **ANNOTATES},
    "resolves": {**RESOLVES, **APPLIES},
    "commands": APPLIES,
}
# Where a token begins or ends in a line of code, or is cut.
_TOKEN = re.compile(r"\w+|[=.,(]")


def written(text: str) -> list[tuple[int, int]]:
    """The place of each written function of `text`."""
    document = Document(URI, "python", 1, text.encode())
    gaps = find_gaps(document, 0, len(document.data))
    return [document.position(gap.start, "utf-16") for gap in gaps if not gap.is_placeholder]


def inside(text: str, count: int) -> list[tuple[int, int]]:
    """Some places between the first and the last letter of finished lines, outside of comments, strings and `()`."""
    draw, found = random.Random(1), []
    for number, line in enumerate(text.split("\n")):
        if re.fullmatch(r" +(?!def |class |@|#)[^\"'#]*[\w)\]]", line):
            ends = [m.end() for m in _TOKEN.finditer(line.rstrip())][:-1]
            found += [(number, end) for end in ends if line[end - 1 : end + 1] != "()"]
    return draw.sample(found, min(count, len(found)))


def target(place: tuple[int, int], **more: Any) -> dict[str, Any]:
    return {"position": {"line": place[0], "character": place[1]}, **more}


def is_applied(wire: Wire) -> bool:
    """Whether the client was ever asked to apply an edit."""
    return "workspace/applyEdit" in [message.get("method") for message in wire.messages]


def solved(wire: Wire, action: dict[str, Any]) -> None:
    """Take a code action as its client would: what it makes must have been confirmed."""
    if "command" in action:
        (argument,) = action["command"]["arguments"]
        result = fill(wire, **argument)["result"]
        assert not result["applied"] and (result["confirm"] or not result["edit"])
        return
    edit = wire.ask("r", "codeAction/resolve", action)["result"].get("edit")
    if edit is not None:
        (note,) = edit["changeAnnotations"].values()
        assert note["needsConfirmation"] and "written line" in note["description"]
        assert all("annotationId" in one for change in edit["documentChanges"] for one in change["edits"])


@pytest.mark.parametrize("client", CLIENTS)
def test_written_code_is_replaced_by_no_command_and_no_action(start: Start, client: str) -> None:
    wire, version, edits = start(capabilities=CLIENTS[client]), 1, 0
    for name in FILES:
        text, version = (Path(dg_lsp.__file__).parent / name).read_text(), version + 1
        wire.send(changed(version, text))
        for place in written(text)[:5]:
            listed = actions(wire, *place)
            assert [a["title"] for a in listed] == ["Rewrite this function body"] * (
                client in ("asks", "annotates")
            )
            for action in listed:
                solved(wire, action)
        asked = [target(place, kind="function_body") for place in written(text)[:5]]
        for one in (*asked, *(target(place) for place in inside(text, 12))):
            result = fill(wire, **one)["result"]
            assert not result["applied"] and (result["confirm"] or result["edit"] is None), one
            edits += result["edit"] is not None
    # Those that are confirmed are real edits.
    assert edits > 15 and not is_applied(wire)
