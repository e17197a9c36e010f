"""Fill every unwritten function of a folder over `dg-lsp --stdio`: a whole refactoring bot, on pygls' client.

    python examples/fill_stubs.py src/ --write

The report is JSON on stdout, one object; drafts and the server's log are on stderr. Exit codes: 0 every stub was
filled, 1 some were not (the report says why). The same seed, files and machine give the same report.
"""

import argparse
import asyncio
import difflib
import json
import sys
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

UTF32 = [types.PositionEncodingKind.Utf32]  # one unit is one character of a Python text
RESOLVE = types.CodeActionClientCapabilities(resolve_support=types.ClientCodeActionResolveOptions(["edit"]))
CAPABILITIES = types.ClientCapabilities(
    general=types.GeneralClientCapabilities(position_encodings=UTF32),
    text_document=types.TextDocumentClientCapabilities(code_action=RESOLVE),
    experimental={"dgLsp": {"drafts": True}},
)


async def fill_file(client: LanguageClient, path: Path, report: dict[str, Any], known: set[Any]) -> str:
    """The text of `path` with its stubs filled, from the last one to the first, so that earlier lines stay put."""
    text, uri, version = path.read_bytes().decode("utf-8"), path.resolve().as_uri(), 1
    opened = types.TextDocumentItem(uri, types.LanguageKind.Python, version, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(opened))
    while True:
        whole = types.Range(types.Position(0, 0), types.Position(text.count("\n") + text.count("\r") + 1, 0))
        asked = types.CodeActionParams(types.TextDocumentIdentifier(uri), whole, types.CodeActionContext([]))
        actions = await client.text_document_code_action_async(asked) or []
        given: list[Any] = [action.data for action in actions if isinstance(action, types.CodeAction)]
        stubs = [data for data in given if data["stub"]]
        todo = [s for s in stubs if (path, s["name"], s["range"]["start"]["line"]) not in known]
        if not todo:
            return text
        stub = todo[-1]
        known.add((path, stub["name"], stub["range"]["start"]["line"]))
        command = types.ExecuteCommandParams("dg-lsp.fill", [stub])
        result: Any = await client.workspace_execute_command_async(command)
        entry = {"path": str(path), "name": stub["name"], "why": result["why"]}
        report["filled" if result["edit"] else "refused"].append(entry)
        if result["edit"]:
            text = apply(text, result["edit"]["changes"][uri])
            version += 1
            document = types.VersionedTextDocumentIdentifier(version, uri)
            change = types.TextDocumentContentChangeWholeDocument(text)
            client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))


def apply(text: str, edits: list[Any]) -> str:
    """`text` after the edits of one document (columns count characters, as agreed with the server)."""
    lines = text.replace("\r\n", " \n").replace("\r", "\n").split("\n")

    def offset(position: dict[str, int]) -> int:
        return sum(len(line) + 1 for line in lines[: position["line"]]) + position["character"]

    for edit in sorted(edits, key=lambda e: offset(e["range"]["start"]), reverse=True):
        start, end = (offset(edit["range"][name]) for name in ("start", "end"))
        text = text[:start] + edit["newText"] + text[end:]
    return text


def show(draft: Any) -> None:
    """One line for a draft: what the sampler has accepted stands as text, what is still noise as dots."""
    runs = ((text, anchored, accepted) for text, anchored, accepted, _ in draft.runs if not anchored)
    told = "".join(text if accepted else "·" * len(text) for text, _, accepted in runs)
    print(f"  step {draft.step:2}  {' '.join(told.split())[:100]}", file=sys.stderr, flush=True)


async def main(arguments: argparse.Namespace) -> int:
    """Start the server, fill, report."""
    client = LanguageClient("fill-stubs", "1")
    client.feature("dg-lsp/draft")(show)
    await client.start_io(sys.executable, "-P", "-m", "dg_lsp", "--stdio", "--log-level", "warning")
    # A pipe that nobody reads would stop the server one day.
    server = client._server
    assert server is not None and server.stderr is not None
    log = asyncio.create_task(copy(server.stderr))
    options = {"seed": arguments.seed, "effort": arguments.effort}
    await client.initialize_async(types.InitializeParams(CAPABILITIES, initialization_options=options))
    client.initialized(types.InitializedParams())
    report: dict[str, Any] = {"filled": [], "refused": []}
    paths = [arguments.path] if arguments.path.is_file() else sorted(arguments.path.rglob("*.py"))
    for path in paths:
        old = path.read_bytes().decode("utf-8")
        new = await fill_file(client, path, report, set())
        if arguments.write and new != old:
            path.write_bytes(new.encode("utf-8"))
        elif not arguments.write:
            before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
            sys.stderr.writelines(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"))
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    await log
    print(json.dumps(report, indent=1))
    return 1 if report["refused"] else 0


async def copy(stream: asyncio.StreamReader) -> None:
    """The server's log to our own stderr."""
    async for line in stream:
        sys.stderr.write(line.decode("utf-8", "replace"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="a file, or a folder whose Python files are searched")
    parser.add_argument("--write", action="store_true", help="change the files; without it the diff is shown")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other fills")
    parser.add_argument("--effort", choices=("low", "normal", "high"), default="normal")
    sys.exit(asyncio.run(main(parser.parse_args())))
