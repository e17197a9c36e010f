"""The check of a wheel before it is built: the VS Code extension must be in it."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_MISSING = (
    "editors/vscode/dg-lsp.vsix is missing, so this wheel would have no extension for VS Code. "
    "Build both with `make wheel` (needs npm and Node 20 or newer), or set DG_LSP_WITHOUT_VSIX=1 to build without it."
)


class ExtensionHook(BuildHookInterface):
    """Stop the build of a wheel without the extension, unless the environment allows it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Check the folder that is built. version: "editable" for a clone that is installed in place."""
        extension = Path(self.root) / "editors/vscode/dg-lsp.vsix"
        if version != "editable" and not extension.is_file() and not os.environ.get("DG_LSP_WITHOUT_VSIX"):
            raise FileNotFoundError(_MISSING)
