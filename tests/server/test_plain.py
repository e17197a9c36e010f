"""Ghost text in plain languages and in the code fences of Markdown, and the checkpoints that give none."""

import json
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.server.settings import silence
from dg_lsp.settings import Settings
from tests.server.wire import Wire, notification

URI = "file:///w/a"


def ghost(wire: Wire, language: str, marked: str) -> list[Any]:
    """The items at the cursor of a document that is opened with `marked`."""
    before, _, after = marked.partition("‸")
    document = {"uri": f"{URI}.{language}", "languageId": language, "version": 1, "text": before + after}
    wire.send(notification("textDocument/didOpen", {"textDocument": document}))
    *above, line = before.split("\n")
    at = {"line": len(above), "character": len(line)}
    params = {"textDocument": {"uri": document["uri"]}, "position": at, "context": {"triggerKind": 2}}
    items = wire.ask(language, "textDocument/inlineCompletion", params)["result"]["items"]
    assert all(item["range"] == {"start": at, "end": at} for item in items)
    return list(items)


def test_plain_languages_and_fences_get_ghost_text(wire: Wire) -> None:
    wire.initialize()
    assert ghost(wire, "yaml", "a: 1\nb: ‸\n")
    assert ghost(wire, "shellscript", "if true; then\n  ‸\nfi\n")
    assert ghost(wire, "markdown", "# Use\n\n```python\nx = ‸\n```\n")
    assert not ghost(wire, "dotenv", "A=‸\n")


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("json", '{"name": "‸"}\n'),
        ("json", '{"name": "a", "‸": 1}\n'),
        ("json", '{"name": "one", "other": "on‸"}\n'),
        ("yaml", 'name: "‸"\n'),
        ("toml", 'name = "‸"\n'),
        ("html", '<p class="‸">a</p>\n'),
        ("typescriptreact", 'const a = <p className="‸">a</p>;\n'),
        ("javascriptreact", "const a = <p onClick={() => 1} className='big ‸'>a</p>;\n"),
        ("javascript", 'const a = (\n  <Menu\n    kind="‸"\n  />\n);\n'),
    ],
)
def test_a_key_or_value_in_quotes_is_no_prose(language: str, marked: str, wire: Wire) -> None:
    wire.initialize()
    assert ghost(wire, language, marked)
    assert not ghost(wire, "sql", "SELECT 'so ‸' FROM t;\n") and wire.logged("by the setting prose")


@pytest.mark.parametrize(
    "marked",
    [
        'const a = <p onClick={() => f("so ‸")} />;\n',
        "const a = <p className='big'>so ‸</p>;\n",
        'const a = b <c; d="so ‸";\n',
    ],
)
def test_other_strings_beside_elements_are_prose(marked: str, wire: Wire) -> None:
    wire.initialize()
    assert not ghost(wire, "typescriptreact", marked) and wire.logged("by the setting prose")


def test_the_command_fills_a_fence_at_the_places_of_the_file(wire: Wire) -> None:
    wire.initialize()
    ghost(wire, "markdown", "# Use\n\n```py\ndef f():\n    ‸\n```\n")
    at = {"line": 4, "character": 4}
    params = {"command": "dg-lsp.fill", "arguments": [{"uri": f"{URI}.markdown", "position": at}]}
    edit = wire.ask("fill", "workspace/executeCommand", params)["result"]["edit"]
    ((change,),) = edit["changes"].values()
    assert change["newText"].strip() and change["range"]["start"] == at
    prose = {
        "command": "dg-lsp.fill",
        "arguments": [{"uri": f"{URI}.markdown", "position": {**at, "line": 0}}],
    }
    assert "only the code fences" in wire.ask("prose", "workspace/executeCommand", prose)["result"]["why"]


VUE = """<template>
  <p>{{ area }}</p>
</template>
<script setup lang="ts">
const a = ‸
function area() {
}
</script>
"""


def test_scripts_styles_and_templates_get_ghost_text(wire: Wire) -> None:
    wire.initialize()
    assert ghost(wire, "vue", VUE)
    assert ghost(wire, "svelte", "<script>\n  let a = ‸\n</script>\n")
    assert ghost(wire, "html", "<script>\nlet a = ‸\n</script>\n<p>\n")
    assert not ghost(wire, "astro", "---\nlet a\n---\n<p>‸</p>\n")
    assert wire.logged("in Astro files only the front matter, scripts and styles are filled")


def test_a_body_in_a_script_is_filled_by_code_action_position_and_name(wire: Wire) -> None:
    resolves = {"resolveSupport": {"properties": ["edit"]}, "dataSupport": True}
    wire.initialize(capabilities={"textDocument": {"codeAction": resolves}})
    ghost(wire, "vue", VUE)
    uri, inside = f"{URI}.vue", {"line": 6, "character": 0}
    params = {
        "textDocument": {"uri": uri},
        "range": {"start": inside, "end": inside},
        "context": {"diagnostics": []},
    }
    (action,) = wire.ask("list", "textDocument/codeAction", params)["result"]
    assert action["title"] == "Fill this function body"
    edits = [wire.ask("resolve", "codeAction/resolve", action)["result"]["edit"]]
    places: list[dict[str, Any]] = [{"position": inside}, {"name": "area"}]
    for number, place in enumerate(places):
        arguments = [{"uri": uri, "apply": False, **place}]
        asked = {"command": "dg-lsp.fill", "arguments": arguments}
        edits.append(wire.ask(f"fill {number}", "workspace/executeCommand", asked)["result"]["edit"])
    for edit in edits:
        ((change,),) = edit["changes"].values()
        assert change["range"]["start"]["line"] in (5, 6) and change["newText"].strip()
    wrong = {"command": "dg-lsp.fill", "arguments": [{"uri": uri, "name": "volume"}]}
    assert "no function volume" in wire.ask("wrong", "workspace/executeCommand", wrong)["result"]["why"]


def test_of_prose_in_markdown_nothing_is_sent(wire: Wire) -> None:
    wire.initialize()
    assert not ghost(wire, "markdown", "# Use ‸\n\n```python\nx = 1\n```\n")
    assert wire.logged("only the code fences are filled")


def test_a_language_of_a_fence_that_is_switched_off_gets_nothing(wire: Wire) -> None:
    wire.initialize(initializationOptions={"disabledLanguages": ["python"]})
    assert not ghost(wire, "markdown", "```py\nx = ‸\n```\n")
    assert wire.logged("python is switched off")


@pytest.mark.parametrize(
    ("about", "language", "reason"),
    [
        ({"prompt": "raw"}, "lua", "trained on other languages only; add lua to"),
        ({"prompt": "raw"}, "rust", ""),
        ({"prompt": "fim"}, "lua", ""),
        ({"prompt": "fim", "languages": ["python", "sql"]}, "lua", "trained on Python and Sql only"),
        ({"prompt": "fim", "languages": ["python", "sql"]}, "sql", ""),
    ],
)
def test_a_checkpoint_is_silent_in_languages_that_it_has_not_learned(
    about: dict[str, Any], language: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "dg_lsp.json").write_text(json.dumps(about), encoding="utf-8")
    settings = Settings(checkpoint=str(tmp_path))
    assert reason in silence(settings, language) and bool(reason) == bool(silence(settings, language))
    assert silence(Settings(checkpoint=str(tmp_path), ghost_languages=(language,)), language) == ""
