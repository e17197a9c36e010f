"""Writes what editors/vscode/package.json has from the code: its settings, its languages, its version.

    python -m tests.editors.manifest

`test_manifest.py` compares the file with what is written here.
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import dg_lsp
from dg_lsp.server.client import SECTION
from dg_lsp.settings import EFFORTS, LOG_LEVELS, RANGES, Settings, of_machine
from dg_lsp.source.language import language_ids
from tests.configuration import camel

MANIFEST = Path(__file__).parents[2] / "editors/vscode/package.json"
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", tuple: "array"}
_CHOICES = {"effort": EFFORTS, "log_level": LOG_LEVELS}

# The settings of the extension itself.
_OWN: dict[str, dict[str, Any]] = {
    "path": {
        "type": ["string", "null"],
        "default": None,
        "scope": "machine",
        "description": "The program dg-lsp; without it the program that installed the extension and the PATH are "
        "searched.",
    },
    "preview": {
        "type": "boolean",
        "default": False,
        "scope": "window",
        "description": "Show each fill side by side with the text as it is first, to be taken or left.",
    },
    "showDrafts": {
        "type": "boolean",
        "default": True,
        "scope": "window",
        "description": "While a fill is being made, draw its drafts at the position of the fill.",
    },
}


def manifest(old: dict[str, Any]) -> dict[str, Any]:
    """The manifest `old` with settings, languages and version as the code has them now."""
    settings = {f"{SECTION}.{name}": own for name, own in _OWN.items()}
    settings |= {f"{SECTION}.{camel(f.name)}": _schema(f.name, f.metadata["help"]) for f in fields(Settings)}
    new: dict[str, Any] = json.loads(json.dumps(old))
    new["version"] = dg_lsp.__version__
    new["activationEvents"] = [f"onLanguage:{name}" for name in languages()]
    new["contributes"]["configuration"]["properties"] = settings
    restricted = [name for name, schema in settings.items() if schema["scope"] == "machine"]
    new["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = restricted
    return new


def languages() -> list[str]:
    """The names that editors give the languages of the server."""
    return list(language_ids())


def text(manifest: dict[str, Any]) -> str:
    """The manifest as the file has it."""
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def _schema(name: str, sentence: str) -> dict[str, Any]:
    """The JSON schema of a setting. Its default is null, which is not sent and so overrides nothing."""
    default = getattr(Settings(), name)
    kind = _KINDS[type(default)]
    schema: dict[str, Any] = {"type": [kind, "null"], "default": None}
    if name in _CHOICES:
        schema["enum"] = [*_CHOICES[name], None]
    if kind == "array":
        schema["items"] = {"type": "string"}
    if kind in ("integer", "number"):
        schema["minimum"], schema["maximum"] = RANGES[name][:2]
    schema["scope"] = "machine" if name in of_machine() else "window"
    schema["markdownDescription"] = f"{sentence[0].upper()}{sentence[1:]}. Not set: {_shown(default)}."
    return schema


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, tuple):
        return ", ".join(f"`{part}`" for part in default) or "none"
    return f"`{default}`" if default != "" else "none"


if __name__ == "__main__":
    MANIFEST.write_text(text(manifest(json.loads(MANIFEST.read_text(encoding="utf-8")))), encoding="utf-8")
