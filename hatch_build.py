"""Say so if the wheel being built has no extension for VS Code; `make wheel` builds the extension first."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_MISSING = (
    "this wheel has no extension for VS Code, because editors/vscode/dg-lsp.vsix is missing; "
    "`make wheel` builds both (needs npm and Node 20 or newer)"
)


class ExtensionHook(BuildHookInterface):
    """Warn about a wheel without the extension. Bots, hooks and servers need none, and are built by pip alone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Look for the extension in the folder that is built. version: "editable" for a clone installed in place."""
        if version != "editable" and not (Path(self.root) / "editors/vscode/dg-lsp.vsix").is_file():
            self.app.display_warning(_MISSING)
