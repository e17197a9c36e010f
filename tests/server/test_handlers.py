"""Handlers know their Snapshot and a narrow Context, and nothing of the server; settings are read once a request."""

import ast
from dataclasses import fields
from pathlib import Path

import pytest

from dg_lsp.server import handlers
from dg_lsp.server.handlers.context import Context

MODULES = sorted(Path(handlers.__file__).parent.glob("[!_]*.py"), key=lambda path: path.name)
# The methods of Context, beside its fields.
OWN = {"around", "log_refusal", "record"}
# Who makes Snapshots, or changes the settings.
READS_SETTINGS = {"context.py", "configuration.py", "lifecycle.py"}


def attributes(path: Path, *owners: str) -> set[str]:
    """Return the attributes of `owners`, such as `context.session`, that a module touches."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {n.attr for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n.value) in owners}


def test_handlers_touch_few_attributes_of_a_context_and_none_of_the_server() -> None:
    assert len(MODULES) >= 8 and len(fields(Context)) <= 8
    touched = {name for path in MODULES for name in attributes(path, "context")}
    assert touched <= {one.name for one in fields(Context)} | OWN
    assert not [
        (path.name, n) for path in MODULES for o in ("ls", "server", "_server") for n in attributes(path, o)
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_only_a_snapshot_has_the_settings_of_a_request(path: Path) -> None:
    read = "settings" in attributes(path, "workspace", "context.workspace", "self.workspace")
    assert read == (path.name in READS_SETTINGS)
